"""One connection: what brings it up, what brings it down, and what becomes of calls meanwhile."""

import asyncio

import pytest

from isthmus.errors import AuthRequired, ConnectFailed, ConnectionLost
from isthmus.host.model.errors import ConfigError, OutcomeUnknown, ServerUnavailable
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.testing.faults import until
from support.host.fleet import Fleet, make_configuration, refuse_connection, run_virtual


def supervised(fleet, *names, random=lambda: 0.5, **options):
    events = []
    supervisor = Supervisor(
        make_configuration(*names, **options),
        fleet.client_for,
        on_event=events.append,
        random=random,
    )
    supervisor.seen = lambda: [event.state for event in events]
    return supervisor


async def add(supervisor, name="a", isolation=""):
    async with supervisor.use(name, isolation) as client:
        return (await client.call_tool("add", {"a": 1, "b": 2})).text


@pytest.mark.covers("hostservers.use.starts")
async def test_a_lazy_server_is_started_by_its_first_use_and_by_nothing_else():
    """Ours: nothing runs that nobody uses, and all uses share one connection."""
    fleet = Fleet()
    async with supervised(fleet, "a", "b") as supervisor:
        assert "idle" == supervisor.servers["a"].state
        async with supervisor.use("a") as client, supervisor.use("a") as same:
            assert client is same
        assert "3" == await add(supervisor)
        assert ["connecting", "ready"] == supervisor.seen()
    assert [("a", "")] == fleet.starts


async def test_uses_at_the_same_time_wait_for_one_start():
    """Ours: a start belongs to all that need it."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        assert ["3"] * 20 == await asyncio.gather(*(add(supervisor) for _ in range(20)))
    assert 1 == len(fleet.starts)


@pytest.mark.covers("hostservers.isolation.apart")
async def test_each_isolation_key_has_a_connection_of_its_own():
    """Ours: what one user's connection knows, another's does not."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        async with supervisor.use("a", "ada") as hers, supervisor.use("a", "bob") as his:
            assert hers is not his
        await fleet.snap("a", "ada")
        await until(lambda: supervisor.servers["a"].connections["ada"].client is None)
        assert "3" == await add(supervisor, isolation="bob")
    assert [("a", "ada"), ("a", "bob")] == fleet.starts[:2]


async def test_an_eager_server_is_started_at_once_and_a_manual_one_by_hand_alone():
    """Ours: the entry says when a server is started."""
    fleet = Fleet()
    async with supervised(fleet, "a", start="eager") as supervisor:
        await until(lambda: supervisor.servers["a"].state == "ready")
    async with supervised(fleet, "m", start="manual") as supervisor:
        with pytest.raises(ServerUnavailable, match="isthmus servers start m") as refusal:
            await add(supervisor, "m")
        assert ("m", "idle") == (refusal.value.server, refusal.value.state)
        await supervisor.servers["m"].start()
        assert "3" == await add(supervisor, "m")


@pytest.mark.covers("hostservers.use.unavailable")
async def test_a_start_that_fails_is_said_with_state_and_cause_to_whoever_waited():
    """Ours: nobody hangs on a server that does not come up."""
    fleet = Fleet(a=[ConnectFailed("no such command: 'uvy'")] * 9)
    async with supervised(fleet, "a", random=lambda: 0.99) as supervisor:
        with pytest.raises(ServerUnavailable, match="no such command") as refusal:
            await add(supervisor)
        assert "backoff" == refusal.value.state


@pytest.mark.covers("hostservers.backoff.retries")
def test_a_server_that_comes_back_is_found_again_with_growing_waits():
    """Ours: attempts come after 0.25, 0.5 and 1 s where the dice fall in the middle."""

    async def main():
        fleet = Fleet(a=[refuse_connection()] * 3)
        async with supervised(fleet, "a") as supervisor:
            with pytest.raises(ServerUnavailable):
                await add(supervisor)
            await until(lambda: supervisor.servers["a"].state == "backoff")
            connection = supervisor.servers["a"].connections[""]
            await asyncio.sleep(0.3)
            second = connection.wait_s
            await asyncio.sleep(0.5)
            third = connection.wait_s
            await asyncio.sleep(1)
            assert [0.45, 0.95] == [round(second, 3), round(third, 3)]
            return len(fleet.starts), supervisor.seen()

    assert (4, ["connecting", "backoff"] * 3 + ["connecting", "ready"]) == run_virtual(main())


