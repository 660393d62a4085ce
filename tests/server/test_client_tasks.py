"""Questions that a client answers as tasks: what a server asks about them, and when it stops."""

import asyncio
import contextlib
import itertools

import msgspec
import pytest
from msgspec import Struct

from isthmus import Accepted, Context, Server
from isthmus.core.caller import Caller
from isthmus.errors import CallTimedOut, Refuse, TaskCancelled
from isthmus.revisions import BY_NAME
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.server.guard.limits import Limits
from isthmus.testing import VirtualLoop, connect
from isthmus.transports.memory import open_pair
from isthmus.wire import (
    CallToolParams,
    CallToolResult,
    CancelTaskResult,
    ClientCapabilities,
    CreateMessageResult,
    CreateTaskResult,
    ElicitResult,
    GetTaskResult,
    Implementation,
    InitializedParams,
    InitializeParams,
    InitializeResult,
    Task,
    TaskStatusParams,
    TextContent,
)
from support.event_loop import run_turns

LEGACY = "2025-11-25"
ALL = {
    "elicitation": {},
    "sampling": {},
    "tasks": {
        "list": {},
        "cancel": {},
        "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}},
    },
}
ACCEPTED = ElicitResult(action="accept", content={"size": 3})


class Size(Struct):
    size: int


def shop(**options):
    """A server that asks, and waits no longer than it is told to."""
    server = Server("shop", **options)
    server.ended = []

    @server.tool
    async def choose(ctx: Context, patience: float | None = None) -> str:
        """Ask for a size."""
        try:
            async with asyncio.timeout(patience):
                answer = await ctx.elicit("Size?", Size, task=True)
        except BaseException as error:
            server.ended.append(type(error))
            raise
        return f"size {answer.value.size}"

    @server.tool(task="optional")
    async def order(ctx: Context) -> str:
        """Ask for a size, in a task, too."""
        answer = await ctx.elicit("Size?", Size, task=True)
        return f"size {answer.value.size}"

    return server


def task(status="working", *, poll=1000, id="t"):
    moment = "2026-11-21T10:00:00Z"
    return {
        "task_id": id,
        "status": status,
        "created_at": moment,
        "last_updated_at": moment,
        "ttl": None,
        "poll_interval": poll,
    }


class Theirs:
    """Somebody else's client, whose tasks go as a test has it.

    Args:
        statuses: how the task stands, each time that is asked.
        first: what a question is answered with.
        poll: milliseconds it wants between two questions.
    """

    def __init__(self, *statuses, first=None, poll=1000):
        self.statuses = iter(statuses)
        self.first = first or CreateTaskResult(task=Task(**task(poll=poll)))
        self.poll = poll
        self.asked = []
        self.params = []
        self.peer = None
        self.go = asyncio.Event()
        self.go.set()

    def route(self, method, answer):
        async def serve(params, _inbound):
            self.asked.append((method, round(asyncio.get_running_loop().time())))
            self.params.append(params)
            return await answer()

        return serve

    async def begin(self):
        await self.go.wait()
        return self.first

    async def get(self):
        status = next(self.statuses)
        if isinstance(status, Exception):
            raise status
        return GetTaskResult(**task(status, poll=self.poll))

    async def result(self):
        return ACCEPTED

    async def cancel(self):
        return CancelTaskResult(**task("cancelled"))

    async def tell(self, status, id="t"):
        """Send a notification of a status."""
        await self.peer.note("notifications/tasks/status", TaskStatusParams(**task(status, id=id)))

    @property
    def methods(self):
        return [method for method, _ in self.asked]

    @contextlib.asynccontextmanager
    async def joined(self, server, capabilities=None):
        """The client's end of a connection to a server."""
        near, far = open_pair()
        routes = {
            "elicitation/create": self.begin,
            "tasks/get": self.get,
            "tasks/result": self.result,
            "tasks/cancel": self.cancel,
        }
        router = Router({m: self.route(m, fn) for m, fn in routes.items()}, sender="server")
        self.peer = peer = Peer(near, router, side="client")
        work = [
            asyncio.ensure_future(end.run())
            for end in (Peer(far, server.router, side="server"), peer)
        ]
        params = InitializeParams(
            protocol_version=LEGACY,
            capabilities=msgspec.convert(capabilities or ALL, ClientCapabilities),
            client_info=Implementation(name="theirs", version="1"),
        )
        await peer.call("initialize", params, InitializeResult)
        peer.agree(Caller(revision=BY_NAME[LEGACY]))
        await peer.note("notifications/initialized", InitializedParams())
        try:
            yield self
        finally:
            await peer.close()
            await asyncio.gather(*work)
            await server.close()

    async def choose(self, **arguments):
        """Call the tool that asks."""
        params = CallToolParams(
            name="choose", arguments=msgspec.Raw(msgspec.json.encode(arguments))
        )
        return await self.peer.call("tools/call", params, CallToolResult)


