"""A browser for all tests here, and a profile of its own for each."""

import pytest
import pytest_asyncio

from support.browser.chromium import Tab, find_chromium, launch_chromium
from support.console.served_console import serve_shop_console


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


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shop_console(tmp_path_factory):
    """A host with its console, one for a module."""
    async with serve_shop_console(tmp_path_factory.mktemp("console")) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="session")
async def served(shop_console):
    """The same, with nothing under way before and after a test."""
    yield shop_console
    await shop_console.clear()


@pytest_asyncio.fixture(loop_scope="session", params=["scripts", "no scripts"])
async def page(chromium, served, request):
    """A page of somebody who has signed in, with scripts and without."""
    scripts = request.param == "scripts"
    opened = await Tab.of(chromium, java_script_enabled=scripts)
    await served.let_in(opened.context)
    yield opened.page
    await opened.context.close()
    assert [] == opened.violated


@pytest_asyncio.fixture(loop_scope="session")
async def signed_in(chromium, served):
    """A tab with scripts, of somebody who has signed in."""
    opened = await Tab.of(chromium)
    await served.let_in(opened.context)
    yield opened
    await opened.context.close()
    assert [] == opened.violated
