"""Semantic conventions of OpenTelemetry for MCP: the names of attributes and metrics, in one place.

From open-telemetry/semantic-conventions-genai, docs/gen-ai/mcp.md and model/mcp/*.yaml as they were
read on 2026-11-23 (status: Development; the names have moved before, so only this file has them).
"""

METHOD_NAME = "mcp.method.name"
PROTOCOL_VERSION = "mcp.protocol.version"
SESSION_ID = "mcp.session.id"
RESOURCE_URI = "mcp.resource.uri"

TOOL_NAME = "gen_ai.tool.name"
PROMPT_NAME = "gen_ai.prompt.name"
OPERATION_NAME = "gen_ai.operation.name"
EXECUTE_TOOL = "execute_tool"
TOOL_ARGUMENTS = "gen_ai.tool.call.arguments"
TOOL_RESULT = "gen_ai.tool.call.result"
PROMPT_VARIABLE = "gen_ai.prompt.variable."

REQUEST_ID = "jsonrpc.request.id"
STATUS_CODE = "rpc.response.status_code"
ERROR_TYPE = "error.type"
TOOL_ERROR = "tool_error"
OTHER = "_OTHER"

NETWORK_TRANSPORT = "network.transport"
NETWORK_PROTOCOL = "network.protocol.name"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"

CANCELLED = "isthmus.cancelled"  # of ours: a request that its client withdrew is no error

SERVER_OPERATION_DURATION = "mcp.server.operation.duration"
CLIENT_OPERATION_DURATION = "mcp.client.operation.duration"
SERVER_SESSION_DURATION = "mcp.server.session.duration"
CLIENT_SESSION_DURATION = "mcp.client.session.duration"

DESCRIPTIONS = {
    SERVER_OPERATION_DURATION: "Duration of an MCP request or notification, as its receiver sees it",
    CLIENT_OPERATION_DURATION: "Duration of an MCP request or notification, as its sender sees it",
    SERVER_SESSION_DURATION: "Duration of an MCP session, as the server sees it",
    CLIENT_SESSION_DURATION: "Duration of an MCP session, as the client sees it",
}

DURATION_BUCKETS_S = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)

# On the side that serves: the caller sent what cannot be served, and nothing failed here.
CALLERS_FAULT_CODES = frozenset({-32700, -32600, -32601, -32602, -32002})

NAMED_METHODS = {"tools/call": TOOL_NAME, "prompts/get": PROMPT_NAME}
URI_METHODS = frozenset(
    {
        *("resources/read", "resources/subscribe", "resources/unsubscribe"),
        "notifications/resources/updated",
    }
)

NETWORKS = {
    "stdio": {NETWORK_TRANSPORT: "pipe"},
    "http": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "http"},
    "https": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "http"},
    "http+sse": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "http"},
    "websocket": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "websocket"},
    "ws": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "websocket"},
    "wss": {NETWORK_TRANSPORT: "tcp", NETWORK_PROTOCOL: "websocket"},
    "tcp": {NETWORK_TRANSPORT: "tcp"},
    "unix": {NETWORK_TRANSPORT: "unix"},
}
"""Attributes by the transport that a message came by, or the scheme of a URL; none in memory."""
