"""Sampling requests on their way through policy, people and budgets."""

import asyncio
import re

import pytest
from msgspec import structs

from isthmus.client.model.questions import BadQuestion
from isthmus.core.answers import Declined
from isthmus.errors import Refuse, Rejected
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Exhausted
from isthmus.host.model.events import HostNotice
from isthmus.host.providers.provider import ProviderError, ProviderUnavailable
from isthmus.host.providers.scripted import Scripted, Slow, join_prompt
from isthmus.host.sampling.models import Model
from isthmus.host.sampling.request import BadEdit, edits
from isthmus.host.sampling.sampler import SharedContext
from isthmus.host.sampling.selection import NoModel
from isthmus.host.state.database import HostState
from isthmus.testing.faults import until
from isthmus.wire import (
    AudioContent,
    ImageContent,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)
from support.host.sampling_desk import (
    FREE,
    LARGE,
    SMALL,
    allow_decision,
    make_asker,
    open_sampling_desk,
    read_written_text,
    sampling_params,
)

ADD = Tool(name="add", input_schema={"type": "object"})


def rule(text, id="r", action='"sampling.request"', effect="allow"):
    """One rule."""
    return f'[[rule]]\nid = "{id}"\neffect = "{effect}"\nwhen = {{ action = {action} }}\n{text}\n'


# --- a person in the loop


@pytest.mark.covers("hostsampling.review.default-both", "hostsampling.review.before")
async def test_a_person_sees_the_request_before_and_the_answer_after():
    """The spec: prompts are reviewed before they are sent, responses before they are delivered."""
    async with open_sampling_desk("allow", "allow") as at:
        result = await at.answer("a question", system_prompt="be brief")
        before, after = (question.payload for question in at.person.asked)
        assert ["sampling.request", "sampling.respond"] == at.person.kinds
    assert ("an answer", "small") == (read_written_text(result), result.model)
    assert ("a question", "be brief") == (
        before.params.messages[0].content.text,
        before.params.system_prompt,
    )
    assert ("small", ("small", "large")) == (before.model, before.models)
    assert "no hint counted" == before.selection[0]
    assert before.tokens > 0
    assert before.tokens * 1 + 100 * 2 == before.cost
    assert ("an answer", 2) == (read_written_text(after.result), after.tokens_out)


@pytest.mark.covers("hostsampling.review.denied")
@pytest.mark.parametrize("answers", [["deny"], ["allow", "deny"], ["cancel"], []])
async def test_a_no_at_either_time_and_nobody_being_there_mean_that_the_server_gets_nothing(
    answers,
):
    """The spec: a user may reject a request, or the answer; silence is no."""
    async with open_sampling_desk(*answers) as at:
        assert Declined() == await at.answer()
        assert (1 if len(answers) == 2 else 0) == len(at.provider.asked)


@pytest.mark.covers("hostsampling.review.by-rule")
@pytest.mark.parametrize(
    ("review", "effect", "asked"),
    [
        ("none", "allow", []),
        ("before", "allow", ["sampling.request"]),
        ("after", "allow", ["sampling.respond"]),
        ("both", "allow", ["sampling.request", "sampling.respond"]),
        ("", "allow", ["sampling.request", "sampling.respond"]),
        ("", "ask", ["sampling.request", "sampling.respond"]),
        ("after", "ask", ["sampling.respond"]),
        ("none", "ask", ["sampling.request"]),
    ],
)
async def test_only_a_rule_that_says_so_leaves_a_review_out(review, effect, asked):
    """We demand: both is the default, also for what is allowed; none is said in so many words."""
    said = f'obligations = {{ review = "{review}" }}' if review else ""
    async with open_sampling_desk("allow", "allow", rules=rule(said, effect=effect)) as at:
        assert "an answer" == read_written_text(await at.answer())
        assert asked == at.person.kinds


