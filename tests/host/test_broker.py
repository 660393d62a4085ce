"""Questions to a person: who is asked, whose answer counts, and what silence means."""

import asyncio

import pytest
from msgspec import structs

from isthmus.host.approvals.broker import MAX_QUESTIONS_OF_SERVER, Broker
from isthmus.host.approvals.decisions import Decisions, TaskQuestion
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import AuditUnavailable, Exhausted
from isthmus.host.model.events import HostNotice, QuestionAnswered, QuestionAsked
from isthmus.host.model.interaction import Decision, Interaction, ReadAsked
from isthmus.host.model.trace import Obligations, Trace
from isthmus.host.state.database import HostState
from isthmus.testing import VirtualLoop
from support.event_loop import run_turns

YES = Decision(verdict="allow")
NO = Decision(verdict="deny")
"""What surfaces say."""


class Book:
    """An audit log of a list; it may be full."""

    def __init__(self):
        self.rows = []
        self.full = False

    async def write(self, row):
        await asyncio.sleep(0)
        if self.full:
            raise AuditUnavailable("no space left")
        self.rows.append(row)

    def note(self, row):
        self.rows.append(row)


class Surface:
    """A surface whose person answers when the test says so."""

    def __init__(self, name="screen", assurance="local_ui"):
        self.name = name
        self.assurance = assurance
        self.shown = []
        self.withdrawn = []
        self.says = None
        self._answer = None

    async def offer(self, interaction):
        self.shown.append(interaction.id)
        if self.says is not None:
            return self.says
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.withdrawn.append(interaction.id)
            raise

    def say(self, decision):
        self._answer.set_result(decision)


def question(id="q1", *, action="tool.call", principal="user:local", server="shop", **more):
    """A question that anybody may answer within ten minutes."""
    attempt = Attempt(id=f"a-{id}", action=action, principal=principal, server=server, object="buy")
    trace = Trace(effect="ask", rule="r", obligations=more.pop("obligations", Obligations()))
    filled = {"opened": 0.0, "deadline": 600.0, "payload": ReadAsked(uri="x"), **more}
    return Interaction(id=id, attempt=attempt, trace=trace, **filled)


@pytest.mark.covers("hostkernel.broker.first")
async def test_the_first_answer_counts_and_the_other_surface_is_told():
    """Ours: two places show a question; one answers, the other's is taken away, and is late."""
    broker = Broker(Book())
    left, right = Surface("left"), Surface("right")
    broker.attach(left)
    broker.attach(right)
    asking = asyncio.ensure_future(broker.ask(question()))
    await run_turns(5)

    left.say(YES)
    decision = await asking

    assert ("allow", "left") == (decision.verdict, decision.by)
    await run_turns(5)
    assert ["q1"] == right.withdrawn
    assert not await broker.decide("q1", NO)
    assert "left" == broker.said("q1").by


@pytest.mark.covers("hostkernel.broker.durable")
async def test_an_answer_is_written_down_before_anybody_acts_on_it():
    """Ours: who waits hears a yes after the audit log has it."""
    book = Book()
    broker = Broker(book)
    surface = Surface()
    surface.says = YES
    broker.attach(surface)

    decision = await broker.ask(question())

    assert "allow" == decision.verdict
    assert [("decision", "allow", "screen", "local_ui")] == [
        (row.kind, row.effect, row.approver, row.assurance) for row in book.rows
    ]


@pytest.mark.covers("hostkernel.broker.unwritten")
async def test_a_yes_that_cannot_be_written_down_is_none():
    """Ours: the disk is full, and nothing is done; a no is a no all the same."""
    book = Book()
    book.full = True
    broker = Broker(book)
    surface = Surface()
    broker.attach(surface)

    surface.says = YES
    with pytest.raises(AuditUnavailable):
        await broker.ask(question())
    surface.says = NO
    assert "deny" == (await broker.ask(question("q2"))).verdict


