"""Questions of a server: asked in either way, answered by the same handlers."""

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pydantic
import pytest
from msgspec import UNSET, Raw

from isthmus.client.client import Client
from isthmus.client.features.answering import Answering
from isthmus.client.features.elicitation import fill_form
from isthmus.core.answers import Accepted, Cancelled, Declined
from isthmus.core.negotiation import states_facts
from isthmus.errors import Misbehaved, Refused, TooManyRounds, UsageError
from isthmus.testing import VirtualLoop
from isthmus.wire import (
    ClientCapabilities,
    CreateMessageParams,
    CreateMessageResult,
    ElicitParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsParams,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingMessage,
    TextContent,
    Tool,
)
from isthmus.wire.jsonrpc import decode, encode
from support.client.small_server import (
    LEGACY_NAME,
    MODERN_NAME,
    PuppetChannel,
    SmallServer,
    text_result,
)

EITHER = pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])

FORM = {
    "type": "object",
    "properties": {"row": {"type": "integer", "minimum": 1}},
    "required": ["row"],
}
SEAT = ElicitParams(message="Which row?", requested_schema=FORM)
HAIKU = CreateMessageParams(
    messages=[SamplingMessage(role="user", content=TextContent(text="A haiku."))], max_tokens=9
)
RESULTS = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


def make_asking_server(method, params):
    """A server whose tool asks one question, in the caller's way, and says what it heard."""

    async def call(call, inbound):
        if not states_facts(inbound.caller.revision):
            result = await inbound.link.call(
                method, params, RESULTS[method], relates_to=inbound.id, timeout=5
            )
            return text_result(encode(result).decode())
        if call.input_responses is UNSET:
            question = InputRequest(method=method, params=Raw(encode(params)))
            return InputRequiredResult(input_requests={"q": question}, request_state="s")
        return text_result(bytes(call.input_responses["q"]).decode())

    return SmallServer({"tools/call": call})


async def ask_client(method, params, revision, **handlers):
    """What a server hears from a client with these handlers."""
    async with Client(make_asking_server(method, params), revision=revision, **handlers) as client:
        return json.loads((await client.call_tool("ask")).text)


@pytest.mark.covers(
    "elicitation.answer.actions", "elicitation.mode.absent-is-form", "rounds.answers.given"
)
@EITHER
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Accepted({"row": 12}), {"action": "accept", "content": {"row": 12}}),
        (Declined(), {"action": "decline"}),
        (Cancelled(), {"action": "cancel"}),
    ],
)
async def test_the_user_is_asked(revision, answer, expected):
    """Spec 2026-07-28 client/elicitation#response-actions: three answers, in either era."""
    asked = []

    async def elicit(question):
        asked.append((question.message, question.mode, question.requested_schema))
        return answer

    assert expected == await ask_client("elicitation/create", SEAT, revision, elicit=elicit)
    assert [("Which row?", "form", FORM)] == asked


@EITHER
async def test_a_plain_function_may_answer(revision):
    """Ours: nothing has to be awaited where nothing waits."""
    said = await ask_client(
        "sampling/createMessage", HAIKU, revision, sample=lambda request: str(request.max_tokens)
    )

    assert {"type": "text", "text": "9"} == said["content"]
    assert ("assistant", "endTurn") == (said["role"], said["stopReason"])


@EITHER
async def test_a_whole_message_is_sent_as_it_is(revision):
    """Spec 2025-11-25 client/sampling: the result names its model."""
    message = CreateMessageResult(
        role="assistant", content=TextContent(text="leaves fall"), model="m-1"
    )

    async def sample(_request):
        return message

    said = await ask_client("sampling/createMessage", HAIKU, revision, sample=sample)

    assert json.loads(encode(message)) == said


@EITHER
async def test_roots_are_told(revision, tmp_path):
    """Spec 2025-11-25 client/roots: each is a file:// URI."""
    roots = [tmp_path, "file:///srv", Root(uri="file:///x", name="X")]

    said = await ask_client("roots/list", ListRootsParams(), revision, roots=roots)

    assert [
        {"uri": tmp_path.as_uri(), "name": tmp_path.name},
        {"uri": "file:///srv"},
        {"uri": "file:///x", "name": "X"},
    ] == said["roots"]


@EITHER
async def test_roots_may_be_worked_out_when_asked_for(revision):
    """Ours: a function gives them anew each time."""

    async def roots():
        return [Path("/somewhere")]

    said = await ask_client("roots/list", ListRootsParams(), revision, roots=roots)

    assert [{"uri": "file:///somewhere", "name": "somewhere"}] == said["roots"]


