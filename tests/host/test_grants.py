"""What was granted for longer than once."""

import asyncio

import pytest

from isthmus.host.approvals.grants import STALE_AFTER_S, Grants
from isthmus.host.model.errors import Exhausted
from isthmus.host.model.interaction import Decision
from isthmus.host.state.database import HostState
from isthmus.store.sqlite import StoreUnavailable
from support.clock import ManualClock
from support.host.policies import READS, make_attempt, make_facts


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
async def grants(clock):
    state = HostState(None, clock=clock)
    made = Grants(state, session="s")
    await made.load()
    yield made
    await made.close()
    await state.close()


def yes(remember, **more):
    """A person's yes."""
    return Decision(verdict="allow", remember=remember, **({"assurance": "local_ui"} | more))


READING = make_facts(trust="full", annotations=READS)
HERE = make_attempt("write", {"path": "/code/app/a.txt", "n": 1})

OTHERS = {
    "principal": (make_attempt("write", HERE.arguments, principal="agent:1"), make_facts()),
    "server": (make_attempt("write", HERE.arguments, server="other"), make_facts()),
    "identity": (HERE, make_facts(identity="another program")),
    "tool": (make_attempt("wr\u0456te", HERE.arguments), make_facts()),
    "fingerprint": (HERE, make_facts(fingerprint="another definition")),
    "arguments": (make_attempt("write", {"path": "/code/app/b.txt", "n": 1}), make_facts()),
    "shape": (make_attempt("write", {"path": "/code/app/b.txt", "n": 2}), make_facts()),
    "escape": (make_attempt("write", {"path": "/code/app/../x", "n": 1}), make_facts()),
    "more": (make_attempt("write", {**HERE.arguments, "more": 1}), make_facts()),
    "run": (make_attempt("write", HERE.arguments, run="another"), make_facts()),
    "action": (make_attempt("write", HERE.arguments, action="prompt.get"), make_facts()),
}
FREE = {
    "arguments": {"run"},
    "shape": {"run", "arguments"},
    "tool_run": {"arguments", "shape", "escape", "more"},
    "session": {"run", "arguments", "shape", "escape", "more"},
    "until": {"run", "arguments", "shape", "escape", "more"},
    "tool_always": {"run", "arguments", "shape", "escape", "more"},
}
"""For each scope the ways in which an attempt may be another and still be covered."""


@pytest.mark.parametrize("scope", FREE)
@pytest.mark.covers("hostpolicy.grants.bound", "hostpolicy.names.exact")
async def test_a_grant_covers_what_its_scope_says_and_nothing_else(grants, scope):
    """Ours: another program, another definition or a look-alike name is somebody else."""
    assert await grants.remember(HERE, make_facts(), yes(scope))

    assert grants.find(HERE, make_facts())
    assert FREE[scope] == {name for name, (a, f) in OTHERS.items() if grants.find(a, f)}


@pytest.mark.covers("hostpolicy.grants.bound")
async def test_all_tools_that_only_read_are_those_of_which_a_trusted_server_says_so(grants):
    """Ours: neither those that say nothing, nor those of a server that is trusted no more."""
    read, other = make_attempt("read"), make_attempt("look")
    assert await grants.remember(read, READING, yes("server_read_only"))

    assert grants.find(other, make_facts(trust="full", annotations=READS, fingerprint="g"))
    assert not grants.find(other, make_facts(trust="full"))
    assert not grants.find(other, make_facts(annotations=READS))
    assert not grants.find(make_attempt("read", action="resource.read"), READING)


@pytest.mark.parametrize(
    ("attempt", "circumstances", "decision"),
    [
        (HERE, make_facts(), yes("once")),
        (HERE, make_facts(), Decision(verdict="deny", remember="tool_always")),
        (HERE, make_facts(), Decision(verdict="cancel", remember="session")),
        (HERE, make_facts(), yes("server_read_only")),
        (HERE, make_facts(), yes("tool_always", until=999.0)),
        (make_attempt("write", run=""), make_facts(), yes("tool_run")),
        (make_attempt("write", {"x": {1, object()}}), make_facts(), yes("arguments")),
    ],
    ids=["once", "no", "neither", "unknown", "past", "no-run", "no-digest"],
)
@pytest.mark.covers("hostpolicy.grants.bound")
async def test_what_cannot_be_bound_is_for_this_once(grants, attempt, circumstances, decision):
    """Ours: nothing is kept that would be wider than what was said."""
    assert await grants.remember(attempt, circumstances, decision) is None
    assert not grants.all()


