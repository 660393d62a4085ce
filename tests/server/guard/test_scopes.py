"""What a tool takes: looked at when it is declared, and told before it is called."""

import msgspec
import pytest

from isthmus import Server
from isthmus.core.caller import Caller
from isthmus.errors import UsageError
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server.guard.scopes import (
    ScopeVisibility,
    collect_fixed_scopes,
    find_required_scopes,
    is_listed_for,
    parse_scopes,
)
from isthmus.wire import ListToolsParams
from support.auth.protected_server import ADA, EVE, READ, WRITE, make_guard

pytestmark = pytest.mark.usefixtures("secret_watch")


def test_scopes_are_a_set_or_a_function():
    """Ours: the two ways to say it."""

    def by_call(_args, _who):
        return {"a"}

    assert frozenset({"a"}) == parse_scopes(["a"], "this")
    assert by_call is parse_scopes(by_call, "this")


async def later(args, who):
    """Scopes that would have to be waited for."""
    return {"a"}


@pytest.mark.parametrize("scopes", ["a", {"a b"}, later, 5])
def test_scopes_unknown_before_a_call_are_refused_when_declared(scopes):
    """Ours: a mistake shows at the start, not at the first call."""
    server = Server("x")

    with pytest.raises(UsageError, match="tool 'act'"):
        server.add_tool(lambda: 1, name="act", scopes=scopes)


def test_a_function_names_all_that_a_call_takes():
    """Ours: and gets the arguments and the principal for it."""
    seen = []

    def by_call(args, who):
        seen.append((args, who))
        return [args["x"], "b"]

    found = find_required_scopes(by_call, ADA, "this", lambda: {"x": "a"})

    assert ({"a", "b"}, [({"x": "a"}, ADA)]) == (found, seen)


def test_a_call_that_is_refused_anyhow_takes_nothing():
    """Ours: its arguments do not fit, which it is told instead."""
    assert frozenset() == find_required_scopes(lambda args, who: {"a"}, ADA, "this", lambda: None)


def test_fixed_scopes_are_known_to_every_caller():
    """Ours: what depends on the call is not."""
    assert {"a", "b"} == collect_fixed_scopes(
        [frozenset({"a"}), lambda args, who: {"c"}, frozenset({"a", "b"})]
    )


@pytest.mark.parametrize(
    ("transport", "who", "granted"),
    [
        ("http", ADA, {READ}),
        ("http+sse", EVE, {READ, WRITE}),
        ("websocket", None, set()),
        ("stdio", None, None),
        ("memory", None, None),
        ("unix", None, None),
    ],
)
@pytest.mark.covers("auth.all.stdio-environment")
def test_lists_are_by_scope_where_tokens_are(transport, who, granted):
    """Spec 2026-07-28 basic/authorization#protocol-requirements: stdio does not take part in it."""
    visible = ScopeVisibility(make_guard(list_visibility="granted"))
    demands = [frozenset({READ}), frozenset({READ, WRITE}), lambda args, who: {"x"}]
    inbound = Inbound(1, "tools/list", None, Caller(), None, Origin(transport, principal=who))

    found = visible.find_granted(inbound, demands)

    assert granted == found
    assert granted is None or [is_listed_for(found, one) for one in demands] == [
        READ in granted,
        WRITE in granted,
        True,
    ]


@pytest.mark.parametrize("who", [ADA, EVE, None])
async def test_pages_hold_what_their_reader_may_use_and_nothing_is_lost(who):
    """Ours: what is kept of a list for one reader is shown to no other."""
    server = Server("x", auth=make_guard(list_visibility="granted"), page_size=2)
    wanted = [set(), {READ}, {READ, WRITE}, lambda args, who: {"x"}]
    for n in range(12):
        server.add_tool(lambda: 1, name=f"t{n * 5 % 12:02}", scopes=wanted[n % 4])
    listing = server._declared.tools.listing
    for reader in (ADA, EVE, None):
        await read_pages(listing, reader)
    seen = await read_pages(listing, who)

    granted = frozenset(() if who is None else who.scopes) & {READ, WRITE}
    assert seen == sorted(one.name for one in listing if is_listed_for(granted, one.scopes))


async def read_pages(listing, who):
    """The names on all pages that somebody reads."""
    seen, cursor = [], None
    while True:
        inbound = Inbound(1, "tools/list", None, Caller(), None, Origin("http", principal=who))
        page = msgspec.json.decode(await listing.page(ListToolsParams(cursor=cursor), inbound))
        seen += [tool["name"] for tool in page["tools"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            return seen


@pytest.mark.parametrize("scopes", [{WRITE}, lambda args, who: {WRITE}])
def test_scopes_without_authorization_are_warned_of(caplog, scopes):
    """Ours: a guard that was forgotten would be missed when it is too late."""
    for auth in (None, make_guard()):
        caplog.clear()
        server = Server("x", auth=auth)
        server.add_tool(lambda: 1, name="act", scopes=scopes)
        server.asgi()

        assert (auth is None) == ("everybody may use it" in caplog.text)
