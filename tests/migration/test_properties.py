"""Properties of the migration, over generated programs: a second run changes nothing, the rest stays."""

import ast
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.migration.project import migrate_project
from support.examples import count_examples

MODULES = st.sampled_from(
    ["mcp", "mcp.types", "mcp.server", "mcp.server.fastmcp", "mcp_types", "fastmcp", "mcp_utils", "os", "mcp.nothing"]
)  # fmt: skip
NAMES = st.sampled_from(
    ["Tool", "types", "FastMCP", "Context", "Nothing", "tool as t", "Client as mcp"]
)
STRINGS = st.sampled_from(
    ["mcp.types.Tool", "mcp.server.x", "fastmcp", "mcp", "mcp.json", "a\\tb", "ä"]
)
COMMENTS = st.sampled_from(["", "  # noqa: F401", "  # isthmus: look here", " \\\n"])


@st.composite
def make_statement(draw):
    """A statement with or without something to migrate in it."""
    module, names, string = (
        draw(MODULES),
        draw(st.lists(NAMES, min_size=1, max_size=3)),
        draw(STRINGS),
    )
    inner = ", ".join(names)
    return draw(
        st.sampled_from(
            [
                f"from {module} import {inner}",
                f"from {module} import (\n    {inner},  # kept\n)",
                f"import {module}",
                f"import {module}; import os",
                f"import os, {module} as m, mcp.types",
                f'with patch("{string}"): pass',
                f'getLogger(\n    "{string}"\n)',
                f'"""text\n{string} import mcp\n"""',
                f"if True:\n    import {module}\n    from {module} import {inner}",
                f"def f(mcp):\n\tfrom {module} import {inner}\n\treturn mcp.types",
                f"x = mcp.types.Tool('{string}')",
                f"x = {{\n  '{string}': 1\n}}",
            ]
        )
    )


@st.composite
def make_program(draw):
    """A program of some statements, with comments and line ends of either kind."""
    statements = draw(st.lists(make_statement(), min_size=1, max_size=8))
    comments = draw(st.lists(COMMENTS, min_size=len(statements), max_size=len(statements)))
    lines = [
        f"{statement}{'' if chr(92) in comment and chr(10) in comment else comment}"
        for statement, comment in zip(statements, comments, strict=True)
    ]
    text = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


NATIVE_STATEMENTS = st.sampled_from(
    [
        "from mcp.server.fastmcp import FastMCP, Context",
        "from fastmcp import FastMCP as F",
        'app = FastMCP("a")',
        'app = F("a",  # kept\n    instructions="ä")',
        "@app.tool()\ndef add(a: int) -> int:\n    return a + 1",
        "@app.tool(  # kept\n    'b',\n)\nasync def tell(ctx: Context) -> str:\n    await ctx.info('x')\n    return 'x'",
        "@app.tool()\ndef break_it(a: str) -> int:\n\treturn int(a)",
        "if True:\n    app.run('streamable-http')",
        "print(app)",
        "import os",
    ]
)


@settings(max_examples=count_examples(20), deadline=None)
@given(st.booleans(), st.lists(NATIVE_STATEMENTS, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_a_second_run_to_native_changes_nothing(has_server, statements, newline):
    """The native step is done once, whatever becomes native; and what is native parses."""
    head = ["from mcp.server.fastmcp import FastMCP, Context", 'app = FastMCP("a")']
    text = "\n".join([*head, *statements] if has_server else statements)
    once = migrate(text.replace("\n", newline), native=True)
    ast.parse(once)
    assert migrate(once, native=True) == once


def migrate(text, *, native=False):
    """The new text of a program that is alone in its folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "server.py")
        path.write_bytes(text.encode())
        migration = migrate_project(Path(folder), native=native)
        migration.write()
        return path.read_bytes().decode()


@settings(max_examples=count_examples(40), deadline=None)
@given(make_program())
def test_a_second_run_changes_nothing(text):
    """Migrating what is migrated gives the same bytes."""
    once = migrate(text)
    assert migrate(once) == once


@settings(max_examples=count_examples(40), deadline=None)
@given(make_program())
def test_all_but_imports_and_targets_is_the_same_program(text):
    """The new text parses, and its statements other than imports and strings are the old ones."""
    old, new = ast.parse(text), ast.parse(migrate(text))
    assert describe_program(old) == describe_program(new)


def describe_program(tree):
    """The kinds of all nodes without imports; names that lead to a package count as one."""
    return [
        type(node).__name__
        for node in walk_program(tree)
        if not isinstance(node, (ast.Import, ast.ImportFrom, ast.alias, ast.expr_context))
    ]


def walk_program(node):
    """All nodes, without those below a dotted name."""
    yield node
    if not isinstance(node, ast.Attribute):
        for child in ast.iter_child_nodes(node):
            yield from walk_program(child)
