"""Exit codes of the command, for scripts to branch on, and what each of them means."""

from enum import IntEnum


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


EXIT_MEANINGS = {
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
