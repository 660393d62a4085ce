"""A connection of ours, byte by byte: what is written when, in which order, and what is kept."""

import asyncio
import gc
import json
import logging
import tracemalloc
from typing import ClassVar

import pytest
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal
from isthmus.transports.http.connections.http_connection import (
    LINGER_TICKS,
    MAX_DRAIN_BYTES,
    MAX_STEPS_AT_ONCE,
    MAX_WAITING_REQUESTS,
    HttpConnection,
)
from isthmus.transports.http.connections.server_context import (
    HEAD_TIMEOUT_TICKS,
    MAX_CREDENTIAL_TICKS,
    MAX_KNOWN_HEADS,
)
from support.event_loop import run_turns
from support.heap import own_heap
from support.http.connection_driver import Wire, make_config
from support.http.http_differences import read_responses, settle
from support.http.messages import (
    INITIALIZE,
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
)

CALL = json.dumps(modern_body()).encode()


def encode(body=CALL, first="POST /mcp HTTP/1.1", head=None, **more):
    """A request as bytes."""
    fields = {**(modern_head() if head is None else head), "content-length": len(body)}
    fields |= {name.replace("_", "-"): value for name, value in more.items()}
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join([first, *lines, "", ""]).encode("latin-1") + body


def open_wire(app=None, **settings):
    """A connection to an app."""
    return Wire(make_config(app or make_http_app(hello=hello), log_level="critical", **settings))


def statuses(wire):
    """The statuses of what was written since the last time."""
    return [status for status, _, _ in read_responses(b"".join(wire.take()))]


# Writes


async def chatty(inbound):
    """Say something, then answer."""
    from isthmus.wire import ProgressParams

    await inbound.link.note(
        "notifications/progress", ProgressParams(progress_token="p", progress=1)
    )
    return "done"


async def test_an_answer_is_one_write():
    """Ours: head and body together, whatever the status, and however often."""
    wire = open_wire()
    asked = [
        encode(),
        encode(),
        encode(b"{"),
        encode(first="POST /other HTTP/1.1"),
        encode(b'{"jsonrpc":"2.0","method":"notifications/x"}'),
        encode(first="OPTIONS /mcp HTTP/1.1", body=b""),
        encode(json.dumps(INITIALIZE).encode(), head=legacy_head()),
    ]
    writes = []
    for request in asked:
        await wire.send(request)
        await settle()
        writes += [len(wire.transport.writes)]
        wire.take()

    assert [1] * len(asked) == writes


async def test_an_answer_that_is_a_stream_is_one_write():
    """Ours: the head, the event and the end; and what came before the answer is one more."""
    wire = open_wire(make_http_app({"stream_answers": True}, hello=hello, chatty=chatty))
    head = {**modern_head(name="chatty"), "accept": "text/event-stream"}
    params = {"name": "chatty", "arguments": {}}
    await wire.send(encode(head={**modern_head(), "accept": "text/event-stream"}))
    await settle()
    alone = wire.take()
    await wire.send(
        encode(json.dumps(modern_body(params=params, progressToken="p")).encode(), head=head)
    )
    await settle()
    after = wire.take()

    assert 1 == len(alone)
    assert alone[0].endswith(b"\r\n0\r\n\r\n")
    assert 2 == len(after)
    assert [200, 200] == [status for status, _, _ in read_responses(b"".join([*alone, *after]))]


async def test_what_needs_no_waiting_makes_no_task():
    """Ours: refusals, notifications and preflights are answered where they are read."""
    wire = open_wire()
    await wire.send(encode())  # starts the app
    await settle()
    wire.take()
    for request in (
        encode(b"{"),
        encode(b'{"jsonrpc":"2.0","method":"notifications/x"}'),
        encode(first="OPTIONS /mcp HTTP/1.1", body=b""),
        encode(origin="https://evil.example"),
        encode(head=legacy_head("unknown")),
    ):
        await wire.send(request)
        assert not wire.state.tasks
        assert 1 == len(wire.take())


# Order and bounds


