"""Sealed state: what is carried, what is kept in a store, for whom, how much, and for how long."""

import copy
import json
import logging
import time

import pytest

from isthmus.core.principal import Principal
from isthmus.server import Context, Limits, Server
from isthmus.store.kv import MemoryKV, StoreFull
from isthmus.wire.jsonrpc import ErrorBody
from support.server.both_eras import EraClient, accept_form, tool_text

ANN = Principal(issuer="https://login.example", subject="ann")
BOB = Principal(issuer="https://login.example", subject="bob")
SECRET = b"s" * 32
LONG = 10_000  # characters of a long answer
UNUSABLE = "this requestState cannot be used here"


def make_server(store=None, **settings):
    """A server whose tool asks as often as it is told to, and does something once before."""
    server = Server("asks", secret=SECRET, state_store=store, **settings)
    done = []

    def reserve(number: int) -> str:
        done.append(number)
        return f"place {number}"

    @server.tool
    async def ask(count: int, ctx: Context) -> str:
        """Ask."""
        said = []
        for number in range(count):
            place = await ctx.once(reserve, number)
            said.append(f"{place}: {(await ctx.elicit(f'Number {number}?', str)).value}")
        return json.dumps(said)

    server.done = done
    return server


def answer_long(method, params):
    """Ten kilobytes that are another for each question."""
    return accept_form(value=params["message"][-2] * LONG)


def make_expected(count):
    return [f"place {number}: {str(number)[-1] * LONG}" for number in range(count)]


class Call:
    """One call, round by round, with all its states."""

    def __init__(self, server, count, principal=ANN, text=None):
        self.client = EraClient(server, answer=answer_long, principal=principal)
        self.params = {"name": "ask", "arguments": {"count": count}}
        self.text = text

    async def go(self, state=None, **changes):
        """One round: the result, or the error."""
        params = {**self.params, **changes}
        if state is not None:
            params["requestState"] = state["requestState"]
            params["inputResponses"] = {
                key: answer_long("", asked["params"]) if self.text is None else self.text
                for key, asked in state["inputRequests"].items()
            }
        return await self.client.once("tools/call", params)

    async def until(self, rounds):
        """The state after so many rounds, or what the call came to before."""
        state = await self.go()
        for _ in range(rounds - 1):
            if not isinstance(state, dict) or "requestState" not in state:
                break
            state = await self.go(state)
        return state


async def list_kept(store):
    """The segments in a store, by their keys."""
    return {key: entry.value for key, entry in await store.scan("state/", "", 1000)}


async def count_kept(store):
    """The bytes of all segments."""
    return sum(map(len, (await list_kept(store)).values()))


# --- what is kept


async def test_what_a_client_carries_stays_short_where_there_is_a_store():
    """Ours: 30 answers of 10 KB, and never more than 32 KiB and a little in a token."""
    store = MemoryKV()
    call = Call(make_server(store, max_rounds=40), 30)
    state, longest = await call.go(), 0
    while "requestState" in state:
        longest = max(longest, len(state["requestState"]))
        state = await call.go(state)

    assert make_expected(30) == json.loads(tool_text(state))
    assert longest < 33 * 1024
    assert 27 * LONG < await count_kept(store)
    assert list(range(30)) == call.client.server.done


async def test_short_answers_are_carried_even_where_there_is_a_store():
    """A store is asked for nothing where nothing needs it."""
    store = MemoryKV()
    result = await EraClient(make_server(store), answer=lambda *_: accept_form(value="x")).call(
        "ask", {"count": 5}
    )
    assert "place 4: x" in tool_text(result)
    assert 0 == len(store)


async def test_three_long_answers_work_without_a_store_as_in_a_session():
    """They are carried: 1 MiB is what a token may have."""
    result = await Call(make_server(), 4).until(5)
    assert make_expected(4) == json.loads(tool_text(result))


async def test_processes_that_share_a_store_and_a_secret_serve_one_call():
    """Each round may reach another."""
    store = MemoryKV()
    state = await Call(make_server(store), 9).go()
    while "requestState" in state:
        state = await Call(make_server(store), 9).go(state)
    assert make_expected(9) == json.loads(tool_text(state))


