"""A host that works until it is killed: started by ``killed.py``, with what it needs as JSON.

It writes down what it was told is so: questions it was asked, decisions that were taken, grants
that were remembered, calls that came back. ``point`` names a statement of the store before which it
kills itself, or a step of the pipeline.
"""

import asyncio
import itertools
import json
import logging
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.host import Decision, Host
from isthmus.host.audit import writer
from isthmus.host.model.entries import HostConfig, HostOptions, ServerLimits
from isthmus.host.model.errors import HostError
from isthmus.host.model.events import QuestionAsked
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.store import sqlite
from isthmus.transports.command import Command

WITNESS = str(Path(__file__).with_name("witness.py"))
WORKERS = 4
SEGMENT = 40
"""Rows between two checkpoints: few, so that many are written."""

POLICY = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = "tool.call" }
"""
TOOLS = (("shop", "buy"), ("new", "paint"), ("new", "build"), ("old", "build"), ("old", "paint"))
ENOUGH = ServerLimits(calls=None, concurrency=WORKERS)


def dead(*_: object) -> None:
    """End here, without a word."""
    os.kill(os.getpid(), signal.SIGKILL)


class Work:
    """What one process does until it is killed.

    Args:
        said: folder, ports of the servers, number of the process, seed, point, retention.
    """

    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said
        self.folder = Path(said["folder"])
        self.chance = random.Random(said["seed"])  # noqa: S311 - for choices, not for secrets
        self.numbers = itertools.count()
        audit = {"retain": said["retain"]} if said["retain"] else {}
        self.host = Host(
            HostConfig(options=HostOptions(audit=audit)),
            policy=Policy.of(read_layers(POLICY, "user")),
            state=self.folder / "state",
        )
        self.host.attach(self)
        log = str(self.folder / "done")
        self.host.add("shop", Command(sys.executable, WITNESS, log), limits=ENOUGH)
        for name in ("new", "old"):
            url = f"http://127.0.0.1:{said[name]}/mcp"
            self.host.add(name, url, limits=ENOUGH)

    # As a surface

    name = "soak"
    assurance: Any = "local_ui"

    async def offer(self, interaction: Any) -> Decision:
        """Leave the answer to who follows what happens."""
        return await asyncio.Event().wait()  # type: ignore[return-value]  # it never comes

    async def answer(self) -> None:
        """Decide on every question, and write down what was taken."""
        async for event in self.host.events():
            if isinstance(event, QuestionAsked):
                self.host.beside(self.decide(event.interaction))

    async def decide(self, asked: Any) -> None:
        """Decide on one."""
        attempt, payload = asked.attempt, asked.payload
        what = getattr(getattr(payload, "params", None), "message", "") or attempt.arguments["lot"]
        self.wrote("asked", attempt.action, *what.split())
        edited = {"edited": {"name": "red"}} if attempt.action != "tool.call" else {}
        scope = self.chance.choice(("once", "arguments", "once"))
        remember = scope if attempt.action == "tool.call" else "once"
        decision = Decision(verdict="allow", by="soak", remember=remember, **edited)
        if await self.host.view.decide(asked.id, decision):
            self.wrote("decided", attempt.action, attempt.id, *what.split())

    def wrote(self, *words: str) -> None:
        """One line that outlives this process."""
        file = os.open(self.folder / "told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, (" ".join(words) + "\n").encode())
        finally:
            os.close(file)

    # Calls

    async def calls(self) -> None:
        """Call, one after the other."""
        while True:
            server, tool = self.chance.choice(TOOLS)
            lot = f"t{self.said['number']}x{next(self.numbers)}"
            arguments = {"lot": lot}
            point = self.said["point"]
            if point in {"before", "after"} and tool == "buy" and self.chance.random() < 0.3:
                arguments["killing"] = point
            try:
                await self.host.call(tool, arguments, server=server)
            except (HostError, IsthmusError) as error:
                self.wrote("failed", lot, type(error).__name__)
            else:
                self.wrote("returned", lot)
            for grant in self.host.grants.all():
                self.wrote("grant", grant.id)

    async def work(self) -> None:
        """Until the end, which comes from outside or from within."""
        self.arm(self.said["point"])
        async with self.host:
            print("open", flush=True)
            answering = asyncio.ensure_future(self.answer())
            if self.said["point"] != "finish":
                await asyncio.gather(*(self.calls() for _ in range(WORKERS)))
            for call in list(self.host.tasks.open):
                try:
                    await self.host.tasks.result(call)
                except IsthmusError as error:
                    self.wrote("lost", call, type(error).__name__)
            answering.cancel()

    # Points

    def arm(self, point: str) -> None:
        """Be killed at a statement of the store, at one of its first turns."""
        if point == "checkpoint":
            sqlite.CHECKPOINT_COMMITS = 5
            self.arm_checkpoints(sqlite.WalCheckpoints._checkpoint)
        if ":" not in point:
            return
        statement, _, turn = point.partition(":")
        left = itertools.count(int(turn), -1)
        connect = self.host.state.database.connect

        def connected() -> Any:
            db = connect()
            db.set_trace_callback(counting(statement, left))
            return db

        self.host.state.database.connect = connected  # type: ignore[method-assign]  # to watch it

    @staticmethod
    def arm_checkpoints(plain: Callable[[Any], None]) -> None:
        """Be killed in the middle of what is moved into the file."""

        def checkpoint(self: Any) -> None:
            threading.Thread(target=plain, args=(self,)).start()
            dead()

        sqlite.WalCheckpoints._checkpoint = checkpoint  # type: ignore[method-assign]  # to meddle


def counting(statement: str, left: Any) -> Callable[[str], None]:
    """Kills before the n-th statement of a kind."""

    def traced(sql: str) -> None:
        if statement in sql and next(left) <= 0:
            dead()

    return traced


def main() -> None:
    """Work."""
    logging.getLogger("isthmus").setLevel(logging.CRITICAL)
    writer.SEGMENT_ROWS = SEGMENT
    asyncio.run(Work(json.loads(sys.argv[1])).work())


if __name__ == "__main__":
    main()