async def test_answers_keep_the_order_of_their_requests():
    """RFC 9112 9.3.2: also where a later one would be ready before."""
    gate = asyncio.Event()

    async def slow(_inbound):
        await gate.wait()
        return "slow"

    wire = open_wire(make_http_app(hello=hello, slow=slow))
    first = modern_body(id=1, params={"name": "slow", "arguments": {}})
    await wire.send(
        encode(json.dumps(first).encode(), head=modern_head(name="slow"))
        + encode(json.dumps(modern_body(id=2)).encode())
        + encode(b"{")
        + b"nonsense\r\n\r\n"
    )
    await settle()
    assert not wire.transport.writes
    gate.set()
    await settle()
    found = read_responses(wire.said)

    assert [200, 200, 400, 400] == [status for status, _, _ in found]
    assert [1, 2] == [json.loads(body)["id"] for _, _, body in found[:2]]
    assert wire.transport.closing


async def test_only_so_many_requests_wait():
    """Ours: beyond them nothing is read, and each is served in the end."""
    gate, many = asyncio.Event(), 2000

    async def slow(_inbound):
        await gate.wait()
        return "slow"

    wire = open_wire(make_http_app(slow=slow))
    first = json.dumps(modern_body(params={"name": "slow", "arguments": {}})).encode()
    await wire.send(encode(first, head=modern_head(name="slow")))
    await settle()
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * many)

    assert not wire.transport.reading
    assert len(wire.connection._queue) < MAX_WAITING_REQUESTS + 100
    gate.set()
    await run_turns(500)
    assert [200, *[400] * many] == statuses(wire)
    assert wire.transport.reading


async def test_many_requests_in_one_piece_are_not_all_served_at_once():
    """Ours: other connections have their turn in between, and nothing overtakes what is held."""
    wire, many = open_wire(), 3000
    await wire.send(encode())
    await settle()
    wire.take()
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n" * many)
    assert 1 <= len(wire.transport.writes) <= MAX_STEPS_AT_ONCE
    wire.transport.protocol.data_received(encode())  # of a known head
    await run_turns(500)

    assert [*[400] * many, 200] == statuses(wire)


async def test_a_client_that_does_not_read_gets_nothing_more_begun():
    """Ours: what it asks for meanwhile waits, and so does reading on."""
    wire = open_wire()
    await wire.send(encode())
    await settle()
    wire.take()
    wire.connection.pause_writing()
    await wire.send(*[encode()] * (MAX_WAITING_REQUESTS + 1))
    await settle()

    assert [] == wire.transport.writes
    assert not wire.transport.reading
    wire.connection.resume_writing()
    await settle()
    assert [200] * (MAX_WAITING_REQUESTS + 1) == statuses(wire)
    assert wire.transport.reading


