"""Lists that did not come: they are asked for again, and nothing is thought to be there without."""

import asyncio

import pytest

from isthmus.errors import CallTimedOut, ConnectionLost, InternalError
from isthmus.host.catalog.lists import LIST_KINDS, ListCache, ServerLists
from isthmus.host.model.errors import Unknown
from isthmus.host.state.database import HostState
from isthmus.testing.faults import until
from isthmus.wire import Prompt, Resource, ResourceTemplate
from support.host.listed_servers import ClientShelf, ListedServer, make_catalog, plain_tool


class Everything(ListedServer):
    """Has some of each kind; each list waits for its gate."""

    def __init__(self, *tools):
        super().__init__(*tools)
        self.gates = {kind: asyncio.Event() for kind in LIST_KINDS}
        for gate in self.gates.values():
            gate.set()

    async def list_tools(self, *, fresh=False):
        found = await super().list_tools(fresh=fresh)
        await self.gates["tools"].wait()
        return found

    async def list_prompts(self, *, fresh=False):
        del fresh
        await self.gates["prompts"].wait()
        return [Prompt(name="p")]

    async def list_resources(self, *, fresh=False):
        del fresh
        await self.gates["resources"].wait()
        return [Resource(name="r", uri="a://r")]

    async def list_resource_templates(self, *, fresh=False):
        del fresh
        return [ResourceTemplate(name="t", uri_template="a://{t}")]


def counts(listed):
    """How many of each kind there are."""
    return [len(getattr(listed, kind)) for kind in LIST_KINDS]


@pytest.fixture
async def state():
    """A store in memory."""
    state = HostState(None)
    yield state
    await state.close()


@pytest.mark.parametrize("first", ["change", "reading"])
@pytest.mark.parametrize("slow", ["prompts", "resources", "tools"])
@pytest.mark.covers("hostchat.catalog.changed-while-read")
async def test_a_change_while_a_server_is_first_read_loses_none_of_its_lists(slow, first, state):
    """Ours: whichever list is slow, and whichever reading ends first; nor is a loss kept."""
    server = Everything(plain_tool("old"))
    found = make_catalog(ClientShelf(a=server), cache=ListCache(state))
    server.gates[slow].clear()
    reading = asyncio.ensure_future(found.on_ready("a", server))
    await until(lambda: server.asked)
    server.tools = [plain_tool("new"), plain_tool("newer")]
    change = asyncio.ensure_future(found.on_changed("a", "tools"))
    await until(lambda: server.asked == 2)
    if first == "change" and slow != "tools":
        await change
    server.gates[slow].set()
    await asyncio.gather(reading, change)

    later = make_catalog(ClientShelf(a=server), cache=ListCache(state))
    await later.load()
    assert [2, 1, 1, 1] == counts(found.listed("a"))
    assert ["a__new", "a__newer"] == [item.name for item in found.tools()]
    assert later.listed("a").cached
    assert [2, 1, 1, 1] == counts(later.listed("a"))


@pytest.mark.covers("hostchat.catalog.changed-while-read")
async def test_what_is_asked_for_while_a_server_is_first_read_waits_for_it():
    """Ours: its tools are known by a change, and its prompts are on their way."""
    server = Everything(plain_tool("x"))
    found = make_catalog(ClientShelf(a=server))
    server.gates["prompts"].clear()
    reading = asyncio.ensure_future(found.on_ready("a", server))
    await until(lambda: server.asked)
    await found.on_changed("a", "tools")
    finding = asyncio.ensure_future(found.find_prompt("a__p"))
    await until(lambda: found._loading)
    server.gates["prompts"].set()

    assert ("a", "p") == await finding
    await reading


@pytest.mark.covers("hostchat.catalog.changed-while-read")
async def test_lists_that_were_cut_short_in_an_earlier_run_are_asked_for_again(state):
    """Ours: what an earlier version kept does not say that all of it has come."""
    server = Everything(plain_tool("x"))
    kept, found = ListCache(state), make_catalog(ClientShelf(a=server), cache=ListCache(state))
    await found.load()
    identity = found._identity(found._entries["a"])
    fetched = found.listed("a").fetched

    def write(db):
        import msgspec

        row = msgspec.msgpack.encode(ServerLists(tools=(plain_tool("x"),), fetched=fetched))
        db.execute("UPDATE catalog_list SET listed = ?", (row,))

    await state.write(write)
    assert None is await kept.find(identity)
    later = make_catalog(ClientShelf(a=server), cache=kept)
    await later.load()

    assert [1, 1, 1, 1] == counts(later.listed("a"))
    assert [1, 1, 1, 1] == counts(await kept.find(identity))