@pytest.mark.covers("hostservers.backoff.short-waits")
def test_a_call_waits_for_the_next_attempt_where_that_is_soon():
    """Ours: a server that ended a moment ago is worth two seconds."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a") as supervisor:
            await add(supervisor)
            await fleet.snap("a")
            await until(lambda: supervisor.servers["a"].state == "backoff")
            return await add(supervisor)

    assert "3" == run_virtual(main())


@pytest.mark.covers("hostservers.crashloop.open", "hostservers.failed.until-asked")
def test_five_crashes_within_a_minute_end_in_failed_until_somebody_asks():
    """Ours: a crash loop costs nothing after its fifth round, and one word starts it again."""

    async def main():
        fleet = Fleet(a=[refuse_connection()] * 5)
        async with supervised(fleet, "a") as supervisor:
            server = supervisor.servers["a"]
            with pytest.raises(ServerUnavailable):
                await add(supervisor)
            await asyncio.sleep(600)
            assert ("failed", 5) == (server.state, len(fleet.starts))
            with pytest.raises(ServerUnavailable, match="isthmus servers restart a"):
                await add(supervisor)
            assert 5 == len(fleet.starts)
            await server.restart()
            return await add(supervisor)

    assert "3" == run_virtual(main())


@pytest.mark.covers("hostservers.outcome.unknown")
async def test_a_call_on_the_wire_when_the_connection_breaks_is_unknown_and_never_sent_again():
    """Ours: nobody can tell whether it was done, so it is not done twice."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:

        async def call():
            async with supervisor.use("a") as client:
                await client.call_tool("wait")

        await add(supervisor)
        task = asyncio.ensure_future(call())
        await until(lambda: any(b'"wait"' in call for call in fleet.calls))
        await fleet.snap("a")
        with pytest.raises(OutcomeUnknown, match="it is not sent again"):
            await task
        assert "3" == await add(supervisor)
    assert 1 == sum(b'"wait"' in call for call in fleet.calls)


@pytest.mark.covers("hostservers.outcome.not-sent")
async def test_a_call_after_the_connection_broke_was_not_sent_and_says_so():
    """Ours: what cannot have left is no open question."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:

        async def late():
            async with supervisor.use("a") as client:
                await fleet.snap("a")
                await until(lambda: supervisor.servers["a"].state == "backoff")
                await client.call_tool("add", {"a": 1, "b": 2})

        with pytest.raises(ServerUnavailable):
            await late()
    assert not any(b'"add"' in call for call in fleet.calls)


@pytest.mark.covers("hostservers.repeatable.once")
async def test_what_may_be_done_twice_is_done_once_more_on_a_new_connection():
    """Ours: a list survives the end of a connection, and two ends are an error."""
    fleet = Fleet()
    tries = []
    async with supervised(fleet, "a", random=lambda: 0.0) as supervisor:

        async def work(client):
            tries.append(client)
            if len(tries) in {1, 3, 4}:
                await fleet.snap("a")
                await until(lambda: supervisor.servers["a"].state != "ready")
            return len(await client.list_tools())

        assert 2 == await supervisor.run_repeatable("a", "", work)
        assert tries[0] is not tries[1]
        with pytest.raises(ConnectionLost):
            await supervisor.run_repeatable("a", "", work)
    assert 4 == len(tries)


@pytest.mark.covers("hostservers.idle.stop")
def test_an_idle_server_is_stopped_and_the_next_use_starts_it_again():
    """Ours: what nobody uses costs nothing after its time."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a", idle_stop=60.0) as supervisor:
            server = supervisor.servers["a"]
            await add(supervisor)
            await asyncio.sleep(50)
            await add(supervisor)
            await asyncio.sleep(50)
            assert "ready" == server.state
            await asyncio.sleep(15)
            assert "idle" == server.state
            assert "3" == await add(supervisor)
            return len(fleet.starts)

    assert 2 == run_virtual(main())


