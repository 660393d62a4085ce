"""Several calls in one array: what each says first is held back until all have spoken.

While it lasts, a :class:`Gathering` stands in for the peer's channel. It knows its own calls by
the context they run in, so that whatever else is said meanwhile passes through; the ordinary way
of a message is not touched by any of this.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from isthmus.core.batch import MAX_MEMBERS, joined
from isthmus.errors import UsageError
from isthmus.runtime.channel import Channel, Delivery, Outgoing
from isthmus.wire.base import Id

__all__ = ["gather"]


class Speaker(Protocol):
    """Whoever says things through a channel of its own."""

    channel: Channel


class Member:
    """One call of a batch, and whether it has said something or ended."""

    __slots__ = ("done", "gathering")

    def __init__(self, gathering: "Gathering") -> None:
        self.gathering = gathering
        self.done = asyncio.Event()


_member: ContextVar[Member | None] = ContextVar("isthmus_batch_member", default=None)


class Gathering:
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
                data = joined(out.data for out in held)
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


async def gather(speaker: Speaker, calls: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
    """Run calls together, and send what each says first as one array.

    Args:
        speaker: whose channel they use.
        calls: what to run; each in a task of its own.

    Returns:
        What each of them returned, in order, or the exception it raised.

    Raises:
        UsageError: there are too many.
    """
    if len(calls) > MAX_MEMBERS:
        for call in calls:
            call.close()
        raise UsageError(f"a batch has at most {MAX_MEMBERS} messages, not {len(calls)}")
    gathering = Gathering(speaker.channel)
    members = [Member(gathering) for _ in calls]
    speaker.channel = gathering
    tasks = [asyncio.ensure_future(_run(*pair)) for pair in zip(calls, members, strict=True)]
    started = list(tasks)
    try:
        for member in members:
            await member.done.wait()
        _leave(speaker, gathering)
        started.append(asyncio.ensure_future(gathering.flush()))
        await asyncio.wait(started)
        return await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        _leave(speaker, gathering)
        for task in started:
            task.cancel()


async def _run(call: Coroutine[Any, Any, Any], member: Member) -> Any:
    _member.set(member)
    try:
        return await call
    finally:
        member.done.set()


def _leave(speaker: Speaker, gathering: Gathering) -> None:
    """Take the stand-in away, wherever others were put around it meanwhile."""
    if speaker.channel is gathering:
        speaker.channel = gathering.channel
        return
    outer = speaker.channel
    while isinstance(outer, Gathering):
        if outer.channel is gathering:
            outer.channel = gathering.channel
            return
        outer = outer.channel
