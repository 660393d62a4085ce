"""A client that answers questions as tasks: what its server may do with them."""

import asyncio
import json

import pytest
from msgspec import UNSET, Raw

from isthmus.client import Limits, Rate
from isthmus.client.client import Client
from isthmus.core.answers import Accepted
from isthmus.errors import InternalError, InvalidParams, Refused, Rejected, UsageError
from isthmus.wire import (
    CancelTaskParams,
    ClientCapabilities,
    ClientTaskRequests,
    ClientTasksCapability,
    CreateMessageParams,
    ElicitationTasks,
    ElicitParams,
    GetTaskParams,
    GetTaskPayloadParams,
    ListTasksParams,
    SamplingMessage,
    TaskMetadata,
    TextContent,
)
from support.client.small_server import LEGACY_NAME, MODERN_NAME, SmallServer, text_result

RELATED = "io.modelcontextprotocol/related-task"
FORM = {"type": "object", "properties": {"row": {"type": "integer"}}}
HAIKU = SamplingMessage(role="user", content=TextContent(text="A haiku."))


class Server:
    """A server that a test speaks for, while a call of its client goes on."""

    def __init__(self, inbound):
        self.inbound = inbound

    async def call(self, method, params):
        """Ask the client; its answer as decoded JSON."""
        inbound = self.inbound
        answer = await inbound.link.call(method, params, Raw, relates_to=inbound.id, timeout=5)
        return json.loads(bytes(answer))

    async def elicit(self, **task):
        """Have a form filled in as a task; the client's first answer."""
        params = ElicitParams(message="Row?", requested_schema=FORM, task=TaskMetadata(**task))
        return await self.call("elicitation/create", params)

    async def sample(self):
        """Have a model write as a task; the client's first answer."""
        params = CreateMessageParams(messages=[HAIKU], max_tokens=9, task=TaskMetadata())
        return await self.call("sampling/createMessage", params)

    async def get(self, id):
        return await self.call("tasks/get", GetTaskParams(task_id=id))

    async def result(self, id):
        return await self.call("tasks/result", GetTaskPayloadParams(task_id=id))

    async def cancel(self, id):
        return await self.call("tasks/cancel", CancelTaskParams(task_id=id))

    async def list(self, **params):
        return await self.call("tasks/list", ListTasksParams(**params))


async def run_script(script, revision=LEGACY_NAME, **options):
    """What a script finds out that runs as a server, against a client made so."""
    found = []

    async def call(_params, inbound):
        found.append(await script(Server(inbound)))
        return text_result("done")

    async with Client(SmallServer({"tools/call": call}), revision=revision, **options) as client:
        await client.call_tool("talk")
    return found[0]


def row(_question):
    return Accepted({"row": 3})


def words(_params):
    return "five seven five"


async def capabilities(server):
    return server.inbound.caller.capabilities.tasks


# What is declared


@pytest.mark.covers("tasks.answers.declared")
async def test_tasks_are_declared_for_what_has_a_handler():
    """Spec: the list of requests is exhaustive; ours: nothing unless it is wanted."""
    both = await run_script(capabilities, elicit=row, sample=words, answer_tasks=True)
    one = await run_script(capabilities, sample=words, answer_tasks=True)

    assert ({}, {}) == (both.list, both.cancel)
    assert ({}, {}) == (both.requests.elicitation.create, both.requests.sampling.create_message)
    assert (UNSET, {}) == (one.requests.elicitation, one.requests.sampling.create_message)
    assert UNSET is await run_script(capabilities, elicit=row, sample=words)


@pytest.mark.covers("tasks.answers.declared")
async def test_no_tasks_are_declared_where_there_are_none():
    """Spec: since 2026-07-28 a client has no such capability."""
    assert UNSET is await run_script(capabilities, MODERN_NAME, elicit=row, answer_tasks=True)


ELICITATION = ClientTaskRequests(elicitation=ElicitationTasks(create={}))


async def test_a_client_may_declare_less():
    """Ours: capabilities= say exactly what is wanted."""
    wanted = ClientCapabilities(tasks=ClientTasksCapability(requests=ELICITATION))

    async def script(server):
        return await capabilities(server), await server.elicit(), await server.sample()

    declared, form, haiku = await run_script(script, elicit=row, sample=words, capabilities=wanted)

    assert ELICITATION == declared.requests
    assert ("working", "five seven five") == (form["task"]["status"], haiku["content"]["text"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"answer_tasks": True}, "give elicit= or sample="),
        (
            {
                "sample": words,
                "capabilities": ClientCapabilities(
                    tasks=ClientTasksCapability(requests=ELICITATION)
                ),
            },
            "no handler answers elicitation/create, as a task or at once: give elicit=",
        ),
    ],
)
def test_nothing_is_declared_that_nothing_answers(options, said):
    """Ours: an error says which argument is missing."""
    with pytest.raises(UsageError, match=said):
        Client(SmallServer(), **options)


@pytest.mark.covers("tasks.answers.ignored")
async def test_who_declares_no_tasks_answers_at_once():
    """Spec: MUST process the request normally, ignoring the metadata."""
    answer = await run_script(Server.elicit, elicit=row)

    assert {"action": "accept", "content": {"row": 3}} == answer


# How a task goes


