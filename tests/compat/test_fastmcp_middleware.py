"""Ready-made middleware of fastmcp, on isthmus' server."""

import logging

import pytest

from isthmus.client import Client as OwnClient
from isthmus.compat.fastmcp import Client, Context, FastMCP
from isthmus.compat.fastmcp.exceptions import ToolError as FacadeToolError
from isthmus.compat.fastmcp.server.auth import StaticTokenVerifier
from isthmus.compat.fastmcp.server.dependencies import get_access_token
from isthmus.compat.fastmcp.server.middleware import Middleware, PingMiddleware
from isthmus.compat.fastmcp.server.middleware.caching import ResponseCachingMiddleware
from isthmus.compat.fastmcp.server.middleware.error_handling import (
    ErrorHandlingMiddleware,
    RetryMiddleware,
)
from isthmus.compat.fastmcp.server.middleware.logging import LoggingMiddleware
from isthmus.compat.fastmcp.server.middleware.rate_limiting import (
    ClientLimiters,
    RateLimitingMiddleware,
    SlidingWindowRateLimitingMiddleware,
)
from isthmus.compat.fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from isthmus.compat.fastmcp.server.middleware.timing import TimingMiddleware
from isthmus.compat.fastmcp.server.middleware.tool_injection import ToolInjectionMiddleware
from isthmus.compat.fastmcp.tools import Tool
from isthmus.core.answers import Accepted
from isthmus.errors import IsthmusError, UsageError
from support.http.uvicorn_server import serve_uvicorn


def make_server(*layers):
    """A server with layers, and a tool that counts its calls."""
    mcp = FastMCP("layered", middleware=[*layers])
    calls = []

    @mcp.tool
    def count(step: int = 1) -> int:
        calls.append(step)
        return len(calls)

    return mcp, calls


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (RateLimitingMiddleware(0.001, 2), "Rate limit exceeded for client: global"),
        (RateLimitingMiddleware(0.001, 2, global_limit=True), "Global rate limit exceeded"),
        (
            SlidingWindowRateLimitingMiddleware(2, window_minutes=3),
            "Rate limit exceeded: 2 requests per 3 minutes for client: global",
        ),
    ],
)
async def test_too_many_requests_are_refused(layer, words):
    """Ours: with the code and the words of fastmcp."""
    mcp, calls = make_server(layer)
    async with OwnClient(mcp.server) as client:
        await client.call_tool("count")
        await client.call_tool("count")
        with pytest.raises(IsthmusError, match=words) as refusal:
            await client.call_tool("count")
    assert refusal.value.code == -32000
    assert len(calls) == 2


def test_an_idle_client_is_forgotten_and_a_busy_one_is_not():
    """Ours: names that come with requests do not fill the memory, and a limit outlives other clients."""
    limiters = ClientLimiters(object, idle_s=0)
    for number in range(1000):
        limiters.find_limiter(str(number))
    lasting = ClientLimiters(object, idle_s=None)
    first = lasting.find_limiter("a")
    lasting.find_limiter("b")

    assert len(limiters.limiters) <= 64
    assert lasting.find_limiter("a") is first


async def test_a_failure_is_translated_logged_and_counted(caplog):
    """Ours: by the exception that caused it; the callback may fail itself."""
    layer = ErrorHandlingMiddleware(error_callback=lambda *_: 1 / 0)
    mcp, _ = make_server(layer)

    @mcp.tool
    def forbidden() -> None:
        raise PermissionError("not you")

    async with OwnClient(mcp.server) as client:
        with pytest.raises(IsthmusError, match=r"Permission denied: .*not you") as refusal:
            await client.call_tool("forbidden")

    assert refusal.value.code == -32000
    assert layer.get_error_stats() == {"ToolError:tools/call": 1}
    assert "Error in error callback: division by zero" in caplog.text


async def test_a_passing_failure_is_tried_again():
    """Ours: as often as was said, and not for other reasons."""
    mcp, _ = make_server(RetryMiddleware(max_retries=2, base_delay=0))
    tries = []

    @mcp.tool
    def fail(passing: bool) -> None:
        tries.append(passing)
        raise ConnectionError("gone") if passing else ValueError("bad")

    async with Client(mcp) as client:
        await client.call_tool("fail", {"passing": True}, raise_on_error=False)
        await client.call_tool("fail", {"passing": False}, raise_on_error=False)
    assert tries == [True, True, True, False]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_answers_are_kept_but_not_those_of_a_user(era):
    """Ours: a call that asked its user is made again, in both eras."""
    mcp, _ = make_server(ResponseCachingMiddleware())

    @mcp.tool
    async def ask(ctx: Context) -> str:
        return (await ctx.elicit("Who?", str)).data

    answers = [Accepted({"value": "ada"}), Accepted({"value": "bob"})]
    async with OwnClient(mcp.server, era=era, elicit=lambda _: answers.pop(0)) as client:
        assert [(await client.call_tool("ask")).text for _ in range(2)] == ["ada", "bob"]
        assert [(await client.call_tool("count")).text for _ in range(2)] == ["1", "1"]
        assert (await client.call_tool("count", {"step": 2})).text == "2"