@pytest.mark.covers("hostservers.idle.busy")
def test_a_server_is_not_idle_while_a_call_is_under_way_or_a_person_is_asked():
    """Ours: a use that lasts for hours keeps its connection."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a", idle_stop=60.0) as supervisor:
            server = supervisor.servers["a"]
            async with supervisor.use("a") as client:
                await asyncio.sleep(7200)
                assert "ready" == server.state
            with client.held():
                await asyncio.sleep(7200)
                assert "ready" == server.state
            await asyncio.sleep(200)
            return server.state

    assert "idle" == run_virtual(main())


@pytest.mark.covers("hostservers.drain.in-flight")
def test_a_stop_waits_for_calls_in_flight_and_not_for_ever():
    """Ours: calls under way have thirty seconds, then their outcome is unknown."""

    async def main():
        fleet = Fleet()
        loop = asyncio.get_running_loop()
        async with supervised(fleet, "a") as supervisor:
            server = supervisor.servers["a"]
            gate = fleet.gate

            async def call():
                async with supervisor.use("a") as client:
                    return (await client.call_tool("wait")).text

            first = asyncio.ensure_future(call())
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            stopping = asyncio.ensure_future(server.stop())
            await asyncio.sleep(5)
            assert "draining" == server.state
            assert not stopping.done()
            gate.set()
            await stopping
            assert ("done", "idle", 5) == (await first, server.state, round(loop.time()))
            gate.clear()
            second = asyncio.ensure_future(call())
            await until(lambda: 2 == sum(b'"wait"' in one for one in fleet.calls))
            await server.stop()
            with pytest.raises(OutcomeUnknown):
                await second
            return round(loop.time())

    assert 35 == run_virtual(main())


def test_calls_that_come_while_a_server_restarts_wait_for_it():
    """Ours: a restart loses no call."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a") as supervisor:
            await add(supervisor)
            texts = await asyncio.gather(
                supervisor.servers["a"].restart(), *(add(supervisor) for _ in range(5))
            )
            return texts, len(fleet.starts)

    assert ([None, *["3"] * 5], 2) == run_virtual(main())


@pytest.mark.covers("hostservers.auth.needed")
async def test_a_server_that_wants_a_login_says_so_and_is_tried_again_by_the_next_use():
    """Ours: no browser is opened, and a login made elsewhere counts at once."""
    fleet = Fleet(a=[AuthRequired("https://a.example wants a login: isthmus login …")])
    async with supervised(fleet, "a") as supervisor:
        with pytest.raises(ServerUnavailable, match="isthmus login") as refusal:
            await add(supervisor)
        assert "needs_auth" == refusal.value.state == supervisor.servers["a"].state
        assert "3" == await add(supervisor)


async def test_an_entry_that_cannot_be_right_is_not_tried_again():
    """Ours: a mistake in the configuration does not mend itself."""
    fleet = Fleet(a=[ConfigError("a: host.auth.kind is 'magic'")])
    async with supervised(fleet, "a") as supervisor:
        with pytest.raises(ServerUnavailable, match="magic") as refusal:
            await add(supervisor)
        assert "failed" == refusal.value.state


async def test_a_server_that_takes_the_tokens_no_more_wants_a_login_again():
    """Ours: what expired in the middle of a day is seen in the list of servers, too."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        expired = AuthRequired("takes the kept tokens no more: isthmus login")

        async def call():
            async with supervisor.use("a"):
                raise expired

        with pytest.raises(AuthRequired):
            await call()
        assert "needs_auth" == supervisor.servers["a"].state
        assert "isthmus login" in supervisor.servers["a"].status().error
        assert "3" == await add(supervisor)


@pytest.mark.covers("hostservers.consent.first")
async def test_a_server_that_nobody_agreed_to_is_not_started():
    """Ours: consent comes before the process, whichever way the start was asked for."""
    fleet, agreed = Fleet(), []

    async def consented(_entry):
        return bool(agreed)

    supervisor = Supervisor(make_configuration("a"), fleet.client_for, consented=consented)
    async with supervisor:
        for _ in range(2):
            with pytest.raises(ServerUnavailable, match="has not agreed") as refusal:
                await add(supervisor)
        assert ("quarantined", []) == (refusal.value.state, fleet.starts)
        agreed.append("yes")
        await supervisor.servers["a"].start()
        assert "3" == await add(supervisor)


def test_a_server_that_answers_no_probe_is_degraded_and_then_connected_anew():
    """Ours: a hung server is noticed without anybody calling it."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a", idle_stop=None) as supervisor:
            await add(supervisor)
            fleet.deaf = True
            await asyncio.sleep(36)
            assert "degraded" == supervisor.servers["a"].state
            await asyncio.sleep(25)
            assert "3 probes" in supervisor.servers["a"].error
            fleet.deaf = False
            await asyncio.sleep(120)
            return supervisor.servers["a"].state, supervisor.servers["a"].error

    assert ("ready", "") == run_virtual(main())


