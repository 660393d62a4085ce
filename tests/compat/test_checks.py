"""Checks of single components of servers that were written for fastmcp: whom one does not admit neither sees nor uses it."""

import sys

import pytest

from isthmus import Client, Server
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.compat.fastmcp import FastMCP
from isthmus.compat.fastmcp.exceptions import NotFoundError
from isthmus.compat.fastmcp.server.auth import (
    StaticTokenVerifier,
    require_roles,
    require_scopes,
    restrict_tag,
)
from isthmus.compat.fastmcp.server.middleware import AuthMiddleware
from isthmus.compat.fastmcp.server.middleware.caching import ResponseCachingMiddleware
from isthmus.compat.fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from isthmus.compat.fastmcp.tools import Tool
from isthmus.errors import IsthmusError, UsageError
from isthmus.transports.command import Command
from support.http.uvicorn_server import serve_uvicorn

REVISIONS = ["2025-11-25", "2026-07-28"]

TOKENS = {
    "reader": {"client_id": "ada", "scopes": ["read"], "groups": "staff"},
    "admin": {"client_id": "eve", "scopes": ["read", "admin"], "groups": ["staff", "chiefs"]},
}


def tell_secret() -> str:
    """Tell it."""
    return "the secret"


def fail(context):
    """Check that is broken."""
    raise RuntimeError("the directory is down")


async def is_chief(context):
    """Check that waits."""
    return "chiefs" in context.token.claims["groups"]


CHECKS = {
    "scope": require_scopes("admin"),
    "several": [require_scopes("read"), require_scopes("admin")],
    "role": require_roles("chiefs", extract=lambda claims: claims["groups"]),
    "async": is_chief,
}


def make_injecting(check):
    server = FastMCP("shop", auth=StaticTokenVerifier(TOKENS))
    tool = Tool.from_function(tell_secret, auth=check)
    server.add_middleware(ToolInjectionMiddleware([tool]))
    return server


def make_mounting(check):
    server, inner = FastMCP("shop", auth=StaticTokenVerifier(TOKENS)), FastMCP("inner")
    inner.tool(tell_secret, auth=check)
    server.mount(inner)
    return server


def make_own(check):
    server = FastMCP("shop", auth=StaticTokenVerifier(TOKENS))
    server.tool(tell_secret, auth=check)
    return server


def make_layered(check):
    server = FastMCP("shop", auth=StaticTokenVerifier(TOKENS))
    server.tool(tell_secret)
    server.add_middleware(AuthMiddleware(check))
    return server


def make_transformed(check):
    server = FastMCP("shop", auth=StaticTokenVerifier(TOKENS))
    whole = Tool.from_function(tell_secret, name="whole", auth=check)
    server.add_tool(Tool.from_tool(whole, name="tell_secret"))
    return server


def make_cached(check):
    server = make_own(check)
    server.add_middleware(ResponseCachingMiddleware())
    return server


MAKERS = {
    "own": make_own,
    "injected": make_injecting,
    "mounted": make_mounting,
    "layered": make_layered,
    "transformed": make_transformed,
    "cached": make_cached,
}


async def use_as(port, caller, revision):
    """The names of the tools that a caller sees, and the text of its call."""
    url = f"http://127.0.0.1:{port}/mcp"
    async with Client(url, auth=BearerToken(caller), revision=revision) as client:
        listed = [one.name for one in await client.list_tools()]
        return listed, (await client.call_tool("tell_secret")).text


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", MAKERS)
async def test_only_whom_a_check_admits_sees_and_calls_a_tool(kind, revision):
    """Ours: an admitted caller first, so that nothing that is kept for it reaches the other."""
    server = MAKERS[kind](CHECKS["scope"])
    async with serve_uvicorn(server.server.asgi(), "auto") as port:
        admitted = await use_as(port, "admin", revision)
        listed, text = await use_as(port, "reader", revision)

    assert admitted == (["tell_secret"], "the secret")
    assert listed == []
    assert "the secret" not in text


