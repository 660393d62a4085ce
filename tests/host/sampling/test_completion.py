"""Having a provider write: tries, pauses and limits, on a clock that only tests move."""

import asyncio

import pytest
from msgspec import structs

from isthmus.host.model.errors import Exhausted
from isthmus.host.providers.provider import (
    BadCredentials,
    Completion,
    Delta,
    Done,
    ProviderBroke,
    ProviderUnavailable,
    RateLimited,
)
from isthmus.host.providers.scripted import Scripted, Slow
from isthmus.host.sampling.completion import (
    CompletionProgress,
    CompletionRunner,
    check_tool_uses,
    settle_answer,
    truncate_text,
)
from isthmus.testing.clock import VirtualLoop
from isthmus.wire import CreateMessageResult, TextContent, ToolUseContent
from support.host.sampling_desk import SMALL, sampling_params

MODEL = structs.replace(SMALL, max_output=50)


def writing(script, **options):
    """What has a script write, at a time."""
    provider = script if hasattr(script, "complete") else Scripted(script)
    return CompletionRunner({"scripted": provider}, **options), provider


def run(work):
    """Do something on a virtual clock; what came of it, and how long it took."""
    loop = VirtualLoop()
    try:
        result = loop.run_until_complete(asyncio.wait_for(work, 10_000))
    except Exception as error:  # noqa: BLE001 - it is what the test wants to see
        result = error
    time = loop.time()
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    return result, time


def write(script, seconds=300.0, **options):
    """The answer to a request, or the error, and when it came."""
    desk, provider = writing(script, **options)
    progress = CompletionProgress()
    work = desk.write(MODEL, sampling_params(), tokens_in=3, seconds=seconds, progress=progress)
    result, time = run(work)
    return result, time, provider


@pytest.mark.covers("hostsampling.providers.retry")
def test_a_provider_that_is_not_there_is_tried_again_before_anything_has_come():
    """We demand: a few tries with growing pauses, or the pause that the provider asks for."""
    down = ProviderUnavailable("down")
    result, time, provider = write([down, down, "yes"])
    assert ("yes", 1.5, 3) == (result.result.content.text, time, len(provider.asked))
    result, time, _ = write([RateLimited("slow", retry_after=7.0), "yes"])
    assert ("yes", 7.0) == (result.result.content.text, time)
    result, time, provider = write([down] * 4)
    assert (ProviderUnavailable, 3) == (type(result), len(provider.asked))
    result, time, provider = write([RateLimited("slow", retry_after=60.0), "no"])
    assert (RateLimited, 0.0, 1) == (type(result), time, len(provider.asked))
    result, _, provider = write([BadCredentials("no"), "no"])
    assert (BadCredentials, 1) == (type(result), len(provider.asked))


class Breaking(Scripted):
    """Gives a piece, and breaks."""

    async def complete(self, completion):
        self.asked.append(completion)
        yield Delta("half")
        raise ProviderUnavailable("gone")


@pytest.mark.covers("hostsampling.providers.retry")
def test_what_has_begun_is_never_tried_again():
    """We demand: once a piece has come, an error is the end of it."""
    result, _, provider = write(Breaking("x"))
    assert (ProviderUnavailable, 1) == (type(result), len(provider.asked))


class Endless(Scripted):
    """Ends without an end."""

    async def complete(self, completion):
        yield Delta("half")


def test_an_answer_without_an_end_is_none():
    """We demand: a provider that stops in the middle gave no answer."""
    result, _, _ = write(Endless("x"))
    assert isinstance(result, ProviderBroke)
    assert "did not end" in str(result)


def test_an_answer_takes_no_longer_than_it_may():
    """We demand: a time for the whole, and an error that says so."""
    result, time, _ = write(Slow("one two three", 100.0), seconds=250.0)
    assert (ProviderBroke, 250.0) == (type(result), time)
    assert "did not finish within 250 s" in str(result)


