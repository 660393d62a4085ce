"""Takes screenshots of the console: every page of ``python examples/console``, in two themes and two widths.

``python tools/screenshots.py FOLDER`` puts them into a folder outside of the repository, to be looked at;
``python tools/screenshots.py --readme`` makes the three of the README in docs/images. Needs Debian's Chromium
and ``pip install --group browser``; downloads no browser.
"""

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from browser import driver, found

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
THEMES = ("light", "dark")
WIDTHS = {"narrow": 360, "wide": 1440}
HEIGHT = 900
README_SIZE = {"width": 1040, "height": 470}
MAX_README_BYTES = 60_000
START_TIMEOUT_S = 60
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync")

PAGES = {
    "login": "/login",
    "inbox": "/inbox",
    "servers": "/servers",
    "server": "/servers/store",
    "broken": "/servers/lost",
    "tool": "/servers/store/tools/order",
    "traffic": "/traffic",
    "calls": "/traffic?server=store",
    "access": "/access",
    "grants": "/access/grants",
    "accounts": "/access/accounts",
    "policy": "/access/policy",
    "audit": "/audit",
    "doctor": "/doctor",
    "nothing": "/nothing-here",
}
"""Pages by the name of their picture."""

LINKS = {
    "card": ("/inbox", "main a.open >> text=order"),
    "form": ("/inbox", "main tr:has-text('cinema') a.open"),
    "batch": ("/inbox", "main a.open >> text=order", "main a[data-key=g]"),
    "call": ("/traffic", "main tbody a >> text=restock"),
    "denied": ("/traffic", "main tbody a >> text=empty"),
    "row": ("/audit", "main tbody a"),
}
"""Pages that are reached from another one, by links."""

README = {"console-inbox": "inbox", "console-card": "card", "console-traffic": "calls"}
"""Pictures of the README, and the pages that they show."""


@asynccontextmanager
async def run_example() -> AsyncIterator[str]:
    """The example, as long as this lasts: the address that signs in."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ROOT / "examples" / "console"), "--no-open", "--port", "0",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said = process.stdout or asyncio.StreamReader()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            first = (await said.readline()).decode()
            await said.readline()  # the calls are made
        found = re.search(r"http://\S+", first)
        if found is None:
            raise SystemExit(f"examples/console said no address, but: {first}")
        yield found[0]
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def open_page(page: Any, base: str, name: str) -> bool:
    """Show a page by the name of its picture; False where there is none."""
    path, *links = LINKS[name] if name in LINKS else (PAGES[name],)
    await page.goto(f"{base}{path}")
    for link in links:
        found = page.locator(link)
        if not await found.count():
            return False
        await found.first.click()
        await page.wait_for_load_state()
    return True


async def take_all(browser: Any, address: str, folder: Path, wanted: list[str]) -> None:
    """Every page in every theme and width."""
    base = address.partition("/login")[0]
    for theme in THEMES:
        for width, pixels in WIDTHS.items():
            context = await browser.new_context(
                color_scheme=theme, viewport={"width": pixels, "height": HEIGHT}
            )
            page = await context.new_page()
            await page.goto(address)
            await page.wait_for_url("**/console/")
            for name in wanted or [*PAGES, *LINKS]:
                if await open_page(page, base, name):
                    picture = folder / f"{name}-{theme}-{width}.png"
                    await page.screenshot(path=picture, full_page=True)
                else:
                    print(f"{name}: no link leads there", file=sys.stderr)
            await context.close()


async def take_readme(browser: Any, address: str) -> None:
    """The pictures of the README."""
    base = address.partition("/login")[0]
    context = await browser.new_context(color_scheme="light", viewport=README_SIZE)
    page = await context.new_page()
    await page.goto(address)
    await page.wait_for_url("**/console/")
    for name, shown in README.items():
        picture = IMAGES / f"{name}.png"
        await open_page(page, base, shown)
        await page.screenshot(path=picture)
        size = picture.stat().st_size
        print(f"{picture.relative_to(ROOT)}: {size} bytes")
        if size > MAX_README_BYTES:
            raise SystemExit(f"{picture.name} has more than {MAX_README_BYTES} bytes")
    await context.close()


async def take(chromium: str, folder: Path | None, wanted: list[str]) -> None:
    """Start the example and Chromium, and take the pictures."""
    from playwright.async_api import async_playwright

    async with run_example() as address, async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        try:
            if folder is None:
                await take_readme(browser, address)
            else:
                await take_all(browser, address, folder, wanted)
        finally:
            await browser.close()


def main() -> None:
    """Read the command line, and take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, help="outside of the repository")
    parser.add_argument("pages", nargs="*", help="only these, such as inbox or card")
    parser.add_argument("--readme", action="store_true", help="make the three of the README")
    given = parser.parse_args()
    if given.readme == (given.folder is not None):
        parser.error("give a folder, or --readme")
    (given.folder or IMAGES).mkdir(parents=True, exist_ok=True)
    chromium = found()
    if chromium is None or not driver():
        raise SystemExit("there is no Chromium here, or nothing that drives it")
    asyncio.run(take(chromium, given.folder, given.pages))


if __name__ == "__main__":
    main()