@pytest.mark.covers("hostsampling.review.edit-before")
async def test_a_person_may_edit_what_is_asked():
    """The spec: users may view and edit prompts before sending."""

    def less(question):
        messages = [{"role": "user", "content": {"type": "text", "text": "something else"}}]
        return allow_decision(
            edits(
                question.payload, messages=messages, model="large", maxTokens=7, temperature=0.5,
                systemPrompt=None, tools=None,
            )
        )  # fmt: skip

    async with open_sampling_desk(
        less, "allow", models=(structs.replace(SMALL, tools=True), LARGE)
    ) as at:
        result = await at.answer("secret", system_prompt="x", tools=[ADD])
        (asked,) = at.provider.asked
        rows = await at.audited()
    assert "large" == result.model
    assert ("something else", 7, 0.5, None, ()) == (
        asked.messages[0].content.text,
        asked.max_tokens,
        asked.temperature,
        asked.system,
        tuple(asked.tools),
    )
    outcome = next(r for r in rows if r.kind == "outcome" and r.action == "sampling.request")
    edited = outcome.detail["edited"]
    assert {"maxTokens", "messages", "model", "systemPrompt", "temperature", "tools"} == set(edited)
    assert "" == edited["systemPrompt"][1]
    assert all(len(pair) == 2 and pair[0] != pair[1] for pair in edited.values())
    assert "large" == outcome.object


@pytest.mark.covers("hostsampling.review.edit-is-less")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"maxTokens": 101}, "maxTokens is 101, and the server wants 100"),
        ({"tools": [{"name": "rm", "inputSchema": {"type": "object"}}]}, "gave no tool 'rm'"),
        ({"model": "nobody"}, "'nobody' may not be used for this; small, large may"),
        ({"messages": []}, "there is no message"),
        ({"maxTokens": "many"}, "malformed"),
        ({"metadata": {}}, "metadata cannot be edited"),
        ({"automatic": {"dollars": 1}}, "malformed"),
    ],
)
async def test_an_edit_that_cannot_be_is_an_error_and_nothing_is_asked(changed, why):
    """We demand: an edit makes a request less; the person is told, the server is not to blame."""
    bad = lambda question: allow_decision({**edits(question.payload), **changed})  # noqa: E731 - one line
    async with open_sampling_desk(bad, bad) as at:
        with pytest.raises(BadEdit, match=why):
            await at.answer(asking=make_asker(origin="result"))
        news = at.pipeline.events.listen()
        with pytest.raises(Rejected):
            await at.answer()
        assert [] == at.provider.asked
        news.close()
        told = [event.text async for event in news if isinstance(event, HostNotice)]
    assert why in told[0]


@pytest.mark.covers("hostsampling.review.edit-after")
@pytest.mark.parametrize("edited", ["mine", {"content": {"type": "text", "text": "mine"}}])
async def test_a_person_may_edit_what_was_written(edited):
    """The spec: responses are reviewed before delivery; what was edited stands in the audit log."""
    async with open_sampling_desk("allow", allow_decision(edited)) as at:
        result = await at.answer()
        rows = await at.audited()
    assert ("mine", "small") == (read_written_text(result), result.model)
    outcome = next(r for r in rows if r.kind == "outcome" and r.action == "sampling.request")
    assert ["result.content"] == list(outcome.detail["edited"])


async def test_an_answer_edited_into_nonsense_is_an_error():
    """We demand: what a person makes of an answer is one that a model could have given."""
    uses = {"content": {"type": "tool_use", "id": "1", "name": "rm", "input": {}}}
    for bad in (uses, {"content": 3}, 7):
        async with open_sampling_desk("allow", allow_decision(bad)) as at:
            with pytest.raises(BadEdit):
                await at.answer(asking=make_asker(origin="result"))


@pytest.mark.covers("hostsampling.review.regenerate")
async def test_a_person_may_have_it_written_anew():
    """We demand: the model writes again, and the person sees that, too."""
    again = allow_decision({"regenerate": True})
    async with open_sampling_desk(
        "allow", again, again, "allow", script=["one", "two", "three"]
    ) as at:
        assert "three" == read_written_text(await at.answer())
        assert 3 == len(at.provider.asked)
        assert 3 == (await at.sampler.budgets.read_today("notes"))[0]


# --- remembered


@pytest.mark.covers("hostsampling.automatic")
async def test_a_yes_for_a_run_can_be_for_an_amount():
    """We demand: model X, so many tokens, for this run; then the person is asked again."""

    def automatic(question):
        return allow_decision(edits(question.payload, automatic={"tokens": 400}), "tool_run")

    async with open_sampling_desk(
        automatic, "allow", "deny", script="x", rules=rule("", effect="ask")
    ) as at:
        run = at.runs.begin()
        asking = make_asker(run=run.id)
        first = await at.answer(asking=asking)
        assert ["sampling.request", "sampling.respond"] == at.person.kinds
        second = await at.answer(asking=asking)
        assert 2 == len(at.person.asked)
        assert ("x", "x") == (read_written_text(first), read_written_text(second))
        bigger = await at.answer(asking=asking, max_tokens=395)
        assert Declined() == bigger
        other = make_asker(run=at.runs.begin().id)
        at.person.answers.append("deny")
        assert Declined() == await at.answer(asking=other)
        assert 4 == len(at.person.asked)


