"""Requests as bytes: good ones, and all that is wrong with others."""

import json
from collections.abc import Iterable
from typing import Any

from support.http.messages import INITIALIZE, legacy_head, modern_body, modern_head

__all__ = ["REQUESTS", "encode"]


def encode(
    first: str,
    fields: Iterable[tuple[str, Any]],
    body: bytes = b"",
    *,
    length: bool = True,
    end: bytes = b"\r\n",
) -> bytes:
    """A request as bytes."""
    lines = [first, *(f"{name}: {value}" for name, value in fields)]
    if length:
        lines.append(f"content-length: {len(body)}")
    return end.join([line.encode("latin-1") for line in lines] + [b"", b""]) + body


CALL = json.dumps(modern_body()).encode()
HEAD = list(modern_head().items())
POST = "POST /mcp HTTP/1.1"
CHUNKED = [*HEAD, ("transfer-encoding", "chunked")]
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CALL), CALL)

REQUESTS = {
    "call": encode(POST, HEAD, CALL),
    "call again": encode(POST, HEAD, CALL),
    "upper case": encode(POST, [(name.upper(), value) for name, value in HEAD], CALL),
    "chunked": encode(POST, CHUNKED, CHUNKS, length=False),
    "two chunks": encode(
        POST,
        CHUNKED,
        b"5\r\n%b\r\n%x;a=b\r\n%b\r\n0\r\n\r\n" % (CALL[:5], len(CALL) - 5, CALL[5:]),
        length=False,
    ),
    "initialize": encode(POST, legacy_head().items(), json.dumps(INITIALIZE).encode()),
    "no session": encode(POST, legacy_head().items(), b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
    "not JSON": encode(POST, HEAD, b"{"),
    "batch": encode(POST, HEAD, b"[]"),
    "no body": encode(POST, HEAD, b""),
    "notification": encode(POST, HEAD, b'{"jsonrpc":"2.0","method":"notifications/x"}'),
    "other type": encode(POST, [("host", "localhost"), ("content-type", "text/plain")], CALL),
    "other origin": encode(POST, [*HEAD, ("origin", "https://evil.example")], CALL),
    "own origin": encode(POST, [*HEAD, ("origin", "http://localhost:8000")], CALL),
    "other host": encode(POST, [("host", "evil.example"), *HEAD[1:]], CALL),
    "no host": encode(POST, HEAD[1:], CALL),
    "other path": encode("POST /other HTTP/1.1", HEAD, CALL),
    "query": encode("POST /mcp?a=b#c HTTP/1.1", HEAD, CALL),
    "quoted path": encode("POST /%6dcp/ HTTP/1.1", HEAD, CALL),
    "absolute": encode("POST http://localhost/mcp HTTP/1.1", HEAD, CALL),
    "asterisk": encode("OPTIONS * HTTP/1.1", HEAD[:1]),
    "get": encode("GET /mcp HTTP/1.1", HEAD, length=False),
    "get a stream": encode(
        "GET /mcp HTTP/1.1", legacy_head("abc", accept="text/event-stream").items(), length=False
    ),
    "delete": encode("DELETE /mcp HTTP/1.1", legacy_head("abc").items(), length=False),
    "preflight": encode(
        "OPTIONS /mcp HTTP/1.1",
        [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("access-control-request-headers", "x"),
        ],
    ),
    "head": encode("HEAD /mcp HTTP/1.1", HEAD, length=False),
    "put": encode("PUT /mcp HTTP/1.1", HEAD, CALL),
    "no method": encode("GOT /mcp HTTP/1.1", HEAD, CALL),
    "1.0": encode("POST /mcp HTTP/1.0", HEAD, CALL),
    "1.0 keep-alive": encode("POST /mcp HTTP/1.0", [*HEAD, ("connection", "keep-alive")], CALL),
    "2.0": encode("POST /mcp HTTP/2.0", HEAD, CALL),
    "close": encode(POST, [*HEAD, ("connection", "close")], CALL),
    "keep-alive": encode(POST, [*HEAD, ("connection", "keep-alive")], CALL),
    "continue": encode(POST, [*HEAD, ("expect", "100-continue")], CALL),
    "two lengths": encode(POST, [*HEAD, ("content-length", len(CALL))], CALL),
    "other lengths": encode(POST, [*HEAD, ("content-length", "5")], CALL),
    "length list": encode(POST, [*HEAD, ("content-length", "5, 5")], CALL[:5], length=False),
    "signed length": encode(POST, [*HEAD, ("content-length", "+5")], CALL[:5], length=False),
    "long length": encode(
        POST, [*HEAD, ("content-length", "0" + str(len(CALL)))], CALL, length=False
    ),
    "huge length": encode(POST, [*HEAD, ("content-length", "9" * 30)], CALL, length=False),
    "large length": encode(POST, [*HEAD, ("content-length", "9" * 9)], CALL, length=False),
    "both lengths": encode(POST, CHUNKED, CHUNKS),
    "other coding": encode(
        POST, [*HEAD, ("transfer-encoding", "gzip, chunked")], CHUNKS, length=False
    ),
    "last coding": encode(
        POST, [*HEAD, ("transfer-encoding", "chunked, gzip")], CHUNKS, length=False
    ),
    "odd coding": encode(POST, [*HEAD, ("transfer-encoding", "xchunked")], CHUNKS, length=False),
    "folded": encode(POST, [*HEAD, ("x-a", "b\r\n c")], CALL),
    "bare line feeds": encode(POST, HEAD, CALL, end=b"\n"),
    "bare carriage returns": encode(POST, HEAD, CALL, end=b"\r"),
    "one bare line feed": encode(POST, [*HEAD, ("x-a", "b\nx-b: c")], CALL),
    "space before colon": encode(POST, [*HEAD, ("x-a ", "b")], CALL),
    "no name": encode(POST, [*HEAD, ("", "b")], CALL),
    "zero in a value": encode(POST, [*HEAD, ("x-a", "b\0c")], CALL),
    "bad chunk": encode(POST, CHUNKED, b"zz\r\n" + CALL, length=False),
    "long chunk": encode(POST, CHUNKED, b"f" * 20 + b"\r\n" + CALL, length=False),
    "empty lines": b"\r\n\r\n" + encode(POST, HEAD, CALL),
    "lines after": encode(POST, HEAD, CALL) + b"\r\n\r\n",
    "half a line after": encode(POST, HEAD, CALL) + b"\r",
    "nonsense": b"\x16\x03\x01\x02\x00\x01\x00",
}
