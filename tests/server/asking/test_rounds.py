"""Asking in both eras: rounds, effects, state, cancellation, and the raw form."""

import asyncio
import gc
import json
import logging

import pytest
from msgspec import Raw

from isthmus.core.answers import Accepted, Cancelled, Declined
from isthmus.errors import ToolError
from isthmus.runtime.inbound import Inbound
from isthmus.server import Context, Limits, Server
from isthmus.wire import ClientCapabilities, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import ErrorBody, encode
from support.heap import own_heap
from support.profiling import profile_calls
from support.server.both_eras import LEGACY, MODERN, EraClient, accept_form, tool_text

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


def user(**answers):
    """Answers elicitations by the first word of their message."""

    def answer(method, params):
        word = params["message"].split()[0].rstrip("?").lower()
        return accept_form(value=answers[word])

    return answer


def make_asking_server(body, **settings):
    server = Server("asking", **settings)
    server.add_tool(body, name="body")
    return server


# --- rounds ----------------------------------------------------------------------------------


@BOTH
async def test_a_question_is_one_await_in_either_era(revision):
    """The body does not know how its question travels (our promise)."""

    async def body(ctx: Context) -> str:
        answer = await ctx.elicit("Row?", int)
        assert isinstance(answer, Accepted)
        return f"row {answer.value}"

    client = EraClient(make_asking_server(body), revision, user(row=12))

    assert "row 12" == tool_text(await client.call("body"))
    assert 1 == client.asked.total()


@BOTH
@pytest.mark.parametrize(("action", "kind"), [("decline", Declined), ("cancel", Cancelled)])
async def test_no_and_nothing_are_answers_too(revision, action, kind):
    """Three actions, three answers (spec: elicitation, response actions)."""

    async def body(ctx: Context) -> str:
        return type(await ctx.elicit("Sure?")).__name__

    client = EraClient(make_asking_server(body), revision, lambda *_: {"action": action})

    assert kind.__name__ == tool_text(await client.call("body"))


async def test_questions_asked_together_are_one_round():
    """Siblings get their turns of the loop before the round ends (architecture 4.6)."""

    async def deep(ctx, word, levels):
        if levels:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(deep(ctx, word, levels - 1))
            return task.result()
        return (await ctx.elicit(f"{word}?", str)).value

    async def body(ctx: Context) -> str:
        return "".join(await asyncio.gather(*(deep(ctx, "abc"[n], n) for n in range(3))))

    client = EraClient(make_asking_server(body), MODERN, user(a="x", b="y", c="z"))

    assert "xyz" == tool_text(await client.call("body"))
    assert 1 == client.rounds


async def test_a_key_names_the_question_on_the_wire():
    """An author's key is the key of the input request (conformance fixtures)."""

    async def body(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str, key="user_name")).value

    result = await EraClient(make_asking_server(body)).once("tools/call", {"name": "body"})

    assert ["user_name"] == list(result["inputRequests"])
    assert "input_required" == result["resultType"]


@pytest.mark.covers("rounds.missing.asked-again")
async def test_a_missing_answer_is_asked_again_and_an_extra_one_ignored():
    """A new round, not an error (spec: mrtr, error handling)."""

    async def body(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str, key="name")).value

    client = EraClient(make_asking_server(body))
    first = await client.once("tools/call", {"name": "body"})
    again = await client.once(
        "tools/call",
        {
            "name": "body",
            "requestState": first["requestState"],
            "inputResponses": {"other": accept_form(value="x")},
        },
    )

    assert first["inputRequests"] == again["inputRequests"]


@pytest.mark.covers("rounds.answers.malformed")
@pytest.mark.parametrize("answer", [5, {"action": "fly"}, {"content": {}}, []])
async def test_an_answer_of_the_wrong_shape_is_refused(answer):
    """-32602: the answers are parameters of the retry (spec: mrtr, error handling)."""

    async def body(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str, key="name")).value

    client = EraClient(make_asking_server(body))
    first = await client.once("tools/call", {"name": "body"})
    error = await client.once(
        "tools/call",
        {
            "name": "body",
            "requestState": first["requestState"],
            "inputResponses": {"name": answer},
        },
    )

    assert isinstance(error, ErrorBody)
    assert -32602 == error.code


