"""Tasks on a server: the same tools in either shape, and what may be done with them."""

import asyncio
import re
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from msgspec import Struct, structs

from isthmus import Context, Refuse, Server, ToolError
from isthmus.errors import Refused, StoreUnavailable, UsageError
from isthmus.runtime.channel import Origin
from isthmus.server.guard.limits import Limits
from isthmus.store.kv import MemoryKV
from isthmus.store.meter import Rate
from isthmus.testing import VirtualLoop
from isthmus.wire import RELATED_TASK, TASKS, InputRequest, InputRequiredResult
from isthmus.wire.jsonrpc import ErrorBody, encode
from support.event_loop import run_turns
from support.server.both_eras import ALL_CAPABILITIES, LEGACY, MODERN, accept_form, tool_text
from support.server.both_eras import EraClient as Plain

EXTENDED = structs.replace(ALL_CAPABILITIES, extensions={TASKS: {}})
EITHER = pytest.mark.parametrize("revision", [LEGACY, MODERN])
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


class Name(Struct):
    name: str


def Client(server, revision=MODERN, answer=None, **more):  # noqa: N802 - stands for the class
    """A client that has the extension, where there are extensions."""
    return Plain(server, revision, answer, able=EXTENDED, **more)


def works(**options):
    """A server whose tools run as tasks, and what its tools did."""
    server = Server("works", **options)
    server.did = []

    @server.tool
    def plain() -> str:
        """Answer at once."""
        return "at once"

    @server.tool(task="optional")
    async def quick(ctx: Context) -> str:
        """Tell and finish."""
        await ctx.progress(1, 2, "half of it")
        ctx.log.error("told")
        return "finished"

    @server.tool(task="required")
    async def forever() -> str:
        """Work until stopped."""
        try:
            await asyncio.Event().wait()
        finally:
            server.did.append("stopped")

    @server.tool(task="optional")
    async def two(ctx: Context) -> str:
        """Ask two things at once, and one more after that."""
        first, second = await asyncio.gather(
            ctx.elicit("First?", Name, key="first"), ctx.elicit("Second?", Name)
        )
        third = await ctx.elicit("Third?", Name, key="first")
        return f"{first.value.name} {second.value.name} {third.value.name}"

    @server.tool(task="optional")
    async def fails(how: str) -> str:
        """Fail in one way or another."""
        raise {
            "tool": ToolError("it did not work"),
            "store": StoreUnavailable("the database of 10.0.0.7 is gone"),
            "refuse": Refuse(-32000, "not now", {"why": "closed"}),
            "break": ValueError("a secret"),
        }[how]

    @server.tool(task="required", task_starts="in_body")
    async def later(ctx: Context) -> str:
        """Ask, become a task, ask again."""
        before = await ctx.elicit("Before?", Name, key="before")
        server.did.append(f"asked {before.value.name}")
        task = await ctx.start_task("on its way")
        after = await ctx.elicit("After?", Name, key="after")
        return f"{task} {before.value.name} {after.value.name}"

    return server


