"""The same call on every wire: messages, headers, and the smallest HTTP needed to open a session."""

import http.client
import json
from typing import Any

LEGACY, MODERN = "2025-06-18", "2026-07-28"
FIRST_ID = 1_000_000  # seven digits for every id, so that a request's length never changes

INFO = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}
BOTH = "application/json, text/event-stream"


def message(number: int | None, method: str, params: dict[str, Any] | None = None) -> bytes:
    """One JSON-RPC message, as compact as clients write it."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        frame["id"] = number
    if params is not None:
        frame["params"] = params
    return json.dumps(frame, separators=(",", ":")).encode()


INITIALIZE = message(
    1, "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": INFO}
)
INITIALIZED = message(None, "notifications/initialized")


def call_template(wire: str) -> bytes:
    """A ``tools/call`` of ``add`` with two ``%d`` to fill in: its id and ``a``; ``b`` is 2."""
    params: dict[str, Any] = {"name": "add", "arguments": {"a": 0, "b": 2}}
    if wire == "modern":
        params["_meta"] = META
    body = message(0, "tools/call", params).replace(b"%", b"%%")
    return body.replace(b'"id":0', b'"id":%d').replace(b'"a":0', b'"a":%d')


def expected(n: int) -> bytes:
    """What the answer to call number ``n`` holds: the sum."""
    return b"%d" % (n + 2)


def headers(wire: str, session: str = "") -> dict[str, str]:
    """What a client sends beside a ``tools/call`` of ``add``."""
    found = {"Content-Type": "application/json", "Accept": BOTH}
    if wire == "modern":
        found |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "add"}
    else:
        found |= {"MCP-Protocol-Version": LEGACY}
        if session:
            found["Mcp-Session-Id"] = session
    return found


def post(
    port: int, body: bytes, head: dict[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One POST on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/mcp", body, head)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def open_session(port: int) -> str:
    """Shake hands as a legacy client; the session's id, or "" from a server without sessions."""
    head = {"Content-Type": "application/json", "Accept": BOTH}
    status, found, data = post(port, INITIALIZE, head)
    if status != 200 or b"protocolVersion" not in data:
        raise RuntimeError(f"initialize: {status} {data[:300]!r}")
    session: str = found.get("mcp-session-id", "")
    post(port, INITIALIZED, headers("legacy", session))
    return session
