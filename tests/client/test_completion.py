"""Completion while somebody types."""

import asyncio

import pytest

from isthmus.client.client import Client
from isthmus.client.completion import Completer
from isthmus.testing import VirtualLoop
from isthmus.wire import (
    CompleteResult,
    Completion,
    PromptReference,
    ServerCapabilities,
)
from support.client.small_server import MODERN_NAME, SmallServer


def virtual(test):
    """Run a coroutine function on a loop whose time passes when nothing else can happen."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


def answering(asked):
    async def ask(value, _context):
        asked.append(value)
        return Completion(values=[value + "!"])

    return ask


@pytest.mark.covers("clientlimits.completion.debounced")
def test_only_the_last_of_many_keystrokes_is_asked_for():
    """Spec 2026-07-28 server/utilities/completion: clients SHOULD debounce rapid requests."""

    async def typing():
        asked = []
        completer = Completer(answering(asked), delay=0.2)
        keys = [asyncio.ensure_future(completer("par"[:n])) for n in (1, 2, 3)]
        found = [await key for key in keys]
        return asked, [one and one.values for one in found]

    assert (["par"], [None, None, ["par!"]]) == virtual(typing)


@pytest.mark.covers("clientlimits.completion.cached")
def test_what_was_asked_is_not_asked_again_for_a_while():
    """Spec 2026-07-28 server/utilities/completion: clients SHOULD cache results."""

    async def typing():
        asked = []
        clock = asyncio.get_running_loop().time
        completer = Completer(answering(asked), delay=0.1, ttl=60, room=2, clock=clock)
        for value in ("p", "pa", "p"):
            await completer(value)
        await completer("p", {"country": "FR"})
        await asyncio.sleep(61)
        await completer("p")
        return asked

    assert ["p", "pa", "p", "p"] == virtual(typing)


def test_what_is_known_overtakes_what_is_asked():
    """Ours: whoever deletes a letter sees the old answer, and nothing newer after it."""

    async def typing():
        asked = []
        completer = Completer(answering(asked), delay=0.2)
        await completer("p")
        slow = asyncio.ensure_future(completer("pa"))
        await asyncio.sleep(0.1)
        quick = await completer("p")
        return quick.values, await slow, asked

    assert (["p!"], None, ["p"]) == virtual(typing)


def test_an_error_reaches_whoever_typed_last():
    """Ours: a failure is not cached."""

    async def typing():
        async def ask(_value, _context):
            raise LookupError("no")

        completer = Completer(ask)
        for _ in range(2):
            with pytest.raises(LookupError, match="no"):
                await completer("p")

    virtual(typing)


def test_whoever_stops_waiting_stops_the_question():
    """Ours: nothing is asked for nobody."""

    async def typing():
        asked = []
        completer = Completer(answering(asked), delay=1)
        waiting = asyncio.ensure_future(completer("p"))
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.sleep(5)
        completer.forget()
        return asked

    assert [] == virtual(typing)


async def test_a_client_makes_completers():
    """Ours: the context goes along."""
    seen = []

    async def complete(params, _inbound):
        context = params.context.arguments if params.context else None
        seen.append((params.argument.value, context))
        return CompleteResult(completion=Completion(values=["paris"]))

    small = SmallServer(
        {"completion/complete": complete}, capabilities=ServerCapabilities(completions={})
    )
    async with Client(small, revision=MODERN_NAME) as client:
        completer = client.completer(PromptReference(name="trip"), "city", delay=0)
        found = await completer("pa", {"country": "FR"})

    assert (["paris"], [("pa", {"country": "FR"})]) == (found.values, seen)
