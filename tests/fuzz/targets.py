"""What a fuzzer throws bytes at: the pure core, one function per way in.

A target takes any bytes and raises only where isthmus is wrong. Each says what must hold, not
only that nothing breaks: bytes cut anywhere mean the same, a token that was not sealed by us
never opens, a template finds back what it made.
"""

import asyncio
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import UNSET

from fuzz.host_targets import HOST_TARGETS
from isthmus.auth.net.challenge import parse_challenges, write_challenge
from isthmus.auth.tokens.dpop import InvalidProof, ReplayCache, check_proof
from isthmus.auth.tokens.jose import (
    InvalidToken,
    KeySet,
    PrivateKey,
    read_token,
    sign_jwt,
    verify_jwt,
)
from isthmus.auth.tokens.secret import s256
from isthmus.core.batch import MAX_BATCH_MEMBERS
from isthmus.core.caller import read_envelope
from isthmus.core.encoding import replace_surrogates
from isthmus.core.events import RequestReceived, SendBytes
from isthmus.core.framing import LineSplitter
from isthmus.core.http.params import decode_value, encode_value
from isthmus.core.http.rules import Refusal, judge, judge_head, read_head
from isthmus.core.http.session_id import SessionFacts, seal_session_id, unseal_session_id
from isthmus.core.http.sse import SseParser
from isthmus.core.journal import Journal, Unsealed, digest_binding, seal, unseal
from isthmus.core.pagination import BadCursor, paginate
from isthmus.core.redaction.live_secrets import REDACTED
from isthmus.core.redaction.messages import Redact
from isthmus.core.sealing import SealBroken
from isthmus.core.session import Session
from isthmus.core.uri_template import BadTemplate, UriTemplate
from isthmus.revisions import METHODS
from isthmus.store.log import Forgotten, MemoryLog
from isthmus.testing.transcript import load
from isthmus.transports.http.app import HttpApp
from isthmus.transports.http.reply import NOBODY, EventWriter
from isthmus.transports.http.sessions.resume import PostedStream, SessionStreams
from isthmus.wire import ClientCapabilities
from isthmus.wire.jsonrpc import Frame, Unreadable, encode_answer, is_nested_deeper, parse
from support.http.http_differences import assert_same, cut, may_differ
from support.http.messages import hello, make_http_app
from support.http.raw_requests import REQUESTS
from support.http.scripted_connection import ScriptedConnection

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
LIMIT = 4096
KEY = b"k" * 32
BOUND = digest_binding("tools/call", "book", None, None)
FACTS = SessionFacts("2025-11-25", ClientCapabilities(), None, b"o" * 16, "ab" * 10, 1, "n1")
SESSION_ID = seal_session_id(FACTS, [KEY], b"n" * 12, "fuzzed")
SEALED = seal(Journal(), [KEY], b"n" * 12, 2.0, BOUND)
REDACT = Redact()
ED25519 = Ed25519PrivateKey.from_private_bytes(
    b"k" * 32
)  # the same in each run, and so its signatures
SIGNING = PrivateKey(
    ED25519.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), alg="Ed25519"
)
PUBLIC_KEYS = KeySet([SIGNING.jwk])
SIGNED = sign_jwt({"sub": "ada", "exp": 1000}, SIGNING, typ="at+jwt")
NAMES = [f"item {number}" for number in range(40)]


def frames(data: bytes) -> None:
    """A pipe: lines however they are cut, each a message to a session of either side."""
    whole, cut = LineSplitter(LIMIT), LineSplitter(LIMIT)
    lines = whole.feed(data)
    pieces = [line for at in range(0, len(data), 7) for line in cut.feed(data[at : at + 7])]
    assert lines == pieces
    assert whole.rest() == cut.rest()
    server, client = Session("server"), Session("client")
    client.call("tools/list")
    for line in lines:
        if isinstance(line, bytes):
            for event in server.receive(line):
                answer = getattr(event, "data", None)
                assert answer is None or json.loads(answer)
            client.receive(line)
            _params(line)
    server.close()


