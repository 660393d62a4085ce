"""Every behaviour, with every implementation, in both directions, over every transport and revision."""

import pytest

from interop import connections, known
from interop.behaviours import select_behaviours
from interop.partners import connections as combinations
from interop.partners import has_pages

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]


def cases():
    for combination in combinations():
        client, server, transport, revision = combination
        pages = has_pages(client, server)
        for behaviour in ("revision", *select_behaviours(transport, revision, pages=pages)):
            observed = known.find_known(*combination, behaviour)
            # Those who share a server that listens stay in one process of the test run.
            marks = [pytest.mark.xdist_group(f"{client} {server} {transport}")]
            if observed is not None:
                marks.append(pytest.mark.xfail(reason=observed.why, strict=not observed.sometimes))
            name = "-".join([*combination, *behaviour.split()])
            yield pytest.param(combination, behaviour, marks=marks, id=name)


@pytest.mark.parametrize(("combination", "behaviour"), list(cases()))
def test_both_understand_each_other(environment, combination, behaviour):
    """Ours: whoever speaks the protocol can talk to us, and we to them."""
    client, server, transport, revision = combination
    came = environment(connections.outcomes, *combination)
    behaviours = select_behaviours(transport, revision, pages=has_pages(client, server))
    expected = revision if behaviour == "revision" else behaviours[behaviour].expected(revision)

    assert expected == came[behaviour]
