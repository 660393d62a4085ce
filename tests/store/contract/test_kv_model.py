"""Contract of key-value stores, against a dictionary that does the same slowly."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from support.store.engines import ENGINE_PARAMS, ENGINES

keys = st.sampled_from(["a", "a/1", "a/2", "b", "ä"])

PREFIXES = ("", "a", "a/", "b")

EXAMPLES, STEPS = 25, 30


class StoredEntries(RuleBasedStateMachine):
    """A store whose clock the test sets, and what must be in it."""

    engine = None  # makes one

    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        made = type(self).engine()
        self.clock = made.clock
        self.store = made.make_store()
        self.run(self.store.open())
        for key, _ in self.run(self.store.kv.scan("", "", 100)):
            self.run(self.store.kv.delete(key))
        self.known = {}
        self.used = set()

    def teardown(self):
        self.run(self.store.close())
        self.runner.close()

    def run(self, work):
        return self.runner.run(work)

    def live(self):
        now = 0.0 if self.clock is None else self.clock.now
        return {k: v for k, v in self.known.items() if v[2] > now}

    def keep(self, key, value, version, ttl):
        assert (key, version) not in self.used
        self.used.add((key, version))
        end = float("inf") if ttl is None or self.clock is None else self.clock.now + ttl
        self.known[key] = (value, version, end)

    @rule(key=keys, value=st.binary(max_size=3), ttl=st.sampled_from([None, 100.0, 300.0]))
    def put(self, key, value, ttl):
        self.keep(key, value, self.run(self.store.kv.put(key, value, ttl)), ttl)

    @rule(
        key=keys,
        value=st.binary(max_size=3),
        right=st.booleans(),
        ttl=st.sampled_from([None, 200.0]),
    )
    def cas(self, key, value, right, ttl):
        known = self.live().get(key)
        version = (known[1] if known else 0) + (not right)
        done = self.run(self.store.kv.cas(key, value, version, ttl))
        assert right is (done is not None)
        if right:
            self.keep(key, value, done, ttl)

    @rule(key=keys, right=st.sampled_from([None, True, False]))
    def delete(self, key, right):
        known = self.live().get(key)
        version = None if right is None else (known[1] if known else 0) + (not right)
        expected = known is not None and right is not False
        assert expected is self.run(self.store.kv.delete(key, version))
        if expected:
            self.known.pop(key)

    @rule(seconds=st.sampled_from([50.0, 100.0, 200.0]))
    def wait(self, seconds):
        if self.clock is not None:  # a time of its own does not come that far
            self.clock.now += seconds

    @rule(prefix=st.sampled_from(PREFIXES), after=keys, limit=st.integers(1, 3))
    def scan(self, prefix, after, limit):
        expected = [k for k in sorted(self.live()) if k.startswith(prefix) and k > after][:limit]
        found = self.run(self.store.kv.scan(prefix, after, limit))

        assert expected == [key for key, _ in found]

    @invariant()
    def holds_what_was_put(self):
        expected = [(k, v[0], v[1]) for k, v in sorted(self.live().items())]
        found = self.run(self.store.kv.scan("", "", 100))

        assert expected == [(key, entry.value, entry.version) for key, entry in found]


@pytest.mark.parametrize("name", ENGINE_PARAMS)
def test_a_store_does_what_a_dictionary_does(name, tmp_path):
    """Ours: whatever is written, read and deleted in whichever order, nothing else is there."""
    if ENGINES[name](tmp_path).clock is None:
        shared = ENGINES[name](tmp_path)
        machine = type("Machine", (StoredEntries,), {"engine": lambda: shared})
    else:
        numbers = iter(range(10_000))

        def make():
            folder = tmp_path / f"{next(numbers)}"
            folder.mkdir()
            return ENGINES[name](folder)

        machine = type("Machine", (StoredEntries,), {"engine": staticmethod(make)})
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None),
    )
