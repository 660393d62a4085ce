"""A server's tasks under anything that may happen to them, in any order, with time going by."""

import asyncio
import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec import Struct, structs

from isthmus import Context, Refuse, Server, ToolError
from isthmus.server.guard.limits import Limits
from isthmus.testing import VirtualLoop
from isthmus.wire import TASKS
from isthmus.wire.jsonrpc import ErrorBody
from support.examples import count_examples
from support.server.both_eras import ALL_CAPABILITIES, LEGACY, MODERN, EraClient, accept_form

EXTENDED = structs.replace(ALL_CAPABILITIES, extensions={TASKS: {}})
TTL = 100.0
FINAL = {"completed", "failed", "cancelled"}
PEOPLE = ["ann", "bob"]


class Word(Struct):
    word: str


class Model(Struct):
    """What we know of one task.

    Attributes:
        id: its name.
        owner: whose it is.
        number: which it is among all.
        until: when it is forgotten.
        final: the state it was seen in at its end, or None.
        heard: the answers that were acknowledged.
    """

    id: str
    owner: str
    number: int
    until: float
    final: dict | None = None
    heard: list[str] = []


class Tasks(RuleBasedStateMachine):
    """Two principals who start, look at, answer, cancel and finish tasks, in either shape."""

    tasks = Bundle("tasks")

    def __init__(self):
        super().__init__()
        self.loop = VirtualLoop()
        self.server = Server("s", limits=Limits(task_ttl=TTL, tasks_each=50))
        self.gates = {}
        self.asks = {}
        self.got = {}
        self.ended = set()
        self.models = []
        self.clients = {
            (who, revision): EraClient(
                self.server,
                revision,
                lambda *_: accept_form(word="x"),
                able=EXTENDED,
                principal=who,
            )
            for who in PEOPLE
            for revision in (LEGACY, MODERN)
        }
        self._offer()

    def _offer(self):
        @self.server.tool(task="optional")
        async def work(number: int, ctx: Context) -> str:
            """Do as one is told."""
            gate = self.gates[number] = asyncio.Queue()
            asked = []
            self.asks[number] = asked
            got = self.got[number] = []

            async def ask(key):
                got.append((await ctx.elicit(key, Word, key=key)).value.word)

            try:
                async with asyncio.TaskGroup() as group:
                    while (order := await gate.get()) is not None:
                        if isinstance(order, str):
                            asked.append(group.create_task(ask(order)))
                        else:
                            for task in asked:
                                task.cancel()
                            raise order
                return json.dumps(sorted(got))
            except* (ToolError, Refuse) as errors:
                raise errors.exceptions[0] from None
            finally:
                self.ended.add(number)

    def run(self, work):
        return self.loop.run_until_complete(work)

    async def settled(self):
        for _ in range(30):
            await asyncio.sleep(0)

    async def once(self, who, revision, method, params):
        outcome = await self.clients[who, revision].once(method, params)
        await self.settled()
        return outcome

    def call(self, who, revision, method, **params):
        return self.run(self.once(who, revision, method, params))

    def get(self, model, revision=MODERN, who=None):
        return self.call(who or model.owner, revision, "tasks/get", taskId=model.id)

    def there(self, model):
        return self.loop.time() < model.until

    @rule(target=tasks, who=st.sampled_from(PEOPLE), revision=st.sampled_from([LEGACY, MODERN]))
    def create(self, who, revision):
        number, began = len(self.models), self.loop.time()
        params = {"name": "work", "arguments": {"number": number}}
        if revision == LEGACY:
            answer = self.call(who, revision, "tools/call", **params, task={})
            id = answer["task"]["taskId"]
        else:
            id = self.call(who, revision, "tools/call", **params)["taskId"]
        model = Model(id, who, number, began + TTL)
        self.models.append(model)
        assert "working" == self.get(model)["status"]
        return model

    @rule(model=tasks, key=st.sampled_from(["a", "b", "c"]))
    def ask(self, model, key):
        self.gates[model.number].put_nowait(key)
        self.run(self.settled())

    @rule(model=tasks, word=st.sampled_from(["x", "y"]), data=st.data())
    def update(self, model, word, data):
        state = self.get(model)
        waiting = [] if isinstance(state, ErrorBody) else list(state.get("inputRequests", ()))
        keys = data.draw(st.lists(st.sampled_from([*waiting, "nobody"]), unique=True))
        answers = {key: accept_form(word=word) for key in keys}
        done = self.call(
            model.owner, MODERN, "tasks/update", taskId=model.id, inputResponses=answers
        )
        if isinstance(done, ErrorBody):
            assert not self.there(model)
            return
        model.heard += [word for key in keys if key in waiting]
        after = self.get(model)
        assert not set(keys) & set(after.get("inputRequests", ()))

    @rule(model=tasks, how=st.sampled_from(["finish", "tool", "refuse"]))
    def end(self, model, how):
        orders = {"finish": None, "tool": ToolError("no"), "refuse": Refuse(-1, "no")}
        self.gates[model.number].put_nowait(orders[how])
        self.run(self.settled())

    @rule(model=tasks, revision=st.sampled_from([LEGACY, MODERN]))
    def cancel(self, model, revision):
        before = self.get(model)
        done = self.call(model.owner, revision, "tasks/cancel", taskId=model.id)
        if isinstance(before, ErrorBody):
            assert -32602 == done.code
        elif before["status"] in FINAL:
            assert isinstance(done, ErrorBody) is (revision == LEGACY)
        else:
            assert "cancelled" == self.get(model)["status"]
            assert model.number in self.ended

    @rule(model=tasks, who=st.sampled_from(PEOPLE), revision=st.sampled_from([LEGACY, MODERN]))
    def a_stranger_tries(self, model, who, revision):
        if who != model.owner:
            assert -32602 == self.get(model, revision, who).code
            done = self.call(who, revision, "tasks/cancel", taskId=model.id)
            assert -32602 == done.code

    @rule(seconds=st.sampled_from([0.5, 30.0, 60.0]))
    def wait(self, seconds):
        self.run(asyncio.sleep(seconds))
        self.run(self.settled())

    @invariant()
    def tasks_are_there_until_their_time_is_over(self):
        for model in self.models:
            assert isinstance(self.get(model), ErrorBody) is not self.there(model)

    @invariant()
    def an_end_is_for_ever_and_has_every_answer(self):
        for model in self.models:
            state = self.get(model)
            if isinstance(state, ErrorBody):
                assert model.number in self.ended
                continue
            state.pop("_meta", None)
            if model.final is not None:
                assert model.final == state
            elif state["status"] in FINAL:
                model.final = state
                assert model.number in self.ended
                if state["status"] == "completed" and not state["result"].get("isError"):
                    assert sorted(model.heard) == json.loads(state["result"]["content"][0]["text"])

    @invariant()
    def every_answer_reached_its_question(self):
        for model in self.models:
            assert sorted(model.heard) == sorted(self.got[model.number])

    @invariant()
    def lists_are_of_ones_own(self):
        for who in PEOPLE:
            listed = self.call(who, LEGACY, "tasks/list")["tasks"]
            expected = {m.id for m in self.models if m.owner == who and self.there(m)}
            assert expected == {task["taskId"] for task in listed}

    def teardown(self):
        self.run(self.server.close())
        self.run(self.settled())
        assert set(range(len(self.models))) == self.ended
        self.loop.close()


@pytest.mark.hypothesis
def test_nothing_shakes_a_task():
    """Spec: ends are final, ttls kept, tasks apart; ours: no answer that was acknowledged is lost."""
    run_state_machine_as_test(
        Tasks,
        settings=settings(max_examples=count_examples(40), stateful_step_count=25, deadline=None),
    )
