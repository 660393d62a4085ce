"""Measured cases, on the PyPI package ``mcp``: ``CASE stdio``, or ``CASE http PORT json|sse``.

Served as its users would to be fast: uvicorn with uvloop and httptools, no access log.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import samples
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel


class Person(BaseModel):
    """A record of about a hundred bytes."""

    id: int
    name: str
    email: str
    score: float
    tags: list[str]


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_with_context(a: int, b: int, ctx: Context) -> int:
    """Add two numbers, and know who asks."""
    return a + b + bool(ctx.request_id == "")


def add_in_thread(a: int, b: int) -> int:
    """Add two numbers in a thread."""
    return a + b


async def add_structured(a: int, b: int) -> Person:
    """Add two numbers, into a record."""
    return Person(id=a + b, name="Ada", email="ada@example.org", score=0.5, tags=["x"])


def offer_add(server: MCPServer, _size: int) -> None:
    """The smallest tool."""
    server.add_tool(add)


def offer_tools(server: MCPServer, size: int) -> None:
    """As many tools as asked for."""
    for number in range(size):
        server.add_tool(add, name=f"add_{number}" if number else "add")


def offer_context(server: MCPServer, _size: int) -> None:
    """The same sum by a tool with a context."""
    server.add_tool(add_with_context)


def offer_structured(server: MCPServer, _size: int) -> None:
    """The same sum in a record."""
    server.add_tool(add_structured)


def offer_thread(server: MCPServer, _size: int) -> None:
    """The same sum by a plain function, in a thread."""
    server.add_tool(add_in_thread)


def offer_middleware(server: MCPServer, _size: int) -> None:
    """The smallest tool behind three layers that do nothing."""

    async def go_on(ctx: Any, call_next: Any) -> Any:
        return await call_next(ctx)

    server.middleware.extend([go_on] * 3)
    server.add_tool(add)


def offer_payload(server: MCPServer, _size: int) -> None:
    """Strings and lists of records, in and out."""

    @server.tool()
    async def take_text(text: str) -> int:
        return len(text)

    @server.tool()
    async def give_text(size: int) -> str:
        return samples.make_text(size)

    @server.tool()
    async def give_document(size: int) -> str:
        return samples.make_text(size, samples.DOCUMENT)

    @server.tool()
    async def take_structs(people: list[Person]) -> int:
        return len(people)

    @server.tool()
    async def take_dicts(people: list[dict[str, Any]]) -> int:
        return len(people)

    @server.tool()
    async def take_strings(words: list[Any]) -> int:
        return len(words)

    made: dict[int, list[Person]] = {}

    @server.tool()
    async def give_structs(count: int) -> list[Person]:
        if count not in made:
            made[count] = [Person(**record) for record in samples.make_people(count)]
        return made[count]


def offer_templates(server: MCPServer, size: int) -> None:
    """As many resource templates as asked for."""
    for number in range(size):

        @server.resource(f"note{number}://{{name}}", name=f"note {number}")
        async def note(name: str) -> str:
            return name


def offer_blob(server: MCPServer, size: int) -> None:
    """A resource of so many megabytes, and a tool that says how long the loop was blocked."""
    blob = samples.make_bytes(size << 20)
    gaps = samples.LoopGaps()

    @server.resource("blob://big", mime_type="application/octet-stream")
    async def big() -> bytes:
        return blob

    server.add_tool(gaps.watch)
    server.add_tool(gaps.longest_ms)


def offer_progress(server: MCPServer, _size: int) -> None:
    """A tool that reports as often as asked for."""

    @server.tool()
    async def report(times: int, ctx: Context) -> int:
        for number in range(1, times + 1):
            await ctx.report_progress(number, times)
        return times


def offer_waiting(server: MCPServer, _size: int) -> None:
    """A tool that takes its time without a thread."""

    @server.tool()
    async def pause(ms: int, text: str = "") -> int:
        await asyncio.sleep(ms / 1000)
        return len(text)


def offer_blocking(server: MCPServer, _size: int) -> None:
    """A tool that keeps a thread for some milliseconds, and one that keeps it for nearly none."""

    @server.tool()
    def block(ms: int) -> int:
        time.sleep(ms / 1000)
        return ms

    @server.tool()
    def quick() -> int:
        return 1


@asynccontextmanager
async def keep_state(_server: MCPServer) -> AsyncIterator[dict[str, int]]:
    """A lifespan with something in it."""
    yield {"answer": 42}


CASES: dict[str, Callable[[MCPServer, int], None]] = {
    "add": offer_add,
    "lifespan": offer_add,
    "auth": offer_add,
    "expiring": offer_add,
    "tools": offer_tools,
    "add_with_context": offer_context,
    "add_structured": offer_structured,
    "add_in_thread": offer_thread,
    "middleware": offer_middleware,
    "payload": offer_payload,
    "templates": offer_templates,
    "blob": offer_blob,
    "progress": offer_progress,
    "waiting": offer_waiting,
    "blocking": offer_blocking,
}


def make_auth(size: int) -> dict[str, Any]:
    """A guard for so many fixed tokens."""
    from mcp.server.auth.provider import AccessToken, TokenVerifier
    from mcp.server.auth.settings import AuthSettings

    known = {samples.make_token(number) for number in range(size)}

    class FixedTokens(TokenVerifier):
        """Fixed tokens, looked up."""

        async def verify_token(self, token: str) -> AccessToken | None:
            """What is known of a token."""
            if token not in known:
                return None
            return AccessToken(
                token=token, client_id="bench", scopes=["use"], resource=samples.RESOURCE
            )

    settings = AuthSettings(
        issuer_url=samples.ISSUER,
        resource_server_url=samples.RESOURCE,
        required_scopes=["use"],
        validate_token_resource=False,
    )
    return {"token_verifier": FixedTokens(), "auth": settings}


def main() -> None:
    """Serve the case that the command line names."""
    case, _, size = sys.argv[1].partition("=")
    more: dict[str, Any] = {"lifespan": keep_state} if case == "lifespan" else {}
    if case == "auth":
        more |= make_auth(int(size))
    server = MCPServer("bench", **more)
    CASES[case](server, int(size or 0))
    if sys.argv[2] == "stdio":
        server.run("stdio")
        return
    import uvicorn

    options: dict[str, Any] = {"json_response": sys.argv[4] == "json"}
    if case == "expiring":
        options["session_idle_timeout"] = 1.0
    uvicorn.run(
        server.streamable_http_app(**options),
        port=int(sys.argv[3]),
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main()