@pytest.mark.covers("hostsampling.automatic")
@pytest.mark.parametrize(("remember", "count"), [('["once", "tool_run"]', 0), ('["once"]', 1)])
async def test_a_yes_for_an_amount_covers_the_answer_where_its_rule_lets_it(remember, count):
    """We demand: automatically means both reviews, unless the rule wants every answer seen."""

    def automatic(question):
        return allow_decision(edits(question.payload, automatic={"tokens": 400}), "tool_run")

    rules = rule("", effect="ask") + rule(
        f"obligations = {{ remember = {remember} }}", "answers", '"sampling.respond"', "ask"
    )
    async with open_sampling_desk(automatic, "allow", "allow", rules=rules) as at:
        asking = make_asker(run=at.runs.begin().id)
        await at.answer(asking=asking)
        await at.answer(asking=asking)
        assert 1 + count == at.person.kinds.count("sampling.respond")


async def test_a_yes_for_a_run_is_for_what_it_costs_too():
    """We demand: an amount of money is an amount, and an unknown price is never covered by it."""

    def automatic(question):
        return allow_decision(edits(question.payload, automatic={"cost": 250}), "tool_run")

    for model, asked in ((SMALL, 2), (Model(id="small", provider="scripted"), 3)):
        async with open_sampling_desk(
            automatic, "allow", "deny", rules=rule("", effect="ask"), models=(model,)
        ) as at:
            asking = make_asker(run=at.runs.begin().id)
            await at.answer(asking=asking)
            await at.answer(asking=asking)
            assert asked == len(at.person.asked)


@pytest.mark.parametrize("effect", ["ask", "allow"])
async def test_a_yes_without_an_amount_is_for_any_number_and_answers_are_still_shown(effect):
    """We demand: each of the two reviews is remembered for itself, whatever made the rule ask."""
    yes = allow_decision(remember="tool_run")
    async with open_sampling_desk(yes, "allow", yes, "deny", rules=rule("", effect=effect)) as at:
        asking = make_asker(run=at.runs.begin().id)
        for _ in range(4):
            assert "an answer" == read_written_text(await at.answer(asking=asking))
        assert ["sampling.request", *["sampling.respond"] * 2] == at.person.kinds
        for grant in at.grants.all():
            await at.grants.revoke(grant.id)
        assert Declined() == await at.answer(asking=asking)


async def test_a_yes_without_an_amount_replaces_one_that_is_used_up():
    """We demand: what a person said last is what counts."""

    def automatic(question):
        return allow_decision(edits(question.payload, automatic={"tokens": 10}), "tool_run")

    yes = allow_decision(remember="tool_run")
    async with open_sampling_desk(automatic, "allow", yes, *["allow"] * 3, rules=rule("")) as at:
        asking = make_asker(run=at.runs.begin().id)
        for _ in range(4):
            await at.answer(asking=asking)
        assert 2 == at.person.kinds.count("sampling.request")


async def test_a_yes_that_is_revoked_counts_no_more():
    """We demand: the amount is beside a grant that the person sees and can take back."""
    automatic = lambda q: allow_decision(edits(q.payload, automatic={}), "tool_run")  # noqa: E731 - short
    async with open_sampling_desk(automatic, "allow", "deny", rules=rule("", effect="ask")) as at:
        asking = make_asker(run=at.runs.begin().id)
        await at.answer(asking=asking)
        (grant,) = at.grants.all()
        assert ("sampling.request", "small") == (grant.action, grant.object)
        await at.grants.revoke(grant.id)
        assert Declined() == await at.answer(asking=asking)


# --- policy and models


