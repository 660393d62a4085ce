"""Answers given in advance."""

import pytest

from isthmus import Accepted, Context, Declined, Server
from isthmus.testing import connect, script


def make_asking_server(times):
    """A server whose one tool asks so many times."""
    server = Server("asking", version="1")

    @server.tool
    async def ask(ctx: Context) -> str:
        """Ask."""
        answers = [await ctx.elicit(f"Question {n}?", str) for n in range(times)]
        return ", ".join(getattr(answer, "value", type(answer).__name__) for answer in answers)

    @server.tool
    async def think(ctx: Context) -> str:
        """Have the model think."""
        return (await ctx.sample("Think.", max_tokens=5)).text

    return server


async def test_answers_are_given_in_order_and_questions_kept():
    """A script is played from its beginning (ours)."""
    user = script(Accepted({"value": "yes"}), Declined())
    async with connect(make_asking_server(2), elicit=user) as client:
        result = await client.call_tool("ask")

    assert "yes, Declined" == result.text
    assert ["Question 0?", "Question 1?"] == [question.message for question in user.questions]
    assert 0 == user.left


async def test_a_function_answers_with_the_question_in_hand():
    """What depends on the question need not be known before (ours)."""
    user = script(lambda question: Accepted({"value": question.message.upper()}))
    async with connect(make_asking_server(1), elicit=user) as client:
        assert "QUESTION 0?" == (await client.call_tool("ask")).text


async def test_a_model_can_be_scripted_too():
    """For ``sample=`` an answer is a text (ours)."""
    model = script("I think so.")
    async with connect(make_asking_server(0), sample=model) as client:
        assert "I think so." == (await client.call_tool("think")).text
    assert 5 == model.questions[0].max_tokens


async def test_an_answer_that_nobody_asked_for_fails_the_test():
    """When the block is left, with the answers that are left in the message (ours)."""
    with pytest.raises(AssertionError, match=r"nobody asked for these answers: \[Declined\(\)\]"):
        async with connect(
            make_asking_server(1), elicit=script(Accepted({"value": "a"}), Declined())
        ) as client:
            await client.call_tool("ask")


async def test_a_question_too_many_names_itself():
    """The message has the question, in whichever era it came (ours)."""
    with pytest.raises(AssertionError, match=r"no answer left for: .*Question 1"):
        async with connect(
            make_asking_server(2), elicit=script(Accepted({"value": "a"}))
        ) as client:
            await client.call_tool("ask")


async def test_an_error_in_the_block_is_not_hidden_by_answers_left():
    """The first thing that went wrong is what one reads (ours)."""
    with pytest.raises(ZeroDivisionError):
        async with connect(make_asking_server(1), elicit=script(Declined())):
            raise ZeroDivisionError