@pytest.mark.covers("hostkernel.broker.silence")
@pytest.mark.parametrize(
    ("action", "verdict"),
    [("tool.call", "deny"), ("sampling.request", "deny"), ("elicit.form", "cancel")],
)
async def test_nobody_there_is_a_no(action, verdict):
    """Ours: without a surface nothing waits; what is elicited is cancelled."""
    broker = Broker(Book())

    decision = await broker.ask(question(action=action))

    assert (verdict, "nobody") == (decision.verdict, decision.by)


@pytest.mark.covers("hostkernel.broker.deadline")
def test_the_deadline_is_a_no_and_takes_the_question_away():
    """Ours: nobody answers for ten minutes; the clock on the wall may say what it likes."""

    async def scene():
        walls = iter([1e9, 2.0, 3.0, 4.0])
        broker = Broker(Book(), clock=lambda: next(walls))
        surface = Surface()
        broker.attach(surface)
        asked = question(opened=1e9, deadline=1e9 + 600)
        decision = await broker.ask(asked)
        await run_turns(5)
        return decision, surface.withdrawn, asyncio.get_running_loop().time()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        decision, withdrawn, now = runner.run(scene())

    assert ("deny", "deadline") == (decision.verdict, decision.by)
    assert ["q1"] == withdrawn
    assert 600.0 == now


@pytest.mark.covers("hostkernel.broker.closed")
async def test_a_closed_terminal_is_a_no():
    """Ours: the last surface goes away while its question waits."""
    broker = Broker(Book())
    surface = Surface()
    broker.attach(surface)
    asking = asyncio.ensure_future(broker.ask(question()))
    await run_turns(5)

    broker.detach(surface)

    assert "deny" == (await asking).verdict


@pytest.mark.covers("hostkernel.broker.crash")
async def test_a_surface_that_breaks_leaves_the_question_to_the_others():
    """Ours: one raises, the next is still there; where all have raised, it is a no."""

    class Broken(Surface):
        async def offer(self, interaction):
            raise OSError("no screen")

    broker = Broker(Book())
    surface = Surface()
    broker.attach(Broken("broken"))
    broker.attach(surface)
    asking = asyncio.ensure_future(broker.ask(question()))
    await run_turns(5)
    surface.say(YES)
    assert "allow" == (await asking).verdict

    broker.detach(surface)
    assert "deny" == (await broker.ask(question("q2"))).verdict


@pytest.mark.covers("hostkernel.broker.assurance")
async def test_a_yes_of_a_surface_that_is_not_sure_enough_does_not_count_and_its_no_does():
    """Ours: the rule wants a person at this machine; a function may refuse, and not allow."""
    wanted = Obligations(assurance="local_ui")
    broker = Broker(Book())
    function, screen = Surface("function", "callback"), Surface()
    broker.attach(function)
    broker.attach(screen)
    asking = asyncio.ensure_future(broker.ask(question(obligations=wanted)))
    await run_turns(5)
    function.say(structs.replace(YES, assurance="second_person"))  # what it claims is no matter
    await run_turns(5)
    assert not asking.done()
    screen.say(YES)
    assert "screen" == (await asking).by

    function.says = NO
    assert "deny" == (await broker.ask(question("q2", obligations=wanted))).verdict

    broker.detach(screen)
    function.says = YES
    alone = await broker.ask(question("q3", obligations=wanted))
    assert ("deny", "assurance") == (alone.verdict, alone.by)


async def test_a_surface_that_comes_later_sees_what_waits():
    """Ours: a terminal is opened while a question is open elsewhere."""
    broker = Broker(Book())
    broker.attach(Surface("first"))
    asking = asyncio.ensure_future(broker.ask(question()))
    await run_turns(5)
    late = Surface("late")
    broker.attach(late)
    await run_turns(5)

    late.say(YES)

    assert "late" == (await asking).by


