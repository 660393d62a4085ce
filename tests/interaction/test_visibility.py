"""Visibility by session and by principal, over every transport and revision: lists, calls and changes."""

import contextlib

import pytest

from isthmus import Context, Server
from isthmus.client.subscriptions import Change
from isthmus.errors import Refused
from isthmus.testing import every_revision, every_transport
from support.auth.protected_server import READ, make_guard, make_person

pytestmark = [every_transport(), every_revision()]

MARK = "shop://mark"
WEB = {"http", "http+sse", "websocket"}
PEOPLE = {f"token-of-{name}": make_person(name, READ) for name in ("ada", "bob")}


def make_shop():
    """A server with tools for experts and for Ada, whose sessions may hide what is for experts."""
    server = Server("shop", version="1", auth=make_guard(PEOPLE))
    server.visibility(sessions=True)

    @server.visibility
    def may_see(item, principal):
        tags = (item.meta or {}).get("isthmus/tags", [])
        return "ada" not in tags or (principal is not None and principal.subject == "ada")

    @server.tool(tags={"expert"})
    def reset() -> str:
        """Empty the shop."""
        return "empty"

    @server.tool(tags={"ada"})
    def gift() -> str:
        """Something for Ada."""
        return "a gift"

    @server.tool
    async def begin(ctx: Context) -> str:
        """Hide what is for experts."""
        await ctx.session.disable(tags={"expert"})
        return "welcome"

    server.add_resource(lambda: "", MARK, name="mark")
    return server


@contextlib.asynccontextmanager
async def open_shop(joined):
    """A shop, and two people in it who listen to its changes."""
    server = make_shop()
    async with (
        joined(server, token="token-of-ada") as ada,
        joined(server, token="token-of-bob") as bob,
        ada.listen(tools=True, uris=[MARK]) as ada_hears,
        bob.listen(tools=True, uris=[MARK]) as bob_hears,
    ):
        yield server, ada, bob, aiter(ada_hears), aiter(bob_hears)


async def list_names(client):
    """The tools that a client is shown."""
    return [tool.name for tool in await client.list_tools()]


async def test_a_session_hides_for_itself_and_hears_of_it_alone(joined, revision, transport):
    """Ours: what is hidden is as if it were not there; nobody else sees or hears a difference."""
    known = transport in WEB
    # both are the same user of a Unix socket, who is the principal where there are no sessions
    shared = transport == "unix" and revision == "2026-07-28"
    async with open_shop(joined) as (server, ada, bob, ada_hears, bob_hears):
        before = await list_names(ada)
        await ada.call_tool("begin")
        first = await anext(ada_hears)
        after, others = await list_names(ada), await list_names(bob)
        with pytest.raises(Refused) as hidden:
            await ada.call_tool("reset")
        with pytest.raises(Refused) as unknown:
            await ada.call_tool("rosot")
        if not shared:
            assert "empty" == (await bob.call_tool("reset")).text
            server.notify_resource_updated(MARK)
            assert Change("resource", MARK) == await anext(bob_hears)  # and nothing before it

    mine = ["gift"] if known else []
    assert ["reset", *mine, "begin"] == before
    assert Change("tools") == first
    assert [*mine, "begin"] == after
    assert (after if shared else ["reset", "begin"]) == others
    assert str(unknown.value).replace("rosot", "reset") == str(hidden.value)


async def test_a_rule_of_the_server_is_told_to_everybody(joined, transport):
    """Ours: and what one principal is shown, another one can neither list nor call."""
    async with open_shop(joined) as (server, ada, bob, ada_hears, bob_hears):
        with pytest.raises(Refused, match="Unknown tool"):
            await bob.call_tool("gift")
        if transport in WEB:
            assert "a gift" == (await ada.call_tool("gift")).text
        server.disable("reset")
        heard = [await anext(ada_hears), await anext(bob_hears)]
        left = [await list_names(ada), await list_names(bob)]
        with pytest.raises(Refused, match="Unknown tool"):
            await bob.call_tool("reset")

    assert [Change("tools")] * 2 == heard
    assert [["gift", "begin"] if transport in WEB else ["begin"], ["begin"]] == left
