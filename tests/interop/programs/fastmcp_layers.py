"""A server of fastmcp with its ready-made middleware; a tool gives the lines that were logged, without times."""

import logging
import re
import uuid

from fastmcp import FastMCP
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.middleware.error_handling import ErrorHandlingMiddleware, RetryMiddleware
from fastmcp.server.middleware.logging import LoggingMiddleware, StructuredLoggingMiddleware
from fastmcp.server.middleware.rate_limiting import (
    RateLimitingMiddleware,
    SlidingWindowRateLimitingMiddleware,
)
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware
from fastmcp.server.middleware.timing import DetailedTimingMiddleware, TimingMiddleware

lines = []


class Keep(logging.Handler):
    """Keeps lines, each with its logger."""

    def emit(self, record):
        text = re.sub(r"\d+\.\d+", "#", record.getMessage())
        if "initialize" not in text and "discover" not in text:
            lines.append(f"{record.name} {record.levelname} {text}")


for name in ("timing", "timing.detailed", "middleware", "errors", "retry", "server.middleware"):
    logger = logging.getLogger(f"fastmcp.{name}")
    logger.setLevel(logging.INFO)
    logger.handlers = [Keep()]
    logger.propagate = False


def name_client(context):
    """One client for the tools that are limited, and another one for each other request."""
    tool = getattr(context.message, "name", "")
    return tool if tool in ("say_seldom", "say_once") else uuid.uuid4().hex


LOGGED = ["tools/call", "resources/read"]

mcp = FastMCP(
    "layers",
    middleware=[
        TimingMiddleware(),
        DetailedTimingMiddleware(),
        StructuredLoggingMiddleware(methods=LOGGED),
        LoggingMiddleware(methods=LOGGED, include_payloads=True, max_payload_length=40),
        ErrorHandlingMiddleware(),
        RateLimitingMiddleware(0.001, burst_capacity=2, get_client_id=name_client),
        SlidingWindowRateLimitingMiddleware(1, window_minutes=5, get_client_id=name_client),
        RetryMiddleware(max_retries=2, base_delay=0.001),
        ResponseLimitingMiddleware(max_size=200, tools=["long"]),
        ResponseCachingMiddleware(call_tool_settings={"excluded_tools": ["take_lines", "flaky"]}),
    ],
)

counts = {"count_calls": 0, "flaky": 0}


@mcp.tool
def take_lines() -> list[str]:
    """The lines until now."""
    found = lines.copy()
    lines.clear()
    return found


@mcp.tool
def count_calls(n: int) -> int:
    """Count the calls that came here."""
    counts["count_calls"] += n
    return counts["count_calls"]


@mcp.tool
def flaky() -> int:
    """Fail for a passing reason, once."""
    counts["flaky"] += 1
    if counts["flaky"] == 1:
        raise ConnectionError("gone")
    return counts["flaky"]


@mcp.tool
def say_seldom() -> str:
    """Say something, not too often."""
    return "say_seldom"


@mcp.tool
def say_once() -> str:
    """Say something, once."""
    return "say_once"


@mcp.tool
def long(n: int) -> str:
    """Say much."""
    return "é" * n


@mcp.tool
def fail(kind: str) -> str:
    """Raise an exception."""
    raise {"value": ValueError, "key": KeyError, "time": TimeoutError, "os": FileNotFoundError}[
        kind
    ](kind)


@mcp.resource("data://one")
def one() -> str:
    """A text."""
    return "1"


@mcp.resource("data://broken")
def read_lost() -> str:
    """Nothing."""
    raise FileNotFoundError("lost")


mcp.run(show_banner=False)
