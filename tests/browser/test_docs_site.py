"""The documentation site in Chromium: what ``make docs`` built, or builds here."""

import functools
import json
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest
import pytest_asyncio

from support.browser.chromium import Tab

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "index.html", "contents.html", "guide/clients.html", "guide/asking-the-user.html", "concepts/eras.html",
    "reference/errors.html", "reference/api/class-server.html", "reference/api/isthmus.types.html",
    "decisions/0001-sans-io-core.html", "404.html",
)  # fmt: skip
READ_PAGES = (
    "index.html",
    "guide/clients.html",
    "reference/api/class-context.html",
    "contents.html",
)
AXE = "axe_playwright_python.async_playwright"
BUILD_TIMEOUT_S = 400

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(BUILD_TIMEOUT_S + 60),  # the first test may build the site
]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format, *args):
        """Nothing."""


@pytest.fixture(scope="module")
def site():
    """URL of the newest version, served from a folder on this machine."""
    if not (ROOT / "site" / "versions.json").is_file():
        if find_spec("zensical") is None or find_spec("griffe") is None:
            pytest.skip("there is no site: make docs")
        subprocess.run(
            [sys.executable, "tools/docs.py"], cwd=ROOT, check=True, timeout=BUILD_TIMEOUT_S
        )
    newest = json.loads((ROOT / "site" / "versions.json").read_text(encoding="utf-8"))[0]
    handler = functools.partial(QuietHandler, directory=str(ROOT / "site"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/{newest['version']}"
        server.shutdown()
        thread.join()


@pytest_asyncio.fixture(loop_scope="session")
async def reader(chromium, site):
    """A tab on the site; nothing it asks for is elsewhere, and the console has no complaint."""
    tab = await Tab.of(chromium, color_scheme="light", viewport={"width": 1280, "height": 900})
    asked, complaints = [], []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.page.on("pageerror", lambda error: complaints.append(str(error)))
    tab.page.on(
        "console",
        lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None,
    )
    yield tab
    await tab.context.close()
    origin = site.rpartition("/")[0]
    assert [] == [url for url in asked if not url.startswith((f"{origin}/", "data:", "blob:"))]
    assert [] == complaints


async def test_every_kind_of_page_opens(reader, site):
    """Ours: each has its heading, and nothing is loaded from elsewhere."""
    for path in PAGES:
        answer = await reader.page.goto(f"{site}/{path}")
        assert answer.status == 200
        assert await reader.page.locator("h1").first.inner_text()


async def test_search_finds_elicit(reader, site):
    """Ours: search works without any service."""
    await reader.page.goto(f"{site}/index.html")
    await reader.page.locator("dialog[aria-label=Search]").wait_for(state="attached")
    await reader.page.keyboard.press("Control+k")
    await reader.page.locator("dialog[aria-label=Search] input").fill("elicit")
    found = reader.page.locator("[role=listbox] a[href*='class-context.html']").first
    await found.click()
    await reader.page.wait_for_url(f"{site}/reference/api/class-context.html*")


async def test_the_theme_can_be_switched(reader, site):
    """Ours: dark and back, and it is kept from page to page."""
    await reader.page.goto(f"{site}/index.html")
    await reader.page.locator("label[title='Switch to dark mode']").click()
    assert await reader.page.locator("body").get_attribute("data-md-color-scheme") == "slate"
    await reader.page.goto(f"{site}/guide/clients.html")
    assert await reader.page.locator("body").get_attribute("data-md-color-scheme") == "slate"


async def test_the_version_is_shown(reader, site):
    """Ours: the label comes from versions.json, which lies beside the versions."""
    await reader.page.goto(f"{site}/index.html")
    label = reader.page.locator(".md-version__current")
    await label.wait_for()

    assert site.rpartition("/")[2] in await label.inner_text()


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_pages_fit_the_screen(chromium, site, theme, width):
    """Ours: no page scrolls sideways."""
    tab = await Tab.of(chromium, color_scheme=theme, viewport={"width": width, "height": 900})
    wide = []
    for path in PAGES:
        await tab.page.goto(f"{site}/{path}")
        wider = await tab.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        wide += [(path, wider)] if wider > 0 else []
    await tab.context.close()
    assert [] == wide


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing_in_the_text(chromium, site, theme):
    """Ours: WCAG A and AA in what we write; the frame around it is the theme's."""
    axe = pytest.importorskip(AXE, reason="pip install --group browser").Axe()
    tab = await Tab.of(chromium, color_scheme=theme, viewport={"width": 1440, "height": 900})
    found = []
    for path in READ_PAGES:
        await tab.page.goto(f"{site}/{path}")
        results = await axe.run(
            tab.page,
            context="article",
            options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
        )
        found += [
            (path, one["id"], [node["target"] for node in one["nodes"]][:3])
            for one in results.response["violations"]
        ]
    await tab.context.close()
    assert [] == found
