"""Selection of operations: which become tools, what each is called, and its arguments reshaped."""

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any

from msgspec import structs

from isthmus.errors import UsageError
from isthmus.openapi.operation import OperationHead
from isthmus.openapi.tools.arguments import ArgumentPlan
from isthmus.server.openapi_options import OperationChoice, Shape

MAX_TOOL_NAME_CHARS = 64  # as some models take them
ODD_SIGNS = re.compile(r"[^A-Za-z0-9_\-]+")
METHOD_AND_PATH = re.compile(r"(?:(?P<method>[A-Za-z\-]+)\s+)?(?P<path>[/*].*)")


def select_operations(
    heads: Sequence[OperationHead], include: Any, exclude: Any
) -> list[OperationHead]:
    """Select operations.

    Args:
        heads: all there are.
        include: choices, of which one must fit; all fit where there is none.
        exclude: choices, of which none may fit.

    Raises:
        UsageError: a choice fits none at all: it would silently offer too little or too much.
    """
    wanted, unwanted = _list_choices(include), _list_choices(exclude)
    for option, choices in (("include", wanted), ("exclude", unwanted)):
        for choice in choices:
            if not any(is_chosen(head, choice) for head in heads):
                raise UsageError(f"{option}={choice!r} fits no operation{_list_tags(heads)}")
    return [
        head
        for head in heads
        if (not wanted or any(is_chosen(head, one) for one in wanted))
        and not any(is_chosen(head, one) for one in unwanted)
    ]


def _list_choices(given: Any) -> list[OperationChoice]:
    if given is None:
        return []
    return [given] if isinstance(given, str) or callable(given) else [*given]


def _list_tags(heads: Sequence[OperationHead]) -> str:
    tags = sorted({tag for head in heads for tag in head.tags})[:20]
    return f"; there are the tags {', '.join(tags)}" if tags else ""


def is_chosen(head: OperationHead, choice: OperationChoice) -> bool:
    """Whether a choice fits an operation."""
    if not isinstance(choice, str):
        return bool(choice(head))
    if choice.startswith("tag:"):
        return any(fnmatchcase(tag, choice[4:].strip()) for tag in head.tags)
    found = METHOD_AND_PATH.fullmatch(choice.strip())
    if found is not None and (found["path"].startswith("/") or found["method"]):
        method = (found["method"] or "").upper()
        return method in {"", head.method} and fnmatchcase(head.path, found["path"])
    return fnmatchcase(head.id, choice)


def make_tool_name(head: OperationHead) -> str:
    """The name of the tool that an operation becomes: its operationId, else method and path."""
    if head.id:
        name = ODD_SIGNS.sub("_", head.id).strip("_")
    else:
        path = re.sub(r"\{([^{}]*)\}", r"by_\1", head.path)
        name = f"{head.method.lower()}_{ODD_SIGNS.sub('_', path).strip('_') or 'root'}"
    if not name:
        name = "operation"
    if len(name) > MAX_TOOL_NAME_CHARS:
        digest = sha256(name.encode()).hexdigest()[:8]
        name = f"{name[: MAX_TOOL_NAME_CHARS - 9]}_{digest}"
    return name


def find_shape(head: OperationHead, shapes: Mapping[str, Shape]) -> Shape | None:
    """The shape that the author gave for an operation."""
    return shapes.get(head.id) or shapes.get(f"{head.method} {head.path}")


def check_shapes(heads: Sequence[OperationHead], shapes: Mapping[str, Shape]) -> None:
    """See that each shape is for an operation.

    Raises:
        UsageError: one is for none, or is no shape.
    """
    known = {head.id for head in heads} | {f"{head.method} {head.path}" for head in heads}
    for key, shape in shapes.items():
        if not isinstance(shape, Shape):
            raise UsageError(f"shape[{key!r}] takes Shape(…), not {type(shape).__name__}")
        if key not in known:
            raise UsageError(f"shape[{key!r}]: there is no such operationId, nor METHOD /path")


def reshape(plan: ArgumentPlan, shape: Shape) -> ArgumentPlan:
    """A plan whose arguments are hidden, renamed and described as an author wants it.

    Raises:
        UsageError: an argument does not exist, or must have a value and has none.
    """
    for option, named in (
        ("hide", shape.hide),
        ("rename", shape.rename),
        ("describe", shape.describe),
    ):
        for name in named:
            if name not in plan.arguments:
                known = ", ".join(plan.arguments) or "none"
                raise UsageError(f"{option}: there is no argument {name!r}; there are: {known}")
    rename: Callable[[str], str] = lambda name: shape.rename.get(name, name)  # noqa: E731 - used below only
    after = [rename(name) for name in plan.arguments]
    if len(set(after)) < len(after):
        raise UsageError(f"rename: two arguments would have one name: {', '.join(sorted(after))}")
    for name, value in shape.hide.items():
        if value is None and plan.arguments[name].required:
            raise UsageError(f"hide: {name!r} is required, and needs a value: hide={{{name!r}: …}}")
    properties = {
        rename(name): {**part, "description": shape.describe[name]}
        if name in shape.describe
        else part
        for name, part in plan.schema["properties"].items()
        if name not in shape.hide
    }
    required = [rename(n) for n in plan.schema.get("required", ()) if n not in shape.hide]
    schema = {**plan.schema, "properties": properties, "required": required}
    if not required:
        del schema["required"]
    return structs.replace(
        plan,
        arguments={rename(name): one for name, one in plan.arguments.items()},
        schema=schema,
        fixed={rename(name): value for name, value in shape.hide.items() if value is not None},
        hidden=frozenset(map(rename, shape.hide)),
    )