def _params(line: bytes) -> None:
    """Read the parameters as the method's struct: that refuses, and does nothing else."""
    frame = parse(line)
    if not isinstance(frame, Frame) or frame.method is UNSET:
        return
    row = METHODS.get(frame.method)
    if row is None:
        return
    try:
        row.decode_params(frame.params or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return


def sse(data: bytes) -> None:
    """An event stream: the same events however it is cut."""
    whole, cut = SseParser(LIMIT), SseParser(LIMIT)
    events = whole.feed(data)
    pieces = [event for at in range(0, len(data), 5) for event in cut.feed(data[at : at + 5])]
    assert events == pieces
    assert (whole.last_id, whole.retry) == (cut.last_id, cut.retry)


def http(data: bytes) -> None:
    """An HTTP request: a head, an empty line, a body."""
    text, _, body = data.partition(b"\n\n")
    verb, *lines = text.split(b"\n")
    pairs = [line.partition(b":") for line in lines]
    head = read_head((name.strip().lower(), value) for name, _, value in pairs)
    for verdict in (judge_head("POST", head), judge_head(verb.decode("latin-1"), head)):
        if isinstance(verdict, Refusal):
            assert 400 <= verdict.status < 600
            msgspec.json.encode(verdict.error())
    frame = parse(body)
    if isinstance(frame, Frame):
        verdict = judge(head, frame, read_envelope(frame.params or None))
        if isinstance(verdict, Refusal):
            msgspec.json.encode(verdict.error())


def responses(data: bytes) -> None:
    """An HTTP response to a client: the same one, or the same refusal, however it is cut."""

    async def parse(size: int) -> tuple[object, bool]:
        scripted = ScriptedConnection()
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        return await scripted.ask(*pieces, eof=True), scripted.wire.closed

    async def compare() -> None:
        whole = await parse(len(data) + 1)
        assert whole == await parse(7)
        assert whole == await parse(1)

    asyncio.run(compare())


def journal(data: bytes) -> None:
    """A ``requestState``: nothing opens but what we sealed, byte for byte."""
    token = data.decode("latin-1")
    try:
        opened = unseal(token, [KEY], 1.0, BOUND)
    except Unsealed:
        return
    assert token == SEALED
    assert opened == Journal()


def session_ids(data: bytes) -> None:
    """An ``Mcp-Session-Id``: nothing opens but what we sealed, byte for byte."""
    id = data.decode("latin-1")
    try:
        opened = unseal_session_id(id, [KEY], "fuzzed")
    except SealBroken:
        return
    assert id == SESSION_ID
    assert opened == FACTS


def cursors(data: bytes) -> None:
    """A cursor: ours leads on, any other is refused."""
    cursor = data.decode("latin-1")
    made = set()
    page = paginate(NAMES, str, cursor=None, size=7, secret=KEY, scope="tools/list")
    while page.next_cursor is not None:
        made.add(page.next_cursor)
        page = paginate(NAMES, str, cursor=page.next_cursor, size=7, secret=KEY, scope="tools/list")
    try:
        paginate(NAMES, str, cursor=cursor, size=7, secret=KEY, scope="tools/list")
    except BadCursor:
        return
    assert cursor in made


def templates(data: bytes) -> None:
    """A template and a URI on two lines: reading either ends, and matching undoes expanding."""
    text, _, uri = data.decode("utf-8", "replace").partition("\n")
    try:
        template = UriTemplate(text)
    except BadTemplate:
        return
    template.match(uri)
    made = template.expand(dict.fromkeys(template.names, "a"))
    found = template.match(made)
    assert found is None or set(found) <= set(template.names)


def headers(data: bytes) -> None:
    """A header value: what is wrapped comes out as it went in, and nonsense as None."""
    text = data.decode("utf-8", "replace")
    assert text == decode_value(encode_value(text))
    decode_value(data.decode("latin-1"))


def batches(data: bytes) -> None:
    """An array to a session that has batches: one array of answers, complete with its last."""
    session = Session("server")
    session.batches = True
    events = session.receive(data)
    whole = [event.data for event in events if isinstance(event, SendBytes)]
    for event in events:
        if isinstance(event, RequestReceived):
            answer = session.answer(event.id, b"{}")
            whole += [answer] if answer is not None else []
    frame = parse(data)
    assert len(whole) <= 1
    assert all(isinstance(json.loads(one), dict | list) for one in whole)
    if not isinstance(frame, Frame | Unreadable):
        assert len(frame) <= MAX_BATCH_MEMBERS or b'"error"' in whole[0]
        assert [] not in map(json.loads, whole)
    Session("client").receive(data)


def event_ids(data: bytes) -> None:
    """A ``Last-Event-ID``: of all there are, a session knows only its own."""
    loop = asyncio.new_event_loop()
    try:
        loop.run_until_complete(_event_id(data.decode("latin-1")))
    finally:
        loop.close()


async def _event_id(event_id: str) -> None:
    streams = SessionStreams("session", MemoryLog(lambda: 0.0), primes=True)
    streams.mark, streams.node = "0a1b2c3d4e5f", "n0a1b2c3d4e"
    stream = streams.open(PostedStream(streams, EventWriter(NOBODY)))
    try:
        found, place = streams.find(event_id)
        await found.check(place)
    except Forgotten:
        return
    assert (stream, 0) == (found, place)
    assert event_id.startswith("0a1b2c3d4e5f-")


def connections(data: bytes) -> None:
    """Bytes on a connection: the same comes of them on ours and on uvicorn's own, cut anywhere.

    The first four bytes say where they are cut; what may differ is listed in the support module.
    """
    places, data = [7 * place for place in data[:4]], data[4:]
    if data and not may_differ(data):
        asyncio.run(assert_same(_make_app, cut(data, places)))


def _make_app() -> HttpApp:
    return make_http_app(hello=hello)


def nesting(data: bytes) -> None:
    """What is measured is what a decoder finds; of what is no JSON, nothing breaks."""
    deeper = is_nested_deeper(data, 8)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return
    assert deeper == (_levels(value) > 8)


def _levels(value: object) -> int:
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    )
    return 0 if inner is None else 1 + max(map(_levels, inner), default=0)


