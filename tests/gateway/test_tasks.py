"""Tasks through a gateway: both shapes in front, whatever is behind."""

import pytest

from isthmus import Client
from isthmus.errors import InvalidParams, TaskCancelled
from isthmus.wire.meta import RELATED_TASK
from support.gateway.small_gateway import REVISION_NAMES, make_gateway
from support.gateway.task_kitchen import TASK_REVISIONS, Kitchen

EVERY_SERVER = pytest.mark.parametrize("server", REVISION_NAMES)
EVERY_CELL = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in REVISION_NAMES for other in REVISION_NAMES]
)
WITH_TASKS = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in TASK_REVISIONS for other in REVISION_NAMES]
)
WHERE_A_TASK_IS_MADE = pytest.mark.parametrize(
    ("client", "server"),
    [
        *(("2025-11-25", one) for one in REVISION_NAMES),
        *(("2026-07-28", one) for one in TASK_REVISIONS),
    ],
)
TASKS_ON_BOTH_SIDES = pytest.mark.parametrize(
    ("client", "server"), [(one, other) for one in TASK_REVISIONS for other in TASK_REVISIONS]
)


@EVERY_CELL
async def test_a_call_is_awaited_whatever_it_is_behind_the_gateway(client, server):
    """Ours: a client that asks for no task gets the result, also of a tool that is a task only."""
    kitchen = Kitchen(server)
    kitchen.ready.set()
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        result = await user.call_tool("kitchen__roast", {"dish": "goose"})

    assert "goose is done" == result.text
    assert 1 == kitchen.calls


@pytest.mark.parametrize("client", REVISION_NAMES)
async def test_a_result_does_not_name_the_task_that_it_was_behind_the_gateway(client):
    """Ours: its id means nothing in front; a server of 2025-11-25 puts it into each result."""
    kitchen = Kitchen("2025-11-25")
    kitchen.ready.set()
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        awaited = await user.call_tool("kitchen__roast", {"dish": "goose"})
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        result = await task.result()

    assert RELATED_TASK not in (awaited.wire.meta or {})
    named = (result.wire.meta or {}).get(RELATED_TASK)
    assert named == ({"taskId": task.id} if client == "2025-11-25" else None)


@EVERY_SERVER
async def test_a_client_of_2025_11_25_gets_a_task_from_the_gateway(server):
    """Ours: whatever the server behind has, each tool is offered as a task, and is one when asked for."""
    kitchen = Kitchen(server)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision="2025-11-25") as user:
        tools = await user.list_tools()
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        await kitchen.begun.wait()
        state = await task.status()
        listed = await user.list_tasks()
        kitchen.ready.set()
        result = await task.result()

    assert {"optional"} == {tool.execution.task_support for tool in tools}
    assert task.id is not None
    assert "working" == state.status
    assert [task.id] == [one.id for one in listed]
    assert "goose is done" == result.text


@pytest.mark.parametrize("server", TASK_REVISIONS)
async def test_a_client_since_2026_07_28_gets_a_task_where_the_server_behind_makes_one(server):
    """Ours: the call is answered with a task of the gateway as soon as it is one behind it."""
    kitchen = Kitchen(server)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        await kitchen.begun.wait()
        kitchen.ready.set()
        result = await task.result()

    assert task.id is not None
    assert "goose is done" == result.text
    assert 1 == kitchen.calls


@pytest.mark.parametrize("task", ["optional", "required"])
async def test_a_tool_that_may_be_a_task_before_2026_07_28_is_one_for_a_client_that_has_them(task):
    """Ours: as it is at a server of 2026-07-28; there the server decides, and here its clients do."""
    kitchen = Kitchen("2025-11-25", task=task)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        assert task.id is not None
        await kitchen.begun.wait()
        kitchen.ready.set()
        result = await task.result()

    assert "goose is done" == result.text


async def test_a_call_stays_a_call_since_2026_07_28_where_nothing_takes_long():
    """Ours: the server decides, and a call that no task is made of behind stays one in front."""
    kitchen = Kitchen("2026-07-28", task=None)
    kitchen.ready.set()
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})

    assert task.id is None


@WHERE_A_TASK_IS_MADE
async def test_cancelling_a_task_ends_the_call_behind_the_gateway(client, server):
    """Ours: a request to cancel the gateway's task reaches the server that works on it."""
    kitchen = Kitchen(server)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        await kitchen.begun.wait()
        await task.cancel()
        with pytest.raises(TaskCancelled):
            await task.result()
        await kitchen.cancelled.wait()

    assert 1 == kitchen.calls


@TASKS_ON_BOTH_SIDES
async def test_what_a_task_behind_says_of_itself_is_the_status_in_front(client, server):
    """Ours: the gateway's task stands for the task of the server behind."""
    kitchen = Kitchen(server)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway, Client(gateway.server, revision=client) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        await kitchen.begun.wait()
        message = await poll_message(task)
        kitchen.ready.set()
        await task.result()

    assert "goose is in the oven" == message


async def poll_message(task, tries=2000):
    """The message of a task, as soon as it has one."""
    for _ in range(tries):
        state = await task.status()
        if state.message:
            return state.message
    return None


@WITH_TASKS
async def test_a_tool_that_fails_is_the_result_of_the_task(client, server):
    """Ours: what the model should read is the task's result, and no error of the protocol."""
    gateway = make_gateway(kitchen=Kitchen(server).server)
    async with gateway, Client(gateway.server, revision=client) as user:
        task = await user.start_tool("kitchen__burn", {"dish": "goose"})
        result = await task.result()

    assert result.is_error


@pytest.mark.parametrize("client", TASK_REVISIONS)
async def test_an_id_of_a_task_says_nothing_of_the_server_and_is_good_at_one_endpoint(client):
    """Ours: ids are random, and a task of one endpoint is unknown at another."""
    kitchen = Kitchen("2025-11-25")
    gateway = make_gateway(kitchen=kitchen.server)
    alone = gateway.find_server("/mcp/kitchen")
    async with gateway, Client(gateway.server, revision=client) as user:
        task = await user.start_tool("kitchen__roast", {"dish": "goose"})
        async with Client(alone, revision=client) as other:
            with pytest.raises(InvalidParams) as unknown:
                await other.task(task.id).status()
            with pytest.raises(InvalidParams) as invented:
                await other.task("kitchen").status()
        kitchen.ready.set()
        await task.result()

    assert "kitchen" not in task.id
    assert str(unknown.value) == str(invented.value)


@WHERE_A_TASK_IS_MADE
async def test_a_task_goes_on_when_the_session_that_began_it_has_ended(client, server):
    """Ours: whoever knows its id finds it over another connection, and it was called once."""
    kitchen = Kitchen(server)
    gateway = make_gateway(kitchen=kitchen.server)
    async with gateway:
        async with Client(gateway.server, revision=client) as user:
            task = await user.start_tool("kitchen__roast", {"dish": "goose"})
            await kitchen.begun.wait()
        async with Client(gateway.server, revision=client) as again:
            assert "working" == (await again.task(task.id).status()).status
            kitchen.ready.set()
            result = await again.task(task.id).result()

    assert "goose is done" == result.text
    assert 1 == kitchen.calls
