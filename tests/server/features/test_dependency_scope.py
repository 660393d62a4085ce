"""Dependencies: made before a call, closed after it, hidden from callers, and replaced in tests."""

import asyncio
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import pytest

from isthmus import Accepted, Context, Inject, Principal, Server, ToolError
from isthmus.errors import CallTimedOut, Refused, UsageError
from isthmus.server.schema.dependency_plan import make_plan
from isthmus.testing import connect, every_revision, script
from isthmus.testing.faults import until
from isthmus.types import PromptReference

MODERN, LEGACY = "2026-07-28", "2025-11-25"


@dataclass
class User:
    name: str


def current_user(ctx: Context) -> User:
    return User(ctx.client.name)


async def greeting(user: Annotated[User, Inject(current_user)], word: str) -> str:
    return f"{word} {user.name}"


@pytest.fixture
def log():
    """What happened, in order."""
    return []


@pytest.fixture
def server():
    return Server("injected", debug=True)


async def call(server, name="tool", revision=None, **arguments):
    """The text that a tool answers."""
    async with connect(server, revision=revision) as client:
        return (await client.call_tool(name, arguments)).text


# What they are given, and what nobody sees


@every_revision
async def test_a_dependency_is_made_for_a_call_and_takes_others_and_arguments(server, revision):
    """Plain and async, nested, with the context and an argument of the call."""

    @server.tool
    async def tool(
        word: str,
        said: Annotated[str, Inject(greeting)],
        user: Annotated[User, Inject(current_user)],
    ) -> str:
        return f"{said}, {user.name} ({word})"

    async with connect(server, revision=revision) as client:
        (shown,) = await client.list_tools()
        answer = await client.call_tool("tool", {"word": "hello"})
        sent = await client.call_tool("tool", {"word": "hello", "user": {"name": "evil"}})

    name = answer.text.split()[1].rstrip(",")
    assert f"hello {name}, {name} (hello)" == answer.text
    assert ["word"] == list(shown.input_schema["properties"])
    assert sent.is_error
    assert "user" in sent.text


async def test_every_kind_of_function_makes_a_value(server, log):  # noqa: C901 - seven functions
    """Plain, async, generators of both kinds, classes, partials, methods, objects, lambdas, context managers."""

    class Service:
        def __init__(self, user: Annotated[User, Inject(current_user)]) -> None:
            self.user = user

        def method(self) -> str:
            return "method"

    class Called:
        async def __call__(self, ctx: Context) -> str:
            return ctx.method

    def plain() -> str:
        return threading.current_thread().name

    def generator():
        yield threading.current_thread().name
        log.append("generator")

    async def agenerator():
        yield "agenerator"
        log.append("agenerator")

    @asynccontextmanager
    async def managed():
        yield "managed"
        log.append("managed")

    def give(what: str) -> str:
        return what

    async def first(
        a: Annotated[Service, Inject(Service)],
        b: Annotated[str, Inject(Called())],
        c: Annotated[str, Inject(plain)],
        d: Annotated[str, Inject(generator)],
    ) -> list[str]:
        return [type(a).__name__, b, c, d]

    @server.tool
    async def tool(
        a: Annotated[list, Inject(first)],
        b: Annotated[str, Inject(agenerator)],
        c: Annotated[str, Inject(managed)],
        d: Annotated[str, Inject(partial(give, what="p"))],
    ) -> str:
        return "|".join([*a, b, c, d])

    said = (await call(server)).split("|")

    assert ["Service", "tools/call"] == said[:2]
    assert said[2].startswith("isthmus_worker")
    assert said[3].startswith("isthmus_worker")
    assert ["agenerator", "managed", "p"] == said[4:]
    assert ["managed", "agenerator", "generator"] == log


