"""Streams of live updates: each tells of what its visitor may see, and ends with the login."""

import asyncio

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.console import ProxyLogin
from isthmus.console.live import MAX_TABS_PER_LOGIN
from support.console import open_stream as streams
from support.console.page_browser import WatchedHost
from support.event_loop import run_until

ADA = {"x_user": "ada"}
BOB = "user:bob@local"


def open_stream(watched, **options):
    """A stream of a watched host, open as long as this lasts."""
    return streams.open_stream(watched.console, watched.browser._browser, **options)


def make_watched():
    """A host behind a proxy that names its users; `root` is an operator."""
    users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
    return WatchedHost(identity=ProxyLogin(users, operators=["root"]))


async def test_a_user_hears_of_no_call_and_no_server_of_others():
    """Ours: ids of calls, and names of servers, are told to whoever may see them."""
    async with make_watched() as watched, open_stream(watched, **ADA) as ada:
        await watched.browser.send("GET", "/console/traffic", x_user="root")  # calls are recorded
        async with open_stream(watched, x_user="root") as operator:
            await watched.call("look", BOB, what="a thing")
            await watched.call("look", "user:ada@local", what="another")
            await run_until(lambda: ada.text.count("call:") and "server:" in operator.text)
            (own,) = [
                one.id
                for one in await watched.host.view.traffic()
                if one.principal == "user:ada@local"
            ]
        told = {word for word in ada.text.split() if word.startswith(("call:", "server:"))}

    assert told == {f"call:{own}"}


async def test_a_busy_stream_ends_with_the_login():
    """Ours: whoever has signed out hears nothing more, however much happens."""
    async with WatchedHost() as watched, open_stream(watched) as stream:
        watched.console.identity.sign_out()
        before = stream.text
        await watched.call("look", what="a thing")
        await run_until(stream.task.done)

    assert stream.text.removeprefix(before).strip() == "event: end\ndata:"


async def test_one_login_cannot_take_all_streams():
    """Ours: the tabs of one person leave room for those of others."""
    async with make_watched() as watched:
        opened = [streams.OpenStream() for _ in range(MAX_TABS_PER_LOGIN)]
        browser = watched.browser._browser
        for one in opened:
            scope = browser.make_scope("GET", "/console/events", ADA)
            one.task = asyncio.ensure_future(watched.console(scope, one.receive, one.send))
        await run_until(lambda: all("hello" in one.text for one in opened))
        refused = await watched.browser.send("GET", "/console/events", **ADA)
        async with open_stream(watched, x_user="eve") as other:
            status = other.status
        for one in opened:
            await one.leave()

    assert refused.status == 503
    assert status == 200


async def test_a_stream_is_opened_by_get_alone():
    """Ours: HEAD and POST have no body that goes on."""
    async with WatchedHost() as watched:
        answers = [await watched.browser.send(verb, "/console/events") for verb in ("HEAD", "POST")]

    assert [one.status for one in answers] == [405, 405]
