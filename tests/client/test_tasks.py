"""A client's tasks, against servers that are moved by hand."""

import asyncio
from itertools import pairwise

import pytest

from isthmus import Accepted, Client, Server
from isthmus.errors import (
    CallTimedOut,
    InvalidParams,
    Misbehaved,
    OutOfPhase,
    PeerError,
    TaskCancelled,
)
from isthmus.testing import VirtualLoop, connect
from isthmus.wire import TASKS
from support.client.small_server import LEGACY_NAME, MODERN_NAME, PuppetChannel

CORE = {"tasks": {"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}}
TIMES = {"createdAt": "2026-11-21T10:00:00Z", "lastUpdatedAt": "2026-11-21T10:00:00Z"}
DONE = {"content": [{"type": "text", "text": "done"}]}
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "?",
        "mode": "form",
        "requestedSchema": {"type": "object", "properties": {}},
    },
}


def core(status="working", **more):
    return {"taskId": "t1", "status": status, **TIMES, "ttl": 60_000, "pollInterval": 500, **more}


def flat(status="working", kind="complete", **more):
    named = {"taskId": "t1", "status": status, **TIMES, "ttlMs": 60_000, "pollIntervalMs": 500}
    return {"resultType": kind, **named, **more}


def list_by_support(**support):
    """Tools by what they say of tasks; None says nothing."""
    return {
        "tools": [
            {
                "name": name,
                "inputSchema": {"type": "object"},
                **({"execution": {"taskSupport": said}} if said else {}),
            }
            for name, said in support.items()
        ]
    }


async def open_client(puppet, revision, **options):
    client = Client(puppet.channel, revision=revision, **options)
    opening = asyncio.create_task(client.open())
    if revision == LEGACY_NAME:
        await puppet.greeted(**options.pop("offers", CORE))
    else:
        await puppet.discovered(extensions={TASKS: {}})
    await opening
    return client


def run(work):
    """Run a coroutine on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


async def legacy(offers=CORE, **options):
    """A client of 2025-11-25, and its server."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=LEGACY_NAME, **options)
    opening = asyncio.create_task(client.open())
    await puppet.greeted(**offers)
    await opening
    return client, puppet


async def modern(**options):
    """A client of 2026-07-28, and its server."""
    puppet = PuppetChannel()
    client = await open_client(puppet, MODERN_NAME, **options)
    return client, puppet


async def unheard(puppet):
    """The next request, whatever streams of changes are asked for before it."""
    while (asked := await puppet.heard())["method"] in {
        "subscriptions/listen",
        "notifications/cancelled",
    }:
        pass
    return asked


async def replies(puppet, *results):
    """Answer the next requests but those for streams; gives back what they were."""
    asked = []
    for result in results:
        asked.append(await unheard(puppet))
        await puppet.says(id=asked[-1]["id"], **result)
    return asked


# What is asked for


@pytest.mark.covers("tasks.core.client.capability")
async def test_a_server_without_the_capability_gets_no_tasks():
    """Spec: clients MUST NOT, whatever the tool says of itself."""
    client, puppet = await legacy(offers={})
    listing = asyncio.create_task(client.list_tools())
    await puppet.answers(list_by_support(paint="required"))
    await listing
    for call in (client.call_tool("paint"), client.start_tool("paint")):
        calling = asyncio.create_task(call)
        (asked,) = await puppet.answers(DONE)
        await calling

        assert "task" not in asked["params"]
    await client.close()


@pytest.mark.covers("tasks.core.client.forbidden")
@pytest.mark.parametrize("support", [None, "forbidden"])
async def test_a_tool_that_does_not_allow_it_is_no_task(support):
    """Spec: absent and forbidden are the same; ours: the handle has the result then."""
    client, puppet = await legacy()
    starting = asyncio.create_task(client.start_tool("paint"))
    _, asked = await puppet.answers(list_by_support(paint=support), DONE)
    task = await starting

    assert "task" not in asked["params"]
    assert (None, "done") == (task.id, (await task.result()).text)
    await client.close()


async def test_what_may_be_a_task_is_a_call_unless_it_is_started_as_one():
    """Ours: call_tool asks for a task only where there is no other way."""
    client, puppet = await legacy()
    starting = asyncio.create_task(client.start_tool("paint", ttl=1.5))
    _, asked = await puppet.answers(list_by_support(paint="optional"), {"task": core()})
    task = await starting
    calling = asyncio.create_task(client.call_tool("paint"))
    (plain,) = await puppet.answers(DONE)
    await calling

    assert ({"ttl": 1500}, "t1") == (asked["params"]["task"], task.id)
    assert "task" not in plain["params"]
    await client.close()


