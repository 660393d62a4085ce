"""Takers of questions, in this process and through the control socket: by name, taken over, freed."""

import asyncio

import pytest

from isthmus.host.approvals.question_takers import QuestionTakers
from isthmus.host.model.events import QuestionTaken
from isthmus.host.model.interaction import Decision, QuestionTaker
from isthmus.host.model.view import AuditQuery
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from support.event_loop import run_until
from support.host.console_hosts import make_console_host, view_host

pytestmark = pytest.mark.timeout(60)

ASK_ADD = """
[[rule]]
id = "sums"
effect = "ask"
when = { action = "tool.call", tool = "add" }
"""
ADA = QuestionTaker("console (ada)", "a")
BOB = QuestionTaker("terminal", "b")


@pytest.fixture
async def host(tmp_path):
    async with make_console_host(tmp_path / "state", ASK_ADD) as host:
        yield host


@pytest.fixture(params=["local", "attached"])
async def view(request, host, tmp_path):
    async with view_host(host, request.param, tmp_path / "state") as view:
        yield view


@pytest.fixture
async def question(host):
    """The id of a question that waits."""
    async with host.view.attend("test"):
        call = asyncio.ensure_future(host.call("calc__add", {"a": 1, "b": 2}))
        await run_until(host.view.pending)
        yield host.view.pending()[0].id
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


async def test_a_question_is_taken_by_name_and_taken_over(host, view, question):
    """Ours: only over somebody else where that is said; who has it is told and written down."""
    events = view.events()
    assert ADA == await view.take_question(question, ADA)
    assert ADA == await view.take_question(question, BOB)
    assert ADA == await view.take_question(question, ADA)
    assert BOB == await view.take_question(question, BOB, over=True)
    await run_until(lambda: view.takers() == {question: BOB})
    heard = [await anext(events), await anext(events)]
    assert [
        QuestionTaken(id=question, taker=ADA),
        QuestionTaken(id=question, taker=BOB),
    ] == heard
    rows = await host.view.audit_rows(AuditQuery(kind="decision"))
    assert [("taken over", "terminal")] == [(row.effect, row.approver) for row in rows]


async def test_only_its_taker_frees_a_question(view, question):
    """Ours: and then it can be taken by anybody."""
    await view.take_question(question, ADA)
    assert not await view.free_question(question, BOB.holder)
    assert await view.free_question(question, ADA.holder)
    assert BOB == await view.take_question(question, BOB)


async def test_a_question_that_is_decided_has_no_taker(view, question):
    """Ours: it is decided once, whoever had taken it."""
    await view.take_question(question, ADA)
    assert await view.decide(question, Decision(verdict="deny", by="terminal"))
    assert not await view.decide(question, Decision(verdict="allow", by="console (ada)"))
    assert {} == view.takers()
    assert await view.take_question(question, BOB) is None


async def test_a_surface_that_breaks_off_frees_what_it_has_taken(host, question, tmp_path):
    """Ours: the end of its connection is enough; who attaches sees who has what."""
    state = tmp_path / "state"
    async with Control(host.view, state), AttachedHost(state) as watching:
        async with AttachedHost(state) as going:
            await going.take_question(question, ADA)
            await run_until(lambda: ADA == watching.takers().get(question))
            async with AttachedHost(state) as late:
                assert {question: ADA} == late.takers()
        await run_until(lambda: {} == watching.takers())


async def test_a_taker_who_gives_no_sign_is_gone(host, question):
    """Ours: after a time of the host's own clock; each sign begins it anew."""
    takers = QuestionTakers(host.broker, host.audit, timeout=0.05)
    events = host.view.events()
    takers.take(question, ADA, over=False)
    assert ADA == (await anext(events)).taker
    assert (await anext(events)).taker is None
    assert {} == takers.list()
