"""Answers that a client of 2026-07-28 gives before they are asked for, as its revision lets it."""

import pytest

from isthmus import Context, Server
from isthmus.gateway import Gateway
from isthmus.wire.jsonrpc import ErrorBody
from support.gateway.asking_shop import make_host
from support.gateway.small_gateway import ALLOW_ALL
from support.server.both_eras import EraClient, tool_text

FORBIDS_FORMS = """
[[rule]]
id = "no-forms"
effect = "deny"
when = { action = "elicit.form" }

[[rule]]
id = "rest"
effect = "allow"
"""

ANN = {"action": "accept", "content": {"value": "ann"}}
BOB = {"action": "accept", "content": {"value": "bob"}}


def make_shop(revision):
    """A server that asks two things with keys of its own, and once more where an answer does not do."""
    shop = Server("shop", revisions=[revision])

    @shop.tool
    async def greet(ctx: Context) -> str:
        """Greet two people."""
        one = await ctx.elicit("Who are you?", str, key="one")
        two = await ctx.elicit("Who else is there?", str, key="two")
        return f"{getattr(one, 'value', 'nobody')} {getattr(two, 'value', 'nobody')}"

    return shop


async def call(answers, *, revision="2026-07-28", policy=ALLOW_ALL):
    """The first round of a call that comes with answers, at a gateway."""
    gateway = Gateway(make_host(policy, ("shop", make_shop(revision), {})))
    async with gateway:
        params = {"name": "shop__greet", "arguments": {}, "inputResponses": answers}
        return await EraClient(gateway.server).once("tools/call", params)


async def test_answers_that_came_before_their_questions_are_used():
    """Ours: as at the server itself; keys that nobody asks for are ignored."""
    result = await call({"one": ANN, "two": BOB, "three": ANN})

    assert "ann bob" == tool_text(result)


async def test_what_no_answer_came_for_is_asked():
    """Ours: in the result, with the key of the server behind."""
    result = await call({"one": ANN})

    assert ["two"] == list(result["inputRequests"])


async def test_a_server_without_keys_asks_all_the_same():
    """Ours: before 2026-07-28 no question has a key that a client could know."""
    result = await call({"one": ANN, "two": BOB}, revision="2025-11-25")

    assert 1 == len(result["inputRequests"])


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_no_answer_is_to_a_question_without_a_key(revision):
    """Attack: an answer by the empty key is to none, though some questions have none."""
    result = await call({"": ANN}, revision=revision)

    (asked,) = result["inputRequests"].values()
    assert "Who are you?" == asked["params"]["message"]


async def test_an_answer_does_not_pass_a_rule_by():
    """Attack: a client answers what its server may not ask."""
    result = await call({"one": ANN, "two": BOB}, policy=FORBIDS_FORMS)

    assert "nobody nobody" == tool_text(result)


@pytest.mark.parametrize("answer", [12345, "ann", [], {"action": "may be"}])
async def test_a_malformed_answer_is_refused(answer):
    """Ours: the request is the client's fault, and no question of the server."""
    result = await call({"one": answer})

    assert isinstance(result, ErrorBody)
