"""Faults of servers behind a gateway: the caller has one typed error in bounded time, nobody else is harmed."""

import asyncio
import json
import os
import signal
import time
from contextlib import suppress

import pytest

from isthmus import Accepted, Client
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.host.model.entries import Timeouts
from isthmus.host.model.gateway_options import GatewayLimits, GatewayOptions
from support.clock import stretch_limit
from support.gateway.line_server import find_processes, make_command
from support.gateway.small_gateway import make_allowing_host, make_shop
from support.host.audit_rows import wait_until
from support.http.local_web import make_json_response, make_response, serve_responses

REVISIONS = pytest.mark.parametrize("revision", ["2026-07-28", "2025-06-18"])

CALL_TIMEOUT_S = 1.0
BOUND_S = 6.0  # of a call that fails, and of those beside it: a loaded machine has its moments


@pytest.fixture
async def gateway(tmp_path):
    """A gateway in front of a server that misbehaves, and of one that does not."""
    host = make_allowing_host()
    times = Timeouts(call=CALL_TIMEOUT_S, total=2 * CALL_TIMEOUT_S, connect=10.0)
    host.add("lines", make_command(tmp_path / "starts"), timeouts=times)
    host.add("shop", make_shop("2026-07-28"))
    options = GatewayOptions(limits=GatewayLimits(calls=None))
    async with Gateway(host, options=options) as found:
        yield found
        for pid in find_processes(tmp_path / "starts"):
            with suppress(ProcessLookupError):  # it ends in time by itself
                os.kill(pid, signal.SIGCONT)


async def call_beside(gateway, stop):
    """Call the other server until told to stop; the slowest call in seconds."""
    slowest = 0.0
    async with Client(gateway.server) as user:
        while not stop.is_set():
            began = time.monotonic()
            assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
            slowest = max(slowest, time.monotonic() - began)
    return slowest


async def fail(user, tool):
    """Call a tool that fails; what the caller is told."""
    try:
        result = await user.call_tool(f"lines__{tool}")
    except Refused as error:
        return error.message
    assert result.is_error
    return result.text


@REVISIONS
@pytest.mark.parametrize("tool", ["die", "stop", "junk", "deaf", "wait"])
async def test_a_server_that_fails_in_a_call_costs_that_call_only(gateway, revision, tool):
    """Ours: killed, stopped, flooding, deaf and silent: one error, and the others are served."""
    stop = asyncio.Event()
    async with Client(gateway.server, revision=revision) as user:
        assert "1" == (await user.call_tool("lines__count")).text
        beside = asyncio.ensure_future(call_beside(gateway, stop))
        began = time.monotonic()
        told = await fail(user, tool)
        took = time.monotonic() - began
        stop.set()
        slowest = await beside
        assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text

    assert "lines" in told
    assert took < stretch_limit(BOUND_S)
    assert slowest < stretch_limit(BOUND_S / 2)


async def test_a_server_that_was_killed_is_there_again_for_the_next_call(gateway):
    """Ours: what was under way is told of, and what comes later is served."""
    async with Client(gateway.server) as user:
        assert "nobody can tell" in await fail(user, "die")
        assert gateway.host.servers["lines"].status().error
        assert "1" == (await user.call_tool("lines__count")).text


async def test_the_state_of_a_server_that_was_stopped_is_told(gateway):
    """Ours: after a call without an answer it is asked whether it is there, and counts as degraded."""
    async with Client(gateway.server) as user:
        await fail(user, "stop")
        await wait_until(lambda: gateway.host.servers["lines"].state == "degraded")


async def test_calls_of_a_deaf_server_do_not_wait_for_its_pipe(gateway):
    """Ours: arguments that do not fit into the pipe of a server that reads nothing end in time, too."""
    async with Client(gateway.server) as user:
        await fail(user, "deaf")
        began = time.monotonic()
        for _ in range(2):
            with suppress(Refused):
                result = await user.call_tool("lines__count", {"much": "x" * 300_000})
                assert result.is_error
        assert time.monotonic() - began < stretch_limit(2 * BOUND_S)


