"""The server's end of stdio: the two streams a host launched this process with.

For as long as the channel is open it has standard input and output to itself. What anybody else
writes to standard output, a ``print`` in a tool or a C library, appears on standard error; what
anybody else reads from standard input, an ``input()`` in a tool or a subprocess that inherits
it, is at its end at once.

When the host dies, however it dies, the kernel closes its end of standard input, and
:meth:`StdioChannel.receive` returns None: a server needs no other watch over its parent.
"""

import asyncio
import os
import sys
from contextlib import suppress
from typing import TextIO

from isthmus.core.framing import Oversize
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Delivery, Outgoing
from isthmus.transports.pipes import LIMIT, STDIO, Inlet, Outlet
from isthmus.wire.base import Id
from isthmus.wire.jsonrpc import ErrorBody, encode_error

__all__ = ["StdioChannel"]

DRAIN = 1.0
"""Seconds that the host has, at the end, to read what was sent."""


class StdioChannel:
    """Carries messages over this process's standard input and output.

    Make one per process, inside a running event loop; both streams are claimed at once, and
    given back by :meth:`close`.

    Args:
        limit: the longest message taken, in bytes; a longer one is refused with -32600.

    Raises:
        ConnectFailed: the process has no standard input or output.
    """

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._closing: asyncio.Task[None] | None = None
        self._claim = Claim()
        self._inlet = Inlet(self._claim.input, limit)
        self._outlet = Outlet(self._claim.output, self._inlet.stop)

    async def receive(self) -> Delivery | None:
        """The next message, or None at the end of input, when all before it is taken.

        Raises:
            ConnectionLost: the host stopped reading what we write.
        """
        inlet = self._inlet
        lines = inlet.lines
        while True:
            if lines:
                line = lines.popleft()
                if not isinstance(line, Oversize):
                    return Delivery(line, STDIO)
                self._refuse(line)
            elif not inlet.over:
                await inlet.more()
                self._outlet.prompt = len(lines) == 1
            else:
                return self._last()

    async def send(self, out: Outgoing) -> None:
        """Write one message; waits only while the host reads more slowly than we write.

        Raises:
            ConnectionLost: the host stopped reading, or the channel was closed.
        """
        outlet = self._outlet
        if outlet.broken is None and outlet.write(out.data):
            await outlet.room()
        if outlet.broken is not None:
            raise self._lost(outlet.broken)

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: both directions are shared by all calls, so a message has to say it."""
        # spec 2026-07-28 basic/transports/stdio: to cancel, the client MUST send
        # notifications/cancelled
        return False

    async def close(self) -> None:
        """Write what was sent, for at most a second, and give both streams back."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        try:
            async with asyncio.timeout(DRAIN):
                await self._outlet.room(0)
        except TimeoutError:
            pass  # a host that does not read any more cannot be told anything
        finally:
            self._claim.release()
            self._inlet.ignore()
            self._inlet.stop()
            self._outlet.close()

    def _last(self) -> Delivery | None:
        """What is left to receive at the end of input."""
        if self._closing is not None:
            return None
        if self._outlet.broken is not None:
            raise self._lost(self._outlet.broken)
        # A message without its newline may be whole. If it is not, the parser's refusal says so.
        cut, self._inlet.cut = self._inlet.cut, b""
        return Delivery(cut, STDIO) if cut else None

    def _lost(self, error: OSError) -> ConnectionLost:
        if self._closing is not None:
            return ConnectionLost("standard output was closed")
        return ConnectionLost(f"the host stopped reading standard output: {error}")

    def _refuse(self, line: Oversize) -> None:
        if self._outlet.broken is not None:
            return
        message = (
            f"Invalid request: a message of {line.size} bytes is longer than the limit of "
            f"{self._limit} bytes"
        )
        self._outlet.write(encode_error(None, ErrorBody(code=-32600, message=message)))


class Claim:
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
        _divert()
        self._stdout = sys.stdout
        _flush(self._stdout)  # what was printed before now goes to standard error, too
        if sys.stderr is not None:
            sys.stdout = sys.stderr

    def release(self) -> None:
        """Put both back where they were; may be called twice."""
        _flush(sys.stdout)
        _flush(self._stdout)
        if sys.stdout is sys.stderr:
            sys.stdout = self._stdout
        for number, kept in enumerate(self._kept):
            os.dup2(kept, number)
            os.close(kept)
        self._kept.clear()


def _divert() -> None:
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


def _flush(stream: TextIO | None) -> None:
    if stream is not None:  # as under pythonw.exe
        with suppress(OSError, ValueError):  # full, or closed by somebody
            stream.flush()
