"""The phase table: what may be served when."""

import pytest

from isthmus.core.phases import SERVER_SEES, Phase, step

INITIALIZE, INITIALIZED, PING, CALL = (
    "initialize",
    "notifications/initialized",
    "ping",
    "tools/call",
)
WALKS = [
    ([(INITIALIZE, False), (INITIALIZED, False), (CALL, False)], Phase.OPEN),
    ([(PING, False), (INITIALIZE, False), (CALL, False)], Phase.OPENING),
    ([(CALL, True), (CALL, True)], Phase.STATELESS),
    ([(CALL, True), (INITIALIZE, False), (INITIALIZED, False), (CALL, True)], Phase.OPEN),
]


@pytest.mark.parametrize(("said", "end"), WALKS)
def test_a_walk_through_the_table_ends_where_it_should(said, end):
    """The other side's first words choose how it is served (spec: versioning)."""
    phase = Phase.NEW
    for method, enveloped in said:
        phase = step(phase, method, enveloped=enveloped)

    assert end is phase


@pytest.mark.covers("lifecycle.opening.only-pings")
@pytest.mark.parametrize(
    ("phase", "method", "code"),
    [
        (Phase.NEW, CALL, -32602),
        (Phase.STATELESS, CALL, -32602),
        (Phase.OPEN, INITIALIZE, -32600),
        (Phase.OPENING, INITIALIZE, -32600),
        (Phase.CLOSED, PING, -32600),
    ],
)
def test_what_the_table_does_not_have_is_refused(phase, method, code):
    """A refusal has a code and says how to mend it (our promise)."""
    refusal = step(phase, method)

    assert code == refusal[0]
    assert refusal[1]


def test_every_phase_has_a_row():
    """No phase is forgotten (our promise)."""
    assert set(Phase) == set(SERVER_SEES)


@pytest.mark.covers("versions.eras.side-by-side")
def test_an_envelope_outweighs_the_method():
    """A request with its own facts is served for itself, whatever its name (spec: versioning)."""
    assert Phase.STATELESS is step(Phase.NEW, PING, enveloped=True)
    assert Phase.STATELESS is step(Phase.NEW, INITIALIZE, enveloped=True)
    assert Phase.NEW is step(Phase.NEW, PING)
