"""Lines through file descriptors (pipes), read and written as both ends of stdio do.

An :class:`LineReader` reads a descriptor and keeps whole lines ready; an :class:`LineWriter` writes to one
and gathers what is said within one turn of the event loop into one system call. Both own the
descriptor they are given and leave its open file description as they found it, since others may
share that: a terminal belongs to the shell too.
"""

import asyncio
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from isthmus.core.framing import LineSplitter, Oversize
from isthmus.runtime.channel import Origin

STDIO_ORIGIN = Origin("stdio")

# The longest line taken, in bytes, unless a channel is told otherwise
MAX_LINE_BYTES = 64 * 1024 * 1024

READ_CHUNK_BYTES = 64 * 1024  # bytes asked for at once: what a pipe holds

MAX_PIPE_BYTES = 1024 * 1024  # bytes that a pipe holds at most, on Linux without privileges

# Bytes of lines that may wait for whoever receives; then reading pauses
MAX_AHEAD_BYTES = 1024 * 1024

# Bytes that may wait for the pipe; whoever sends more waits, until half of them are gone
MAX_UNSENT_BYTES = 256 * 1024

# Bytes that may wait for the pipe until a server takes no further requests in
MAX_UNREAD_BYTES = 1024 * 1024

# Bytes of a message that is not copied once more to be written together with others
MAX_JOINED_BYTES = 64 * 1024

# Messages that may wait for the pipe at once; with more of them the other side does not read
MAX_UNSENT_MESSAGES = 10_000

# Seconds to wait for what should follow at once: an exit after the end of output
SETTLE_TIMEOUT_S = 1.0

TakePiece = Callable[[bytes], None]
"""Is given each piece that was read; an empty one is the end."""

ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class ByteSource(Protocol):
    """Reads a descriptor piece by piece, until it ends or is stopped."""

    def pause(self) -> None:
        """Read no further for now."""
        ...

    def resume(self) -> None:
        """Go on after :meth:`pause`."""
        ...

    def empty(self) -> bool:
        """Take what is there without waiting for more; False where that is not possible."""
        ...

    def stop(self) -> None:
        """Read no further ever, and close the descriptor; may be called twice."""
        ...


def open_source(fd: int, took: TakePiece) -> ByteSource:
    """Read ``fd`` in the way that suits it, giving each piece to ``took`` in the event loop."""
    return PolledSource(fd, took) if _can_wait(fd) else ThreadedSource(fd, took)


def _can_wait(fd: int) -> bool:
    """Whether an event loop can tell when there is something to read or room to write.

    Not for terminals, although it could: uvloop would switch the shell's own description of the
    terminal to non-blocking, and it would stay so if this process were killed.
    """
    mode = os.fstat(fd).st_mode
    return sys.platform != "win32" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