def run(work):
    """Run a coroutine on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def start(client, name, /, task=None, **arguments):
    """Start a task; its id."""
    params = {"name": name, "arguments": arguments}
    if client.caller.revision.name == LEGACY:
        answer = await client.once("tools/call", {**params, "task": task or {}})
        id = answer["task"]["taskId"]
    else:
        id = (await client.once("tools/call", params))["taskId"]
    await run_turns(30)
    return id


async def ask(client, method, id, **more):
    return await client.once(method, {"taskId": id, **more})


async def status(client, id):
    return (await ask(client, "tasks/get", id))["status"]


def check_refused(answer, code):
    assert isinstance(answer, ErrorBody), answer
    assert code == answer.code
    return answer


# What is declared, and what may be a task


@pytest.mark.covers("tasks.core.capability.declared", "tasks.extension.declared")
@EITHER
async def test_what_is_there_is_declared_and_nothing_else(revision):
    """Spec: a server with tools that are tasks declares so, in the way of the revision."""
    opening = {
        LEGACY: (
            "initialize",
            {
                "protocolVersion": LEGACY,
                "capabilities": {},
                "clientInfo": {"name": "", "version": ""},
            },
        ),
        MODERN: ("server/discover", {}),
    }[revision]
    without = Server("without")
    without.add_tool(lambda: "", name="plain")

    offered = (await Client(works(), revision).once(*opening))["capabilities"]
    not_offered = (await Client(without, revision).once(*opening))["capabilities"]

    core = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    expected = {LEGACY: {"tasks": core}, MODERN: {"extensions": {TASKS: {}}}}[revision]
    assert expected == {k: v for k, v in offered.items() if k not in not_offered}
    assert {"tools", "logging"} == set(not_offered)


@pytest.mark.covers("tasks.core.metadata.ignored")
async def test_a_server_without_tasks_ignores_that_a_call_is_to_be_one():
    """Spec: without the capability the task parameter is as if it were not there."""
    server = Server("without")
    server.add_tool(lambda: "here", name="plain")

    answer = await Client(server, LEGACY).once("tools/call", {"name": "plain", "task": {}})

    assert "here" == tool_text(answer)


@pytest.mark.covers("tasks.core.forbidden.refused", "tasks.core.required.refused")
async def test_tools_run_only_in_the_ways_they_allow():
    """Spec: -32601 for a task that is forbidden, and for a call where a task is required."""
    client = Client(works(), LEGACY)

    check_refused(await client.once("tools/call", {"name": "plain", "task": {}}), -32601)
    check_refused(await client.once("tools/call", {"name": "forever"}), -32601)
    assert "finished" == tool_text(await client.once("tools/call", {"name": "quick"}))


@pytest.mark.covers("tasks.extension.undeclared.plain", "tasks.extension.undeclared.refused")
async def test_nothing_is_a_task_for_a_request_without_the_extension():
    """Spec: it is served plainly or refused with -32021, whatever the client declared before."""
    server = works()
    id = await start(Client(server), "quick")
    without = Plain(server)

    assert "finished" == tool_text(await without.once("tools/call", {"name": "quick"}))
    missing = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    for method, params in (
        ("tools/call", {"name": "forever"}),
        ("tasks/get", {"taskId": id}),
        ("tasks/update", {"taskId": id, "inputResponses": {}}),
        ("tasks/cancel", {"taskId": id}),
        ("subscriptions/listen", {"notifications": {"taskIds": [id]}}),
    ):
        assert missing == check_refused(await without.once(method, params), -32021).data


async def test_a_tool_that_must_be_a_task_is_refused_where_there_are_none():
    """Ours: before 2025-11-25 nothing can be a task; what need not be one runs as a call."""
    client = Plain(works(), "2025-06-18")

    check_refused(await client.once("tools/call", {"name": "forever"}), -32601)
    check_refused(await client.once("tasks/get", {"taskId": "x"}), -32601)
    assert "finished" == tool_text(await client.once("tools/call", {"name": "quick"}))


@pytest.mark.covers("tasks.server.zero-cost")
def test_a_server_without_tasks_loads_nothing_of_them():
    """Ours: who has no use for tasks does not pay for them."""
    code = (
        "import sys; from isthmus.server import Server; s = Server('s');"
        "s.add_tool(lambda: '', name='t'); s.router;"
        "print([m for m in sys.modules if 'server' in m and 'tasks' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "[]" == done.stdout.strip()


# How a task stands


@pytest.mark.covers(
    "tasks.core.created.answered",
    "tasks.extension.created.flat",
    "tasks.extension.created.durable",
    "tasks.times.stated",
)
@EITHER
async def test_a_task_is_answered_with_at_once_and_is_there_then(revision):
    """Spec: the answer is the task, working, and tasks/get finds it."""
    client = Client(works(), revision)
    params = {"name": "forever", **({"task": {}} if revision == LEGACY else {})}
    answer = await client.once("tools/call", params)
    task = answer["task"] if revision == LEGACY else answer

    assert "working" == task["status"]
    assert ISO.fullmatch(task["createdAt"])
    assert ISO.fullmatch(task["lastUpdatedAt"])
    assert "working" == await status(client, task["taskId"])
    if revision == MODERN:
        assert "task" == answer["resultType"]
        assert not {"task", "ttl", "pollInterval", "requestState"} & set(answer)
        assert (3_600_000, 1_000) == (answer["ttlMs"], answer["pollIntervalMs"])
    else:
        assert {"task"} == set(answer)
    await client.server.close()


@pytest.mark.covers("tasks.ids.unguessable")
async def test_ids_are_long_and_never_the_same():
    """Spec: unique, and with enough entropy that nobody guesses one."""
    client = Client(works())
    ids = {await start(client, "quick") for _ in range(20)}

    assert 20 == len(ids)
    assert all(len(id) >= 32 for id in ids)


@pytest.mark.covers("tasks.core.result.waits", "tasks.core.related.result")
async def test_the_result_is_waited_for_and_names_its_task():
    """Spec: tasks/result is not answered before the task is over."""
    server = works()
    go = asyncio.Event()

    @server.tool(task="required")
    async def slow() -> str:
        """Wait for the word."""
        await go.wait()
        return "went"

    client = Client(server, LEGACY)
    id = await start(client, "slow")
    waiting = asyncio.create_task(ask(client, "tasks/result", id))
    await run_turns(30)
    before = waiting.done()
    go.set()
    answer = await waiting

    assert not before
    assert "went" == tool_text(answer)
    assert {RELATED_TASK: {"taskId": id}} == answer["_meta"]


@pytest.mark.covers("tasks.core.failed.is-error", "tasks.core.result.exact")
async def test_the_core_calls_a_tool_that_failed_a_failed_task():
    """Spec: isError makes it failed, and tasks/result gives that very result or error."""
    client = Client(works(), LEGACY)
    told = await start(client, "fails", how="tool")
    refusal = await start(client, "fails", how="refuse")

    state = await ask(client, "tasks/get", told)
    result = await ask(client, "tasks/result", told)
    error = check_refused(await ask(client, "tasks/result", refusal), -32000)

    assert ("failed", "it did not work") == (state["status"], state["statusMessage"])
    assert (True, "it did not work") == (result["isError"], tool_text(result))
    assert "failed" == await status(client, refusal)
    assert ("not now", {"why": "closed"}) == (error.message, error.data)


@pytest.mark.covers("tasks.extension.failed.errors", "tasks.extension.get.complete")
async def test_the_extension_keeps_failed_for_errors_of_the_protocol():
    """Spec: isError completes a task; an error fails it; either is inlined."""
    client = Client(works())
    told = await ask(client, "tasks/get", await start(client, "fails", how="tool"))
    refusal = await ask(client, "tasks/get", await start(client, "fails", how="refuse"))
    broken = await ask(client, "tasks/get", await start(client, "fails", how="break"))
    outage = await ask(client, "tasks/get", await start(client, "fails", how="store"))

    assert ("failed", -31503) == (outage["status"], outage["error"]["code"])
    assert "10.0.0.7" not in str(outage)
    assert ("completed", True) == (told["status"], told["result"]["isError"])
    assert "failed" == refusal["status"]
    error = {"code": -32000, "message": "not now", "data": {"why": "closed"}}
    assert error == refusal["error"]
    assert "result" not in refusal
    assert ("completed", True) == (broken["status"], broken["result"]["isError"])
    assert "secret" not in str(broken)
    assert {"complete"} == {state["resultType"] for state in (told, refusal, broken)}


@pytest.mark.covers("tasks.extension.get.complete", "tasks.extension.update.keys")
async def test_questions_wait_in_the_task_and_may_be_answered_one_by_one():
    """Spec: all that wait are shown; a partial update leaves the others; keys are never reused."""
    client = Client(works())
    id = await start(client, "two")
    seen = []

    async def waiting():
        state = await ask(client, "tasks/get", id)
        seen.extend(key for key in state["inputRequests"] if key not in seen)
        return list(state["inputRequests"])

    first = await waiting()
    ignored = {"first": accept_form(name="a"), "nobody": accept_form(name="x")}
    done = await ask(client, "tasks/update", id, inputResponses=ignored)
    second = await waiting()
    await ask(client, "tasks/update", id, inputResponses={"first": accept_form(name="again")})
    await ask(client, "tasks/update", id, inputResponses={second[0]: accept_form(name="b")})
    await run_turns(30)
    third = await waiting()
    await ask(client, "tasks/update", id, inputResponses={third[0]: accept_form(name="c")})
    await run_turns(30)
    state = await ask(client, "tasks/get", id)

    assert ["first", "question-1"] == first
    assert {"resultType"} == set(done) - {"_meta"}
    assert (["question-1"], ["first-2"]) == (second, third)
    assert "a b c" == tool_text(state["result"])


@pytest.mark.covers("tasks.extension.update.shape")
async def test_an_answer_of_the_wrong_shape_is_refused_and_the_question_stays():
    """Ours: nothing is applied of an update that has something wrong in it."""
    client = Client(works())
    id = await start(client, "two")
    wrong = {"first": accept_form(name="a"), "question-1": {"action": "perhaps"}}

    check_refused(await ask(client, "tasks/update", id, inputResponses=wrong), -32602)
    check_refused(await ask(client, "tasks/update", id), -32602)
    state = await ask(client, "tasks/get", id)

    assert ["first", "question-1"] == list(state["inputRequests"])
    await client.server.close()


@pytest.mark.covers("tasks.core.related.questions")
async def test_the_core_puts_questions_to_whoever_waits_for_the_result():
    """Spec: they arrive during tasks/result and say which task they belong to."""
    asked = []

    def answer(method, params):
        asked.append((method, params["_meta"]))
        return accept_form(name=f"n{len(asked)}")

    client = Client(works(), LEGACY, answer)
    id = await start(client, "two")
    before = await status(client, id)
    result = await ask(client, "tasks/result", id)

    assert "input_required" == before
    assert {"n1", "n2", "n3"} == set(tool_text(result).split())
    assert [("elicitation/create", {RELATED_TASK: {"taskId": id}})] * 3 == asked


async def test_a_question_waits_for_the_next_who_asks_for_the_result():
    """Ours: who stops waiting for a result takes no question with them."""
    answers = asyncio.Event()

    class Slow(type(Client(works()).link)):
        async def call(self, method, params, result, **more):
            await answers.wait()
            return await super().call(method, params, result, **more)

    client = Client(works(), LEGACY, lambda *_: accept_form(name="n"))
    client.link.__class__ = Slow
    id = await start(client, "two")
    gone = asyncio.create_task(ask(client, "tasks/result", id))
    await run_turns(30)
    gone.cancel()
    await asyncio.wait((gone,))
    answers.set()

    assert "n n n" == tool_text(await ask(client, "tasks/result", id))


async def test_a_client_that_refuses_to_answer_is_heard_by_the_body():
    """Ours: an error to a question is raised where the question was asked."""
    server = works()

    @server.tool(task="optional")
    async def careful(ctx: Context) -> str:
        """Ask, and go on without an answer."""
        try:
            await ctx.elicit("Well?", Name)
        except Refused as no:
            return f"told {no.code}"

    def no(*_):
        raise Refused(-1, "no")

    client = Client(server, LEGACY, no)

    assert "told -1" == tool_text(await ask(client, "tasks/result", await start(client, "careful")))


@EITHER
async def test_questions_that_are_returned_are_asked_in_the_task(revision):
    """Ours: the raw form works in a task as it does in a call."""
    server = works()

    @server.tool(task="optional")
    async def raw(ctx: Context) -> Any:
        """Return a question."""
        if not ctx.input_responses:
            params = {"message": "Who?", "mode": "form", "requestedSchema": {"type": "object"}}
            asked = InputRequest(method="elicitation/create", params=msgspec.Raw(encode(params)))
            return InputRequiredResult(input_requests={"who": asked})
        return ctx.input_responses["who"]["action"]

    client = Client(server, revision, lambda *_: {"action": "decline"})
    id = await start(client, "raw")
    if revision == MODERN:
        await ask(client, "tasks/update", id, inputResponses={"who": {"action": "decline"}})
        await run_turns(30)
        result = (await ask(client, "tasks/get", id))["result"]
    else:
        result = await ask(client, "tasks/result", id)

    assert "decline" == tool_text(result)


# What is told on the way


@pytest.mark.covers("tasks.core.related.notifications")
async def test_the_core_tells_of_progress_messages_and_status():
    """Spec: what belongs to a task names it; its status notification names it by itself."""
    client = Client(works(), LEGACY)
    params = {"name": "quick", "arguments": {}, "task": {}}
    id = (await client.once("tools/call", params, token="p"))["task"]["taskId"]
    await run_turns(30)
    (progress,) = client.link.said("notifications/progress")
    (message,) = client.link.said("notifications/message")
    states = client.link.said("notifications/tasks/status")

    assert ("p", "half of it") == (progress["progressToken"], progress["message"])
    assert {RELATED_TASK: {"taskId": id}} == progress["_meta"] == message["_meta"]
    assert [(id, "completed")] == [(state["taskId"], state["status"]) for state in states]
    assert "_meta" not in states[0]


@pytest.mark.covers("progress.rate.newest-wins")
async def test_a_task_is_held_to_the_rates_of_progress_and_messages():
    """Ours: as any call is, the newest report last, and errors dropped after all else."""
    limits = Limits(progress=Rate(2, 3600), log_messages=Rate(2, 3600))
    server = Server("busy", limits=limits)

    @server.tool(task="required")
    async def work(ctx: Context) -> None:
        """Tell a lot."""
        for step in range(50):
            await ctx.progress(step)
            ctx.log.warning(str(step))
            await asyncio.sleep(0)

    client = Client(server, LEGACY)
    params = {"name": "work", "arguments": {}, "task": {}}
    await client.once("tools/call", params, token="p")
    await run_turns(200)
    told = [said["progress"] for said in client.link.said("notifications/progress")]
    said = [message["data"] for message in client.link.said("notifications/message")]

    assert [0, 1, 49] == told
    assert ["0", "1", "48 messages were dropped: there were too many"] == said


@pytest.mark.covers("tasks.core.progress.until-the-end")
async def test_no_progress_is_told_of_a_task_that_was_cancelled():
    """Spec: it MUST stop once the status is final, whatever the body still does."""
    server, did = Server("stubborn"), []

    @server.tool(task="required")
    async def stubborn(ctx: Context) -> str:
        """Go on for a while after it was stopped."""
        await ctx.progress(1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await ctx.progress(2)
        await ctx.progress(3)
        did.append("went on")
        return "never mind"

    client = Client(server, LEGACY)
    params = {"name": "stubborn", "arguments": {}, "task": {}}
    id = (await client.once("tools/call", params, token="p"))["task"]["taskId"]
    await run_turns(30)
    await ask(client, "tasks/cancel", id)
    await run_turns(30)

    assert ["went on"] == did
    assert [1] == [said["progress"] for said in client.link.said("notifications/progress")]
    assert "cancelled" == await status(client, id)


@pytest.mark.covers("tasks.extension.listen.silent")
async def test_the_extension_tells_nothing_but_keeps_the_words():
    """Spec: neither progress nor messages on tasks; ours: what was said is the status in words."""
    server = works()
    go = asyncio.Event()

    @server.tool(task="optional")
    async def chatty(ctx: Context) -> str:
        """Say how far it is."""
        await ctx.progress(1, 2, "half of it")
        ctx.log.error("told")
        await go.wait()
        return ""

    client = Client(server)
    params = {"name": "chatty"}
    id = (await client.once("tools/call", params, token="p"))["taskId"]
    await run_turns(30)
    state = await ask(client, "tasks/get", id)
    go.set()
    await run_turns(30)

    assert "half of it" == state["statusMessage"]
    assert [] == client.link.notes


@pytest.mark.covers("tasks.extension.listen.tasks")
async def test_a_stream_tells_what_tasks_get_would_say():
    """Spec: only of the tasks granted, with the stream's id, and nothing after the end."""
    server = works()
    owner, other = Client(server), Client(server)
    id = await start(owner, "two")
    wanted = {"notifications": {"taskIds": [id, "nobody"]}}
    stream = asyncio.create_task(other.once("subscriptions/listen", wanted))
    await run_turns(30)
    question = await ask(owner, "tasks/get", id)
    await ask(owner, "tasks/cancel", id)
    await run_turns(30)
    final = await ask(owner, "tasks/get", id)
    (acknowledged,) = other.link.said("notifications/subscriptions/acknowledged")
    told = other.link.said("notifications/tasks")

    assert {"taskIds": [id]} == acknowledged["notifications"]
    ours = {"io.modelcontextprotocol/subscriptionId": 1}
    assert [ours] * len(told) == [params.pop("_meta") for params in told]
    expected = [
        {key: value for key, value in state.items() if key not in {"resultType", "_meta"}}
        for state in (question, final)
    ]
    assert expected == [told[0], told[-1]]
    assert [] == owner.link.notes
    stream.cancel()
    await asyncio.wait((stream,))


