"""``python examples/console``: a host with something to see and something to decide, and its page."""

import asyncio
import signal
import sys
from urllib.parse import urlsplit

import aiohttp
import pytest

from support.docs.blocks import EXAMPLES

pytestmark = pytest.mark.timeout(90)


async def test_four_calls_wait_on_the_page_and_nine_were_made():
    """Ours: the address that is printed signs in, and control-C ends it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(EXAMPLES / "console"), "--no-open", "--port", "0",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(60):
            first = (await process.stdout.readline()).decode()
            second = (await process.stdout.readline()).decode()
            url = next(word for word in first.split() if word.startswith("http"))
            inbox, traffic = await read_pages(url)
    finally:
        process.send_signal(signal.SIGINT)
        ended = await asyncio.wait_for(process.wait(), 30)

    assert "9 calls are made, and 4 wait for a person\n" == second
    assert all(text in inbox for text in ("(4) Inbox", "tea=sencha", "library", "cinema"))
    assert all(text in traffic for text in ("restock", ">anything</a>", "nobody empties the shop"))
    assert 0 == ended


async def read_pages(url):
    """The Inbox once four questions are in it, and the traffic."""
    parts = urlsplit(url)
    base = f"{parts.scheme}://{parts.netloc}/console"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        await browser.post(f"{base}/login", data={"token": parts.fragment})
        inbox = ""
        while "(4)" not in inbox:
            async with browser.get(f"{base}/inbox") as answer:
                inbox = await answer.text()
        async with browser.get(f"{base}/traffic") as answer:
            return inbox, await answer.text()
