"""Tasks over nodes: any node reads, answers and cancels; a dead node's tasks end once."""

import asyncio

import pytest
from msgspec import Struct

from isthmus import Context, Server
from isthmus.errors import UsageError
from isthmus.nodes.node import OUTCOME_UNKNOWN
from isthmus.server.guard.limits import Limits
from support.server.both_eras import LEGACY, MODERN, accept_form
from support.tasks.task_fleet import (
    DEATH_S,
    TaskFleet,
    begin_task,
    make_gated_tool,
    read_status,
    run,
)

BOTH = pytest.mark.parametrize("revision", [LEGACY, MODERN])


class Word(Struct):
    word: str


def declare_question(server, _node):
    async def t(ctx: Context) -> str:
        return (await ctx.elicit("Which?", Word, key="which")).value.word

    server.add_tool(t, task="optional")


@BOTH
def test_any_node_reads_a_task_and_its_result(revision):
    """Ours: the record lies in the store of all nodes."""

    async def lives():
        declare, notes = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(revision), arguments={"value": "x"})
        before = await read_status(second.client(revision), id)
        await asyncio.sleep(1)
        notes.gates["x"].set()
        await asyncio.sleep(1)
        after = await second.client(revision).once("tasks/get", {"taskId": id})
        await fleet.close()
        return before, after["status"]

    assert ("working", "completed") == run(lives)


def test_who_waits_for_a_result_at_another_node_is_woken_by_the_bus():
    """Spec 2025-11-25 tasks#result-retrieval: blocks until the end; ours: without polling."""

    async def lives():
        declare, notes = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(), arguments={"value": "x"})
        waiting = asyncio.ensure_future(second.client().once("tasks/result", {"taskId": id}))
        await asyncio.sleep(0.5)
        waits = not waiting.done()
        notes.gates["x"].set()
        before = asyncio.get_running_loop().time()
        result = await waiting
        took = asyncio.get_running_loop().time() - before
        await fleet.close()
        return waits, result["content"][0]["text"], took

    waits, text, took = run(lives)

    assert waits
    assert text == "done x"
    assert took < 0.1


@BOTH
def test_a_question_is_answered_at_another_node(revision):
    """Ours: the answer goes by letter to the node whose body waits for it."""

    async def lives():
        fleet = TaskFleet(declare_question)
        first, second = await fleet.start(2)
        answers = lambda *_: accept_form(word="blue")  # noqa: E731
        id = await begin_task(first.client(revision))
        await asyncio.sleep(0.1)
        there = second.client(revision, answer=answers)
        if revision == LEGACY:
            result = await there.once("tasks/result", {"taskId": id})
        else:
            asked = await there.once("tasks/get", {"taskId": id})
            responses = {key: accept_form(word="blue") for key in asked["inputRequests"]}
            await there.once("tasks/update", {"taskId": id, "inputResponses": responses})
            await asyncio.sleep(0.1)
            result = (await there.once("tasks/get", {"taskId": id}))["result"]
        await fleet.close()
        return result["content"][0]["text"]

    assert "blue" == run(lives)


def test_a_refused_question_is_told_at_the_node_that_asked():
    """Ours: an answer that does not fit is refused, wherever it arrives."""

    async def lives():
        fleet = TaskFleet(declare_question)
        first, second = await fleet.start(2)
        id = await begin_task(first.client())
        await asyncio.sleep(0.1)
        client = second.client(answer=lambda *_: {"action": "no such action"})
        result = await client.once("tasks/result", {"taskId": id})
        await fleet.close()
        return result

    assert run(lives)["isError"]


@BOTH
def test_a_task_is_cancelled_at_another_node_and_its_work_ends(revision):
    """Spec tasks#task-cancellation: cancelled before the answer; ours: the work ends, too."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(revision), arguments={"value": "x"})
        await asyncio.sleep(0.1)
        await second.client(revision).once("tasks/cancel", {"taskId": id})
        status = await read_status(second.client(revision), id)
        await asyncio.sleep(0.1)
        here = await read_status(first.client(revision), id)
        left = len(first.book), await fleet.keys("work/")
        await fleet.close()
        return status, here, left

    assert ("cancelled", "cancelled", (0, [])) == run(lives)


@BOTH
def test_a_dead_nodes_task_has_failed_for_every_reader(revision):
    """Ours: with the words that its outcome is not known, once its node's lease has ended."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(revision), arguments={"value": "x"})
        first.kill()
        await asyncio.sleep(DEATH_S)
        found = await second.client(revision).once("tasks/get", {"taskId": id})
        left = await fleet.keys("work/"), await fleet.keys("worker/")
        await fleet.close()
        return found["status"], found["statusMessage"], left

    assert ("failed", OUTCOME_UNKNOWN, ([], [])) == run(lives)


