"""Contract of logs, against the one in memory: the same entries, and the same refusals."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from isthmus.store.log import Forgotten, LogLimits, MemoryLog, Overtaken
from support.clock import ManualClock
from support.store.engines import ENGINE_PARAMS, ENGINES

LIMITS = LogLimits(entries=4, age=100.0, stream_size=12)

EXAMPLES, STEPS = 25, 25

streams = st.sampled_from(["a", "b"])


class ComparedLogs(RuleBasedStateMachine):
    """A log and the one in memory, which are told the same at the same time."""

    engine = None  # makes one

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        made = type(self).engine()
        self.time = made.clock
        clock = ManualClock() if made.clock is None else made.clock
        self.store = made.make_store(LIMITS)
        self.runner.run(self.store.open())
        for stream in "ab":
            self.runner.run(self.store.log.forget(stream))
        self.expected = MemoryLog(
            clock, entries=LIMITS.entries, age=LIMITS.age, stream_size=LIMITS.stream_size
        )
        self.last = {"a": 0, "b": 0}

    def teardown(self):
        self.runner.run(self.store.close())
        self.runner.close()

    def outcome(self, work):
        try:
            return self.runner.run(work)
        except (Forgotten, Overtaken) as error:
            return type(error)

    def compare(self, method, *args):
        expected = self.outcome(getattr(self.expected, method)(*args))
        assert expected == self.outcome(getattr(self.store.log, method)(*args))
        return expected

    @rule(
        stream=streams,
        step=st.sampled_from([-1, 0, 1, 1, 1, 1, 3]),
        values=st.lists(st.binary(max_size=6), min_size=1, max_size=6),
    )
    def write(self, stream, step, values):
        place = max(1, self.last[stream] + step)
        if self.compare("write", stream, place, values) is None:
            self.last[stream] = place + len(values) - 1

    @rule(stream=streams, back=st.integers(-1, 6), limit=st.integers(1, 5))
    def read(self, stream, back, limit):
        self.compare("read", stream, self.last[stream] - back, limit)

    @rule(stream=streams)
    def forget(self, stream):
        self.compare("forget", stream)
        self.last[stream] = 0

    @rule(seconds=st.sampled_from([1.0, 60.0, 150.0]))
    def wait(self, seconds):
        if self.time is not None:  # a time of its own does not come that far
            self.time.now += seconds


@pytest.mark.parametrize("name", ENGINE_PARAMS)
def test_a_log_does_what_the_one_in_memory_does(name, tmp_path):
    """Ours: whatever is written, read and forgotten in whichever order, and however late."""
    numbers, shared = iter(range(10_000)), ENGINES[name](tmp_path)

    def make():
        if shared.clock is None:
            return shared
        folder = tmp_path / f"{next(numbers)}"
        folder.mkdir()
        return ENGINES[name](folder)

    run_state_machine_as_test(
        type("Machine", (ComparedLogs,), {"engine": staticmethod(make)}),
        settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None),
    )