async def test_a_body_that_swallows_the_cancellation_still_ends_its_round():
    """What it returns in a cut round counts for nothing (architecture 4.6)."""

    async def body(ctx: Context) -> str:
        try:
            return (await ctx.elicit("Name?", str)).value
        except asyncio.CancelledError:
            return "swallowed"

    client = EraClient(make_asking_server(body), MODERN, user(name="ann"))

    assert "ann" == tool_text(await client.call("body"))


async def test_a_body_that_raises_while_it_leaves_still_ends_its_round():
    """So does a failing ``finally``: it failed in a round that is run again."""

    async def body(ctx: Context) -> str:
        answer = None
        try:
            answer = await ctx.elicit("Name?", str)
        finally:
            if answer is None:
                raise ValueError("cleanup failed")
        return answer.value

    client = EraClient(make_asking_server(body), MODERN, user(name="ann"))

    assert "ann" == tool_text(await client.call("body"))


async def test_nothing_new_begins_while_a_round_is_left():
    """Questions and effects in a ``finally`` wait for the round in which it is meant."""
    effects = []

    async def cleaned() -> None:
        effects.append("cleaned")

    async def body(ctx: Context) -> str:
        try:
            return (await ctx.elicit("Name?", str)).value
        finally:
            await ctx.once(cleaned)
            await ctx.elicit("Bye?", str)

    client = EraClient(make_asking_server(body), MODERN, user(name="ann", bye="bye"))
    result = await client.call("body")

    assert "ann" == tool_text(result)
    assert ["cleaned"] == effects
    assert 2 == client.rounds


async def test_a_task_left_behind_with_a_question_does_not_wait_for_ever():
    """The round may end without it, but nothing dangles (our promise)."""
    left = []

    async def body(ctx: Context) -> str:
        left.append(asyncio.create_task(ctx.elicit("Late?", str)))
        return (await ctx.elicit("Name?", str)).value

    await EraClient(make_asking_server(body)).once("tools/call", {"name": "body"})
    await asyncio.sleep(0)

    assert left[0].cancelled()


async def test_a_result_that_needs_no_answer_is_the_result():
    """A question nobody waits for does not hold up the answer (ours)."""

    async def body(ctx: Context) -> str:
        task = asyncio.create_task(ctx.elicit("Late?", str))
        await asyncio.sleep(0)
        task.cancel()
        return "done"

    assert "done" == tool_text(
        await EraClient(make_asking_server(body)).once("tools/call", {"name": "body"})
    )


@BOTH
async def test_a_withdrawn_call_is_cancelled_not_parked(revision):
    """An outer cancellation stays one, whatever the body was doing (asyncio)."""
    entered = asyncio.Event()

    async def body(ctx: Context) -> str:
        entered.set()
        await asyncio.Event().wait()
        return "never"

    task = asyncio.create_task(
        EraClient(make_asking_server(body), revision).once("tools/call", {"name": "body"})
    )
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_call_withdrawn_while_its_round_ends_is_cancelled():
    """Two cancellations at once: the one from outside wins, as with ``asyncio.timeout``."""
    leaving = asyncio.Event()

    async def body(ctx: Context) -> str:
        try:
            return (await ctx.elicit("Name?", str)).value
        finally:
            leaving.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(
        EraClient(make_asking_server(body)).once("tools/call", {"name": "body"})
    )
    await leaving.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@BOTH
async def test_a_cancellation_from_inside_is_a_failure_and_is_answered(revision):
    """A call is answered even where something it awaited was cancelled (our promise)."""

    async def body(ctx: Context) -> str:
        inner = asyncio.create_task(asyncio.sleep(60))
        await asyncio.sleep(0)
        inner.cancel()
        await inner
        return "never"

    result = await EraClient(make_asking_server(body), revision).once(
        "tools/call", {"name": "body"}
    )

    assert "Tool 'body' failed: CancelledError" == tool_text(result)


