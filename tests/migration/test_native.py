"""``isthmus migrate --native``: what becomes native answers as before, and all else stays at the façade."""

import textwrap
from typing import NamedTuple

import pytest

from isthmus import Client
from isthmus.migration.project import migrate_project

FASTMCP = "from fastmcp import Context, FastMCP\n"
MCP1 = "from mcp.server.fastmcp import Context, FastMCP\n"
MCP2 = "from mcp.server.mcpserver import Context, MCPServer\n"
NATIVE = "from isthmus import Context, Server\n"
REVISIONS = ["2025-11-25", "2026-07-28"]


class Snippet(NamedTuple):
    """A program before and after, and what is asked of it.

    Attributes:
        before: below the line that makes its server.
        after: the same, natively.
        calls: of tools, with arguments; ``read`` and ``get`` are for resources and prompts.
        head: its imports.
        native_head: the same, natively.
    """

    before: str
    after: str
    calls: list[tuple]
    head: str = FASTMCP
    native_head: str = NATIVE

    def write(self, form):
        """The program in one of both forms."""
        head, body = (
            (self.head, self.before) if form == "before" else (self.native_head, self.after)
        )
        name = "MCPServer" if "MCPServer" in head else "FastMCP"
        made = f'mcp = {name}("it")' if form == "before" else 'mcp = Server("it", sanitise=None)'
        return f"{head}\n{made}\n\n\n{textwrap.dedent(body).lstrip()}"


