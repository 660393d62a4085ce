"""Both eras agree: for any tool body the legacy run and the modern run give the same."""

import asyncio
import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.core.answers import Accepted
from isthmus.errors import ToolError
from isthmus.server import Context, Server
from isthmus.wire import InputRequest, InputRequiredResult
from support.examples import count_examples
from support.server.both_eras import LEGACY, MODERN, EraClient, tool_text

# --- programs: what a tool body may do -------------------------------------------------------

QUESTIONS = st.sampled_from(["seat", "meal", "again"])

LEAVES = st.one_of(
    st.tuples(st.just("elicit"), QUESTIONS),
    st.tuples(st.just("sample"), QUESTIONS),
    st.tuples(st.just("roots")),
    st.tuples(st.just("once"), st.sampled_from(["hold", "pay"]), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("progress")),
    st.tuples(st.just("log")),
    st.tuples(st.just("turns"), st.integers(0, 6)),
    st.tuples(st.just("fail")),
)

PROGRAMS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("then"), st.lists(inner, min_size=1, max_size=4)),
        st.tuples(st.just("gather"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("group"), st.lists(inner, min_size=1, max_size=3)),
        st.tuples(st.just("if"), QUESTIONS, inner, inner),
        st.tuples(st.just("try"), inner),
        st.tuples(st.just("finally"), inner, inner),
        st.tuples(st.just("stubborn"), inner),
        st.tuples(st.just("hurry"), inner),
    ),
    max_leaves=10,
)


class Run:
    """Interprets programs against a context; keeps count of what happened."""

    def __init__(self):
        self.effects = Counter()
        self.steps = 0

    async def effect(self, name: str, turns: int, fails: bool) -> dict[str, int]:
        """A side effect that takes a while and may fail."""
        for _ in range(turns):
            await asyncio.sleep(0)
        self.effects[name] += 1
        if fails:
            raise LookupError(name)
        return {"made": len(name)}

    async def run(self, program, ctx, path):
        return await getattr(self, f"do_{program[0]}")(ctx, path, *program[1:])

    async def do_elicit(self, ctx, path, what):
        answer = await ctx.elicit(f"{path}: {what}?", str)
        return answer.value if isinstance(answer, Accepted) else type(answer).__name__

    async def do_sample(self, ctx, path, what):
        return (await ctx.sample(f"{path}: {what}!", max_tokens=9)).text

    async def do_roots(self, ctx, path):
        return [root.uri for root in await ctx.roots()]

    async def do_once(self, ctx, path, name, turns, fails):
        return await ctx.once(self.effect, f"{path} {name}", turns, fails)

    async def do_progress(self, ctx, path):
        self.steps += 1
        await ctx.progress(self.steps)

    async def do_log(self, ctx, path):
        ctx.log.info("said", path=path)

    async def do_turns(self, ctx, path, turns):
        for _ in range(turns):
            await asyncio.sleep(0)

    async def do_fail(self, ctx, path):
        raise ValueError(path)

    async def do_then(self, ctx, path, parts):
        return [await self.run(part, ctx, path) for part in parts]

    async def do_gather(self, ctx, path, parts):
        branches = (self.run(part, ctx, f"{path}.{n}") for n, part in enumerate(parts))
        return [
            show_outcome(one) for one in await asyncio.gather(*branches, return_exceptions=True)
        ]

    async def do_group(self, ctx, path, parts):
        # A branch that fails cancels its siblings wherever they are; where that is, is a
        # matter of timing in either era, so failures end in their branch here.
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self.do_try(ctx, f"{path}.{n}", part))
                for n, part in enumerate(parts)
            ]
        return [task.result() for task in tasks]

    async def do_if(self, ctx, path, what, one, other):
        answer = await self.do_elicit(ctx, path, what)
        return await self.run(one if len(answer) % 2 else other, ctx, f"{path}?")

    async def do_try(self, ctx, path, part):
        try:
            return await self.run(part, ctx, path)
        except Exception as error:  # noqa: BLE001 - any tool author might
            return show_outcome(error)

    async def do_finally(self, ctx, path, part, last):
        try:
            return await self.run(part, ctx, path)
        finally:
            await self.do_try(ctx, f"{path}!", last)

    async def do_stubborn(self, ctx, path, part):
        try:
            return await self.run(part, ctx, path)
        except asyncio.CancelledError:
            return "ignored"

    async def do_hurry(self, ctx, path, part):
        async with asyncio.timeout(60):
            return await self.run(part, ctx, path)


