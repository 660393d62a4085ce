"""Rows of the audit log, as lines; for the full screen and for what does without one."""

import time

from isthmus.host.view import AuditLine
from isthmus.terminal.lines import Line, name

__all__ = ["written"]


def written(row: AuditLine) -> Line:
    """A row of the audit log in a line."""
    at = time.strftime("%H:%M:%S", time.localtime(row.at))
    who = f" by {name(row.approver or row.rule)}" if row.approver or row.rule else ""
    effect = f" {row.effect}{who}" if row.effect else ""
    failed = " failed" if row.failed else ""
    what = f"{row.action} {name(row.server)}: {name(row.object)}"
    return Line(f"{at} {row.kind:8} {what}{effect}{failed}", "dim")