# The end


@pytest.mark.covers("tasks.core.cancel.first", "tasks.extension.cancel.acknowledged")
@EITHER
async def test_a_task_is_stopped_before_its_cancellation_is_answered(revision):
    """Spec: it is cancelled by then, and stays so; ours: its work has really stopped."""
    server = works()
    client = Client(server, revision)
    id = await start(client, "forever")
    answer = await ask(client, "tasks/cancel", id)

    assert ["stopped"] == server.did
    assert "cancelled" == await status(client, id)
    if revision == LEGACY:
        assert (id, "cancelled") == (answer["taskId"], answer["status"])
        check_refused(await ask(client, "tasks/result", id), -32603)
    else:
        assert {"resultType"} == set(answer) - {"_meta"}
        assert {"resultType"} == set(await ask(client, "tasks/cancel", id)) - {"_meta"}


@pytest.mark.covers("tasks.core.cancel.terminal", "tasks.core.status.final")
async def test_what_is_over_stays_as_it_is():
    """Spec: a cancellation after the end is refused, and changes nothing."""
    client = Client(works(), LEGACY)
    id = await start(client, "quick")

    error = check_refused(await ask(client, "tasks/cancel", id), -32602)

    assert "already in terminal status 'completed'" in error.message
    assert "completed" == await status(client, id)


