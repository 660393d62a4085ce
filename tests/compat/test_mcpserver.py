"""Servers of ``mcp`` 2 and 1.x on the façades: lists, answers, errors, questions, in every revision."""

import pytest

from isthmus import Client
from isthmus.core.answers import Accepted
from isthmus.errors import Refused
from isthmus.revisions import REVISIONS

pytestmark = pytest.mark.usefixtures("facades")

NAMES = [revision.name for revision in REVISIONS]


def make_server():
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from pydantic import BaseModel

    server = MCPServer("sums", version="1.0", instructions="Adds.")

    class Size(BaseModel):
        size: int

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    @server.tool(title="Ask")
    async def ask(question: str, ctx: Context) -> str:
        """Ask the user."""
        answer = await ctx.elicit(question, Size)
        return f"{answer.action} {answer.data.size}" if answer.action == "accept" else answer.action

    @server.tool()
    def fail(how: str) -> str:
        if how == "told":
            raise ToolError("no such thing")
        raise ZeroDivisionError("secret")

    @server.resource("notes://{name}")
    def note(name: str) -> dict:
        return {"name": name}

    @server.prompt()
    def greet(name: str, times: int = 1) -> str:
        """Greet somebody."""
        return f"Hello, {name}! " * times

    return server


@pytest.mark.parametrize("revision", NAMES)
async def test_a_server_of_mcp_2_is_served_in_every_revision(revision):
    """Façade: lists and answers are those of its own library, whatever the revision."""
    server = make_server().make_isthmus_server()
    async with Client(server, revision=revision) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert [*tools] == ["add", "ask", "fail"]
        assert tools["add"].input_schema["title"] == "addArguments"
        assert (await client.call_tool("add", {"a": "1"})).text == "3"
        read = await client.read_resource("notes://x")
        assert read.contents[0].text == '{\n  "name": "x"\n}'
        prompt = await client.get_prompt("greet", {"name": "Ada", "times": "2"})
        assert prompt.messages[0].content.text == "Hello, Ada! Hello, Ada! "


async def test_tools_tell_what_their_author_meant_to_tell():
    """Façade of mcp 2: a ToolError is told, any other exception is not."""
    async with Client(make_server().make_isthmus_server()) as client:
        told = await client.call_tool("fail", {"how": "told"})
        broke = await client.call_tool("fail", {"how": "else"})
        unknown = await client.call_tool("nothing", {})

        assert told.is_error

        assert told.text == "Error executing tool fail: no such thing"
        assert broke.is_error
        assert broke.text == "Error executing tool fail"
        assert unknown.is_error
        assert unknown.text == "Unknown tool: nothing"
        with pytest.raises(Refused, match="Unknown resource"):
            await client.read_resource("other://x")


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_tool_asks_the_user_in_both_eras(revision):
    """Façade: ctx.elicit is a question in the result since 2026-07-28, and a request before."""
    server = make_server().make_isthmus_server()
    async with Client(server, revision=revision, elicit=lambda _: Accepted({"size": 3})) as client:
        assert (await client.call_tool("ask", {"question": "How many?"})).text == "accept 3"


async def test_a_server_of_mcp_1_tells_what_went_wrong():
    """Façade of 1.x: FastMCP's tools tell the text of every exception."""
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("old")

    @server.tool()
    def fail() -> str:
        raise ZeroDivisionError("by nothing")

    async with Client(server.make_isthmus_server()) as client:
        assert (await client.call_tool("fail", {})).text == "Error executing tool fail: by nothing"


async def test_middleware_sees_requests_and_refuses_them():
    """Façade of mcp 2: layers get the method and the params as they came, and raise JSON-RPC errors."""
    from mcp.server.mcpserver import MCPServer
    from mcp.shared.exceptions import MCPError
    from mcp.types import INVALID_PARAMS

    server, seen = MCPServer("layers"), []

    @server.tool()
    def add(a: int) -> int:
        return a

    async def layer(ctx, call_next):
        seen.append((ctx.method, dict(ctx.params or {}).get("name")))
        if ctx.method == "tools/call" and ctx.params["name"] == "no":
            raise MCPError(code=INVALID_PARAMS, message="Unknown tool: no")
        return await call_next(ctx)

    server.middleware.append(layer)
    async with Client(server.make_isthmus_server()) as client:
        assert (await client.call_tool("add", {"a": 1})).text == "1"
        with pytest.raises(Refused, match="Unknown tool: no"):
            await client.call_tool("no", {})
    assert ("tools/call", "add") in seen


