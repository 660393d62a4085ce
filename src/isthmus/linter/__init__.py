"""Linter and doctor: the messages of a server, held clause by clause against its revision.

The rules are data (:mod:`~isthmus.linter.rules.catalog`) and judge what was observed; they do no I/O. Who
observes is :mod:`~isthmus.linter.doctor.doctor`, which talks to a server, or
:mod:`~isthmus.linter.doctor.recordings`, which reads what others recorded.
"""

from isthmus.linter.doctor.doctor import Report, examine
from isthmus.linter.rules.rule import Finding

__all__ = ["Finding", "Report", "examine"]