@pytest.mark.covers("tasks.core.status.final")
@EITHER
async def test_work_that_will_not_stop_changes_nothing_any_more(revision):
    """Spec: cancelled it stays, even if the work goes on to its end."""
    server = works()
    stubborn = asyncio.Event()

    @server.tool(task="required")
    async def deaf() -> str:
        """Finish whatever happens."""
        while not stubborn.is_set():
            try:
                await stubborn.wait()
            except asyncio.CancelledError:
                stubborn.set()
        return "finished"

    client = Client(server, revision)
    id = await start(client, "deaf")
    await ask(client, "tasks/cancel", id)
    await run_turns(30)

    assert "cancelled" == await status(client, id)


@pytest.mark.covers("tasks.server.closes")
@EITHER
async def test_a_server_that_closes_cancels_its_tasks(revision):
    """Ours: nothing goes on after the end."""
    server = works()
    client = Client(server, revision)
    id = await start(client, "forever")
    await server.close()

    assert ["stopped"] == server.did
    assert "cancelled" == await status(client, id)


# Time and number


@pytest.mark.covers("tasks.ttl.forgotten", "tasks.ttl.actual")
@EITHER
def test_a_task_is_forgotten_when_its_time_is_over(revision):
    """Spec: as long as it says, and no longer, whether it is over or not."""

    async def lives():
        server = works(limits=Limits(task_ttl=60.0))
        client = Client(server, revision)
        done, running = await start(client, "quick"), await start(client, "forever")
        await asyncio.sleep(59)
        there = [await status(client, done), await status(client, running)]
        await asyncio.sleep(2)
        check_refused(await ask(client, "tasks/get", done), -32602)
        check_refused(await ask(client, "tasks/get", running), -32602)
        return there, server.did

    assert (["completed", "working"], ["stopped"]) == run(lives())