async def test_the_shape_of_arguments_is_another_file_or_page_of_the_same_place(grants):
    """Ours: a command, a recipient or an amount has to be the same."""
    attempt = make_attempt(
        "get", {"url": "https://example.com/a", "to": "bob", "a b": "/x/y", "home": "/etc"}
    )
    grant = await grants.remember(attempt, make_facts(), yes("shape"))

    assert ('/url host-in "example.com"',) == grant.shape
    assert grants.find(
        make_attempt("get", {**attempt.arguments, "url": "https://example.com/b?c"}), make_facts()
    )
    assert not grants.find(
        make_attempt("get", {**attempt.arguments, "url": "https://evil.com/a"}), make_facts()
    )
    assert not grants.find(make_attempt("get", {**attempt.arguments, "to": "eve"}), make_facts())


async def test_rules_say_which_scopes_and_whose_yes_count(grants):
    """Ours: what a rule demands of an answer it demands of one that was remembered, too."""
    await grants.remember(HERE, make_facts(), yes("session"))

    assert grants.find(HERE, make_facts(), remember=("once", "session"), assurance="local_ui")
    assert not grants.find(HERE, make_facts(), remember=("once", "arguments"))
    assert not grants.find(HERE, make_facts(), assurance="second_person")


async def test_the_narrowest_grant_is_used_first(grants):
    """Ours: and one that may be used any number of times before one that is counted."""
    wide = await grants.remember(HERE, make_facts(), yes("tool_always"))
    await grants.remember(HERE, make_facts(), yes("arguments"), uses=1)
    narrow = await grants.remember(HERE, make_facts(), yes("shape"))

    assert narrow.id == grants.find(HERE, make_facts()).id
    assert await grants.revoke(narrow.id)
    assert wide.id == grants.find(HERE, make_facts()).id


@pytest.mark.covers("hostpolicy.grants.clock")
async def test_what_was_over_stays_over_when_the_clock_jumps_back(grants, clock):
    """Ours: in this life of the host and, once it was seen, in the next."""
    await grants.remember(HERE, make_facts(), yes("until", until=1100.0))
    assert grants.find(HERE, make_facts(now=1099.0))
    clock.now = 1200.0
    assert not grants.find(HERE, make_facts(now=1200.0))
    clock.now = 1001.0

    assert not grants.find(HERE, make_facts(now=1001.0))
    await grants.refresh()
    assert ["expired"] == [grant.ended for grant in await grants.history()]
    assert await grants.remember(HERE, make_facts(), yes("until"))
    assert 1001.0 + 86_400 == grants.all()[0].until


@pytest.mark.covers("hostpolicy.grants.uses")
async def test_a_use_is_counted_before_it(tmp_path):
    """Ours: of two processes one gets the last."""
    one, two = HostState(tmp_path), HostState(tmp_path)
    first, second = Grants(one), Grants(two)
    await first.load()
    grant = await first.remember(HERE, make_facts(), yes("tool_always"), uses=2)
    await second.load()

    assert await first.use(grant.id)
    assert await second.use(grant.id)
    assert [False, False] == [await first.use(grant.id), await second.use(grant.id)]
    assert first.find(HERE, make_facts()) is None is second.find(HERE, make_facts())
    assert ["used up"] == [one.ended for one in await first.history()]
    assert not await first.use("no such grant")
    await first.close()
    await second.close()
    await one.close()
    await two.close()


@pytest.mark.covers("hostpolicy.grants.revoked", "hostpolicy.grants.durable")
async def test_what_is_revoked_elsewhere_counts_no_more(tmp_path):
    """Ours: what is durable in one process is what another one sees at its next look."""
    one, two = HostState(tmp_path), HostState(tmp_path)
    first, second = Grants(one), Grants(two)
    await first.load()
    grant = await first.remember(HERE, make_facts(), yes("tool_always"))
    await second.refresh()

    assert [grant] == list(second.all())
    assert await second.revoke(grant.id)
    assert not await second.revoke(grant.id)
    assert not second.find(HERE, make_facts())
    await first.refresh()
    assert not first.find(HERE, make_facts())
    assert not await first.use(grant.id)
    await first.close()
    await one.close()
    await two.close()


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_what_was_read_too_long_ago_counts_no_more(tmp_path):
    """Ours: where the state cannot be read, nobody knows what was taken back."""
    steady = ManualClock(0.0)
    state = HostState(tmp_path)
    grants = Grants(state, steady=steady)
    await grants.refresh()
    grant = await grants.remember(HERE, make_facts(), yes("tool_always"))
    assert grants.find(HERE, make_facts())
    steady.now = STALE_AFTER_S + 0.1

    assert not grants.find(HERE, make_facts())
    await grants.fresh()
    assert grants.find(HERE, make_facts())
    assert await grants.use(grant.id)
    await state.close()


