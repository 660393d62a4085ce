"""Who may import whom, and when. The rule is printed with every offending line."""

import ast
import sys
from collections.abc import Iterator

LAYERS = (
    {"wire", "errors", "lazy"},
    {"yaml_text"},
    {"revisions"},
    {"core"},
    {"runtime"},
    {"store"},
    {"nodes"},
    {"tasks"},
    {"transports", "search", "skills"},
    {"server", "client", "auth"},
    {"bridge", "openapi", "telemetry"},
    {"host"},
    {"cards"},
    {"linter", "sampling", "gateway", "compat"},
    {"console", "migration", "terminal", "testing"},
    {"cli"},
)
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
RULE = " <- ".join(" | ".join(sorted(names)) for names in LAYERS)

FACADES = {
    ("server/server.py", "bridge"),  # Server.proxy: a server whose engine is a client
    ("server/server.py", "openapi"),  # Server.from_openapi: a server made of a document
    ("client/targets.py", "bridge"),  # Client({"mcpServers": …}): several servers as one
}
"""Public classes with a method whose engine stands above them: a function imports it by its name."""

GATHERING = {"__init__", "__main__", "types"}  # they list what the others made

PURE = {"wire", "errors", "revisions", "core"}
IMPURE = {
    *("asyncio", "socket", "ssl", "select", "selectors", "threading", "subprocess", "signal"),
    *("time", "random", "secrets", "uuid", "logging", "os", "io", "pathlib", "tempfile"),
    *("aiohttp", "uvicorn", "uvloop", "httptools", "anyio", "httpx", "requests"),
}
IMPURE_CALLS = {"open", "now", "utcnow", "today", "urandom", "getenv"}

# What `import asyncio, msgspec` has loaded already costs nothing at the top of a file.
CHEAP = {
    *("abc", "ast", "asyncio", "base64", "binascii", "collections", "contextlib", "contextvars"),
    *("datetime", "decimal", "enum", "functools", "itertools", "keyword", "math", "numbers"),
    *("operator", "os", "re", "select", "socket", "string", "struct", "sys", "textwrap", "time"),
    *("types", "typing", "warnings", "weakref", "msgspec"),
}
SLOW = {
    *("aiohttp", "attr", "attrs", "cryptography", "httptools", "jsonschema_rs", "opentelemetry"),
    *("pydantic", "rich", "starlette", "typer", "uvicorn", "uvloop", "http", "urllib", "email"),
    *("textual", "tomlkit", "tomllib", "watchfiles", "yaml"),
    *("sqlite3", "hiredis", "unittest", "multiprocessing", "webbrowser"),
}
COMPAT = "compat/"
"""The façades of libraries that are made of pydantic: nothing else imports them, and only on demand."""

SERVING = "transports/http/connections/"
"""Modules whose classes are for uvicorn: only a function that serves imports them."""


class Import:
    """One imported module, and where it says so."""

    def __init__(self, module: str, line: int, *, inside: bool, typing: bool) -> None:
        self.module = module
        self.line = line
        self.inside = inside
        self.typing = typing
        self.top = module.split(".", 1)[0]


