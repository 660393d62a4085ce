"""How findings are printed, and what they make a command end with."""

import sys
from collections.abc import Sequence

from isthmus.cli.exits import Exit
from isthmus.core.plain_text import clean
from isthmus.linter.rule import Finding
from isthmus.linter.rules import RULES

__all__ = ["concluded", "print_findings", "print_rules"]

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
WIDE = 150
"""Columns where nobody's terminal says how wide it is."""


def concluded(findings: Sequence[Finding], *, strict: bool) -> Exit:
    """The exit code: 1 where something is wrong."""
    wrong = {"error", "warning"} if strict else {"error"}
    return Exit.TOOL_FAILED if any(one.severity in wrong for one in findings) else Exit.OK


def print_findings(findings: Sequence[Finding], *, numbered: bool = False) -> None:
    """A table of what was found, the worst first; the same in several revisions once."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not findings:
        print("nothing is wrong")
        return
    table = Table(show_lines=True)
    names = ("line", "what", "found", "rule") if numbered else ("what", "found", "rule")
    for name in names:
        table.add_column(name, overflow="fold")
    for severity, colour in COLOURS.items():
        for group in _grouped([one for one in findings if one.severity == severity]):
            first = group[0]
            what = Text(f"{severity}\n{first.rule}", style=colour)
            revisions = ", ".join(sorted({one.revision for one in group}, reverse=True))
            found = Text(clean(f"{first.where}: {first.said}\n{revisions}"))
            rule = Text(f"{first.text} {first.mend}\n{first.clause}")
            lines = [Text("" if first.number is None else f"{first.number}\n{first.side}")]
            table.add_row(*(lines if numbered else []), what, found, rule)
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)
    counts = {s: sum(one.severity == s for one in findings) for s in COLOURS}
    print(", ".join(f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items()))


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that say the same about several revisions, together."""
    groups: dict[tuple[str, str, str, int | None], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.rule, one.where, one.said, one.number), []).append(one)
    return list(groups.values())


def print_rules() -> None:
    """Every rule, a line each."""
    for rule in RULES.values():
        revisions = f"{rule.since} to {rule.until}"
        print(f"{rule.id:32} {rule.severity:8} {revisions}  {rule.text}")