def surrogates(data: bytes) -> None:
    """Whatever was text can be written, and what could be written is left as it is."""
    text = data.decode("utf-16-le", "surrogatepass" if len(data) % 2 == 0 else "replace")
    value = {"a": [text, {text: (text, 1)}]}
    clean = replace_surrogates(value)
    msgspec.json.encode(clean)
    assert clean == replace_surrogates(clean)
    assert (text == clean["a"][0]) == _is_writable(text)


def _is_writable(text: str) -> bool:
    try:
        return bool(text.encode() or True)
    except UnicodeEncodeError:
        return False


def redaction(data: bytes) -> None:
    """A log message: always plain data, and a secret under its name never gets out."""
    text = data.decode("utf-8", "replace")
    said = REDACT({"text": text, "nested": [{text: text, "password": text}]})
    assert said["nested"][0]["password"] == REDACTED
    msgspec.json.encode(said)
    assert "hunter2-Zq8" not in REDACT(f"{text}\npassword=hunter2-Zq8\n")


def challenges(data: bytes) -> None:
    """A ``WWW-Authenticate``: read without fail, and what was read means the same when written."""
    text = data.decode("utf-8", "replace")
    for found in parse_challenges(text.split("\n")):
        assert found.scheme == found.scheme.lower()
        if all(
            sign == "\t" or " " <= sign <= "~" for value in found.params.values() for sign in value
        ):
            (again,) = parse_challenges([write_challenge(found.scheme, found.params)])
            assert (found.scheme, found.params) == (again.scheme, again.params)


