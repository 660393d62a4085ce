"""A person who writes what a model would."""

import pytest
from msgspec import UNSET

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Denied
from isthmus.host.model.interaction import Decision
from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT
from isthmus.host.providers.manual import Manual
from isthmus.host.providers.provider import Completion, Delta, ProviderBroke
from isthmus.wire import SamplingMessage, TextContent, Tool
from support.host.sampling_desk import FREE, SMALL, open_sampling_desk, read_written_text

ASKED = Completion(
    model="by-hand",
    messages=[SamplingMessage(role="user", content=TextContent(text="hi"))],
    max_tokens=50,
    system="be brief",
    tools=[Tool(name="add", input_schema={"type": "object"})],
    stop=["END"],
)


def manual(edited=UNSET, verdict="allow"):
    """A provider, and the questions it put."""
    questions = []

    async def ask(question):
        questions.append(question)
        return Decision(verdict=verdict, edited=edited, by="test")

    return Manual(ask, clock=lambda: 100.0), questions


async def whole(provider):
    """All that comes."""
    return [piece async for piece in provider.complete(ASKED)]


@pytest.mark.covers("hostsampling.providers.manual")
@pytest.mark.parametrize("edited", ["mine", {"content": {"type": "text", "text": "mine"}}])
async def test_a_person_writes_the_answer(edited):
    """We demand: the whole conversation is shown, and what is written is the message."""
    provider, questions = manual(edited)
    delta, done = await whole(provider)
    (question,) = questions
    assert (Delta("mine"), "mine", "by-hand", "endTurn") == (
        delta, done.result.content.text, done.result.model, done.result.stop_reason,
    )  # fmt: skip
    assert ("be brief", "hi", "add") == (
        question.payload.params.system_prompt,
        question.payload.params.messages[0].content.text,
        question.payload.params.tools[0].name,
    )
    assert ("sampling.respond", 700.0) == (question.attempt.action, question.deadline)
    assert ["by-hand"] == [model.id for model in await provider.models()]
    await provider.close()


async def test_a_person_may_use_tools():
    """We demand: what a model can say, a person can."""
    use = {"type": "tool_use", "id": "1", "name": "add", "input": {}}
    (done,) = await whole(manual({"content": use, "stopReason": "toolUse"})[0])
    assert ("add", "toolUse") == (done.result.content.name, done.result.stop_reason)


@pytest.mark.parametrize(
    ("edited", "why"),
    [
        (UNSET, "nothing was written"),
        ({"content": 3}, "is no message"),
        (7, "is no message"),
        ({"content": {"type": "tool_use", "id": "1", "name": "rm", "input": {}}}, ""),
    ],
)
async def test_what_is_no_message_is_an_error(edited, why):
    """We demand: a mistake of the person's never reaches the server."""
    provider, _ = manual(edited)
    if why:
        with pytest.raises(ProviderBroke, match=why):
            await whole(provider)
    else:
        assert 1 == len(await whole(provider))


async def test_a_person_may_refuse_to_write():
    """We demand: a no is a no, in the course of what it was asked."""
    provider, questions = manual(verdict="deny")
    parent = Attempt(
        id="p", action="sampling.request", principal="server:notes", server="notes", run="r"
    )
    token = CURRENT_ATTEMPT.set(parent)
    with pytest.raises(Denied, match="nobody wants to write this"):
        await whole(provider)
    CURRENT_ATTEMPT.reset(token)
    attempt = questions[0].attempt
    assert ("notes", "r", "p") == (attempt.server, attempt.run, attempt.parent)


async def test_what_a_person_wrote_is_not_shown_to_them_again():
    """We demand: whoever wrote the answer has reviewed it."""
    provider, questions = manual("mine")
    provider.name = "scripted"
    rules = FREE.replace('"none"', '"after"')
    async with open_sampling_desk("deny", rules=rules, provider=provider, models=(SMALL,)) as at:
        assert "mine" == read_written_text(await at.answer())
        assert [] == at.person.asked
    assert 1 == len(questions)
