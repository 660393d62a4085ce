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
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
BOTH = "application/json, text/event-stream"


def write_message(number: int | None, method: str, params: dict[str, Any] | None = None) -> bytes:
    """One JSON-RPC message, as compact as clients write it."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        frame["id"] = number
    if params is not None:
        frame["params"] = params
    return json.dumps(frame, separators=(",", ":")).encode()


INITIALIZE = write_message(
    1,
    "initialize",
    {"protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": INFO},
)
INITIALIZED = write_message(None, "notifications/initialized")


def write_request(wire: str, number: int, method: str, params: dict[str, Any]) -> bytes:
    """A request, which says on the modern wire who sends it."""
    if wire == "modern":
        params = {**params, "_meta": {**META, **params.get("_meta", {})}}
    return write_message(number, method, params)


def write_template(wire: str, tool: str = "add") -> bytes:
    """A ``tools/call`` of ``add`` with two ``%d`` to fill in: its id and ``a``; ``b`` is 2."""
    params = {"name": tool, "arguments": {"a": 0, "b": 2}}
    body = write_request(wire, 0, "tools/call", params).replace(b"%", b"%%")
    return body.replace(b'"id":0', b'"id":%d').replace(b'"a":0', b'"a":%d')


def expected_sum(n: int) -> bytes:
    """What the answer to call number ``n`` holds: the sum."""
    return b"%d" % (n + 2)


def make_headers(
    wire: str, session: str = "", name: str = "add", method: str = "tools/call"
) -> dict[str, str]:
    """What a client sends beside a request: of ``add``, if nothing else is said."""
    found = {"Content-Type": "application/json", "Accept": BOTH}
    if wire == "modern":
        found |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
        if name:
            found["Mcp-Name"] = name
    else:
        found |= {"MCP-Protocol-Version": LEGACY}
        if session:
            found["Mcp-Session-Id"] = session
    return found


def connect(port: int) -> http.client.HTTPConnection:
    """A connection to a server of this machine; it opens with the first request."""
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def post(
    connection: http.client.HTTPConnection, body: bytes, head: dict[str, str]
) -> tuple[int, http.client.HTTPMessage, bytes]:
    """One POST, and its whole answer."""
    connection.request("POST", "/mcp", body, head)
    answer = connection.getresponse()
    return answer.status, answer.headers, answer.read()


def open_session(connection: http.client.HTTPConnection, token: str = "") -> str:
    """Shake hands as a legacy client; the session's id, or "" from a server without sessions."""
    own = {"Authorization": f"Bearer {token}"} if token else {}
    head = {"Content-Type": "application/json", "Accept": BOTH, **own}
    status, found, data = post(connection, INITIALIZE, head)
    if status != 200 or b"protocolVersion" not in data:
        raise RuntimeError(f"initialize: {status} {data[:300]!r}")
    session: str = found.get("mcp-session-id", "")
    post(connection, INITIALIZED, make_headers("legacy", session) | own)
    return session