class SlowUser:
    """A user who answers when the test says so.

    Attributes:
        asked: set by each question.
        go: the answers go on once it is set.
    """

    def __init__(self):
        self.asked, self.go = asyncio.Event(), asyncio.Event()

    async def elicit(self, question):
        """Answer late."""
        self.asked.set()
        await self.go.wait()
        return Accepted({"value": question.message})


@REVISIONS
async def test_a_question_that_is_open_is_answered(gateway, revision):
    """Ours: the server of these tests asks as any other one does."""
    slow = SlowUser()
    slow.go.set()
    async with Client(gateway.server, revision=revision, elicit=slow.elicit) as user:
        assert "answered" == (await user.call_tool("lines__ask")).text


@REVISIONS
@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_server_that_fails_while_its_question_is_open_costs_that_call_only(
    gateway, tmp_path, revision, signal_number
):
    """Ours: killed or stopped while a client is asked, and while its call is parked."""
    slow, stop = SlowUser(), asyncio.Event()
    async with Client(gateway.server, revision=revision, elicit=slow.elicit) as user:
        call = asyncio.ensure_future(fail(user, "ask"))
        await asyncio.wait_for(slow.asked.wait(), BOUND_S)
        beside = asyncio.ensure_future(call_beside(gateway, stop))
        for pid in find_processes(tmp_path / "starts"):
            os.kill(pid, signal_number)
        slow.go.set()
        told = await asyncio.wait_for(call, BOUND_S)
        stop.set()
        assert await beside < stretch_limit(BOUND_S / 2)
        await wait_until(lambda: len(gateway._parts.parked) == 0)
        if signal_number == signal.SIGKILL:
            assert "1" == (await user.call_tool("lines__count")).text

    assert "lines" in told


async def test_a_parked_call_ends_with_its_server(gateway, tmp_path):
    """Ours: its client is told when it comes again, and it takes no place meanwhile."""
    slow = SlowUser()
    async with Client(gateway.server, elicit=slow.elicit) as user:
        call = asyncio.ensure_future(fail(user, "ask"))
        await asyncio.wait_for(slow.asked.wait(), BOUND_S)
        assert 1 == len(gateway._parts.parked)
        for pid in find_processes(tmp_path / "starts"):
            os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: not gateway.host.parts.calls.clients.all)
        slow.go.set()
        assert "lines" in await asyncio.wait_for(call, BOUND_S)


INVALID = {
    "content is no list": {"content": "words"},
    "a block is none": {"content": [{"type": "text"}]},
    "a result is none": [],
}


@REVISIONS
@pytest.mark.parametrize("result", INVALID.values(), ids=INVALID)
async def test_an_invalid_result_names_the_server_that_gave_it(revision, result):
    """Ours (A8): whose fault it is stands in the error, and no other server pays for it."""
    host = make_allowing_host()
    async with serve_responses(make_invalid_server(result)) as web:
        host.add("odd", f"{web.url}/mcp")
        host.add("shop", make_shop("2026-07-28"))
        async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
            told = ""
            try:
                made = await user.call_tool("odd__buy")
            except Refused as error:
                told = error.message
            else:
                told = made.text if made.is_error else ""
            assert "3" == (await user.call_tool("shop__add", {"a": 1, "b": 2})).text
    assert "odd" in told


@REVISIONS
@pytest.mark.parametrize("kind", ["odd", "input_required", "task"])
async def test_a_result_type_of_a_server_before_2026_07_28_means_nothing(revision, kind):
    """Attack: what a server of an older revision writes there would be a question, or a task, of the gateway."""
    host = make_allowing_host()
    words = {"type": "text", "text": "bought"}
    result = {"content": [words], "resultType": kind, "taskId": "t", "requestState": "s"}
    async with serve_responses(make_invalid_server(result)) as web:
        host.add("odd", f"{web.url}/mcp")
        async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
            assert "bought" == (await user.call_tool("odd__buy")).text


ABOUT_CONNECTIONS = {
    "revision": {"code": -32022, "data": {"supported": ["2024-11-05"], "requested": "2026-07-28"}},
    "header": {"code": -32020},
    "parse": {"code": -32700},
    "request": {"code": -32600},
    "method": {"code": -32601},
    "login": {"code": -31401, "data": {"resource_metadata": "https://evil.example/x"}},
    "page": {
        "code": -32042,
        "data": {
            "elicitations": [
                {"mode": "url", "url": "javascript:1", "elicitationId": "1", "message": "Go"}
            ]
        },
    },
}