@pytest.mark.covers("hostsampling.policy.models")
async def test_policy_says_which_models_a_server_may_use():
    """We demand: a model that a rule denies is never chosen, whatever the server prefers."""
    rules = FREE + (
        '[[rule]]\nid = "no-large"\neffect = "deny"\nreason = "too dear"\n'
        'when = { action = "sampling.request", object = "large" }\n'
    )
    wish = ModelPreferences(hints=[ModelHint(name="large")], intelligence_priority=1.0)
    async with open_sampling_desk(rules=rules) as at:
        assert "small" == (await at.answer(model_preferences=wish)).model
        assert Declined() == await at.answer(asking=make_asker(models=("large",)))
        rows = await at.audited()
    refused = [row for row in rows if row.kind == "sampling"]
    assert ["Denied"] == [row.error for row in refused]


async def test_an_entry_says_which_models_a_server_may_use():
    """We demand: host.sampling.models of an entry are globs of ids."""
    async with open_sampling_desk(rules=FREE) as at:
        assert "large" == (await at.answer(asking=make_asker(models=("l*",)))).model
        assert Declined() == await at.answer(asking=make_asker(models=("gpt-*",)))


@pytest.mark.covers("hostsampling.selection.respected")
async def test_what_the_server_prefers_counts():
    """The spec: clients SHOULD respect model preference hints; the model is the actual one."""
    wish = ModelPreferences(hints=[ModelHint(name="nobody"), ModelHint(name="LARG")])
    remote = structs.replace(SMALL, remote="small:3b")
    async with open_sampling_desk(rules=FREE, models=(remote, LARGE)) as at:
        assert "large" == (await at.answer(model_preferences=wish)).model
        assert "small:3b" == (await at.answer()).model


@pytest.mark.covers("hostsampling.content.modalities")
async def test_pictures_and_sound_go_to_models_that_take_them():
    """We demand: content that a model cannot read is never dropped in silence."""
    picture = SamplingMessage(role="user", content=ImageContent(data="aGk=", mime_type="image/png"))
    sound = SamplingMessage(role="user", content=AudioContent(data="aGk=", mime_type="audio/wav"))
    async with open_sampling_desk(rules=FREE) as at:
        assert "large" == (await at.answer(messages=[picture])).model
        with pytest.raises(NoModel, match="large: it reads no audio"):
            await at.answer(messages=[sound], asking=make_asker(origin="result"))
        with pytest.raises(Refuse, match="No model of this client may be used") as error:
            await at.answer(messages=[sound])
    assert -32603 == error.value.code


async def test_a_model_without_its_provider_is_not_chosen():
    """We demand: a catalog may name more than there is."""
    absent = structs.replace(SMALL, id="absent", provider="nowhere")
    async with open_sampling_desk(rules=FREE, models=(absent, SMALL)) as at:
        assert "small" == (await at.answer()).model


# --- what may be asked


@pytest.mark.covers("hostsampling.request.validated")
@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"messages": []}, "there is no message"),
        ({"max_tokens": 0}, "maxTokens is 0"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"tools": [ADD, ADD]}, "two tools have one name"),
        ({"stop_sequences": ["x"] * 65}, "65 of stop_sequences"),
        ({"model_preferences": ModelPreferences(cost_priority=2.0)}, "costPriority is 2.0"),
        (
            {
                "messages": [
                    SamplingMessage(
                        role="assistant", content=ToolUseContent(id="1", name="add", input={})
                    ),
                    SamplingMessage(role="user", content=TextContent(text="?")),
                ]
            },
            "Tool result missing",
        ),
        (
            {"messages": [sampling_params("x" * 1000).messages[0]] * 40_000},
            "at most 33554432 are taken",
        ),
    ],
)
async def test_what_no_model_may_be_given_is_refused_before_anybody_is_asked(members, why):
    """The spec: both parties SHOULD validate message content; what is out of balance is -32602."""
    async with open_sampling_desk("allow", "allow") as at:
        with pytest.raises(BadQuestion, match=why) as error:
            await at.answer(**members)
        assert ([], []) == (at.person.asked, at.provider.asked)
    assert -32602 == error.value.code


@pytest.mark.covers("hostsampling.content.tool-loop")
async def test_a_model_may_ask_for_the_servers_tools_and_be_given_their_results():
    """The spec: tools go out with the request, uses come back, results go into the next one."""
    use = ToolUseContent(id="1", name="add", input={"a": 1})
    done = ToolResultContent(tool_use_id="1", content=[TextContent(text="2")])
    async with open_sampling_desk(rules=FREE, script=[use, "two"]) as at:
        first = await at.answer(tools=[ADD])
        turn = [
            *sampling_params().messages,
            SamplingMessage(role="assistant", content=first.content),
            SamplingMessage(role="user", content=[done]),
        ]
        second = await at.answer(messages=turn, tools=[ADD])
    assert (use, "toolUse", "two") == (first.content, first.stop_reason, read_written_text(second))


