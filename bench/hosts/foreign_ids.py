"""Times in which a gateway refuses what is another user's, against what nobody has: the difference would tell which exists.

Run it: ``python bench/hosts/foreign_ids.py``. Two users of one gateway; one of them uses ids and states of the other and
invented ones of the same form, in turns. The users are those of the tests.
"""

import asyncio
import gc
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.gateway.asking_shop import make_asker
from support.gateway.gateway_users import open_users
from support.gateway.task_kitchen import Kitchen

LEGACY = "2025-11-25"
TURNS = 1_500
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

Use = Callable[[str], Awaitable[Any]]


def invent(id: str) -> str:
    """An id of the same form that nobody has: its second half turned around."""
    middle = len(id) // 2
    return id[:middle] + id[middle:][::-1]


async def compare_uses(use: Use, id: str) -> tuple[float, float]:
    """The median seconds of a use of another's id, and of one that nobody has."""
    seen: dict[str, list[float]] = {id: [], invent(id): []}
    if len(seen) == 1:
        raise RuntimeError("the invented id is the same")
    gc.disable()
    try:
        for _ in range(TURNS):
            for one, times in seen.items():
                start = time.perf_counter()
                await use(one)
                times.append(time.perf_counter() - start)
    finally:
        gc.enable()
    foreign, invented = (median(times) for times in seen.values())
    return foreign, invented


async def compare_foreign_ids() -> dict[str, tuple[float, float]]:
    """Of each kind of id: the median seconds with another's, and with an invented one."""
    kitchen = Kitchen(LEGACY)
    found = {}
    async with open_users(kitchen=kitchen.server, shop=make_asker(LEGACY)) as (_, ann, bob):
        await ann.open_session()
        call = {"name": "kitchen__roast", "arguments": {"dish": "goose"}}
        task = (await ann.call("tools/call", **call, task={}))["task"]["taskId"]
        asked = await ann.order()

        async def use_session(id: str) -> None:
            bob.session = id
            await bob.post(PING)

        found["session"] = await compare_uses(use_session, ann.session)
        await bob.open_session()
        found["task"] = await compare_uses(
            lambda task_id: bob.call("tasks/get", taskId=task_id), task
        )
        found["state of a parked call"] = await compare_uses(
            lambda state: bob.order({**asked, "requestState": state}), asked["requestState"]
        )
        kitchen.ready.set()
    return found


def main() -> int:
    """Print a line of each kind."""
    logging.disable()  # each refused state is a line
    for kind, (foreign, invented) in asyncio.run(compare_foreign_ids()).items():
        print(f"{kind}: {foreign * 1e6:.0f} µs another's, {invented * 1e6:.0f} µs nobody's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
