"""No exception is kept where its own frames are: written so that nobody need think of cycles."""

import ast

CLASSES = {"asyncio.CancelledError", "typer.Exit"}
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def functions(sources):
    """Every function of the source that raises or catches anything: its place, itself, its own."""
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                inside = list(own(node))
                if any(isinstance(one, ast.Raise | ast.ExceptHandler) for one in inside):
                    yield f"{source.name}:{node.lineno} {node.name}", node, inside


def own(function):
    """What stands in a function, and not in one inside it."""
    waiting = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, SCOPES):
            waiting += ast.iter_child_nodes(node)


def list_deleted_names(inside):
    """The names that a function deletes in a ``finally``: nothing that leaves it is kept by them."""
    return {
        target.id
        for node in inside
        if isinstance(node, ast.Try)
        for statement in node.finalbody
        if isinstance(statement, ast.Delete)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def list_bound_names(function, inside):
    """The names that are parameters of a function, or that it assigns."""
    given = function.args
    names = {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)}
    return names | {
        node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def raises_a_name(function, inside):
    """Whether it raises what one of its names keeps: to be raised in the ``except`` block."""
    kept = list_bound_names(function, inside) - list_deleted_names(inside)
    return any(
        isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name) and node.exc.id in kept
        for node in inside
    )


def raises_what_is_kept(_function, inside):
    """Whether it raises what an object keeps, and not ``errors.anew`` of it."""
    return any(
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Attribute | ast.Subscript)
        and ast.unparse(node.exc) not in CLASSES
        for node in inside
    )


def keeps_what_it_caught(_function, inside):
    """Whether it has another name for what it caught, which is not forgotten with the block."""
    return any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name)
        and node.value.id == handler.name
        and any(
            isinstance(one, ast.Name) and one.id not in list_deleted_names(inside)
            for one in node.targets
        )
        for handler in inside
        if isinstance(handler, ast.ExceptHandler) and handler.name
        for node in ast.walk(handler)
    )


RULES = (raises_a_name, raises_what_is_kept, keeps_what_it_caught)


def test_no_exception_is_kept_where_its_own_frames_are(sources):
    """Ours: its traceback has the frame, and the frame the name; so both wait for the collector."""
    wrong = [
        f"{where} {rule.__name__}"
        for where, function, inside in functions(sources)
        for rule in RULES
        if rule(function, inside)
    ]

    assert [] == wrong
