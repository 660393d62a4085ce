"""Servers written for fastmcp, on isthmus' server and client."""

from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date

import pytest

from isthmus.client import Client as OwnClient
from isthmus.compat import types
from isthmus.compat.fastmcp import Client, Context, FastMCP
from isthmus.compat.fastmcp.dependencies import CurrentContext, Depends
from isthmus.compat.fastmcp.exceptions import ToolError
from isthmus.compat.fastmcp.prompts import Message
from isthmus.compat.fastmcp.resources import TextResource
from isthmus.compat.fastmcp.server.auth import providers
from isthmus.compat.fastmcp.server.dependencies import get_context
from isthmus.compat.fastmcp.server.middleware import Middleware
from isthmus.compat.fastmcp.tools import Tool, ToolResult
from isthmus.core.answers import Accepted, Declined
from isthmus.errors import UsageError


@pytest.fixture
def mcp():
    """A server without anything."""
    return FastMCP("plain")


async def test_decorators_work_with_and_without_parentheses(mcp):
    """Ours: a function stays what it is, whatever form the decorator has."""

    @mcp.tool
    def one() -> int:
        return 1

    @mcp.tool()
    def two() -> int:
        return 2

    @mcp.tool("three", description="Third.")
    def other() -> int:
        return 3

    assert one() + two() + other() == 6
    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["one", "two", "three"]
        assert (await client.call_tool("three")).data == 3


async def test_a_result_has_values_of_python(mcp):
    """Ours: ``data`` is made by the output schema."""

    @dataclass
    class Day:
        when: date
        count: int

    @mcp.tool
    def day(n: int) -> Day:
        return Day(date(2026, 11, n), n)

    async with Client(mcp) as client:
        result = await client.call_tool("day", {"n": "3"})

    assert (result.data.when, result.data.count) == (date(2026, 11, 3), 3)
    assert result.structured_content == {"when": "2026-11-03", "count": 3}


async def test_a_tool_that_failed_raises(mcp):
    """Ours: the client raises what the model would read."""

    @mcp.tool
    def fail() -> None:
        raise ValueError("no room")

    async with Client(mcp) as client:
        with pytest.raises(ToolError, match="Error calling tool 'fail': no room"):
            await client.call_tool("fail")
        result = await client.call_tool("fail", raise_on_error=False)
    assert result.is_error


async def test_details_are_masked_where_the_server_says_so():
    """Ours: an unexpected exception is told without its text."""
    mcp = FastMCP("masked", mask_error_details=True)

    @mcp.tool
    def fail() -> None:
        raise ValueError("secret")

    async with Client(mcp) as client:
        result = await client.call_tool("fail", raise_on_error=False)
    assert result.content[0].text == "Error calling tool 'fail'"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_tool_asks_logs_and_reports(mcp, era):
    """Ours: the context asks, logs and reports in the revisions of both eras."""

    @mcp.tool
    async def book(ctx: Context) -> str:
        await ctx.info("asking")
        await ctx.report_progress(1, 2)
        answer = await ctx.elicit("How many?", int)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    answers, logs, progress = [Accepted({"value": 4}), Declined()], [], []
    client = OwnClient(
        mcp.server,
        era=era,
        elicit=lambda _: answers.pop(0),
        on_log=lambda log: logs.append(log.data),
    )
    async with client:
        first = await client.call_tool("book", on_progress=lambda p: progress.append(p.progress))
        second = await client.call_tool("book")
    assert (first.text, second.text) == ("accept 4", "decline None")
    assert {"msg": "asking", "extra": None} in logs
    assert 1 in progress


async def test_values_are_kept_for_a_session(mcp):
    """Ours: what a call sets is there in the next one of the same session."""

    @mcp.tool
    async def count(ctx: Context) -> int:
        number = (await ctx.get_state("number") or 0) + 1
        await ctx.set_state("number", number)
        return number

    async with Client(mcp, mode="legacy") as client:
        assert [(await client.call_tool("count")).data for _ in range(3)] == [1, 2, 3]


async def test_dependencies_are_made_and_closed(mcp):
    """Ours: what a generator gives is there for the call, and closed after it."""
    told = []

    @asynccontextmanager
    async def connection():
        told.append("open")
        yield "connection"
        told.append("closed")

    def user(ctx: Context = CurrentContext(), place: str = Depends(connection)):  # noqa: B008 - the form of fastmcp
        return f"user of {ctx.fastmcp.name} by {place}"

    @mcp.tool
    def who(name: str, user: str = Depends(user)) -> str:
        assert get_context().fastmcp is mcp
        return f"{name}: {user}"

    async with Client(mcp) as client:
        assert (
            await client.call_tool("who", {"name": "x"})
        ).data == "x: user of plain by connection"
        tools = await client.list_tools()
    assert told == ["open", "closed"]
    assert list(tools[0].input_schema["properties"]) == ["name"]


async def test_middleware_is_around_lists_and_calls(mcp):
    """Ours: hooks run from the general to the special, and may change what they pass on."""
    told = []

    class Watch(Middleware):
        async def on_message(self, context, call_next):
            told.append(context.method)
            return await call_next(context)

        async def on_call_tool(self, context, call_next):
            told.append(context.message.name)
            result = await call_next(context)
            return ToolResult(
                structured_content={"result": result.structured_content["result"] + 1}
            )

        async def on_list_tools(self, context, call_next):
            return [tool for tool in await call_next(context) if "private" not in tool.tags]

    mcp.add_middleware(Watch())

    @mcp.tool
    def one() -> int:
        return 1

    @mcp.tool(tags={"private"})
    def hidden() -> int:
        return 0

    async with Client(mcp) as client:
        assert [tool.name for tool in await client.list_tools()] == ["one"]
        assert (await client.call_tool("one")).data == 2
    assert told[:3] == ["tools/list", "tools/call", "one"]


