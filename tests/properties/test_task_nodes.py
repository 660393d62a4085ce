"""Tasks over nodes under anything that may happen to them and to the nodes, in any order."""

import asyncio
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec import Struct

from isthmus import Context
from isthmus.nodes.node import OUTCOME_UNKNOWN
from isthmus.tasks.task_nodes import MAX_RESTARTS
from isthmus.testing import VirtualLoop
from isthmus.wire.jsonrpc import ErrorBody
from support.examples import count_examples
from support.server.both_eras import LEGACY, MODERN, accept_form
from support.tasks.task_fleet import DEATH_S, FINAL, TaskFleet, begin_task

MAX_NODES = 4

BOTH = st.sampled_from([LEGACY, MODERN])


class Word(Struct):
    word: str


class TaskModel(Struct):
    """What we know of one task.

    Attributes:
        id: its name.
        number: which it is among all.
        revision: of the client that began it.
        retry: whether it may run twice.
        final: the status that it was seen to end with, or None.
    """

    id: str
    number: int
    revision: str
    retry: bool
    final: str | None = None


class TasksOverNodes(RuleBasedStateMachine):
    """Clients that begin, read, answer and cancel tasks, on nodes that die, stop and go on."""

    tasks = Bundle("tasks")

    def __init__(self):
        super().__init__()
        self.loop = VirtualLoop()
        self.gates = {}
        self.runs = Counter()
        self.models = []
        self.fleet = self.run(self._make_fleet())

    async def _make_fleet(self):
        fleet = TaskFleet(self._declare)
        await fleet.start(2)
        return fleet

    def _declare(self, server, _node):
        async def work(number: int, ctx: Context) -> str:
            self.runs[number] += 1
            gate = self.gates.setdefault(number, asyncio.Event())
            async with asyncio.TaskGroup() as group:
                asked = group.create_task(ctx.elicit("Which?", Word, key="which"))
                await gate.wait()
                asked.cancel()
            return str(number)

        server.add_tool(work, name="plain", task="optional")
        server.add_tool(work, name="safe", task="optional", retry_safe=True)

    def run(self, work):
        return self.loop.run_until_complete(work)

    @property
    def serving(self):
        return [node for node in self.fleet.nodes if node.alive and not node.paused]

    def choose(self, data, nodes=None):
        return data.draw(st.sampled_from(self.serving if nodes is None else nodes))

    def can_serve(self):
        return bool(self.serving)

    async def read(self, model, node, revision):
        """Read how a task stands; it never goes back."""
        found = await node.client(revision).once("tasks/get", {"taskId": model.id})
        if isinstance(found, ErrorBody):
            # a node that was stopped may not have the store for a moment
            assert found.code == -31503, found
            return None
        status = found["status"]
        assert model.final in {None, status}, (model, found)
        if status == "failed":
            assert found["statusMessage"] == OUTCOME_UNKNOWN
        if status in FINAL:
            model.final = status
        return found

    @precondition(can_serve)
    @rule(target=tasks, data=st.data(), revision=BOTH, retry=st.booleans())
    def begin(self, data, revision, retry):
        number = len(self.models)
        client = self.choose(data).client(revision)
        name = "safe" if retry else "plain"
        id = self.run(begin_task(client, name, {"number": number}))
        self.models.append(TaskModel(id, number, revision, retry))
        return self.models[-1]

    @precondition(can_serve)
    @rule(data=st.data(), model=tasks, revision=BOTH)
    def look(self, data, model, revision):
        self.run(self.read(model, self.choose(data), revision))

    @precondition(can_serve)
    @rule(data=st.data(), model=tasks, revision=BOTH)
    def cancel(self, data, model, revision):
        async def work():
            client = self.choose(data).client(revision)
            answer = await client.once("tasks/cancel", {"taskId": model.id})
            if not isinstance(answer, ErrorBody) and revision == LEGACY:
                assert model.final is None
                model.final = answer["status"]

        self.run(work())

    @precondition(can_serve)
    @rule(data=st.data(), model=tasks)
    def answer(self, data, model):
        async def work():
            node = self.choose(data)
            found = await self.read(model, node, MODERN)
            if found is None or found["status"] != "input_required":
                return
            responses = {key: accept_form(word="x") for key in found["inputRequests"]}
            params = {"taskId": model.id, "inputResponses": responses}
            answer = await node.client(MODERN).once("tasks/update", params)
            assert not isinstance(answer, ErrorBody) or answer.code == -31503

        self.run(work())

    @rule(model=tasks)
    def finish(self, model):
        self.gates.setdefault(model.number, asyncio.Event()).set()
        self.run(asyncio.sleep(0.1))

    @rule(data=st.data())
    def kill(self, data):
        alive = [node for node in self.fleet.nodes if node.alive]
        if alive:
            self.choose(data, alive).kill()

    @precondition(can_serve)
    @rule(data=st.data())
    def pause(self, data):
        self.choose(data).pause()

    @rule(data=st.data())
    def resume(self, data):
        paused = [node for node in self.fleet.nodes if node.alive and node.paused]
        if paused:
            self.choose(data, paused).resume()

    @precondition(lambda self: sum(node.alive for node in self.fleet.nodes) < MAX_NODES)
    @rule()
    def start(self):
        self.run(self.fleet.start())

    @rule(seconds=st.sampled_from([0.5, 3.0, DEATH_S]))
    def wait(self, seconds):
        self.run(asyncio.sleep(seconds))

    def teardown(self):
        try:
            self.run(self._see_all_ends())
        finally:
            self.run(self.fleet.close())
            while left := asyncio.all_tasks(self.loop):
                for task in left:
                    task.cancel()
                self.run(asyncio.wait(left, timeout=1))
            self.loop.close()

    async def _see_all_ends(self):
        """Whatever happened: every task ends, once, and no node keeps anything of it."""
        for node in self.fleet.nodes:
            if node.alive and node.paused:
                node.resume()
        for model in self.models:
            self.gates.setdefault(model.number, asyncio.Event()).set()
        await self.fleet.start()
        await asyncio.sleep(3 * DEATH_S)
        for model in self.models:
            for node in self.serving:
                found = await self.read(model, node, model.revision)
                assert found is not None
            assert model.final in FINAL, (model, found)
            assert self.runs[model.number] <= (1 + MAX_RESTARTS if model.retry else 1)
        assert all(len(node.book) == 0 for node in self.serving)
        assert [] == [*await self.fleet.keys("work/"), *await self.fleet.keys("call/")]


@pytest.mark.hypothesis
def test_every_task_ends_once_whatever_happens_to_the_nodes():
    """Ours: no status goes back, no task is lost, and none runs twice that must not."""
    run_state_machine_as_test(
        TasksOverNodes,
        settings=settings(max_examples=count_examples(60), stateful_step_count=30, deadline=None),
    )