async def test_a_stream_waits_for_its_client():
    """Ours: who writes more than is read is held back, and goes on where it was."""
    rest = asyncio.Event()

    async def app(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number in range(3):
            await send({"type": "http.response.body", "body": b"%d" % number, "more_body": True})
        rest.set()
        await send({"type": "http.response.body", "body": b"end"})

    wire = open_wire(app)
    wire.connection.is_full = False
    await wire.send(encode())
    wire.connection.pause_writing()
    await settle()
    assert not rest.is_set()
    wire.connection.resume_writing()
    await settle()

    ((_, _, body),) = read_responses(wire.said)
    assert rest.is_set()
    assert body.startswith(b"012end")


# Bodies


async def test_a_body_that_is_wanted_is_asked_for_once():
    """RFC 9110 10.1.1: 100 (Continue) before the final response; not where the body is there."""
    wire = open_wire()
    whole = encode(expect="100-continue")
    middle = whole.index(b"\r\n\r\n") + 4
    await wire.send(whole[:middle])
    await settle()
    assert [b"HTTP/1.1 100 Continue\r\n\r\n"] == wire.take()
    await wire.send(whole[middle:-5], whole[-5:])
    await settle()
    assert [200] == statuses(wire)

    await wire.send(whole)
    await settle()
    assert wire.said.startswith(b"HTTP/1.1 200")


async def test_an_early_refusal_reads_on_and_then_closes():
    """RFC 9112 9.6: the response is there at once, and the body is dropped until it ends."""
    wire = open_wire()
    head = encode(b"x" * 100_000, first="POST /other HTTP/1.1")[:-100_000]
    await wire.send(head, b"x" * 1000)
    await settle()
    ((status, fields, _),) = read_responses(b"".join(wire.take()))
    assert (404, b"close") == (status, fields[b"connection"])
    assert not wire.transport.closing
    await wire.send(b"x" * 99_000)
    assert wire.transport.closing


@pytest.mark.parametrize("slow", [False, True])
async def test_an_upload_that_was_refused_is_not_read_for_ever(slow):
    """Ours: so many bytes, and so long."""
    wire = open_wire()
    head = encode(b"", first="POST /other HTTP/1.1", content_length=10**12)
    await wire.send(head, b"x" * 1000)
    await settle()
    assert [404] == statuses(wire)
    if slow:
        for _ in range(LINGER_TICKS + 1):
            assert not wire.transport.closing
            wire.connection.context.look()
    else:
        piece = b"x" * 1_000_000
        await wire.send(*[piece] * (MAX_DRAIN_BYTES // len(piece)))
        assert not wire.transport.closing
        await wire.send(piece, piece)

    assert wire.transport.closing


async def test_a_large_body_is_read_as_it_is_taken():
    """Ours: what nobody has asked for yet is not kept without a bound."""
    seen = []

    async def app(_scope, receive, send):
        await gate.wait()
        while True:
            message = await receive()
            seen.append(len(message["body"]))
            if not message["more_body"]:
                break
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    gate = asyncio.Event()
    wire = open_wire(app)
    body = b"x" * 1_000_000
    await wire.send(encode(body)[: -len(body)] + body[:200_000])
    await settle()
    assert not wire.transport.reading
    gate.set()
    await settle()
    assert wire.transport.reading
    await wire.send(body[200_000:])
    await settle()

    assert len(body) == sum(seen)
    assert [204] == statuses(wire)


async def test_a_client_that_goes_amid_its_body_leaves_nothing():
    """Ours: the app is told, and nothing is written any more."""
    wire = open_wire()
    whole = encode()
    await wire.send(whole[:-10])
    await settle()
    assert wire.state.tasks
    wire.close()
    await settle()

    assert not wire.state.tasks
    assert not wire.transport.writes
    assert not wire.state.connections


async def test_trailers_are_not_merged_into_the_head():
    """RFC 9110 6.5.1: MUST NOT merge, without a field that says so."""
    found = []

    async def app(scope, receive, send):
        while (await receive())["more_body"]:
            pass
        found.extend(scope["headers"])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    wire = open_wire(app)
    head = encode(b"", content_length=None, transfer_encoding="chunked")
    await wire.send(head + b"1\r\nx\r\n0\r\nauthorization: evil\r\n\r\n")
    await settle()

    assert [204] == statuses(wire)
    assert b"authorization" not in dict(found)


# Known heads


def count_known(wire):
    """How many heads are known."""
    return len(wire.connection.context._known)


async def learn(wire):
    """Have the usual head be known."""
    for _ in range(2):
        await wire.send(encode())
        await settle()


async def test_a_head_is_known_by_its_bytes():
    """Ours: it is parsed twice, and each request after that is told by looking."""
    wire = open_wire()
    parsed = []
    for number in range(4):
        await wire.send(encode(json.dumps(modern_body(id=number)).encode()))
        await settle()
        parsed.append(wire.connection._reader._url)
        wire.connection._reader._url = b""

    assert [200] * 4 == statuses(wire)
    assert [b"/mcp", b"/mcp", b"", b""] == parsed
    assert 1 == count_known(wire)


async def test_a_head_that_comes_once_is_not_kept():
    """Ours: each session has one of its own, which is large beside an idle session."""
    wire = open_wire()
    sessions = 2 * MAX_KNOWN_HEADS
    await learn(wire)
    context = wire.connection.context
    (request,) = context._known.values()
    for number in range(sessions):
        request.local = str(number)
        context.add_known(encode(), request)

    assert count_known(wire) < 0.1 * sessions  # by chance some have the mark of another
    assert context._marked <= MAX_KNOWN_HEADS


@pytest.mark.parametrize(
    "more",
    [
        {"cookie": "a=b"},
        {"dpop": "abc"},
        {"proxy-authorization": "abc"},
        {"expect": "100-continue"},
        {"connection": "keep-alive"},
        {"connection": "close"},
        {"upgrade": "h2c", "connection": "upgrade"},
        {"x-long": "y" * 2000},
    ],
)
async def test_some_heads_are_never_known(more):
    """Ours: secrets are not kept, and what changes how a connection goes on is read each time."""
    config = make_config(make_http_app(hello=hello), log_level="critical")
    state = ServerState()
    for _ in range(3):
        wire = Wire(config, state=state)
        await wire.send(encode(**more))
        await settle()
        assert [200] == statuses(wire)
        assert 0 == count_known(wire)


async def test_a_head_with_a_token_is_known_for_a_minute():
    """Ours: a token is not kept for long, whether it is sent again or not."""
    wire = open_wire()
    context = wire.connection.context
    await learn(wire)
    for _ in range(3):
        await wire.send(encode(authorization="Bearer abc"))
        await settle()
    assert [200] * 5 == statuses(wire)
    assert 2 == count_known(wire)

    for _ in range(MAX_CREDENTIAL_TICKS):
        context.look()

    assert 1 == count_known(wire)  # the one without a token


class TokenList:
    """An authorizer that lets in whoever has a token that still counts."""

    routes: ClassVar[dict[str, object]] = {}
    hides = False
    resource = None

    def __init__(self, *tokens):
        self.tokens = set(tokens)

    async def admit(self, scope):
        """Ask the list."""
        given = dict(scope["headers"])[b"authorization"].decode().removeprefix("Bearer ")
        if given in self.tokens:
            return Principal(issuer="list", subject=given)
        return Refusal(401, -32600, "no such token")

    def permit(self, principal, asked, *, modern, known):
        """Whoever is in may ask for all."""

    def allows(self, principal, scopes):
        """Whoever is in sees all."""
        return True


async def test_a_revoked_token_is_refused_though_its_head_is_known():
    """Ours: only the reading of a head is saved, and nothing of who sends it."""
    listed = TokenList("abc")
    wire = open_wire(make_http_app({"auth": listed}, hello=hello))
    for _ in range(3):
        await wire.send(encode(authorization="Bearer abc"))
        await settle()
    assert 1 == count_known(wire)
    listed.tokens.clear()
    await wire.send(encode(authorization="Bearer abc"))
    await settle()

    assert [200, 200, 200, 401] == statuses(wire)


async def test_a_head_is_known_where_its_request_stands_alone():
    """Ours: not where something follows it, or it came in pieces, or was refused."""
    wire = open_wire()
    whole = encode()
    for _ in range(3):
        await wire.send(whole + whole, whole[:20], whole[20:])
        await settle()
        await wire.send(encode(origin="https://evil.example"), encode(first="POST /other HTTP/1.1"))
        await settle()
    assert 0 == count_known(wire)

    await learn(wire)
    assert 1 == count_known(wire)
    statuses(wire)
    await wire.send(whole + encode(b"{"))  # more than the known head says
    await wire.send(whole[:-1])
    await settle()
    assert [200, 400] == statuses(wire)
    await wire.send(whole[-1:])
    await settle()
    assert [200] == statuses(wire)


async def test_a_known_head_is_known_where_it_came_in():
    """Ours: the guard asks more of a request over loopback than of another."""
    app, state = make_http_app(hello=hello), ServerState()
    config = make_config(app, log_level="critical")
    far = Wire(config, state=state)
    far.connection.local = "10.0.0.1"
    whole = encode(host="example.com")
    for _ in range(2):
        await far.send(whole)
        await settle()
    assert 1 == count_known(far)
    near = Wire(config, state=state)
    await near.send(whole)
    await settle()

    assert [200, 200] == statuses(far)
    assert [403] == statuses(near)
    assert far.connection.context is near.connection.context


async def test_only_so_many_heads_are_known():
    """Ours: the one that was known first gives way."""
    wire = open_wire()
    await learn(wire)
    context = wire.connection.context
    (request,) = context._known.values()
    whole = encode()
    for number in range(MAX_KNOWN_HEADS + 10):
        request.local = str(number)
        context.add_known(whole, request)
        context.add_known(whole, request)
    context.add_known(whole, request)  # as where its mark was another one's, too

    assert MAX_KNOWN_HEADS == count_known(wire)


async def test_only_so_many_heads_with_tokens_are_kept():
    """Ours: those that gave way are not kept for the minute either."""
    wire = open_wire()
    for _ in range(3):
        await wire.send(encode(authorization="Bearer abc"))
        await settle()
    context = wire.connection.context
    (request,) = context._known.values()
    whole = encode(authorization="Bearer abc")
    for number in range(3 * MAX_KNOWN_HEADS):
        request.local = str(number)
        context.add_known(whole, request)
        context.add_known(whole, request)

    assert len(context._credentialed) <= MAX_KNOWN_HEADS
    assert count_known(wire) <= MAX_KNOWN_HEADS


# Ends and failures


async def fail_to_serve(_scope, _receive, _send):
    """An app that breaks before it answers."""
    raise ValueError("no")


async def test_an_app_that_breaks_is_answered_by_500():
    """Ours: and the connection ends."""
    wire = open_wire(fail_to_serve)
    await wire.send(encode())
    await settle()

    assert [500] == statuses(wire)
    assert wire.transport.closing


async def test_an_app_that_breaks_amid_its_response_ends_the_connection():
    """RFC 9112 8: an incomplete message must not look like a complete one."""

    async def app(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ValueError("no")

    wire = open_wire(app)
    await wire.send(encode() + encode())
    await settle()

    assert wire.transport.closing
    assert wire.said.endswith(b"4\r\nhalf\r\n")
    assert 1 == wire.said.count(b"HTTP/1.1 ")


@pytest.mark.parametrize(
    "messages",
    [
        [{"type": "http.response.body", "body": b"x"}],
        [{"type": "http.response.start", "status": 200, "headers": [(b"x", b"a\r\nb: c")]}],
        [{"type": "http.response.start", "status": 200, "headers": [(b"x: y\r\nz", b"a")]}],
        [],
    ],
)
async def test_a_response_that_cannot_be_is_answered_by_500(messages):
    """Ours: no header of an app splits a response in two."""

    async def app(_scope, _receive, send):
        for message in messages:
            await send(message)

    wire = open_wire(app)
    await wire.send(encode())
    await settle()

    assert [500] == statuses(wire)


@pytest.mark.parametrize("length", [b"1", b"5"])
async def test_a_response_of_another_length_than_announced_ends_the_connection(length):
    """RFC 9110 8.6: MUST NOT send a Content-Length that is known to be incorrect."""

    async def app(_scope, _receive, send):
        headers = [(b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"abc", "more_body": False})

    wire = open_wire(app)
    await wire.send(encode())
    await settle()

    assert wire.transport.closing
    assert not wire.said.endswith(b"abc")


async def test_a_response_is_not_begun_twice():
    """Ours: whoever tries is told, and the client has the first."""
    wire = open_wire()
    caught = []

    class App(type(make_http_app())):
        def begin(self, exchange):
            exchange.send_whole(200, b"{}")
            for again in (exchange.send_whole, exchange.send_text):
                with pytest.raises(RuntimeError) as error:
                    again(200, b"{}" if again == exchange.send_whole else "x")
                caught.append(str(error.value))
            return exchange.send_part(b"", None, more=False)

    wire = open_wire(App(make_http_app().router))
    await wire.send(encode())
    await settle()

    assert [200] == statuses(wire)
    assert ["a response was begun twice"] * 2 == caught


async def test_http_1_0_gets_no_chunks():
    """RFC 9112 6.1: the end of the connection is the end of the response."""

    async def app(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await send({"type": "http.response.body", "body": b"b"})

    wire = open_wire(app)
    await wire.send(encode(first="POST /mcp HTTP/1.0"))
    await settle()

    assert wire.said.endswith(b"connection: close\r\n\r\nab")
    assert wire.transport.closing


async def test_a_server_that_stops_lets_an_answer_finish():
    """Ours: as uvicorn calls it; what is idle is closed at once."""
    gate = asyncio.Event()

    async def slow(_inbound):
        await gate.wait()
        return "slow"

    app = make_http_app(slow=slow)
    idle, busy = open_wire(app), open_wire(app)
    params = {"name": "slow", "arguments": {}}
    await busy.send(
        encode(json.dumps(modern_body(params=params)).encode(), head=modern_head(name="slow"))
    )
    await settle()
    for wire in (idle, busy):
        wire.connection.shutdown()
    assert (True, False) == (idle.transport.closing, busy.transport.closing)
    gate.set()
    await settle()
    ((status, fields, _),) = read_responses(busy.said)

    assert (200, b"close") == (status, fields[b"connection"])
    assert busy.transport.closing


async def test_an_idle_connection_is_closed_after_a_while():
    """Ours: the time that uvicorn is told to keep it; the first head has longer."""
    used, unused = open_wire(), open_wire(timeout_keep_alive=3)
    await used.send(encode())
    await settle()
    for _ in range(6):
        used.connection.context.look()
    for _ in range(HEAD_TIMEOUT_TICKS):
        unused.connection.context.look()

    assert (True, False) == (used.transport.closing, unused.transport.closing)
    unused.connection.context.look()
    assert unused.transport.closing


async def test_uvicorns_bounds_are_kept():
    """Ours: ``--limit-concurrency``, and what ``--limit-max-requests`` counts."""
    app, state = make_http_app(hello=hello), ServerState()
    config = make_config(app, limit_concurrency=2, log_level="critical")
    first = Wire(config, state=state)
    await first.send(encode())
    await settle()
    second = Wire(config, state=state)
    await second.send(encode())
    await settle()

    assert ([200], [503]) == (statuses(first), statuses(second))
    assert 2 == state.total_requests


async def test_responses_are_told_to_the_access_log(caplog):
    """Ours: in uvicorn's own form, where its access log is on."""
    log = logging.getLogger("uvicorn.access")
    log.addHandler(caplog.handler)
    try:
        wire = open_wire(access_log=True)
        log.setLevel(logging.INFO)
        await wire.send(encode(first="POST /mcp?a=%20b HTTP/1.1"))
        await wire.send(encode(first="PUT /%20 HTTP/1.1"))
        await settle()
    finally:
        log.removeHandler(caplog.handler)

    expected = [
        '127.0.0.1:5000 - "POST /mcp?a=%20b HTTP/1.1" 200',
        '127.0.0.1:5000 - "PUT /%20 HTTP/1.1" 404',
    ]
    assert expected == [record.getMessage() for record in caplog.records]


async def test_an_app_reads_the_scope_of_asgi():
    """Ours: as under uvicorn's own connection."""
    scopes = []

    async def app(scope, receive, send):
        scopes.append(scope)
        body = (await receive())["body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"X-A", b"1")]})
        await send({"type": "http.response.body", "body": body})
        assert {"type": "http.disconnect"} == await receive()

    found = []
    for kind in (HttpConnection, HttpToolsProtocol):
        wire = Wire(make_config(app, root_path="/below", http=kind, log_level="critical"), kind)
        await wire.send(encode(b"abc", first="POST /m%20cp?a=b#c HTTP/1.1"))
        await settle()
        found.append(read_responses(wire.said))

    assert found[0] == found[1]
    ours, theirs = scopes
    assert theirs == ours


async def measure_idle(kind, many=100):
    """Bytes that each of many connections takes that have served something."""
    app, state = make_http_app(hello=hello), ServerState()
    config = make_config(app, http=kind, log_level="critical", timeout_keep_alive=1000)
    whole = encode()

    async def use():
        wire = Wire(config, kind, state)
        for _ in range(2):
            await wire.send(whole)
            await settle()
        wire.take()
        return wire.transport

    first = await use()
    gc.collect()
    tracemalloc.start()
    kept = [await use() for _ in range(many)]
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for transport in [first, *kept]:
        transport.close()
    await settle()
    return size / many


async def test_an_idle_connection_takes_less_memory_than_uvicorns():
    """Ours: thousands of them are to be kept."""
    with own_heap():  # its collections look at nothing but what the connections are made of
        ours, theirs = [await measure_idle(kind) for kind in (HttpConnection, HttpToolsProtocol)]

    assert ours < theirs, (ours, theirs)
