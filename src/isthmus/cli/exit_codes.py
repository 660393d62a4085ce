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
    Exit.OK: "success",
    Exit.TOOL_FAILED: "the tool reported a failure, or a check found errors",
    Exit.USAGE: "the command line is invalid, or there is nothing to check",
    Exit.UNREACHABLE: "the connection could not be made, or was lost",
    Exit.REFUSED: "the server refused, requires a login, does not have what was requested, or broke the protocol",
    Exit.TIMED_OUT: "the server did not answer within --timeout",
    Exit.UNPROVED: "a check found no error, but could not verify everything",
    Exit.BROKEN: "isthmus itself failed; please report this with the output",
    Exit.INTERRUPTED: "interrupted from the keyboard",
}