# --- effects ---------------------------------------------------------------------------------


@pytest.mark.covers("rounds.effects.once")
@BOTH
async def test_an_effect_happens_once_and_its_result_comes_back_typed(revision):
    """What `once` gave is the same in every round (architecture 4.6)."""
    made = []

    async def reserve(date: str) -> tuple[str, int]:
        made.append(date)
        return date, len(made)

    async def body(ctx: Context) -> str:
        hold = await ctx.once(reserve, "monday")
        await ctx.elicit("Sure?", bool)
        return repr(hold)

    client = EraClient(make_asking_server(body), revision, user(sure=True))

    assert "('monday', 1)" == tool_text(await client.call("body"))
    assert ["monday"] == made


@BOTH
async def test_an_effect_that_failed_has_happened(revision):
    """Its exception comes back, of its own class, and it is not tried again."""
    tried = []

    def charge() -> None:
        tried.append(1)
        raise ToolError("no funds")

    async def body(ctx: Context) -> str:
        try:
            await ctx.once(charge)
        except ToolError as error:
            other = await ctx.elicit("Other card?", str)
            return f"{error}: {other.value}"
        return "never"

    client = EraClient(make_asking_server(body), revision, user(other="amex"))

    assert "no funds: amex" == tool_text(await client.call("body"))
    assert [1] == tried


async def test_a_round_waits_for_an_effect_that_runs():
    """Half an effect, and then a whole one, would be worse (architecture 4.6)."""
    finished = []

    async def slow() -> str:
        for _ in range(20):
            await asyncio.sleep(0)
        finished.append(1)
        return "made"

    async def body(ctx: Context) -> str:
        made, answer = await asyncio.gather(ctx.once(slow), ctx.elicit("Name?", str))
        return f"{made} {answer.value}"

    client = EraClient(make_asking_server(body), MODERN, user(name="ann"))

    assert "made ann" == tool_text(await client.call("body"))
    assert [1] == finished


@BOTH
async def test_an_effect_nobody_waits_for_is_finished(revision):
    """A timeout in the body ends the waiting, not the effect (ours)."""
    begun, finished = asyncio.Event(), asyncio.Event()

    async def slow() -> None:
        begun.set()
        for _ in range(5):
            await asyncio.sleep(0)
        finished.set()

    async def body(ctx: Context) -> str:
        waiting = asyncio.create_task(ctx.once(slow))
        await begun.wait()
        waiting.cancel()
        await ctx.elicit("Sure?", bool)
        return str(finished.is_set())

    client = EraClient(make_asking_server(body), revision, user(sure=True), delay=20)

    assert "True" == tool_text(await client.call("body"))


@BOTH
async def test_an_effect_may_have_a_key_of_its_own(revision):
    """With a key, arguments that differ from round to round are still one effect."""
    made = []

    async def note(at: int) -> int:
        made.append(at)
        return at

    async def body(ctx: Context) -> str:
        first = await ctx.once(note, len(made), key="note")
        await ctx.elicit("Sure?", bool)
        return str(first)

    client = EraClient(make_asking_server(body), revision, user(sure=True))

    assert "0" == tool_text(await client.call("body"))
    assert [0] == made


@BOTH
async def test_effects_that_cannot_be_recorded_are_refused_in_either_era(revision):
    """A tool that works up to 2025-11-25 must not break in 2026-07-28 (ours)."""

    async def connect() -> object:
        return object()

    async def body(ctx: Context) -> str:
        await ctx.once(connect)
        return "never"

    server = Server("asking", debug=True)
    server.add_tool(body)

    assert "must be stored" in tool_text(await EraClient(server, revision).call("body"))


# --- the state that travels -------------------------------------------------------------------


def counting():
    server = Server("counting", secret=b"s" * 32)

    @server.tool
    async def body(ctx: Context, n: int = 0) -> str:
        return (await ctx.elicit("Name?", str, key="name")).value

    return server