@pytest.mark.covers("tasks.core.client.required")
async def test_what_must_be_a_task_is_called_as_one():
    """Spec: required tools MUST be tasks; ours: call_tool looks before it calls."""
    client, puppet = await legacy()
    calling = asyncio.create_task(client.call_tool("paint"))
    _, asked, result = await puppet.answers(
        list_by_support(paint="required"), {"task": core()}, DONE
    )

    assert "done" == (await calling).text
    assert ({}, "tasks/result") == (asked["params"]["task"], result["method"])
    await client.close()


async def test_a_refused_call_is_made_again_as_a_task_where_that_is_why():
    """Ours: what was listed may have changed since."""
    client, puppet = await legacy()
    listing = asyncio.create_task(client.list_tools())
    await puppet.answers(list_by_support(paint=None))
    await listing
    calling = asyncio.create_task(client.call_tool("paint"))
    first = await puppet.heard()
    await puppet.says(id=first["id"], error={"code": -32601, "message": "a task only"})
    _, again, result = await puppet.answers(
        list_by_support(paint="required"), {"task": core()}, DONE
    )

    assert "done" == (await calling).text
    assert "task" not in first["params"]
    assert ({}, "tasks/result") == (again["params"]["task"], result["method"])
    await client.close()


async def test_a_server_may_answer_a_task_with_a_result():
    """Ours: who says that it runs tasks and then does not is served all the same."""
    client, puppet = await legacy()
    starting = asyncio.create_task(client.start_tool("paint"))
    await puppet.answers(list_by_support(paint="optional"), DONE)
    task = await starting

    assert (None, "done") == (task.id, (await task.result()).text)
    await client.close()


@pytest.mark.covers("tasks.extension.client.invalid")
async def test_a_task_in_any_other_answer_is_invalid():
    """Spec: clients MUST take it for an invalid response."""
    client, puppet = await modern()
    for call in (client.list_tools(), client.request("acme/x", {}, result=dict)):
        calling = asyncio.create_task(call)
        await puppet.answers(flat(kind="task"))
        if calling.get_coro().__name__ == "list_tools":
            with pytest.raises(Misbehaved):
                await calling
        else:
            await calling
    await client.close()


@pytest.mark.covers("tasks.extension.client.header")
async def test_the_task_is_named_for_whoever_routes_by_headers():
    """Spec: Mcp-Name is the taskId for tasks/get, tasks/update and tasks/cancel."""
    names = {}
    puppet = PuppetChannel()

    class Named:
        def __init__(self, channel):
            self._channel = channel

        async def send(self, out):
            names[out.method] = out.name
            await self._channel.send(out)

        def __getattr__(self, name):
            return getattr(self._channel, name)

    puppet.channel = Named(puppet.channel)
    client = await open_client(puppet, MODERN_NAME, elicit=lambda _: Accepted({}))
    calling = asyncio.create_task(client.call_tool("paint"))
    await replies(
        puppet,
        {"result": flat(kind="task")},
        {"result": flat("input_required", inputRequests={"q": QUESTION})},
        {"result": {"resultType": "complete"}},
        {"result": flat("completed", result=DONE)},
    )
    await calling
    cancelling = asyncio.create_task(client.task("t2").cancel())
    await replies(puppet, {"result": {"resultType": "complete"}})
    await cancelling

    found = {method: names[method] for method in names if method.startswith("tasks/")}
    assert {"tasks/get": "t1", "tasks/update": "t1", "tasks/cancel": "t2"} == found
    await client.close()