def show_outcome(outcome):
    if isinstance(outcome, BaseException):
        return f"{type(outcome).__name__} {outcome.args}"
    return outcome


# --- both runs -------------------------------------------------------------------------------


class User:
    """Answers by what is asked, and differently when asked the same again."""

    def __init__(self):
        self.met = Counter()

    def __call__(self, method, params):
        key = json.dumps([method, params], sort_keys=True)
        self.met[key] += 1
        n = sum(key.encode()) + self.met[key]
        if method == "roots/list":
            return {"roots": [{"uri": "file:///home"}]}  # branches may ask this in any order
        if method == "sampling/createMessage":
            said = {"type": "text", "text": f"said {n}"}
            return {"role": "assistant", "content": said, "model": "m"}
        if n % 4 == 0:
            return {"action": "decline"}
        return {"action": "accept", "content": {"value": "x" * (n % 5)}}


RAW = InputRequiredResult(
    input_requests={"raw": InputRequest(method="roots/list")}, request_state="halfway"
)


def outcome_of(program, revision, then=None, **how):
    """Everything a client, its user and the world notice of one call.

    With ``then``, the body returns a question of its own after the program, and goes on with
    ``then`` once that is answered.
    """
    world, server = Run(), Server("properties", debug=True)

    @server.tool
    async def body(ctx: Context) -> str | InputRequiredResult:
        world.steps = 0
        try:
            said = [await world.run(program, ctx, "p")]
            if then is not None and ctx.request_state is None:
                return RAW
            if then is not None:
                said += [ctx.request_state, ctx.input_responses.get("raw")]
                said.append(await world.run(then, ctx, "q"))
            return json.dumps(said)
        except Exception as error:
            raise ToolError(show_outcome(error)) from error

    async def main():
        problems = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: problems.append(what))
        client = EraClient(server, revision, User(), delay=how.pop("delay", 0))
        result = await client.call("body", token="t", **how)
        for _ in range(20):
            await asyncio.sleep(0)
        assert [] == problems
        return client, result

    client, result = asyncio.run(main())
    said = [p["progress"] for p in client.link.said("notifications/progress")]
    return (tool_text(result), result.get("isError")), client.asked, world.effects, said


@pytest.mark.covers("rounds.effects.once")
@settings(max_examples=count_examples(300), deadline=None)
@given(PROGRAMS)
def test_both_eras_agree(program):
    """The same result, the same questions once each, each effect once (architecture, asking)."""
    legacy, modern = outcome_of(program, LEGACY), outcome_of(program, MODERN)

    assert legacy[:3] == modern[:3]


@pytest.mark.covers("rounds.missing.asked-again")
@settings(max_examples=count_examples(150), deadline=None)
@given(PROGRAMS, st.integers(0, 5))
def test_a_client_that_answers_one_question_at_a_time_gets_the_same(program, delay):
    """Missing answers are asked for again (spec: mrtr, error handling)."""
    legacy = outcome_of(program, LEGACY, delay=delay)
    modern = outcome_of(program, MODERN, choose=lambda keys: keys[:1])

    assert legacy[0] == modern[0]
    assert legacy[2] == modern[2]


SEQUENCES = st.lists(LEAVES, max_size=8).map(lambda parts: ("then", parts))


@settings(max_examples=count_examples(150), deadline=None)
@given(SEQUENCES)
def test_nothing_is_said_twice(program):
    """What was reported in one round is not reported again in the next (our promise)."""
    legacy, modern = outcome_of(program, LEGACY), outcome_of(program, MODERN)

    assert legacy[3] == modern[3]


@settings(max_examples=count_examples(100), deadline=None)
@given(PROGRAMS, PROGRAMS)
def test_questions_that_are_returned_agree_with_those_that_are_awaited(program, then):
    """Both forms in one body: nothing is asked or done twice (architecture 4.6)."""
    legacy, modern = outcome_of(program, LEGACY, then), outcome_of(program, MODERN, then)

    assert legacy[:3] == modern[:3]