async def retried(client, state, arguments=None):
    params = {
        "name": "body",
        "requestState": state,
        "inputResponses": {"name": accept_form(value="ann")},
    }
    if arguments is not None:
        params["arguments"] = arguments
    return await client.once("tools/call", params)


@pytest.mark.covers("rounds.state.nothing-kept")
async def test_state_survives_a_restart_with_the_same_secret():
    """Any process with the secret may serve the retry (our promise)."""
    first = await EraClient(counting()).once("tools/call", {"name": "body"})

    assert "ann" == tool_text(await retried(EraClient(counting()), first["requestState"]))


@pytest.mark.covers("rounds.state.verified")
@pytest.mark.parametrize("spoil", [lambda s: s[:-2] + "AA", lambda s: "junk", lambda s: ""])
async def test_tampered_state_is_refused_and_the_reason_logged(spoil, caplog):
    """MUST be rejected; one message for every reason (spec: mrtr, server requirements)."""
    client = EraClient(counting())
    first = await client.once("tools/call", {"name": "body"})
    with caplog.at_level(logging.WARNING, "isthmus"):
        error = await retried(client, spoil(first["requestState"]))

    assert (-32602, "requestState") == (error.code, error.message.split()[3])
    assert 1 == len(caplog.records)


@pytest.mark.covers("rounds.state.bound")
async def test_state_belongs_to_its_call_and_its_principal():
    """Another tool call, other arguments, somebody else: refused (spec: mrtr, a SHOULD)."""
    server = counting()
    ann, bob = EraClient(server, principal="ann"), EraClient(server, principal="bob")
    state = (await ann.once("tools/call", {"name": "body"}))["requestState"]

    assert -32602 == (await retried(bob, state)).code
    assert -32602 == (await retried(ann, state, {"n": 1})).code
    assert "ann" == tool_text(await retried(ann, state))


@pytest.mark.covers("rounds.state.bound")
async def test_state_expires():
    """A short life bounds replay (spec: mrtr, a SHOULD)."""
    server = Server("brief", state_ttl=0)

    @server.tool
    async def body(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str, key="name")).value

    client = EraClient(server)
    first = await client.once("tools/call", {"name": "body"})

    assert -32602 == (await retried(client, first["requestState"])).code


async def test_a_form_whose_members_come_in_another_order_is_the_same_question():
    """Order means nothing in JSON, and a dict may be made anew in each run."""
    turns = []

    async def body(ctx: Context) -> str:
        turns.append(None)
        names = ["name", "age"] if len(turns) % 2 else ["age", "name"]
        properties = {name: {"type": "string"} for name in names}
        form = {"type": "object", "properties": properties}
        answer = await ctx.elicit("Who?", form)
        await ctx.elicit("Sure?")
        return json.dumps(answer.value, sort_keys=True)

    client = EraClient(
        make_asking_server(body), answer=lambda *_: accept_form(name="Ada", age="36")
    )
    assert {"age": "36", "name": "Ada"} == json.loads(tool_text(await client.call("body")))
    assert 2 == client.asked.total()


async def test_an_answer_that_is_known_is_known_though_the_client_could_not_be_asked_again():
    """What a client declares comes with each request; an answer it gave stays given."""

    async def body(ctx: Context) -> str:
        return (await ctx.elicit("Name?", str)).value

    server = make_asking_server(body)
    asked = await EraClient(server).once("tools/call", {"name": "body"})
    (key,) = asked["inputRequests"]
    answers = {key: accept_form(value="Ada")}
    unable = EraClient(server, able=ClientCapabilities())
    params = {"name": "body", "inputResponses": answers, "requestState": asked["requestState"]}

    assert "Ada" == tool_text(await unable.once("tools/call", params))
    assert -32021 == (await unable.once("tools/call", {"name": "body"})).code