def imports(tree: ast.AST, *, inside: bool = False, typing: bool = False) -> Iterator[Import]:
    """Every import below a node, and whether it stands in a function or under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.expr):  # no statement is in one
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, inside=inside, typing=typing)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            # `from isthmus import wire` imports a package, not a name of the root.
            names = [f"isthmus.{a.name}" for a in node.names if a.name in RANK]
            for name in names if module == "isthmus" and names else [module]:
                yield Import(name, node.lineno, inside=inside, typing=typing)
        else:
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            guard = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            yield from imports(node, inside=inside or function, typing=typing or guard)


def layer(module: str) -> str:
    """The package of isthmus a module belongs to; empty for the root."""
    return module.split(".")[1] if module.count(".") else ""


def may(source, target: str) -> bool:
    """Whether a file may import a module of isthmus."""
    if source.package in GATHERING:
        return True
    if target not in RANK:  # the root, or another place that gathers
        return RANK[source.package] == len(LAYERS) - 1
    return source.package == target or RANK[target] < RANK[source.package]


def test_every_package_has_a_layer(sources):
    """Ours: a new package is placed before it is used."""
    unplaced = {s.package for s in sources} - set(RANK) - GATHERING

    assert set() == unplaced, f"place them in LAYERS: {RULE}"


def test_imports_go_to_the_left(sources):
    """Ours: a package imports only packages of lower layers, never the root, never a sibling."""
    wrong = [
        f"{s.name}:{i.line} imports {i.module}"
        for s in sources
        for i in imports(s.tree)
        if i.top == "isthmus" and not may(s, layer(i.module))
        if not (i.inside and (s.name, layer(i.module)) in FACADES)
    ]

    assert [] == wrong, f"imports go left: {RULE}"


# What each package of authorization may have of the others; what is beside them has none.
ROLES = {
    "client": set(),
    "resource_server": set(),
    "authorization_server": {"resource_server"},
}


def role(module: str) -> str:
    """The package of authorization that a module belongs to; empty for what is beside them."""
    package, _, rest = module.partition("isthmus.auth.")
    found = rest.split(".")[0]
    return found if not package and found in ROLES else ""


def test_roles_of_authorization_share_what_is_beside_them(sources):
    """Ours: a client is no part of a server; what both need stands beside them."""
    wrong = [
        f"{s.name}:{i.line} imports {i.module}"
        for s in sources
        if s.package == "auth"
        for own in [role(f"isthmus.{s.name.replace('/', '.')}")]
        for i in imports(s.tree)
        if not (i.inside or i.typing) and role(i.module) not in {"", own, *ROLES.get(own, ())}
    ]

    assert [] == wrong


def test_the_core_is_pure(sources):
    """Ours: wire, revisions and core import nothing that does I/O, keeps time or rolls dice."""
    wrong = [
        f"{s.name}:{i.line} imports {i.module}"
        for s in sources
        if s.package in PURE
        for i in imports(s.tree)
        if i.top in IMPURE
    ]

    assert [] == wrong, "time, randomness and bytes arrive as arguments in " + ", ".join(PURE)


def name_call(node: ast.Call) -> str:
    """``open`` for ``open(…)``, ``now`` for ``datetime.now(…)``; methods of ours do not count."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        owner = node.func.value.id
        return node.func.attr if owner in {"datetime", "date", "os", "io", "Path"} else ""
    return ""


def test_the_core_asks_nobody_for_the_time(sources):
    """Ours: wire, revisions and core open no file and read no clock by a call either."""
    wrong = [
        f"{s.name}:{node.lineno} calls {name_call(node)}"
        for s in sources
        if s.package in PURE
        for node in s.nodes
        if isinstance(node, ast.Call) and name_call(node) in IMPURE_CALLS
    ]

    assert [] == wrong, "time, randomness and bytes arrive as arguments in " + ", ".join(PURE)


def test_slow_modules_are_imported_inside_functions(sources):
    """Ours: what costs start-up time is imported by the one function that needs it."""
    wrong = [
        f"{s.name}:{i.line} imports {i.module} at its top"
        for s in sources
        if s.package not in {"cli", "terminal"}  # reached only by who wants a terminal
        if not s.name.startswith(SERVING)
        for i in imports(s.tree)
        if not i.inside and not i.typing
        if (i.top in SLOW and not (i.top == "pydantic" and s.name.startswith(COMPAT)))
        or f"{i.module.removeprefix('isthmus.').replace('.', '/')}/".startswith(SERVING)
    ]

    assert [] == wrong, "import them inside the function that needs them"


def test_cheap_modules_are_imported_at_the_top(sources):
    """Ours: an import inside a function is for something slow or optional, or a higher room."""
    wrong = [
        f"{s.name}:{i.line} imports {i.module} inside a function"
        for s in sources
        for i in imports(s.tree)
        if i.inside and (i.top in CHEAP or layer(i.module) in PURE)
    ]

    assert [] == wrong, "import them at the top of the file"


def test_no_import_is_relative(sources):
    """Ours: a module has one spelling."""
    wrong = [
        f"{s.name}:{node.lineno}"
        for s in sources
        for node in s.nodes
        if isinstance(node, ast.ImportFrom) and node.level
    ]

    assert [] == wrong, "write `from isthmus.package import name`"


def test_the_lists_name_real_modules():
    """Ours: a misspelt module in a list above would forbid nothing."""
    third = {"aiohttp", "uvicorn", "uvloop", "httptools", "anyio", "httpx", "requests", "msgspec"}
    third |= {"attr", "attrs", "cryptography", "jsonschema_rs", "opentelemetry", "pydantic"}
    third |= {"rich", "starlette", "typer", "hiredis", "textual", "tomlkit", "watchfiles", "yaml"}

    assert set() == (IMPURE | CHEAP | SLOW) - third - set(sys.stdlib_module_names)