async def test_a_key_that_no_longer_seals_still_opens_what_is_kept():
    """Secrets are rotated by putting the new one first."""
    store = MemoryKV()
    state = await Call(make_server(store), 5).until(4)
    rotated = make_server(store)
    rotated.configure(secret=[b"n" * 32, SECRET])
    result = await Call(rotated, 5).go(state)
    assert "requestState" in result
    assert await list_kept(store)


async def test_what_is_kept_cannot_be_read_in_the_store():
    """It is sealed as the token is: who has the store has no answers."""
    store = MemoryKV()
    await Call(make_server(store), 9).until(5)
    values = b"".join((await list_kept(store)).values())
    assert values
    assert b"000000" not in values
    assert b"place" not in values


# --- whose it is


@pytest.mark.covers("rounds.state.bound")
async def test_a_state_whose_answers_are_kept_is_worth_nothing_to_another():
    """Spec 2026-07-28 basic/patterns/mrtr: bound to principal and request."""
    store = MemoryKV()
    server = make_server(store)
    state = await Call(server, 9).until(5)

    stolen = await Call(server, 9, BOB).go(state)
    nobody = await Call(server, 9, None).go(state)
    other = await Call(server, 8).go(state)
    own = await Call(server, 9).go(state)

    assert [-32602] * 3 == [refused.code for refused in (stolen, nobody, other)]
    assert "requestState" in own


@pytest.mark.covers("rounds.state.verified")
@pytest.mark.parametrize("spoil", ["other", "changed", "gone", "older", "counted"])
async def test_a_store_that_hands_out_something_else_is_not_believed(spoil, caplog):
    """What is there is opened for this call and this place, or the call is refused."""
    store = MemoryKV()
    server = make_server(store)
    state = await Call(server, 9).until(4)
    ((place, mine),) = (await list_kept(store)).items()
    if spoil == "other":
        await Call(server, 9).until(4)
        (other,) = (value for key, value in (await list_kept(store)).items() if key != place)
        await store.put(place, other)
    elif spoil == "changed":
        await store.put(place, mine[:-1] + bytes([mine[-1] ^ 1]))
    elif spoil == "gone":
        await store.delete(place)
    elif spoil == "older":
        await store.put(place, b"")
    else:
        ((_, count),) = await store.scan("state-use/", "", 9)
        await store.put(place, count.value)
    with caplog.at_level(logging.WARNING):
        refused = await Call(server, 9).go(state)

    assert isinstance(refused, ErrorBody)
    assert (-32602, True) == (refused.code, UNUSABLE in refused.message)
    assert "requestState refused" in caplog.text
    assert [] == [text for text in caplog.messages if "0000" in text]


async def test_a_server_without_the_store_refuses_a_state_that_needs_it(caplog):
    """One that was set up otherwise says so in its log."""
    state = await Call(make_server(MemoryKV()), 9).until(5)
    refused = await Call(make_server(), 9).go(state)
    assert -32602 == refused.code
    assert "Server(state_store=…)" in caplog.text


# --- sent again, and answered otherwise


@pytest.mark.covers("rounds.effects.once")
async def test_an_older_state_goes_on_from_where_it_was():
    """A state may be sent again while it is valid: nothing of it was used up by what came after."""
    store = MemoryKV()
    server = make_server(store)
    call = Call(server, 8)
    older = await call.until(5)
    newer = await call.go(await call.go(older))
    again = await call.go(older)

    assert newer["inputRequests"] != again["inputRequests"]
    while "requestState" in again:
        again = await call.go(again)
    assert make_expected(8) == json.loads(tool_text(again))


async def test_a_state_answered_twice_gives_two_calls_that_do_not_meet():
    """Neither sees what the other was answered."""
    store = MemoryKV()
    server = make_server(store)
    state = await Call(server, 6).until(4)
    first, second = Call(server, 6), Call(server, 6, text=accept_form(value="!" * LONG))
    one, two = await first.go(state), await second.go(copy.deepcopy(state))
    for _ in range(2):
        one, two = await first.go(one), await second.go(two)

    assert make_expected(6) == json.loads(tool_text(one))
    ours, theirs = json.loads(tool_text(one)), json.loads(tool_text(two))
    assert ours[:3] == theirs[:3]
    assert ["!" * LONG] * 3 == [said.split(": ")[1] for said in theirs[3:]]


