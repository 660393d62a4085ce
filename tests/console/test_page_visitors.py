"""Who sees which page: operators all, users their own, and strangers none."""

import pytest

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.console import ProxyLogin
from isthmus.console.routes import ROUTES
from support.console.page_browser import WatchedHost

USER = {"x_user": "ada"}
OPERATOR = {"x_user": "root"}
OPERATOR_ROUTES = [one for one in ROUTES if one.operator]


def make_watched():
    """A host behind a proxy that names its users; `root` is an operator."""
    users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
    return WatchedHost(identity=ProxyLogin(users, operators=["root"]))


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


async def test_a_user_has_the_pages_of_their_own():
    """Ours: navigation, tabs and filters have nothing of what is for operators."""
    async with make_watched() as watched:
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
