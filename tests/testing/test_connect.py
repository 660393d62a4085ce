"""A server and a client in one process."""

import contextlib
import json
from unittest import SkipTest

import pytest

from isthmus import Client, Context, Server
from isthmus.errors import CallTimedOut, LifespanFailed, OutOfPhase, UsageError
from isthmus.testing import connect, connections, every_revision, every_transport, serving
from isthmus.testing.connections import find_missing_transport


def telling():
    """A server that tells where a request came from."""
    server = Server("telling", version="1")

    @server.tool
    def over(ctx: Context) -> str:
        """Over what it came, and in which revision."""
        return f"{ctx.origin.transport} {ctx.revision}"

    return server


@every_transport
@every_revision
async def test_a_client_is_connected_over_the_transport_it_names(revision, transport):
    """Each transport is a real one, in each revision (ours)."""
    async with connect(telling(), revision=revision, transport=transport) as client:
        assert f"{transport} {revision}" == (await client.call_tool("over")).text


async def test_what_a_revision_cannot_be_spoken_over_is_skipped_and_says_why():
    """By the tables: 2024-11-05 has no Streamable HTTP (ours)."""
    with pytest.raises(SkipTest, match="2024-11-05 has no Streamable HTTP"):
        async with connect(telling(), revision="2024-11-05", transport="http"):
            pytest.fail("it is connected")

    assert None is find_missing_transport(None, "http")
    assert "2026-07-28 has no sessions" in find_missing_transport("2026-07-28", "http+sse")
    assert None is find_missing_transport("2025-03-26", "http")


async def test_without_a_revision_the_newest_is_agreed_on():
    """As any client would (ours)."""
    async with connect(telling()) as client:
        assert "2026-07-28" == str(client.revision)


@every_transport
async def test_options_are_the_clients(transport):
    """Whatever ``connect`` does not know goes to the ``Client`` (ours)."""
    async with connect(telling(), transport=transport, name="Ada", timeout=1e-6) as client:
        with pytest.raises(CallTimedOut):
            await client.list_tools()


@every_transport
async def test_everything_said_is_taken_down(transport):
    """``wire=`` has both sides' messages, in order (ours)."""
    wire = []
    async with connect(telling(), transport=transport, revision="2025-06-18", wire=wire) as client:
        await client.ping()

    told = [(side, json.loads(data)) for side, data in wire]
    assert ["client", "server", "client", "client", "server"] == [side for side, _ in told]
    assert ["initialize", "notifications/initialized", "ping"] == [
        message["method"] for side, message in told if side == "client"
    ]


@every_transport
async def test_the_connection_ends_with_the_block(transport):
    """Nothing goes on behind a test's back (ours)."""
    async with connect(telling(), transport=transport) as client:
        await client.call_tool("over")

    with pytest.raises(OutOfPhase):
        await client.call_tool("over")


@every_transport
async def test_an_exception_of_the_block_comes_out_as_it_is(transport):
    """Not in a group, not as something else (ours)."""
    with pytest.raises(ZeroDivisionError):
        async with connect(telling(), transport=transport):
            raise ZeroDivisionError


async def test_a_server_that_runs_elsewhere_is_connected_to_by_its_url():
    """With the same arguments, whatever it is written in (ours)."""
    wire = []
    async with serving(telling()) as url, connect(url, revision="2025-06-18", wire=wire) as client:
        assert "http 2025-06-18" == (await client.call_tool("over")).text

    assert "initialize" == json.loads(wire[0][1])["method"]


async def test_a_server_that_is_served_already_has_its_own_transport():
    """What cannot be had is not ignored (ours)."""
    with pytest.raises(UsageError, match="is served already: leave it out"):
        async with connect("http://127.0.0.1:1/mcp", transport="http"):
            pytest.fail("it is connected")


async def test_a_transport_whose_library_is_missing_is_skipped_and_says_what_to_install(
    monkeypatch,
):
    """It is the environment that lacks something, not the server (ours)."""
    monkeypatch.setattr(connections, "is_installed", lambda library: library != "websockets")

    with pytest.raises(SkipTest, match=r"pip install 'isthmus\[websocket\]'"):
        async with connect(telling(), transport="websocket"):
            pytest.fail("it is connected")


async def test_a_served_server_is_reached_by_its_url_until_the_block_ends():
    """On a free port of this machine, with the options of ``Server.asgi`` (ours)."""
    async with serving(telling(), path="/here") as url:
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/here")
        async with Client(url) as client:
            assert "http 2026-07-28" == (await client.call_tool("over")).text


async def test_a_server_that_cannot_start_fails_the_block():
    """As an exception, and not by ending the event loop (ours)."""

    def lifespan(server):
        raise ZeroDivisionError

    with pytest.raises(LifespanFailed, match="lifespan failed: ZeroDivisionError"):
        async with serving(Server("ill", lifespan=lifespan)):
            pytest.fail("it serves")


async def test_a_lifespan_ends_with_the_last_connection_to_its_server():
    """What a server opened for its tests is closed after them, and not before (ours)."""
    seen = []

    @contextlib.asynccontextmanager
    async def lifespan(_server):
        seen.append("open")
        yield "the state"
        seen.append("closed")

    server = Server("lived", version="1", lifespan=lifespan)

    @server.tool
    async def state(ctx: Context) -> str:
        """Say what the lifespan gave."""
        return ctx.state

    async with connect(server) as one:
        async with connect(server) as two:
            assert "the state" == (await two.call_tool("state")).text
        assert ["open"] == seen
        assert "the state" == (await one.call_tool("state")).text

    assert ["open", "closed"] == seen