async def test_a_value_is_made_once_in_a_call_where_nobody_says_otherwise(server, log):
    """Cached in the call, and never beyond it; cached=False makes one for each."""

    async def token() -> int:
        log.append("made")
        return len(log)

    async def doubled(a: Annotated[int, Inject(token)]) -> int:
        return 2 * a

    @server.tool
    async def tool(
        a: Annotated[int, Inject(token)],
        b: Annotated[int, Inject(doubled)],
        c: Annotated[int, Inject(token, cached=False)],
    ) -> str:
        return f"{a} {b} {c}"

    assert "1 2 2" == await call(server)
    assert "3 6 4" == await call(server)


async def test_a_default_of_a_dependency_is_out_of_reach_of_callers(server):
    """Attack: an argument that happens to have the name of a setting."""

    def database(url: str = "sqlite://safe") -> str:
        return url

    @server.tool
    async def tool(url: str, db: Annotated[str, Inject(database)]) -> str:
        return f"{url} {db}"

    assert "evil://x sqlite://safe" == await call(server, url="evil://x")


@pytest.mark.parametrize("blocking", [True, False])
async def test_plain_tools_and_arguments_by_name_have_them_too(server, blocking):
    """In a thread or not, and behind a default."""

    def tool(
        a: int = 2, *, ctx: Context, name: Annotated[User, Inject(current_user, blocking=blocking)]
    ) -> str:
        return f"{a} {ctx.method} {type(name).__name__}"

    server.add_tool(tool, blocking=blocking)
    assert "2 tools/call User" == await call(server)


async def test_resources_prompts_completions_and_methods_have_them(server, log):
    """Wherever a function of the server is called."""

    async def place():
        yield "here"
        log.append("closed")

    @server.resource("notes://{id}")
    async def note(id: str, place: Annotated[str, Inject(place)]) -> str:
        return f"{id} {place}"

    @server.prompt
    def ask(topic: str, place: Annotated[str, Inject(place)]) -> str:
        return f"{topic} {place}"

    @ask.completes("topic")
    async def topics(typed: str, place: Annotated[str, Inject(place)]) -> list[str]:
        return [f"{typed} {place}"]

    @server.method("acme/where", params=dict, result=dict)
    async def where(params: dict, place: Annotated[str, Inject(place)]) -> dict:
        return {**params, "place": place}

    async with connect(server) as client:
        assert "7 here" == (await client.read_resource("notes://7")).contents[0].text
        assert (
            "tea here"
            == (await client.get_prompt("ask", {"topic": "tea"})).messages[0].content.text
        )
        done = await client.complete(PromptReference(name="ask"), "topic", "t")
        assert ["t here"] == done.values
        assert "here" == (await client.request("acme/where", {"a": 1}, dict))["place"]
    assert ["closed"] * 4 == log


# Their end


def make_generators(log):
    """A generator that depends on another one; both write down what they see."""

    async def outer():
        log.append("open outer")
        try:
            yield "outer"
        except BaseException as error:
            log.append(f"outer {type(error).__name__}")
            raise
        finally:
            log.append("close outer")

    def inner(outer: Annotated[str, Inject(outer)]):
        log.append("open inner")
        try:
            yield "inner"
        except BaseException as error:
            log.append(f"inner {type(error).__name__}")
            raise
        finally:
            log.append("close inner")

    return inner


async def test_generators_are_closed_in_reverse_order_before_the_answer(server, log):
    """The innermost first; what commits there has committed when the answer is sent."""
    inner = make_generators(log)

    @server.tool
    async def tool(a: Annotated[str, Inject(inner)]) -> str:
        log.append("call")
        return a

    assert "inner" == await call(server)
    assert ["open outer", "open inner", "call", "close inner", "close outer"] == log


async def test_an_exception_is_thrown_into_generators_and_goes_on(server, log):
    """So that a transaction rolls back."""
    inner = make_generators(log)

    @server.tool
    async def tool(a: Annotated[str, Inject(inner)]) -> str:
        raise ToolError("no")

    assert "no" == await call(server)
    assert ["inner ToolError", "close inner", "outer ToolError", "close outer"] == log[2:]