@pytest.mark.covers("tasks.ttl.actual")
@pytest.mark.parametrize(
    ("wanted", "kept"),
    [({}, 60_000), ({"ttl": 5_000}, 5_000), ({"ttl": 10**9}, 90_000), ({"ttl": 0}, 1_000)],
)
async def test_how_long_a_task_is_kept_is_negotiated(wanted, kept):
    """Spec: the server may say otherwise, and says what it does; ours: there is a maximum."""
    client = Client(works(limits=Limits(task_ttl=60.0, max_task_ttl=90.0)), LEGACY)
    id = await start(client, "quick", wanted)

    assert kept == (await ask(client, "tasks/get", id))["ttl"]


@pytest.mark.covers("tasks.limits.count")
@pytest.mark.parametrize("limits", [Limits(tasks_each=2), Limits(tasks=2)])
async def test_there_are_only_so_many_tasks(limits):
    """Spec: requestors SHOULD be limited; ours: the refusal says why, and room is made by time."""
    client = Client(works(limits=limits), LEGACY)
    for _ in range(2):
        await start(client, "quick")
    error = check_refused(await client.once("tools/call", {"name": "quick", "task": {}}), -31429)

    assert "Too many tasks: 2 tasks" in error.message
    assert "finished" == tool_text(await client.once("tools/call", {"name": "quick"}))


