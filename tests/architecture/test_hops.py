"""The hop budget: how many functions, in how many files, one ``tools/call`` goes through."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

import isthmus
from isthmus import Server
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.transports.memory import open_pair

ROOT = str(Path(isthmus.__file__).parent)
# The design's budget is 40 functions in 14 files. A pipe keeps it but for the file that fits
# structured content to old revisions; the rungs of the HTTP ladder are small and many.
PIPE = (40, 15)
HTTP = (60, 22)

LEGACY, MODERN = "2025-06-18", "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
OPENING = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


class Hops:
    """The functions of isthmus that run while this is open, in the order they are first met."""

    def __init__(self):
        self.met = {}

    def __enter__(self):
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_):
        sys.setprofile(None)

    def _see(self, frame, event, _argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            self.met.setdefault((code.co_filename[len(ROOT) + 1 :], code.co_qualname))

    def report(self, name):
        """What was met, printed; the two numbers."""
        files = dict.fromkeys(file for file, _ in self.met)
        lines = [f"{file}: {', '.join(f for g, f in self.met if g == file)}" for file in files]
        numbers = f"{name}: {len(self.met)} functions, {len(files)} files"
        sys.stdout.write("\n  ".join([numbers, *lines]) + "\n")
        return len(self.met), len(files)


@pytest.fixture
def server():
    """A server with one tool."""
    server = Server("hops", version="1")

    @server.tool
    async def add(a: int, b: int) -> int:
        return a + b

    return server


def message(id, method, params=None):
    """One JSON-RPC message."""
    frame = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return json.dumps(frame if id is None else {**frame, "id": id}).encode()


def call(id, revision):
    """A ``tools/call`` as the revision wants it."""
    params = {"name": "add", "arguments": {"a": 20, "b": 22}}
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
    held(f"http, {revision}", hops, HTTP)
