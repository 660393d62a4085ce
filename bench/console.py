"""Milliseconds from a question of the host to its card in Chromium: ``python bench/console.py [--short]``.

A page of the Inbox is open; calls that are asked about come one after the other. Ends with 1 where the
median is beyond the floor in each attempt, and with 77, which counts as skipped, where Chromium cannot be had.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))

import browser
from isthmus import Server
from isthmus.console import serve_console
from isthmus.host import Host
from isthmus.host.model.events import QuestionAsked
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers

FLOOR_MS, GOAL_MS = 500.0, 150.0
ATTEMPTS = 3  # a busy moment is no miss
PATIENCE_S = 30.0
ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run")
WAIT_CARD = """(wanted) => new Promise((resolve) => {
  const look = () => {
    const there = document.querySelector("main a.open") !== null;
    if (there !== wanted) return;
    observer.disconnect();
    resolve(performance.timeOrigin + performance.now());
  };
  const observer = new MutationObserver(look);
  observer.observe(document.documentElement, { childList: true, subtree: true });
  look();
})"""
"""Resolves with the time at which a card stands in the page, or none does."""


def make_shop() -> Server:
    """A server with a tool that is asked about."""
    server = Server("shop")

    @server.tool
    async def buy(what: str) -> str:
        return what

    return server


@asynccontextmanager
async def open_inbox(executable: str) -> AsyncIterator[tuple[Host, Any]]:
    """A host, and a page that shows its Inbox."""
    from playwright.async_api import async_playwright

    host = Host(policy=Policy.of(read_layers(ASKS, "user")))
    host.add("shop", make_shop())
    async with (
        host,
        serve_console(host.view, 0) as console,
        async_playwright() as driver,
        await driver.chromium.launch(executable_path=executable, args=list(FLAGS)) as chromium,
    ):
        page = await chromium.new_page()
        async with page.expect_response("**/events"):
            await page.goto(console.login_address)
        yield host, page


async def measure_card(host: Host, page: Any) -> float:
    """Milliseconds from the event of a question to its card."""
    events = host.events()
    shown = asyncio.ensure_future(page.evaluate(WAIT_CARD, True))
    call = asyncio.ensure_future(host.call("shop__buy", {"what": "tea"}))
    async with asyncio.timeout(PATIENCE_S):
        async for event in events:
            if isinstance(event, QuestionAsked):
                break
        asked = time.time() * 1000
        took = await shown - asked
        for one in host.view.pending():
            await host.view.decide(one.id, Decision(verdict="allow", by="bench"))
        await call
        await page.evaluate(WAIT_CARD, False)
    return float(took)


async def measure(executable: str, rounds: int) -> list[float]:
    """The milliseconds of so many questions."""
    async with open_inbox(executable) as (host, page):
        await measure_card(host, page)  # imports, and the first connection
        return [await measure_card(host, page) for _ in range(rounds)]


def main() -> int:
    """Print the table."""
    executable = browser.installed()
    if executable is None or not browser.driver():
        print("console skipped: there is no Chromium, or no playwright, and none can be installed")
        return browser.SKIPPED
    rounds = 10 if "--short" in sys.argv else 50
    found: list[float] = []
    for _ in range(ATTEMPTS):
        found = asyncio.run(measure(executable, rounds))
        if median(found) <= FLOOR_MS:
            break
    value = median(found)
    reached = "goal" if value <= GOAL_MS else "floor" if value <= FLOOR_MS else "BROKEN"
    print(
        "| measure | median | worst | floor | goal | |\n| --- | ---: | ---: | ---: | ---: | --- |"
    )
    print(
        f"| event to card in Chromium | {value:.0f} ms | {max(found):.0f} ms | {FLOOR_MS:.0f} ms | "
        f"{GOAL_MS:.0f} ms | {reached} |"
    )
    return int(value > FLOOR_MS)


if __name__ == "__main__":
    sys.exit(main())
