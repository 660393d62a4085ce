"""A real model of 135 million parameters: what a provider promises, and sampling through a host."""

import asyncio
import sys
import time
from contextlib import aclosing

import pytest

from isthmus import Context, Server
from isthmus.errors import ToolFailed
from isthmus.host.chat.conversation import Conversation
from isthmus.host.host import Host
from isthmus.host.model.entries import Advertise
from isthmus.host.model.errors import UserDeclined
from isthmus.host.model.interaction import Decision
from isthmus.host.providers.provider import Completion, Delta, TooLong
from isthmus.host.sampling.models import Model, Models
from isthmus.host.sampling.request import edits
from isthmus.host.turns import Ended, Text
from isthmus.wire import SamplingMessage, TextContent

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180), pytest.mark.xdist_group("model")]

NAME = "smollm2-135m"
BOTH = ("2025-11-25", "2026-07-28")


def asked(text, max_tokens=16, **members):
    """A completion that is the same each time."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return Completion(
        **{"model": NAME, "messages": messages, "max_tokens": max_tokens, "temperature": 0.0}
        | members
    )


async def whole(provider, completion):
    """The pieces, and the end."""
    pieces = [piece async for piece in provider.complete(completion)]
    return pieces[:-1], pieces[-1]


async def test_text_is_streamed_and_counted(model):
    """A completion comes in several pieces, which are the message, with counts of tokens."""
    began = time.perf_counter()
    deltas, done = await whole(model, asked("Tell me about the sea.", 64))
    seconds = time.perf_counter() - began
    print(f"{done.tokens_out} tokens in {seconds:.2f} s", file=sys.stderr)
    assert "".join(delta.text for delta in deltas) == done.result.content.text
    assert len(deltas) > 5
    assert done.tokens_in > 5
    assert 0 < done.tokens_out <= 64
    assert NAME == done.result.model


async def test_the_limit_of_tokens_is_honoured(model):
    """So many tokens and no more, and the reason says so; a longer limit ends by itself."""
    _, short = await whole(model, asked("Write a long story.", 5))
    assert (5, "maxTokens") == (short.tokens_out, short.result.stop_reason)
    _, ended = await whole(model, asked("What is 1 + 1? Answer with one word.", 120))
    assert "endTurn" == ended.result.stop_reason


async def test_without_temperature_it_is_the_same_each_time(model):
    """Temperature 0 gives the same text twice."""
    texts = [
        (await whole(model, asked("Name three colours.", 24)))[1].result.content.text
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


async def test_a_schema_is_obeyed(model):
    """An answer that is to obey a JSON schema does."""
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
        "additionalProperties": False,
    }
    _, done = await whole(model, asked("The capital of France, as JSON.", 60, schema=schema))
    assert done.result.content.text.lstrip().startswith('{"city":') or (
        '"city"' in done.result.content.text
    )


async def test_a_server_goes_on_after_an_answer_that_nobody_wanted_to_the_end(model):
    """Cancelled in the middle, it is there for the next request at once."""
    for _ in range(3):
        async with aclosing(model.complete(asked("Count to a thousand.", 2000))) as pieces:
            assert isinstance(await anext(pieces), Delta)
    async with asyncio.timeout(15):
        _, done = await whole(model, asked("Say yes.", 4))
    assert done.tokens_out <= 4


async def test_a_conversation_that_does_not_fit_is_told_from_other_errors(model):
    """The model's context is an error of its own."""
    with pytest.raises(TooLong):
        await whole(model, asked("word " * 6000))


async def test_what_it_has_is_listed(model):
    """The list of models has its name, and how long its context is."""
    offered = {one.id: one.context for one in await model.models()}
    assert 2048 == offered[NAME]


def notes(revision):
    """A server that has a model write, in one revision."""
    server = Server("notes", revisions=[revision])

    @server.tool
    async def headline(text: str, ctx: Context) -> str:
        """A headline for a text."""
        written = await ctx.sample(f"Write a headline for: {text}", max_tokens=20, temperature=0)
        return written.text

    return server


def hosted(revision, model, *answers):
    """A host with that server, the real model, and a person whose answers are written down."""
    script = list(answers)
    seen = []

    def person(interaction):
        seen.append(interaction)
        if interaction.attempt.action == "tool.call":
            return Decision(verdict="allow", by="test", assurance="local_ui")
        answer = script.pop(0)
        return answer(interaction) if callable(answer) else answer

    catalog = Models([Model(id="tiny", provider="local", remote=NAME, context=2048)])
    host = Host(approver=person, models=catalog, providers={"local": model})
    host.add("notes", notes(revision), advertise=Advertise(sampling=True))
    return host, seen


ALLOW = Decision(verdict="allow", by="test", assurance="local_ui")


@pytest.mark.parametrize("revision", BOTH)
async def test_a_servers_question_is_answered_by_the_model_once_a_person_agreed(model, revision):
    """Through the whole host: reviewed before, written, reviewed after, given to the server."""
    host, seen = hosted(revision, model, ALLOW, ALLOW)
    async with host:
        result = await host.call("notes__headline", {"text": "The sea is rising."})
        before, after = (one.payload for one in seen[1:])
        row = [row for row in await host.audit.tail(50) if row.action == "sampling.request"][-1]
    assert "tiny" == before.model
    assert after.result.content.text == result.text
    assert result.text.strip()
    assert 0 < after.tokens_out <= 20
    assert (NAME, after.tokens_in, after.tokens_out) == (row.model, row.tokens_in, row.tokens_out)


@pytest.mark.parametrize("revision", BOTH)
async def test_a_person_can_shorten_what_is_asked_and_change_what_was_written(model, revision):
    """Edits before and after count, in both eras."""
    shorter = lambda one: Decision(  # noqa: E731 - one expression
        verdict="allow", edited=edits(one.payload, maxTokens=3), by="test", assurance="local_ui"
    )
    mine = Decision(verdict="allow", edited="Mine", by="test", assurance="local_ui")
    host, seen = hosted(revision, model, shorter, mine)
    async with host:
        result = await host.call("notes__headline", {"text": "The sea is rising."})
    assert "Mine" == result.text
    assert seen[-1].payload.tokens_out <= 3


@pytest.mark.parametrize("revision", BOTH)
async def test_a_person_can_refuse_and_nothing_is_written(model, revision):
    """A server of before hears the refusal; since 2026-07-28 the call ends with it."""
    host, seen = hosted(revision, model, Decision(verdict="deny", by="test"))
    async with host:
        with pytest.raises((UserDeclined, ToolFailed)):
            (await host.call("notes__headline", {"text": "The sea."})).raise_for_error()
    assert ["tool.call", "sampling.request"] == [one.attempt.action for one in seen]


async def test_a_conversation_is_answered_by_the_model(model):
    """The loop of a chat: a plain answer, piece by piece."""
    async with Host() as host:
        talk = Conversation(host, model, NAME, max_tokens=24, temperature=0.0)
        events = [event async for event in talk.say("Say hello.")]
    text = "".join(event.text for event in events if isinstance(event, Text))
    assert text.strip()
    assert isinstance(events[-1], Ended)
    assert ["user", "assistant"] == [message.role for message in talk.messages]
