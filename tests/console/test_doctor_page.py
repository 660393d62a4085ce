"""Doctor pages: the steps to each server, the first that fails, and running it again."""

import pytest

from isthmus import Server
from isthmus.console.pages.doctor import list_local_steps
from isthmus.host.model.view import ServerStatus
from isthmus.linter.doctor.reach import find_first_failure
from support.browser.chromium import serve_in_browser
from support.console.page_browser import HOSTILE, WatchedHost
from support.http.loopback_pages import serve_pages

DOCTOR = "/console/doctor"


async def test_a_server_over_http_is_examined_by_a_form():
    """Ours: the page that follows has the steps, and says that nothing is wrong."""
    app = Server("far", version="2").asgi()
    async with (
        serve_in_browser(lambda _: app) as (url, _),
        WatchedHost(others={"far": f"{url}/mcp"}) as watched,
    ):
        page = await watched.browser.get(f"{DOCTOR}/far")
        answer = await watched.browser.submit(page, f"{DOCTOR}/far")
        listed = await watched.browser.get(DOCTOR)

    assert "The server was not examined yet" in page.text
    for word in ("address", "connection", "opening", "it says it is far 2", "Every step works"):
        assert word in answer.text
    assert "Run again" in answer.text
    assert f"isthmus check {url}/mcp" in answer.text
    assert "ok" in listed.text


async def test_the_first_failing_step_stands_above_the_others():
    """Ours: what a server answers is text there, too."""
    async with serve_pages() as site, WatchedHost(others={"far": f"{site.url}/mcp"}) as watched:
        site.pages["/mcp"] = lambda _: (500, {}, HOSTILE.encode())
        page = await watched.browser.get(DOCTOR)
        answer = await watched.browser.submit(page, DOCTOR)
        one = await watched.browser.get(f"{DOCTOR}/far")

    assert "opening" in answer.text
    assert "The first step that fails is" in one.text
    assert "HTTP 500" in one.text


async def test_a_server_in_the_process_is_told_from_what_its_host_knows():
    """Ours: nothing is started or called for it."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        page = await watched.browser.get(f"{DOCTOR}/shop")
        answer = await watched.browser.submit(page, f"{DOCTOR}/shop")

    assert "speaks 2026-07-28" in answer.text
    assert "Every step works" in answer.text


async def test_an_unknown_server_is_not_found():
    """Ours: neither shown nor examined."""
    async with WatchedHost() as watched:
        shown = await watched.browser.get(f"{DOCTOR}/none")
        sent = await watched.forge(f"{DOCTOR}/none")

    assert shown.status == sent.status == 404


@pytest.mark.parametrize(
    ("status", "argv", "step"),
    [
        ({"state": "failed", "error": "it ended"}, ("no-such-program-anywhere",), "program"),
        ({"state": "failed", "error": "it ended"}, ("sh",), "process"),
        ({"state": "failed", "error": "it ended", "pid": 5}, ("sh",), "era"),
        ({"state": "ready", "pid": 5, "revision": "2026-07-28"}, ("sh",), None),
        ({"state": "ready", "pid": 5, "revision": "2026-07-28"}, ("hidden-program",), None),
        ({"state": "idle"}, ("sh",), None),
        ({"state": "idle"}, (), None),
    ],
)
def test_a_program_is_judged_by_what_its_host_has_seen(status, argv, step):
    """Ours: it is never started a second time, outside of its sandbox."""
    failure = find_first_failure(list_local_steps(ServerStatus(name="a", **status), argv))

    assert (failure and failure.name) == step