async def test_a_model_that_asks_for_tools_it_was_not_given_is_no_answer():
    """We demand: a provider's mistakes stay with us."""
    use = ToolUseContent(id="1", name="rm", input={})
    async with open_sampling_desk(rules=FREE, script=[use]) as at:
        with pytest.raises(ProviderError, match="given no tools"):
            await at.answer(asking=make_asker(origin="result"))


# --- budgets


@pytest.mark.covers("hostsampling.limits.max-tokens")
async def test_max_tokens_is_enforced_on_this_side_too():
    """The spec: the client MUST respect maxTokens, also where a provider does not."""
    deaf = Scripted("one two three four", deaf=True)
    async with open_sampling_desk(rules=FREE, provider=deaf) as at:
        result = await at.answer(max_tokens=2)
        assert ("one two", "maxTokens") == (read_written_text(result), result.stop_reason)
        assert 2 == at.provider.asked[0].max_tokens
        await at.answer(asking=make_asker(max_tokens=1), max_tokens=100)
        assert 1 == at.provider.asked[1].max_tokens


@pytest.mark.covers("hostsampling.limits.tokens-a-day", "hostsampling.limits.durable")
async def test_the_tokens_of_a_day_last_over_a_restart():
    """We demand: a server's account is durable, and the next day is another one."""
    now = [86_400.0 * 1000 + 3600]
    state = HostState(None, clock=lambda: now[0])
    asking = make_asker(tokens=130, origin="result")
    async with open_sampling_desk(rules=FREE, state=state, script="x " * 60) as at:
        await at.answer(asking=asking)
    async with open_sampling_desk(rules=FREE, state=state, script="x " * 200) as at:
        assert (1, 61) == (await at.sampler.budgets.read_today("notes"))[:2]
        result = await at.answer(asking=asking, max_tokens=100)
        assert ("maxTokens", 63) == (result.stop_reason, len(read_written_text(result).split()))
        with pytest.raises(Exhausted, match="130 tokens") as error:
            await at.answer(asking=asking, max_tokens=100)
        assert 86_400 - 3600 == error.value.retry_after
        now[0] += 86_400
        assert await at.answer(asking=asking)
    await state.close()


@pytest.mark.covers("hostsampling.limits.mid-stream")
async def test_a_stream_that_goes_over_the_budget_is_stopped():
    """We demand: a model that goes on and on is cut off, and what came until then is all."""
    endless = Scripted(" ".join(["word"] * 5000), deaf=True)
    async with open_sampling_desk(rules=FREE, provider=endless) as at:
        result = await at.answer(asking=make_asker(tokens=30), max_tokens=1000)
        used = await at.sampler.budgets.read_today("notes")
    assert "maxTokens" == result.stop_reason
    assert len(read_written_text(result)) < 30 * 4
    assert used[1] >= 30


@pytest.mark.covers("hostsampling.limits.cost-a-day")
async def test_the_money_of_a_day_is_counted():
    """We demand: what an answer may cost at most has to be there before it begins."""
    async with open_sampling_desk(rules=FREE, script="x") as at:
        asking = make_asker(cost=0.0002, origin="result")
        await at.answer(asking=asking, max_tokens=1000)
        assert at.provider.asked[0].max_tokens < 100
        _, _, cost = await at.sampler.budgets.read_today("notes")
        assert 1 * 1 + 1 * 2 == cost
        with pytest.raises(Exhausted, match=r"\$0\.0000 of \$1e-06"):
            await at.answer(asking=make_asker(cost=0.000001, origin="result"))


@pytest.mark.covers("hostsampling.limits.rate")
async def test_a_server_asks_so_often_and_no_more():
    """The spec: clients SHOULD implement rate limiting; nobody is bothered by what is too much."""
    async with open_sampling_desk(rules=FREE) as at:
        asking = make_asker(requests=2)
        await at.answer(asking=asking)
        await at.answer(asking=asking)
        with pytest.raises(Refuse, match="more than 2 times a minute") as error:
            await at.answer(asking=asking)
        assert error.value.data["retryAfter"] > 0
        with pytest.raises(Exhausted):
            await at.answer(asking=structs.replace(asking, origin="result"))
        assert await at.answer(asking=make_asker("another", requests=2))


