"""Places for connections that are not everybody's: never too many, the idlest goes first, nobody waits for ever."""

import asyncio

import pytest

from isthmus.bridge.forwarded import ForwardedCall
from isthmus.gateway import connection_places
from isthmus.gateway.connection_places import ConnectionPlaces
from isthmus.host.model.errors import Exhausted
from isthmus.host.model.gateway_options import GatewayLimits, ParkingOptions
from support.clock import run_in_virtual_time


class Connections:
    """Connections by name: those that are open, and the most there ever were."""

    def __init__(self, **limits):
        self.now, self.open, self.most, self.closed = 0.0, set(), 0, []
        self.limits = GatewayLimits(**limits)
        self.places = ConnectionPlaces(lambda: self.limits, self.close, clock=lambda: self.now)

    async def close(self, server, key):
        await asyncio.sleep(0)
        self.open.discard(key)
        self.closed.append(key)

    async def use(self, key, principal="user:a"):
        """Take a place, and open its connection."""
        place = await self.places.take("shop", key, principal)
        self.now += 1.0
        self.open.add(key)
        self.most = max(self.most, len(self.open))
        return place


async def test_calls_of_one_session_share_a_place():
    """Ours: a place is a connection, and not a call."""
    some = Connections(connections=1)
    first = await some.use("session:1")

    assert first is await some.use("session:1")


async def test_the_connection_that_was_idle_longest_makes_room():
    """Ours: whoever has not called for the longest time has to connect again."""
    some = Connections(connections=2)
    for key in ("session:1", "session:2", "session:1"):
        some.places.leave(await some.use(key))

    some.places.leave(await some.use("session:3"))

    assert ["session:2"] == some.closed
    assert 2 == some.most


async def test_a_principal_makes_room_among_its_own():
    """Ours: whoever has many sessions closes none of somebody else's."""
    some = Connections(connections=10, connections_of_principal=1)
    some.places.leave(await some.use("session:b", "user:b"))
    some.places.leave(await some.use("session:1"))

    some.places.leave(await some.use("session:2"))

    assert ["session:1"] == some.closed


async def test_a_call_waits_for_a_place_that_is_left():
    """Ours: a moment's wait is better than a refusal."""
    some = Connections(connections=1)
    first = await some.use("session:1")
    waiting = asyncio.ensure_future(some.use("session:2"))
    await asyncio.sleep(0)
    assert not waiting.done()

    some.places.leave(first)

    assert "session:2" == (await waiting).key
    assert 1 == some.most


async def test_a_call_without_a_place_is_told_when_to_come_again(monkeypatch):
    """Ours: the error names the limit, and has the seconds."""
    monkeypatch.setattr(connection_places, "PLACE_TIMEOUT_S", 0.02)
    some = Connections(connections=5, connections_of_principal=1)
    await some.use("session:1")

    with pytest.raises(Exhausted, match=r"of user:a .*connectionsOfPrincipal") as refused:
        await some.use("session:2")

    assert refused.value.retry_after == 1.0
    await some.use("session:b", "user:b")
    assert 1 == some.places.counts.refused


@run_in_virtual_time
async def test_a_call_that_finds_only_parked_ones_is_told_when_the_first_of_them_ends():
    """Ours: ten minutes are not a second, and an answer makes room sooner."""
    some = Connections(connections=5, connections_of_principal=2)
    loop = asyncio.get_running_loop()
    first, second = ForwardedCall(None, None, {}), ForwardedCall(None, None, {})
    first.parked_until, second.parked_until = loop.time() + 600, loop.time() + 300
    place = await some.places.take("shop", "call:1", "user:a", first)
    await some.places.take("shop", "call:2", "user:a", second)

    with pytest.raises(Exhausted, match=r"in 295 s, or answer the calls") as refused:
        await some.places.take("shop", "call:3", "user:a")
    assert refused.value.retry_after == pytest.approx(300 - connection_places.PLACE_TIMEOUT_S)

    first.parked_until = None  # its client has come again
    with pytest.raises(Exhausted, match=r"in 1 s$"):
        await some.places.take("shop", "call:3", "user:a")
    some.places.leave(place, first)
    assert "call:3" == (await some.places.take("shop", "call:3", "user:a")).key


def test_parked_calls_leave_connections_to_others_by_default():
    """Ours: questions that nobody answers must not keep a principal from calling."""
    limits, parking = GatewayLimits(), ParkingOptions()

    assert parking.calls_of_principal < limits.connections_of_principal
    assert parking.calls < limits.connections


async def test_too_many_waiting_calls_of_a_principal_are_refused_at_once(monkeypatch):
    """Ours: a queue has an end."""
    monkeypatch.setattr(connection_places, "MAX_WAITING_CALLS", 3)
    some = Connections(connections=1)
    first = await some.use("session:0")
    waiting = [asyncio.ensure_future(some.use(f"session:{n}")) for n in range(1, 4)]
    await asyncio.sleep(0)

    with pytest.raises(Exhausted, match=r"limits\.connections\)"):
        await some.use("session:9")

    some.places.leave(first)
    for one in asyncio.as_completed(waiting):
        some.places.leave(await one)
    assert 1 == some.most


async def test_the_end_of_a_session_closes_its_connections_also_those_that_are_opened_late():
    """Ours: a call that was held for a person, and goes on after its session, leaves nothing behind."""
    some = Connections()
    held = await some.use("session:1")

    some.places.end("session:1")
    await held.closing
    some.open.add("session:1")  # as a dispatch after the wait would
    some.places.leave(held)
    await held.closing

    assert set() == some.open
    assert 0 == some.places.counts.taken


async def test_an_idle_connection_is_closed():
    """Ours: after the seconds of the configuration, and not while it is used."""
    some = Connections(idle=10.0)
    used, idle = await some.use("session:1"), await some.use("session:2")
    some.places.leave(idle)
    some.now += 9.0
    some.places.close_idle()
    assert idle.closing is None

    some.now += 5.0
    some.places.close_idle()
    await idle.closing

    assert {"session:1"} == some.open
    assert used.closing is None
    await some.places.close()


async def test_there_are_never_more_connections_than_the_limit():
    """Ours: 200 sessions of five principals, whose connections take a moment to close."""
    some = Connections(connections=7, connections_of_principal=3)

    async def work(number):
        try:
            place = await some.use(f"session:{number}", f"user:{number % 5}")
        except Exhausted:
            return 0
        await asyncio.sleep(0)
        some.places.leave(place)
        return 1

    served = await asyncio.gather(*(work(number) for number in range(200)))

    assert some.most <= 7
    assert sum(served) == 200 - some.places.counts.refused
    await some.places.close()
