"""What a client does for a server, over every transport and in every revision."""

import asyncio

import pytest

from isthmus import Accepted, Context, Declined, Server
from isthmus.client import Limits, Rate
from isthmus.errors import UrlRequired
from isthmus.revisions import BY_NAME, Feature
from isthmus.testing import every_revision, every_transport
from isthmus.types import SamplingMessage, TextContent, Tool, ToolResultContent, ToolUseContent

pytestmark = [every_transport()]

WEATHER = Tool(name="weather", input_schema={"type": "object"})


def desk():
    """A server with tools that ask in every way there is."""
    server = Server("desk", version="1")
    server.connected = False

    @server.tool
    async def travel(ctx: Context) -> str:
        """Have the model use tools, two at once, and give it their results."""
        first = await ctx.sample("Paris or Rome?", max_tokens=99, tools=[WEATHER])
        results = [
            ToolResultContent(
                tool_use_id=use.id, content=[TextContent(text=f"sun in {use.input['city']}")]
            )
            for use in first.tool_uses
        ]
        last = await ctx.sample(["Paris or Rome?", first, *results], max_tokens=99, tools=[WEATHER])
        return f"{first.stop_reason}: {last.text}"

    @server.tool
    async def unanswered(ctx: Context) -> str:
        """Send a conversation with a use of a tool that has no result."""
        use = ToolUseContent(id="1", name="weather", input={})
        await ctx.sample(
            [SamplingMessage(role="assistant", content=use), "and now?"],
            max_tokens=9,
            tools=[WEATHER],
        )
        return "sent"

    @server.tool
    async def files() -> str:
        """Needs a page to be visited first."""
        if not server.connected:
            raise UrlRequired(("https://files.example/connect", "Connect your files"))
        return "three files"

    @server.tool
    async def many(ctx: Context) -> str:
        """Ask one thing after the other."""
        heard = []
        for number in range(4):
            answer = await ctx.elicit(f"{number}?")
            heard.append(type(answer).__name__)
        return " ".join(heard)

    return server


@pytest.mark.covers("sampling.balance.refused", "sampling.content.list-or-single")
@every_revision(Feature.SAMPLING_TOOLS)
async def test_a_model_uses_two_tools_at_once_and_reads_their_results(joined):
    """Spec 2025-11-25 client/sampling#parallel-tool-use: an array of uses, answered together."""
    seen = []

    def sample(request):
        seen.append([block_kinds(message) for message in request.messages])
        if len(request.messages) > 1:
            return "Rome"
        return [
            ToolUseContent(id=city, name="weather", input={"city": city})
            for city in ("Paris", "Rome")
        ]

    async with joined(desk(), sample=sample, sample_tools=True) as client:
        assert "toolUse: Rome" == (await client.call_tool("travel")).text

    assert [["text"], ["tool_use", "tool_use"], ["tool_result", "tool_result"]] == seen[-1]


def block_kinds(message):
    parts = message.content if isinstance(message.content, list) else [message.content]
    return [part.__struct_config__.tag for part in parts]


@pytest.mark.covers("sampling.balance.refused")
@every_revision(Feature.SAMPLING_TOOLS)
async def test_a_conversation_out_of_balance_is_never_sent(joined):
    """Spec 2025-11-25 client/sampling#tool-use-and-result-balance: a MUST of servers."""
    seen = []
    async with joined(desk(), sample=seen.append, sample_tools=True) as client:
        result = await client.call_tool("unanswered")

    assert [] == seen
    assert result.is_error


@pytest.mark.covers("elicitation.required.raised", "elicitation.required.visited")
@every_revision(Feature.ELICITATION_URL)
async def test_a_page_that_a_tool_demands_is_visited_and_the_tool_runs_again(joined, revision):
    """Spec 2025-11-25: -32042 and a retry; since 2026-07-28 a question and a retry."""
    server, visited = desk(), []

    async def elicit(question):
        visited.append((question.mode, question.url, question.message))
        server.connected = True
        if question.elicitation_id:
            server.notify_elicitation_complete(question.elicitation_id)
        return Accepted(None)

    options = {} if BY_NAME[revision].has(Feature.URL_REQUIRED_ERROR) else {"strict": False}
    async with joined(server, elicit=elicit, limits=Limits(page_wait=2), **options) as client:
        assert "three files" == (await client.call_tool("files")).text

    assert [("url", "https://files.example/connect", "Connect your files")] == visited


@pytest.mark.covers("elicitation.required.raised")
@every_revision("elicitation/create", "initialize")  # since 2026-07-28 it is an error
async def test_a_client_that_opens_no_pages_is_told_what_it_takes(joined):
    """Spec 2025-11-25 client/elicitation#capabilities: servers MUST NOT ask in other modes."""
    async with joined(desk()) as client:
        result = await client.call_tool("files")

    assert "elicitation" in result.text


@pytest.mark.covers("clientlimits.questions.rate")
@every_revision(Feature.ELICITATION_FORM)
async def test_a_server_that_asks_too_often_is_stopped(joined):
    """Spec 2025-11-25 client/elicitation#security-considerations: clients SHOULD limit rates."""
    asked = []

    async def elicit(question):
        asked.append(question.message)
        await asyncio.sleep(0)
        return Declined()

    limits = Limits(elicitations=Rate(2, seconds=60))
    async with joined(desk(), elicit=elicit, limits=limits) as client:
        try:
            ended = (await client.call_tool("many")).is_error
        except Exception as error:  # noqa: BLE001 - which one depends on how questions travel
            ended = "Too many questions for the user" in str(error)

    assert ended
    assert 2 == len(set(asked))