@pytest.mark.covers("tasks.limits.count")
async def test_the_tasks_of_one_principal_leave_room_for_another():
    """Spec: limits hold for each requestor."""
    server = works(limits=Limits(tasks_each=1))

    assert await start(Client(server, principal="ann"), "quick")
    assert await start(Client(server, principal="bob"), "quick")


# Whose they are


@pytest.mark.covers("tasks.isolation.principal", "tasks.unknown.refused")
@EITHER
async def test_the_task_of_another_principal_is_as_one_that_is_not_there(revision):
    """Spec: bound to who created it; ours: nothing tells the two apart."""
    server = works()
    ann, bob = Client(server, revision, principal="ann"), Client(server, revision, principal="bob")
    nobody = Client(server, revision)
    id = await start(ann, "two")
    methods = {
        LEGACY: ["tasks/get", "tasks/result", "tasks/cancel"],
        MODERN: ["tasks/get", "tasks/cancel", "tasks/update"],
    }[revision]
    for stranger in (bob, nobody):
        for method in methods:
            answers = [
                await ask(stranger, method, one, inputResponses={}) for one in (id, "made up")
            ]
            assert answers[0] == answers[1]
            check_refused(answers[0], -32602)

    assert "input_required" == await status(ann, id)
    await server.close()


@pytest.mark.covers("tasks.isolation.principal", "tasks.core.list.complete")
async def test_a_list_has_all_tasks_of_one_principal_and_no_others():
    """Spec: what can be got is listed, and nothing of anybody else's."""
    server = works()
    ann, bob = Client(server, LEGACY, principal="ann"), Client(server, LEGACY, principal="bob")
    ids = [await start(ann, "quick"), await start(ann, "two")]
    await start(bob, "quick")

    listed = (await ann.once("tasks/list", {}))["tasks"]

    assert set(ids) == {task["taskId"] for task in listed}
    assert {"completed", "input_required"} == {task["status"] for task in listed}
    await server.close()