async def test_a_low_level_server_with_decorators_is_served():
    """Façade of 1.x: handlers by decorators, with camelCase types, and arguments checked by their schema."""
    from mcp.server import Server
    from mcp.types import TextContent, Tool

    server = Server("low")

    @server.list_tools()
    async def list_tools():
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        return [Tool(name="twice", description="Twice.", inputSchema=schema)]

    @server.call_tool()
    async def call_tool(name, arguments):
        assert server.request_context.session is not None
        return [TextContent(type="text", text=str(arguments["n"] * 2))]

    async with Client(server.make_isthmus_server()) as client:
        assert (await client.call_tool("twice", {"n": 2})).text == "4"
        wrong = await client.call_tool("twice", {"n": "x"})
        assert wrong.is_error
        assert wrong.text.startswith("Input validation error: ")


def test_what_the_facades_lack_is_named_with_ours():
    """Façade: an import that cannot be had says what to use instead, and where that is written."""
    with pytest.raises(ImportError, match=r"isthmus\.Client.*docs/guide/compat\.md"):
        import mcp.client.websocket  # noqa: F401 - it fails
    with pytest.raises(ImportError, match=r"mcp\.types\.Nothing|Nothing"):
        from mcp.types import Nothing  # noqa: F401 - it fails


@pytest.mark.parametrize("revision", ["2025-06-18", "2026-07-28"])
async def test_a_resolver_asks_before_the_tool_runs(revision):
    """Façade of mcp 2: Annotated[T, Resolve(fn)] is no argument, and its function may ask the user."""
    from typing import Annotated

    from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
    from pydantic import BaseModel

    server = MCPServer("resolving")

    class Sure(BaseModel):
        sure: bool

    async def confirm(path: str, ctx: Context) -> Elicit[Sure]:
        assert ctx.request_id
        return Elicit(f"Delete {path}?", Sure)

    @server.tool()
    async def delete(path: str, answer: Annotated[Sure, Resolve(confirm)]) -> str:
        return f"{path} {answer.sure}"

    isthmus = server.make_isthmus_server()
    async with Client(
        isthmus, revision=revision, elicit=lambda _: Accepted({"sure": True})
    ) as client:
        (tool,) = await client.list_tools()
        assert [*tool.input_schema["properties"]] == ["path"]
        assert (await client.call_tool("delete", {"path": "a"})).text == "a True"


@pytest.mark.parametrize("gives", ["the result", "content alone"])
async def test_the_call_tool_of_a_subclass_serves_calls(gives):
    """Façade: a program that overrides MCPServer.call_tool sees every call, and its errors."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    class Polite(MCPServer):
        async def call_tool(self, name, arguments, context=None):
            try:
                result = await super().call_tool(name, arguments, context)
            except ToolError as error:
                raise ToolError(f"sorry: {error}") from None
            return result if gives == "the result" else result.content

    server = Polite("polite")

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        return a + b

    async with Client(server.make_isthmus_server()) as client:
        added = await client.call_tool("add", {"a": 1})
        assert added.text == "3"
        assert added.structured == ({"result": 3} if gives == "the result" else None)
        unknown = await client.call_tool("nothing")
        assert unknown.is_error
        assert unknown.text == "sorry: Unknown tool: nothing"


async def test_programs_reach_for_a_tool_and_replace_the_model_of_its_arguments():
    """Façade: _tool_manager and fn_metadata.arg_model, which programs use to word their own errors."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("private")

    @server.tool(structured_output=False)
    def add(a: int, b: int = 2) -> str:
        return str(a + b)

    class Replaced:
        @classmethod
        def model_validate(cls, given):
            return cls()

        def model_dump_one_level(self):
            return {"a": 40, "b": 2}

    tool = server._tool_manager.get_tool("add")
    assert server._tool_manager.get_tool("nothing") is None
    assert [tool] == server._tool_manager.list_tools()
    assert {"a", "b"} == set(tool.fn_metadata.arg_model.model_fields)
    tool.fn_metadata.arg_model = Replaced
    tool.parameters.pop("title")
    async with Client(server._lowlevel_server.make_isthmus_server()) as client:
        (listed,) = await client.list_tools()
        assert "title" not in listed.input_schema
        assert (await client.call_tool("add", {"a": 1})).text == "42"
    with pytest.raises(AttributeError, match=r"no 'request_handlers' in isthmus"):
        _ = server._lowlevel_server.request_handlers