@pytest.mark.covers("tasks.answers.created", "tasks.answers.related")
async def test_a_question_is_a_task_until_its_handler_is_done():
    """Spec: the task at once, its status when asked, and the answer when there is one."""
    go = asyncio.Event()

    async def slow(question):
        await go.wait()
        return row(question)

    async def script(server):
        task = (await server.elicit(ttl=60_000))["task"]
        before = await server.get(task["taskId"])
        fetching = asyncio.ensure_future(server.result(task["taskId"]))
        await asyncio.sleep(0)
        waits = not fetching.done()
        go.set()
        return task, before, waits, await fetching, await server.get(task["taskId"])

    task, before, waits, answer, after = await run_script(script, elicit=slow, answer_tasks=True)

    assert ("working", 60_000, 1000) == (task["status"], task["ttl"], task["pollInterval"])
    assert task == before
    assert waits
    assert ("accept", {"row": 3}) == (answer["action"], answer["content"])
    assert {RELATED: {"taskId": task["taskId"]}} == answer["_meta"]
    assert "completed" == after["status"]


@pytest.mark.covers("tasks.answers.created")
@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (Rejected(), -1, "User rejected sampling request"),
        (ValueError("secret"), -32603, "Internal error in sampling/createMessage"),
    ],
)
async def test_an_error_is_the_error_of_the_result(raised, code, message):
    """Spec: tasks/result MUST return that same JSON-RPC error, and the task has failed."""

    def fail(_params):
        raise raised

    async def script(server):
        id = (await server.sample())["task"]["taskId"]
        with pytest.raises(Refused) as caught:
            await server.result(id)
        return caught.value, await server.get(id)

    error, state = await run_script(script, sample=fail, answer_tasks=True)

    assert (code, message) == (error.code, error.message)
    assert ("failed", message) == (state["status"], state["statusMessage"])


@pytest.mark.covers("tasks.answers.cancelled")
async def test_a_cancelled_task_stops_its_handler():
    """Spec: SHOULD stop, MUST be cancelled before the answer, and MUST refuse to do it again."""
    stopped = asyncio.Event()

    async def for_ever(_question):
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def script(server):
        id = (await server.elicit())["task"]["taskId"]
        await server.get(id)
        cancelled = await server.cancel(id)
        with pytest.raises(InvalidParams, match="already in terminal status 'cancelled'"):
            await server.cancel(id)
        with pytest.raises(InternalError):
            await server.result(id)
        return cancelled["status"], (await server.get(id))["status"]

    statuses = await run_script(script, elicit=for_ever, answer_tasks=True)

    assert ("cancelled", "cancelled") == statuses
    assert stopped.is_set()


@pytest.mark.covers("tasks.answers.listed")
async def test_tasks_are_listed_in_pages():
    """Spec: whatever can be asked about is listed, in pages; -32602 for other cursors."""
    roomy = Limits(samplings=Rate(1000, 60), samplings_in_flight=None)

    async def script(server):
        made = [(await server.sample())["task"]["taskId"] for _ in range(101)]
        first = await server.list()
        second = await server.list(cursor=first["nextCursor"])
        with pytest.raises(InvalidParams):
            await server.list(cursor="of my own")
        return made, [task["taskId"] for task in first["tasks"] + second["tasks"]], second

    made, listed, last = await run_script(script, sample=words, answer_tasks=True, limits=roomy)

    assert sorted(made) == sorted(listed)
    assert "nextCursor" not in last


async def test_a_task_that_is_not_there_is_refused():
    """Spec: -32602 for an id that there is none of."""

    async def script(server):
        for ask in (server.get, server.result, server.cancel):
            with pytest.raises(InvalidParams, match="Task not found"):
                await ask("of my own")
        return True

    assert await run_script(script, elicit=row, answer_tasks=True)


# What it may cost


@pytest.mark.covers("tasks.answers.limits")
async def test_there_are_only_so_many_tasks_and_only_so_long():
    """Spec: SHOULD limit the tasks of one requestor, and their ttl."""

    async def script(server):
        task = (await server.elicit(ttl=10**9))["task"]
        with pytest.raises(Refused) as caught:
            await server.elicit()
        return task["ttl"], task["pollInterval"], caught.value

    few = Limits(tasks=1, max_task_ttl=30.0, task_poll=0.5)
    ttl, poll, error = await run_script(script, elicit=row, answer_tasks=True, limits=few)

    assert (30_000, 500) == (ttl, poll)
    assert -31429 == error.code
    assert "1 tasks in all" in error.message


async def test_the_limits_of_questions_are_those_of_tasks_too():
    """Ours: a task is no way around what a user or a model may be bothered with."""

    async def script(server):
        ids = [(await server.elicit())["task"]["taskId"] for _ in range(2)]
        await server.result(ids[0])
        with pytest.raises(Refused) as caught:
            await server.result(ids[1])
        return caught.value.code

    once = Limits(elicitations=Rate(1, 60))

    assert -31429 == await run_script(script, elicit=row, answer_tasks=True, limits=once)


@pytest.mark.covers("tasks.answers.stranded")
async def test_the_end_of_the_connection_ends_its_tasks():
    """Ours: nobody could fetch what they come to."""
    begun, stopped = asyncio.Event(), asyncio.Event()

    async def for_ever(_question):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async def script(server):
        await server.elicit()
        await begun.wait()

    await run_script(script, elicit=for_ever, answer_tasks=True)
    async with asyncio.timeout(5):
        await stopped.wait()

    assert stopped.is_set()
