"""Ten thousand visits to one server: ``python tests/soak/run.py [--visits 10000] [--seconds 3]``.

Clients connect over every transport and in every revision, call, ask, cancel, listen, hang up in
the middle of a call, and cut raw connections in the middle of a request. A few hundred of them
launch a process of their own, and some come to a server where one logs in. In the end nothing may
be left over: memory is flat after the warm-up, no task, descriptor or process of it is left, no
token or password either, and no tool still runs. Then a server is called over stdio as fast as it
answers, for so many seconds of each kind of call (``full_speed.py``). Ends with 0 where that holds,
with 1 and what leaked or failed where it does not.
"""

import argparse
import asyncio
import contextlib
import gc
import logging
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import full_speed
import guarded

from isthmus import Accepted, Client, Command, Context, HttpSse, Server
from isthmus.core.redaction.live_secrets import list_live_secrets
from isthmus.errors import ConnectionLost, Refused
from isthmus.revisions import BY_NAME, REVISIONS, Feature
from isthmus.testing import TRANSPORTS, connect, serving

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "hello.py"
WARM = 0.3
"""The part of the visits after which memory must be flat."""

GROWTH = 8 * 1024
"""KiB it may still grow by: what the allocator and the caches of ten thousand visits need, and what
an authorization server keeps for days of each who logged in."""

TOGETHER = 100
"""Visits at the same time."""

LAUNCHES = 100
"""One of so many visits launches a process."""

GUARDED = 50
"""One of so many visits is of the server where one logs in."""


@dataclass
class Amount:
    """What the user is asked for."""

    count: int


class Shop:
    """The server that is visited.

    Attributes:
        running: how many calls of the tool that never ends are running now.
        started: set by each of them, under the name it was given.
    """

    def __init__(self) -> None:
        self.server = Server("soak", version="1")
        self.running = 0
        self.started: dict[str, asyncio.Event] = {}
        self.server.tool(self.echo)
        self.server.tool(self.endless)
        self.server.tool(self.ask)
        self.server.tool(self.tell)

    async def echo(self, text: str) -> str:
        """Give it back."""
        return text

    async def endless(self, name: str) -> str:
        """Work until somebody stops it."""
        self.running += 1
        self.started[name].set()
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
        return ""

    async def ask(self, ctx: Context) -> str:
        """Ask the user."""
        return str(await ctx.elicit("How many?", Amount))

    async def tell(self, ctx: Context) -> str:
        """Say how far it is."""
        for step in range(5):
            await ctx.progress(step + 1, 5)
            ctx.log.info("step", number=step)
        return "told"


async def calls(client: Client, shop: Shop) -> None:
    """List and call."""
    await client.list_tools()
    for number in range(3):
        result = await client.call_tool("echo", {"text": "x" * number * 100})
        assert "x" * number * 100 == result.text


async def begun(client: Client, shop: Shop) -> asyncio.Task[object]:
    """A call that has begun and does not end."""
    name = os.urandom(8).hex()
    started = shop.started[name] = asyncio.Event()
    call = asyncio.create_task(client.call_tool("endless", {"name": name}))
    await started.wait()
    del shop.started[name]
    return call


async def cancels(client: Client, shop: Shop) -> None:
    """Give a call up; the connection goes on."""
    call = await begun(client, shop)
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    await client.call_tool("echo", {"text": "still there"})


async def hangs_up(client: Client, shop: Shop) -> None:
    """Close in the middle of a call."""
    call = await begun(client, shop)
    await client.close()
    try:
        await call
    except ConnectionLost:
        return
    raise AssertionError("a call outlived its connection")


async def asks(client: Client, shop: Shop) -> None:
    """Be asked in the middle of a call."""
    if client.revision.has(Feature.ELICITATION_FORM):
        await client.call_tool("ask", {})


async def follows(client: Client, shop: Shop) -> None:
    """Hear how far a call is."""
    seen: list[float] = []
    await client.call_tool("tell", {}, on_progress=lambda p: seen.append(p.progress))
    assert seen == sorted(set(seen))


async def listens(client: Client, shop: Shop) -> None:
    """Listen for changes, and stop."""
    async with client.listen(tools=True):
        await client.call_tool("echo", {"text": "meanwhile"})


async def errs(client: Client, shop: Shop) -> None:
    """Ask for what is not there."""
    with contextlib.suppress(Refused):
        await client.call_tool("missing", {})


ACTIONS: tuple[Callable[[Client, Shop], Awaitable[None]], ...] = (
    calls, cancels, hangs_up, asks, follows, listens, errs,
)  # fmt: skip

BODY = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"soak","version":"1"}}}'
)
REQUEST = (
    b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"accept: application/json, text/event-stream\r\ncontent-length: %d\r\n\r\n%b"
) % (len(BODY), BODY)


async def cut(url: str, dice: random.Random) -> None:
    """Send a part of a request, and leave."""
    where = urlsplit(url)
    _, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(REQUEST[: dice.randrange(len(REQUEST) + 1)])
    await writer.drain()
    writer.transport.abort()


async def yes(_question: object) -> Accepted:
    """The user agrees."""
    return Accepted(Amount(1))


def target(way: str, url: str) -> object | None:
    """Where a transport finds the endpoint that all of HTTP shares; None for the others."""
    where = urlsplit(url)
    return {
        "http": url,
        "http+sse": HttpSse(f"http://{where.netloc}/sse"),
        "websocket": f"ws://{where.netloc}{where.path}",
        "launched": Command(sys.executable, str(PROGRAM)),
    }.get(way)