def read_text(result):
    return result.content[0].text


def run(work):
    """Run a coroutine on a clock that does not wait."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


# How the answer is come by


@pytest.mark.covers("tasks.asked.polls", "tasks.asked.interval")
def test_a_client_that_says_nothing_is_asked_at_its_interval():
    """Spec: MUST NOT rely on notifications, and SHOULD respect the interval."""

    async def work():
        theirs = Theirs("working", "working", "completed", poll=20_000)
        async with theirs.joined(shop()):
            begun = round(asyncio.get_running_loop().time())
            return read_text(await theirs.choose()), [(m, at - begun) for m, at in theirs.asked]

    expected = [
        ("elicitation/create", 0),
        ("tasks/get", 20),
        ("tasks/get", 40),
        ("tasks/get", 60),
        ("tasks/result", 60),
    ]

    assert ("size 3", expected) == run(work())


@pytest.mark.covers("tasks.asked.polls")
def test_a_notification_saves_the_wait():
    """Ours: of our task alone, whatever else the client tells of."""

    async def work():
        theirs = Theirs(poll=1_000_000)
        async with theirs.joined(shop()):
            call = asyncio.ensure_future(theirs.choose())
            await run_turns(30)
            for status, id in (("completed", "other"), ("working", "t"), ("completed", "t")):
                await theirs.tell(status, id)
                await run_turns(30)
            return read_text(await call), theirs.methods

    assert ("size 3", ["elicitation/create", "tasks/result"]) == run(work())


@pytest.mark.covers("tasks.asked.polls")
def test_a_notification_may_come_before_the_task():
    """Ours: two messages may overtake each other, and nothing is lost by that."""

    async def work():
        theirs = Theirs(poll=1_000_000)
        theirs.go.clear()
        async with theirs.joined(shop()):
            call = asyncio.ensure_future(theirs.choose())
            await run_turns(30)
            await theirs.tell("completed")
            await run_turns(30)
            theirs.go.set()
            return read_text(await call), theirs.methods

    assert ("size 3", ["elicitation/create", "tasks/result"]) == run(work())


def test_a_flood_of_notifications_is_not_kept():
    """Ours: as many as a client may have open, and no more; ours is heard."""

    async def work():
        theirs = Theirs(poll=1_000_000)
        theirs.go.clear()
        async with theirs.joined(shop()):
            call = asyncio.ensure_future(theirs.choose())
            await run_turns(30)
            for number in range(1000):
                await theirs.tell("completed", f"other {number}")
            await run_turns(5000)
            theirs.go.set()
            await run_turns(30)
            await theirs.tell("completed")
            return read_text(await call), theirs.methods

    assert ("size 3", ["elicitation/create", "tasks/result"]) == run(work())


@pytest.mark.covers("tasks.asked.input")
def test_a_task_that_waits_for_input_is_fetched():
    """Spec: SHOULD preemptively call tasks/result."""

    async def work():
        theirs = Theirs("input_required")
        async with theirs.joined(shop()):
            return read_text(await theirs.choose()), theirs.methods

    expected = ["elicitation/create", "tasks/get", "tasks/result"]

    assert ("size 3", expected) == run(work())


def test_an_answer_at_once_is_the_answer():
    """Ours: a client that declares tasks and makes none is understood."""

    async def work():
        theirs = Theirs(first=ACCEPTED)
        async with theirs.joined(shop()):
            return read_text(await theirs.choose()), theirs.methods

    assert ("size 3", ["elicitation/create"]) == run(work())


# Whom a task is asked for


@pytest.mark.covers("tasks.asked.declared")
@pytest.mark.parametrize(
    "capabilities",
    [
        {"elicitation": {}},
        {"elicitation": {}, "tasks": {}},
        {"elicitation": {}, "sampling": {}, "tasks": {"requests": {}}},
        {"elicitation": {}, "tasks": {"requests": {"sampling": {"createMessage": {}}}}},
        {"elicitation": {}, "tasks": {"requests": {"elicitation": {}}}},
    ],
)
async def test_no_task_is_asked_for_that_was_not_declared(capabilities):
    """Spec: the list of requests is exhaustive."""
    theirs = Theirs(first=ACCEPTED)
    async with theirs.joined(shop(), capabilities):
        assert "size 3" == read_text(await theirs.choose())

    assert not theirs.params[0].task
    assert ["elicitation/create"] == theirs.methods


@pytest.mark.covers("tasks.asked.declared")
@pytest.mark.parametrize("revision", [name for name in BY_NAME if name >= "2025-06-18"])
@pytest.mark.parametrize("tool", ["choose", "order"])
async def test_every_client_is_asked_by_the_same_function(revision, tool):
    """Ours: task=True says that it may be one; in a task, it is a question as any other."""
    wire = []
    answers = {"elicit": lambda _question: Accepted({"size": 3}), "answer_tasks": True}
    async with connect(shop(), revision=revision, wire=wire, **answers) as client:
        task = await client.start_tool(tool)
        assert "size 3" == (await task.result()).text
    asked = [data for side, data in wire if side == "server" and b'"elicitation/create"' in data]

    assert (revision == LEGACY and tool == "choose") == (b'"task":{' in asked[0])


async def test_all_that_is_asked_may_be_a_task():
    """Spec: elicitation in either mode, and sampling."""
    server = Server("s")

    @server.tool
    async def everything(ctx: Context) -> str:
        """Ask all there is to ask."""
        page = await ctx.elicit_url("Pay", "https://example.com/pay", task=True)
        haiku = await ctx.sample("A haiku", max_tokens=9, task=True)
        return f"{type(page).__name__} {haiku.text}"

    def write(_params):
        return CreateMessageResult(
            role="assistant", content=TextContent(text="five"), model="m", meta={"a.b/c": 1}
        )

    answers = {"elicit": lambda _question: Accepted(None), "sample": write, "answer_tasks": True}
    wire = []
    async with connect(server, revision=LEGACY, wire=wire, **answers) as client:
        assert "Accepted five" == (await client.call_tool("everything")).text

    assert 2 == sum(b'"tasks/result"' in data for _, data in wire)


# When nobody waits any more


@pytest.mark.covers("tasks.asked.withdrawn")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_gives_up_cancels_the_task(moment):
    """Spec: by tasks/cancel and its id, whether that is known yet or comes later."""

    async def work():
        theirs = Theirs(*["working"] * 9)
        if moment == "before":
            theirs.go.clear()
        async with theirs.joined(shop()):
            result = await theirs.choose(patience=2.5)
            theirs.go.set()
            await run_turns(30)
            return result.is_error, theirs.methods[-1], theirs.methods.count("tasks/cancel")

    assert (True, "tasks/cancel", 1) == run(work())


@pytest.mark.covers("tasks.asked.withdrawn")
def test_who_is_cancelled_cancels_the_task():
    """Ours: with the call, its questions end, though nothing more is said about it."""

    async def work():
        theirs, server = Theirs(*["working"] * 9), shop()
        async with theirs.joined(server):
            call = asyncio.ensure_future(theirs.choose())
            await asyncio.sleep(1.5)
            call.cancel()
            await asyncio.sleep(0.5)
            return theirs.methods[-1], server.ended

    assert ("tasks/cancel", [asyncio.CancelledError]) == run(work())


def test_an_answer_that_takes_too_long_is_given_up():
    """Ours: Limits.answer_timeout bounds a task as it bounds a question."""

    async def work():
        theirs, server = Theirs(*["working"] * 9), shop(limits=Limits(answer_timeout=4.5))
        async with theirs.joined(server):
            await theirs.choose()
            return theirs.params[0].task.ttl, theirs.methods[-1], server.ended

    assert (4500, "tasks/cancel", [CallTimedOut]) == run(work())


def test_nothing_is_cancelled_that_cannot_be():
    """Spec: tasks.cancel says whether it can."""
    tasks = {"requests": {"elicitation": {"create": {}}}}

    async def work():
        theirs = Theirs(*["working"] * 9)
        async with theirs.joined(shop(), {"elicitation": {}, "tasks": tasks}):
            await theirs.choose(patience=2.5)
            await run_turns(30)
            return theirs.methods

    assert ["elicitation/create", "tasks/get", "tasks/get"] == run(work())


@pytest.mark.parametrize(
    ("statuses", "raised"),
    [(["cancelled"], TaskCancelled), ([Refuse(-32602, "Task not found")], None)],
)
def test_a_task_that_comes_to_nothing(statuses, raised):
    """Ours: its end is an exception, and there is nothing left to cancel."""

    async def work():
        theirs, server = Theirs(*statuses), shop()
        async with theirs.joined(server):
            await theirs.choose()
            await run_turns(30)
            return theirs.methods, server.ended

    methods, ended = run(work())

    assert ["elicitation/create", "tasks/get"] == methods
    assert raised in {ended[0], None}


def test_many_questions_are_told_apart():
    """Ours: each task is its own question's, in one call and in many."""

    async def work():
        numbers, theirs = itertools.count(), Theirs(poll=1_000_000)

        async def begin():
            return CreateTaskResult(task=Task(**task(id=f"t{next(numbers)}", poll=1_000_000)))

        theirs.begin = begin
        async with theirs.joined(shop()):
            calls = [asyncio.ensure_future(theirs.choose()) for _ in range(5)]
            await run_turns(30)
            for number in (3, 0, 4, 1, 2):
                await theirs.tell("completed", f"t{number}")
                await run_turns(30)
            results = await asyncio.gather(*calls)
            return [p.task_id for p in theirs.params[5:]], {read_text(result) for result in results}

    assert (["t3", "t0", "t4", "t1", "t2"], {"size 3"}) == run(work())