@pytest.mark.covers("tasks.core.metadata.ignored")
async def test_a_client_that_runs_no_tasks_declares_none_and_answers_at_once():
    """Spec: without the capability the task parameter is as if it were not there."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=LEGACY_NAME, elicit=lambda _: Accepted({}))
    opening = asyncio.create_task(client.open())
    result = {"protocolVersion": LEGACY_NAME, "capabilities": {}, "serverInfo": {}}
    result["serverInfo"] = {"name": "puppet", "version": "1"}
    (asked,) = await puppet.answers(result)
    await puppet.heard()
    await opening
    params = {**QUESTION["params"], "task": {"ttl": 1000}}
    await puppet.says(id="q", method="elicitation/create", params=params)
    answer = await puppet.heard()

    assert "tasks" not in asked["params"]["capabilities"]
    assert {"action": "accept", "content": {}} == answer["result"]
    await client.close()


# What becomes of it


@pytest.mark.covers("tasks.extension.client.once")
def test_each_question_is_answered_once_however_often_it_is_seen():
    """Spec: clients SHOULD track keys; ours: also while the user thinks."""

    async def talk():
        asked, thinks = [], asyncio.Event()

        async def elicit(question):
            asked.append(question.message)
            await thinks.wait()
            return Accepted({})

        client, puppet = await modern(elicit=elicit)
        calling = asyncio.create_task(client.call_tool("paint"))
        waiting = {"result": flat("input_required", inputRequests={"q": QUESTION})}
        await replies(puppet, {"result": flat(kind="task")}, waiting, waiting, waiting)
        thinks.set()
        done = {"result": flat("completed", result=DONE)}
        heard = await replies(puppet, {"result": {"resultType": "complete"}}, done)
        result = await calling
        await client.close()
        return asked, [one["method"] for one in heard], result.text

    assert (["?"], ["tasks/update", "tasks/get"], "done") == run(talk())


@pytest.mark.covers("tasks.client.polls")
def test_polls_keep_the_distance_the_server_asks_for():
    """Spec: clients SHOULD respect the interval."""

    async def talk():
        client, puppet = await modern()
        calling = asyncio.create_task(client.call_tool("paint"))
        await replies(puppet, {"result": flat(kind="task")})
        times = []
        for state in (flat(), flat(pollIntervalMs=5_000), flat(), flat("completed", result=DONE)):
            await replies(puppet, {"result": state})
            times.append(asyncio.get_running_loop().time())
        await calling
        await client.close()
        return [round(later - sooner, 3) for sooner, later in pairwise(times)]

    assert [0.5, 5.0, 0.5] == run(talk())


def test_a_notification_is_as_good_as_a_poll():
    """Spec: it is all that tasks/get would say; ours: while a stream is granted, polls are rare."""

    async def talk():
        client, puppet = await modern()
        calling = asyncio.create_task(client.call_tool("paint"))
        await puppet.answers(flat(kind="task"), flat())
        stream = await puppet.heard()
        meta = {"io.modelcontextprotocol/subscriptionId": stream["id"]}
        granted = {"notifications": {"taskIds": ["t1"]}, "_meta": meta}
        await puppet.says(method="notifications/subscriptions/acknowledged", params=granted)
        (poll,) = await puppet.answers(flat())
        before = asyncio.get_running_loop().time()
        state = {k: v for k, v in flat("completed", result=DONE).items() if k != "resultType"}
        await asyncio.sleep(5)
        await puppet.says(method="notifications/tasks", params={**state, "_meta": meta})
        result = await calling
        waited = asyncio.get_running_loop().time() - before
        ended = await puppet.heard()
        await client.close()
        wanted = stream["params"]["notifications"]
        return (
            wanted,
            poll["method"],
            waited,
            result.text,
            ended["params"]["requestId"] == stream["id"],
        )

    assert ({"taskIds": ["t1"]}, "tasks/get", 5.0, "done", True) == run(talk())


@pytest.mark.parametrize(
    ("state", "error", "match"),
    [
        (flat("cancelled", statusMessage="too old"), TaskCancelled, "t1 was cancelled: too old"),
        (flat("failed", error={"code": -32602, "message": "no"}), InvalidParams, "no"),
        (flat("failed"), Misbehaved, "does not say how"),
        (flat("completed"), Misbehaved, "malformed"),
        (flat("completed", result={"content": 1}), Misbehaved, "malformed"),
    ],
)
async def test_an_end_without_a_result_is_one_exception(state, error, match):
    """Ours: each way to end has its own, and none hangs."""
    client, puppet = await modern()
    calling = asyncio.create_task(client.call_tool("paint"))
    await replies(puppet, {"result": flat(kind="task")}, {"result": state})

    with pytest.raises(error, match=match):
        await calling
    await client.close()


async def test_a_question_that_cannot_be_answered_ends_the_call():
    """Spec: servers MUST NOT ask what was not declared; ours: it is their mistake."""
    client, puppet = await modern()
    calling = asyncio.create_task(client.call_tool("paint"))
    waiting = flat("input_required", inputRequests={"q": QUESTION})
    asked = await replies(
        puppet,
        {"result": flat(kind="task")},
        {"result": waiting},
        {"result": {"resultType": "complete"}},
    )

    with pytest.raises(Misbehaved, match="does not offer"):
        await calling
    assert "tasks/cancel" == asked[-1]["method"]
    await client.close()


async def test_a_task_whose_name_comes_late_is_cancelled_all_the_same():
    """Spec: by tasks/cancel, never by notifications/cancelled."""
    client, puppet = await legacy()
    listing = asyncio.create_task(client.list_tools())
    await puppet.answers(list_by_support(paint="required"))
    await listing
    calling = asyncio.create_task(client.call_tool("paint"))
    asked = await puppet.heard()
    calling.cancel()
    await asyncio.wait((calling,))
    await puppet.says(id=asked["id"], result={"task": core()})
    next = await puppet.heard()

    assert ("tasks/cancel", {"taskId": "t1"}) == (next["method"], next["params"])
    await client.close()


def test_a_result_that_does_not_come_in_time_is_asked_for_again():
    """Ours: a call may be silent for a minute; a task may take longer."""

    async def talk():
        client, puppet = await legacy(timeout=60)
        waiting = asyncio.create_task(client.task("t1").result())
        await puppet.answers(core())
        first = await puppet.heard()
        state = await unheard(puppet)
        await puppet.says(id=state["id"], result=core())
        again = await unheard(puppet)
        await puppet.says(id=again["id"], result=DONE)
        result = await waiting
        await client.close()
        return [one["method"] for one in (first, state, again)], result.text

    assert (["tasks/result", "tasks/get", "tasks/result"], "done") == run(talk())


@pytest.mark.parametrize(
    "answer", [{"error": {"code": -32603, "message": "gone"}}, {"result": {"odd": 1}}]
)
async def test_an_error_of_a_result_is_told_from_a_cancelled_task(answer):
    """Ours: servers answer either in the same ways, and only one of them is TaskCancelled."""
    for status, error in (("cancelled", TaskCancelled), ("failed", PeerError)):
        client, puppet = await legacy()
        waiting = asyncio.create_task(client.task("t1").result())
        await puppet.answers(core())
        asked = await puppet.heard()
        await puppet.says(id=asked["id"], **answer)
        await puppet.answers(core(status))
        with pytest.raises(error) as caught:
            await waiting
        await client.close()

        assert (status == "cancelled") is isinstance(caught.value, TaskCancelled)


async def test_results_of_tasks_are_held_against_the_output_schema():
    """Spec: clients SHOULD validate structured results, whichever way they came."""
    client, puppet = await modern()
    listing = asyncio.create_task(client.list_tools())
    number = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = {"name": "paint", "inputSchema": {"type": "object"}, "outputSchema": number}
    await puppet.answers({"resultType": "complete", "tools": [tool]})
    await listing
    calling = asyncio.create_task(client.call_tool("paint"))
    wrong = {**DONE, "structuredContent": {"n": "x"}}
    await replies(
        puppet, {"result": flat(kind="task")}, {"result": flat("completed", result=wrong)}
    )

    with pytest.raises(Misbehaved, match="breaks its schema"):
        await calling
    await client.close()


async def test_states_nobody_asked_for_are_bounded():
    """Ours: a server that tells of a million tasks costs no memory for them."""
    client, puppet = await legacy()
    for n in range(1_100):
        params = {**core(), "taskId": f"t{n}"}
        await puppet.says(method="notifications/tasks/status", params=params)
    pinging = asyncio.create_task(client.ping())
    await puppet.answers({})
    await pinging

    assert 1_000 == len(client._tasks._heard)
    await client.close()


def test_a_handle_needs_a_connection():
    """Ours: a task is somebody's; before the client is open there is nobody to ask."""
    client = Client(PuppetChannel().channel)

    with pytest.raises(OutOfPhase, match="not connected yet"):
        run(client.task("t").status())
    assert "ToolTask('', id='t')" == repr(client.task("t"))


