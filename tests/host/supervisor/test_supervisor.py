"""Many servers at once: another configuration, and what is told of all that happens."""

import asyncio

import pytest

from isthmus.errors import ConnectFailed
from isthmus.host.model.entries import HostConfig, Timeouts
from isthmus.host.model.errors import OutcomeUnknown, ServerUnavailable, Unknown
from isthmus.host.model.events import HostNotice
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.testing.faults import until
from support.host.fleet import Fleet, make_configuration, make_entries, run_virtual


async def text_of(supervisor, name, tool="add", **arguments):
    async with supervisor.use(name) as client:
        return (await client.call_tool(tool, arguments)).text


async def test_a_name_that_nobody_has_is_an_error_with_those_there_are():
    """Ours: a mistyped name is no mystery, and a broken entry says what is wrong with it."""
    config = HostConfig(servers=make_entries("a"), broken={"b": "mcp.json: b: there is no command"})
    async with Supervisor(config, Fleet().client_for) as supervisor:
        with pytest.raises(Unknown, match="'c'; there are: a"):
            await text_of(supervisor, "c")
        with pytest.raises(Unknown, match="there is no command"):
            await text_of(supervisor, "b")


@pytest.mark.covers("hostservers.reload.difference")
async def test_a_reload_touches_only_what_is_different():
    """Ours: who edits one server's entry keeps the connections to all others."""
    fleet, told = Fleet(), []
    before = HostConfig(servers=make_entries("same", "goes", "turns"))
    now = HostConfig(
        servers={**make_entries("same", "comes"), **make_entries("turns", command=("other",))}
    )
    async with Supervisor(before, fleet.client_for, on_event=told.append) as supervisor:
        for name in before.servers:
            await text_of(supervisor, name, a=1, b=2)
        async with supervisor.use("same") as kept:
            diff = await supervisor.reload(now)
        assert (("comes",), ("goes",), ("turns",)) == (diff.added, diff.removed, diff.changed)
        async with supervisor.use("same") as client:
            assert kept is client
        with pytest.raises(Unknown):
            await text_of(supervisor, "goes")
        assert "3" == await text_of(supervisor, "turns", a=1, b=2)
        assert "3" == await text_of(supervisor, "comes", a=1, b=2)
    notes = [event.text for event in told if isinstance(event, HostNotice)]
    assert ["added: comes; removed: goes; changed: turns"] == notes


@pytest.mark.covers("hostservers.reload.same")
async def test_a_configuration_that_says_the_same_changes_nothing_wherever_it_stands():
    """Ours: an entry is what it says, and not the file it is in."""
    told = []
    async with Supervisor(
        make_configuration("a"), Fleet().client_for, on_event=told.append
    ) as supervisor:
        assert not await supervisor.reload(make_configuration("a"))
    assert [] == told


@pytest.mark.covers("hostservers.reload.broken")
async def test_an_entry_that_is_broken_now_stays_as_it_was():
    """Ours: a file saved half-way takes no server away."""
    fleet = Fleet()
    async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
        await text_of(supervisor, "a", a=1, b=2)
        broken = HostConfig(broken={"a": "mcp.json: a: needs a command"})
        diff = await supervisor.reload(broken)
        assert (("a",), ()) == (diff.broken, diff.removed)
        assert "3" == await text_of(supervisor, "a", a=1, b=2)
        assert not await supervisor.reload(broken)
        mended = await supervisor.reload(make_configuration("a"))
        assert () == mended.changed
    assert 1 == len(fleet.starts)


@pytest.mark.covers("hostservers.reload.difference")
def test_what_waits_for_a_server_that_is_removed_meanwhile_does_not_start_it():
    """Ours: a call of a user's own connection waits for the old program, and the new one goes, too."""

    async def main():
        fleet = Fleet()
        async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
            call = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(make_configuration("a", command=("other",)))
            waiting = asyncio.ensure_future(supervisor.use("a", "user:ada").__aenter__())
            await asyncio.sleep(1)
            await supervisor.reload(HostConfig())
            await asyncio.sleep(1)
            fleet.gate.set()
            await call
            with pytest.raises(ServerUnavailable):
                await waiting
            return len(fleet.starts)

    assert 1 == run_virtual(main())


