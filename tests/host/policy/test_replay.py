"""Another policy, tried on what was done."""

import pytest

from isthmus.host.audit.log import AuditLog
from isthmus.host.audit.queries import read_attempts
from isthmus.host.model.facts import record_facts, restore_facts
from isthmus.host.model.row import AuditRow
from isthmus.host.model.view import AuditLine
from isthmus.host.policy.replay import DecisionChange, read_past_effect, replay_policy
from isthmus.host.state.database import HostState
from isthmus.wire import ToolAnnotations
from support.host.policies import READS, make_attempt, make_facts, make_policy

CANDIDATE = """
[[rule]]
id = "reads"
effect = "allow"
when = { annotations = { read_only = true } }
[[rule]]
id = "no"
effect = "deny"
when = { tool = "rm" }
[[rule]]
id = "twice"
effect = "allow"
when = { tool = "twice" }
obligations = { max_calls = 2 }
"""


def line(effect, *, number=1, tool="read", around=None, **more):
    """A row of the log."""
    found = make_facts() if around is None else around
    more = {
        "kind": "intent",
        "call": str(number),
        "action": "tool.call",
        "server": "files",
        "principal": "user:local",
    } | more
    return AuditLine(seq=number, at=1.0, effect=effect, object=tool, detail={"facts": record_facts(found)}, run="run",
                     labels=tuple(found.labels), identity=found.identity, fingerprint=found.fingerprint, **more)  # fmt: skip


class Past:
    """An attempt of the past."""

    def __init__(self, line):
        self.line = line
        self.attempt = make_attempt(line.object)


READING = make_facts(trust="full", annotations=READS)


@pytest.mark.covers("hostpolicy.replay.differences")
def test_what_would_be_another_way_is_counted():
    """Ours: by what was and what would be, the most frequent first."""
    past = [
        line("allow", tool="rm"), line("allow", tool="rm"), line("allow", around=READING),
        line("allow", around=READING, approver="terminal"), line("deny", tool="write"),
        line("allow", tool="write"), line("allow", tool="write", grant="g"), line("", kind="server"),
    ]  # fmt: skip
    found = replay_policy(make_policy(CANDIDATE), map(Past, past))

    assert (7, 1) == (found.rows, found.skipped)
    about = ("tool.call", "files")
    assert {
        DecisionChange("allow", "deny", *about, "rm", "no"): 2,
        DecisionChange("ask", "allow", *about, "read", "reads"): 1,
        DecisionChange("deny", "ask", *about, "write", "default"): 1,
        DecisionChange("allow", "ask", *about, "write", "default"): 1,
    } == dict(found.differences)
    assert (2, 2, 1) == (found.newly("deny"), found.newly("ask"), found.newly("allow"))
    assert 2 == found.differences[0][1]


@pytest.mark.covers("hostpolicy.replay.differences")
def test_calls_of_a_run_are_counted_as_they_were_made():
    """Ours: a rule that lets through two asks at the third."""
    found = replay_policy(
        make_policy(CANDIDATE), [Past(line("allow", tool="twice", number=n)) for n in range(4)]
    )

    assert [(DecisionChange("allow", "ask", "tool.call", "files", "twice", "twice"), 2)] == list(
        found.differences
    )


@pytest.mark.parametrize(
    ("row", "effect"),
    [
        (line("allow"), "allow"),
        (line("allow", approver="terminal"), "ask"),
        (line("deny", approver="deadline"), "ask"),
        (line("cancel", approver="nobody"), "ask"),
        (line("deny", approver="policy"), "deny"),
        (line("ask"), "ask"),
        (line(""), None),
    ],
)
def test_where_a_person_answered_policy_had_asked(row, effect):
    """Ours: what is compared is policy with policy."""
    assert effect == read_past_effect(row)


@pytest.mark.parametrize(
    "around",
    [
        make_facts(),
        READING,
        make_facts(trust="annotations", annotations=ToolAnnotations(destructive_hint=False)),
        make_facts(
            labels=["a"], egress=True, reads=["private"], workspace="/w", cwd="/c", attended=False
        ),
    ],
)
@pytest.mark.covers("hostpolicy.replay.differences")
async def test_the_log_keeps_what_a_decision_rests_on(around, tmp_path):
    """Ours: what is read from it decides as it did then."""
    state = HostState(tmp_path)
    log = AuditLog(state)
    await log.write(
        AuditRow(kind="intent", call="1", action="tool.call", principal="user:local", server="files", object="read", effect="allow",
            identity=around.identity, fingerprint=around.fingerprint, labels=tuple(around.labels),
            detail={"facts": record_facts(around)})
    )  # fmt: skip
    (past,) = await state.read(lambda db: list(read_attempts(db)))
    await log.close()
    await state.close()
    again = restore_facts(past.line)

    one = make_policy(CANDIDATE)
    assert one.decide(make_attempt(), around).effect == one.decide(past.attempt, again).effect
    assert (around.labels, around.target.egress, around.trust, around.attended, around.workspace) == (
        again.labels, again.target.egress, again.trust, again.attended, again.workspace,
    )  # fmt: skip


def test_a_row_that_tells_nothing_is_as_of_a_stranger():
    """Ours: rows of another version of isthmus are read as far as they go."""
    odd = AuditLine(seq=1, at=1.0, kind="intent", detail={"facts": {"trust": 3}})

    assert (
        "untrusted"
        == restore_facts(odd).trust
        == restore_facts(AuditLine(seq=1, at=1.0, kind="intent", detail="x")).trust
    )
