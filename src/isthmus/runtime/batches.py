"""Batches (2025-03-26): several calls in one array; what each says first is held back until all have spoken.

While it lasts, a :class:`BatchChannel` stands in for the peer's channel. It knows its own calls by
the context they run in, so that whatever else is said meanwhile passes through; the ordinary way
of a message is not touched by any of this.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from isthmus.core.batch import MAX_BATCH_MEMBERS, join_messages
from isthmus.errors import UsageError
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.struct import Id


class ChannelOwner(Protocol):
    """An owner of a channel, through which it says things."""

    channel: Channel


class BatchedCall:
    """One call of a batch, and whether it has said something or ended."""

    __slots__ = ("done", "gathering")

    def __init__(self, gathering: "BatchChannel") -> None:
        self.gathering = gathering
        self.done = asyncio.Event()


_member: ContextVar[BatchedCall | None] = ContextVar("isthmus_batch_member", default=None)


class BatchChannel:
    """A channel that holds back what the calls of one batch say first.

    Args:
        channel: carries everything else, and the array in the end.
    """

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._held: list[Outgoing] = []
        self._sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def send(self, out: Outgoing) -> None:
        """Hold a message back until the array is sent, or let it pass."""
        member = _member.get()
        if member is None or member.gathering is not self or member.done.is_set():
            await self.channel.send(out)
            return
        self._held.append(out)
        member.done.set()
        try:
            await asyncio.shield(self._sent)
        except asyncio.CancelledError:
            if not self._sent.done() and out in self._held:
                self._held.remove(out)
            raise

    async def flush(self) -> None:
        """Send the array; whoever waits in :meth:`send` hears how it went."""
        held, self._held = self._held, []
        try:
            if held:
                data = join_messages(out.data for out in held)
                await self.channel.send(Outgoing(data, members=tuple(held)))
        except Exception as error:  # noqa: BLE001 - each call that waits for this raises it
            self._sent.set_exception(error)
            self._sent.exception()  # seen, though nobody may be left who waits for it
        else:
            self._sent.set_result(None)

    async def receive(self) -> Delivery | None:
        """As the channel does."""
        return await self.channel.receive()

    def abandon(self, id: Id) -> bool:
        """As the channel does."""
        return self.channel.abandon(id)

    async def close(self) -> None:
        """As the channel does."""
        await self.channel.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else the channel can do."""
        return getattr(self.channel, name)


async def send_batch(speaker: ChannelOwner, calls: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run calls together, and send what each says first as one array.

    Args:
        speaker: whose channel they use.
        calls: what to run; each in a task of its own.

    Returns:
        What each of them returned, in order, or the exception it raised.

    Raises:
        UsageError: there are too many.
    """
    if len(calls) > MAX_BATCH_MEMBERS:
        for call in calls:
            call.close()
        raise UsageError(f"a batch has at most {MAX_BATCH_MEMBERS} messages, not {len(calls)}")
    gathering = BatchChannel(speaker.channel)
    members = [BatchedCall(gathering) for _ in calls]
    speaker.channel = gathering
    tasks = [asyncio.ensure_future(_run_member(*pair)) for pair in zip(calls, members, strict=True)]
    started = list(tasks)
    try:
        for member in members:
            await member.done.wait()
        _remove_channel(speaker, gathering)
        started.append(asyncio.ensure_future(gathering.flush()))
        await asyncio.wait(started)
        return await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        _remove_channel(speaker, gathering)
        for task in started:
            task.cancel()


async def _run_member(call: Coroutine[Any, Any, Any], member: BatchedCall) -> Any:
    _member.set(member)
    try:
        return await call
    finally:
        member.done.set()


def _remove_channel(speaker: ChannelOwner, gathering: BatchChannel) -> None:
    """Take the stand-in away, wherever others were put around it meanwhile."""
    if speaker.channel is gathering:
        speaker.channel = gathering.channel
        return
    outer = speaker.channel
    while isinstance(outer, BatchChannel):
        if outer.channel is gathering:
            outer.channel = gathering.channel
            return
        outer = outer.channel