@pytest.mark.covers("hostkernel.broker.coalesce")
async def test_the_same_question_is_asked_once():
    """Ours: three wait for the same, one card is shown, and each has the answer."""
    broker = Broker(Book())
    surface = Surface()
    broker.attach(surface)
    same = [question(f"q{n}", coalesce="the same") for n in range(3)]
    asking = [asyncio.ensure_future(broker.ask(one)) for one in same]
    await run_turns(5)
    surface.say(YES)

    decisions = await asyncio.gather(*asking)

    assert ["allow"] * 3 == [one.verdict for one in decisions]
    assert ["q0"] == surface.shown


@pytest.mark.covers("hostkernel.broker.flood")
async def test_a_server_that_floods_is_refused_and_others_are_heard():
    """Ours: so many questions of one server wait, and no more; another one's is put all the same."""
    broker = Broker(Book())
    surface = Surface()
    broker.attach(surface)
    flood = [
        asyncio.ensure_future(broker.ask(question(f"f{n}", principal="server:shop")))
        for n in range(MAX_QUESTIONS_OF_SERVER)
    ]
    await run_turns(5)

    with pytest.raises(Exhausted, match="shop"):
        await broker.ask(question("more", principal="server:shop"))
    other = asyncio.ensure_future(broker.ask(question("other", principal="server:bank")))
    await run_turns(5)

    assert "other" in surface.shown
    broker.close()
    assert {"deny"} == {(await one).verdict for one in [*flood, other]}


@pytest.mark.covers("hostkernel.broker.withdrawn")
async def test_a_question_that_nobody_waits_for_is_taken_away():
    """Ours: the call is cancelled, and so is its card."""
    book = Book()
    broker = Broker(book)
    surface = Surface()
    broker.attach(surface)
    stream = broker.events.listen()
    asking = asyncio.ensure_future(broker.ask(question()))
    await run_turns(5)
    asking.cancel()
    await run_turns(5)

    assert ["q1"] == surface.withdrawn
    assert () == tuple(broker.pending())
    assert ["caller"] == [row.approver for row in book.rows]
    assert [QuestionAsked, QuestionAnswered] == [type(await anext(stream)) for _ in range(2)]


@pytest.mark.covers("hostkernel.broker.restart")
async def test_what_was_decided_on_a_task_is_not_asked_again_by_the_next_process(tmp_path):
    """Ours: the host ends between the answer and its delivery; the next one knows it."""
    lasting = TaskQuestion("command:x", "task-1", "elicit.form seat")
    for says in (YES, None):
        state = HostState(tmp_path)
        decisions = Decisions(state)
        await decisions.load()
        broker = Broker(Book(), decisions)
        surface = Surface()
        surface.says = says
        broker.attach(surface)
        decision = await broker.ask(question(), lasting)
        assert "allow" == decision.verdict
        await state.close()

    assert [] == surface.shown


async def test_what_a_rule_does_not_let_be_remembered_is_for_once():
    """Ours: a surface asks for more than the rule offers."""
    broker = Broker(Book())
    surface = Surface()
    surface.says = Decision(verdict="allow", remember="tool_always")
    broker.attach(surface)

    decision = await broker.ask(question(obligations=Obligations(remember=("once", "session"))))

    assert "once" == decision.remember


async def test_the_riskiest_question_comes_first():
    """Ours: what is dangerous is seen before what is old."""
    broker = Broker(Book())
    broker.attach(Surface())
    for id, risk, opened in (("a", "low", 1.0), ("b", "high", 3.0), ("c", "high", 2.0)):
        one = question(id, risk=risk, opened=opened, deadline=opened + 60)
        asyncio.ensure_future(broker.ask(one)).add_done_callback(lambda _: None)
    await run_turns(5)

    assert ["c", "b", "a"] == [one.id for one in broker.pending()]
    broker.close()


async def test_a_weak_yes_is_told_to_those_who_look():
    """Ours: nobody wonders why nothing happened."""
    broker = Broker(Book())
    surface = Surface("function", "callback")
    surface.says = YES
    broker.attach(surface)
    stream = broker.events.listen()

    await broker.ask(question(obligations=Obligations(assurance="local_ui")))

    seen = [await anext(stream) for _ in range(3)]
    assert ["assurance"] == [one.about for one in seen if isinstance(one, HostNotice)]
