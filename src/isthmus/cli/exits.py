"""What the command ends with: one table of exit codes, and which error means which."""

from enum import IntEnum

from isthmus.errors import (
    AuthError,
    CallTimedOut,
    CapabilityMissing,
    ConnectFailed,
    ConnectionLost,
    LifespanFailed,
    NotInRevision,
    PeerError,
    ToolFailed,
    TooManyRounds,
    UsageError,
)
from isthmus.host.errors import (
    AuditUnavailable,
    Denied,
    Exhausted,
    HostError,
    OutcomeUnknown,
    ServerUnavailable,
    UserDeclined,
)

__all__ = ["MEANINGS", "Exit", "exit_for"]


class Exit(IntEnum):
    """The exit codes, for scripts to branch on."""

    OK = 0
    TOOL_FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    REFUSED = 4
    TIMED_OUT = 5
    UNPROVED = 6
    BROKEN = 70
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "it worked",
    Exit.TOOL_FAILED: "the tool ran and said that it failed, or a check found errors",
    Exit.USAGE: "the command line asks for something that cannot be, or there is nothing to check",
    Exit.UNREACHABLE: "no connection came about, or it broke",
    Exit.REFUSED: "the server said no, wants a login, lacks what was asked for, or broke the protocol",
    Exit.TIMED_OUT: "no answer came within --timeout",
    Exit.UNPROVED: "a check found nothing wrong, and cannot vouch for all that it checked",
    Exit.BROKEN: "isthmus itself failed; please report it with what it printed",
    Exit.INTERRUPTED: "interrupted from the keyboard",
}

# The first row that fits decides, so the narrower types come first.
_BY_ERROR: tuple[tuple[type[BaseException], Exit], ...] = (
    (KeyboardInterrupt, Exit.INTERRUPTED),
    (CallTimedOut, Exit.TIMED_OUT),
    (ConnectFailed, Exit.UNREACHABLE),
    (LifespanFailed, Exit.UNREACHABLE),
    (ConnectionLost, Exit.UNREACHABLE),
    (ToolFailed, Exit.TOOL_FAILED),
    (PeerError, Exit.REFUSED),
    (AuthError, Exit.REFUSED),
    (TooManyRounds, Exit.REFUSED),
    (CapabilityMissing, Exit.REFUSED),
    (NotInRevision, Exit.REFUSED),
    (ServerUnavailable, Exit.UNREACHABLE),
    (OutcomeUnknown, Exit.UNREACHABLE),
    (Denied, Exit.REFUSED),
    (UserDeclined, Exit.REFUSED),
    (Exhausted, Exit.REFUSED),
    (AuditUnavailable, Exit.REFUSED),
    (HostError, Exit.USAGE),
    (UsageError, Exit.USAGE),
)


def exit_for(error: BaseException) -> Exit:
    """The exit code an error means; ``BROKEN`` for one that nobody foresaw."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.BROKEN)