def jwts(data: bytes) -> None:
    """A token: nothing is believed but what we signed, letter by letter."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        read_token(text)
        verify_jwt(text, PUBLIC_KEYS)
    except InvalidToken:
        return
    assert text == SIGNED


def proofs(data: bytes) -> None:
    """A DPoP proof: it is by a key of its own, for this request, and good once."""
    text, replays = data.decode("utf-8", "surrogateescape"), ReplayCache()
    asked = {"method": "POST", "url": "https://h/mcp", "token": "t", "now": 1000.0}
    for first in (True, False):
        try:
            check_proof(text, replays=replays, **asked)
        except InvalidProof:
            return
        assert first


@dataclass(frozen=True)
class Target:
    """One way in.

    Attributes:
        run: takes the bytes.
        seeds: what to start from, so that a fuzzer need not invent the protocol.
    """

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterator[bytes]]


def messages() -> Iterator[bytes]:
    """Every message of the transcripts."""
    for path in sorted(TRANSCRIPTS.rglob("*.txt")):
        for conversation in load(path):
            for line in conversation.lines:
                if isinstance(line.message, dict):
                    yield json.dumps({"jsonrpc": "2.0", **line.message}).encode()


def lines() -> Iterator[bytes]:
    """Messages as a pipe carries them, and some nonsense between."""
    said = list(messages())
    yield from (message + b"\n" for message in said)
    yield b"\r\n".join(said[:6]) + b"\n"
    yield b"[]\n[1]\n{}\nnull\n" + b"[" * 600 + b"\n"


def streams() -> Iterator[bytes]:
    """Messages as a stream carries them."""
    for number, message in enumerate(messages()):
        yield b"id: %d\nevent: message\ndata: %b\n\n" % (number, message)
    yield b"\xef\xbb\xbf: hello\r\n\r\nretry: 500\rid: 7\rdata\n\n"


def requests() -> Iterator[bytes]:
    """Messages as HTTP carries them."""
    head = (
        b"POST\ncontent-type: application/json\naccept: application/json, text/event-stream\n"
        b"host: localhost\n"
    )
    for message in messages():
        method = json.loads(message).get("method", "ping").encode()
        yield head + b"mcp-session-id: s\n\n" + message
        yield head + b"mcp-protocol-version: 2026-07-28\nmcp-method: %b\n\n" % method + message
    yield b"GET\naccept: text/event-stream\nmcp-session-id: s\nlast-event-id: 3\n\n"


def replies() -> Iterator[bytes]:
    """Messages as the responses of HTTP carry them."""
    ok = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    for message in list(messages())[:20]:
        yield ok + b"content-length: %d\r\n\r\n%b" % (len(message), message)
    chunked = b"transfer-encoding: chunked\r\n\r\n5;x=y\r\ndata:\r\n2\r\n\n\n\r\n0\r\nx: y\r\n\r\n"
    yield ok + chunked
    yield b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + ok + chunked
    yield b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\nup to the end"
    packed = gzip.compress(b"packed")
    yield b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + packed
    yield b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 101 Other\r\nupgrade: x\r\n\r\n"


def tokens() -> Iterator[bytes]:
    """A sealed journal, and something like one."""
    yield SEALED.encode()
    yield SEALED[::-1].encode()
    yield encode_answer(1, b"{}")


def session_names() -> Iterator[bytes]:
    """Ids of sessions: ours, and others."""
    yield SESSION_ID.encode()
    yield SESSION_ID[:-1].encode()
    yield b"A" * 599


def marks() -> Iterator[bytes]:
    """A cursor, and something like one."""
    page = paginate(NAMES, str, cursor=None, size=7, secret=KEY, scope="tools/list")
    yield (page.next_cursor or "").encode()
    yield b"aXRlbSA3"


def addresses() -> Iterator[bytes]:
    """Templates and URIs."""
    yield b"note://{id}\nnote://7"
    yield b"repo://{owner}/{name}{?page,size}\nrepo://ada/engine?page=2"
    yield b"file://{+path}{#part:3}\nfile://a/b%20c#top"
    yield b"x:{/parts*}{.ext}{;k*}{&more}\nx:/a/b.txt;k=1&more=2"


def values() -> Iterator[bytes]:
    """Header values, wrapped and plain."""
    yield b"eu-west"
    yield b" =?base64?w7w=?="
    yield "zürich\n".encode()


def arrays() -> Iterator[bytes]:
    """Messages in arrays."""
    said = [
        one for one in messages() if b'"initialize"' not in one and b"protocolVersion" not in one
    ]
    for at in range(0, len(said), 5):
        yield b"[" + b",".join(said[at : at + 5]) + b"]"
    yield b'[[],{},1,null,{"jsonrpc":"2.0","id":1,"method":"ping"}]'
    yield (
        b"["
        + b",".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}' % n for n in range(101))
        + b"]"
    )


def marked() -> Iterator[bytes]:
    """Ids of events, and what looks like some."""
    yield b"0a1b2c3d4e5f-n0a1b2c3d4e.1-0"
    yield b"0a1b2c3d4e5f-n0a1b2c3d4e.1-7"
    yield b"0a1b2c3d4e5f-n0a1b2c3d4e.99999999999999999-1"
    yield "0a1b2c3d4e5f-n0a1b2c3d4e.\u00b2-0".encode("latin-1")


def raw() -> Iterator[bytes]:
    """Requests as bytes, by themselves and with another behind them."""
    for request in REQUESTS.values():
        yield b"\xff\xff\xff\xff" + request
        yield b"\x03\x08\x10\x40" + request + REQUESTS["call"]


def nests() -> Iterator[bytes]:
    """JSON with brackets inside of strings and outside."""
    yield from messages()
    yield b'{"a":["[[[[[[[[[[","\\"[",[[[[[[[[]]]]]]]],"\\\\"]}'
    yield b"[" * 9 + b"]" * 9


def halves() -> Iterator[bytes]:
    """Text with halves of surrogate pairs."""
    for text in ("a\ud800b", "\udc00\ud800", "\ud83d\ude00", "plain"):
        yield text.encode("utf-16-le", "surrogatepass")


def secrets() -> Iterator[bytes]:
    """What looks like credentials."""
    yield b"Authorization: Bearer abcDEF123456 https://ada:pw@example.com"
    yield b'{"api_key": "sk-abcdefghijklmnop"} eyJhbGciOiJI.eyJzdWIiOiIx.c2ln'
    yield b"-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----"


def authentications() -> Iterator[bytes]:
    """Challenges, plain and spoilt."""
    yield b'Bearer realm="x", scope="a b", error_description="x, scope=\\"admin\\""'
    yield b"Negotiate abc==, DPoP algs=ES256\nBasic realm = y ,, Bearer"
    yield b'Bearer "unterminated, Bearer a=b c=d'


def signed() -> Iterator[bytes]:
    """A token, and something like one."""
    yield SIGNED.encode()
    yield b"eyJhbGciOiJub25lIn0.e30."
    yield b"eyJhbGciOiJSUzI1NiIsImNyaXQiOlsiYjY0Il0sImI2NCI6ZmFsc2V9.e30.AAAA"


def proven() -> Iterator[bytes]:
    """A proof, and something like one."""
    claims = {
        "jti": "1",
        "htm": "POST",
        "htu": "https://h/mcp",
        "iat": 1000,
        "ath": s256("t"),
    }
    for wrong in ({}, {"htm": "GET", "htu": "https://h/%2e%2e/mcp"}, {"iat": 1e300}):
        headers = {"jwk": SIGNING.bare, "kid": None}
        yield sign_jwt({**claims, **wrong}, SIGNING, typ="dpop+jwt", headers=headers).encode()


TARGETS = {
    "frames": Target(frames, lines),
    "sse": Target(sse, streams),
    "http": Target(http, requests),
    "responses": Target(responses, replies),
    "journal": Target(journal, tokens),
    "session_ids": Target(session_ids, session_names),
    "cursors": Target(cursors, marks),
    "templates": Target(templates, addresses),
    "headers": Target(headers, values),
    "batches": Target(batches, arrays),
    "event_ids": Target(event_ids, marked),
    "connections": Target(connections, raw),
    "nesting": Target(nesting, nests),
    "surrogates": Target(surrogates, halves),
    "redaction": Target(redaction, secrets),
    "challenges": Target(challenges, authentications),
    "jwts": Target(jwts, signed),
    "proofs": Target(proofs, proven),
    **{name: Target(*made) for name, made in HOST_TARGETS.items()},
}
"""Every target by its name."""
