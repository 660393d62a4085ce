"""What a transport carries: much of it, odd characters, many calls at once, several clients."""

import asyncio
import json

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import InvalidParams, Refused, ResourceNotFound
from isthmus.revisions import BY_NAME, Feature
from isthmus.server.guard.limits import Limits
from isthmus.testing import every_revision, every_transport
from isthmus.wire import CallToolParams, ListToolsParams

pytestmark = [every_revision(), every_transport()]

MUCH = 5_000_000
ODD = 'line\u2028separator\u2029paragraph\rreturn\r\nboth\nnew\ttab 𝄞 e\u0301 \\ " \ufffd'
CONTROLS = "\x00\x1f\x7f\x85\ufeff\ufffe\u202e"


def parrot():
    """A server that says things again."""
    server = Server("parrot", version="1", page_size=2)
    server.held = {}

    @server.tool
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @server.tool
    async def codes(text: str) -> str:
        """Say which characters they are."""
        return " ".join(str(ord(character)) for character in text)

    @server.tool
    async def turn(number: int) -> int:
        """Answer in the opposite order: the last of fifty calls lets the one before it go."""
        held = server.held.setdefault(number, asyncio.Event())
        if number == 49:
            held.set()
        await held.wait()
        server.held.setdefault(number - 1, asyncio.Event()).set()
        return number

    @server.tool
    async def count(ctx: Context) -> str:
        """Count, not always forwards, and once too late."""
        for progress in (1, 2, 2, 1.5, 3, float("nan"), 4):
            await ctx.progress(progress, total=4)
        asyncio.get_running_loop().call_soon(server.late.append, asyncio.ensure_future(later(ctx)))
        return "counted"

    async def later(ctx):
        await ctx.progress(5)

    server.late = []

    @server.tool
    async def mutter(ctx: Context) -> str:
        """Log at every level."""
        for level in ("debug", "info", "notice", "warning", "error"):
            getattr(ctx.log, level)(level)
        return "muttered"

    return server