@pytest.mark.covers("hostsampling.limits.rounds")
async def test_a_model_and_tools_take_turns_so_often_and_no_more():
    """The spec: both parties SHOULD implement iteration limits for tool loops."""
    use = SamplingMessage(role="assistant", content=ToolUseContent(id="1", name="add", input={}))
    done = SamplingMessage(role="user", content=[ToolResultContent(tool_use_id="1", content=[])])
    loop = [*sampling_params().messages, *[use, done] * 3]
    async with open_sampling_desk(rules=FREE) as at:
        with pytest.raises(Refuse, match="have taken 3 turns, and 3 are allowed"):
            await at.answer(messages=loop, tools=[ADD], asking=make_asker(rounds=3))
        parent = Attempt(id="p", action="tool.call", principal="user:local", server="notes")
        asking = make_asker(rounds=2, parent=parent)
        for _ in range(2):
            await at.answer(tools=[ADD], asking=asking)
        with pytest.raises(Refuse, match="have taken 2 turns"):
            await at.answer(tools=[ADD], asking=asking)
        assert await at.answer(asking=asking)


@pytest.mark.covers("hostsampling.limits.depth")
async def test_a_model_does_not_have_models_asked():
    """We demand: a sampling in the course of a sampling is refused."""
    async with open_sampling_desk(rules=FREE) as at:
        with pytest.raises(Refuse, match="in the course of what a model asked for"):
            await at.answer(asking=make_asker(depth=1))


@pytest.mark.covers("hostsampling.limits.concurrency")
async def test_a_server_has_two_requests_under_way_and_the_others_wait():
    """We demand: two at once; who waits gets its turn, and nobody is asked meanwhile."""
    gate = asyncio.Event()

    class Waiting(Scripted):
        async def complete(self, completion):
            self.asked.append(completion)
            await gate.wait()
            async for piece in super().complete(completion):
                yield piece

    async with open_sampling_desk(rules=FREE, provider=Waiting("x")) as at:
        tasks = [asyncio.ensure_future(at.answer()) for _ in range(3)]
        await until(lambda: len(at.provider.asked) == 2)
        assert 1 == at.sampler._slots["notes"].waiting
        gate.set()
        await asyncio.gather(*tasks)
        assert 3 == (await at.sampler.budgets.read_today("notes"))[0]


# --- what goes wrong


@pytest.mark.covers("hostsampling.errors.no-leak")
async def test_a_provider_that_fails_is_told_to_the_server_without_its_words():
    """We demand: a server learns that there is no answer; whoever made the call learns why."""
    async with open_sampling_desk(
        rules=FREE, script=[ProviderError("key sk-1 is wrong")] * 2
    ) as at:
        with pytest.raises(Refuse, match=r"^The model of this client gave no answer$") as error:
            await at.answer()
        assert -32603 == error.value.code
        with pytest.raises(ProviderError, match="sk-1"):
            await at.answer(asking=make_asker(origin="result"))
        assert (2, 0, 0) == await at.sampler.budgets.read_today("notes")


async def test_a_cancelled_request_is_charged_for_what_was_written():
    """We demand: the connection is let go, and what was not written is not paid for."""
    async with open_sampling_desk(rules=FREE, script=Slow("word", float("inf"))) as at:
        task = asyncio.ensure_future(at.answer())
        await until(lambda: at.provider.asked)
        assert (1, 106) == (await at.sampler.budgets.read_today("notes"))[:2]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (1, 0) == (await at.sampler.budgets.read_today("notes"))[:2]


async def test_a_provider_that_does_not_answer_is_left_alone_for_a_while():
    """We demand: the next request goes to another provider at once, and says why."""
    now = [0.0]
    down = Scripted([ProviderUnavailable("down", retry_after=60.0)], name="down")
    first = structs.replace(SMALL, id="first", provider="down")
    async with open_sampling_desk(rules=FREE, models=(first, SMALL), clock=lambda: 0.0) as at:
        at.sampler._runner.providers["down"] = down
        at.sampler._runner._clock = lambda: now[0]
        with pytest.raises(ProviderUnavailable):
            await at.answer(asking=make_asker(origin="result"))
        assert "small" == (await at.answer()).model
        assert {"down": "it does not answer"} == at.sampler._runner.unhealthy()
        now[0] = 61.0
        assert {} == at.sampler._runner.unhealthy()


