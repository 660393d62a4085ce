"""The hop budget: how many functions, in how many files, one ``tools/call`` goes through."""

import asyncio
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import isthmus
from isthmus import Accepted, Context, Server
from isthmus.host import Host, Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.transports.memory import open_pair
from support.http.connection_driver import Wire, make_config
from support.profiling import profile_calls

ROOT = str(Path(isthmus.__file__).parent)
# Functions and files, as measured; of a question, two more. The rungs of the HTTP ladder are small
# and many; a stream adds its own parts, and what keeps it for a client that comes back.
PIPE = (29, 13)
HOST = (
    124,
    40,
)  # of the host's own, four of which say whose client may be asked; the client, the wire and the server
# of the call come on top
LEGACY_SSE = (78, 24)
LEGACY, RESUMABLE, MODERN = "2025-06-18", "2025-11-25", "2026-07-28"
HTTP = {LEGACY: (57, 21), MODERN: (39, 16)}
CONNECTION = {LEGACY: (53, 21), MODERN: (35, 16)}  # from bytes to bytes, without ASGI in between
# A tool that asks the user: a request of the server's and its answer up to 2025-11-25, two calls since.
ELICIT = {LEGACY: (105, 29), MODERN: (113, 30)}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
OPENING = {
    "protocolVersion": LEGACY,
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "test", "version": "1"},
}
ARGUMENTS = {"a": 20, "b": 22}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


class Hops:
    """The functions of isthmus that run while this is open, in the order they are first met."""

    def __init__(self):
        self.met = {}

    def __enter__(self):
        self._profile = profile_calls(self._see)
        self._profile.__enter__()
        return self

    def __exit__(self, *_):
        self._profile.__exit__(None, None, None)

    def _see(self, frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            self.met.setdefault((code.co_filename[len(ROOT) + 1 :], code.co_qualname))

    def only(self, folder):
        """What was met in one folder of isthmus."""
        found = Hops()
        found.met = {key: None for key in self.met if key[0].startswith(folder)}
        return found

    def report(self, name):
        """What was met, printed; the two numbers."""
        files = dict.fromkeys(file for file, _ in self.met)
        lines = [f"{file}: {', '.join(f for g, f in self.met if g == file)}" for file in files]
        numbers = f"{name}: {len(self.met)} functions, {len(files)} files"
        sys.stdout.write("\n  ".join([numbers, *lines]) + "\n")
        return len(self.met), len(files)


@dataclass
class Person:
    """Whom a user says it is."""

    name: str


@pytest.fixture
def server():
    """A server with a tool that computes, and one that asks."""
    server = Server("hops", version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    @server.tool
    async def greet(ctx: Context) -> str:
        match await ctx.elicit("Who is it?", Person):
            case Accepted(person):
                return f"Hello {person.name}"
        return "nobody"

    return server


def message(id, method, params=None):
    """One JSON-RPC message."""
    frame = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(frame if id is None else {**frame, "id": id}).encode()


def call(id, revision, name="add", arguments=ARGUMENTS, **more):
    """A ``tools/call`` as the revision wants it."""
    params = {"name": name, "arguments": arguments, **more}
    return message(id, "tools/call", params | ({"_meta": META} if revision == MODERN else {}))


def held(name, hops, budget):
    """Hold what was met against a budget of functions and files."""
    functions, files = hops.report(name)

    assert functions <= budget[0]
    assert files <= budget[1]


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_call_over_a_pipe_stays_within_the_budget(server, revision):
    """Ours: what a reader must follow to understand one call fits on a screen."""
    ours, theirs = open_pair()
    running = asyncio.ensure_future(Peer(theirs, server.router, side="server").run())
    if revision == LEGACY:
        await ours.send(Outgoing(message(0, "initialize", OPENING)))
        await ours.receive()
        await ours.send(Outgoing(message(None, "notifications/initialized")))
    await ours.send(Outgoing(call(1, revision)))
    await ours.receive()
    with Hops() as hops:
        await ours.send(Outgoing(call(2, revision)))
        answer = await ours.receive()
    await ours.close()
    await running

    assert b'"result":42' in answer.data
    held(f"memory, {revision}", hops, PIPE)


async def post(app, body, **headers):
    """One POST through the ASGI app: its status, headers and body."""
    named = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    named |= {key.replace("_", "-"): value for key, value in headers.items()}
    sent = []
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in (named | {"host": "localhost"}).items()],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8000),
    }
    requests = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive():
        return requests.pop() if requests else await asyncio.Future()

    async def send(event):
        sent.append(event)

    await app(scope, receive, send)
    found = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(event.get("body", b"") for event in sent[1:])


def encode_post(body, **headers):
    """One POST as bytes."""
    named = {"host": "localhost", "content-type": "application/json"}
    named |= {"accept": "application/json, text/event-stream", "content-length": len(body)}
    named |= {key.replace("_", "-"): value for key, value in headers.items()}
    lines = [f"{name}: {value}" for name, value in named.items()]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode() + body


