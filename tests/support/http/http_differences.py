"""The same bytes to a connection of ours and to uvicorn's own with the ASGI app, and what may differ.

This is the one list of differences; everything else must be the same: statuses, headers, bodies, and
whether the connection stays open.

- *Bounds*: 431, 414 and the number of requests that wait. Inputs here are smaller than that.
- *Upgrades* are ignored (RFC 9110 7.8), where uvicorn's loses the body of such a request; CONNECT is 400.
- *Trailers* are not merged into the head (RFC 9110 6.5.1).
- *100 (Continue)* is not sent where some of the body is there already, nor for HTTP/1.0 (RFC 9110 10.1.1), and a
  connection on which it was never sent is read on for a moment before it closes, or used again where the body came.
- *What cannot be read* is refused after the answers that are due, unless the connection ends with them; uvicorn's
  throws those answers away.
- *Chunks* are not sent to HTTP/1.0 (RFC 9112 6.1). Our app has no streams for it; others may.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from isthmus.transports.http.connections.http_connection import HttpConnection
from support.http.connection_driver import Wire, make_config

__all__ = ["MALFORMED", "Outcome", "assert_same", "cut", "may_differ", "read_responses", "settle"]

MALFORMED = (400, b"Invalid HTTP request received.")
TURNS = 30  # of the loop, within which all is said that can be said
RANDOM = re.compile(rb"[0-9a-f]{12,64}")
TRAILER = re.compile(rb"\n0+[^\r\n]*\r\n[^\r\n]")


class Outcome(NamedTuple):
    """What came of some bytes: the responses, and whether the connection was closed."""

    responses: list[tuple[int, dict[bytes, bytes], bytes]]
    closed: bool


def read_responses(said: bytes) -> list[tuple[int, dict[bytes, bytes], bytes]]:
    """Every final response in the bytes of a server; what cannot be read is an error."""
    found = []
    while said:
        head, end, said = said.partition(b"\r\n\r\n")
        assert end, head
        first, *lines = head.split(b"\r\n")
        status = int(first.split(b" ")[1])
        if status == 100:
            continue
        fields = dict(line.split(b": ", 1) for line in lines)
        assert len(fields) == len(lines), "a header stands there twice"
        body = b""
        if fields.get(b"transfer-encoding") == b"chunked":
            while not body.endswith(b"\0end"):
                size, _, said = said.partition(b"\r\n")
                if not size:
                    break  # the stream goes on
                length = int(size, 16)
                body += said[:length] if length else b"\0end"
                assert said[length : length + 2] == b"\r\n"
                said = said[length + 2 :]
        else:
            length = int(fields.get(b"content-length", b"0"))
            if not said or said.startswith(b"HTTP/1.1 "):
                length = 0  # an answer to HEAD says how long it would be; no other body begins so
            body, said = said[:length], said[length:]
            assert length == len(body)
        found.append((status, fields, RANDOM.sub(b"?", body)))
    for _, fields, _ in found:
        if b"mcp-session-id" in fields:
            fields[b"mcp-session-id"] = b"?"
    return found


async def settle() -> None:
    """Let the loop turn until nothing more can happen."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def find_outcome(app: Any, kind: Any, pieces: Sequence[bytes]) -> Outcome:
    """What comes of pieces on one kind of connection."""
    wire = Wire(make_config(app, http=kind, log_level="critical"), kind)
    for piece in pieces:
        if wire.transport.closing:
            break
        if wire.transport.reading:
            wire.transport.protocol.data_received(piece)
        await settle()
    outcome = Outcome(read_responses(wire.said), wire.transport.closing)
    wire.close()
    await settle()
    await app.close(drain=0.0)
    assert not wire.state.connections
    return outcome


def may_differ(data: bytes) -> bool:
    """Whether bytes touch one of the differences that cannot be told apart in what comes of them."""
    small = data.lower()
    words = (b"upgrade", b"connect ", b"expect")
    return any(word in small for word in words) or TRAILER.search(data) is not None


async def assert_same(make_app: Any, pieces: Sequence[bytes]) -> Outcome:
    """Assert that both kinds of connection do the same with the same bytes; what ours does."""
    ours = await find_outcome(make_app(), HttpConnection, pieces)
    theirs = await find_outcome(make_app(), HttpToolsProtocol, pieces)
    said = theirs.responses
    if said and (said[-1][0], said[-1][2]) == MALFORMED:
        last = ours.responses[-1]
        assert said[-1] == last or last[1][b"connection"] == b"close", "it is refused, or too late"
        assert said[:-1] == ours.responses[: len(said) - 1], "and so is what came before it"
    else:
        assert said == ours.responses
    if b"expect" not in b"".join(pieces).lower():
        assert theirs.closed == ours.closed
    return ours


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Bytes, cut at some places."""
    ends = sorted({place % (len(data) + 1) for place in places} | {len(data)})
    starts = [0, *ends]
    return [data[a:b] for a, b in zip(starts, ends, strict=False) if a < b]
