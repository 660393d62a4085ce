"""Decisions that outlive the host."""

import pytest
from msgspec import UNSET

from isthmus.host.approvals.decisions import MAX_DECISION_AGE_S, Decisions, TaskQuestion
from isthmus.host.model.interaction import Decision
from isthmus.host.state.database import HostState

ONE = TaskQuestion("id", "task-1", "form a")
BESIDE = TaskQuestion("id", "task-1", "form b")
OTHER = TaskQuestion("id", "task-2", "form a")
STRANGER = TaskQuestion("another", "task-1", "form a")
YES = Decision(verdict="allow", by="Ann", edited={"a": 1})


@pytest.fixture
async def state():
    made = HostState(None)
    yield made
    await made.close()


async def reopen_decisions(state, now=1000.0):
    """The decisions in another life of the host."""
    made = Decisions(state, lambda: now)
    await made.load()
    return made


async def test_a_decision_is_there_in_the_next_life_of_the_host(state):
    """Ours: nobody is asked again; a question of another task or server is another one."""
    first = await reopen_decisions(state)
    await first.keep(ONE, YES)
    await first.keep(ONE, Decision(verdict="deny", by="Bob"))
    await first.keep(BESIDE, YES)
    again = await reopen_decisions(state)

    for one in (first, again):
        assert ("deny", "Bob") == (one.find(ONE).verdict, one.find(ONE).by)
        assert YES == one.find(BESIDE)
        assert (None, None, 2) == (one.find(OTHER), one.find(STRANGER), len(one))
    assert again.find(ONE).edited is UNSET


async def test_what_a_task_asked_is_forgotten_with_it(state):
    """Ours: of that task alone, and for good."""
    first = await reopen_decisions(state)
    for question in (ONE, BESIDE, OTHER, STRANGER):
        await first.keep(question, YES)
    first.forget("id", "task-1")
    first.forget("id", "no such task")

    for one in (first, await reopen_decisions(state)):
        found = [one.find(question) for question in (ONE, BESIDE, OTHER, STRANGER)]
        assert [None, None, YES, YES] == found


async def test_what_nobody_came_for_is_forgotten_in_the_end(state):
    """Ours: a task whose server never comes back leaves nothing for ever."""
    first = await reopen_decisions(state)
    await first.keep(ONE, YES)

    assert 1 == len(await reopen_decisions(state, 1000.0 + MAX_DECISION_AGE_S))
    assert 0 == len(await reopen_decisions(state, 1000.1 + MAX_DECISION_AGE_S))
    assert 0 == len(await reopen_decisions(state))
