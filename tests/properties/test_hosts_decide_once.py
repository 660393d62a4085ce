"""Several processes of one host, whatever happens to them: one decision, one dispatch, no revoked grant."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.host.model.interaction import Decision
from isthmus.store.memory_store import MemoryStore
from isthmus.store.store import StoreUnavailable
from isthmus.testing import VirtualLoop
from support.examples import count_examples
from support.host.shared_desk import DeskProcess, loop_now

PROCESSES = 3
SETTLING_S = 30.0  # leases end, looks are taken
REVOCATION_S = 1.0

WHERE = st.integers(0, PROCESSES - 1)
STEPS = st.one_of(
    st.tuples(st.just("ask"), WHERE),
    st.tuples(st.just("decide"), WHERE, st.integers(0, 3), st.sampled_from(["allow", "always", "deny"])),
    st.tuples(st.just("race"), WHERE, WHERE),
    st.tuples(st.just("revoke"), WHERE),
    st.tuples(st.just("kill"), WHERE),
    st.tuples(st.just("cut"), WHERE),
    st.tuples(st.just("mend"), WHERE),
    st.tuples(st.just("pause"), WHERE),
    st.tuples(st.just("resume"), WHERE),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.003, 0.1, 0.45, 0.95, 1.2, 7.0])),
)  # fmt: skip

DECISIONS = {
    "allow": Decision(verdict="allow", assurance="local_ui"),
    "always": Decision(verdict="allow", assurance="local_ui", remember="tool_always"),
    "deny": Decision(verdict="deny", assurance="local_ui"),
}


class Story:
    """What happens to the processes of one host, and what came of it."""

    def __init__(self):
        self.store = MemoryStore(clock=loop_now)
        self.all = [DeskProcess(self.store, number) for number in range(PROCESSES)]
        self.counted = {}
        self.revoked = {}
        self._asked = 0
        self._under_way = set()

    async def run(self, steps):
        """Do all steps, mend what is not dead, and let things settle."""
        for one in self.all:
            await one.open()
        for what, where, *more in steps:
            if what == "wait":
                await asyncio.sleep(where)
            elif not self.all[where].is_dead or what == "mend":
                getattr(self, f"do_{what}")(self.all[where], *more)
                await asyncio.sleep(0)
        for one in self.all:
            one.network.is_cut = one.is_dead
            one.network.runs.set()
        await asyncio.sleep(SETTLING_S)

    @property
    def living(self):
        """The processes that were not killed."""
        return [one for one in self.all if not one.is_dead]

    def start(self, work):
        """Do something beside the rest."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    def do_ask(self, one):
        """A call that policy asks about."""
        self._asked += 1
        one.ask(f"call {self._asked}")

    def do_decide(self, one, which, what):
        """A person decides one of the questions that they see."""
        waiting = one.broker.pending()
        if waiting:
            id = waiting[which % len(waiting)].id
            self.start(self.decide(one, id, what))

    def do_race(self, one, other):
        """Two people decide the same question at once, at two processes."""
        seen = [asked.id for asked in one.broker.pending()]
        if seen:
            self.start(self.decide(one, seen[0], "allow"))
            self.start(self.decide(self.all[other], seen[0], "deny"))

    def do_revoke(self, one):
        """A person takes a grant back."""
        if held := one.grants.all():
            self.start(self.revoke(one, held[0].id))

    def do_kill(self, one):
        """The process is killed; one is left."""
        if len(self.living) > 1:
            one.kill()

    def do_cut(self, one):
        """The store is out of reach for one process."""
        one.network.is_cut = True

    def do_mend(self, one):
        """It is within reach again, unless the process is dead."""
        one.network.is_cut = one.is_dead

    def do_pause(self, one):
        """The process is stopped (SIGSTOP): what it says to the store waits."""
        one.network.runs.clear()

    def do_resume(self, one):
        """It goes on (SIGCONT)."""
        one.network.runs.set()

    async def decide(self, one, id, what):
        """Decide, and count the decisions that counted."""
        try:
            if await one.broker.decide(id, DECISIONS[what]):
                self.counted.setdefault(id, []).append(what)
        except StoreUnavailable:
            pass

    async def revoke(self, one, grant):
        """Take a grant back, and note when that was done."""
        try:
            if await one.grants.revoke(grant):
                self.revoked[grant] = loop_now()
        except StoreUnavailable:
            pass

    # What holds

    async def check(self):
        """See that whatever happened, the promises held."""
        records = await self.living[0].questions.scan()
        by_call = {one.interaction.attempt.id: one for one in records.values()}
        done = [(one, id, at) for one in self.all for id, at in one.done]
        assert len({id for _, id, _ in done}) == len(done), "a call is dispatched once"
        for one, id, at in done:
            assert id in one.calls, "a call is dispatched where it was made"
            intent = next(row for row in one.audit.rows if row.call == id and row.kind == "intent")
            if intent.grant:
                gone = self.revoked.get(intent.grant, at)
                assert at <= gone + REVOCATION_S, "a revoked grant is used no more"
            elif id in by_call:  # records of long ago are gone
                record = by_call[id]
                assert ("taken", "allow") == (record.state, record.decision.verdict)
        assert all(1 == len(found) for found in self.counted.values()), "one decision counts"
        seen = [{asked.id for asked in one.broker.pending()} for one in self.living]
        assert [seen[0]] * len(seen) == seen, "all see the same questions"
        homes = {records[id].node for id in seen[0]}
        assert homes <= {one.node.id for one in self.living}, "nobody asks for the dead"
        told = [
            row.detail["interaction"]
            for one in self.living
            for row in one.audit.rows
            if isinstance(row.detail, dict) and "waited_at" in row.detail
        ]
        assert len(set(told)) == len(told), "a withdrawal is told once"


@pytest.mark.timeout(120)
@settings(max_examples=count_examples(80), deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_whatever_happens_a_call_is_decided_once(steps):
    """Ours: kills, cuts and races leave one decision for each question, and one dispatch at most."""

    async def play():
        story = Story()
        await story.run(steps)
        await story.check()
        for one in story.living:
            await one.close()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(play())


@pytest.mark.timeout(120)
@pytest.mark.parametrize("how", ["pause", "cut", "kill"])
def test_a_process_that_stops_at_any_moment_of_a_decision_dispatches_once_or_never(how):
    """Ours: whoever takes a stopped process for dead takes back what was approved for it."""

    async def play(turn):
        story = Story()
        steps = [("ask", 0), ("wait", 0.1), ("decide", 1, 0, "allow"), ("wait", turn / 1000)]
        await story.run([*steps, (how, 0), ("wait", 15.0), ("resume", 0)])
        await story.check()
        [record] = (await story.all[1].questions.scan()).values()
        for one in story.living:
            await one.close()
        return len(story.all[0].done), record.state

    found = set()
    for turn in range(0, 40, 2):
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            found.add(runner.run(play(turn)))

    assert {(0, "withdrawn"), (1, "taken")} <= found
    assert found <= {(0, "withdrawn"), (1, "taken"), (0, "taken")}