@pytest.mark.covers("elicitation.answer.actions")
@EITHER
async def test_a_page_elsewhere_is_consented_to_without_content(revision):
    """Spec 2026-07-28 client/elicitation: for URL mode the content is omitted."""
    question = ElicitParams(
        message="Log in", mode="url", url="https://x.example", elicitation_id="e"
    )

    said = await ask_client(
        "elicitation/create", question, revision, elicit=lambda q: Accepted(q.url)
    )

    assert {"action": "accept"} == said


@pytest.mark.covers("elicitation.capability.handlers-only", "capabilities.client.declared")
def test_capabilities_follow_the_handlers():
    """Ours: what is offered is what can be answered."""

    def handler(_question):
        """Answers nothing here."""

    assert {} == decode(encode(Answering().capabilities))
    assert {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {"listChanged": True},
    } == decode(encode(Answering(handler, handler, []).capabilities))


def test_capabilities_may_be_added_to():
    """Ours: extensions and finer points are the user's to declare."""
    base = ClientCapabilities(
        sampling=SamplingCapability(tools={}), extensions={"com.example/x": {}}
    )

    found = Answering(sample=lambda _: "", base=base).capabilities

    assert {"sampling": {"tools": {}}, "extensions": {"com.example/x": {}}} == decode(encode(found))


@pytest.mark.covers("elicitation.schema.defaults")
@EITHER
async def test_defaults_fill_the_blanks_left_out(revision):
    """SEP-1034: the schema's defaults are sent for fields the user left alone."""
    blanks = {
        "name": {"type": "string", "default": "John"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 9.5},
        "status": {"type": "string", "enum": ["on", "off"], "default": "on"},
        "verified": {"type": "boolean", "default": True},
    }
    question = ElicitParams(message="?", requested_schema={"type": "object", "properties": blanks})

    said = await ask_client(
        "elicitation/create", question, revision, elicit=lambda _: Accepted({"age": 31})
    )

    assert {"name": "John", "age": 31, "score": 9.5, "status": "on", "verified": True} == (
        said["content"]
    )


def test_an_answer_may_be_any_object():
    """Ours: a dataclass or struct is as good as a mapping."""

    @dataclass
    class Seat:
        row: int

    class Model(pydantic.BaseModel):
        row: int

    assert {"row": 3} == fill_form(Seat(3), FORM)
    assert {"row": 3} == fill_form(Model(row=3), FORM)


async def test_a_sampling_handler_gives_text_or_a_message():
    """Ours: anything else is the handler's mistake."""
    with pytest.raises(UsageError, match="gives text or a CreateMessageResult, not 7"):
        await ask_client("sampling/createMessage", HAIKU, MODERN_NAME, sample=lambda _: 7)


@pytest.mark.covers("elicitation.answer.validated")
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ({"row": 0}, r"0 is less than the minimum of 1 - at `\$\.row`"),
        ({"row": "x"}, r'"x" is not of type "integer" - at `\$\.row`'),
        (None, r'"row" is a required property'),
        (7, "the answer to a form is an object with members"),
        (object(), "the answer is no plain data"),
    ],
)
def test_an_answer_that_does_not_fit_the_form_is_the_handlers_fault(value, complaint):
    """Ours: it is found before it is sent, and says where."""
    with pytest.raises(UsageError, match=complaint):
        fill_form(value, FORM)


async def test_a_handlers_mistake_reaches_the_caller_in_the_modern_era():
    """Ours: the handler runs on behalf of the call, so its exception is the call's."""

    async def elicit(_question):
        raise ZeroDivisionError("mine")

    async with Client(make_asking_server("elicitation/create", SEAT), elicit=elicit) as client:
        with pytest.raises(ZeroDivisionError, match="mine"):
            await client.call_tool("ask")


async def test_a_handlers_mistake_is_an_error_to_a_legacy_server():
    """Ours: the server hears that it failed, and not why."""

    async def elicit(_question):
        return "yes"

    small = make_asking_server("elicitation/create", SEAT)
    async with Client(small, revision=LEGACY_NAME, elicit=elicit) as client:
        with pytest.raises(Refused, match="Internal error in tools/call"):
            await client.call_tool("ask")


@pytest.mark.covers("sampling.capability.tools")
async def test_tools_for_a_model_are_refused_where_they_were_not_offered():
    """Spec 2025-11-25 client/sampling: clients MUST return an error without the capability."""
    seen = []

    async def call(_params, inbound):
        tools = [Tool(name="t", input_schema={})]
        params = CreateMessageParams(messages=[], max_tokens=1, tools=tools)
        try:
            await inbound.link.call("sampling/createMessage", params, CreateMessageResult)
        except Refused as error:
            seen.append(error.code)
        return text_result("")

    small = SmallServer({"tools/call": call})
    async with Client(small, revision=LEGACY_NAME, sample=lambda _: "") as client:
        await client.call_tool("ask")

    assert [-32602] == seen


