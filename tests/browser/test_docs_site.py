"""The documentation site in Chromium: what ``make docs`` built, or builds here."""

import functools
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
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
    """Serves files and logs nothing; what is not there is the site's own page, as static hosts have it."""

    def log_message(self, format, *args):
        """Nothing."""

    def send_error(self, code, message=None, explain=None):
        """The page of the folder that is served, or of its site below a path."""
        found = [*Path(self.directory).glob("404.html"), *Path(self.directory).glob("*/404.html")]
        body = found[0].read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


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
    with serve_folder(ROOT / "site") as origin:
        yield f"{origin}/{newest['version']}"


@contextmanager
def serve_folder(folder):
    """The origin of a server of a folder's files."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
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


@contextmanager
def open_place(kind, folder, version):
    """The address of a version at a place: below a path of a host, or on the disk."""
    if kind == "disk":
        yield f"{(ROOT / 'site' / version).as_uri()}"
        return
    (folder / "isthmus").symlink_to(ROOT / "site", target_is_directory=True)
    with serve_folder(folder) as origin:
        yield f"{origin}/isthmus/{version}"


async def search(page, word):
    """Opens the search and enters a word; the first result."""
    await page.locator("dialog[aria-label=Search]").wait_for(state="attached")
    await page.keyboard.press("Control+k")
    await page.locator("dialog[aria-label=Search] input").fill(word)
    return page.locator("[role=listbox] a[href*='class-context.html']").first


@pytest.mark.parametrize("kind", ["path", "disk"])
async def test_the_site_can_be_read_below_a_path_and_from_the_disk(chromium, site, tmp_path, kind):
    """Ours: links, search and the page for what is not there need no root of a server."""
    tab = await Tab.of(chromium, color_scheme="light", viewport={"width": 1280, "height": 900})
    with open_place(kind, tmp_path, site.rpartition("/")[2]) as place:
        await tab.page.goto(f"{place}/guide/clients.html")
        await tab.page.locator("a.md-logo").first.click()
        await tab.page.wait_for_url(f"{place}/index.html")
        await (await search(tab.page, "elicit")).click()
        await tab.page.wait_for_url(f"{place}/reference/api/class-context.html*")
        lost = "404.html" if kind == "disk" else "guide/of/nothing"
        await tab.page.goto(f"{place}/{lost}")
        background = "getComputedStyle(document.body).getPropertyValue('--md-default-bg-color')"
        assert await tab.page.evaluate(background)
        await (await search(tab.page, "elicit")).click()
        await tab.page.wait_for_url(f"{place}/reference/api/class-context.html*")
    await tab.context.close()


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
