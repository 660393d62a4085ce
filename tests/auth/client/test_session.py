"""One flight for all who need tokens, with grants that do what the test says."""

import asyncio

import pytest

from isthmus.auth.client.session import AuthSession, StepUps, TokenDemand
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.net.network import NetworkFailed
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused, ConnectionLost, ScopeShortfall
from support.event_loop import run_turns

URL = "https://mcp.example/mcp"


def tokens(name, **more):
    more.setdefault("refresh", Secret(f"refresh-{name}"))
    return Tokens(access=Secret(name), issuer="i", client_id="c", resource=URL, **more)


class Desk:
    """A grant that says what it is asked, and does what it is told."""

    def __init__(self, *, kept=None, asks_user=True):
        self.kept = kept
        self.asks_user = asks_user
        self.said = []
        self.next = {"load": kept, "refresh": None, "obtain": tokens("new")}
        self.gate = asyncio.Event()
        self.gate.set()

    async def load(self):
        return await self.do("load")

    async def refresh(self, tokens, want):
        return await self.do("refresh")

    async def obtain(self, want):
        return await self.do("obtain")

    async def close(self):
        self.said.append("close")

    async def do(self, what):
        self.said.append(what)
        await self.gate.wait()
        result = self.next[what]
        if isinstance(result, Exception):
            raise result
        return result


def session(desk, now=1000.0):
    made = AuthSession(desk, now=lambda: made.time)
    made.time = now
    return made


async def test_stored_tokens_are_loaded_once():
    """Ours: a store may be slow."""
    old = tokens("old")
    one = session(desk := Desk(kept=old))

    assert [old] * 3 == await asyncio.gather(*(one.ready() for _ in range(3)))
    assert ["load"] == desk.said
    assert one.fresh


@pytest.mark.parametrize(
    ("life", "age", "due"),
    [(3600, 3539, False), (3600, 3540, True), (60, 47, False), (60, 48, True), (None, 9e9, False)],
)
async def test_tokens_are_due_a_minute_before_their_end_or_late_in_a_short_life(life, age, due):
    """Ours: 80 % of a life of less than five minutes."""
    end = None if life is None else 1000.0 + life
    one = session(desk := Desk(kept=tokens("old", issued_at=1000.0, expires_at=end)))
    desk.next["refresh"] = tokens("newer")
    await one.ready()
    one.time = 1000.0 + age
    await one.ready()

    assert due == ("refresh" in desk.said)


async def test_without_a_refresh_token_the_server_says_when_it_is_over():
    """Ours: nobody is asked early; a machine gets the next one in time."""
    old = tokens("old", issued_at=0.0, expires_at=900.0, refresh=None)
    user, machine = session(Desk(kept=old)), session(Desk(kept=old, asks_user=False))
    machine._grant.next["refresh"] = tokens("newer")

    assert old is await user.ready()
    assert Secret("newer") == (await machine.ready()).access


async def test_a_renewal_that_fails_while_the_token_is_good_waits_a_while():
    """Ours: ten seconds; once it is over the failure is told."""
    old = tokens("old", issued_at=0.0, expires_at=1030.0)
    one = session(desk := Desk(kept=old))
    desk.next["refresh"] = NetworkFailed("no answer")
    for _ in range(3):
        assert old is await one.ready()
    assert 1 == desk.said.count("refresh")
    one.time = 1040.0
    with pytest.raises(NetworkFailed):
        await one.ready()


async def test_a_refresh_token_that_is_dead_is_not_tried_again():
    """Ours: the access token is used up to its end."""
    old = tokens("old", issued_at=0.0, expires_at=1030.0)
    one = session(desk := Desk(kept=old))
    for _ in range(3):
        assert old.access == (await one.ready()).access
    assert 1 == desk.said.count("refresh")