async def test_a_mounted_server_is_offered_live(mcp):
    """Ours: what is added to a mounted server later is there, too, and its lifespan is open."""
    told = []

    @asynccontextmanager
    async def lifespan(_):
        told.append("open")
        yield {}
        told.append("closed")

    child = FastMCP("child", lifespan=lifespan)
    mcp.mount(child, "sub")

    @child.tool
    def hi() -> str:
        return "hi"

    @child.resource("data://{name}/x")
    def data(name: str) -> str:
        return name

    async with Client(mcp) as client:
        assert (await client.call_tool("sub_hi")).data == "hi"
        assert (await client.read_resource("data://sub/a/x"))[0].text == "a"
    await mcp.server.close()
    assert told == ["open", "closed"]


async def test_components_are_hidden_by_tag(mcp):
    """Ours: what is disabled is neither listed nor called."""

    @mcp.tool(tags={"beta"})
    def new() -> str:
        return "new"

    mcp.disable(tags={"beta"})
    async with Client(mcp) as client:
        assert await client.list_tools() == []
        with pytest.raises(ToolError, match="Unknown tool"):
            await client.call_tool("new")
        mcp.enable(tags={"beta"})
        assert (await client.call_tool("new")).data == "new"


async def test_prompts_and_resources_of_all_kinds(mcp):
    """Ours: messages with roles, and resources that are objects."""

    @mcp.prompt
    def talk(topic: str, n: int = 1) -> list[Message]:
        return [Message(f"{topic} {n + 1}"), Message("yes", role="assistant")]

    mcp.add_resource(TextResource(uri="note://one", name="one", text="1"))
    async with Client(mcp) as client:
        rendered = await client.get_prompt("talk", {"topic": "t", "n": 4})
        assert [(one.role, one.content.text) for one in rendered.messages] == [
            ("user", "t 5"),
            ("assistant", "yes"),
        ]
        assert (await client.read_resource("note://one"))[0].text == "1"


async def test_a_proxy_offers_what_another_server_offers(mcp):
    """Ours: a proxy is isthmus' own, and may be mounted."""

    @mcp.tool
    def hi() -> str:
        return "hi"

    outer = FastMCP("outer")
    outer.mount(FastMCP.as_proxy(mcp), "behind")
    async with Client(outer) as client:
        assert (await client.call_tool("behind_hi")).data == "hi"


async def test_a_tool_is_a_class(mcp):
    """Ours: a subclass of Tool runs by itself."""

    class Echo(Tool):
        async def run(self, arguments):
            return ToolResult(content=str(arguments["x"]))

    mcp.add_tool(Echo(name="echo", parameters={"type": "object", "properties": {"x": {}}}))
    async with Client(mcp) as client:
        assert (await client.call_tool("echo", {"x": 5})).content[0].text == "5"


def test_what_cannot_be_had_says_what_to_use():
    """Ours: an option without a counterpart names isthmus' own."""
    with pytest.raises(UsageError, match=r"Server\.include"):
        FastMCP("x", transforms=[object()])
    with pytest.raises(UsageError, match="UpstreamLogin"):
        providers.GitHubProvider(client_id="x")
    with pytest.raises(TypeError, match="unexpected keyword"):
        FastMCP("x", nothing=1)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_tool_that_returns_questions_is_called_again_with_the_answers(mcp, revision):
    """Spec 2026-07-28 server/tools: ``input_required`` is a result of its own; before, isthmus asks."""

    @mcp.tool
    async def order(item: str, ctx: Context):
        if not ctx.input_responses:
            schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
            form = {"mode": "form", "message": "How many?", "requestedSchema": schema}
            asked = {"n": {"method": "elicitation/create", "params": form}}
            return types.InputRequiredResult(input_requests=asked, request_state="first")
        answer = ctx.input_responses["n"]
        return f"{ctx.request_state}: {answer.content['n']} {item}, {type(answer).__name__}"

    def answer(question):
        return Accepted({"n": 3})

    async with OwnClient(mcp.server, revision=revision, elicit=answer) as client:
        result = await client.call_tool("order", {"item": "tea"})
    assert result.text == "first: 3 tea, ElicitResult"


async def test_a_transformed_tool_takes_its_own_arguments_alone(mcp):
    """Ours: names that it hides or renames are unknown to callers, and what is missing has its new name."""
    from isthmus.compat.fastmcp.tools.tool_transform import ArgTransform

    whole = Tool.from_function(lambda a, b=2: a * b, name="multiply")
    changes = {"a": ArgTransform(name="value"), "b": ArgTransform(hide=True, default=3)}
    mcp.add_tool(Tool.from_tool(whole, name="triple", transform_args=changes))

    async with Client(mcp) as client:
        assert (await client.call_tool("triple", {"value": 4})).content[0].text == "12"
        with pytest.raises(ToolError, match=r"Got unexpected keyword argument\(s\): a"):
            await client.call_tool("triple", {"a": 4})
        with pytest.raises(ToolError, match=r"Missing required argument\(s\): value"):
            await client.call_tool("triple", {})


async def test_a_form_has_the_name_of_its_class(mcp):
    """Ours: the schema of a question is that of the class that the program gave."""

    @dataclass
    class Info:
        name: str

    @mcp.tool
    async def ask(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", Info)
        return answer.data.name

    asked = []

    def answer(question):
        asked.append(question)
        return Accepted({"name": "Ada"})

    async with OwnClient(mcp.server, revision="2025-11-25", elicit=answer) as client:
        assert (await client.call_tool("ask")).text == "Ada"
    assert asked[0].requested_schema["title"] == "Info"
