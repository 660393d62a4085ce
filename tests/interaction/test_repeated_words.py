"""What errors repeat of what was asked: never much of it."""

import asyncio
import json

import pytest

from isthmus import Server
from isthmus.revisions import BY_NAME, LEGACY
from isthmus.runtime.channel import Outgoing
from isthmus.runtime.peer import Peer
from isthmus.testing import every_revision
from isthmus.transports.memory import open_pair
from support.http.asgi_driver import fetch
from support.http.messages import INITIALIZE, legacy_head, modern_head

LONG = "x" * 100_000
MOST_BYTES = 5_000
REQUESTS = {
    "method": (LONG, {}),
    "tool": ("tools/call", {"name": LONG}),
    "arguments": ("tools/call", {"name": "say", "arguments": {LONG: 1, "text": [LONG]}}),
    "no object": ("tools/call", {"name": "say", "arguments": LONG}),
    "cursor": ("tools/list", {"cursor": LONG}),
    "prompt": ("prompts/get", {"name": LONG}),
    "prompt's argument": ("prompts/get", {"name": "advert", "arguments": {LONG: "1"}}),
    "uri": ("resources/read", {"uri": f"notes://{LONG}"}),
    "no uri": ("resources/read", {"uri": LONG}),
    "subscription": ("resources/subscribe", {"uri": f"notes://{LONG}"}),
    "level": ("logging/setLevel", {"level": LONG}),
    "reference": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": LONG}, "argument": {"name": "a", "value": "b"}},
    ),
    "type": (
        "completion/complete",
        {"ref": {"type": LONG}, "argument": {"name": "a", "value": ""}},
    ),
    "argument": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "advert"}, "argument": {"name": LONG, "value": "b"}},
    ),
    "task": ("tasks/get", {"taskId": LONG}),
}


def shop():
    """A server with something of each kind."""
    server = Server("shop", version="1")

    @server.tool
    def say(text: str) -> str:
        return text

    @server.prompt
    def advert(text: str) -> str:
        return text

    @advert.completes("text")
    def texts(prefix: str) -> list[str]:
        return [prefix]

    @server.resource("notes://one")
    def one() -> str:
        return "1"

    return server


def facts(revision):
    """What a request of a revision says about itself."""
    if BY_NAME[revision] in LEGACY:
        return {}
    protocol = "io.modelcontextprotocol/"
    return {"_meta": {f"{protocol}protocolVersion": revision, f"{protocol}clientCapabilities": {}}}


def message(method, params, id=1):
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


async def open_pipe(revision):
    """A pipe to a server, whose handshake is over."""
    ours, theirs = open_pair()
    running = asyncio.ensure_future(Peer(theirs, shop().router, side="server").run())
    if BY_NAME[revision] in LEGACY:
        opening = INITIALIZE["params"] | {"protocolVersion": revision}
        await ours.send(Outgoing(message("initialize", opening, 0)))
        await ours.receive()
        await ours.send(Outgoing(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
    return ours, running


@every_revision()
@pytest.mark.parametrize("what", REQUESTS)
async def test_no_answer_repeats_more_than_a_little(revision, what):
    """Ours: an error is no way to have a server send what one sent it."""
    method, params = REQUESTS[what]
    ours, running = await open_pipe(revision)
    await ours.send(Outgoing(message(method, params | facts(revision))))
    answer = json.loads((await ours.receive()).data)
    await ours.close()
    await running

    said = answer.get("error") or answer["result"]
    assert "error" in answer or said.get("isError") or what == "subscription", answer
    assert MOST_BYTES > len(json.dumps(said))


@every_revision()
async def test_an_id_that_is_in_flight_is_not_repeated_in_words(revision):
    """Ours: it is the answer's id already."""
    server, held = shop(), asyncio.Event()

    @server.tool
    async def wait() -> str:
        await held.wait()
        return "done"

    ours, theirs = open_pair()
    running = asyncio.ensure_future(Peer(theirs, server.router, side="server").run())
    opening = INITIALIZE["params"] | {"protocolVersion": revision}
    if BY_NAME[revision] in LEGACY:
        await ours.send(Outgoing(message("initialize", opening, 0)))
        await ours.receive()
        await ours.send(Outgoing(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'))
    call = message("tools/call", {"name": "wait", "arguments": {}} | facts(revision), LONG)
    await ours.send(Outgoing(call))
    await ours.send(Outgoing(call))
    answer = json.loads((await ours.receive()).data)
    held.set()
    await ours.close()
    await running

    assert LONG == answer["id"]
    assert MOST_BYTES > len(json.dumps(answer["error"]))


@pytest.mark.parametrize("what", REQUESTS)
async def test_no_refusal_over_http_repeats_more_than_a_little(what):
    """Ours: what the transport refuses, too."""
    method, params = REQUESTS[what]
    name = params.get("name") or params.get("uri") or params.get("taskId")
    head = modern_head(method[:100], name and name[:100])
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | facts("2026-07-28")}
    for headers in (head, legacy_head(), legacy_head(LONG), {**head, "mcp-protocol-version": LONG}):
        answer = await fetch(shop().asgi(), headers=headers, body=body)
        assert 400 <= answer.status or what in {"arguments", "subscription"}
        assert MOST_BYTES > len(answer.body)
