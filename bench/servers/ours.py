"""Measured cases, on isthmus: ``CASE stdio``, or ``CASE http PORT json|sse``."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import samples
from msgspec import Struct

from isthmus import Accepted, Context, Server


class Person(Struct):
    """A record of about a hundred bytes."""

    id: int
    name: str
    email: str
    score: float
    tags: list[str]


class Text(Struct):
    """A form with one blank."""

    text: str


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def add_with_context(a: int, b: int, ctx: Context) -> int:
    """Add two numbers, and know who asks."""
    return a + b + bool(ctx.method == "")


def add_in_thread(a: int, b: int) -> int:
    """Add two numbers in a thread."""
    return a + b


async def add_structured(a: int, b: int) -> Person:
    """Add two numbers, into a record."""
    return Person(id=a + b, name="Ada", email="ada@example.org", score=0.5, tags=["x"])


def offer_add(server: Server, _size: int) -> None:
    """The smallest tool."""
    server.add_tool(add)


def offer_tools(server: Server, size: int) -> None:
    """As many tools as asked for."""
    for number in range(size):
        server.add_tool(add, name=f"add_{number}" if number else "add")


def offer_pages(server: Server, size: int) -> None:
    """As many tools as asked for, fifty to a page."""
    server.configure(page_size=50)
    offer_tools(server, size)


def offer_context(server: Server, _size: int) -> None:
    """The same sum by a tool with a context."""
    server.add_tool(add_with_context)


def offer_structured(server: Server, _size: int) -> None:
    """The same sum in a record."""
    server.add_tool(add_structured)


def offer_thread(server: Server, _size: int) -> None:
    """The same sum by a plain function, in a thread."""
    server.add_tool(add_in_thread)


def offer_on_loop(server: Server, _size: int) -> None:
    """The same sum by a plain function that does not block."""
    server.add_tool(add_in_thread, name="add_on_loop", blocking=False)


def offer_middleware(server: Server, _size: int) -> None:
    """The smallest tool behind three layers that do nothing."""
    for _ in range(3):

        @server.use
        async def go_on(inbound: Any, call_next: Any) -> Any:
            return await call_next(inbound)

    server.add_tool(add)


def offer_payload(server: Server, _size: int) -> None:
    """Strings and lists of records, in and out."""

    @server.tool
    async def take_text(text: str) -> int:
        return len(text)

    @server.tool
    async def give_text(size: int) -> str:
        return samples.make_text(size)

    @server.tool
    async def give_document(size: int) -> str:
        return samples.make_text(size, samples.DOCUMENT)

    @server.tool
    async def take_structs(people: list[Person]) -> int:
        return len(people)

    @server.tool
    async def take_dicts(people: list[dict[str, Any]]) -> int:
        return len(people)

    @server.tool
    async def take_strings(words: list[Any]) -> int:
        return len(words)

    made: dict[int, list[Person]] = {}

    async def give_structs(count: int) -> list[Person]:
        if count not in made:
            made[count] = [Person(**record) for record in samples.make_people(count)]
        return made[count]

    server.add_tool(give_structs)
    server.add_tool(give_structs, name="give_data", text=False)


def offer_templates(server: Server, size: int) -> None:
    """As many resource templates as asked for."""
    for number in range(size):

        @server.resource(f"note{number}://{{name}}", name=f"note {number}")
        async def note(name: str) -> str:
            return name


def offer_blob(server: Server, size: int) -> None:
    """A resource of so many megabytes, and a tool that says how long the loop was blocked."""
    blob = samples.make_bytes(size << 20)
    gaps = samples.LoopGaps()

    @server.resource("blob://big", mime_type="application/octet-stream")
    async def big() -> bytes:
        return blob

    server.add_tool(gaps.watch)
    server.add_tool(gaps.longest_ms)


def offer_progress(server: Server, _size: int) -> None:
    """A tool that reports as often as asked for."""

    @server.tool
    async def report(times: int, ctx: Context) -> int:
        for number in range(1, times + 1):
            await ctx.progress(number, times)
        return times


def offer_waiting(server: Server, _size: int) -> None:
    """A tool that takes its time without a thread."""

    @server.tool
    async def pause(ms: int, text: str = "") -> int:
        await asyncio.sleep(ms / 1000)
        return len(text)


def offer_blocking(server: Server, _size: int) -> None:
    """Tools that keep a thread: for some milliseconds, for nearly none, and until a user answers."""

    @server.tool
    def block(ms: int) -> int:
        time.sleep(ms / 1000)
        return ms

    @server.tool
    def quick() -> int:
        return 1

    @server.tool
    def ask(ctx: Context) -> int:
        return int(isinstance(ctx.wait(ctx.elicit("Go on?")), Accepted))


def offer_asking(server: Server, _size: int) -> None:
    """A tool that asks as often as it is told, one question after the other."""
    server.configure(max_rounds=1_000)

    @server.tool
    async def ask(times: int, ctx: Context) -> int:
        return sum([isinstance(await ctx.elicit(f"Question {n}?"), Accepted) for n in range(times)])

    @server.tool
    async def ask_texts(times: int, ctx: Context) -> int:
        return sum(
            [isinstance(await ctx.elicit(f"Text {n}?", Text), Accepted) for n in range(times)]
        )


def offer_updates(server: Server, _size: int) -> None:
    """A resource that changes, and a tool that says what telling of it costs."""

    @server.resource("note://one")
    async def note() -> str:
        return "text"

    @server.tool
    async def touch(times: int) -> float:
        began = time.process_time()
        for _ in range(times):
            server.notify_resource_updated("note://one")
        return (time.process_time() - began) / times * 1e6


@asynccontextmanager
async def keep_state(_server: Server) -> AsyncIterator[dict[str, int]]:
    """A lifespan with something in it."""
    yield {"answer": 42}


CASES: dict[str, Callable[[Server, int], None]] = {
    "add": offer_add,
    "lifespan": offer_add,
    "auth": offer_add,
    "expiring": offer_add,
    "tools": offer_tools,
    "pages": offer_pages,
    "add_with_context": offer_context,
    "add_structured": offer_structured,
    "add_in_thread": offer_thread,
    "add_on_loop": offer_on_loop,
    "middleware": offer_middleware,
    "payload": offer_payload,
    "templates": offer_templates,
    "blob": offer_blob,
    "progress": offer_progress,
    "waiting": offer_waiting,
    "blocking": offer_blocking,
    "asking": offer_asking,
    "updates": offer_updates,
}


def make_server(case: str, size: str) -> Server:
    """The server of one case."""
    more: dict[str, Any] = {"lifespan": keep_state} if case == "lifespan" else {}
    if case == "auth":
        more["auth"] = make_auth(size)
    server = Server("bench", version="1", **more)
    CASES[case](server, int(size) if size.isdecimal() else 0)
    return server


def make_auth(kind: str) -> Any:
    """A guard for fixed tokens, as many as the kind says, or for tokens that an issuer signed."""
    from isthmus.auth import JWTVerifier, Principal, ResourceAuth, StaticTokens

    verifier: Any
    if kind.startswith("es256:"):
        key = samples.read_public_key(kind)
        verifier = JWTVerifier(samples.ISSUER, jwks=[key], algorithms=("ES256",))
    else:
        who = Principal(issuer=samples.ISSUER, subject="ada", scopes=frozenset({"use"}))
        verifier = StaticTokens({samples.make_token(n): who for n in range(int(kind))})
    return ResourceAuth(samples.RESOURCE, [samples.ISSUER], verifier, scopes={"use"})


def main() -> None:
    """Serve the case that the command line names."""
    case, _, size = sys.argv[1].partition("=")
    server = make_server(case, size)
    if sys.argv[2] == "stdio":
        server.run()
        return
    options: dict[str, Any] = {"stream_answers": sys.argv[4] == "sse"}
    if case == "expiring":
        options["session_idle"] = 1.0
    if case == "updates":
        options["max_sessions"] = 100_000
    if case == "auth":
        options["allowed_hosts"] = ["127.0.0.1"]
    server.run("http", port=int(sys.argv[3]), **options)


if __name__ == "__main__":
    main()
