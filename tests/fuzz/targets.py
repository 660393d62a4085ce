"""What a fuzzer throws bytes at: the pure core, one function per way in.

A target takes any bytes and raises only where isthmus is wrong. Each says what must hold, not
only that nothing breaks: bytes cut anywhere mean the same, a token that was not sealed by us
never opens, a template finds back what it made.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import UNSET

from isthmus.core.caller import read_envelope
from isthmus.core.framing import Lines
from isthmus.core.http_params import decode_value, encode_value
from isthmus.core.http_rules import Refusal, judge, judge_head, read_head
from isthmus.core.journal import Journal, Unsealed, binding, seal, unseal
from isthmus.core.pagination import BadCursor, paginate
from isthmus.core.session import Session
from isthmus.core.sse import Events
from isthmus.core.uri_template import BadTemplate, UriTemplate
from isthmus.revisions import METHODS
from isthmus.testing.transcript import load
from isthmus.wire.jsonrpc import Frame, encode_answer, parse

TRANSCRIPTS = Path(__file__).parents[1] / "transcripts"
LIMIT = 4096
KEY = b"k" * 32
BOUND = binding("tools/call", "book", None, None)
SEALED = seal(Journal(), [KEY], b"n" * 12, 2.0, BOUND)
NAMES = [f"item {number}" for number in range(40)]


def frames(data: bytes) -> None:
    """A pipe: lines however they are cut, each a message to a session of either side."""
    whole, cut = Lines(LIMIT), Lines(LIMIT)
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
    whole, cut = Events(LIMIT), Events(LIMIT)
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


def journal(data: bytes) -> None:
    """A ``requestState``: nothing opens but what we sealed, byte for byte."""
    token = data.decode("latin-1")
    try:
        opened = unseal(token, [KEY], 1.0, BOUND)
    except Unsealed:
        return
    assert token == SEALED
    assert opened == Journal()


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


def tokens() -> Iterator[bytes]:
    """A sealed journal, and something like one."""
    yield SEALED.encode()
    yield SEALED[::-1].encode()
    yield encode_answer(1, b"{}")


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


TARGETS = {
    "frames": Target(frames, lines),
    "sse": Target(sse, streams),
    "http": Target(http, requests),
    "journal": Target(journal, tokens),
    "cursors": Target(cursors, marks),
    "templates": Target(templates, addresses),
    "headers": Target(headers, values),
}
"""Every target by its name."""