@pytest.mark.parametrize("check", CHECKS)
async def test_a_check_may_ask_for_scopes_roles_or_anything(check):
    """Ours: a role that stands alone as text is one role."""
    async with serve_uvicorn(make_own(CHECKS[check]).server.asgi(), "auto") as port:
        admitted = await use_as(port, "admin", REVISIONS[0])
        refused = await use_as(port, "reader", REVISIONS[0])

    assert admitted == (["tell_secret"], "the secret")
    assert refused == ([], "Unknown tool: 'tell_secret'")


async def test_a_check_that_fails_admits_nobody():
    """Ours: as fastmcp does it."""
    async with serve_uvicorn(make_own(fail).server.asgi(), "auto") as port:
        assert await use_as(port, "admin", REVISIONS[0]) == ([], "Unknown tool: 'tell_secret'")


async def test_a_resource_that_is_not_for_a_caller_is_not_read_by_a_template_in_its_place():
    """Ours: the template would have it."""
    server = FastMCP("shop", auth=StaticTokenVerifier(TOKENS))
    server.resource("data://plans", auth=require_scopes("admin"))(tell_secret)
    server.resource("data://{name}")(lambda name: f"the {name}")
    async with serve_uvicorn(server.server.asgi(), "auto") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client(url, auth=BearerToken("reader"), revision=REVISIONS[0]) as client:
            with pytest.raises(IsthmusError, match="not found"):
                await client.read_resource("data://plans")
            assert (await client.read_resource("data://others")).contents[0].text == "the others"


async def test_nobody_has_a_token_in_memory():
    """Ours: what takes one is not there then, for a program that calls itself, too."""
    server = make_own(require_scopes("admin"))

    assert await server.list_tools() == []
    with pytest.raises(NotFoundError):
        await server.call_tool("tell_secret")


PROGRAM = """
from isthmus.compat.fastmcp import FastMCP
from isthmus.compat.fastmcp.server.auth import require_scopes
from isthmus.compat.fastmcp.server.middleware import AuthMiddleware

mcp = FastMCP("shop", middleware=[AuthMiddleware(require_scopes("admin"))])
mcp.tool(lambda: "the secret", name="tell", auth=require_scopes("admin"))
mcp.run()
"""


async def test_whoever_starts_a_server_may_use_all_of_it():
    """Ours: checks do not apply over pipes, as under fastmcp."""
    async with Client(Command(sys.executable, "-c", PROGRAM)) as client:
        assert [one.name for one in await client.list_tools()] == ["tell"]
        assert (await client.call_tool("tell")).text == "the secret"


async def test_imported_components_keep_their_checks():
    """Ours: they are copied although nobody asks just then, and are checked when somebody does."""
    server, other = FastMCP("shop"), make_own(require_scopes("admin"))

    await server.import_server(other)

    assert server.registry.own["tool"]["tell_secret"].auth is not None
    assert await server.list_tools() == []


@pytest.mark.parametrize("order", ["layer first", "layer last", "mounted"])
def test_a_layer_that_cannot_guard_everything_ends_the_program(order):
    """Ours: what a proxy lists passes by the layer."""
    server, layer = FastMCP("shop"), AuthMiddleware(restrict_tag("x", scopes=["y"]))
    native = Server("native")

    def build():
        if order == "layer first":
            server.add_middleware(layer)
            server.add_native(native)
        elif order == "layer last":
            server.mount(native, "n")
            server.add_middleware(layer)
        else:
            inner = FastMCP("inner")
            inner.add_native(native)
            server.add_middleware(layer)
            server.mount(inner, "i")

    with pytest.raises(UsageError, match=r"would not see .* lists"):
        build()


@pytest.mark.parametrize("auth", ["admin", ["admin"], {"scopes": 1}])
def test_what_is_no_check_is_refused(auth):
    """Ours: it is said at once, and where."""
    with pytest.raises(UsageError, match="of the tool 'tell_secret' takes a function"):
        FastMCP("shop").tool(tell_secret, auth=auth)
    with pytest.raises(UsageError, match="of AuthMiddleware takes a function"):
        AuthMiddleware(auth)