@REVISIONS
@pytest.mark.parametrize("error", ABOUT_CONNECTIONS.values(), ids=ABOUT_CONNECTIONS)
async def test_what_a_server_says_of_its_connection_is_not_said_of_the_clients(revision, error):
    """Attack: its client would take another revision, log in elsewhere, or open pages that nobody looked at."""
    host = make_allowing_host()
    failing = {"message": "of the connection", **error}
    async with serve_responses(make_invalid_server({}, failing)) as web:
        host.add("odd", f"{web.url}/mcp")
        async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
            with pytest.raises(Refused) as refused:
                await user.call_tool("odd__buy")

    assert -32603 == refused.value.code
    assert "server 'odd' is at fault: of the connection" in refused.value.message
    assert not refused.value.data


@REVISIONS
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(
            make_response(status=307, location="http://10.0.0.7:1/inside"),
            "The server 'odd' is at fault: it answered with HTTP 307",
            id="redirect",
        ),
        pytest.param(
            make_response(status=401, www_authenticate="Bearer"),
            "The server 'odd' wants a login: whoever runs this gateway can log in",
            id="login",
        ),
    ],
)
async def test_the_address_of_a_server_is_not_told(revision, answer, told):
    """Attack: clients of a gateway know its servers by their names, and where these are is not theirs to know."""
    host = make_allowing_host()
    async with serve_responses(make_invalid_server({}, whole=answer)) as web:
        host.add("odd", f"{web.url}/mcp")
        async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
            with pytest.raises(Refused) as refused:
                await user.call_tool("odd__buy")

    assert told == refused.value.message


@REVISIONS
async def test_the_address_of_a_server_that_is_not_there_is_not_told(revision):
    """Attack: the same, with a key in the URL; the server is named, also where nothing is known of it."""
    host = make_allowing_host()
    host.add("odd", "http://127.0.0.1:9/inside?key=canary")
    async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
        told = []
        for ask in (
            user.call_tool("odd__buy"),
            user.read_resource("odd+shop://x"),
            user.get_prompt("odd__praise"),
        ):
            with pytest.raises(Refused) as refused:
                await ask
            told.append(refused.value)

    assert {-31503} == {one.code for one in told}
    assert {"odd"} == {one.data["server"] for one in told}
    for one in told:
        assert "odd cannot be reached" in one.message
        assert "127.0.0.1" not in one.message
        assert "canary" not in one.message


@REVISIONS
async def test_the_address_of_a_server_that_breaks_down_is_not_told(revision):
    """Attack: the same, where the call may have been done."""
    host, broken = make_allowing_host(), make_response(b"POST http://127.0.0.1:1/x", status=500)
    async with serve_responses(make_invalid_server({}, whole=broken)) as web:
        host.add("odd", f"{web.url}/mcp")
        async with Gateway(host) as gateway, Client(gateway.server, revision=revision) as user:
            made = await user.call_tool("odd__buy")

    assert made.is_error
    assert "odd was asked, and gave no answer" in made.text
    assert "127.0.0.1" not in made.text


def make_invalid_server(result, error=None, whole=None):
    """A server of 2025-11-25 over HTTP whose tool gives a result that is none, an error, or what is no message."""
    tool = {"name": "buy", "inputSchema": {"type": "object"}}
    results = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {}},
        },
        "tools/list": {"tools": [tool]},
        "tools/call": result,
    }

    def handle(asked):
        if asked.method != "POST":
            return make_response(status=405)
        message = json.loads(asked.body)
        method, id = message.get("method"), message.get("id")
        if id is None:
            return make_response(status=202)
        if method == "tools/call" and whole is not None:
            return whole
        if method == "tools/call" and error is not None:
            return make_json_response({"jsonrpc": "2.0", "id": id, "error": error})
        if method not in results:
            unknown = {"code": -32601, "message": "no such method"}
            return make_json_response({"jsonrpc": "2.0", "id": id, "error": unknown})
        return make_json_response({"jsonrpc": "2.0", "id": id, "result": results[method]})

    return handle