# --- context


class Source:
    """Gathers what it was given."""

    def __init__(self, *found):
        self.found = found
        self.asked = []

    async def gather(self, asking, *, everybody, budget):
        """All of it."""
        self.asked.append((everybody, budget))
        return self.found


MINE = SharedContext(server="files", what="file:///notes.txt", text="the secret of the house")


@pytest.mark.covers("hostsampling.context.ignored")
async def test_context_is_not_added_where_no_rule_is_about_it():
    """The spec: the client MAY ignore includeContext; none is the default."""
    source = Source(MINE)
    async with open_sampling_desk("allow", "allow", context=source) as at:
        await at.answer(include_context="allServers")
        assert ["sampling.request", "sampling.respond"] == at.person.kinds
        assert "secret" not in join_prompt(at.provider.asked[0])
    assert [] == source.asked


@pytest.mark.covers("hostsampling.context.shared")
async def test_context_of_other_servers_is_shared_by_consent_only():
    """We demand: who gets what is asked as such; the text is framed, and what it was is audited."""
    source = Source(MINE)
    rules = FREE + rule("", "share", '"context.share"', "ask")
    async with open_sampling_desk("allow", rules=rules, context=source) as at:
        await at.answer(include_context="allServers")
        (question,) = at.person.asked
        rows = await at.audited()
        sent = join_prompt(at.provider.asked[0])
    assert ("server:notes", ("files: file:///notes.txt",)) == (
        question.payload.to,
        question.payload.what,
    )
    assert "the secret of the house" in sent
    assert [(True, 2500)] == source.asked
    assert ["files: file:///notes.txt"] == rows[-1].detail["context"]


async def test_without_consent_the_request_goes_on_without_context():
    """We demand: a no to sharing is no no to the request."""
    rules = FREE + rule("", "share", '"context.share"', "ask")
    for source in (Source(MINE), Source()):
        async with open_sampling_desk("deny", rules=rules, context=source) as at:
            assert "an answer" == read_written_text(await at.answer(include_context="thisServer"))
            assert "secret" not in join_prompt(at.provider.asked[0])


# --- the audit log


@pytest.mark.covers("hostsampling.audit")
async def test_the_audit_log_has_who_what_and_how_much():
    """We demand: intent before, outcome after, with tokens, cost and the model really used."""
    async with open_sampling_desk("allow", "allow") as at:
        await at.answer("a question")
        rows = await at.audited()
    mine = [row for row in rows if row.action == "sampling.request"]
    assert ["decision", "intent", "outcome"] == [row.kind for row in mine]
    outcome = mine[-1]
    assert ("server:notes", "notes", "small", "small") == (
        outcome.principal, outcome.server, outcome.object, outcome.model,
    )  # fmt: skip
    assert (2, 2, 6) == (outcome.tokens_in, outcome.tokens_out, outcome.cost)
    assert "endTurn" == outcome.detail["stopReason"]
    answer = [row for row in rows if row.action == "sampling.respond"][-1]
    assert outcome.call == answer.parent


@pytest.mark.covers("hostsampling.sensitive.kept-out")
async def test_secrets_in_what_was_asked_and_all_that_was_written_are_not_kept(tmp_path):
    """The spec: both parties MUST handle sensitive data appropriately."""
    state = HostState(tmp_path)
    secret = Scripted("the answer is CANARY-OUT")
    async with open_sampling_desk(
        "allow", allow_decision("it is CANARY-EDITED"), state=state, provider=secret
    ) as at:
        await at.answer("log in with password=CANARY-IN", system_prompt="token: CANARY-SYSTEM")
        await at.audit.flush()
    await state.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert [] == re.findall(rb"CANARY-[A-Z]+", kept)
    assert b"log in with" in kept


@pytest.mark.covers("hostsampling.messages.not-retained")
async def test_a_model_is_given_one_request_and_nothing_of_those_before():
    """The spec: messages SHOULD NOT be retained between separate requests."""
    async with open_sampling_desk(rules=FREE) as at:
        await at.answer("the first")
        await at.answer("the second")
    assert ["the first", "the second"] == [join_prompt(asked) for asked in at.provider.asked]
