"""stdio, the server's end: the two streams a host launched this process with.

For as long as the channel is open it has standard input and output to itself. What anybody else
writes to standard output, a ``print`` in a tool or a C library, appears on standard error; what
anybody else reads from standard input, an ``input()`` in a tool or a subprocess that inherits
it, is at its end at once.

When the host dies, however it dies, the kernel closes its end of standard input, and
:meth:`StdioChannel.receive` returns None: a server needs no other watch over its parent.
"""

import os
import sys
from contextlib import suppress
from typing import TextIO

from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.transports.line_channel import LineChannel
from isthmus.transports.pipes import MAX_LINE_BYTES, STDIO_ORIGIN


class StdioChannel(LineChannel):
    """Carries messages over this process's standard input and output.

    Make one per process, inside a running event loop; both streams are claimed at once, and
    given back by :meth:`close`. A host that does not read keeps no more than some megabytes of
    ours waiting, and nothing further is read from it meanwhile; it is never given up, since a
    host that a debugger has stopped goes on later.

    Args:
        limit: the longest message taken, in bytes; a longer one is refused with -32600.

    Raises:
        ConnectFailed: the process has no standard input or output.
    """

    def __init__(self, *, limit: int = MAX_LINE_BYTES) -> None:
        self._claim = StdioClaim()
        super().__init__(self._claim.input, self._claim.output, STDIO_ORIGIN, limit=limit)

    def _release(self) -> None:
        self._claim.release()

    def _explain_loss(self, error: OSError) -> ConnectionLost:
        if self._closing is not None:
            return ConnectionLost("standard output was closed")
        return ConnectionLost(f"the host stopped reading standard output: {error}")


class StdioClaim:
    """Standard input and output, taken from everybody else.

    Attributes:
        input: a descriptor of what was standard input; the taker's to close.
        output: the same of standard output.

    Raises:
        ConnectFailed: one of them is closed.
    """

    def __init__(self) -> None:
        if not (_is_open(0) and _is_open(1)):
            raise ConnectFailed("cannot serve over stdio: standard input or output is closed")
        if not _is_open(2):  # or one of the following would take its number
            os.open(os.devnull, os.O_RDWR)
        self._kept = [os.dup(0), os.dup(1)]
        self.input, self.output = map(os.dup, self._kept)
        # spec 2026-07-28 basic/transports/stdio: the server MUST NOT write anything to its
        # stdout that is not a valid MCP message
        _divert_stdio()
        self._stdout = sys.stdout
        _flush_stream(self._stdout)  # what was printed before now goes to standard error, too
        if sys.stderr is not None:
            sys.stdout = sys.stderr

    def release(self) -> None:
        """Put both back where they were; may be called twice."""
        _flush_stream(sys.stdout)
        _flush_stream(self._stdout)
        if sys.stdout is sys.stderr:
            sys.stdout = self._stdout
        for number, kept in enumerate(self._kept):
            os.dup2(kept, number)
            os.close(kept)
        self._kept.clear()


def _divert_stdio() -> None:
    """Make standard input an empty stream, and standard output the same as standard error."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2 if _is_open(2) else null, 1)
    os.close(null)


def _is_open(number: int) -> bool:
    """Whether a standard stream is there.

    A number that was free when Python started may be something else's by now, but Python then has
    no stream for it.
    """
    if (sys.__stdin__, sys.__stdout__, sys.__stderr__)[number] is None:
        return False
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _flush_stream(stream: TextIO | None) -> None:
    if stream is not None:  # as under pythonw.exe
        with suppress(OSError, ValueError):  # full, or closed by somebody
            stream.flush()
