"""A server of fastmcp whose components have checks of their own, over HTTP at the port that is given."""

import sys

from fastmcp import FastMCP
from fastmcp.exceptions import AuthorizationError
from fastmcp.server.auth import StaticTokenVerifier, require_scopes, restrict_tag
from fastmcp.server.middleware import AuthMiddleware
from fastmcp.tools import Tool

TOKENS = {
    "reader": {"client_id": "ada", "scopes": ["read"], "team": "a"},
    "writer": {"client_id": "bob", "scopes": ["read", "write"], "team": "b"},
    "admin": {"client_id": "eve", "scopes": ["read", "write", "admin"], "team": "a"},
}

kind, port = sys.argv[1:]
mcp = FastMCP("checks", auth=StaticTokenVerifier(TOKENS))
if kind == "layer":
    mcp.add_middleware(AuthMiddleware(auth=restrict_tag("admin", scopes=["admin"])))
    mcp.add_middleware(AuthMiddleware(auth=[require_scopes("write"), require_scopes("read")]))


def is_of_team(context):
    """Whether the caller is of a team."""
    return context.token.claims["team"] == "a"


async def refuses(context):
    """Refuse in words of its own."""
    raise AuthorizationError(f"not for {context.component.name}")


@mcp.tool
def free() -> str:
    """Whoever asks."""
    return "free"


@mcp.tool(auth=require_scopes("write"))
def write(text: str) -> str:
    """With a scope."""
    return text


@mcp.tool(auth=[require_scopes("read"), is_of_team], tags={"admin"})
def team() -> str:
    """With a scope, and of a team."""
    return "team"


@mcp.tool(auth=refuses)
def nobody() -> str:
    """For nobody."""
    return "never"


mcp.add_tool(
    Tool.from_tool(
        write_tool := Tool.from_function(write, name="raw", auth=require_scopes("admin")),
        name="renamed",
    )
)
mcp.add_tool(write_tool)


@mcp.resource("data://secret", auth=require_scopes("admin"))
def secret() -> str:
    """With a scope."""
    return "secret"


@mcp.resource("data://{name}", auth=require_scopes("write"))
def read_named(name: str) -> str:
    """A template with a scope."""
    return name


@mcp.prompt(auth=require_scopes("admin"))
def ask(topic: str) -> str:
    """With a scope."""
    return topic


inner = FastMCP("inner")


@inner.tool(auth=require_scopes("admin"))
def deep() -> str:
    """With a scope, in a mounted server."""
    return "deep"


@inner.resource("data://deep", auth=require_scopes("admin"))
def deep_data() -> str:
    """With a scope, in a mounted server."""
    return "deep"


mcp.mount(inner, namespace="sub")

mcp.run("http", port=int(port), show_banner=False)