async def test_all_who_need_tokens_wait_for_one_flight():
    """Ours: and get the same ones, or the same error."""
    one = session(desk := Desk())
    desk.gate.clear()
    waiting = [asyncio.create_task(one.renewed(TokenDemand())) for _ in range(5)]
    await run_turns()
    desk.gate.set()
    assert {Secret("new")} == {(await task).access for task in waiting}
    assert ["obtain"] == desk.said

    desk.next["obtain"] = AuthRefused("no", "access_denied")
    other = session(desk)
    desk.gate.clear()
    waiting = [asyncio.create_task(other.renewed(TokenDemand())) for _ in range(3)]
    await run_turns()
    desk.gate.set()
    assert [AuthRefused] * 3 == [
        type(e) for e in await asyncio.gather(*waiting, return_exceptions=True)
    ]


async def test_a_caller_during_a_cancelled_flight_begins_another():
    """Ours: somebody else's cancellation is not theirs."""
    one = session(desk := Desk())
    desk.gate.clear()
    first = asyncio.create_task(one.renewed(TokenDemand()))
    await run_turns()
    first.cancel()
    await asyncio.sleep(0)
    second = asyncio.create_task(one.renewed(TokenDemand()))
    await run_turns()
    desk.gate.set()

    assert Secret("new") == (await second).access
    assert first.cancelled()


async def test_a_request_that_nobody_waits_for_opens_no_browser():
    """Ours: notifications, streams and the end of a session open no browser."""
    one = session(desk := Desk(kept=tokens("old", refresh=None)))
    old = await one.ready()

    assert await one.renewed(TokenDemand(before=old), patient=False) is None
    assert "obtain" not in desk.said
    desk.gate.clear()
    waiting = asyncio.create_task(one.renewed(TokenDemand(before=old)))
    await run_turns()
    assert await one.renewed(TokenDemand(before=old), patient=False) is None
    desk.gate.set()
    assert Secret("new") == (await waiting).access


async def test_a_token_that_was_just_refreshed_and_refused_leads_to_the_user():
    """Ours: and one that was just obtained to an error, not to another login."""
    one = session(desk := Desk(kept=tokens("old")))
    desk.next["refresh"] = tokens("newer")
    newer = await one.renewed(TokenDemand(before=await one.ready()))
    assert Secret("newer") == newer.access
    new = await one.renewed(TokenDemand(before=newer))
    assert Secret("new") == new.access
    with pytest.raises(AuthRefused, match="does not let in a token that i has just issued"):
        await one.renewed(TokenDemand(before=new))
    one.worked(new)
    assert Secret("newer") == (await one.renewed(TokenDemand(before=new))).access
    assert ["load", "refresh", "obtain", "refresh"] == desk.said


async def test_closing_ends_a_flight_and_everybody_who_waits():
    """Ours: nothing is left running."""
    one = session(desk := Desk())
    desk.gate.clear()
    waiting = asyncio.create_task(one.renewed(TokenDemand()))
    await run_turns()
    await one.close()
    with pytest.raises(ConnectionLost, match="closed while it got authorization"):
        await waiting
    assert "close" == desk.said[-1]


async def test_forgotten_tokens_are_not_sent():
    """Ours: after a logout."""
    one = session(Desk(kept=tokens("old")))
    await one.ready()
    one.forget()

    assert await one.ready() is None


async def test_more_scopes_that_somebody_else_got_are_taken():
    """Ours: two calls that lack the same lead to one question."""
    few, many = tokens("few", scopes=frozenset("a")), tokens("many", scopes=frozenset("ab"))
    one = session(desk := Desk(kept=few))
    desk.next["obtain"] = many
    ups = StepUps(one, URL)
    await one.ready()
    want = TokenDemand(before=few, scopes=frozenset("b"), more=True, operation="tools/call x")
    first, second = await asyncio.gather(ups.tokens(want), ups.tokens(want))

    assert many is first is second
    assert 1 == desk.said.count("obtain")


async def test_operations_that_are_remembered_are_bounded():
    """Ours: names come from callers."""
    few = tokens("few", scopes=frozenset("a"))
    one = session(desk := Desk(kept=few))
    desk.next["obtain"] = few
    ups = StepUps(one, URL)
    await one.ready()
    for number in range(1100):
        want = TokenDemand(before=few, scopes=frozenset("b"), more=True, operation=f"x{number}")
        desk.next["obtain"] = tokens(f"few{number}", scopes=frozenset("a"))
        with pytest.raises(ScopeShortfall):
            await ups.tokens(want)

    assert 1000 == len(ups._tries)
