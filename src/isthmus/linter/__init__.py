"""Linter and doctor: the messages of a server, held clause by clause against its revision.

The rules are data (:mod:`~isthmus.linter.rules.catalog`) and judge what was observed; they do no I/O. Who
observes is :mod:`~isthmus.linter.doctor.doctor`, which talks to a server, or
:mod:`~isthmus.linter.doctor.recordings`, which reads what others recorded.

Names are imported when they are first used: the checks of authorization need libraries that the rules do not.
"""

from typing import TYPE_CHECKING

from isthmus.lazy import lazy_getattr

if TYPE_CHECKING:
    from isthmus.linter.auth.doctor import AuthDoctor as AuthDoctor
    from isthmus.linter.auth.doctor import Hop as Hop
    from isthmus.linter.doctor.doctor import Report as Report
    from isthmus.linter.doctor.doctor import examine as examine
    from isthmus.linter.doctor.recordings import read_recordings as read_recordings
    from isthmus.linter.rules.catalog import RULES as RULES
    from isthmus.linter.rules.catalog import judge as judge
    from isthmus.linter.rules.rule import Finding as Finding

__all__ = [
    "RULES",
    "AuthDoctor",
    "Finding",
    "Hop",
    "Report",
    "examine",
    "judge",
    "read_recordings",
]

_HOMES = {
    "RULES": "isthmus.linter.rules.catalog",
    "AuthDoctor": "isthmus.linter.auth.doctor",
    "Finding": "isthmus.linter.rules.rule",
    "Hop": "isthmus.linter.auth.doctor",
    "Report": "isthmus.linter.doctor.doctor",
    "examine": "isthmus.linter.doctor.doctor",
    "judge": "isthmus.linter.rules.catalog",
    "read_recordings": "isthmus.linter.doctor.recordings",
}

__getattr__ = lazy_getattr(__name__, _HOMES)
