"""A guarded server, over every transport and in every revision: who calls, and what they may do."""

import contextlib

import pytest

from isthmus.errors import AuthError, HttpRefused, IsthmusError, Refused
from isthmus.testing import every_revision, every_transport
from support.auth.protected_server import READ, WRITE, Files, make_guard, make_person

pytestmark = [every_revision(), every_transport(), pytest.mark.usefixtures("secret_watch")]

WEB = {"http", "http+sse", "websocket"}
PEOPLE = {
    "token-of-ada": make_person("ada", READ),
    "token-of-eve": make_person("eve", READ, WRITE),
}


def files(**options):
    """A server, and what was done to its files."""
    return Files(make_guard(PEOPLE, **options))


@contextlib.asynccontextmanager
async def visited(joined, target, name):
    """A client of somebody's."""
    async with joined(target.server, token=f"token-of-{name}") as client:
        yield client


@pytest.mark.covers("auth.all.other-transports", "auth.all.every-request")
async def test_who_calls_is_who_the_token_says(joined, transport):
    """Ours: the same principal, however a request travels; none where there are no tokens."""
    target = files()
    async with visited(joined, target, "ada") as client:
        said = [(await client.call_tool("whoami")).text for _ in range(2)]

    assert transport not in WEB or ["ada", "ada"] == said
    assert transport in WEB or "ada" not in said


@pytest.mark.covers("auth.all.stdio-environment", "auth.resource.scope-403")
async def test_what_takes_a_scope_is_served_to_who_has_it(joined, transport):
    """Ours: over HTTP and WebSockets; elsewhere whoever starts the server is its user."""
    target = files()
    async with visited(joined, target, "eve") as client:
        assert "written" == (await client.call_tool("write", {"path": "a"})).text
        assert "the plan" == (await client.read_resource("secret://plan")).contents[0].text
        assert (await client.get_prompt("review", {"path": "a"})).messages

    assert ["write a", "plan", "review a"] == target.done


@pytest.mark.covers("auth.resource.scope-403")
async def test_who_lacks_a_scope_is_refused_and_goes_on(joined, transport):
    """Ours: nothing is run, and the connection is as good as before."""
    target = files()
    async with visited(joined, target, "ada") as client:
        tries = [
            lambda: client.call_tool("write", {"path": "a"}),
            lambda: client.call_tool("publish", {"project": "x"}),
            lambda: client.read_resource("secret://plan"),
            lambda: client.get_prompt("review", {"path": "a"}),
        ]
        if transport not in WEB:
            assert "written" == (await tries[0]()).text
            return
        for attempt in tries:
            with pytest.raises((HttpRefused, Refused, AuthError)):
                await attempt()
        assert "contents of a" == (await client.call_tool("read", {"path": "a"})).text

    assert ["read a"] == target.done


@pytest.mark.covers("auth.all.other-transports")
async def test_without_a_token_nothing_is_opened(joined, transport):
    """Ours: neither a session nor a connection."""
    target = files()
    if transport not in WEB:
        async with joined(target.server) as client:
            assert "nobody" == (await client.call_tool("whoami")).text or transport == "unix"
        return

    with pytest.raises(IsthmusError):
        async with joined(target.server) as client:
            await client.call_tool("whoami")

    assert [] == target.done


@pytest.mark.covers("auth.resource.private-lists")
async def test_lists_hold_what_their_reader_may_use(joined, transport):
    """Ours: where the author asked for that, and where there are tokens."""
    target = files(list_visibility="granted")
    seen = {}
    for name in ("ada", "eve", "ada"):
        async with visited(joined, target, name) as client:
            seen[name] = [tool.name for tool in await client.list_tools()]

    everything = ["read", "write", "publish", "whoami"]
    few = ["read", "publish", "whoami"] if transport in WEB else everything
    assert {"ada": few, "eve": everything} == seen