async def test_a_round_that_is_sent_again_with_no_answers_asks_the_same():
    """A strict replay, and a client whose answer was lost."""
    store = MemoryKV()
    server = make_server(store)
    call = Call(server, 9)
    state = await call.until(5)
    again = await call.client.once(
        "tools/call", {**call.params, "requestState": state["requestState"]}
    )
    assert state["inputRequests"] == again["inputRequests"]


# --- how long


async def test_what_is_kept_outlives_the_token_that_names_it(monkeypatch):
    """A call that goes on is kept anew; one that does not is gone after twice the time."""
    now, begun = [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: begun + now[0])
    store = MemoryKV(clock=lambda: now[0])
    call = Call(make_server(store, state_ttl=100.0, max_rounds=30), 12)
    state = await call.until(4)
    first = set(await list_kept(store))
    for later in (90.0, 170.0, 250.0, 340.0, 420.0):  # each within the time of the round before
        now[0] = later
        state = await call.go(state)
        assert "requestState" in state
    assert not first & set(await list_kept(store))
    while "requestState" in state:
        state = await call.go(state)
    assert make_expected(12) == json.loads(tool_text(state))
    now[0] = 421.0 + 200.0 + 100.0
    assert [] == await store.scan("state", "", 9)


@pytest.mark.covers("rounds.state.bound")
async def test_a_state_expires_though_its_answers_are_still_kept(monkeypatch):
    """Its time is its own."""
    now, begun = [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: begun + now[0])
    store = MemoryKV(clock=lambda: now[0])
    call = Call(make_server(store, state_ttl=100.0), 9)
    state = await call.until(4)
    now[0] = 101.0
    refused = await call.go(state)
    assert await list_kept(store)
    assert -32602 == refused.code


async def test_a_token_does_not_outlive_what_it_names(monkeypatch):
    """Where there is no room to keep it anew, the state is valid as long as what is kept."""
    now, begun = [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: begun + now[0])
    store = MemoryKV(clock=lambda: now[0])
    limits = Limits(stored_state_each=50_000)
    call = Call(make_server(store, state_ttl=100.0, limits=limits), 9)
    state = await call.until(4)
    now[0] = 90.0
    state = await call.go(state)
    now[0] = 180.0
    state = await call.go(state)  # kept until 200, and no room for more
    assert "requestState" in state
    now[0] = 199.0
    assert "requestState" in await call.go(state)
    now[0] = 201.0
    refused = await call.go(state)
    assert (-32602, True) == (refused.code, UNUSABLE in refused.message)


# --- how much


async def test_without_a_store_the_error_says_which_answer_how_large_and_what_to_set(caplog):
    """The author reads it in the log, the caller in the error."""
    server = make_server(limits=Limits(request_state=20_000))
    call = Call(server, 9)
    with caplog.at_level(logging.WARNING):
        refused = await call.until(3)

    assert -32603 == refused.code
    for part in (
        "more than the 20000 allowed (Limits.request_state)",
        "the largest is the answer to question 1 of 2, with 10046 bytes",
        "Server(state_store=…)",
    ):
        assert part in refused.message
        assert part in caplog.text


async def test_the_error_says_where_an_effect_or_the_authors_own_state_is_too_large():
    """What to shorten is named."""
    server = Server("large", limits=Limits(request_state=20_000))

    @server.tool
    async def effect(ctx: Context) -> str:
        await ctx.once(lambda: "x" * 20_000)
        return str(await ctx.elicit("?"))

    refused = await EraClient(server).call("effect")
    assert "the largest is the result of ctx.once 1 of 1, with 20009 bytes" in refused.message


