"""Events of a host, for every surface that shows them."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol, TypeAlias

from msgspec import Struct

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.interaction import Decision, Interaction, QuestionTaker
from isthmus.host.model.trace import Trace

MAX_WAITING_EVENTS = 1_000  # of one listener that does not take them


class QuestionAsked(Struct, frozen=True, kw_only=True, tag="asked"):
    """A person is asked."""

    interaction: Interaction


class QuestionAnswered(Struct, frozen=True, kw_only=True, tag="answered"):
    """A question is over: take it off the screen."""

    id: str
    decision: Decision


class QuestionTaken(Struct, frozen=True, kw_only=True, tag="taken"):
    """Somebody has taken a question to answer it, or has given it back.

    Attributes:
        id: the question's.
        taker: who has it now; None for nobody.
    """

    id: str
    taker: QuestionTaker | None = None


class AttemptJudged(Struct, frozen=True, kw_only=True, tag="judged"):
    """Policy has decided about an attempt; it may be asked about, begun or denied now.

    Attributes:
        attempt: what is wanted, without what a rule hides.
        trace: what policy says, and why.
        revision: the revision that the server speaks; empty where it is not connected.
    """

    attempt: Attempt
    trace: Trace
    revision: str = ""


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
        tokens: what models read and wrote in it; None where none did.
        attempt: what was wanted, where policy never decided about it.
    """

    id: str
    failed: bool = False
    error: str = ""
    reason: str = ""
    seconds: float = 0.0
    tokens: int | None = None
    attempt: Attempt | None = None


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
    | QuestionTaken
    | AttemptJudged
    | AttemptBegan
    | AttemptProgressed
    | AttemptEnded
    | ServerMoved
    | HostNotice
)


class EventListener(Protocol):
    """Hears the events of a host, one by one, while they happen."""

    def put(self, event: HostEvent) -> None:
        """One more event."""
        ...

    def close(self) -> None:
        """No more events come."""
        ...


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
        self._listeners: list[EventListener] = []

    def __bool__(self) -> bool:
        return bool(self._listeners)

    def tell(self, event: HostEvent) -> None:
        """Tell everybody."""
        for listener in self._listeners:
            listener.put(event)

    def listen(self) -> EventStream:
        """The events from now on."""
        stream = EventStream(self)
        self.attach(stream)
        return stream

    def attach(self, listener: EventListener) -> None:
        """Tell this one, too, at once and without a queue."""
        self._listeners.append(listener)

    def leave(self, listener: EventListener) -> None:
        """Tell this one no more."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def close(self) -> None:
        """The end: every listener is told that nothing follows."""
        for listener in list(self._listeners):
            listener.close()


async def close_events(events: AsyncIterator[HostEvent]) -> None:
    """Listen to a stream no more, so that the host tells it nothing."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