@pytest.mark.parametrize("level", ["low", "high"])
async def test_cache_hints_are_those_of_the_program(level):
    """Façade of mcp 2: CacheHint for lists, discovery and what is read, since 2026-07-28."""
    from mcp.server import CacheHint, Server
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ListResourcesResult, ReadResourceResult, TextResourceContents

    hints = {
        "resources/list": CacheHint(ttl_ms=5000, scope="public"),
        "resources/read": CacheHint(ttl_ms=70),
        "server/discover": CacheHint(ttl_ms=9),
    }

    async def list_resources(_ctx, _params):
        return ListResourcesResult(resources=[])

    async def read(_ctx, params):
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, text="tea")])

    if level == "high":
        server = MCPServer("kept", cache_hints=hints)
        server.resource("notes://x")(lambda: "tea")
    else:
        server = Server(
            "kept",
            cache_hints=hints,
            on_list_resources=list_resources,
            on_read_resource=read,
        )
    async with Client(server.make_isthmus_server(), revision="2026-07-28", cache=False) as client:
        listed = await client.request("resources/list", {})
        assert (listed["ttlMs"], listed["cacheScope"]) == (5000, "public")
        taken = await client.request("resources/read", {"uri": "notes://x"})
        assert (taken["ttlMs"], taken["cacheScope"]) == (70, "private")
        found = await client.request("server/discover", {})
        assert (found["ttlMs"], found["cacheScope"]) == (9, "private")


def test_cache_hints_for_other_methods_are_refused():
    """As in mcp 2: a ValueError when the server is made."""
    from mcp.server import CacheHint
    from mcp.server.mcpserver import MCPServer

    with pytest.raises(ValueError, match="cache_hints keys must be cacheable methods"):
        MCPServer("kept", cache_hints={"tools/call": CacheHint()})


async def test_a_program_changes_the_options_of_its_first_answer():
    """Façade of 1.x: InitializationOptions are a model, whose copy may say something else."""
    from mcp.server import Server

    server = Server("low")
    options = server.create_initialization_options()
    assert "instructions" in type(options).model_fields
    changed = options.model_copy(update={"instructions": "Ask."})
    async with Client(server.make_isthmus_server(changed)) as client:
        assert client.instructions == "Ask."


@pytest.mark.parametrize(
    ("library", "data"), [("mcp 2", "resources/templates/list"), ("1.x", None)]
)
async def test_a_method_without_a_handler_is_refused_as_by_the_library(library, data):
    """Façade: mcp 2 says in the data which method that is, 1.x does not."""
    from mcp.server import Server
    from mcp.types import ListResourcesResult

    async def list_resources(_ctx, _params):
        return ListResourcesResult(resources=[])

    async def list_none():
        return []

    if library == "mcp 2":
        server = Server("low", on_list_resources=list_resources)
    else:
        server = Server("low")
        server.list_resources()(list_none)
    async with Client(server.make_isthmus_server(), revision="2025-11-25") as client:
        with pytest.raises(Refused, match="Method not found") as caught:
            await client.request("resources/templates/list", {})
    assert caught.value.code == -32601
    assert caught.value.data == data


async def test_a_program_of_mcp_1_that_calls_its_own_tool_gets_content_and_structure():
    """Façade of mcp 1.x: ``call_tool`` gives what its own tests take apart, and a client the same as before."""
    from typing import Annotated

    from mcp.server.fastmcp import FastMCP
    from mcp.server.fastmcp.exceptions import ToolError
    from pydantic import BeforeValidator

    server = FastMCP("older")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool()
    def tell(text: Annotated[str, BeforeValidator(str.upper)]):
        return text

    content, structured = await server.call_tool("add", {"a": 1, "b": 2})
    assert (content[0].text, structured) == ("3", {"result": 3})
    (block,) = await server.call_tool("tell", {"text": "x"})
    assert block.text == "X"
    with pytest.raises(ToolError, match="Unknown tool: no"):
        await server.call_tool("no", {})
    async with Client(server.make_isthmus_server(), revision="2025-11-25") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"result": 3}
        refused = await client.call_tool("tell", {"text": {}})
        assert refused.text.startswith("Error executing tool tell: descriptor 'upper'")