SNIPPETS = {
    "int": Snippet(
        "@mcp.tool\ndef add(a: int, b: int = 2) -> int:\n    return a + b\n",
        "@mcp.tool\ndef add(a: int, b: int = 2) -> int:\n    return a + b\n",
        [("add", {"a": 1}), ("add", {"a": "1", "b": 3.0}), ("add", {"a": "x"}), ("add", {})],
    ),
    "text": Snippet(
        "@mcp.tool()\nasync def greet(name: str) -> str:\n    return f'Hello,\\x1b[0m {name}'\n",
        "@mcp.tool(structured=True)\nasync def greet(name: str) -> str:\n    return f'Hello,\\x1b[0m {name}'\n",
        [("greet", {"name": "Ann"}), ("greet", {"name": ""}), ("greet", {"name": 1})],
    ),
    "literal text": Snippet(
        "@mcp.tool\ndef greet(name: str):\n    if name:\n        return f'Hello {name.upper()}'\n",
        "@mcp.tool\ndef greet(name: str):\n    if name:\n        return f'Hello {name.upper()}'\n",
        [("greet", {"name": "Ann"}), ("greet", {"name": ""})],
    ),
    "text, unstructured": Snippet(
        '@mcp.tool(name="hi", output_schema=None)\ndef greet() -> str:\n    return "a"\n',
        '@mcp.tool(name="hi")\ndef greet() -> str:\n    return "a"\n',
        [("hi", {})],
    ),
    "bool, choice, None": Snippet(
        """
        from typing import Literal

        @mcp.tool
        def is_long(text: str, least: Literal["few", "many"] = "few") -> bool:
            return len(text) > 3 and least == "few"

        @mcp.tool
        def choose(first: bool) -> Literal["a", "b"]:
            return "a" if first else "b"

        @mcp.tool
        def forget(items: list[str]) -> None:
            for item in items:
                len(item)
        """,
        """
        from typing import Literal

        @mcp.tool
        def is_long(text: str, least: Literal["few", "many"] = "few") -> bool:
            return len(text) > 3 and least == "few"

        @mcp.tool
        def choose(first: bool) -> Literal["a", "b"]:
            return "a" if first else "b"

        @mcp.tool
        def forget(items: list[str]) -> None:
            for item in items:
                len(item)
        """,
        [
            ("is_long", {"text": "four", "least": "many"}),
            ("is_long", {"text": "four", "least": "none"}),
            ("choose", {"first": True}),
            ("choose", {"first": "false"}),
            ("forget", {"items": ["a"]}),
            ("forget", {"items": []}),
        ],
    ),
    "dictionaries": Snippet(
        """
        STOCK = {"bread": 3}

        @mcp.tool
        def stock(only: str | None = None) -> dict[str, int]:
            return {key: value for key, value in STOCK.items() if only is None or key == only}

        @mcp.tool
        def put(item: str, count: int) -> dict[str, list[str]]:
            STOCK[item] = STOCK.get(item, 0) + count
            return {"known": list(STOCK), "none": []}
        """,
        """
        STOCK = {"bread": 3}

        @mcp.tool
        def stock(only: str | None = None) -> dict[str, int]:
            return {key: value for key, value in STOCK.items() if only is None or key == only}

        @mcp.tool
        def put(item: str, count: int) -> dict[str, list[str]]:
            STOCK[item] = STOCK.get(item, 0) + count
            return {"known": list(STOCK), "none": []}
        """,
        [
            ("stock", {}),
            ("stock", {"only": "tea"}),
            ("stock", {"only": None}),
            ("stock", {"only": "null"}),
            ("put", {"item": "tea", "count": 1}),
            ("stock", {}),
        ],
    ),
    "described parameters": Snippet(
        """
        from typing import Annotated, Optional
        from pydantic import Field

        @mcp.tool("twice", description="Doubles.", annotations={"readOnlyHint": True})
        def double(a: Annotated[int, Field(description="a number")], b: Optional[float] = None) -> int:
            return a * 2
        """,
        """
        from typing import Annotated, Optional
        from pydantic import Field

        @mcp.tool(name="twice", description="Doubles.", read_only=True)
        def double(a: Annotated[int, Field(description="a number")], b: Optional[float] = None) -> int:
            return a * 2
        """,
        [("twice", {"a": 2}), ("twice", {"a": "2", "b": 1}), ("twice", {"b": "x"})],
    ),
    "context": Snippet(
        """
        @mcp.tool
        async def work(steps: int, ctx: Context) -> int:
            for step in range(steps):
                await ctx.report_progress(step, steps)
                await ctx.info(f"step {step}")
            await ctx.warning("done")
            return steps
        """,
        """
        @mcp.tool
        async def work(steps: int, ctx: Context) -> int:
            for step in range(steps):
                await ctx.progress(step, steps)
                ctx.log.info(f"step {step}")
            ctx.log.warning("done")
            return steps
        """,
        [("work", {"steps": 2})],
    ),
    "errors": Snippet(
        """
        @mcp.tool
        def order(item: str) -> int:
            if item != "bread":
                raise ToolError(f"there is no {item}")
            return 1

        @mcp.tool
        def parse(text: str) -> str:
            try:
                return str(int(text))
            except Exception as error:
                return f"that is no number: {error}"
        """,
        """
        @mcp.tool
        def order(item: str) -> int:
            if item != "bread":
                raise ToolError(f"there is no {item}")
            return 1

        @mcp.tool(structured=True)
        def parse(text: str) -> str:
            try:
                return str(int(text))
            except Exception as error:
                return f"that is no number: {error}"
        """,
        [
            ("order", {"item": "bread"}),
            ("order", {"item": "tea"}),
            ("parse", {"text": "12"}),
            ("parse", {"text": "x"}),
        ],
        head=FASTMCP + "from fastmcp.exceptions import ToolError\n",
        native_head=NATIVE + "from isthmus import ToolError\n",
    ),
    "resources and prompts": Snippet(
        """
        @mcp.resource("data://words", mime_type="text/markdown")
        def words() -> str:
            return "# a"

        @mcp.resource("data://plain")
        async def plain():
            return "b"

        @mcp.prompt("ask")
        def question(topic: str, tone: str = "kind") -> str:
            return f"{topic} {tone}"
        """,
        """
        @mcp.resource("data://words", mime_type="text/markdown")
        def words() -> str:
            return "# a"

        @mcp.resource("data://plain")
        async def plain():
            return "b"

        @mcp.prompt(name="ask")
        def question(topic: str, tone: str = "kind") -> str:
            return f"{topic} {tone}"
        """,
        [
            ("read", "data://words"),
            ("read", "data://plain"),
            ("get", "ask", {"topic": "a"}),
            ("get", "ask", {"topic": "a", "tone": "b"}),
        ],
    ),
    "mcp 1": Snippet(
        """
        import threading

        @mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
        def add(a: int, b: list[int]) -> int:
            return a + sum(b)

        @mcp.tool("name", structured_output=False)
        def tell(name: str) -> str:
            return name

        @mcp.tool()
        async def greet(name: str, ctx: Context) -> str:
            await ctx.info("greeting")
            return f"Hello {name}"

        @mcp.resource("data://{kind}/{name}")
        def read(kind: str, name: str) -> str:
            return kind + name

        @mcp.prompt()
        def ask(topic: str) -> str:
            return topic
        """,
        """
        import threading

        @mcp.tool(read_only=True, blocking=False)
        def add(a: int, b: list[int]) -> int:
            return a + sum(b)

        @mcp.tool(name="name", blocking=False)
        def tell(name: str) -> str:
            return name

        @mcp.tool(structured=True)
        async def greet(name: str, ctx: Context) -> str:
            ctx.log.info("greeting")
            return f"Hello {name}"

        @mcp.resource("data://{kind}/{name}", blocking=False)
        def read(kind: str, name: str) -> str:
            return kind + name

        @mcp.prompt(blocking=False)
        def ask(topic: str) -> str:
            return topic
        """,
        [
            ("add", {"a": 1, "b": "[2, 3]"}),
            ("add", {"a": 1, "b": []}),
            ("name", {"name": "null"}),
            ("greet", {"name": "[1]"}),
            ("read", "data://a/b"),
            ("get", "ask", {"topic": "a"}),
        ],
        head=MCP1 + "from mcp.types import ToolAnnotations\n",
    ),
    "mcp 2": Snippet(
        """
        @mcp.tool()
        def add(a: int, b: float) -> bool:
            return a > b

        @mcp.tool(title="Greet")
        def greet(name: str) -> str:
            return name
        """,
        """
        @mcp.tool()
        def add(a: int, b: float) -> bool:
            return a > b

        @mcp.tool(title="Greet", structured=True)
        def greet(name: str) -> str:
            return name
        """,
        [("add", {"a": 1, "b": 0.5}), ("greet", {"name": "true"})],
        head=MCP2,
    ),
}


