"""Answers that came and cannot be read: their call ends at once, on every transport."""

import asyncio
import json

import pytest

from isthmus import Client
from isthmus.core.events import CallGarbled
from isthmus.core.session import Session
from isthmus.errors import Misbehaved
from support.client.small_server import LEGACY_NAME, MODERN_NAME, PuppetChannel
from support.http.local_web import make_json_response, make_response, serve_responses

DEPTH = 100_000
DEEP = b"[" * DEPTH + b"]" * DEPTH

ANSWERS = {
    "id-first": b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"structuredContent":{"a":%b}}}',
    "id-at-once": b'{"id":%b,"result":{"content":[],"structuredContent":{"a":%b}},"jsonrpc":"2.0"}',
    "an-error": b'{ "jsonrpc": "2.0", "id": %b, "error": {"code":1,"message":"m","data":%b}}\n',
}


@pytest.mark.covers("clientcalls.answers.unreadable")
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("how", [*ANSWERS, "id-last"])
@pytest.mark.parametrize("value", [DEEP, DEEP[: DEPTH // 2], b"\xff", b"{]"])
def test_an_answer_that_cannot_be_read_ends_its_call(side, how, value):
    """Ours: nested without end, cut off, or no JSON at all; whichever member comes first."""
    session = Session(side)
    id, _ = session.call("ping")
    said = json.dumps(id).encode()
    if how == "id-last":
        data = b'{"jsonrpc":"2.0","result":%b,"id":%b}' % (value, said)
    else:
        data = ANSWERS[how] % (said, value)
    (event,) = session.receive(data)

    assert isinstance(event, CallGarbled)
    assert id == event.id
    assert event.text.startswith("Parse error")
    assert not [one for one in session.receive(data) if isinstance(one, CallGarbled)]


@pytest.mark.covers("clientcalls.answers.unreadable")
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":%b,"method":"sampling/createMessage","params":%b}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"id":%b,"data":%b}}',
        b'starting {"id": %b, "result": %b}',
    ],
    ids=["request", "notification", "junk"],
)
def test_what_is_no_answer_ends_no_call(data):
    """Ours: a request may have the same id, and a line of a log any words."""
    session = Session("client")
    id, _ = session.call("ping")

    events = session.receive(data % (json.dumps(id).encode(), DEEP))

    assert ["unreadable"] == [one.kind for one in events]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("id", [b"007", b"00", b"01", b"-1", b"1.0"])
@pytest.mark.parametrize("how", ["id-first", "id-last"])
def test_an_id_that_is_no_number_of_json_ends_no_call(side, id, how):
    """Ours: such a message is unreadable, and its id is not read either."""
    session = Session(side)
    session.call("ping")
    data = b'{"jsonrpc":"2.0","id":%b,"result":{]}' % id
    if how == "id-last":
        data = b'{"jsonrpc":"2.0","result":{],"id":%b}' % id
    (event,) = session.receive(data)

    assert not isinstance(event, CallGarbled)
    assert 1 == len(session.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}'))


@pytest.mark.covers("clientcalls.answers.unreadable")
@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
async def test_a_call_whose_result_is_nested_without_end_fails_at_once(revision):
    """Ours: it does not wait for its timeout, and the connection goes on."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=revision)
    opening = asyncio.create_task(client.open())
    await (puppet.discovered() if revision == MODERN_NAME else puppet.greeted(tools={}))
    await opening
    call = asyncio.create_task(client.call_tool("dig"))
    id = (await puppet.heard())["id"]
    await puppet.raw(ANSWERS["id-first"] % (json.dumps(id).encode(), DEEP))
    with pytest.raises(Misbehaved, match="the answer to tools/call cannot be read"):
        await call
    again = asyncio.create_task(client.call_tool("dig"))
    asked = await puppet.heard()
    result = {"content": [], "resultType": "complete"}
    await puppet.says(id=asked["id"], result=result)

    assert [] == (await again).content
    await client.close()


@pytest.mark.covers("clientcalls.answers.unreadable")
@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
@pytest.mark.parametrize("stream", [False, True], ids=["json", "stream"])
async def test_the_same_over_http(revision, stream):
    """Ours: as an answer by itself, and as an event of a stream."""
    results = {
        "initialize": {
            "protocolVersion": LEGACY_NAME,
            "serverInfo": {"name": "s", "version": "1"},
            "capabilities": {"tools": {}},
        },
        "server/discover": {
            "supportedVersions": [MODERN_NAME],
            "capabilities": {"tools": {}},
            "resultType": "complete",
        },
    }

    def handle(asked):
        if asked.method != "POST":
            return make_response(status=405)
        message = json.loads(asked.body)
        id = message.get("id")
        if message["method"] != "tools/call":
            said = {"jsonrpc": "2.0", "id": id, "result": results.get(message["method"], {})}
            return make_response(status=202) if id is None else make_json_response(said)
        data = ANSWERS["id-first"] % (json.dumps(id).encode(), DEEP)
        if stream:
            return make_response(b"data: " + data + b"\n\n", content_type="text/event-stream")
        return make_response(data, content_type="application/json")

    async with (
        serve_responses(handle) as web,
        Client(f"{web.url}/mcp", revision=revision) as client,
    ):
        with pytest.raises(Misbehaved):
            await client.call_tool("dig")