@pytest.mark.parametrize("error", [CallTimedOut("nothing came"), InternalError(-32603, "busy")])
@pytest.mark.covers("hostchat.catalog.last-good")
async def test_a_list_that_does_not_come_leaves_the_last_one_that_did(error, state):
    """Ours: in the catalog, for the next run, and with a word about it; until it comes again."""
    now, said = [1_000.0], []
    listing = ListedServer(plain_tool("x"))
    more = {"cache": ListCache(state, clock=lambda: now[0]), "clock": lambda: now[0]}
    found = make_catalog(ClientShelf(a=listing), notice=said.append, **more)
    await found.load()
    listing.tools = [error]
    await found.on_changed("a", "tools")

    assert ["a__x"] == [item.name for item in found.tools()]
    assert ["tools"] == list(found.listed("a").faults)
    assert 1 == len(said)
    later = make_catalog(ClientShelf(a=listing), **more)
    await later.load()
    assert ["a__x"] == [item.name for item in later.tools()]
    listing.tools = [plain_tool("y")]
    now[0] += 30.0
    await found.load()
    assert ["a__y"] == [item.name for item in found.tools()]


@pytest.mark.covers("hostchat.catalog.last-good")
async def test_a_server_that_is_slow_after_its_restart_has_what_it_had():
    """Ours: its new connection has listed nothing yet."""
    found = make_catalog(ClientShelf(a=ListedServer(plain_tool("x"))))
    await found.load()
    found.on_stopped("a")
    await found.on_ready("a", ListedServer(CallTimedOut("nothing came")))

    assert ["a__x"] == [item.name for item in found.tools()]


async def test_what_a_server_lists_is_not_taken_for_what_its_successor_has():
    """Ours: the configuration is another one while the lists are on their way."""
    first = Everything(plain_tool("x"))
    found = make_catalog(ClientShelf(a=first))
    first.gates["prompts"].clear()
    reading = asyncio.ensure_future(found.on_ready("a", first))
    await until(lambda: first.asked)
    found.on_stopped("a")
    await found.on_ready("a", ListedServer(plain_tool("y")))
    first.gates["prompts"].set()
    await reading

    assert ["a__y"] == [item.name for item in found.tools()]


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_list_that_a_broken_connection_cut_off_is_no_list():
    """Ours: what was known stays known, and the next use of the server asks again."""
    listing = ListedServer(plain_tool("x"))
    found = make_catalog(ClientShelf(a=listing))
    await found.on_ready("a", listing)
    listing.tools = [ConnectionLost("the line went dead")]
    with pytest.raises(ConnectionLost):
        await found.on_changed("a", "tools")

    assert ["a__x"] == [item.name for item in found.tools()]


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_server_whose_first_list_was_cut_off_is_asked_again_by_the_next_call():
    """Ours: on the same connection, too: over HTTP each request has one of its own."""
    listing = ListedServer(ConnectionLost("reset"))
    found = make_catalog(ClientShelf(a=listing))
    with pytest.raises(Unknown, match="reset"):
        await found.find("a__x")
    listing.tools = [plain_tool("x")]

    assert ("a", "x") == await found.find("a__x")


@pytest.mark.covers("hostchat.catalog.relisted")
async def test_a_list_that_did_not_come_in_time_is_asked_for_again_after_a_while():
    """Ours: one answer that was lost does not hide the tools of a server until it is restarted."""
    now = [1_000.0]
    listing = ListedServer(CallTimedOut("nothing came for 30 s"))
    found = make_catalog(ClientShelf(a=listing), clock=lambda: now[0])
    await found.on_ready("a", listing)
    listing.tools = [plain_tool("x")]
    with pytest.raises(Unknown):
        await found.find("a__x")
    assert 1 == listing.asked
    now[0] += 30.0

    assert ("a", "x") == await found.find("a__x")
    assert ("a", "x") == await found.find("a__x")
    assert 2 == listing.asked
