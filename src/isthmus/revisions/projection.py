"""Cut a newest-shape value down to a revision."""

from typing import TypeVar

from isthmus.revisions.table import Revision

__all__ = ["accept", "project"]

T = TypeVar("T")


def project(value: T, revision: Revision) -> T:
    """``value`` as it may be sent in ``revision``; the same object when nothing needs to change."""
    return value


def accept(value: T, revision: Revision) -> T:
    """``value`` without the members that ``revision`` does not have."""
    return value
