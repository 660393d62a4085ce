"""Fifty streams that are cut again and again while ten thousand calls go by: nothing grows, the end is right."""

import asyncio
import contextlib
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from isthmus import Server
from isthmus.console import Console
from isthmus.console.live import MAX_TOPICS
from isthmus.host import Host
from isthmus.host.model.entries import ServerLimits
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.browser.chromium import Tab, serve_in_browser
from support.event_loop import run_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(120),
]

STREAMS = 48  # besides the tabs of the browser
CALLS = 10_000
CALLS_AT_ONCE = 20
SECONDS_BETWEEN_CUTS = 1.0
MAX_GROWTH_BYTES = 24 * 1024 * 1024  # from the moment on at which every ring is full
PAGES = ("/inbox", "/traffic")
RULES = """
[[rule]]
id = "look"
effect = "allow"
when = { action = "tool.call", tool = "find" }

[[rule]]
id = "spend"
effect = "ask"
when = { action = "tool.call", tool = "buy" }
"""


def make_shop():
    """A server that answers at once."""
    server = Server("shop")

    @server.tool
    async def find(words: str) -> str:
        return words

    @server.tool
    async def buy(what: str) -> str:
        return what

    return server


class CutStreams:
    """A console whose streams of events can be cut, as networks and proxies do.

    Args:
        console: the console.
    """

    def __init__(self, console):
        self.console = console
        self.open = set()

    async def __call__(self, scope, receive, send):
        """Serve a request; a stream until it is cut."""
        if not scope["path"].endswith("/events"):
            await self.console(scope, receive, send)
            return
        serving = asyncio.ensure_future(self.console(scope, receive, send))
        self.open.add(serving)
        try:
            await asyncio.wait([serving])
        finally:
            serving.cancel()
            self.open.discard(serving)

    def cut(self):
        """Cut all of them in the middle."""
        for one in self.open:
            one.cancel()


class EventReader:
    """A reader of events that comes again whenever it is cut.

    Attributes:
        count: what it was told last of what waits.
    """

    def __init__(self):
        self.count = ""

    async def read(self, session, url):
        """Read for as long as this lasts."""
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(url) as answer:
                    kind = ""
                    async for line in answer.content:
                        name, _, value = line.decode().strip().partition(": ")
                        kind = value if name == "event" else kind
                        if name == "data" and kind == "count":
                            self.count = value


def read_memory():
    """Bytes of this process that are resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest_asyncio.fixture(loop_scope="session")
async def crowd(chromium):
    """A host with a console, streams of clients, and tabs of a browser."""
    host = Host(policy=Policy.of(read_layers(RULES, "user")))
    host.add("shop", make_shop(), limits=ServerLimits(calls=None, concurrency=CALLS_AT_ONCE))

    def make(url):
        return CutStreams(Console(host.view, url))

    async with host, host.view.attend("console"), serve_in_browser(make) as (url, app):
        token = app.console.login_address.partition("#")[2]
        name, value = app.console.identity.sign_in(token).partition(";")[0].split("=", 1)
        readers = [EventReader() for _ in range(STREAMS)]
        tabs = [await Tab.of(chromium) for _ in PAGES]
        async with aiohttp.ClientSession(
            cookies={name: value}, connector=aiohttp.TCPConnector(limit=0)
        ) as session:
            tasks = [
                asyncio.ensure_future(one.read(session, f"{url}/console/events")) for one in readers
            ]
            for tab, path in zip(tabs, PAGES, strict=True):
                await tab.context.add_cookies([{"name": name, "value": value, "url": url}])
                await tab.page.goto(f"{url}/console{path}")
            await run_until(lambda: len(app.console.live) == STREAMS + len(PAGES), pause=0.01)
            yield host, app, readers, tabs
            for tab in tabs:
                await tab.context.close()
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await app.console.close()


async def call_often(host, app, sizes):
    """Make calls, cut the streams every second, and note how large everything is."""
    clock = asyncio.get_running_loop().time
    due = clock()
    for number in range(0, CALLS, CALLS_AT_ONCE):
        calls = [host.call("shop__find", {"words": f"{number}"}) for _ in range(CALLS_AT_ONCE)]
        await asyncio.gather(*calls)
        if due <= clock():
            due += SECONDS_BETWEEN_CUTS
            app.cut()
            topics = max((len(tab) for tab in app.console.live._tabs), default=0)
            sizes.append((topics, len(asyncio.all_tasks()), read_memory()))


async def test_fifty_streams_that_are_cut_end_right(crowd):
    """Ours: no queue and no number of tasks grows, and each is told the last of what waits."""
    host, app, readers, tabs = crowd
    sizes = []
    await call_often(host, app, sizes)
    buying = asyncio.ensure_future(host.call("shop__buy", {"what": "tea"}))
    await run_until(lambda: all(one.count == "1 0" for one in readers), pause=0.01)
    inbox, traffic = (tab.page for tab in tabs)
    await inbox.locator("main a.open", has_text="buy").wait_for()
    await traffic.locator("main tbody tr", has_text="buy").first.wait_for()
    assert all([(await tab.page.title()).startswith("(1) ") for tab in tabs])
    buying.cancel()
    await run_until(lambda: all(one.count == "0 0" for one in readers), pause=0.01)
    await inbox.locator("main", has_text="Nothing waits").wait_for()

    topics, tasks, memory = zip(*sizes, strict=True)
    assert max(topics) <= MAX_TOPICS
    settled = len(sizes) // 3
    assert max(tasks[settled:]) <= tasks[0] + 3 * (STREAMS + len(PAGES)) + CALLS_AT_ONCE
    assert memory[-1] - memory[settled] < MAX_GROWTH_BYTES
    assert len(app.console.live) == STREAMS + len(PAGES)
    assert len(await host.view.traffic()) <= 500