@pytest.mark.covers("interaction.messages.five-megabytes")
async def test_five_megabytes_travel_both_ways(joined):
    """Ours: large arguments pass, and so do large results."""
    text = "0123456789" * (MUCH // 10)
    async with joined(parrot()) as client:
        assert text == (await client.call_tool("echo", {"text": text})).text


@pytest.mark.covers("interaction.messages.characters")
async def test_every_character_arrives_as_it_was_sent(joined):
    """Messages MUST be UTF-8, and no separator of lines may cut one (spec: transports)."""
    async with joined(parrot()) as client:
        said = await client.call_tool("echo", {"text": ODD})
        codes = await client.call_tool("codes", {"text": ODD + CONTROLS})

    assert ODD == said.text
    assert " ".join(str(ord(c)) for c in ODD + CONTROLS) == codes.text


@pytest.mark.covers("interaction.calls.out-of-order")
async def test_fifty_calls_answered_in_the_opposite_order_each_get_their_own(joined):
    """Answers are matched by id, not by order (JSON-RPC 2.0)."""
    async with joined(parrot()) as client:
        results = await asyncio.gather(
            *(client.call_tool("turn", {"number": n}) for n in range(50))
        )

    assert [str(n) for n in range(50)] == [result.text for result in results]


@pytest.mark.covers("interaction.progress.increases", "interaction.progress.before-answer")
async def test_progress_increases_and_ends_with_the_answer(joined):
    """It MUST increase with each notification, and MUST stop after completion (spec: progress)."""
    wire, seen = [], []
    server = parrot()
    async with joined(server, wire=wire) as client:
        await client.call_tool("count", on_progress=lambda told: seen.append(told.progress))
        await client.call_tool("echo", {"text": "after"})
        await asyncio.gather(*server.late)

    told = [json.loads(data) for side, data in wire if side == "server"]
    kinds = ["progress" if m.get("method") == "notifications/progress" else "answer" for m in told]
    assert sorted(set(seen)) == seen
    assert [1, 2, 3, 4] == seen
    assert kinds[-6:] == ["progress"] * 4 + ["answer"] * 2


@pytest.mark.covers("interaction.progress.token-type")
@pytest.mark.parametrize("token", ["7", 7, "a/b \u2028"])
async def test_a_progress_token_keeps_its_type_and_value(joined, token):
    """The token is what the request gave, a string or an integer (spec: progress)."""
    wire = []
    async with joined(parrot(), wire=wire) as client:
        await request_progress(client, token)

    told = [json.loads(data) for side, data in wire if side == "server"]
    tokens = [
        m["params"]["progressToken"] for m in told if m.get("method", "").endswith("progress")
    ]
    assert [token] * 4 == tokens


async def request_progress(client, token):
    """Ask for progress under a token of one's own."""
    connection = client._connection
    meta = {**(connection.meta or {}), "progressToken": token}
    params = CallToolParams(name="count", meta=meta)
    await connection.ask("tools/call", params, name="count")


@pytest.mark.covers("interaction.logging.level")
@pytest.mark.parametrize(("level", "heard"), [("debug", 5), ("warning", 2), ("critical", 0)])
async def test_logs_below_the_level_are_not_sent(joined, level, heard):
    """The session's level in the legacy era, the request's in the modern one (spec: logging)."""
    logged, wire = [], []
    async with joined(parrot(), wire=wire, on_log=logged.append, log_level=level) as client:
        await client.call_tool("mutter")

    sent = [data for side, data in wire if side == "server" and b"notifications/message" in data]
    assert heard == len(sent)
    assert ["debug", "info", "notice", "warning", "error"][5 - heard :] == [m.data for m in logged]


@pytest.mark.covers("interaction.connections.isolated")
async def test_two_connections_do_not_meet(joined):
    """Ours: the same ids, levels and subscriptions of two clients are two conversations'."""
    server, heard = parrot(), {"loud": [], "quiet": []}
    async with (
        joined(server, name="loud", on_log=heard["loud"].append, log_level="debug") as loud,
        joined(server, name="quiet", on_log=heard["quiet"].append, log_level="error") as quiet,
    ):
        answers = await asyncio.gather(
            *(client.call_tool("echo", {"text": name}) for client, name in
              [(loud, "loud"), (quiet, "quiet")] * 5)
        )  # fmt: skip
        await loud.call_tool("mutter")
        await quiet.call_tool("mutter")
        await loud.close()
        assert "still here" == (await quiet.call_tool("echo", {"text": "still here"})).text

    assert ["loud", "quiet"] * 5 == [answer.text for answer in answers]
    assert (5, 1) == (len(heard["loud"]), len(heard["quiet"]))


@pytest.mark.covers("interaction.pagination.all-once", "interaction.pagination.bad-cursor")
async def test_pages_have_everything_once_and_no_cursor_is_made_up(joined):
    """Cursors are the server's; an invalid one is -32602 (spec: pagination)."""
    wire = []
    async with joined(parrot(), wire=wire) as client:
        names = [tool.name for tool in await client.list_tools()]
        with pytest.raises(InvalidParams) as refusal:
            await page(client, "made up")

    asked = [data for side, data in wire if side == "client" and b'"tools/list"' in data]
    assert sorted(names) == names
    assert 5 == len(names)
    assert 3 + 1 == len(asked)
    assert -32602 == refusal.value.code


async def page(client: Client, cursor: str):
    """One page, by a cursor of one's own."""
    connection = client._connection
    return await connection.ask("tools/list", ListToolsParams(cursor=cursor, meta=connection.meta))


@pytest.mark.covers("interaction.errors.unknown-names")
async def test_what_is_not_there_is_refused_by_its_code(joined, revision):
    """-32602 for tools and prompts; -32002 for resources, -32602 since 2026-07-28 (spec)."""
    server = parrot()
    server.prompt(name="hello")(lambda: "Hello")
    server.resource("note://one", name="one")(lambda: "one")
    codes = []
    async with joined(server) as client:
        for call in (
            client.call_tool("nothing"),
            client.get_prompt("nothing"),
            client.read_resource("note://nothing"),
        ):
            with pytest.raises((InvalidParams, ResourceNotFound)) as refusal:
                await call
            codes.append(refusal.value.code)

    resource = -32602 if BY_NAME[revision].has(Feature.RESULT_TYPE) else -32002
    assert [-32602, -32602, resource] == codes


@pytest.mark.covers("interaction.in-flight.refused")
async def test_more_calls_than_may_be_in_flight_are_refused_one_by_one(joined, transport, revision):
    """Ours: over every transport that is one conversation; the calls before go on."""
    if transport == "http" and BY_NAME[revision].has(Feature.RESULT_TYPE):
        pytest.skip("each request is a conversation of its own")
    server = Server("narrow", version="1", limits=Limits(in_flight=2))
    gate, begun = asyncio.Event(), asyncio.Semaphore(0)

    @server.tool
    async def wait() -> str:
        """Wait for the gate."""
        begun.release()
        await gate.wait()
        return "waited"

    async with joined(server) as client:
        calls = [asyncio.create_task(client.call_tool("wait")) for _ in range(2)]
        for _ in calls:
            await begun.acquire()
        with pytest.raises(Refused, match="2 are in flight") as refusal:
            await client.call_tool("wait")
        gate.set()
        results = await asyncio.gather(*calls)

    assert -32603 == refusal.value.code
    assert ["waited"] * 2 == [result.text for result in results]