async def exchange(wire, body, **headers):
    """One POST on a connection: the head of its response, and the body."""
    await wire.send(encode_post(body, **headers))
    await wire.idle()
    (said,) = wire.take()
    return said.decode().split("\r\n\r\n", 1)


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_call_on_our_own_connection_stays_within_the_budget(server, revision):
    """Ours: from the bytes that come in to those that go out; one write for the answer."""
    wire = Wire(make_config(server.asgi()))
    headers = {"mcp_protocol_version": revision}
    if revision == LEGACY:
        head, _ = await exchange(wire, message(0, "initialize", OPENING))
        headers["mcp_session_id"] = head.partition("mcp-session-id: ")[2].partition("\r")[0]
        await exchange(wire, message(None, "notifications/initialized"), **headers)
    else:
        headers |= {"mcp_method": "tools/call", "mcp_name": "add"}
    for number in (1, 2):  # its head is known by then
        await exchange(wire, call(number, revision), **headers)
    with Hops() as hops:
        head, body = await exchange(wire, call(3, revision), **headers)
    wire.close()

    assert head.startswith("HTTP/1.1 200 OK")
    assert '"result":42' in body
    held(f"own connection, {revision}", hops, CONNECTION[revision])


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_call_over_http_stays_within_the_budget(server, revision):
    """Ours: HTTP adds its ends, not another framework."""
    app = server.asgi()
    headers = {"mcp_protocol_version": revision}
    if revision == LEGACY:
        _, found, _ = await post(app, message(0, "initialize", OPENING))
        headers["mcp_session_id"] = found["mcp-session-id"]
        await post(app, message(None, "notifications/initialized"), **headers)
    else:
        headers |= {"mcp_method": "tools/call", "mcp_name": "add"}
    await post(app, call(1, revision), **headers)
    with Hops() as hops:
        status, _, body = await post(app, call(2, revision), **headers)

    assert 200 == status
    assert b'"result":42' in body
    held(f"http, {revision}", hops, HTTP[revision])


async def test_a_legacy_call_answered_on_a_stream_stays_within_the_budget(server):
    """Ours: an event stream adds its own parts, and what keeps it for a client that comes back."""
    app = server.asgi(stream_answers=True)
    headers = {"mcp_protocol_version": RESUMABLE}
    _, found, _ = await post(
        app, message(0, "initialize", OPENING | {"protocolVersion": RESUMABLE})
    )
    headers["mcp_session_id"] = found["mcp-session-id"]
    await post(app, message(None, "notifications/initialized"), **headers)
    await post(app, call(1, RESUMABLE), **headers)
    with Hops() as hops:
        status, _, body = await post(app, call(2, RESUMABLE), **headers)

    assert 200 == status
    assert b"id: " in body
    assert b'"result":42' in body
    held(f"http with a stream, {RESUMABLE}", hops, LEGACY_SSE)


async def elicited(ours, revision, id):
    """Call the tool that asks, answer its question, and give back the answer to the call."""
    await ours.send(Outgoing(call(id, revision, "greet", {})))
    asked = json.loads((await ours.receive()).data)
    if revision == LEGACY:
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": ACCEPTED}
        await ours.send(Outgoing(json.dumps(answer).encode()))
    else:
        ((key, _),) = asked["result"]["inputRequests"].items()
        answers = {
            "inputResponses": {key: ACCEPTED},
            "requestState": asked["result"]["requestState"],
        }
        await ours.send(Outgoing(call(id + 1, revision, "greet", {}, **answers)))
    return (await ours.receive()).data


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_question_to_the_user_stays_within_the_budget(server, revision):
    """Ours: one ``ctx.elicit`` is a request of the server's up to 2025-11-25, and two calls since."""
    ours, theirs = open_pair()
    running = asyncio.ensure_future(Peer(theirs, server.router, side="server").run())
    if revision == LEGACY:
        await ours.send(Outgoing(message(0, "initialize", OPENING)))
        await ours.receive()
        await ours.send(Outgoing(message(None, "notifications/initialized")))
    await elicited(ours, revision, 1)
    with Hops() as hops:
        answer = await elicited(ours, revision, 3)
    await ours.close()
    await running

    assert b"Hello Ada" in answer
    held(f"elicit, {revision}", hops, ELICIT[revision])


ALLOWED = """
[[rule]]
id = "mine"
effect = "allow"
when = { action = "tool.call" }
"""


async def test_a_call_through_a_host_stays_within_the_budget(server, tmp_path):
    """Ours: policy, consent, limits and the audit log are met once each, and a server is looked up once."""
    policy = Policy.of(read_layers(ALLOWED, "user"))
    host = Host(policy=policy, state=tmp_path)  # a thread of its own writes the log
    host.add("hops", server)
    async with host:
        for _ in range(2):  # the first learns what the server has
            await host.call("hops__add", {"a": 1, "b": 2})
            await host.audit.flush()
        with Hops() as hops:
            result = await host.call("hops__add", {"a": 20, "b": 22})
    hops.report("host, with client and server")

    assert "42" == result.text
    held("host", hops.only("host/"), HOST)