# Rounds


def rounds(*results):
    """A modern server whose tool gives these results in turn, and what it was called with."""
    calls, left = [], list(results)

    async def call(params, inbound):
        calls.append((inbound.id, params))
        return left.pop(0)

    return SmallServer({"tools/call": call}), calls


def question(**keys):
    """Elicitation requests by key."""
    return {
        key: InputRequest(
            method="elicitation/create",
            params=Raw(encode(ElicitParams(message=words, requested_schema={"type": "object"}))),
        )
        for key, words in keys.items()
    }


@pytest.mark.covers("rounds.retry.new-id", "rounds.retry.state-exactly")
async def test_each_round_has_an_id_of_its_own_and_echoes_the_state():
    """Spec 2026-07-28 basic/patterns/mrtr: new id, exact state, the same parameters."""
    state = 'a "state" \\u00fc ü with {everything}'
    small, calls = rounds(
        InputRequiredResult(input_requests=question(a="?"), request_state=state),
        InputRequiredResult(input_requests=question(b="?")),
        text_result("done"),
    )

    async with Client(small, elicit=lambda _: Accepted({"x": 1})) as client:
        result = await client.call_tool("ask", {"n": 1})

    assert "done" == result.text
    assert 3 == len({id for id, _ in calls})
    assert [UNSET, state, UNSET] == [params.request_state for _, params in calls]
    assert [UNSET, ["a"], ["b"]] == [
        p.input_responses and list(p.input_responses) for _, p in calls
    ]
    assert [b'{"n":1}'] * 3 == [bytes(params.arguments) for _, params in calls]


@pytest.mark.covers("rounds.retry.state-exactly", "rounds.retry.nothing-leaks")
async def test_nothing_of_a_round_leaks_into_another_call():
    """Spec 2026-07-28 basic/patterns/mrtr: they MUST NOT be used for any other request."""
    small, calls = rounds(
        InputRequiredResult(input_requests=question(a="?"), request_state="s"),
        text_result("unrelated"),
        text_result("done"),
    )

    async with Client(small, elicit=lambda _: client_calls()) as client:

        async def client_calls():
            await client.call_tool("unrelated")
            return Accepted({})

        await client.call_tool("ask")

    unrelated = calls[1][1]
    assert ("unrelated", UNSET, UNSET) == (
        unrelated.name, unrelated.request_state, unrelated.input_responses
    )  # fmt: skip


@pytest.mark.covers("rounds.retry.state-exactly")
async def test_a_state_without_questions_is_sent_back_at_once():
    """Spec 2026-07-28 basic/patterns/mrtr: the client MAY retry immediately."""
    small, calls = rounds(InputRequiredResult(request_state="s"), text_result("done"))

    async with Client(small) as client:
        await client.call_tool("ask")

    assert [UNSET, "s"] == [params.request_state for _, params in calls]
    assert UNSET is calls[1][1].input_responses


@pytest.mark.covers("rounds.answers.given")
async def test_the_questions_of_a_round_are_answered_at_the_same_time():
    """Ours: a person can fill in two forms while a model writes."""
    small, _ = rounds(
        InputRequiredResult(input_requests=question(a="1", b="2")), text_result("done")
    )
    both = asyncio.Barrier(2)

    async def elicit(_question):
        await both.wait()
        return Accepted({})

    async with Client(small, elicit=elicit) as client:
        assert "done" == (await client.call_tool("ask")).text


async def test_one_failing_answer_stops_the_others():
    """Ours: the call fails with that one exception, and nothing stays behind."""
    small, _ = rounds(InputRequiredResult(input_requests=question(a="bad", b="slow")))
    stopped = []

    async def elicit(asked):
        if asked.message == "bad":
            raise KeyError("bad")
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(asked.message)

    async with Client(small, elicit=elicit) as client:
        with pytest.raises(KeyError, match="bad"):
            await client.call_tool("ask")

    assert ["slow"] == stopped


@pytest.mark.covers("rounds.bounded")
async def test_a_server_that_keeps_asking_is_given_up():
    """Decision D18: at most so many rounds."""
    small, calls = rounds(*[InputRequiredResult(request_state="s")] * 4)

    async with Client(small, max_rounds=3) as client:
        with pytest.raises(TooManyRounds, match="asked 3 times in a row"):
            await client.call_tool("ask")

    assert 4 == len(calls)


