"""The phase table: what may be served when."""

import pytest

from isthmus.core.phases import SERVER_SEES, MessageKind, Phase, classify_method, step

WALKS = [
    ([MessageKind.INITIALIZE, MessageKind.INITIALIZED, MessageKind.PLAIN], Phase.OPEN),
    ([MessageKind.PING, MessageKind.INITIALIZE, MessageKind.PLAIN], Phase.OPENING),
    ([MessageKind.ENVELOPED, MessageKind.ENVELOPED], Phase.STATELESS),
    (
        [
            MessageKind.ENVELOPED,
            MessageKind.INITIALIZE,
            MessageKind.INITIALIZED,
            MessageKind.ENVELOPED,
        ],
        Phase.OPEN,
    ),
]


@pytest.mark.parametrize(("kinds", "end"), WALKS)
def test_a_walk_through_the_table_ends_where_it_should(kinds, end):
    """The other side's first words choose how it is served (spec: versioning)."""
    phase = Phase.NEW
    for kind in kinds:
        phase = step(phase, kind)

    assert end is phase


@pytest.mark.covers("lifecycle.opening.only-pings")
@pytest.mark.parametrize(
    ("phase", "kind", "code"),
    [
        (Phase.NEW, MessageKind.PLAIN, -32602),
        (Phase.STATELESS, MessageKind.PLAIN, -32602),
        (Phase.OPEN, MessageKind.INITIALIZE, -32600),
        (Phase.OPENING, MessageKind.INITIALIZE, -32600),
        (Phase.CLOSED, MessageKind.PING, -32600),
    ],
)
def test_what_the_table_does_not_have_is_refused(phase, kind, code):
    """A refusal has a code and says how to mend it (our promise)."""
    refusal = step(phase, kind)

    assert code == refusal[0]
    assert refusal[1]


def test_every_phase_has_a_row():
    """No phase is forgotten (our promise)."""
    assert set(Phase) == set(SERVER_SEES)


@pytest.mark.covers("versions.eras.side-by-side")
def test_an_envelope_outweighs_the_method():
    """A request with its own facts is served for itself, whatever its name (spec: versioning)."""
    assert MessageKind.ENVELOPED is classify_method("ping", enveloped=True)
    assert MessageKind.PING is classify_method("ping", enveloped=False)
    assert MessageKind.PLAIN is classify_method("tools/list", enveloped=False)
