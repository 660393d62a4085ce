"""Findings of the linter: how they are printed, and the exit code that they mean."""

import sys
from collections.abc import Mapping, Sequence

from isthmus.cli.exit_codes import Exit
from isthmus.core.text import clean_text
from isthmus.linter.rules.catalog import RULES
from isthmus.linter.rules.rule import Finding, FoldedFinding, LintRule, fold_findings

SEVERITY_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
DEFAULT_COLUMNS = 150  # where no terminal says how wide it is


def judge_findings(findings: Sequence[Finding], *, strict: bool) -> Exit:
    """The exit code: 1 where something is wrong."""
    wrong = {"error", "warning"} if strict else {"error"}
    return Exit.TOOL_FAILED if any(one.severity in wrong for one in findings) else Exit.OK


def print_findings(findings: Sequence[Finding], *, numbered: bool = False) -> None:
    """A summary, and a table of what was found, the worst first; the same of many places once."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if not findings:
        print("nothing is wrong")
        return
    folded = fold_findings(findings)
    print(_summarise(findings, folded))
    table = Table(show_lines=True)
    names = ("line", "what", "found", "rule") if numbered else ("what", "found", "rule")
    for name in names:
        table.add_column(name, overflow="fold")
    for severity, colour in SEVERITY_COLOURS.items():
        for one in (one for one in folded if one.severity == severity):
            first = one.example
            often = f"{one.times} times, for example:\n" if one.times > 1 else ""
            what = Text(f"{severity}\n{one.rule}", style=colour)
            found = Text(
                f"{often}{clean_text(f'{first.where}: {first.said}')}\n{', '.join(one.revisions)}"
            )
            rule = Text(f"{first.text} {first.mend}\n{one.clause}")
            lines = [Text("" if first.number is None else f"{first.number}\n{first.side}")]
            table.add_row(*(lines if numbered else []), what, found, rule)
    Console(width=None if sys.stdout.isatty() else DEFAULT_COLUMNS).print(table)


def _summarise(findings: Sequence[Finding], folded: Sequence[FoldedFinding]) -> str:
    """The number of findings of each severity, and of kinds."""
    parts = []
    for severity in SEVERITY_COLOURS:
        count = sum(one.severity == severity for one in findings)
        kinds = sum(one.severity == severity for one in folded)
        alike = f" of {kinds} kind{'s' * (kinds != 1)}" if kinds < count else ""
        parts.append(f"{count} {severity}{'s' * (count != 1)}{alike}")
    return ", ".join(parts)


def print_rules(rules: Mapping[str, LintRule] = RULES) -> None:
    """Every rule, a line each."""
    for rule in rules.values():
        revisions = f"{rule.since} to {rule.until}"
        print(f"{rule.id:32} {rule.severity:8} {revisions}  {rule.text}")