async def test_a_generator_cannot_swallow_a_failure_and_may_change_it(server):
    """There is no result to go on with; a failure that the author names better is another one."""

    async def swallows():
        with suppress(ToolError):
            yield 1

    async def renames():
        try:
            yield 1
        except ToolError as error:
            raise ToolError("renamed") from error

    @server.tool
    async def swallowed(a: Annotated[int, Inject(swallows)]) -> str:
        raise ToolError("kept")

    @server.tool
    async def renamed(a: Annotated[int, Inject(renames)]) -> str:
        raise ToolError("kept")

    assert "kept" == await call(server, "swallowed")
    assert "renamed" == await call(server, "renamed")


async def test_what_fails_at_its_end_fails_the_call(server):
    """A commit that fails is no success."""

    async def commits():
        yield 1
        raise ToolError("the commit failed")

    @server.tool
    async def tool(a: Annotated[int, Inject(commits)]) -> str:
        return "done"

    assert "the commit failed" == await call(server)


async def test_what_was_opened_is_closed_where_a_later_one_fails(server, log):
    """Also when the call never begins."""
    inner = make_generators(log)

    async def fails(a: Annotated[str, Inject(inner)]) -> int:
        raise ToolError("not today")

    @server.tool
    async def tool(a: Annotated[int, Inject(fails)]) -> str:
        return "never"

    assert "not today" == await call(server)
    assert {"close inner", "close outer"} <= set(log)


async def test_a_cancelled_call_closes_them(server, log):
    """Cancellation is thrown in like anything else."""
    inner = make_generators(log)

    @server.tool
    async def tool(a: Annotated[str, Inject(inner)]) -> str:
        await asyncio.Event().wait()
        return a

    async with connect(server) as client:
        with pytest.raises(CallTimedOut):
            await client.call_tool("tool", timeout=0.05)
        await until(lambda: "close outer" in log)

    assert "inner CancelledError" in log
    assert "outer CancelledError" in log


async def test_a_thread_that_opens_something_while_its_call_is_cancelled_closes_it(server, log):
    """A thread cannot be stopped: it is waited for."""
    goes_on, opened, closed = threading.Event(), asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow():
        log.append("opening")
        loop.call_soon_threadsafe(opened.set)
        goes_on.wait(5)
        yield 1
        log.append("never")

    def closing():
        try:
            yield from slow()
        finally:
            log.append("closed")
            loop.call_soon_threadsafe(closed.set)

    @server.tool
    async def tool(a: Annotated[int, Inject(closing)]) -> str:
        return "never"

    async with connect(server) as client:
        calling = asyncio.ensure_future(client.call_tool("tool"))
        await opened.wait()
        calling.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        async with asyncio.timeout(5):
            await closed.wait()
    assert ["opening", "closed"] == log


# Questions


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_a_dependency_asks_and_what_it_opened_is_opened_anew_in_each_round(
    server, log, revision
):
    """Since 2026-07-28 a question ends the round, and with it what was opened in it."""
    inner = make_generators(log)

    async def confirmed(ctx: Context, a: Annotated[str, Inject(inner)]) -> bool:
        return await ctx.elicit("Sure?", bool) == Accepted(True)

    @server.tool
    async def tool(sure: Annotated[bool, Inject(confirmed)]) -> str:
        return f"{sure}"

    user = script(Accepted({"value": True}))
    async with connect(server, revision=revision, elicit=user, strict=False) as client:
        assert "True" == (await client.call_tool("tool")).text
    rounds = 1 if revision == LEGACY else 2
    assert rounds == log.count("open outer")
    assert rounds == log.count("close outer")
    assert rounds - 1 == log.count("outer CancelledError")


async def test_a_task_closes_them_at_its_end(server, log):
    """A call that is a task has them for as long as it works."""
    inner = make_generators(log)

    @server.tool(task="optional")
    async def tool(a: Annotated[str, Inject(inner)]) -> str:
        return a

    async with connect(server, revision=LEGACY) as client:
        task = await client.start_tool("tool")
        assert "inner" == (await task.result()).text
    assert "close outer" == log[-1]