@pytest.mark.covers("tasks.core.list.pages", "tasks.core.list.cursor")
async def test_a_list_comes_in_pages():
    """Spec: a cursor where there are more, none on the last page, and no other cursor works."""
    server = works(page_size=2)
    ann, bob = Client(server, LEGACY, principal="ann"), Client(server, LEGACY, principal="bob")
    ids = [await start(ann, "quick") for _ in range(5)]
    pages, cursor = [], {}
    while True:
        page = await ann.once("tasks/list", cursor)
        pages.append([task["taskId"] for task in page["tasks"]])
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}

    assert [2, 2, 1] == [len(page) for page in pages]
    assert sorted(ids) == sorted([id for page in pages for id in page])
    check_refused(await ann.once("tasks/list", {"cursor": "made up"}), -32602)
    check_refused(await bob.once("tasks/list", cursor), -32602)


@pytest.mark.covers("tasks.core.list.strangers")
async def test_nobody_is_shown_the_list_of_strangers():
    """Spec: where requestors cannot be told apart, tasks.list is not declared; ours: nor served."""
    server = works()
    client = Client(server, LEGACY)
    id = await start(client, "quick")
    web = Origin("http")
    opening = {
        "protocolVersion": LEGACY,
        "capabilities": {},
        "clientInfo": {"name": "", "version": ""},
    }
    opened = await client.once("initialize", opening, origin=web)

    assert {"cancel", "requests"} == set(opened["capabilities"]["tasks"])
    check_refused(await client.once("tasks/list", {}, origin=web), -32601)
    assert "completed" == (await client.once("tasks/get", {"taskId": id}, origin=web))["status"]


@pytest.mark.covers("tasks.core.parameter.decides")
async def test_a_request_is_about_the_task_its_parameter_names():
    """Spec: what _meta says of another task is ignored."""
    client = Client(works(), LEGACY)
    id, other = await start(client, "quick"), await start(client, "fails", how="tool")
    meta = {RELATED_TASK: {"taskId": other}}

    state = await ask(client, "tasks/get", id, _meta=meta)

    assert (id, "completed") == (state["taskId"], state["status"])


@pytest.mark.covers("tasks.extension.removed", "tasks.unknown.refused")
async def test_each_shape_has_its_own_methods():
    """Spec: the extension has no result and no list, the core no update."""
    server = works()
    for revision, methods in (
        (MODERN, ("tasks/result", "tasks/list")),
        (LEGACY, ("tasks/update",)),
    ):
        client = Client(server, revision)
        for method in methods:
            check_refused(await ask(client, method, "x", inputResponses={}), -32601)


# Tasks that begin in the body


@pytest.mark.covers("tasks.extension.created.rounds")
async def test_questions_before_the_task_are_part_of_the_call():
    """Spec: they SHOULD be settled before the task is answered with; those after wait in it."""
    server = works()
    client = Client(server)
    first = await client.once("tools/call", {"name": "later"})
    state = first["requestState"]
    params = {
        "name": "later",
        "requestState": state,
        "inputResponses": {"before": accept_form(name="a")},
    }
    second = await client.once("tools/call", params)
    await run_turns(30)
    waiting = await ask(client, "tasks/get", second["taskId"])
    await ask(
        client, "tasks/update", second["taskId"], inputResponses={"after": accept_form(name="b")}
    )
    await run_turns(30)
    final = await ask(client, "tasks/get", second["taskId"])

    assert ("input_required", ["before"]) == (first["resultType"], list(first["inputRequests"]))
    assert "taskId" not in first
    assert "task" == second["resultType"]
    assert not {"requestState", "inputRequests"} & set(second)
    assert ("on its way", ["after"]) == (waiting["statusMessage"], list(waiting["inputRequests"]))
    assert "True a b" == tool_text(final["result"])
    assert ["asked a"] == server.did


async def test_a_body_that_begins_no_task_is_a_call():
    """Ours: the server decides for each call, and most may be short."""
    server = works()

    @server.tool(task="optional", task_starts="in_body")
    async def maybe(long: bool, ctx: Context) -> str:
        """Become a task where it takes long."""
        return f"{long and await ctx.start_task()}"

    client = Client(server)
    short = await client.once("tools/call", {"name": "maybe", "arguments": {"long": False}})
    long = await client.once("tools/call", {"name": "maybe", "arguments": {"long": True}})
    without = await Plain(server).once("tools/call", {"name": "maybe", "arguments": {"long": True}})
    legacy = await start(Client(server, LEGACY), "maybe", long=True)

    assert ("complete", "False") == (short["resultType"], tool_text(short))
    assert "task" == long["resultType"]
    assert ("complete", "False") == (without["resultType"], tool_text(without))
    assert "True" == tool_text(await ask(Client(server, LEGACY), "tasks/result", legacy))


