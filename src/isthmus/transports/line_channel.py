"""A channel that carries one message on each line, whatever the lines run through.

What stdio and sockets have in common on the side that serves. A message that is too long is
refused and the conversation goes on; the end of input is the other side's last word, and what was
read before it is still answered.
"""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from isthmus.core.framing import Oversize
from isthmus.errors import ConnectionLost
from isthmus.runtime.channel import Delivery, Origin, Outgoing
from isthmus.transports.pipes import MAX_LINE_BYTES, LineReader, LineWriter
from isthmus.wire.jsonrpc import ErrorBody, encode_error
from isthmus.wire.struct import Id

# Messages given out in one turn of the event loop; then what they began has a turn. Without it
# all that had been read would be taken in at once, and answered at once, before anybody could
# find that the other side does not read the answers.
MAX_BURST_MESSAGES = 64

DRAIN_TIMEOUT_S = 1.0  # seconds that the other side has, at the end, to read what was sent

# Seconds after its last word in which a side that is waited for without end has to read some of
# the rest. Whoever waits to send it something would otherwise wait on, and keep the process.
LAST_READING_S = 1.0

# Seconds after which that is looked at again: what is still worked on may be answered then
NEXT_LOOK_S = 0.2


class LineChannel:
    """Carries messages over two descriptors, which belong to it from now on.

    Make one inside a running event loop.

    Args:
        reads: the descriptor to read.
        writes: the descriptor to write.
        origin: where its messages come from.
        limit: the longest message taken, in bytes; a longer one is refused with -32600.
        patience: seconds in which the other side must read something of what waits for it, or it
            counts as gone; None waits for ever, in bounded memory.
        other: what to call the other side in errors.

    Attributes:
        SERVES: it is a server's end. Were both ends to wait with reading until the other has
            read, both might wait for ever.
        takes_pieces: see :class:`~isthmus.runtime.channel.Channel`.
    """

    SERVES = True
    takes_pieces = True

    def __init__(
        self,
        reads: int,
        writes: int,
        origin: Origin,
        *,
        limit: int = MAX_LINE_BYTES,
        patience: float | None = None,
        other: str = "the client",
    ) -> None:
        self.origin = origin
        self._limit = limit
        self._other = other
        self._closing: asyncio.Task[None] | None = None
        self._parting: asyncio.TimerHandle | None = None
        self._was_waiting = False
        self._stopped = False
        self._given = 0
        self._inlet = LineReader(reads, limit, patient=self.SERVES)
        self._outlet = LineWriter(writes, self._inlet.stop, patience)
        if patience is None and self.SERVES:
            self._inlet.ended.add_done_callback(self._begin_to_part)

    async def receive(self) -> Delivery | None:
        """The next message, or None at the end of input, when all before it is taken.

        The end of input alone is the other side's last word: it may be listening still.

        Waits while much of what was sent is not read yet: a side that asks and does not read
        gets no more work done.

        Raises:
            ConnectionLost: the other side stopped reading what we write, or is gone altogether.
        """
        inlet, outlet = self._inlet, self._outlet
        lines = inlet.lines
        while True:
            if lines:
                if outlet.full and self.SERVES and not inlet.over:
                    await self._read_on()
                    continue
                self._given += 1
                if self._given >= MAX_BURST_MESSAGES:
                    self._given = 0
                    await asyncio.sleep(0)
                    continue
                line = lines.popleft()
                if not isinstance(line, Oversize):
                    return Delivery(line, self.origin)
                self._explain_oversize(line)
            elif not inlet.over:
                await inlet.more()
                self._given = 0
                outlet.prompt = len(lines) == 1
            else:
                return self._take_last_line()

    def give_to(self, take: Callable[[Delivery], None]) -> None:
        """Give ``take`` what comes while :meth:`receive` waits, in the context that this is called in."""
        self._inlet.hand_over = partial(copy_context().run, self._hand_over, take)

    def _hand_over(self, take: Callable[[Delivery], None]) -> bool:
        """Give the lines that came to ``take``; False where :meth:`receive` has to look after some."""
        lines, outlet = self._inlet.lines, self._outlet
        if len(lines) >= MAX_BURST_MESSAGES or (outlet.full and self.SERVES):
            return False
        outlet.prompt = len(lines) == 1
        while lines and not isinstance(line := lines[0], Oversize):
            del lines[0]
            take(Delivery(line, self.origin))
        return not lines

    async def send(self, out: Outgoing) -> None:
        """Write one message; waits only while the other side reads more slowly than we write.

        Raises:
            ConnectionLost: the other side stopped reading, or the channel was closed.
        """
        outlet = self._outlet
        if outlet.broken is None and outlet.write(out.data, out.rest):
            await outlet.room()
        if outlet.broken is not None:
            raise self._explain_loss(outlet.broken)

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: both directions are shared by all calls, so a message has to say it."""
        # spec 2026-07-28 basic/transports/stdio: to cancel, the client MUST send
        # notifications/cancelled
        return False

    def stop(self) -> None:
        """Take nothing more in; what was read can still be received, and answered."""
        self._stopped = True
        self._inlet.stop()

    def hang_up(self) -> None:
        """The other side has gone: what it had said is its last word, and is there already."""
        if not self._inlet.over:
            self._inlet.finish()

    def _begin_to_part(self, _ended: "asyncio.Future[None]") -> None:
        if self._closing is None:
            self._outlet.take_note_of_reading()
            self._was_waiting = self._outlet.waiting
            self._parting = asyncio.get_running_loop().call_later(LAST_READING_S, self._part)

    def _part(self) -> None:
        """Give up a side that has said its last word, and leaves unread what it is told."""
        was_waiting, self._was_waiting = self._was_waiting, self._outlet.waiting
        has_read = self._outlet.take_note_of_reading()
        if self._was_waiting and was_waiting and not has_read:
            self._outlet.fail(TimeoutError("it has hung up, and does not read"))
        else:
            wait = LAST_READING_S if self._was_waiting else NEXT_LOOK_S
            self._parting = asyncio.get_running_loop().call_later(wait, self._part)

    async def close(self) -> None:
        """Write what was sent, for at most a second, and let go of both descriptors."""
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                await self._outlet.room(0)
        except TimeoutError:
            pass  # a side that does not read any more cannot be told anything
        finally:
            if self._parting is not None:
                self._parting.cancel()
            self._release()
            self._inlet.ignore()
            self._inlet.stop()
            self._outlet.close()

    def _release(self) -> None:
        """Give back what the channel claimed beside its descriptors."""

    async def _read_on(self) -> None:
        """Wait until the other side has read enough of ours, or said its last word."""
        reading = asyncio.ensure_future(self._outlet.room())
        try:
            await asyncio.wait((reading, self._inlet.ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()

    def _take_last_line(self) -> Delivery | None:
        """The last message, at the end of input."""
        if self._closing is not None:
            return None
        if self._outlet.broken is not None:
            raise self._explain_loss(self._outlet.broken)
        # A message without its newline may be whole. If it is not, the parser's refusal says so.
        cut, self._inlet.cut = self._inlet.cut, b""
        if cut:
            return Delivery(cut, self.origin)
        if self.SERVES and not self._stopped and self._outlet.unheard():
            raise ConnectionLost(f"{self._other} hung up")
        return None

    def _explain_loss(self, error: OSError) -> ConnectionLost:
        if self._closing is not None:
            return ConnectionLost(f"the connection to {self._other} was closed")
        return ConnectionLost(f"{self._other} stopped reading what we write: {error}")

    def _explain_oversize(self, line: Oversize) -> None:
        if self._outlet.broken is not None:
            return
        message = (
            f"Invalid request: a message of {line.size} bytes is longer than the limit of "
            f"{self._limit} bytes"
        )
        self._outlet.write(encode_error(None, ErrorBody(code=-32600, message=message)))
