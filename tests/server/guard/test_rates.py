"""Limiters: who is counted, and when counting begins."""

import pytest

from isthmus.errors import Refuse, UsageError
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.server import Server
from isthmus.server.guard.limits import LIMITED_CODE, Limiter, Limits, identify_caller
from isthmus.store.meter import Rate
from support.clock import ManualClock
from support.server.both_eras import EraClient


def inbound(client, **origin):
    """A request of a client, from somewhere."""
    return Inbound(1, "tools/call", None, client.caller, client.link, Origin("http", **origin))


@pytest.fixture
def client():
    """A client of no server in particular."""
    return EraClient(Server("none"))


async def taken(limiter, inbound, times):
    """How many of so many are allowed, as tools take them."""
    allowed = 0
    for _ in range(times):
        limiter.spare -= 1
        if limiter.spare < 0 and await limiter.excess(inbound):
            break
        allowed += 1
    return allowed


async def test_a_low_rate_is_counted_from_the_first(client):
    """Ours: three means three."""
    limiter = Limiter("calls", "tool_calls", Rate(3, 60), ManualClock(100.0))

    assert 3 == await taken(limiter, inbound(client), 5)


async def test_a_high_rate_is_kept_though_half_of_it_is_never_counted(client):
    """Ours: what is not counted is taken off what is."""
    time = ManualClock(100.0)
    limiter = Limiter("calls", "tool_calls", Rate(20_000, 60), time)

    assert 20_000 == await taken(limiter, inbound(client), 30_000)
    time.now += 60
    assert 20_000 == await taken(limiter, inbound(client), 30_000)


async def test_a_refusal_says_which_limit_and_how_long_to_wait(client):
    """Ours: a program finds the time in the data, and a person in the message."""
    limiter = Limiter("calls", "tool_calls", Rate(1, 2), ManualClock(100.0))
    await limiter.check(inbound(client))

    with pytest.raises(Refuse, match=r"Too many calls \(1 in 2 s for each caller\).* in 2 s") as no:
        await limiter.check(inbound(client))
    assert (LIMITED_CODE, {"limit": "tool_calls", "retryAfterMs": 2000}) == (
        no.value.code,
        no.value.data,
    )


def test_a_principal_is_counted_across_all_connections(client):
    """Ours: a second connection is no second allowance; a client's own name is no name."""
    client.caller.principal = "ada"

    assert "principal ada" == identify_caller(inbound(client, peer=("1.2.3.4", 5)))
    client.caller.principal = None
    assert "principal ada" == identify_caller(inbound(client, principal="ada", session="s"))


def test_others_are_counted_by_session_or_connection(client):
    """Ours: as the era has it."""
    assert "session s" == identify_caller(inbound(client, session="s", peer=("1.2.3.4", 5)))
    assert "peer ('1.2.3.4', 5)" == identify_caller(inbound(client, peer=("1.2.3.4", 5)))
    assert identify_caller(inbound(client)) == identify_caller(inbound(client))


def test_a_figure_of_nothing_is_refused():
    """Ours: None is what switches a limit off."""
    with pytest.raises(UsageError, match="streams=0"):
        Limits(streams=0)