@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
async def test_a_ttl_that_is_left_out_is_none(revision):
    """Ours: the specifications have null, and servers in the wild leave it out."""
    client, puppet = await (legacy() if revision == LEGACY_NAME else modern())
    looking = asyncio.create_task(client.task("t1").status())
    state = core() if revision == LEGACY_NAME else flat()
    await puppet.answers({k: v for k, v in state.items() if not k.startswith("ttl")})

    assert (await looking).ttl is None
    await client.close()


async def test_nobody_waits_for_the_result_of_what_was_cancelled():
    """Ours: a server that never answers tasks/result then is not asked for it."""
    client, puppet = await legacy()
    waiting = asyncio.create_task(client.task("t1").result())
    await puppet.answers(core("cancelled"))

    with pytest.raises(TaskCancelled):
        await waiting
    await client.close()


@pytest.mark.covers("tasks.client.leaves")
@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
def test_a_caller_whose_time_is_over_takes_the_task_along(revision):
    """Ours: a timeout is one error, and the work stops."""
    server, stopped = Server("s"), []

    @server.tool(task="required")
    async def wait() -> str:
        """Wait until stopped."""
        try:
            await asyncio.sleep(10**5)
        finally:
            stopped.append(True)

    async def talk():
        async with connect(server, revision=revision) as client:
            with pytest.raises(CallTimedOut, match="is not over after 7 s"):
                await client.call_tool("wait", timeout=7)
            with pytest.raises(CallTimedOut, match="is not over after 1800 s"):
                await client.call_tool("wait")
            return list(stopped)

    assert [True, True] == run(talk())


