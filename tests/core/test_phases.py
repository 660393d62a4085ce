"""The phase table: what may be served when."""

import pytest

from isthmus.core.phases import SERVER_SEES, Kind, Phase, kind_of, step

WALKS = [
    ([Kind.INITIALIZE, Kind.INITIALIZED, Kind.PLAIN], Phase.OPEN),
    ([Kind.PING, Kind.INITIALIZE, Kind.PLAIN], Phase.OPENING),
    ([Kind.ENVELOPED, Kind.ENVELOPED], Phase.STATELESS),
    ([Kind.ENVELOPED, Kind.INITIALIZE, Kind.INITIALIZED, Kind.ENVELOPED], Phase.OPEN),
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
        (Phase.NEW, Kind.PLAIN, -32602),
        (Phase.STATELESS, Kind.PLAIN, -32602),
        (Phase.OPEN, Kind.INITIALIZE, -32600),
        (Phase.OPENING, Kind.INITIALIZE, -32600),
        (Phase.CLOSED, Kind.PING, -32600),
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
    assert Kind.ENVELOPED is kind_of("ping", enveloped=True)
    assert Kind.PING is kind_of("ping", enveloped=False)
    assert Kind.PLAIN is kind_of("tools/list", enveloped=False)