@pytest.mark.parametrize(("effects", "most"), [(False, 12), (True, 25)])
async def test_what_was_asked_before_costs_a_round_few_calls(effects, most):
    """Ours: a question that is replayed is spelled, looked up and read, and nothing is judged anew."""

    async def effect(number: int) -> str:
        return str(number)

    async def body(ctx: Context) -> str:
        for number in range(100):
            if effects:
                await ctx.once(effect, number)
            await ctx.elicit(f"Number {number}?", str)
        return "done"

    server = make_asking_server(body)
    client = EraClient(server, answer=lambda *_: accept_form(value="x"))
    params, calls = {"name": "body"}, []
    for _ in range(31):
        count = CallCount()
        with profile_calls(count):
            result = await client.once("tools/call", params)
        calls.append(count.calls)
        answers = {key: accept_form(value="x") for key in result["inputRequests"]}
        params = {
            "name": "body",
            "inputResponses": answers,
            "requestState": result["requestState"],
        }

    assert (calls[30] - calls[10]) / 20 <= most


class CallCount:
    """A profiler that counts the functions of ours that are entered, awaits among them."""

    def __init__(self):
        self.calls = 0

    def __call__(self, frame, event, argument):
        self.calls += event == "call" and "isthmus" in frame.f_code.co_filename


async def test_a_journal_too_large_is_refused_in_words():
    """The token has a limit; its message says what to do (ours)."""

    async def body(ctx: Context) -> str:
        await ctx.once(huge)
        return (await ctx.elicit("Name?", str)).value

    async def huge() -> str:
        return "x" * 50_000

    assert "inputRequests" in await EraClient(make_asking_server(body)).once(
        "tools/call", {"name": "body"}
    )
    small = make_asking_server(body, limits=Limits(request_state=32_768))
    error = await EraClient(small).once("tools/call", {"name": "body"})

    assert -32603 == error.code
    assert "more than the 32768 allowed (Limits.request_state)" in error.message


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_long_answers_are_carried_from_round_to_round(revision):
    """Three of 10 KB in every revision, as an answer of a session has no such limit."""

    async def body(ctx: Context) -> str:
        answers = [(await ctx.elicit(f"Part {n}?", str)).value for n in range(4)]
        return str(sum(map(len, answers)))

    def answer(*_):
        return {"action": "accept", "content": {"value": "x" * 10_000}}

    assert "40000" == tool_text(
        await EraClient(make_asking_server(body), revision, answer).call("body")
    )


# --- capabilities -----------------------------------------------------------------------------


def needing():
    server = Server("needing")

    @server.tool
    async def sample(ctx: Context) -> str:
        return (await ctx.sample("Hi", max_tokens=9)).text

    @server.prompt
    async def greeting(ctx: Context) -> str:
        return (await ctx.sample("Hi", max_tokens=9)).text

    return server


@pytest.mark.covers("capabilities.missing.-32021")
async def test_a_missing_capability_is_named_to_the_client():
    """-32021 with ``requiredCapabilities``, an object (spec: basic, a MUST)."""
    error = await EraClient(needing(), able=ClientCapabilities()).call("sample")

    assert (-32021, {"requiredCapabilities": {"sampling": {}}}) == (error.code, error.data)


async def test_in_a_session_it_is_the_tools_failure():
    """Up to 2025-11-25 there is no such error: the model reads it, others get -32602."""
    client = EraClient(needing(), LEGACY, able=ClientCapabilities())
    result = await client.call("sample")
    error = await client.send("prompts/get", {"name": "greeting"})

    assert result["isError"]
    assert "sampling" in tool_text(result)
    assert -32602 == error.code


@BOTH
async def test_a_tool_may_do_without(revision):
    """CapabilityMissing can be caught before anything was sent (our promise)."""
    from isthmus.errors import CapabilityMissing

    async def body(ctx: Context) -> str:
        try:
            return (await ctx.sample("Hi", max_tokens=9)).text
        except CapabilityMissing as lack:
            return json.dumps(lack.required)

    client = EraClient(make_asking_server(body), revision, able=ClientCapabilities())

    assert '{"sampling": {}}' == tool_text(await client.call("body"))