def test_who_waits_for_a_dead_nodes_task_hears_of_its_end():
    """Ours: nothing hangs; tasks/result ends by the error, and within the lease of a node."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(), arguments={"value": "x"})
        waiting = asyncio.ensure_future(second.client().once("tasks/result", {"taskId": id}))
        await asyncio.sleep(0.1)
        first.kill()
        error = await asyncio.wait_for(waiting, DEATH_S)
        await fleet.close()
        return error.code, error.message

    assert (-32603, OUTCOME_UNKNOWN) == run(lives)


def test_tasks_of_nodes_that_all_died_are_settled_by_a_new_one():
    """Ours: whoever starts looks for what those before it left."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        old = await fleet.start(2)
        ids = [await begin_task(node.client(), arguments={"value": node.id}) for node in old]
        for node in old:
            node.kill()
        await asyncio.sleep(DEATH_S)
        (new,) = await fleet.start()
        await asyncio.sleep(1)
        left = await fleet.keys("work/")
        found = [await read_status(new.client(), id) for id in ids]
        await fleet.close()
        return found, left

    assert (["failed", "failed"], []) == run(lives)


@BOTH
def test_a_task_that_may_run_twice_is_started_again_by_one_other_node(revision):
    """Ours: its arguments and its caller are in the store, sealed."""

    async def lives():
        declare, notes = make_gated_tool(retry_safe=True)
        fleet = TaskFleet(declare)
        first, *others = await fleet.start(4)
        id = await begin_task(first.client(revision), arguments={"value": "secret words"})
        stored = [entry.value for _, entry in await fleet.shared.kv.scan("", "", 100)]
        first.kill()
        await asyncio.sleep(DEATH_S)
        found = await others[0].client(revision).once("tasks/get", {"taskId": id})
        notes.gates["secret words"].set()
        await asyncio.sleep(0.1)
        ends = [await read_status(node.client(revision), id) for node in others]
        left = [*await fleet.keys("call/"), *await fleet.keys("work/")]
        await fleet.close()
        sealed = not any(b"secret words" in value for value in stored)
        return found["status"], found["statusMessage"], len(notes.runs), ends, left, sealed

    status, message, runs, ends, left, sealed = run(lives)

    assert status == "working"
    assert message == "Its process has ended; started again (1 of 3)."
    assert runs == 2
    assert ends == ["completed"] * 3
    assert left == []
    assert sealed


def test_a_task_is_not_started_again_for_ever():
    """Ours: a task that ends its process would end all of them."""

    async def lives():
        declare, notes = make_gated_tool(retry_safe=True)
        fleet = TaskFleet(declare)
        (node,) = await fleet.start()
        id = await begin_task(node.client(), arguments={"value": "x"})
        for _ in range(4):
            node.kill()
            (node,) = await fleet.start()
            await asyncio.sleep(DEATH_S)
        found = await node.client().once("tasks/get", {"taskId": id})
        await fleet.close()
        return found["status"], found["statusMessage"], len(notes.runs)

    assert ("failed", OUTCOME_UNKNOWN, 4) == run(lives)


def test_questions_of_a_task_that_runs_again_have_keys_of_their_own():
    """Ours: a client answers each key once, and the first one was asked by a process that ended."""

    def declare(server, _node):
        async def t(ctx: Context) -> str:
            return (await ctx.elicit("Which?", Word, key="which")).value.word

        server.add_tool(t, task="optional", retry_safe=True)

    async def lives():
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(MODERN))
        await asyncio.sleep(0.1)
        before = await second.client(MODERN).once("tasks/get", {"taskId": id})
        first.kill()
        await asyncio.sleep(DEATH_S)
        after = await second.client(MODERN).once("tasks/get", {"taskId": id})
        await fleet.close()
        return [*before["inputRequests"]], [*after["inputRequests"]]

    assert (["which"], ["which~2"]) == run(lives)


def test_a_paused_node_that_goes_on_writes_nothing_and_its_work_is_cut():
    """Ours: its lease ended, so another has settled its task; late writes are refused."""

    async def lives():
        declare, notes = make_gated_tool(retry_safe=True)
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(), arguments={"value": "x"})
        await asyncio.sleep(0.1)
        first.pause()
        await asyncio.sleep(DEATH_S)
        moved = [node for node, _ in notes.runs] == [first.id, second.id]
        first.resume()
        await asyncio.sleep(DEATH_S)
        working = len(first.book), len(second.book)
        notes.gates["x"].set()
        await asyncio.sleep(0.1)
        ends = [await read_status(node.client(), id) for node in (first, second)]
        await fleet.close()
        return moved, working, ends

    assert (True, (0, 1), ["completed", "completed"]) == run(lives)