@pytest.mark.covers("hostservers.reload.drains")
def test_calls_at_a_server_that_is_removed_end_first_and_a_changed_one_waits_for_them():
    """Ours: a new program waits for the old one, for thirty seconds; no call is lost to it."""

    async def main():
        fleet = Fleet()
        loop = asyncio.get_running_loop()
        async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
            call = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(make_configuration("a", command=("other",)))
            new = asyncio.ensure_future(text_of(supervisor, "a", a=1, b=2))
            await asyncio.sleep(10)
            assert 1 == len(fleet.starts)
            assert not new.done()
            fleet.gate.set()
            assert ["done", "3"] == await asyncio.gather(call, new)
            assert 10 == round(loop.time())
            fleet.gate.clear()
            late = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: 2 == sum(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(make_configuration("a"))
            newer = [await text_of(supervisor, "a", a=n, b=2) for n in range(3)]
            assert ["2", "3", "4"] == newer
            assert 40 == round(loop.time())
            assert not late.done()
            await asyncio.sleep(20)
            fleet.gate.set()
            assert "done" == await late
            assert "5" == await text_of(supervisor, "a", a=3, b=2)
            return len(fleet.starts)

    assert 3 == run_virtual(main())


@pytest.mark.covers("hostservers.reload.outcome")
def test_a_call_at_a_server_that_is_removed_has_as_long_as_a_call_may_take_in_all():
    """Ours: then its program is ended, whatever it does."""

    async def main():
        fleet = Fleet()
        loop = asyncio.get_running_loop()
        limited = make_configuration("a", timeouts=Timeouts(total=45.0))
        async with Supervisor(limited, fleet.client_for) as supervisor:
            call = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(HostConfig())
            with pytest.raises(OutcomeUnknown):
                await call
            return round(loop.time())

    assert 45 == run_virtual(main())


@pytest.mark.covers("hostservers.reload.outcome")
def test_the_end_of_a_replaced_server_is_not_told_as_the_end_of_its_successor():
    """Ours: who keeps lists by name goes on asking the one that is there."""

    async def main():
        fleet, gone = Fleet(), []
        async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
            supervisor.on_gone = lambda name, _key: gone.append(name)
            call = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(make_configuration("a", command=("other",)))
            await text_of(supervisor, "a", a=1, b=2)
            fleet.gate.set()
            await call
            await until(lambda: not supervisor._old)
            before = list(gone)
        return before, gone

    assert ([], ["a"]) == run_virtual(main())


def test_closing_does_not_wait_for_what_a_reload_lets_end():
    """Ours: a host that is closed leaves no program behind, and does not take half a minute."""

    async def main():
        fleet = Fleet()
        loop = asyncio.get_running_loop()
        async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
            call = asyncio.ensure_future(text_of(supervisor, "a", "wait"))
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            await supervisor.reload(make_configuration("a", command=("other",), start="eager"))
        with pytest.raises(OutcomeUnknown):
            await call
        return round(loop.time()), len(fleet.starts)

    assert (0, 1) == run_virtual(main())


async def test_the_catalog_is_told_of_clients_that_come_and_servers_that_go():
    """Ours: what fetches lists knows when to, without looking."""
    fleet, told = Fleet(), []
    async with Supervisor(make_configuration("a", "b"), fleet.client_for) as supervisor:
        supervisor.on_ready = lambda name, client: told.append(("ready", name, client.info.name))
        supervisor.on_gone = lambda name, _key: told.append(("gone", name))
        supervisor.on_removed = lambda name: told.append(("removed", name))
        supervisor.on_changed = lambda name, kind, _key: told.append((kind, name))
        await text_of(supervisor, "a", a=1, b=2)
        supervisor.changed("a", "tools")
        await supervisor.servers["a"].stop()
        await supervisor.reload(make_configuration("b"))
        supervisor.changed("a", "tools")
    assert [
        ("ready", "a", "bookshop"),
        ("tools", "a"),
        ("gone", "a"),
        ("removed", "a"),
    ] == told


async def test_connections_of_many_users_are_bounded_and_those_unused_make_room():
    """Ours: nobody opens connections without end by inventing sessions."""
    from isthmus.host.supervisor import hosted_server as module

    fleet = Fleet()
    async with Supervisor(make_configuration("a"), fleet.client_for) as supervisor:
        connections = supervisor.servers["a"].connections
        async with supervisor.use("a", "first"):
            for number in range(module.MAX_CONNECTIONS - 2):
                await supervisor.servers["a"].connection(str(number))
            assert module.MAX_CONNECTIONS == len(connections)
            async with supervisor.use("a", "another"):
                assert module.MAX_CONNECTIONS == len(connections)
                for connection in connections.values():
                    connection.in_flight += 1
                with pytest.raises(ServerUnavailable, match="none of them is free"):
                    await text_of_isolated(supervisor)
                for connection in connections.values():
                    connection.in_flight -= 1


async def text_of_isolated(supervisor):
    async with supervisor.use("a", "one too many"):
        pass


@pytest.mark.covers("hostservers.silent.others")
def test_fifty_servers_of_which_some_are_bad_cost_the_good_ones_nothing():
    """Ours: all good ones are there at once, and two hundred calls go through."""

    async def main():
        good = [f"good{number}" for number in range(47)]
        fleet = Fleet(silent=["silent"], crashing=[ConnectFailed("I crash")] * 99, slow=["silent"])
        config = make_configuration(*good, "silent", "crashing", "slow", start="eager")
        loop = asyncio.get_running_loop()
        async with Supervisor(config, fleet.client_for, random=lambda: 0.5) as supervisor:
            calls = (text_of(supervisor, name, a=1, b=2) for name in good * 5)
            assert {"3"} == set(await asyncio.gather(*calls))
            assert 0.0 == loop.time()
            await asyncio.sleep(100)
            states = {name: server.state for name, server in supervisor.servers.items()}
        assert {"ready"} == {states[name] for name in good}
        return states["crashing"], len(fleet.starts)

    assert ("failed", 47 + 5 + 2 + 2) == run_virtual(main())