def test_an_annotated_server_becomes_native(tmp_path):
    """The annotation is the name of the class, which changes with it; an alias stays."""
    made = migrate(tmp_path, 'from fastmcp import FastMCP as F\n\napp: F = F(name="it")\n')
    assert made == 'from isthmus import Server as F\n\napp: F = F(name="it", sanitise=None)\n'
    made = migrate(tmp_path, 'from fastmcp import FastMCP\n\napp: FastMCP = FastMCP("it",)\n')
    assert made == 'from isthmus import Server\n\napp: Server = Server("it", sanitise=None,)\n'


def migrate(folder, text, *, native=True):
    """The new text of a program that is alone in its folder."""
    path = folder / "server.py"
    path.write_text(text)
    migration = migrate_project(folder, native=native)
    migration.write()
    return path.read_text()


def load_server(text):
    """The isthmus server of a program."""
    names = {"__name__": "program"}
    exec(compile(text, "program.py", "exec"), names)  # noqa: S102 - it stands above
    made = names["mcp"]
    if hasattr(made, "make_isthmus_server"):
        return made.make_isthmus_server()
    return getattr(made, "server", made)


async def ask(server, calls, revision):
    """The answers to all calls, and the progress that was told."""
    answers, progress = [], []
    async with Client(server, revision=revision) as client:
        for call in calls:
            match call:
                case ("read", str(uri)):
                    found = (await client.read_resource(uri)).contents
                case ("get", name, arguments):
                    found = (await client.get_prompt(name, arguments)).messages
                case (name, arguments):
                    result = await client.call_tool(
                        name, arguments, on_progress=lambda *told: progress.append(told)
                    )
                    # the text of an error about arguments is an accepted difference
                    is_told = not result.is_error or "there is no" in result.content[0].text
                    content = result.content if is_told else None
                    found = (content, result.structured, result.is_error)
            answers.append(found)
    return answers, progress


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS)
@pytest.mark.parametrize("is_on_facade", [False, True], ids=["library", "façade"])
def test_a_simple_module_becomes_native(tmp_path, snippet, is_on_facade):
    """The new text is the one in the table, from the library and from the façade, and stays so."""
    text = snippet.write("before")
    if is_on_facade:
        text = migrate(tmp_path, text, native=False)
        assert "isthmus.compat" in text
    once = migrate(tmp_path, text)
    assert snippet.write("after") == once
    assert once == migrate(tmp_path, once)


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_native_module_answers_as_before(tmp_path, snippet, revision):
    """Contents, structured results and errors of calls are those of the façade."""
    before = load_server(migrate(tmp_path, snippet.write("before"), native=False))
    after = load_server(snippet.write("after"))
    expected = await ask(before, snippet.calls, revision)
    assert expected == await ask(after, snippet.calls, revision)