@pytest.mark.covers("hostpolicy.grants.revoked")
async def test_a_grant_is_dead_here_even_where_its_end_cannot_be_written(grants, monkeypatch):
    """Ours: whoever takes something back does not depend on a disk."""
    grant = await grants.remember(HERE, make_facts(), yes("session"))

    async def full(work):
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(grants._storage._state, "write", full)
    with pytest.raises(StoreUnavailable):
        await grants.revoke(grant.id)
    assert not grants.find(HERE, make_facts())
    monkeypatch.undo()


@pytest.mark.covers("hostpolicy.grants.bound")
async def test_what_holds_for_a_session_ends_with_it(tmp_path, clock):
    """Ours: in another life of the host it is not there, and what was left over is tidied away."""
    state = HostState(tmp_path, clock=clock)
    first = Grants(state, session="one")
    await first.refresh()
    await first.remember(HERE, make_facts(), yes("session"))
    await first.remember(HERE, make_facts(), yes("tool_run"))
    second = Grants(state, session="two")
    await second.load()

    assert "tool_run" == second.find(HERE, make_facts()).scope
    assert not second.find(make_attempt("write", HERE.arguments, run="another"), make_facts())
    await second.close()
    clock.now += 8 * 86_400
    third = Grants(state, session="three")
    await third.load()
    assert not third.all()
    await third.remember(HERE, make_facts(), yes("session"))
    await third.close()
    assert {"expired"} == {one.ended for one in await third.history()}
    await state.close()


@pytest.mark.covers("hostpolicy.grants.dead")
async def test_what_was_granted_for_a_host_that_was_killed_holds_for_nobody(tmp_path, clock):
    """Ours: it is not listed as if it did; what another host that lives was granted is."""
    state = HostState(tmp_path, clock=clock)
    killed, alive, other = (Grants(state, session=name) for name in ("one", "two", "three"))
    await killed.load()
    await alive.load()
    await killed.remember(HERE, make_facts(), yes("session"))
    living = await alive.remember(HERE, make_facts(), yes("arguments"))
    lasting = await killed.remember(HERE, make_facts(), yes("until"))
    killed._storage._presence.end()  # as the system does it for a process that is gone
    await other.refresh()
    await other.end_dead()

    assert {living.id, lasting.id} == {one.id for one in other.all()}
    assert ["expired"] == [one.ended for one in await other.history() if one.ended]
    await alive.refresh()
    assert living == alive.find(HERE, make_facts(), remember=("arguments",))
    await killed.close()
    await alive.close()
    assert [lasting.id] == [one.id for one in other.all() if not one.session]
    await state.close()


async def test_more_grants_than_anybody_could_look_through_are_refused(grants, monkeypatch):
    """Ours: everything has an end."""
    monkeypatch.setattr("isthmus.host.approvals.grants.MAX_GRANTS", 1)
    await grants.remember(HERE, make_facts(), yes("session"))

    with pytest.raises(Exhausted, match="isthmus grants revoke"):
        await grants.remember(HERE, make_facts(), yes("tool_always"))


async def test_keeping_up_ends_when_it_is_closed(tmp_path):
    """Ours: no task is left, and closing twice is closing once."""
    state = HostState(tmp_path)
    grants = Grants(state)
    await grants.load()
    assert "isthmus grants" in {task.get_name() for task in asyncio.all_tasks()}
    await grants.close()
    await grants.close()

    assert "isthmus grants" not in {task.get_name() for task in asyncio.all_tasks()}
    await state.close()


async def test_an_end_beyond_all_time_is_kept_as_one(grants):
    """Ours: a surface may name any number; what it means is that the yes lasts."""
    made = await grants.remember(HERE, make_facts(), yes("until", until=1e300))

    assert made is not None
    assert [made.id] == [grant.id for grant in grants.all()]