async def test_a_call_that_is_given_up_before_its_task_takes_its_work_along():
    """Ours: what was never a task ends with its request."""
    server = works()

    @server.tool(task="required", task_starts="in_body")
    async def hesitates(ctx: Context) -> str:
        """Never get round to it."""
        try:
            await asyncio.Event().wait()
        finally:
            server.did.append("stopped")

    call = asyncio.create_task(Client(server).once("tools/call", {"name": "hesitates"}))
    await run_turns(30)
    call.cancel()
    await asyncio.wait((call,))

    assert ["stopped"] == server.did


async def test_a_body_cannot_return_questions_once_it_is_a_task():
    """Ours: nobody could send the call again; its author is told."""
    server = works()

    @server.tool(task="required", task_starts="in_body")
    async def confused(ctx: Context) -> Any:
        """Begin, and then ask as a call does."""
        await ctx.start_task()
        return InputRequiredResult(request_state="s")

    client = Client(server)
    state = await ask(client, "tasks/get", await start(client, "confused"))

    assert "Tool 'confused' failed: UsageError" == tool_text(state["result"])


async def test_a_task_that_finds_no_room_is_refused_in_the_call():
    """Ours: a limit is told to whoever called, not kept in a task that is not there."""
    client = Client(works(limits=Limits(tasks_each=1)))
    await start(client, "quick")
    first = await client.once("tools/call", {"name": "later"})
    params = {"name": "later", "requestState": first["requestState"]}
    answer = await client.once(
        "tools/call", {**params, "inputResponses": {"before": accept_form(name="a")}}
    )

    check_refused(answer, -31429)


async def test_siblings_that_ask_meanwhile_end_the_round_first():
    """Ours: no question of a call is left behind in it when it becomes a task."""
    server = works()

    @server.tool(task="required", task_starts="in_body")
    async def both(ctx: Context) -> str:
        """Ask and begin at the same time."""
        answer, _ = await asyncio.gather(ctx.elicit("Who?", Name, key="who"), ctx.start_task())
        return answer.value.name

    client = Client(server)
    first = await client.once("tools/call", {"name": "both"})
    answers = {"who": accept_form(name="a")}
    params = {"name": "both", "requestState": first["requestState"], "inputResponses": answers}
    second = await client.once("tools/call", params)
    await run_turns(30)
    state = await ask(client, "tasks/get", second["taskId"])

    assert "input_required" == first["resultType"]
    assert ("task", "a") == (second["resultType"], tool_text(state["result"]))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"task": "sometimes"}, "task is 'optional' or 'required'"),
        ({"task": "optional", "task_starts": "now"}, "task_starts is 'at_call' or 'in_body'"),
        ({"task_starts": "in_body"}, "needs task="),
        ({"task": "optional", "task_starts": "in_body"}, "needs a Context"),
    ],
)
def test_what_cannot_be_a_task_is_said_at_once(options, why):
    """Ours: a mistake in a declaration is an error where it stands."""
    with pytest.raises(UsageError, match=why):
        Server("s").add_tool(lambda: "", name="t", **options)


# What is said at once, and where tasks are kept


@pytest.mark.covers("tasks.core.immediate")
@EITHER
async def test_the_model_may_be_told_something_at_once(revision):
    """Spec: in the _meta of the core's answer; the extension has no such thing."""
    server = Server("s")
    server.add_tool(lambda: "done", name="t", task="required", immediate_response="Wait.")
    params = {"name": "t", **({"task": {}} if revision == LEGACY else {})}
    answer = await Client(server, revision).once("tools/call", params)

    meta = answer["_meta"] if revision == LEGACY else answer.get("_meta", {})
    expected = "Wait." if revision == LEGACY else None
    assert expected == meta.get("io.modelcontextprotocol/model-immediate-response")


def test_only_a_task_is_answered_at_once():
    """Ours: the error comes where the tool is made."""
    with pytest.raises(UsageError, match="tool 't': immediate_response needs task="):
        Server("s").add_tool(lambda: "", name="t", immediate_response="Wait.")


@pytest.mark.covers("tasks.store.given")
@EITHER
async def test_tasks_are_kept_in_the_store_that_is_given(revision):
    """Ours: another process that has the store knows of them."""
    store = MemoryKV()
    first, second = Server("s", task_store=store), Server("s", task_store=store)
    for server in (first, second):
        server.add_tool(lambda: "done", name="t", task="required")
    params = {"name": "t", **({"task": {}} if revision == LEGACY else {})}
    answer = await Client(first, revision).once("tools/call", params)
    id = (answer["task"] if revision == LEGACY else answer)["taskId"]
    there = await Client(second, revision).once("tasks/get", {"taskId": id})
    while there["status"] == "working":
        await asyncio.sleep(0)
        there = await Client(second, revision).once("tasks/get", {"taskId": id})
    assert "completed" == there["status"]
    assert 1 == len(await store.scan("task/", "", 10))