def test_a_call_that_broke_while_the_connection_stands_makes_the_server_doubtful():
    """Ours: over HTTP each call has a connection of its own; the server is looked at soon."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a", idle_stop=None) as supervisor:

            async def broken():
                async with supervisor.use("a"):
                    raise ConnectionLost("the answer broke off")

            with pytest.raises(OutcomeUnknown):
                await broken()
            assert "degraded" == supervisor.servers["a"].state
            assert "3" == await add(supervisor)
            await asyncio.sleep(1)
            return supervisor.servers["a"].state

    assert "ready" == run_virtual(main())


def test_an_answer_to_a_probe_takes_doubt_away():
    """Ours: a server that was slow once is ready again."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a", idle_stop=None) as supervisor:
            await add(supervisor)
            fleet.deaf = True
            await asyncio.sleep(36)
            fleet.deaf = False
            await asyncio.sleep(10)
            return supervisor.seen()

    assert ["connecting", "ready", "degraded", "ready"] == run_virtual(main())


@pytest.mark.covers("hostservers.silent.others")
def test_a_silent_server_keeps_nobody_else_waiting():
    """Ours: starts run beside each other, and each has its own time limit."""

    async def main():
        fleet = Fleet(silent=["silent"])
        loop = asyncio.get_running_loop()
        async with supervised(fleet, "silent", "good", start="eager") as supervisor:
            assert "3" == await add(supervisor, "good")
            assert (0.0, "connecting") == (loop.time(), supervisor.servers["silent"].state)
            with pytest.raises(ServerUnavailable, match="30 s"):
                await add(supervisor, "silent")
            return round(loop.time())

    assert 30 == run_virtual(main())


async def test_closing_leaves_no_task_and_no_server_behind():
    """Ours: whatever a server was about to do, it is over."""
    before = asyncio.all_tasks()
    fleet = Fleet(silent=["silent"], bad=[refuse_connection()] * 9)
    async with supervised(fleet, "silent", "bad", "good", start="eager") as supervisor:
        await add(supervisor, "good")
    await until(lambda: asyncio.all_tasks() == before)
    assert {"idle"} == {server.state for server in supervisor.servers.values()}


def test_a_call_that_comes_while_a_server_is_switched_off_does_not_start_it_again():
    """Ours: off is off, also for those who were a moment too late."""

    async def main():
        fleet = Fleet()
        async with supervised(fleet, "a") as supervisor:

            async def call():
                async with supervisor.use("a") as client:
                    return (await client.call_tool("wait")).text

            under_way = asyncio.ensure_future(call())
            await until(lambda: any(b'"wait"' in one for one in fleet.calls))
            off = asyncio.ensure_future(supervisor.servers["a"].disable())
            await asyncio.sleep(1)
            with pytest.raises(ServerUnavailable, match="being stopped"):
                await add(supervisor)
            fleet.gate.set()
            await off
            assert "done" == await under_way
            return supervisor.servers["a"].state, len(fleet.starts)

    assert ("disabled", 1) == run_virtual(main())


async def test_disabled_servers_are_not_started_until_they_are_enabled():
    """Ours: what is switched off stays off for everybody."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        await add(supervisor)
        await supervisor.servers["a"].disable()
        with pytest.raises(ServerUnavailable, match="isthmus servers enable a"):
            await add(supervisor)
        await supervisor.servers["a"].enable()
        assert "3" == await add(supervisor)


async def test_a_host_that_fails_over_a_new_client_leaves_no_connection_behind():
    """Ours: a mistake of ours is told as one, and a call does not hang for it."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        supervisor.on_ready = lambda _name, _client: 1 / 0
        with pytest.raises(ServerUnavailable, match="ZeroDivisionError") as refusal:
            await add(supervisor)
        assert "failed" == refusal.value.state
        supervisor.on_ready = lambda _name, _client: None
        await supervisor.servers["a"].start()
        assert "3" == await add(supervisor)


async def test_a_start_that_is_taken_back_at_once_leaves_the_server_idle():
    """Ours: a keeper that never began is over, too."""
    fleet = Fleet()
    async with supervised(fleet, "a") as supervisor:
        connection = supervisor.servers["a"].connections[""]
        connection.start()
        await connection.stop()
        assert ("idle", []) == (connection.state, fleet.starts)
        assert "3" == await add(supervisor)
