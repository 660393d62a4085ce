"""Lint rule: what must hold, the violations of it, and the findings that report them."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.revisions import Revision

# A MUST is an error, a SHOULD a warning; a note is worth knowing and breaks nothing.
Severity: TypeAlias = Literal["error", "warning", "note"]


class Violation(msgspec.Struct, frozen=True):
    """A place where a rule is broken.

    Attributes:
        where: the message, request or thing, in words, with a JSON path where there is one.
        said: what was found there.
        number: the line of a recording, or None.
        side: who said it, where that is known.
    """

    where: str
    said: str
    number: int | None = None
    side: str | None = None


# Looks at what was observed (a conversation or a visit) and gives what is wrong.
RuleCheck: TypeAlias = Callable[[Any], Iterator[Violation]]


class LintRule(msgspec.Struct, frozen=True, eq=False):
    """A condition that must hold, and its clause.

    Attributes:
        id: its name: ``area.subject``.
        severity: what breaking it means.
        clause: where the specification says so, ``REVISION page#anchor``; or ``ours``.
        text: what must hold, in a sentence.
        mend: what to do about it.
        check: finds the places where it does not hold.
        since: the first revision it holds in.
        until: the last one.
    """

    id: str
    severity: Severity
    clause: str
    text: str
    mend: str
    check: Any  # a Check; msgspec cannot check callables
    since: str = "2024-11-05"
    until: str = "2026-07-28"

    def holds_in(self, revision: Revision) -> bool:
        """Whether a revision has this rule."""
        return self.since <= revision.name <= self.until


class Finding(msgspec.Struct, frozen=True):
    """A fault, and the rule and revision it is about.

    Attributes:
        rule: the rule's id.
        severity: what breaking it means.
        clause: where the specification says so.
        revision: the revision that was spoken.
        where: the place.
        said: what was found there.
        text: what must hold.
        mend: what to do about it.
        number: the line of a recording, or None.
        side: who said it, where that is known.
    """

    rule: str
    severity: Severity
    clause: str
    revision: str
    where: str
    said: str
    text: str
    mend: str
    number: int | None = None
    side: str | None = None


def make_finding(rule: LintRule, revision: Revision, fault: Violation) -> Finding:
    """A fault as a finding."""
    return Finding(
        rule.id,
        rule.severity,
        rule.clause,
        revision.name,
        fault.where,
        fault.said,
        rule.text,
        rule.mend,
        fault.number,
        fault.side,
    )


class FoldedFinding(msgspec.Struct, frozen=True):
    """Findings that say the same of several places and revisions, with the first as the example.

    Attributes:
        rule: the rule's id.
        severity: what breaking it means.
        clause: where the specification says so.
        times: how many there are.
        revisions: those that were spoken, the newest first.
        example: the first of them.
    """

    rule: str
    severity: Severity
    clause: str
    times: int
    revisions: tuple[str, ...]
    example: Finding


# The rule whose findings are about a member, wherever that stands.
SURPLUS_RULE = "messages.surplus"

INDEX = re.compile(r"\[\d+\]")
ITEM = re.compile(r" '(?:[^'\\]|\\.)*'$")
QUOTED = re.compile(r"'[^']*'")
VERSION = re.compile(r"\b20\d\d-\d\d-\d\d\b")
NUMBER = re.compile(r"\b\d+\b")


def fold_findings(findings: Sequence[Finding]) -> list[FoldedFinding]:
    """Findings that differ in nothing but the item, the number or the revision, as one each."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault(_make_fold_key(one), []).append(one)
    return [
        FoldedFinding(
            group[0].rule,
            group[0].severity,
            group[0].clause,
            len(group),
            tuple(sorted({one.revision for one in group}, reverse=True)),
            group[0],
        )
        for group in groups.values()
    ]


def _make_fold_key(finding: Finding) -> tuple[str, ...]:
    """The key that findings share that are folded into one."""
    if finding.rule == SURPLUS_RULE:
        member = QUOTED.search(finding.said)
        return finding.rule, member[0] if member else finding.said, str(finding.side)
    where = ITEM.sub("", INDEX.sub("[]", finding.where))
    said = NUMBER.sub("#", VERSION.sub("…", finding.said))
    return finding.rule, where, said, str(finding.side)
