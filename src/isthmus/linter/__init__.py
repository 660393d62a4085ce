"""A linter and a doctor: what a server says, held clause by clause against its revision.

The rules are data (:mod:`~isthmus.linter.rules`) and judge what was observed; they do no I/O. Who
observes is :mod:`~isthmus.linter.doctor`, which talks to a server, or
:mod:`~isthmus.linter.recordings`, which reads what others recorded.
"""

from isthmus.linter.doctor import Report
from isthmus.linter.examine import examine
from isthmus.linter.rule import Finding

__all__ = ["Finding", "Report", "examine"]