@pytest.mark.covers("rounds.questions.declared-only")
async def test_only_what_the_client_can_answer_is_asked():
    """No elicitation entry where only sampling was declared (conformance)."""
    from isthmus.errors import CapabilityMissing
    from isthmus.wire import SamplingCapability

    async def body(ctx: Context) -> str:
        async def maybe(question):
            try:
                return await question
            except CapabilityMissing:
                return None

        await asyncio.gather(maybe(ctx.elicit("Name?", str)), maybe(ctx.sample("Hi", max_tokens=9)))
        return "done"

    able = ClientCapabilities(sampling=SamplingCapability())
    result = await EraClient(make_asking_server(body), able=able).once(
        "tools/call", {"name": "body"}
    )

    methods = [request["method"] for request in result["inputRequests"].values()]
    assert ["sampling/createMessage"] == methods


# --- the raw form -----------------------------------------------------------------------------


def raw_question(message):
    params = {
        "message": message,
        "requestedSchema": {"type": "object", "properties": {"value": {"type": "string"}}},
    }
    return InputRequest(method="elicitation/create", params=Raw(encode(params)))


def raw():
    server = Server("raw")

    @server.tool
    async def body(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(
                input_requests={"a": raw_question("A?"), "b": raw_question("B?")},
                request_state="round 1",
            )
        answers = ctx.input_responses
        said = [answers[key]["content"]["value"] for key in ("a", "b")]
        return f"{ctx.request_state}: {said}"

    return server


@BOTH
async def test_questions_may_be_returned_in_either_era(revision):
    """The driver fulfils them where the revision knows no such result (architecture 4.6)."""
    client = EraClient(raw(), revision, user(a="x", b="y"))

    assert "round 1: ['x', 'y']" == tool_text(await client.call("body"))


async def test_an_authors_state_is_not_to_be_seen_or_changed():
    """It comes back verbatim, and travels sealed (our promise)."""
    first = await EraClient(raw()).once("tools/call", {"name": "body"})

    assert "round 1" not in first["requestState"]
    assert (
        -32602
        == (
            await EraClient(raw()).once("tools/call", {"name": "body", "requestState": "round 1"})
        ).code
    )


@pytest.mark.covers("rounds.questions.declared-only")
async def test_returned_questions_need_the_clients_capability_too():
    """MUST NOT be sent where it was not declared (spec: mrtr, server requirements)."""
    error = await EraClient(raw(), able=ClientCapabilities()).call("body")
    legacy = await EraClient(raw(), LEGACY, able=ClientCapabilities()).call("body")

    assert (-32021, {"requiredCapabilities": {"elicitation": {}}}) == (error.code, error.data)
    assert legacy["isError"]


@BOTH
async def test_a_function_without_a_context_may_return_questions(revision):
    """It cannot read the answers, but may keep count elsewhere (ours)."""
    server, calls = Server("stateful"), []

    @server.tool
    async def body() -> str | InputRequiredResult:
        calls.append(1)
        if len(calls) == 1:
            return InputRequiredResult(input_requests={"a": raw_question("A?")})
        return "done"

    assert "done" == tool_text(await EraClient(server, revision, user(a="x")).call("body"))
    assert 2 == len(calls)


@pytest.mark.covers("rounds.bounded")
async def test_returning_questions_for_ever_ends_in_an_error():
    """At most ``max_rounds`` in a session (decision D18)."""
    server = Server("endless", max_rounds=3)

    @server.tool
    async def body(ctx: Context) -> InputRequiredResult:
        return InputRequiredResult(input_requests={"a": raw_question("A?")})

    client = EraClient(server, LEGACY, user(a="x"))
    error = await client.call("body")

    assert -32603 == error.code
    assert 4 == client.asked.total()


@pytest.mark.covers("rounds.result.one-of-both", "rounds.questions.three-kinds")
@pytest.mark.parametrize(
    "question",
    [
        InputRequest(method="tools/list"),
        InputRequest(method="elicitation/create", params=Raw(b'{"message":5}')),
    ],
)
@BOTH
async def test_a_malformed_question_is_the_tools_failure(revision, question):
    """Only the three methods of the specification, in their shape (spec: mrtr)."""
    server = Server("odd", debug=True)

    @server.tool
    async def body(ctx: Context) -> InputRequiredResult:
        return InputRequiredResult(input_requests={"a": question})

    result = await EraClient(server, revision).call("body")

    assert result["isError"]
    assert "question" in tool_text(result)


# --- prompts, resources, other methods --------------------------------------------------------


@pytest.mark.covers("rounds.requests.three-methods")
@BOTH
async def test_prompts_and_resources_ask_as_tools_do(revision):
    """The three methods that may be answered with questions (spec: mrtr)."""
    server = Server("asking")

    @server.prompt
    async def letter(name: str, ctx: Context) -> str:
        return f"{name}, {(await ctx.elicit('Tone?', str)).value}"

    @server.resource("notes://{id}")
    async def note(id: str, ctx: Context) -> str:
        return f"{id}, {(await ctx.elicit('Tone?', str)).value}"

    client = EraClient(server, revision, user(tone="warm"))
    prompt = await client.send("prompts/get", {"name": "letter", "arguments": {"name": "ann"}})
    resource = await client.send("resources/read", {"uri": "notes://7"})

    assert "ann, warm" == prompt["messages"][0]["content"]["text"]
    assert "7, warm" == resource["contents"][0]["text"]


async def test_no_reference_cycle_is_left_by_a_call():
    """The garbage collector finds nothing to do (performance.md)."""

    async def body(ctx: Context) -> str:
        return "done"

    client = EraClient(make_asking_server(body))
    params = Raw(b'{"name":"body"}')

    async def call():
        inbound = Inbound(1, "tools/call", params, client.caller, client.link)
        await client.server.router.serve(inbound)

    await call()
    with own_heap():
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(10):
                await call()
            gc.collect()
            ours = [one for one in gc.garbage if type(one).__module__.startswith("isthmus")]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
    assert [] == ours


@BOTH
async def test_a_prompt_that_awaits_what_was_cancelled_is_answered(revision):
    """-32603, not silence (our promise)."""
    server = Server("asking")

    @server.prompt
    async def letter() -> str:
        raise asyncio.CancelledError

    error = await EraClient(server, revision).send("prompts/get", {"name": "letter"})

    assert -32603 == error.code


async def test_a_prompt_that_is_withdrawn_is_cancelled():
    """As any call (asyncio)."""
    server, entered = Server("asking"), asyncio.Event()

    @server.prompt
    async def letter() -> str:
        entered.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(EraClient(server).send("prompts/get", {"name": "letter"}))
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_returned_answers_are_kept_while_more_is_awaited():
    """The author's state and answers outlast the rounds of other questions (ours)."""
    server = Server("mixed")

    @server.tool
    async def body(ctx: Context) -> str | InputRequiredResult:
        if ctx.request_state is None:
            return InputRequiredResult(
                input_requests={"a": raw_question("A?")}, request_state="one"
            )
        first = await ctx.elicit("B?", str)
        second = await ctx.elicit("C?", str)
        returned = ctx.input_responses["a"]["content"]["value"]
        return f"{ctx.request_state} {returned} {first.value} {second.value}"

    client = EraClient(server, MODERN, user(a="x", b="y", c="z"))

    assert "one x y z" == tool_text(await client.call("body"))
    assert 3 == client.asked.total()


async def test_a_session_does_nothing_twice_for_questions_that_are_returned():
    """The body runs again, its effects and questions do not (architecture 4.6)."""
    made = []

    async def reserve() -> int:
        made.append(1)
        return len(made)

    async def body(ctx: Context) -> str | InputRequiredResult:
        await ctx.progress(1)
        hold = await ctx.once(reserve)
        answer = await ctx.elicit("B?", str)
        if ctx.request_state is None:
            return InputRequiredResult(input_requests={"a": raw_question("A?")}, request_state="s")
        await ctx.progress(2)
        return f"{hold} {answer.value}"

    client = EraClient(make_asking_server(body), LEGACY, user(a="x", b="y"))

    assert "1 y" == tool_text(await client.call("body", token="t"))
    assert ([1], 2) == (made, client.asked.total())
    assert [1, 2] == [p["progress"] for p in client.link.said("notifications/progress")]