# Calls that are given up as their answers arrive


def make_answer(revision, name="t1"):
    """The answer to a call that has become a task."""
    return {"task": {**core(), "taskId": name}} if revision == LEGACY_NAME else flat(kind="task")


async def begin_call(revision, **options):
    """A client whose call of a tool has reached its server; the call, and the request."""
    client, puppet = await (legacy if revision == LEGACY_NAME else modern)()
    if revision == LEGACY_NAME:
        listing = asyncio.create_task(client.list_tools())
        await puppet.answers(list_by_support(paint="required"))
        await listing
    calling = asyncio.create_task(client.call_tool("paint", **options))
    return client, puppet, calling, await puppet.heard()


async def answer_and_cancel(client, puppet, calling, asked, result):
    """Answer a call, and cancel it in the turn of the loop in which the client takes the answer in."""
    link = client._connection.peer
    take = link.take

    def take_and_cancel(delivery, *parsed):
        calls = take(delivery, *parsed)
        calling.cancel()  # the caller has been woken, and has not run yet
        return calls

    link.take = take_and_cancel
    await puppet.says(id=asked["id"], result=result)
    await asyncio.wait((calling,))
    link.take = take


@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
async def test_a_call_cancelled_in_the_turn_in_which_its_task_arrives_takes_the_task_along(
    revision,
):
    """Ours: the answer is there, and its caller never sees it."""
    client, puppet, calling, asked = await begin_call(revision)
    await answer_and_cancel(client, puppet, calling, asked, make_answer(revision))
    next = await puppet.heard()

    assert calling.cancelled()
    assert ("tasks/cancel", "t1") == (next["method"], next["params"]["taskId"])
    await client.close()


async def test_a_cancelled_call_whose_result_has_arrived_asks_nothing_more():
    """Ours: where there is no task, there is nothing to cancel."""
    client, puppet, calling, asked = await begin_call(MODERN_NAME)
    result = {"resultType": "complete", **DONE}
    await answer_and_cancel(client, puppet, calling, asked, result)
    listing = asyncio.create_task(client.list_tools())
    (next,) = await puppet.answers(
        {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **list_by_support()}
    )
    await listing

    assert calling.cancelled()
    assert "tools/list" == next["method"]
    await client.close()


async def test_a_task_that_comes_after_its_call_was_cancelled_is_cancelled():
    """Ours: the answer and the cancellation have crossed on their way."""
    client, puppet, calling, asked = await begin_call(MODERN_NAME)
    calling.cancel()
    await asyncio.wait((calling,))
    await puppet.says(id=asked["id"], result=make_answer(MODERN_NAME))
    said = [await puppet.heard(), await puppet.heard()]

    assert ["notifications/cancelled", "tasks/cancel"] == [one["method"] for one in said]
    assert "t1" == said[1]["params"]["taskId"]
    await client.close()


@pytest.mark.parametrize("revision", [LEGACY_NAME, MODERN_NAME])
def test_a_task_that_comes_after_the_time_of_its_call_is_cancelled(revision):
    """Ours: a caller that has had an error never hears of the task."""

    async def talk():
        client, puppet, calling, asked = await begin_call(revision, timeout=2)
        if revision == LEGACY_NAME:  # where a task is asked for, the client's own limit counts
            await asyncio.sleep(10**4)
        with pytest.raises(CallTimedOut):
            await calling
        await puppet.says(id=asked["id"], result=make_answer(revision))
        while (next := await puppet.heard())["method"] != "tasks/cancel":
            pass
        await client.close()
        return next["params"]["taskId"]

    assert "t1" == run(talk())