def test_a_node_that_leaves_hands_over_what_may_run_twice():
    """Ours: a rolling restart ends no task that may run twice, and cancels the others."""

    async def lives():
        fleet = TaskFleet(lambda server, node: [one(server, node) for one in (safe, plain)])
        first, second = await fleet.start(2)
        kept = await begin_task(first.client(), "safe")
        lost = await begin_task(first.client(), "plain")
        first.alive = False
        await first.server.close()
        await asyncio.sleep(DEATH_S)
        ends = [await read_status(second.client(), id) for id in (kept, lost)]
        works = len(second.book)
        await fleet.close()
        return ends, works

    def safe(server, _node):
        server.add_tool(wait, name="safe", task="optional", retry_safe=True)

    def plain(server, _node):
        server.add_tool(wait, name="plain", task="optional")

    async def wait() -> None:
        await asyncio.Event().wait()

    assert (["working", "cancelled"], 1) == run(lives)


def test_an_owner_has_so_many_tasks_at_all_nodes_together():
    """Ours: places are taken in the store, so the limit is never exceeded."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare, Limits(tasks_each=5))
        nodes = await fleet.start(3)
        params = {"name": "t", "arguments": {"value": "x"}, "task": {}}
        answers = await asyncio.gather(
            *(node.client().once("tools/call", params) for node in nodes for _ in range(4))
        )
        other = await nodes[0].client(principal="bob").once("tools/call", params)
        await fleet.close()
        return sum(isinstance(answer, dict) for answer in answers), "task" in other

    assert (5, True) == run(lives)


def test_a_list_has_the_tasks_of_all_nodes():
    """Spec 2025-11-25 tasks#listing-tasks; ours: dead nodes' are settled in it."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        nodes = await fleet.start(3)
        for node in nodes:
            await begin_task(node.client(), arguments={"value": node.id})
        nodes[0].kill()
        await asyncio.sleep(DEATH_S)
        listed = await nodes[1].client().once("tasks/list", {})
        await fleet.close()
        return [task["status"] for task in listed["tasks"]]

    assert ["failed", "working", "working"] == run(lives)


def test_a_stream_of_changes_at_another_node_hears_of_each_status():
    """Spec 2026-07-28 ext-tasks#task-status-notifications; ours: wherever the work goes on."""

    async def lives():
        declare, notes = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(MODERN), arguments={"value": "x"})
        client = second.client(MODERN)
        listening = asyncio.ensure_future(
            client.once("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        )
        await asyncio.sleep(0.1)
        notes.gates["x"].set()
        await asyncio.sleep(0.1)
        told = [params["status"] for params in client.link.said("notifications/tasks")]
        listening.cancel()
        await fleet.close()
        return told

    assert ["working", "completed"] == run(lives)


def test_a_stream_of_changes_hears_of_a_dead_nodes_task():
    """Ours: the nodes that are left look for what a dead one left, so watchers are told."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client(MODERN), arguments={"value": "x"})
        client = second.client(MODERN)
        listening = asyncio.ensure_future(
            client.once("subscriptions/listen", {"notifications": {"taskIds": [id]}})
        )
        await asyncio.sleep(0.1)
        first.kill()
        await asyncio.sleep(DEATH_S)
        told = [params["status"] for params in client.link.said("notifications/tasks")]
        listening.cancel()
        await fleet.close()
        return told

    assert ["working", "failed"] == run(lives)


def test_what_a_task_says_of_itself_is_read_at_other_nodes():
    """Ours: the status in words is written down while the work goes on."""

    def declare(server, _node):
        async def t(ctx: Context) -> None:
            await ctx.progress(1, message="half way")
            await asyncio.Event().wait()

        server.add_tool(t, task="optional")

    async def lives():
        fleet = TaskFleet(declare)
        first, second = await fleet.start(2)
        id = await begin_task(first.client())
        await asyncio.sleep(3)
        found = await second.client().once("tasks/get", {"taskId": id})
        await fleet.close()
        return found["statusMessage"]

    assert "half way" == run(lives)


def test_what_a_node_begins_when_it_comes_back_is_found_when_it_ends():
    """Ours: it was taken off the list of those that have tasks, and nobody knew that it lives."""

    async def lives():
        declare, notes = make_gated_tool(retry_safe=True)
        fleet = TaskFleet(declare)
        (back,) = await fleet.start()
        await begin_task(back.client(), arguments={"value": "a"})
        notes.gates["a"].set()
        back.pause()
        await asyncio.sleep(DEATH_S)
        (other,) = await fleet.start()
        back.resume()
        await begin_task(back.client(), arguments={"value": "b"})
        back.kill()
        await asyncio.sleep(DEATH_S)
        works = len(other.book)
        await fleet.close()
        return works

    assert 1 == run(lives)


@pytest.mark.parametrize("options", [{}, {"task": "optional", "task_starts": "in_body"}])
def test_only_a_task_that_begins_with_its_call_may_run_twice(options):
    """Ours: the error comes where the tool is made."""

    async def t(ctx: Context) -> None:
        await ctx.start_task()

    with pytest.raises(UsageError, match="tool 't': retry_safe needs task="):
        Server("s").add_tool(t, retry_safe=True, **options)