@pytest.mark.covers("rounds.questions.declared-only")
async def test_what_was_not_offered_may_not_be_asked():
    """Spec 2026-07-28 basic/patterns/mrtr: servers MUST NOT."""
    small, _ = rounds(InputRequiredResult(input_requests=question(a="?")))

    async with Client(small) as client:
        with pytest.raises(Misbehaved, match="'elicitation/create', which this client does not"):
            await client.call_tool("ask")


@pytest.mark.covers("rounds.result.one-of-both", "rounds.questions.three-kinds")
@pytest.mark.parametrize(
    ("members", "complaint"),
    [
        ({}, "neither asks nor gives a state"),
        ({"inputRequests": {"q": {"method": "elicitation/create", "params": {}}}}, "malformed"),
        ({"inputRequests": {"q": {"method": "tools/call"}}}, "does not offer"),
        ({"inputRequests": 7}, "malformed"),
    ],
)
async def test_senseless_questions_are_the_servers_fault(members, complaint):
    """Spec 2026-07-28 basic/patterns/mrtr: at least one of the two; only the three methods."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, elicit=lambda _: Declined(), revision=MODERN_NAME)
    opening = asyncio.create_task(client.open())
    await puppet.discovered()
    await opening
    call = asyncio.create_task(client.call_tool("ask"))
    await puppet.answers({"resultType": "input_required", **members})

    with pytest.raises(Misbehaved, match=complaint):
        await call
    await client.close()


@pytest.mark.covers("rounds.requests.three-methods")
async def test_a_list_may_not_ask():
    """Spec 2026-07-28 basic/patterns/mrtr#supported-requests: MUST NOT on any other request."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=MODERN_NAME)
    opening = asyncio.create_task(client.open())
    await puppet.discovered()
    await opening
    call = asyncio.create_task(client.list_tools())
    await puppet.answers({"resultType": "input_required", "requestState": "s", "tools": []})

    with pytest.raises(Misbehaved, match="of the type 'input_required'"):
        await call
    await client.close()


def test_a_legacy_call_does_not_expire_while_the_user_thinks():
    """Ours: the server waits for us, so its silence is ours."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(a_user_who_thinks_for_ten_minutes())


async def a_user_who_thinks_for_ten_minutes():
    puppet, asked, answered = PuppetChannel(), asyncio.Event(), asyncio.Event()

    async def elicit(_question):
        asked.set()
        await answered.wait()
        return Declined()

    client = Client(puppet.channel, revision=LEGACY_NAME, elicit=elicit, timeout=60)
    opening = asyncio.create_task(client.open())
    await puppet.greeted()
    await opening
    call = asyncio.create_task(client.call_tool("ask"))
    request = await puppet.heard()
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    await puppet.says(id="q", method="elicitation/create", params=form)
    await asked.wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(call), 600)
    answered.set()
    assert {"action": "decline"} == (await puppet.heard())["result"]
    await puppet.says(id=request["id"], result={"content": []})

    assert [] == (await call).content
    await client.close()


@pytest.mark.covers("rounds.no-requests.client")
async def test_a_modern_server_that_sends_a_request_gets_no_response():
    """Spec 2026-07-28 basic/transports/stdio: the client MUST NOT write JSON-RPC responses."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, elicit=lambda _question: Declined())
    opening = asyncio.create_task(client.open())
    await puppet.discovered()
    await opening

    await puppet.says(id=1, method="ping")
    question = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
    await puppet.says(id=2, method="elicitation/create", params=question)
    call = asyncio.create_task(client.call_tool("add"))
    heard = await puppet.heard()
    await puppet.says(id=heard["id"], result={"content": [], "resultType": "complete"})
    await call
    await client.close()

    assert "tools/call" == heard["method"]
    assert None is await puppet.heard()


@pytest.mark.covers("cancellation.received.handler-stopped")
async def test_a_question_that_is_withdrawn_stops_its_handler_and_is_not_answered():
    """Spec 2025-11-25 basic/utilities/cancellation: stop, and send no response."""
    puppet, asked, stopped = PuppetChannel(), asyncio.Event(), asyncio.Event()

    async def elicit(_question):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    client = Client(puppet.channel, revision=LEGACY_NAME, elicit=elicit)
    opening = asyncio.create_task(client.open())
    await puppet.greeted()
    await opening
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    await puppet.says(id="q", method="elicitation/create", params=form)
    await asked.wait()
    await puppet.says(method="notifications/cancelled", params={"requestId": "q"})
    await stopped.wait()
    pinging = asyncio.create_task(client.ping())

    assert ["ping"] == [asked["method"] for asked in await puppet.answers({})]
    await pinging
    await client.close()
