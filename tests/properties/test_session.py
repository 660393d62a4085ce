"""Laws of two sessions joined by a link that loses, reorders and duplicates messages."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from isthmus.core.events import (
    CallAnswered,
    CallExpired,
    CallFailed,
    RequestReceived,
    RequestWithdrawn,
)
from isthmus.core.session import Session
from isthmus.wire.jsonrpc import ErrorBody
from support.examples import count_examples

PARAMS = (
    b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{}}}'
)


class LossyLink(RuleBasedStateMachine):
    """A client and a server session; every message in between may meet any fate."""

    def __init__(self):
        super().__init__()
        self.client, self.server = Session("client"), Session("server")
        self.wire = {"client": [], "server": []}  # messages on their way to that side
        self.called = []  # ids the client has called under
        self.ended = Counter()  # how often each of them ended
        self.working = []  # ids the server works on
        self.withdrawn = set()
        self.answered = Counter()  # answers put on the wire, by id
        self.now = 0.0

    @rule(timeout=st.one_of(st.none(), st.floats(1, 10)))
    def call(self, timeout):
        """The client asks for something."""
        id, data = self.client.call("tools/list", PARAMS, now=self.now, timeout=timeout)
        assert id not in self.called
        self.called.append(id)
        self.wire["server"].append(data)

    @precondition(lambda self: self.called)
    @rule(pick=st.integers(0, 1000))
    def cancel(self, pick):
        """The client gives up one of its calls."""
        id = self.called[pick % len(self.called)]
        data = self.client.cancel(id)
        if data is not None:
            self.ended[id] += 1
            self.wire["server"].append(data)

    @precondition(lambda self: self.working)
    @rule(pick=st.integers(0, 1000), well=st.booleans())
    def answer(self, pick, well):
        """The server finishes something, whether it is still wanted or not."""
        id = self.working.pop(pick % len(self.working))
        if well:
            data = self.server.answer(id, b"{}")
        else:
            data = self.server.fail(id, ErrorBody(code=-32603, message="no"))
        assert (data is None) == (id in self.withdrawn), "answered after withdrawal, or not at all"
        self.withdrawn.discard(id)
        if data is not None:
            self.answered[id] += 1
            self.wire["client"].append(data)

    @precondition(lambda self: self.wire["server"] or self.wire["client"])
    @rule(pick=st.integers(0, 1000), fate=st.sampled_from(["deliver", "lose", "twice"]))
    def link(self, pick, fate):
        """Any message in flight, not the oldest one, meets its fate."""
        side = ["server", "client"][pick % 2]
        if not self.wire[side]:
            side = "client" if side == "server" else "server"
        data = self.wire[side].pop(pick % len(self.wire[side]))
        for _ in range({"deliver": 1, "lose": 0, "twice": 2}[fate]):
            self.arrive(side, data)

    @rule(seconds=st.floats(0.1, 5))
    def wait(self, seconds):
        """Time passes."""
        self.now += seconds
        for event in self.client.tick(self.now):
            assert isinstance(event, CallExpired)
            self.ended[event.id] += 1

    @rule(data=st.binary(max_size=60), side=st.sampled_from(["client", "server"]))
    def noise(self, data, side):
        """Garbage arrives."""
        self.arrive(side, data)

    def arrive(self, side, data):
        session = self.client if side == "client" else self.server
        for event in session.receive(data, self.now):
            if isinstance(event, CallAnswered | CallFailed):
                self.ended[event.id] += 1
            elif isinstance(event, RequestReceived):
                assert event.id not in self.working
                self.working.append(event.id)
            elif isinstance(event, RequestWithdrawn):
                assert event.id in self.working
                self.withdrawn.add(event.id)

    @invariant()
    def nothing_ends_twice(self):
        """Each call of ours ends at most once."""
        assert all(count == 1 for count in self.ended.values())

    def teardown(self):
        """At the end of the channel every call has ended exactly once."""
        for id in self.client.close():
            self.ended[id] += 1
        assert Counter(dict.fromkeys(self.called, 1)) == self.ended


@pytest.mark.hypothesis
def test_every_call_ends_exactly_once_over_a_lossy_link():
    """Loss, disorder and repetition change who ends a call, never how often (decision D20)."""
    run_state_machine_as_test(
        LossyLink,
        settings=settings(max_examples=count_examples(60), stateful_step_count=40, deadline=None),
    )


@pytest.mark.covers("messages.bad-input.never-kills")
@settings(max_examples=count_examples(300), deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=8), st.sampled_from(["client", "server"]))
def test_bad_input_never_raises_and_never_kills_a_session(pieces, side):
    """Whatever arrives, a ping afterwards is served (websockets' contract)."""
    session = Session(side)
    for piece in pieces:
        session.receive(piece)

    events = session.receive(b'{"jsonrpc":"2.0","id":"after","method":"ping"}')
    assert isinstance(events[0], RequestReceived)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.sampled_from(
            ["ping", "initialize", "notifications/cancelled", "notifications/progress", "x"]
        )
        | JSON,
        "params": JSON,
        "result": JSON,
        "error": JSON,
    },
)


@pytest.mark.covers("messages.bad-input.never-kills")
@settings(max_examples=count_examples(300), deadline=None)
@given(st.lists(MEMBERS, max_size=6), st.sampled_from(["client", "server"]))
def test_almost_messages_never_raise(messages, side):
    """Messages that are nearly right are the likeliest to break a parser (our promise)."""
    import json

    session = Session(side)
    session.call("tools/list")
    for message in messages:
        session.receive(json.dumps(message).encode())
