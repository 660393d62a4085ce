"""The provider that plays a script."""

import asyncio

import pytest
from msgspec import structs

from isthmus.errors import UsageError
from isthmus.host.providers.provider import Completion, Delta, Done, RateLimited
from isthmus.host.providers.scripted import Scripted, Slow, When, join_prompt
from isthmus.testing.clock import VirtualLoop
from isthmus.wire import SamplingMessage, TextContent, ToolUseContent


def make_completion(text="hello", **members):
    """A completion that asks one thing."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return Completion(**{"model": "small", "messages": messages, "max_tokens": 50, **members})


async def whole(provider, completion):
    """All that a provider gives for a completion."""
    return [piece async for piece in provider.complete(completion)]


async def test_a_script_answers_in_order_a_word_a_piece():
    """We demand: plain answers are given once each, in pieces, with what they took."""
    provider = Scripted(["one two", "three"])
    first = await whole(provider, make_completion("a question"))
    second = await whole(provider, make_completion())
    assert [Delta("one"), Delta(" two")] == first[:-1]
    assert ("one two", "small", "endTurn") == (
        first[-1].result.content.text,
        first[-1].result.model,
        first[-1].result.stop_reason,
    )
    assert (2, 2) == (first[-1].tokens_in, first[-1].tokens_out)
    assert "three" == second[-1].result.content.text


async def test_a_script_that_is_over_says_so():
    """We demand: a test that asks too often learns it."""
    provider = Scripted(["only"])
    await whole(provider, make_completion())
    with pytest.raises(UsageError, match="completion 2 has no answer"):
        await whole(provider, make_completion())


async def test_a_rule_answers_whenever_it_fits():
    """We demand: rules go before the plain answers, and stay."""
    provider = Scripted([When(lambda it: "weather" in join_prompt(it), "rain"), "else"])
    texts = [
        (await whole(provider, make_completion(text)))[-1].result.content.text
        for text in ("weather", "this", "weather again")
    ]
    assert ["rain", "else", "rain"] == texts


async def test_tools_errors_and_functions_are_answers():
    """We demand: a script can want a tool called, fail, or be computed."""
    use = ToolUseContent(id="1", name="add", input={"a": 1})
    provider = Scripted([use, RateLimited("slow down", retry_after=2.0), lambda it: it.model])
    (done,) = await whole(provider, make_completion())
    assert (use, "toolUse") == (done.result.content, done.result.stop_reason)
    with pytest.raises(RateLimited):
        await whole(provider, make_completion())
    assert "small" == (await whole(provider, make_completion()))[-1].result.content.text


async def test_a_script_stops_at_the_limit_unless_it_is_deaf():
    """We demand: max_tokens counts words, and a deaf script shows what a bad provider does."""
    limited = structs.replace(make_completion(), max_tokens=2)
    done = (await whole(Scripted("one two three"), limited))[-1]
    assert ("one two", "maxTokens") == (done.result.content.text, done.result.stop_reason)
    done = (await whole(Scripted("one two three", deaf=True), limited))[-1]
    assert "one two three" == done.result.content.text


def test_a_slow_answer_pauses_before_each_piece():
    """We demand: delays are the loop's, so that a virtual clock makes them cost nothing."""
    loop = VirtualLoop()
    provider = Scripted(Slow("one two", 10.0))
    pieces = loop.run_until_complete(whole(provider, make_completion()))
    assert (3, 30.0) == (len(pieces), loop.time())
    loop.close()


async def test_an_answer_that_never_comes_can_be_cancelled():
    """We demand: infinity waits until somebody gives up."""
    task = asyncio.ensure_future(whole(Scripted(Slow("never", float("inf"))), make_completion()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_script_says_what_it_has_and_that_it_was_closed():
    """We demand: the rest of a provider is there, too."""
    provider = Scripted("x", models=("a", "b"))
    assert ["a", "b"] == [model.id for model in await provider.models()]
    await provider.close()
    assert provider.closed
    assert isinstance((await whole(provider, make_completion()))[-1], Done)