# What stays: below the line that makes a server, and words of the comment on the line that has `# here`.
STAYING = [
    (
        FASTMCP,
        "@mcp.tool\ndef f(a: str):\n    return a  # here",
        "the type of this result is not said",
    ),
    (FASTMCP, "@mcp.tool\ndef f() -> float:  # here\n    return 1.0", "results of this type"),
    (FASTMCP, "@mcp.tool\ndef f() -> list[str]:  # here\n    return []", "results of this type"),
    (FASTMCP, "@mcp.tool\ndef f() -> int | None:  # here\n    return None", "results of this type"),
    (FASTMCP, "@mcp.tool\ndef f() -> dict:  # here\n    return {}", "results of this type"),
    (MCP1, "@mcp.tool()\ndef f() -> None:  # here\n    pass", "results of this type"),
    (
        MCP2,
        "@mcp.tool()\ndef f() -> dict[str, int]:  # here\n    return {}",
        "results of this type",
    ),
    (
        MCP1,
        "@mcp.tool()\ndef f(a: str | None = None) -> int:  # here\n    return 1",
        "read differently",
    ),
    (FASTMCP, "@mcp.tool\ndef f(a) -> int:  # here\n    return 1", "the type of a is not said"),
    (FASTMCP, "@mcp.tool\ndef f(a: int = None) -> int:  # here\n    return 1", "may be None"),
    (
        FASTMCP,
        "@mcp.tool\ndef f(*a: int) -> int:  # here\n    return 1",
        "cannot all be given by name",
    ),
    (FASTMCP, "@mcp.tool\ndef f(a: int) -> int:\n    return 1 // a  # here", "what may be raised"),
    (FASTMCP, "@mcp.tool\ndef f(a: str) -> int:\n    return int(a)  # here", "what may be raised"),
    (
        FASTMCP,
        "@mcp.tool\ndef f(a: str) -> int:\n    raise ValueError(a)  # here",
        "what may be raised",
    ),
    (
        FASTMCP,
        "@mcp.tool\ndef f(a: str) -> int:\n    return S[a]  # here\n\nS = {}",
        "what may be raised",
    ),
    (
        FASTMCP,
        "import os\n@mcp.tool\ndef f() -> str:\n    return os.getcwd()  # here",
        "what may be raised",
    ),
    (
        FASTMCP,
        "import http\n@mcp.tool\ndef f() -> str:\n    return http.get('a')  # here",
        "what may be raised",
    ),
    (
        FASTMCP,
        "def g(a: str) -> int:\n    return int(a)\n\n@mcp.tool\ndef f(a: str) -> int:\n    return g(a)  # here",
        "what may be raised",
    ),
    (
        FASTMCP,
        "@mcp.tool\ndef f() -> int:\n    try:\n        return int('a')\n    finally:\n        len('')\n    return 1",
        "what may be raised",
    ),
    (
        FASTMCP,
        "@mcp.tool\ndef f(len: int) -> int:\n    return len('a')  # here",
        "what may be raised",
    ),
    (FASTMCP, "@mcp.tool\ndef f() -> str:\n    yield 'a'  # here", "a generator"),
    (
        FASTMCP,
        "@mcp.tool(tags={'a'})  # here\ndef f() -> int:\n    return 1",
        "tags has no native spelling",
    ),
    (FASTMCP, "@mcp.tool(name=NAME)  # here\ndef f() -> int:\n    return 1", "not a plain text"),
    (FASTMCP, "@wraps\n@mcp.tool  # here\ndef f() -> int:\n    return 1", "other decorators"),
    (FASTMCP, "def f() -> int:\n    return 1\n\nmcp.add_tool(f)  # here", "this use of mcp"),
    (FASTMCP, "run(mcp)  # here", "this use of mcp"),
    (FASTMCP, "other: object = FastMCP('other')  # here", "this type of the server"),
    (FASTMCP, "def f(mcp):  # here\n    pass", "this use of mcp"),
    (FASTMCP, "class Server:  # here\n    pass", "something else that is called Server"),
    (FASTMCP, "from flask import Server  # here", "also imported from elsewhere"),
    (FASTMCP, "from fastmcp import Client  # here", "Client has no native spelling"),
    (FASTMCP, "def f():\n    from fastmcp import Context as C  # here", "not at the top"),
    (FASTMCP, "mcp.run(transport='sse')  # here", "this transport"),
    (FASTMCP, "mcp.run('http', path='/x')  # here", "path has no native spelling"),
    (MCP1, "mcp.run(host='0.0.0.0')  # here", "host has no native spelling"),
    (
        FASTMCP,
        "@mcp.tool\nasync def f(ctx: Context) -> int:\n    await ctx.elicit('a', int)  # here",
        "raised",
    ),
    (
        FASTMCP,
        "@mcp.tool\nasync def f(ctx: Context) -> int:\n    try:\n        f(ctx)  # here\n    except Exception:\n        1",
        "this use of the context",
    ),
    (
        FASTMCP,
        "@mcp.tool\nasync def f(ctx: 'Context') -> int:  # here\n    return 1",
        "without quotes",
    ),
    (
        FASTMCP,
        "@mcp.resource('data://{a}')  # here\ndef f(a: str) -> str:\n    return a",
        "templates",
    ),
    (
        FASTMCP,
        "@mcp.resource('data://a')\ndef f() -> bytes:  # here\n    return b'a'",
        "another type than str",
    ),
    (FASTMCP, "@mcp.prompt\ndef f(a: int) -> str:  # here\n    return 'a'", "read from a text"),
    (FASTMCP, "getLogger('mcp.server')  # here", "is a name of another library"),
]


@pytest.mark.parametrize(("head", "body", "words"), STAYING)
def test_what_would_answer_otherwise_stays_at_the_facade(tmp_path, head, body, words):
    """The module stays, with a comment on the line that decides; a second run says the same."""
    name = "MCPServer" if head is MCP2 else "FastMCP"
    text = f'{head}mcp = {name}("it")\n\n{body}\n'
    made = migrate(tmp_path, text)
    assert "from isthmus import" not in made
    (line,) = [line for line in made.splitlines() if "# isthmus: " in line]
    assert words in line
    assert ("# here" in line) == ("# here" in body)
    assert made == migrate(tmp_path, made)
    assert strip_notes(migrate(tmp_path, text, native=False)) == strip_notes(made)


def strip_notes(text):
    """A text without the comments of the migration."""
    return [line.partition("  # isthmus:")[0] for line in text.splitlines()]
