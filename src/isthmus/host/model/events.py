"""Events of a host, for every surface that shows them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TypeAlias

from msgspec import Struct

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.interaction import Decision, Interaction

MAX_WAITING_EVENTS = 1_000  # of one listener that does not take them


class QuestionAsked(Struct, frozen=True, kw_only=True, tag="asked"):
    """A person is asked."""

    interaction: Interaction


class QuestionAnswered(Struct, frozen=True, kw_only=True, tag="answered"):
    """A question is over: take it off the screen."""

    id: str
    decision: Decision


class AttemptBegan(Struct, frozen=True, kw_only=True, tag="began"):
    """Something is under way: it was allowed, and goes to its server now."""

    attempt: Attempt


class AttemptProgressed(Struct, frozen=True, kw_only=True, tag="progressed"):
    """A server tells how far it has come."""

    id: str
    progress: float
    total: float | None = None
    message: str = ""


class AttemptEnded(Struct, frozen=True, kw_only=True, tag="ended"):
    """It is over.

    Attributes:
        id: the attempt's.
        failed: whether it, or the tool, failed.
        error: the class of the error; empty where there is none.
        reason: why, in a sentence.
        seconds: how long it took.
    """

    id: str
    failed: bool = False
    error: str = ""
    reason: str = ""
    seconds: float = 0.0


class ServerMoved(Struct, frozen=True, kw_only=True, tag="server"):
    """A server has come into another state."""

    server: str
    state: str
    error: str = ""


class HostNotice(Struct, frozen=True, kw_only=True, tag="noticed"):
    """Something that a person should see: ``about`` says of what kind it is.

    Attributes:
        about: ``strike``, ``config``, ``catalog``, ``audit``, ``policy``, ``lost`` …
        server: the server it concerns; empty for none.
        text: one sentence.
    """

    about: str
    text: str
    server: str = ""


HostEvent: TypeAlias = (
    QuestionAsked
    | QuestionAnswered
    | AttemptBegan
    | AttemptProgressed
    | AttemptEnded
    | ServerMoved
    | HostNotice
)


class EventStream:
    """The events from now on, for one listener: ``async for event in stream``.

    A listener that is slow loses the oldest; it is told by a :class:`HostNotice` of ``lost``.
    """

    def __init__(self, events: "HostEvents") -> None:
        self._events = events
        self._waiting: deque[HostEvent] = deque(maxlen=MAX_WAITING_EVENTS)
        self._lost = 0
        self._closed = False
        self._news = asyncio.Event()

    def put(self, event: HostEvent) -> None:
        """One more event."""
        self._lost += len(self._waiting) == MAX_WAITING_EVENTS
        self._waiting.append(event)
        self._news.set()

    def close(self) -> None:
        """No more events come; those that wait are still given."""
        self._closed = True
        self._events.leave(self)
        self._news.set()

    def __aiter__(self) -> AsyncIterator[HostEvent]:
        return self

    async def __anext__(self) -> HostEvent:
        while True:
            if self._lost:
                lost, self._lost = self._lost, 0
                return HostNotice(about="lost", text=f"{lost} events went by unseen")
            if self._waiting:
                return self._waiting.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    async def aclose(self) -> None:
        """As :meth:`close`."""
        self.close()


class HostEvents:
    """Tells whoever listens; costs nothing where nobody does."""

    def __init__(self) -> None:
        self._streams: list[EventStream] = []

    def __bool__(self) -> bool:
        return bool(self._streams)

    def tell(self, event: HostEvent) -> None:
        """Tell everybody."""
        for stream in self._streams:
            stream.put(event)

    def listen(self) -> EventStream:
        """The events from now on."""
        stream = EventStream(self)
        self._streams.append(stream)
        return stream

    def leave(self, stream: EventStream) -> None:
        """Tell this one no more."""
        if stream in self._streams:
            self._streams.remove(stream)

    def close(self) -> None:
        """The end: every listener is told that nothing follows."""
        for stream in list(self._streams):
            stream.close()
