"""Attendance of the gateway's console: forms of servers are answered there while an operator looks."""

import asyncio
from contextlib import asynccontextmanager

from isthmus.client import Client
from isthmus.console import Console, LocalLogin
from isthmus.console.attendance import ConsoleAttendance, ConsoleWatch
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from support.console.console_browser import ADDRESS, ConsoleBrowser
from support.console.open_stream import open_stream
from support.event_loop import run_until
from support.gateway.asking_shop import make_asker, make_host
from support.gateway.small_gateway import ALLOW_ALL


class CountedView:
    """A host of which only the surfaces that attend are seen."""

    def __init__(self):
        self.attending = []

    def attend(self, name, assurance="local_ui"):
        """One more surface, as long as it is entered."""
        view = self

        class Attending:
            async def __aenter__(self):
                view.attending.append((name, assurance))

            async def __aexit__(self, *error):
                view.attending.remove((name, assurance))

        return Attending()


async def test_a_form_of_a_server_is_answered_in_the_inbox_of_an_operator_who_looks():
    """Ours: the calling client cannot be asked; nobody is asked while no page is open."""
    host = make_host(ALLOW_ALL, ("shop", make_asker("2026-07-28"), {}))
    gateway = Gateway(host)
    login = LocalLogin(ADDRESS)
    console = Console(host.view, ADDRESS, identity=login, attends=True)
    browser = ConsoleBrowser(console)
    async with gateway, Client(gateway.server) as user:
        await browser.sign_in(login.token.reveal())
        try:
            refused = await user.call_tool("shop__order", {"item": "shoe"})
            said = refused.text
        except Refused as no:
            said = str(no)
        assert "elicitation" in said
        async with open_stream(console, browser):
            call = asyncio.ensure_future(user.call_tool("shop__order", {"item": "shoe"}))
            await run_until(host.view.pending)
            (asked,) = host.view.pending()
            await browser.submit(
                f"/console/inbox/{asked.id}", press=("verdict", "allow"), fill={"field-0": "42"}
            )
            assert "shoe: 42" == (await call).text
        await console.close()


async def test_pages_attend_once_and_stay_for_a_while():
    """Ours: a browser that goes from one page to the next does not leave."""
    view = CountedView()
    attendance = ConsoleAttendance(view, absence=0.01)
    async with attendance.open_page("local_ui"), attendance.open_page("local_ui"):
        assert [("console", "local_ui")] == view.attending
    assert [("console", "local_ui")] == view.attending
    async with attendance.open_page("local_ui"):
        assert [("console", "local_ui")] == view.attending
    await run_until(lambda: not view.attending)
    async with attendance.open_page("authenticated_web"):
        assert [("console", "authenticated_web")] == view.attending
        await attendance.close()
        assert [] == view.attending


class WatchedView:
    """A view of a host that counts who watches."""

    def __init__(self):
        self.watching = 0

    @asynccontextmanager
    async def watch(self):
        self.watching += 1
        try:
            yield
        finally:
            self.watching -= 1


async def test_calls_are_recorded_for_a_while_after_the_last_look():
    """Ours: an open page goes on looking; afterwards the next look begins anew."""
    view, pages, asked = WatchedView(), [1], []

    def is_open():
        asked.append(view.watching)
        return bool(pages)

    watch = ConsoleWatch(view, is_open, grace=0.02)
    await watch.look()
    await watch.look()
    assert 1 == view.watching
    await run_until(lambda: len(asked) == 3)
    assert [1, 1, 1] == asked
    pages.clear()
    await run_until(lambda: not view.watching)
    await watch.look()
    assert 1 == view.watching
    await watch.close()
    assert 0 == view.watching
