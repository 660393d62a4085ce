"""One test over every revision and every transport."""

import pytest

from isthmus.errors import UsageError
from isthmus.revisions import REVISIONS, Feature
from isthmus.testing import TRANSPORTS, every_revision, every_transport

NAMES = [revision.name for revision in REVISIONS]


def axis(mark):
    """The name of what a mark sets, and each value with the reason it is skipped for, or None."""
    name, cases = mark.args
    told = {}
    for case in cases:
        marks = getattr(case, "marks", ())
        value = getattr(case, "values", (case,))[0]
        told[value] = marks[0].kwargs["reason"] if marks else None
    return name, told


def decorated(decorator):
    """The one mark that a decorator puts on a test, and the test."""

    def test():
        """Nothing."""

    same = decorator(test)
    assert same is test
    (mark,) = test.pytestmark
    return mark


def test_a_test_runs_in_every_revision():
    """Without needs, nothing is skipped (ours)."""
    assert ("revision", dict.fromkeys(NAMES)) == axis(decorated(every_revision))


@pytest.mark.parametrize(
    ("need", "can"),
    [
        (Feature.ELICITATION_FORM, NAMES[2:]),
        (Feature.SESSION_HEADER, NAMES[1:4]),
        ("elicitation/create", NAMES[2:]),  # since 2026-07-28 in results
        ("sampling/createMessage", NAMES),
        ("roots/list", NAMES),
        ("notifications/elicitation/complete", NAMES[3:4]),
        ("server/discover", NAMES[4:]),
        ("initialize", NAMES[:4]),
        ("tools/call", NAMES),
    ],
)
def test_revisions_that_lack_what_a_test_needs_are_skipped(need, can):
    """By the tables, not by names (ours)."""
    _, told = axis(decorated(every_revision(need)))

    assert can == [name for name, reason in told.items() if reason is None]


@pytest.mark.parametrize("need", ["elicitation/creat", "tools/cal"])
def test_a_method_that_no_revision_has_is_a_mistake(need):
    """Every case of it would be skipped, and nobody would notice (ours)."""
    with pytest.raises(UsageError, match=f"no method '{need}' .*; did you mean {need}"):
        every_revision(need)


def test_the_reason_names_everything_that_is_missing():
    """So that the summary of a run says why (ours)."""
    _, told = axis(decorated(every_revision("server/discover", Feature.ELICITATION_FORM)))

    assert told["2024-11-05"] == "2024-11-05 has no server/discover, Feature.ELICITATION_FORM"
    assert told["2025-06-18"] == "2025-06-18 has no server/discover"
    assert told["2026-07-28"] is None


def test_a_test_runs_over_every_transport():
    """Memory, pipes and HTTP (ours)."""
    assert ("transport", dict.fromkeys(TRANSPORTS)) == axis(decorated(every_transport))


@pytest.mark.parametrize(
    ("made", "name"), [(every_transport(), "transport"), (every_revision(), "revision")]
)
def test_without_a_test_the_mark_itself_is_made(made, name):
    """For a module's ``pytestmark`` (ours)."""
    assert name == axis(made.mark)[0]


ran = []


@every_transport
@every_revision("initialize")
def test_both_together_make_the_product(revision, transport):
    """Each case is a test of its own, with both values set (ours)."""
    assert revision in NAMES[:4]
    assert transport in TRANSPORTS
    assert (revision, transport) not in ran
    ran.append((revision, transport))
