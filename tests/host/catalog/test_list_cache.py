"""Lists that outlast the run."""

import pytest

from isthmus.host.catalog.lists import LIST_KINDS, ListCache, ServerLists
from isthmus.host.state.database import HostState
from support.host.listed_servers import ClientShelf, ListedServer, make_catalog, plain_tool


@pytest.fixture
async def state():
    """A store in memory."""
    state = HostState(None)
    yield state
    await state.close()


@pytest.mark.covers("hostchat.catalog.kept")
async def test_a_server_known_from_an_earlier_run_is_not_started_to_be_known(state):
    """Ours: a lazy server's tools are offered without starting it, and marked as from before."""
    shelf = ClientShelf(a=ListedServer(plain_tool("x", description="does x")))
    await make_catalog(shelf, cache=ListCache(state)).load()

    later = make_catalog(shelf, cache=ListCache(state))
    offer = await later.for_model()

    assert ["a__x"] == [t.name for t in offer.tools]
    assert [("a", "")] == shelf.lent
    assert later.listed("a").cached
    assert "does x" == later.tool("a", "x").description
    await later.on_ready("a", ListedServer(plain_tool("y")))
    assert not later.listed("a").cached
    assert ["a__y"] == [i.name for i in later.tools()]


async def test_old_lists_are_not_used(state):
    """Ours: after a week a server is asked again; so it is when the clock has gone back."""
    now = [1000.0]
    kept = ListCache(state, lasts=60.0, clock=lambda: now[0])
    await kept.keep(
        "id", ServerLists(tools=(plain_tool("x"),), fetched=1000.0, heard=tuple(LIST_KINDS))
    )

    assert "x" == (await kept.find("id")).tools[0].name
    for when in (1061.0, 900.0):
        now[0] = when
        assert None is await kept.find("id")


async def test_lists_with_faults_are_not_kept(state):
    """Ours: what was wrong once is asked for again, and what was kept before it is no longer true."""
    kept = ListCache(state, clock=lambda: 1000.0)
    await kept.keep(
        "id", ServerLists(tools=(plain_tool("x"),), fetched=1000.0, heard=tuple(LIST_KINDS))
    )
    await kept.keep(
        "id", ServerLists(fetched=1000.0, faults={"tools": "no end"}, heard=tuple(LIST_KINDS))
    )

    assert None is await kept.find("id")


async def test_lists_written_by_another_version_are_fetched_anew(state):
    """Ours: what cannot be read is as if it were not there."""
    await state.write(
        lambda db: db.execute("INSERT INTO catalog_list VALUES ('id', 1000.0, x'ff')")
    )

    assert None is await ListCache(state, clock=lambda: 1000.0).find("id")


async def test_what_one_user_alone_sees_is_not_kept(state):
    """Ours: the store is of the host, and an isolated connection is of one principal."""
    await make_catalog(ClientShelf(a=ListedServer(plain_tool("x"))), cache=ListCache(state)).load(
        isolation="alice"
    )

    assert 0 == await state.read(
        lambda db: db.execute("SELECT count(*) FROM catalog_list").fetchone()[0]
    )
