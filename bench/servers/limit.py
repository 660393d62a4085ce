"""The limit: a bare ASGI app, msgspec in and out, none of the protocol's rules: ``add http PORT json``.

Nothing in Python behind uvicorn can be faster than this, so a ratio to it says how much of the
machine isthmus leaves to the tools. It is also the fixed server that the clients are measured on.
"""

import sys
from typing import Any

import msgspec
import uvicorn


class Call(msgspec.Struct):
    """A request; its parameters wait until the method is known."""

    method: str
    id: int | str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")


class Numbers(msgspec.Struct):
    """The tool's arguments."""

    a: int
    b: int


class Params(msgspec.Struct):
    """The parameters of ``tools/call``."""

    name: str
    arguments: Numbers


read_call = msgspec.json.Decoder(Call).decode
read_params = msgspec.json.Decoder(Params).decode
write = msgspec.json.Encoder().encode

INFO = {"name": "limit", "version": "1"}
NUMBER = {"type": "integer"}
TOOL = {
    "name": "add",
    "inputSchema": {
        "type": "object",
        "properties": {"a": NUMBER, "b": NUMBER},
        "required": ["a", "b"],
    },
}
MODERN = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
FIXED = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": INFO,
    },
    "server/discover": {
        **MODERN,
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}},
        "serverInfo": INFO,
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    },
    "tools/list": {**MODERN, "tools": [TOOL]},
    "ping": {},
}


def answer(body: bytes) -> bytes:
    """The answer to one message; empty for a notification."""
    call = read_call(body)
    if call.id is None:
        return b""
    result: Any = FIXED.get(call.method)
    if result is None:
        given = read_params(call.params).arguments
        total = given.a + given.b
        result = {
            "resultType": "complete",
            "content": [{"type": "text", "text": str(total)}],
            "structuredContent": {"result": total},
        }
    return write({"jsonrpc": "2.0", "id": call.id, "result": result})


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Every POST is a message."""
    if scope["type"] != "http":
        return
    data = answer((await receive())["body"]) if scope["method"] == "POST" else b""
    length = (b"content-length", b"%d" % len(data))
    status = 200 if data else 202 if scope["method"] == "POST" else 405
    head = [(b"content-type", b"application/json"), length]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": data})


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[3]),
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_level="warning",
        access_log=False,
    )
