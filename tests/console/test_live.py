"""Live updates of the console: bounded for slow readers, right in the end."""

import asyncio
import contextlib
from typing import get_args

from isthmus.console.live import MAX_TOPICS, RELOAD, TOPICS, LiveUpdates, TabTopics, list_tab_events
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.events import (
    AttemptEnded,
    HostEvent,
    HostEvents,
    HostNotice,
    QuestionAnswered,
)
from isthmus.host.model.interaction import Decision
from support.console.console_browser import ConsoledHost
from support.event_loop import run_until

READERS = 50
EVENTS = 10_000


class EventedView:
    """A host of which only its events are seen."""

    def __init__(self):
        self.stream = HostEvents()
        self.subscriptions = 0

    def events(self):
        """Events from now on."""
        self.subscriptions += 1
        return self.stream.listen()


async def test_no_queue_grows_and_the_last_state_is_told():
    """Ours: fifty readers that read nothing, ten thousand calls; then each is told of the last."""
    view = EventedView()
    live = LiveUpdates(view)
    with contextlib.ExitStack() as stack:
        tabs = [stack.enter_context(live.open_tab()) for _ in range(READERS)]
        await run_until(lambda: bool(view.stream))
        for number in range(EVENTS):
            view.stream.tell(AttemptEnded(id=f"c{number}"))
            if number % 500 == 0:
                await asyncio.sleep(0)
        view.stream.tell(QuestionAnswered(id="q", decision=Decision(verdict="deny")))
        await run_until(lambda: all(tab.news.is_set() for tab in tabs))
        await asyncio.sleep(0)
        assert 1 == view.subscriptions
        assert all(len(tab) <= MAX_TOPICS for tab in tabs)
        assert all((RELOAD,) == tab.take() for tab in tabs)
        view.stream.tell(QuestionAnswered(id="q", decision=Decision(verdict="deny")))
        await run_until(lambda: all(len(tab) for tab in tabs))
        assert all(("inbox",) == tab.take() for tab in tabs)
    assert 0 == len(live)
    await live.close()
    await run_until(lambda: not view.stream)


def test_topics_are_told_once():
    """Ours: a thousand events of one topic are one."""
    tab = TabTopics()
    for _ in range(1000):
        tab.add(("inbox",))
    assert 1 == len(tab)
    tab.add((RELOAD,))
    tab.add(("inbox",))
    assert (RELOAD,) == tab.take()


async def test_a_loss_before_us_makes_every_tab_load_again():
    """Ours: the host says that events went by unseen."""
    view = EventedView()
    live = LiveUpdates(view)
    with live.open_tab() as tab:
        await run_until(lambda: bool(view.stream))
        view.stream.tell(HostNotice(about="lost", text="3 events went by unseen"))
        await run_until(lambda: len(tab))
        assert (RELOAD,) == tab.take()
    await live.close()


async def test_a_stream_ends_with_its_login(monkeypatch):
    """Ours: whoever was signed out hears nothing more."""
    monkeypatch.setattr("isthmus.console.live.HEARTBEAT_S", 0.01)
    signed_in = [True, False]

    async def is_signed_in():
        return signed_in.pop(0)

    told = [part async for part in list_tab_events(TabTopics(), is_signed_in, lambda: "0 0")]
    assert b"event: end" in told[-1]
    assert [] == signed_in


async def test_a_stream_with_much_to_tell_ends_with_its_login_too(monkeypatch):
    """Ours: nobody who is told something all the time stays signed in by that."""
    monkeypatch.setattr("isthmus.console.live.HEARTBEAT_S", 0.01)
    tab = TabTopics()

    async def is_signed_in():
        return False

    parts = []
    async for part in list_tab_events(tab, is_signed_in, lambda: "0 0"):
        parts.append(part)
        tab.add(("traffic",))
        assert len(parts) < 100
    assert b"event: end" in parts[-1]


async def test_a_question_is_told_to_an_open_tab():
    """Ours: through the whole app, with the count."""
    async with ConsoledHost() as asked:
        sent, left = [], asyncio.Event()

        async def receive():
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message.get("body", b""))

        scope = asked.browser.make_scope("GET", "/console/events", {})
        serving = asyncio.ensure_future(asked.console(scope, receive, send))
        await run_until(lambda: b"hello" in b"".join(sent))
        await asked.ask()
        await run_until(lambda: b"data: 1 0" in b"".join(sent) and b" inbox" in b"".join(sent))
        assert b"event: reload" not in b"".join(sent)
        left.set()
        await serving
        assert 0 == len(asked.console.live)


def test_an_attempt_has_a_topic_of_its_own():
    """Ours: for the page about one call."""
    from isthmus.console.live import list_topics
    from isthmus.host.model.events import AttemptBegan

    attempt = Attempt(
        id="a1", action="tool.call", principal="p", server="s", object="o", arguments={}
    )
    assert ("traffic", "call:a1") == list_topics(AttemptBegan(attempt=attempt))


def test_every_kind_of_event_has_topics():
    """Ours: one without makes every page load again."""
    assert set(get_args(HostEvent)) == set(TOPICS)