# Principals


async def test_a_principal_who_must_be_there_is_asked_for_by_a_dependency(server):
    """As by a tool: a call by nobody is refused."""

    def owner(who: Principal) -> str:
        return who.subject

    def perhaps(who: Principal | None) -> str:
        return repr(who)

    @server.tool
    async def tool(a: Annotated[str, Inject(owner)]) -> str:
        return a

    @server.tool
    async def open_to_all(a: Annotated[str, Inject(perhaps)]) -> str:
        return a

    assert "None" == await call(server, "open_to_all")
    with pytest.raises(Refused, match="takes an authenticated caller"):
        await call(server)


# Mistakes are told at declaration


def one(b: "Annotated[int, Inject(two)]") -> int:
    return b


def two(a: Annotated[int, Inject(one)]) -> int:
    return a


def lacks(thing: int) -> int:
    return thing


def _declare(server, mark=None, default=None):
    if default is not None:

        async def tool(a: int = default) -> str:
            return ""
    else:

        async def tool(x: str, a: mark) -> str:
            return ""

    server.add_tool(tool)


@pytest.mark.parametrize(
    ("mark", "default", "told"),
    [
        (Annotated[int, Inject(one)], None, "a cycle: one → two → one"),
        (
            Annotated[int, Inject(lacks)],
            None,
            r"dependency lacks: nothing provides 'thing'.*there is x",
        ),
        (Annotated[int, Inject], None, "Inject takes the function"),
        (Annotated[int, Inject(lacks)] | None, None, "outermost"),
        (None, Inject(lacks), "belongs into the annotation"),
    ],
)
def test_what_cannot_be_injected_is_refused_at_declaration(server, mark, default, told):
    """Where it stands, what is wrong, and how to mend it."""
    with pytest.raises(UsageError, match=told):
        _declare(server, mark, default)


def test_inject_takes_a_function():
    """Ours: a value is no function."""
    with pytest.raises(UsageError, match="takes the function"):
        Inject(5)


# Overrides


async def test_a_dependency_is_replaced_in_a_block_and_back_after_it(server):
    """Also where it is taken by another one, and by a function that takes less or more."""

    @server.tool
    async def tool(word: str, said: Annotated[str, Inject(greeting)]) -> str:
        return said

    async def with_more(word: str, ctx: Context) -> User:
        return User(f"{word} {ctx.method}")

    with server.override({current_user: lambda: User("ann")}):
        assert "hi ann" == await call(server, word="hi")
        with server.override({current_user: with_more}):
            assert "hi hi tools/call" == await call(server, word="hi")
        assert "hi ann" == await call(server, word="hi")
    assert "ann" not in await call(server, word="hi")


def test_an_override_of_what_nothing_takes_is_refused(server):
    """A misspelt override would leave the real one in place."""
    with (
        pytest.raises(UsageError, match="nothing here depends on greeting"),
        server.override({greeting: str}),
    ):
        pass

    @server.tool
    async def tool(a: Annotated[User, Inject(current_user)]) -> str:
        return a.name

    with pytest.raises(UsageError, match="by a function"), server.override({current_user: 5}):
        pass


def test_a_function_without_dependencies_has_no_plan(server):
    """Nothing is planned, imported or wrapped for it."""
    plan = make_plan((), (), Context)
    assert () == plan.steps

    @server.tool
    async def tool(a: int) -> int:
        return a

    assert server._declared.tools.listing.get("tool").function.plan is None


def test_overrides_that_overlap_leave_nothing_behind(server):
    """Ours: two tasks of one test program, whose blocks end in the order in which they began."""

    def make() -> int:
        return 1

    @server.tool
    def show(value: Annotated[int, Inject(make)]) -> int:
        return value

    first, second = server.override({make: lambda: 2}), server.override({make: lambda: 3})
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    between = dict(server._settings.overrides)
    second.__exit__(None, None, None)

    assert 3 == between[make]()
    assert {} == server._settings.overrides
