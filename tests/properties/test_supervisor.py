"""Whatever happens to a server, and whatever somebody wants of it, its connection stays in order."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.errors import AuthRequired, CallTimedOut
from isthmus.host.model.errors import HostError
from isthmus.host.supervisor.states import TRANSITIONS
from isthmus.host.supervisor.supervisor import Supervisor
from support.examples import count_examples
from support.host.fleet import Fleet, make_configuration, refuse_connection, run_virtual

STARTS = st.lists(
    st.sampled_from([None, None, "silent", refuse_connection(), AuthRequired("wants a login")]),
    max_size=12,
)
STEPS = st.lists(
    st.sampled_from([
        "use", "use", "wait", "snap", "start", "stop", "restart", "disable", "enable", "reload",
        "second", "minute", "hour",
    ]),
    max_size=25,
)  # fmt: skip
SECONDS = {"second": 0.7, "minute": 70.0, "hour": 3700.0}


class Story:
    """One server, and all that happens to it."""

    def __init__(self, plan):
        self.fleet = Fleet(a=plan)
        self.moves = []
        self.calls = set()
        self.turn = 0
        self.supervisor = Supervisor(
            make_configuration("a"), self.fleet.client_for, on_event=self.moved, random=lambda: 0.5
        )
        self.before = {}

    def moved(self, event):
        """Remember it, if it is a state."""
        if hasattr(event, "state"):
            self.moves.append(event.state)

    def begin(self, work):
        """Do something beside, whatever comes of it but what is foreseen."""
        task = asyncio.ensure_future(self.foreseen(work))
        self.calls.add(task)

    @staticmethod
    async def foreseen(work):
        """Do something; how it ended."""
        try:
            await work
        except (HostError, CallTimedOut) as error:
            return type(error).__name__
        return "done"

    async def call(self, tool, **arguments):
        """Call a tool."""
        async with self.supervisor.use("a") as client:
            await client.call_tool(tool, arguments)

    async def snapped(self):
        """End the connection that was made last."""
        if self.fleet.starts and "a" in {name for name, _ in self.fleet.starts}:
            try:
                await self.fleet.snap("a")
            except KeyError:
                return  # it was never connected

    def step(self, name):
        """Let one thing happen."""
        server = self.supervisor.servers["a"]
        if name in SECONDS:
            return asyncio.sleep(SECONDS[name])
        if name == "use":
            return self.begun(self.call("add", a=1, b=2))
        if name == "wait":
            return self.begun(self.call("wait"))
        if name == "snap":
            return self.snapped()
        if name == "reload":
            self.turn += 1
            return self.supervisor.reload(make_configuration("a", command=("x", str(self.turn))))
        return self.begun(getattr(server, name)())

    async def begun(self, work):
        """Begin something, and give it a few turns."""
        self.begin(work)
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.covers("hostservers.line.in-order")
@settings(max_examples=count_examples(60))
@given(STARTS, STEPS)
def test_every_call_ends_once_and_nothing_is_left_behind(plan, steps):
    """Ours: starts, ends, stops and reloads in any order; then everything is over."""

    async def main():
        before = asyncio.all_tasks()
        story = Story(plan)
        await story.supervisor.open()
        for step in steps:
            await story.step(step)
            line = story.supervisor.servers["a"].connections[""]
            assert (line.state in {"ready", "degraded"}) <= (line.client is not None)
        story.fleet.gate.set()
        await asyncio.sleep(120)
        await story.supervisor.close(drain=30.0)
        ended = await asyncio.gather(*story.calls)
        assert {"done", "CallTimedOut", "ServerUnavailable", "OutcomeUnknown"} >= set(ended)
        assert story.supervisor.servers["a"].in_flight == 0
        assert story.supervisor.servers["a"].state in {
            "idle", "disabled", "failed", "needs_auth", "quarantined",
        }  # fmt: skip
        for _ in range(50):
            await asyncio.sleep(0.1)
        assert asyncio.all_tasks() - before == set()
        return story.moves

    moves = run_virtual(main())
    assert set(moves) <= set(TRANSITIONS)