@contextlib.asynccontextmanager
async def visitor(way: str, shop: Shop, url: str, revision: str) -> AsyncIterator[Client]:
    """A client over one transport."""
    where = target(way, url)
    if where is None:
        async with connect(shop.server, transport=way, revision=revision, elicit=yes) as client:
            yield client
    else:
        async with Client(where, revision=revision, elicit=yes) as client:
            yield client


async def visit(
    number: int, shops: tuple[Shop, Shop], bank: guarded.Bank, url: str, dice: random.Random
) -> str:
    """One visit; the name of what was done."""
    if number % GUARDED == 1:
        revisions = [one.name for one in REVISIONS if one.has(Feature.STREAMABLE_HTTP)]
        doing = dice.choice(guarded.VISITS)
        await doing(bank, dice.choice(revisions), dice)
        return f"guarded {doing.__name__}"
    if number % LAUNCHES == 0:
        revision = dice.choice(REVISIONS).name
        async with visitor("launched", shops[0], url, revision) as client:
            await client.list_tools()
        return "launched"
    way, revision = dice.choice(TRANSPORTS), dice.choice(REVISIONS)
    if way == "http" and dice.random() < 0.2:
        await cut(url, dice)
        return "cut"
    if not possible(way, revision.name):
        return "skipped"
    action, shop = dice.choice(ACTIONS), shops[target(way, url) is None]
    # strict replay is for tests of tools; here each call is to be one call
    async with visitor(way, shop, url, revision.name) as client:
        await action(client, shop)
    return f"{way} {action.__name__}"


def possible(way: str, revision: str) -> bool:
    """Whether that revision has that transport."""
    if way == "http":
        return BY_NAME[revision].has(Feature.STREAMABLE_HTTP)
    return way != "http+sse" or BY_NAME[revision].allows("client", "initialize")


def measured() -> dict[str, int]:
    """What may leak, counted."""
    gc.collect()
    status = Path("/proc/self/status").read_text(encoding="ascii")
    rss = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    me = os.getpid()
    return {
        "KiB": int(rss.split()[1]),
        "tasks": len(asyncio.all_tasks()),
        "secrets": sum(1 for _ in list_live_secrets()),
        "descriptors": len([*Path("/proc/self/fd").iterdir()]),
        "processes": len(
            Path(f"/proc/self/task/{me}/children").read_text(encoding="ascii").split()
        ),
    }


async def settled(shop: Shop, least: dict[str, int]) -> dict[str, int]:
    """What is left once everything that ends by itself has had a moment to."""
    found = measured()
    for _ in range(50):
        if not shop.running and all(found[key] <= least[key] for key in least if key != "KiB"):
            break
        await asyncio.sleep(0.1)
        found = measured()
    return found


async def soak(visits: int, seed: int) -> int:
    """All visits; the exit code."""
    shop, dice = Shop(), random.Random(seed)  # noqa: S311 - dice, no secrets
    private = Shop()  # a server for one client at a time; the other is shared by all of HTTP
    done: Counter[str] = Counter()
    warm: dict[str, int] = {}
    async with contextlib.AsyncExitStack() as stack:
        url = await stack.enter_async_context(
            serving(shop.server, session_idle=1.0, websocket=True)
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bank = await stack.enter_async_context(guarded.opened(folder))
        async with Client(url) as client:
            await client.list_tools()
        for once in guarded.VISITS:  # what is there once, and each program's own token
            await once(bank, REVISIONS[-1].name, dice)
        least = measured()
        least["secrets"] += guarded.PROGRAMS
        for number in range(0, visits, TOGETHER):
            together = range(number, min(visits, number + TOGETHER))
            async with asyncio.timeout(60):
                names = await asyncio.gather(
                    *(visit(one, (shop, private), bank, url, dice) for one in together)
                )
            done.update(names)
            if number % (visits // 10 // TOGETHER * TOGETHER or TOGETHER) == 0:
                now = measured()
                print(number, now, flush=True)
                if not warm and number >= visits * WARM:
                    warm = now
        left = await settled(shop, least)
        left["running"] = shop.running + private.running
        least["running"] = 0
    for name, count in sorted(done.items()):
        print(f"{count:6} {name}")
    return verdict(least, warm, left)


def verdict(least: dict[str, int], warm: dict[str, int], left: dict[str, int]) -> int:
    """Say what is left over; the exit code."""
    leaks = [
        f"{left[key]} {key}, {least[key]} at the start"
        for key in ("tasks", "descriptors", "processes", "secrets", "running")
        if left[key] > least[key]
    ]
    growth = left["KiB"] - warm["KiB"]
    print(f"memory after the warm-up: {growth:+} KiB; at the end {left}")
    if growth > GROWTH:
        leaks.append(f"{growth} KiB more than after the warm-up")
    print("leaked: " + "; ".join(leaks) if leaks else "nothing is left over")
    return 1 if leaks else 0


def main() -> int:
    """Read the arguments, and soak."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--visits", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="at full speed, of each kind of call"
    )
    asked = parser.parse_args()
    logging.getLogger("isthmus").setLevel(logging.CRITICAL)  # it is all on purpose
    leaked = asyncio.run(soak(asked.visits, asked.seed))
    return full_speed.run_all(asked.seconds) or leaked


if __name__ == "__main__":
    raise SystemExit(main())