def test_a_provider_has_so_many_places():
    """We demand: who finds none in time learns that, and nothing is sent."""
    desk, provider = writing(Slow("x", float("inf")), at_once={"scripted": 1})

    async def two():
        first, second = (
            asyncio.ensure_future(
                desk.write(
                    MODEL,
                    sampling_params(),
                    tokens_in=3,
                    seconds=seconds,
                    progress=CompletionProgress(),
                )
            )
            for seconds in (100.0, 50.0)
        )
        done, _ = await asyncio.wait([first, second])
        return [type(task.exception()) for task in (first, second)], len(done)

    (kinds, _), _ = run(two())
    assert [ProviderBroke, Exhausted] == kinds
    assert 1 == len(provider.asked)


def test_a_model_writes_no_more_than_it_can():
    """We demand: the model's own limit counts as well as the server's."""
    _, _, provider = write("x")
    assert 50 == provider.asked[0].max_tokens


def test_what_nobody_counted_is_estimated_and_never_cut_for_it():
    """We demand: an estimate may be wrong, so that nothing honest is cut by it."""
    text = "internationalisation " * 30
    done = Done(
        result=CreateMessageResult(
            role="assistant", content=TextContent(text=text), model="m", stop_reason="endTurn"
        )
    )
    completion = structs.replace(completed_of(), max_tokens=100)
    written = settle_answer(done, completion, 9)
    assert (text, 9, 175) == (written.result.content.text, written.tokens_in, written.tokens_out)
    assert not written.cut


def completed_of():
    """A completion."""
    _, _, provider = write("x")
    return provider.asked[0]


def test_a_text_is_cut_at_the_end_of_a_word():
    """We demand: what is left is the first part, in whole words where there are any."""
    assert "one two" == truncate_text("one two three", 0.7)
    assert "int" == truncate_text("internal", 0.4)
    assert "all" == truncate_text("all", 1.0)
    assert not truncate_text("all of it", 0.0)


def uses(size):
    """A message in which a model asks for a tool with so many letters."""
    use = ToolUseContent(id="1", name="add", input={"text": "x" * size})
    return CreateMessageResult(role="assistant", content=use, model="m", stop_reason="toolUse")


@pytest.mark.covers("hostsampling.limits.tool-arguments")
def test_arguments_of_a_tool_without_end_are_no_answer():
    """Spec MUST: maxTokens counts for what a model wants of a tool, too, whatever it says it wrote."""
    completion = Completion(model="m", messages=[], max_tokens=10)
    check_tool_uses(Done(result=uses(100)), completion, "scripted")
    with pytest.raises(ProviderBroke, match="10061 bytes"):
        check_tool_uses(Done(result=uses(10_000), tokens_out=1), completion, "scripted")


@pytest.mark.covers("hostsampling.limits.tool-arguments")
def test_a_long_text_is_cut_whatever_its_provider_says_that_it_is():
    """Spec MUST: a provider that counts too little, or nothing, gets no more said than was asked for."""
    completion = Completion(model="m", messages=[], max_tokens=10)
    whole = CreateMessageResult(
        role="assistant",
        content=TextContent(text="word " * 1_000),
        model="m",
        stop_reason="endTurn",
    )
    for tokens in (None, 3):
        written = settle_answer(Done(result=whole, tokens_out=tokens), completion, 9)
        assert "maxTokens" == written.result.stop_reason
        assert written.cut
        assert 36 >= len(written.result.content.text)


@pytest.mark.covers("hostsampling.providers.long-pause")
def test_a_provider_that_wants_a_pause_of_days_is_asked_again_within_the_hour():
    """Ours: one answer of a provider's does not switch it off until the host is started again."""
    now = [0.0]
    desk, _ = writing([RateLimited("slow", retry_after=999_999.0)], clock=lambda: now[0])
    work = desk.write(
        MODEL, sampling_params(), tokens_in=3, seconds=300.0, progress=CompletionProgress()
    )
    assert "slow" == str(run(work)[0])
    assert {"scripted": "it wants a pause"} == desk.unhealthy()
    now[0] = 3600.0
    assert {} == desk.unhealthy()