@pytest.mark.parametrize(
    ("limits", "setting"),
    [
        (Limits(stored_state=40_000, request_state=60_000), "Limits.stored_state)"),
        (Limits(stored_state_each=40_000, request_state=60_000), "Limits.stored_state_each)"),
    ],
)
async def test_beyond_what_may_be_kept_it_is_carried_and_then_refused(limits, setting):
    """A full store takes nothing away from calls that do without."""
    store = MemoryKV()
    call = Call(make_server(store, limits=limits, max_rounds=30), 12)
    state, rounds = await call.go(), 0
    while isinstance(state, dict):
        rounds += 1
        assert len(state["requestState"]) <= 60_000
        state = await call.go(state)

    assert rounds > 6
    assert -32603 == state.code
    assert "it cannot be kept here: " in state.message
    assert setting in state.message
    assert await count_kept(store) < 40_000


async def test_a_store_that_is_full_is_no_error_while_the_client_can_carry():
    """Others may have filled it."""

    class Full(MemoryKV):
        async def put(self, key, value, ttl=None):
            raise StoreFull("the store is full")

    fits = await Call(make_server(Full()), 4).until(5)
    over = await Call(make_server(Full(), limits=Limits(request_state=30_000)), 9).until(4)

    assert make_expected(4) == json.loads(tool_text(fits))
    assert "the store is full" in over.message


async def test_one_caller_cannot_take_the_room_of_another():
    """What is kept is counted for each principal, however many calls it is in."""
    store = MemoryKV()
    server = make_server(store, limits=Limits(stored_state_each=100_000, request_state=40_000))
    for _ in range(10):
        refused = await Call(server, 9).until(5)
    ann = await count_kept(store)
    bob = await Call(server, 9, BOB).until(5)

    assert ann <= 100_000
    assert isinstance(refused, ErrorBody)
    assert "requestState" in bob
    assert ann < await count_kept(store) <= 200_000


async def test_the_same_state_sent_over_and_over_keeps_no_more_than_one_caller_may():
    """An attacker who answers one state a hundred times fills nothing."""
    store = MemoryKV()
    server = make_server(store, limits=Limits(stored_state_each=100_000))
    state = await Call(server, 9).until(3)
    for _ in range(100):
        assert "requestState" in await Call(server, 9).go(state)
    assert await count_kept(store) <= 100_000
    assert len(await list_kept(store)) <= 4


async def test_what_has_expired_counts_no_more(monkeypatch):
    """A caller who was at the limit is below it again in time."""
    now, begun = [0.0], time.time()
    monkeypatch.setattr(time, "time", lambda: begun + now[0])
    store = MemoryKV(clock=lambda: now[0])
    server = make_server(
        store, state_ttl=100.0, limits=Limits(stored_state_each=40_000, request_state=40_000)
    )
    await Call(server, 9).until(4)
    refused = await Call(server, 9).until(5)
    now[0] = 210.0
    state = await Call(server, 9).until(4)

    assert isinstance(refused, ErrorBody)
    assert len(state["requestState"]) < 1000


async def test_two_rounds_that_count_at_once_both_count():
    """Whoever comes second counts again, from what the first one left."""

    class Contended(MemoryKV):
        lost = 0

        async def cas(self, key, value, version, ttl=None):
            if self.lost < 2:
                self.lost += 1
                return None
            return await super().cas(key, value, version, ttl)

    store = Contended()
    state = await Call(make_server(store), 9).until(4)
    assert len(state["requestState"]) < 1000
    assert 2 == store.lost


async def test_a_count_that_is_never_free_keeps_nothing():
    """It is carried then."""

    class Busy(MemoryKV):
        async def cas(self, key, value, version, ttl=None):
            return None

    store = Busy()
    state = await Call(make_server(store), 9).until(4)
    assert 30_000 < len(state["requestState"])
    assert {} == await list_kept(store)


async def test_without_a_limit_nothing_is_counted():
    """None switches a limit off."""
    store = MemoryKV()
    server = make_server(store, limits=Limits(stored_state=None, stored_state_each=None))
    await Call(server, 9).until(4)
    assert 1 == len(store)


async def test_a_state_without_a_life_is_over_at_once_even_in_a_store():
    """A server whose questions may take no time."""
    store = MemoryKV(clock=lambda: 0.0)
    call = Call(make_server(store, state_ttl=0), 9)
    refused = await call.go(await call.go())
    assert isinstance(refused, ErrorBody)
