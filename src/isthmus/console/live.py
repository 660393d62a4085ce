"""Live updates (server-sent events): which topics have changed, told to every open tab.

There is one subscription to the host. Each tab has a set of topics that it has not been told of yet, so that
ten thousand events of one topic are one line for a slow tab, and no queue grows. A tab fetches the page that
it shows again, so that the last state is right whatever went by unseen.

Topics: ``inbox`` (what waits), ``servers`` (states), ``traffic`` (calls), ``notices``; ``server:NAME`` and
``call:ID`` for pages about one of them; ``reload`` after a loss.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from isthmus.core.http.sse import encode_comment, encode_event
from isthmus.host.model.events import (
    AttemptBegan,
    AttemptEnded,
    AttemptJudged,
    AttemptProgressed,
    HostEvent,
    HostNotice,
    QuestionAnswered,
    QuestionAsked,
    QuestionTaken,
    ServerMoved,
)

if TYPE_CHECKING:
    from isthmus.host.remote.view import HostView

MAX_TOPICS = 200  # that one tab has not been told of; then it loads its page again
MAX_TABS = 400
MAX_TABS_PER_LOGIN = 100
PAUSE_S = 0.1  # between two events of a tab
HEARTBEAT_S = 15.0
RELOAD = "reload"


TOPICS: Mapping[type, Callable[[Any], tuple[str, ...]]] = {
    QuestionAsked: lambda _: ("inbox",),
    QuestionAnswered: lambda _: ("inbox",),
    QuestionTaken: lambda _: ("inbox",),
    ServerMoved: lambda event: ("servers", f"server:{event.server}"),
    AttemptJudged: lambda event: ("traffic", f"call:{event.attempt.id}"),
    AttemptBegan: lambda event: ("traffic", f"call:{event.attempt.id}"),
    AttemptProgressed: lambda event: ("traffic", f"call:{event.id}"),
    AttemptEnded: lambda event: ("traffic", f"call:{event.id}"),
    HostNotice: lambda event: (RELOAD,) if event.about == "lost" else ("notices",),
}
"""The topics of each kind of event."""


def list_topics(event: HostEvent) -> tuple[str, ...]:
    """The topics that an event is about; all of them for a kind that is not known here."""
    find = TOPICS.get(type(event))
    return (RELOAD,) if find is None else find(event)


class TabTopics:
    """The topics that a tab has not been told of; see :meth:`LiveUpdates.open_tab`."""

    def __init__(
        self, session: str = "", may_hear: Callable[[HostEvent], bool] | None = None
    ) -> None:
        self.session = session
        self.may_hear = may_hear
        self._topics: dict[str, None] = {}
        self.news = asyncio.Event()
        self.over = False

    def __len__(self) -> int:
        return len(self._topics)

    def add(self, topics: tuple[str, ...]) -> None:
        """Tell of these, once, when the tab takes them."""
        if RELOAD not in self._topics:
            self._topics.update(dict.fromkeys(topics))
        if RELOAD in self._topics or len(self._topics) > MAX_TOPICS:
            self._topics = {RELOAD: None}
        self.news.set()

    def end(self) -> None:
        """The host has ended: nothing follows."""
        self.over = True
        self.news.set()

    def take(self) -> tuple[str, ...]:
        """What the tab is told now."""
        self.news.clear()
        taken = tuple(self._topics)
        self._topics.clear()
        return taken


class LiveUpdates:
    """The one subscription to a host, for all tabs.

    Args:
        view: the host.
    """

    def __init__(self, view: "HostView") -> None:
        self._view = view
        self._tabs: set[TabTopics] = set()
        self._listening: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._tabs)

    def has_room(self, session: str) -> bool:
        """Whether a login may open one more tab."""
        own = sum(tab.session == session for tab in self._tabs)
        return len(self._tabs) < MAX_TABS and own < MAX_TABS_PER_LOGIN

    @contextmanager
    def open_tab(
        self, session: str = "", may_hear: Callable[[HostEvent], bool] | None = None
    ) -> Iterator[TabTopics]:
        """A tab, as long as it is open.

        Args:
            session: the login that opened it.
            may_hear: whether its visitor may know of an event; None for whoever may know of all.
        """
        tab = TabTopics(session, may_hear)
        self._tabs.add(tab)
        if self._listening is None or self._listening.done():
            self._listening = asyncio.ensure_future(self._listen(self._view.events()))
        try:
            yield tab
        finally:
            self._tabs.discard(tab)
            if not self._tabs and self._listening is not None:
                self._listening.cancel()
                self._listening = None

    async def _listen(self, events: AsyncIterator[HostEvent]) -> None:
        try:
            async for event in events:
                topics = list_topics(event)
                for tab in self._tabs:
                    if tab.may_hear is None or tab.may_hear(event):
                        tab.add(topics)
            for tab in self._tabs:
                tab.end()
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def close(self) -> None:
        """Tell every tab that nothing follows."""
        for tab in self._tabs:
            tab.end()
        if self._listening is not None:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None


async def list_tab_events(
    tab: TabTopics, is_signed_in: Callable[[], Awaitable[bool]], count: Callable[[], str]
) -> AsyncGenerator[bytes, None]:
    """The events of a tab, encoded, until the host or the login ends.

    Args:
        tab: its topics.
        is_signed_in: whether the login that opened the stream still holds; asked before anything is told.
        count: how many questions wait, and how many of them of high risk.
    """
    number, told = 0, ""
    yield encode_event(b"", event="hello", retry=1000)
    while await is_signed_in():
        now = count()
        if now != told:
            told = now
            yield encode_event(now.encode(), event="count")
        try:
            async with asyncio.timeout(HEARTBEAT_S):
                await tab.news.wait()
        except TimeoutError:
            yield encode_comment()
            continue
        if not await is_signed_in():
            break
        topics = tab.take()
        if topics:
            number += 1
            kind = RELOAD if topics == (RELOAD,) else "change"
            yield encode_event(" ".join(topics).encode(), event=kind, id=str(number))
        if tab.over:
            break
        await asyncio.sleep(PAUSE_S)
    yield encode_event(b"", event="end")
