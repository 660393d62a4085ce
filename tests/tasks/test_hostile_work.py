"""Tasks where somebody else writes to the store: one bad entry keeps no other task from its end."""

import asyncio

import pytest

from isthmus.nodes.node import OUTCOME_UNKNOWN
from support.server.both_eras import MODERN
from support.tasks.task_fleet import DEATH_S, TaskFleet, begin_task, make_gated_tool, run


@pytest.mark.parametrize(
    ("key", "record"),
    [("!", b""), ("task/a", b""), ("task/!/x", b"no json"), ("task/!/x", b'{"id": 5}')],
)
def test_a_hostile_entry_of_a_dead_node_is_passed_over(key, record):
    """Ours: what is no task is logged, and the tasks after it are settled."""

    async def lives():
        declare, _ = make_gated_tool()
        fleet = TaskFleet(declare)
        first, _ = await fleet.start(2)
        id = await begin_task(first.client(MODERN), arguments={"value": "x"})
        (worker,) = await fleet.keys("worker/")
        await fleet.shared.kv.put(f"work/{worker.removeprefix('worker/')}/{key}", b"", None)
        await fleet.shared.kv.put(key, record, None)
        first.kill()
        await asyncio.sleep(DEATH_S)
        left, (task,) = await fleet.keys("work/"), [k for k in await fleet.keys("task/") if id in k]
        entry = await fleet.shared.kv.get(task)
        await fleet.close()
        return left, entry.value

    left, record_then = run(lives)

    assert [] == left
    assert OUTCOME_UNKNOWN.encode() in record_then
