"""Visitors of pages: operators see all, users their own, and strangers nothing."""

import asyncio

import pytest

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.console import ProxyLogin
from isthmus.console.routes import ROUTES
from isthmus.host.model.interaction import Decision
from isthmus.host.remote.principal_view import OwnEvents
from support.console.page_browser import WatchedHost
from support.event_loop import run_until
from support.host.console_hosts import ALLOW_ALL, make_calculator

USER = {"x_user": "ada"}
OPERATOR = {"x_user": "root"}
OPERATOR_ROUTES = [one for one in ROUTES if one.operator]


def make_watched(*, whole=False, **options):
    """A host behind a proxy that names its users; `root` is an operator.

    Args:
        whole: whether users are given the whole view by mistake, and not one of their own.
        **options: of the watched host.
    """
    users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
    watched = WatchedHost(identity=ProxyLogin(users, operators=["root"]), **options)
    if whole:
        watched.console._view_of = lambda _: watched.host.view
    return watched


def fill_pattern(route):
    """A path of a route, whose parts are there."""
    values = {"name": "shop", "tool": "look", "seq": "1", "run": "r", "call": "c"}
    path = route.pattern
    for key, value in values.items():
        path = path.replace(f"{{{key}}}", value)
    return f"/console{path}"


@pytest.mark.parametrize("route", OPERATOR_ROUTES, ids=lambda one: f"{one.method} {one.pattern}")
async def test_pages_of_operators_are_not_there_for_others(route):
    """Ours: the same words and status as for a page that there is none of."""
    async with make_watched() as watched:
        await watched.host.view.tools("shop")
        path = fill_pattern(route)
        nothing = await watched.browser.send("GET", "/console/none", **USER)
        if route.method == "GET":
            answer = await watched.browser.send("GET", path, **USER)
        else:
            answer = await watched.forge(path, **USER)

    assert (answer.status, answer.body) == (404, nothing.body)


@pytest.mark.parametrize(
    "path", [f"/console{one.pattern}" for one in ROUTES if "{" not in one.pattern]
)
async def test_no_page_is_shown_to_a_stranger(path):
    """Ours: the form to sign in, and nothing else."""
    async with make_watched() as watched:
        answer = await watched.browser.send("GET", path)

    assert answer.status == 401
    assert "shop" not in answer.text


@pytest.mark.parametrize("whole", [False, True])
async def test_a_user_has_the_pages_of_their_own(whole):
    """Ours: navigation, tabs and filters have nothing of what is for operators."""
    async with make_watched(whole=whole) as watched:
        traffic = await watched.browser.send("GET", "/console/traffic", **USER)
        access = await watched.browser.send("GET", "/console/access", **USER)
        grants = await watched.browser.send("GET", "/console/access/grants", **USER)
        own = await watched.browser.send("GET", "/console/traffic", **OPERATOR)

    assert traffic.status == grants.status == 200
    assert (access.status, access.headers["location"]) == (303, "/console/access/grants")
    for page in (traffic, grants):
        assert not [link for link in page.page.links if "/servers" in link or "/audit" in link]
    assert "/console/access/policy" not in grants.page.links
    assert "Calls per minute" not in traffic.text
    assert "Calls per minute" in own.text


@pytest.mark.parametrize("whole", [False, True])
async def test_a_user_sees_and_changes_what_is_theirs_only(whole):
    """Ours: calls, grants and accounts of others are not there, neither listed nor by their ids."""
    async with make_watched(whole=whole) as watched, watched.host.view.attend("test"):
        await watched.browser.send("GET", "/console/traffic", **OPERATOR)
        visitor = await watched.console.identity.identify(watched.browser.make_request("ada"))
        ada, bob = visitor.principal, "user:bob"
        for principal in (ada, bob):
            await watched.call("look", principal, what=f"thing of {principal}")
            buying = asyncio.ensure_future(watched.call("buy", principal, what="tea"))
            await run_until(watched.host.view.pending)
            yes = Decision(verdict="allow", by="test", remember="session")
            await watched.host.view.decide(watched.host.view.pending()[0].id, yes)
            await buying
        traffic = await watched.browser.send("GET", "/console/traffic?principal=user:bob", **USER)
        grants = await watched.browser.send("GET", "/console/access/grants", **USER)
        everything = await watched.host.view.traffic()
        foreign = next(one.id for one in everything if one.principal == bob)
        own = next(one.id for one in everything if one.principal == ada)
        given = {one.principal: one.id for one in await watched.host.view.grants()}
        shown = await watched.browser.send("GET", f"/console/traffic/{own}", **USER)
        hidden = [
            await watched.browser.send("GET", f"/console/traffic/{foreign}?wire=1", **USER),
            await watched.forge(f"/console/traffic/{foreign}", **USER),
            await watched.forge(f"/console/access/grants/{given[bob]}", **USER),
        ]
        revoked = await watched.forge(f"/console/access/grants/{given[ada]}", **USER)
        left = [one.principal for one in await watched.host.view.grants() if not one.ended]

    assert ada in traffic.text
    assert bob not in traffic.text + grants.text
    assert shown.status == 200
    assert [one.status for one in hidden] == [404, 404, 404]
    assert revoked.status == 303
    assert left == [bob]


async def test_what_a_server_asks_in_a_call_is_in_the_inbox_of_its_user():
    """Ours: it is counted, told of and answered there, once; others have neither card nor topic."""
    options = {"rules": ALLOW_ALL, "others": {"calc": make_calculator()}}
    async with make_watched(**options) as watched, watched.host.view.attend("test"):
        console = watched.console
        visitor = await console.identity.identify(watched.browser.make_request("ada"))
        own, foreign = OwnEvents(visitor.principal), OwnEvents("user:bob")
        with (
            console.live.open_tab("a", own.holds) as tab,
            console.live.open_tab("b", foreign.holds) as other,
        ):
            calling = asyncio.ensure_future(
                watched.host.call("calc__book", {}, principal=visitor.principal)
            )
            await run_until(watched.host.view.pending)
            (asked,) = watched.host.view.pending()
            path = f"/console/inbox/{asked.id}"
            inbox = await watched.browser.send("GET", "/console/inbox", **USER)
            card = await watched.browser.send("GET", path, **USER)
            hidden = await watched.browser.send("GET", path, x_user="bob")
            none = await watched.browser.send("GET", "/console/inbox", x_user="bob")
            form = next(one for one in card.page.forms if one.action == path)
            (blank,) = form.fields.keys() - {"form", "version", "reason"}
            sent = {**form.fields, "verdict": "allow", blank: "5"}
            answered = await watched.browser.send("POST", path, sent, **USER)
            assert answered.status == 303
            assert "row 5" == (await calling).text
            topics = tab.take()
            while "inbox" not in topics:
                await tab.news.wait()
                topics += tab.take()
            others = other.take()
    assert path in inbox.page.links
    assert "(1)" in inbox.text
    assert (200, 404) == (card.status, hidden.status)
    assert path not in none.page.links
    assert "(1)" not in none.text
    assert others == ()
