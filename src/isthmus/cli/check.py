"""``check``: what a server does wrong, clause by clause, in every revision it speaks."""

from collections.abc import Sequence
from typing import Any

import msgspec

from isthmus.cli.exits import Exit
from isthmus.cli.findings import concluded, print_findings, print_rules
from isthmus.cli.output import note, print_json
from isthmus.cli.talk import Talk
from isthmus.errors import UsageError
from isthmus.linter.doctor import Report
from isthmus.linter.examine import examine
from isthmus.linter.rule import fold_findings
from isthmus.linter.rules import selected
from isthmus.revisions import BY_NAME, REVISIONS, Revision

__all__ = ["Choices", "check", "print_rules"]

TIMEOUT = 5.0


class Choices(msgspec.Struct, frozen=True):
    """What the command line says about a check.

    Attributes:
        only: rules or areas to apply; all if there are none.
        skip: rules or areas to leave out.
        calls: tools to call: ``NAME`` or ``NAME:JSON``.
        call_read_only: call the tools that say they change nothing.
        strict: warnings count as errors.
    """

    only: Sequence[str] = ()
    skip: Sequence[str] = ()
    calls: Sequence[str] = ()
    call_read_only: bool = False
    strict: bool = False


async def check(talk: Talk, choices: Choices) -> Exit:
    """Examine a server, and print what was found."""
    wanted = selected(choices.only, choices.skip)
    calls = dict(map(_call, choices.calls))
    revisions: Sequence[Revision] = REVISIONS
    if talk.options.revision is not None:
        revisions = (_revision(talk.options.revision),)
    report = await examine(
        talk.target.where,
        headers=dict(talk.target.headers) or None,
        revisions=revisions,
        timeout=talk.options.timeout or TIMEOUT,
        rules=wanted,
        calls=calls,
        call_read_only=choices.call_read_only,
        auth=talk.options.authorization(talk.target),
    )
    if talk.options.as_json:
        folded = msgspec.to_builtins(fold_findings(report.findings))
        whole = {"target": talk.target.label, **msgspec.to_builtins(report), "folded": folded}
        print_json(whole)
    else:
        _print(report, talk.target.label)
    for reason, names in _reasons(report):
        note(f"{', '.join(names)}: {reason}")
    if not report.spoken:
        note(f"isthmus: {talk.target.label} speaks none of {', '.join(report.unspoken)}")
        return Exit.USAGE
    code = concluded(report.findings, strict=choices.strict)
    return Exit.UNREACHABLE if report.broken and code is Exit.OK else code


def _reasons(report: Report) -> list[tuple[str, list[str]]]:
    """Why what could not be asked was not, with the revisions that each reason is about."""
    found: dict[str, list[str]] = {}
    for name, reason in (report.broken if report.spoken else report.unspoken).items():
        found.setdefault(reason, []).append(name)
    return list(found.items())


def _call(text: str) -> tuple[str, Any]:
    """A tool to call, and its arguments.

    Raises:
        UsageError: the arguments are no JSON object.
    """
    name, _, arguments = text.partition(":")
    try:
        decoded = msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError as error:
        raise UsageError(f"--call {name}: the arguments are no JSON: {error}") from error
    if not isinstance(decoded, dict):
        raise UsageError(f"--call {name}: the arguments are a JSON object, not {arguments}")
    return name, decoded


def _revision(name: str) -> Revision:
    if name not in BY_NAME:
        raise UsageError(f"there is no revision {name!r}: {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _print(report: Report, label: str) -> None:
    if not report.spoken:
        return
    print(f"{label} speaks {', '.join(report.spoken)}")
    print(f"{report.asked} questions asked, {report.said} messages looked at")
    if report.broken:
        print(f"not everything could be asked in {', '.join(report.broken)}: the server was gone")
    if report.findings or not report.broken:
        print_findings(report.findings)