async def test_answers_are_kept_for_each_caller():
    """Ours: nobody is given what somebody else asked for."""
    tokens = {name: {"client_id": "same", "scopes": []} for name in ("ada", "bob")}
    mcp = FastMCP("s", auth=StaticTokenVerifier(tokens), middleware=[ResponseCachingMiddleware()])

    @mcp.tool
    def who() -> str:
        return get_access_token().token

    async with serve_uvicorn(mcp.http_app(), "auto") as port:
        found = []
        for token in ("ada", "bob", "ada"):
            headers = {"Authorization": f"Bearer {token}"}
            async with OwnClient(f"http://127.0.0.1:{port}/mcp", headers=headers) as client:
                found.append((await client.call_tool("who")).text)
    assert found == ["ada", "bob", "ada"]


async def test_a_long_result_is_cut():
    """Ours: whole characters, and the suffix."""
    mcp, _ = make_server(ResponseLimitingMiddleware(max_size=200, truncation_suffix="…"))

    @mcp.tool
    def long() -> str:
        return "é" * 200

    async with Client(mcp) as client:
        result = await client.call_tool("long")
        listed = {one.name: one for one in await client.list_tools()}
    assert result.content[0].text == "é" * 73 + "…"
    assert result.structured_content is None
    assert listed["long"].output_schema is None


async def test_lines_are_logged_on_the_loggers_of_fastmcp(caplog):
    """Ours: so that handlers of a program find them."""
    mcp, _ = make_server(TimingMiddleware(), LoggingMiddleware(methods=["tools/call"]))
    with caplog.at_level(logging.INFO):
        async with Client(mcp) as client:
            await client.call_tool("count")
    said = [(one.name, one.getMessage().split(" in ")[0]) for one in caplog.records]

    assert ("fastmcp.timing", "Request tools/call completed") in said
    assert (
        "fastmcp.middleware.logging",
        "event=request_start method=tools/call source=client",
    ) in said


async def test_a_tool_of_a_layer_goes_before_one_of_the_server():
    """Ours: as ToolInjectionMiddleware of fastmcp has it."""

    def count() -> str:
        return "injected"

    mcp, calls = make_server(ToolInjectionMiddleware([Tool.from_function(count)]))
    async with Client(mcp) as client:
        assert (await client.call_tool("count")).data == "injected"
        assert [one.name for one in await client.list_tools()] == ["count"]
    assert calls == []


def test_pings_are_those_of_isthmus():
    """Ours: a server pings as often as its layer says."""
    mcp, _ = make_server(PingMiddleware(interval_ms=1500))

    assert mcp.server._pings.every == 1.5
    with pytest.raises(ValueError, match="positive"):
        PingMiddleware(interval_ms=0)


def test_answers_cannot_be_kept_in_a_store_of_fastmcp():
    """Ours: the error names what isthmus has."""
    with pytest.raises(UsageError, match=r"isthmus\.server\.middleware\.Caching"):
        ResponseCachingMiddleware(cache_storage=object())


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_guard_stands_before_a_proxy_too(revision):
    """Ours: middleware runs around calls of what isthmus itself offers, so that none of them gets past it."""

    class Guard(Middleware):
        async def on_call_tool(self, context, call_next):
            if context.message.arguments.get("step") == 2:
                raise FacadeToolError("not two")
            return await call_next(context)

    inner, calls = make_server()
    outer = FastMCP.as_proxy(inner)
    outer.add_middleware(Guard())

    async with OwnClient(outer.server, revision=revision) as client:
        assert (await client.call_tool("count", {"step": 1})).text == "1"
        with pytest.raises(IsthmusError, match="not two"):
            await client.call_tool("count", {"step": 2})
    assert calls == [1]


def test_a_proxy_with_middleware_cannot_be_mounted():
    """Ours: its middleware would not run there."""
    inner, _ = make_server()
    proxy = FastMCP.as_proxy(inner, middleware=[TimingMiddleware()])

    with pytest.raises(UsageError, match="would not run"):
        FastMCP("outer").mount(proxy, "x")
