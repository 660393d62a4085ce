"""A browser for all tests here, and a profile of its own for each."""

import pytest
import pytest_asyncio

from support.browser.chromium import Tab, find_chromium, launch_chromium


@pytest.fixture(autouse=True)
def watched(secret_watch):
    """No secret is seen."""
    return secret_watch


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium():
    """A running Chromium; the tests are skipped where there is none."""
    path = find_chromium()
    if path is None:
        pytest.skip("there is no Chromium: install Debian's chromium, or set CHROMIUM to its path")
    pytest.importorskip("playwright", reason="pip install --group browser")
    async with launch_chromium(path) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def tab(chromium):
    """A page in a new profile; no policy of a page may have forbidden anything in it."""
    opened = await Tab.of(chromium)
    yield opened
    await opened.context.close()
    assert [] == opened.violated