class PolledSource:
    """Reads a pipe or socket when the event loop says that there is something to read."""

    def __init__(self, fd: int, took: TakePiece) -> None:
        self._fd = fd
        self._took = took
        self._loop = asyncio.get_running_loop()
        self._blocking = os.get_blocking(fd)  # uvloop is going to change it
        self._loop.add_reader(fd, self._on_readable)

    def pause(self) -> None:
        """Stop looking at the descriptor."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Look at the descriptor again."""
        if self._fd >= 0:
            self._loop.add_reader(self._fd, self._on_readable)

    def stop(self) -> None:
        """Let go of the descriptor."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._loop.remove_reader(fd)
            _close_restored(fd, self._blocking)

    def empty(self) -> bool:
        """Take what is in the pipe, which is no more than the size the kernel gives to pipes."""
        if self._fd >= 0:
            os.set_blocking(self._fd, False)
        for _ in range(MAX_PIPE_BYTES // READ_CHUNK_BYTES):
            if self._fd < 0 or not self._on_readable():
                break
        return True

    def _on_readable(self) -> bool:
        try:
            data = os.read(self._fd, READ_CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # a terminal that hung up, a socket that was reset
            data = b""
        self._took(data)
        return bool(data)


class ThreadedSource:
    """Reads what an event loop cannot wait for: files, terminals, and everything on Windows.

    The thread reads one piece at a time and waits until the event loop has taken it. It closes
    the descriptor itself, because closing what another thread reads is not safe; on a terminal
    that may be never, so it is a daemon.
    """

    def __init__(self, fd: int, took: TakePiece) -> None:
        self._fd = fd
        self._took = took
        self._loop = asyncio.get_running_loop()
        self._turn = threading.Semaphore(1)
        self._paused = self._owed = self._stopped = False
        threading.Thread(target=self._run, name="isthmus-reader", daemon=True).start()

    def pause(self) -> None:
        """Leave the thread waiting after the piece it is reading now."""
        self._paused = True

    def resume(self) -> None:
        """Let the thread go on."""
        self._paused = False
        if self._owed:
            self._owed = False
            self._turn.release()

    def empty(self) -> bool:
        """False: only the thread reads, and it waits when it does."""
        return False

    def stop(self) -> None:
        """Let the thread end as soon as it does not wait for a piece."""
        self._stopped = True
        self._turn.release()

    def _run(self) -> None:
        data = b"more"
        while data:
            self._turn.acquire()
            if self._stopped:
                break
            try:
                data = os.read(self._fd, READ_CHUNK_BYTES)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._hand_over, data)
            except RuntimeError:  # the event loop was closed without closing the channel
                break
        os.close(self._fd)

    def _hand_over(self, data: bytes) -> None:
        if self._stopped:
            return
        self._took(data)
        if self._paused:
            self._owed = True
        else:
            self._turn.release()


def _close_restored(fd: int, blocking: bool | None) -> None:
    """Close a descriptor, its description as it was; None for a mode that nobody touched."""
    if blocking is not None and os.get_blocking(fd) != blocking:
        os.set_blocking(fd, blocking)
    os.close(fd)


class LineReader:
    """Lines from a descriptor.

    Attributes:
        lines: what was read and not yet taken; take from the left.
        over: True when nothing will be added to them.
        cut: at the end of input, the last line if no newline ended it.
        ended: done once nothing more is read.
        hand_over: called with lines that came while a task waits in :meth:`more`; the task goes
            on waiting where it says that it has taken all of them. None to wake the task.

    Args:
        fd: belongs to the inlet from now on.
        limit: the longest line in bytes; ``lines`` has an ``Oversize`` in the place of a longer
            one.
        patient: whether the end of such a line is waited for, and the next ones are read. Where
            it is not, a line that never ends is told as soon as it is too long.
    """

    def __init__(self, fd: int, limit: int, *, patient: bool = True) -> None:
        self.lines: deque[bytes | Oversize] = deque()
        self.over = False
        self.cut = b""
        self.hand_over: Callable[[], bool] | None = None
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._framing = LineSplitter(limit)
        self._patient = patient
        self._ahead = 0
        self._paused = False
        self._resting: asyncio.TimerHandle | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._source = open_source(fd, self._took)

    def more(self) -> asyncio.Future[None]:
        """Done when there is something in ``lines``, or the end; for one task at a time."""
        self._go_on()
        self._waiter = self._loop.create_future()
        return self._waiter

    def finish(self) -> None:
        """Take what is there already and call it the end, whoever still holds the other end."""
        if self._source.empty():
            self.stop()
        else:
            self._loop.call_later(SETTLE_TIMEOUT_S, self.stop)

    def rest(self, seconds: float) -> None:
        """Read nothing for a while, so that a side which says too much waits at its own end."""
        if self._resting is None and not self.over:
            self._resting = self._loop.call_later(seconds, self._end_rest)
            self._source.pause()

    def _end_rest(self) -> None:
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None
            if not self._paused:
                self._source.resume()

    def ignore(self) -> None:
        """Throw away what was read and what will be, so that the other side can write and end."""
        self.lines.clear()
        self.over = True
        self._end_rest()
        self._go_on()
        self._wake()

    def stop(self) -> None:
        """Read no further; may be called twice."""
        self.hand_over = None  # it may keep whoever keeps this
        self._source.stop()
        self._end_rest()
        if not self.over:
            self.over = True
            self.cut = self._framing.rest()
        if not self.ended.done():
            self.ended.set_result(None)
        self._wake()

    def _took(self, data: bytes) -> None:
        if not data:
            self.stop()
            return
        if self.over:
            return
        lines = self._framing.feed(data)
        if not lines:
            if self._patient or not self._framing.overlong:
                return
            lines = [Oversize(self._framing.overlong)]
        self.lines += lines
        self._ahead += len(data)
        if self._ahead > MAX_AHEAD_BYTES and not self._paused:
            self._paused = True
            self._source.pause()
        if self._waiter is not None:
            if self.hand_over is not None and self.hand_over():
                self._go_on()
            else:
                self._wake()

    def _go_on(self) -> None:
        self._ahead = 0
        if self._paused:
            self._paused = False
            if self._resting is None:
                self._source.resume()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


class LineWriter:
    """Lines to a descriptor.

    Attributes:
        broken: why nothing can be written any more, or None.
        prompt: set it to have the next message written at once rather than at the end of the
            turn. Whoever has only one message to answer saves a turn of the event loop so; with
            many in hand, a system call for each would cost more.

    Args:
        fd: belongs to the outlet from now on.
        on_broken: called once if nothing can be written any more.
        patience: seconds in which the other side must read something while something waits for
            it; after twice as long at most it counts as gone. None waits for ever.
    """

    def __init__(
        self, fd: int, on_broken: Callable[[], None], patience: float | None = None
    ) -> None:
        self.broken: OSError | None = None
        self.prompt = False
        self._fd = fd
        self._on_broken = on_broken
        self._patience = patience
        self._watch: asyncio.TimerHandle | None = None
        self._moved = False
        self._loop = asyncio.get_running_loop()
        self._parts: list[bytes | list[bytes]] = []
        self._large = False  # whether a message is among them that is written piece by piece
        self._rest = memoryview(b"")
        self._size = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._blocking: bool | None = None
        if _can_wait(fd):
            self._blocking = os.get_blocking(fd)
            os.set_blocking(fd, False)

    def write(self, data: bytes, rest: tuple[bytes, ...] = ()) -> bool:
        """Write one message as a line of its own, soon; never waits.

        Args:
            data: the message, or its beginning.
            rest: what follows, where it is large.

        Returns:
            Whether so much is waiting to be written that :meth:`room` should be awaited.
        """
        if b"\n" in data:
            # spec 2026-07-28 basic/transports/stdio: messages MUST NOT contain embedded newlines;
            # outside of strings JSON takes a blank as well, and inside they cannot occur
            data = data.translate(ONE_LINE)
        parts = self._parts
        idle = not parts and not self._rest
        self._size += len(data) + 1
        if rest or len(data) > MAX_JOINED_BYTES:
            self._large = True
            parts.append(
                [data, *(piece.translate(ONE_LINE) if b"\n" in piece else piece for piece in rest)]
            )
            self._size += sum(map(len, rest))
        else:
            parts.append(data)
        if idle and self.prompt:
            self.prompt = False
            self._flush()
        elif idle:
            self._loop.call_soon(self._flush)
        return self._size > MAX_UNSENT_BYTES

    @property
    def waiting(self) -> bool:
        """Whether something waits until the other side reads."""
        return bool(self._rest)

    def take_note_of_reading(self) -> bool:
        """Whether the other side has read since this was asked last; where `patience` is None."""
        moved, self._moved = self._moved, False
        return moved

    @property
    def full(self) -> bool:
        """Whether so much waits to be written that no further work should be taken in."""
        return self._size > MAX_UNREAD_BYTES

    def unheard(self) -> bool:
        """Whether it is known that nobody can read any more what is written.

        A pipe whose reader has gone says so, and a Unix socket that was closed at the other end
        and not just shut down in one direction; a TCP socket only when it was reset.
        """
        if self._fd < 0 or not hasattr(select, "poll"):
            return False
        poll = select.poll()
        poll.register(self._fd, 0)
        return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))

    async def room(self, size: int = MAX_UNSENT_BYTES // 2) -> None:
        """Wait until at most ``size`` bytes are left to write, or nothing can be written."""
        self._flush()
        if len(self._waiters) >= MAX_UNSENT_MESSAGES:
            self.fail(TimeoutError(f"it left {MAX_UNSENT_MESSAGES} messages unread"))
        while self._size > size and self.broken is None:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def fail(self, error: OSError) -> None:
        """Say that nothing can be written any more."""
        if self.broken is not None:
            return
        self.broken = error
        if self._watch is not None:
            self._watch.cancel()
        if self._rest:
            self._loop.remove_writer(self._fd)
        self._parts.clear()
        self._rest = memoryview(b"")
        self._size = 0
        self._let_in()
        self._on_broken()

    def close(self) -> None:
        """Let go of the descriptor and of what is not written; may be called twice."""
        self._on_broken = _do_nothing
        self.fail(OSError("closed"))
        fd, self._fd = self._fd, -1
        if fd >= 0:
            _close_restored(fd, self._blocking)

    def _flush(self) -> None:
        while self._parts and not self._rest:
            self._push(memoryview(self._take_large() if self._large else self._take_lines()))
            if self._rest:
                self._loop.add_writer(self._fd, self._on_writable)
                if self._patience is not None and self._watch is None:
                    self._watch = self._loop.call_later(self._patience, self._look)

    def _take_lines(self, count: int | None = None) -> bytes:
        """The first messages that are to be written, or all, as lines; none of them is in pieces."""
        parts: list[Any] = self._parts
        data = b"\n".join([*parts[:count], b""])
        del parts[:count]
        return data

    def _take_large(self) -> bytes:
        """What comes first of the lines before a large message, and the pieces of that."""
        parts, first = self._parts, self._parts[0]
        if isinstance(first, list):
            data = first.pop(0)
            if not first:
                parts[0] = b""  # its end of line is written with what follows
            return data
        small = next((i for i, part in enumerate(parts) if isinstance(part, list)), None)
        self._large = small is not None
        return self._take_lines(small)

    def _look(self) -> None:
        """Give the other side up if it has read nothing since the last look."""
        self._watch = None
        if not self._rest or self._patience is None:
            return
        if not self._moved:
            self.fail(TimeoutError(f"it read nothing for {self._patience:g} s"))
            return
        self._moved = False
        self._watch = self._loop.call_later(self._patience, self._look)

    def _on_writable(self) -> None:
        self._moved = True
        self._push(self._rest)
        if not self._rest and self.broken is None:
            self._loop.remove_writer(self._fd)
            self._flush()

    def _push(self, data: memoryview) -> None:
        """Write until all is written or the pipe is full; keeps the rest."""
        try:
            while data:
                written = os.write(self._fd, data)
                data = data[written:]
                self._size -= written
        except BlockingIOError:
            pass
        except OSError as error:
            self.fail(error)
            return
        self._rest = data
        if self._waiters:
            self._let_in()

    def _let_in(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _do_nothing() -> None:
    """Nobody needs to be told."""
