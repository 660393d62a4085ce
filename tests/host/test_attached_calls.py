"""Programs that call through a host in another process: the same pipeline, and no say in it."""

import asyncio

import pytest

from isthmus import Server
from isthmus.cards.cards import make_card
from isthmus.errors import UsageError
from isthmus.host import BadArguments, Decision, Denied, Exhausted, Host, HostError, Unknown
from isthmus.host.model.events import QuestionAsked
from isthmus.host.remote.attached import AttachedHost, HostGone
from isthmus.host.remote.control import MAX_CALLS, Control
from isthmus.host.remote.protocol import AskCall, AskHello, encode_line
from support.host.audit_rows import wait_until

pytestmark = pytest.mark.timeout(60)


def shop():
    """A server with something to do, to wait for, to read and to say."""
    server = Server("shop")
    server.begun = asyncio.Event()
    server.left = asyncio.Event()

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool
    async def wait() -> str:
        """Wait for ever."""
        server.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            server.left.set()
        return "never"

    @server.resource("shop://prices")
    def prices() -> str:
        """The prices."""
        return "tea: 3"

    @server.prompt
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Hello {name}"

    return server


@pytest.fixture
async def server():
    """The server."""
    return shop()


class Person:
    """Answers what is asked, and keeps it."""

    def __init__(self):
        self.asked = []
        self.says = Decision(verdict="allow", by="ada")

    async def offer(self, interaction):
        """Answer."""
        self.asked.append(interaction)
        return self.says

    name = "ada"
    assurance = "local_ui"


@pytest.fixture
async def person():
    """Somebody who is there."""
    return Person()


@pytest.fixture
async def host(tmp_path, server, person):
    """A host that others can attach to, with somebody there."""
    host = Host(state=tmp_path / "state", approver=person)
    host.add("shop", server)
    async with Control(host.view, tmp_path / "state"), host:
        yield host


@pytest.fixture
async def program(host, tmp_path):
    """A program in another process, as far as the host can tell."""
    async with Host.attach_to(tmp_path / "state", name="nightly") as program:
        yield program


@pytest.mark.covers("hostaudit.calls.pipeline")
async def test_a_call_of_a_program_is_asked_about_and_says_who_calls(program, person, host):
    """Ours: the same policy, card and audit log as for every other call."""
    result = await program.call("shop__add", {"a": 1, "b": 2})
    attempt = person.asked[0].attempt
    rows = [row for row in await host.audit.tail(20) if row.action == "tool.call"]

    assert "3" == result.text
    assert "  asked by: nightly (process " in make_card(person.asked[0]).text()
    assert ("agent:nightly", "attached") == (attempt.principal, attempt.origin)
    assert attempt.asker.startswith("nightly (process ")
    assert attempt.run
    assert {("agent:nightly", "attached")} == {(row.principal, row.origin) for row in rows}
    assert ["decision", "intent", "outcome"] == [row.kind for row in rows]


@pytest.mark.covers("hostaudit.calls.pipeline")
async def test_a_no_is_the_error_that_it_is_in_the_host(program, person):
    """Ours: with who said it and why."""
    person.says = Decision(verdict="deny", by="ada", reason="not today")
    with pytest.raises(Denied) as denied:
        await program.call("shop__add", {"a": 1, "b": 2})

    assert ("ada", "deny", "not today") == (
        denied.value.by,
        denied.value.verdict,
        denied.value.reason,
    )


@pytest.mark.covers("hostaudit.calls.no-say")
async def test_a_program_cannot_approve_what_it_wants(program, person, host, tmp_path):
    """Ours: it sees no question, answers none, ends no grant and starts no server."""
    never = asyncio.Event()

    async def think(interaction):
        person.asked.append(interaction)
        await never.wait()

    person.offer = think
    call = asyncio.ensure_future(program.call("shop__add", {"a": 1, "b": 2}))
    await wait_until(lambda: person.asked)
    yes = Decision(verdict="allow", by="me")
    for ask in (
        lambda: program.decide(person.asked[0].id, yes),
        lambda: program.attend("me").__aenter__(),
        lambda: program.revoke("x"),
        program.grants,
        program.audit_tail,
        lambda: program.server_do("shop", "stop"),
    ):
        with pytest.raises(HostError, match="answers no question and changes nothing"):
            await ask()

    assert [] == list(program.pending())
    assert not call.done()
    async with AttachedHost(tmp_path / "state") as surface:  # on purpose, and it says so
        assert await surface.decide(person.asked[0].id, yes)
    assert "3" == (await call).text


async def test_a_surface_may_call_too(host, tmp_path, person):
    """Ours: a person at a terminal tries a tool; the question comes as for everybody."""
    async with AttachedHost(tmp_path / "state") as surface:
        events = surface.events()
        result = await surface.call("shop__add", {"a": 2, "b": 2})
        asked = [event async for event in first(events, QuestionAsked)]

    assert "4" == result.text
    assert ["user:local"] == [one.interaction.attempt.principal for one in asked]


async def first(events, kind):
    """The first event of a kind."""
    async for event in events:
        if isinstance(event, kind):
            yield event
            return


async def test_tools_resources_and_prompts_are_there(program):
    """Ours: all that a host has a program do with servers."""
    tools = await program.tools()
    of_one = await program.tools("shop")
    read = await program.read("shop+shop://prices")
    prompt = await program.prompt("shop__greet", {"name": "Ada"})

    assert ["shop__add", "shop__wait"] == [one.name for one in tools]
    assert tools == of_one
    assert "Add two numbers." == tools[0].tool.description
    assert "tea: 3" == read.contents[0].text
    assert "Hello Ada" == prompt.messages[0].content.text


@pytest.mark.covers("hostaudit.calls.stopped")
async def test_who_does_not_wait_any_more_stops_the_call(program, server):
    """Ours: a cancelled await is told to the host, and the server is told in turn."""
    call = asyncio.ensure_future(program.call("shop__wait"))
    await server.begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await asyncio.wait_for(server.left.wait(), 30)


@pytest.mark.covers("hostaudit.calls.stopped")
async def test_a_program_that_goes_leaves_no_call_behind(host, server, tmp_path):
    """Ours: however it goes."""
    async with Host.attach_to(tmp_path / "state") as program:
        call = asyncio.ensure_future(program.call("shop__wait"))
        await server.begun.wait()
    with pytest.raises(HostGone):
        await call

    await asyncio.wait_for(server.left.wait(), 30)


@pytest.mark.covers("hostaudit.control.bounded")
async def test_a_program_has_so_many_calls_under_way(program, person):
    """Ours: one more is refused, and does not keep anything else from being heard."""
    never = asyncio.Event()
    person.offer = lambda _interaction: never.wait()
    calls = [
        asyncio.ensure_future(program.call("shop__add", {"a": n, "b": 0})) for n in range(MAX_CALLS)
    ]
    await wait_until(lambda: len(program._answers) == MAX_CALLS)
    with pytest.raises(Exhausted, match="under way already"):
        await program.call("shop__add", {"a": 1, "b": 2})
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


@pytest.mark.covers("hostaudit.control.bounded")
async def test_calls_under_one_number_are_counted_and_end_with_their_program(
    host, server, tmp_path
):
    """Ours: a program that gives a number twice has no second call by it, and leaves none behind."""
    view = AttachedHost(tmp_path / "state")
    reader, writer = await view._connected()
    writer.write(encode_line(AskHello(id=1, part="program")))
    writer.write(encode_line(AskCall(id=2, name="shop__wait")))
    await server.begun.wait()
    writer.write(encode_line(AskCall(id=2, name="shop__add", arguments={"a": 1, "b": 2})))
    told = await reader.read()
    writer.close()

    assert b"call 2 is already running" in told
    await asyncio.wait_for(server.left.wait(), 30)


@pytest.mark.covers("hostaudit.control.bounded")
async def test_calls_over_the_limit_cost_a_host_nothing(host, person, tmp_path):
    """Ours: a program that reads no answer is not heard until it does."""
    never = asyncio.Event()
    person.offer = lambda _interaction: never.wait()
    _, writer = await AttachedHost(tmp_path / "state")._connected()
    writer.write(encode_line(AskHello(id=0, part="program")))
    for number in range(1, 5000):
        writer.write(
            encode_line(AskCall(id=number, name="shop__add", arguments={"a": 1, "b": number}))
        )
    most = 0
    for _ in range(3000):
        await asyncio.sleep(0)
        most = max(most, len(asyncio.all_tasks()))
    writer.close()

    assert most < 4 * MAX_CALLS


async def test_what_cannot_be_is_told(program, tmp_path):
    """Ours: a name, a principal and arguments that cannot be are errors of the caller."""
    with pytest.raises(UsageError, match="the name 'No Name' of a program"):
        Host.attach_to(tmp_path, name="No Name")
    with pytest.raises(UsageError, match="a principal is user:NAME or agent:NAME"):
        await program.call("shop__add", {}, principal="server:shop")
    with pytest.raises(Unknown, match="shop__ad"):
        await program.call("shop__ad", {})
    with pytest.raises(BadArguments, match="cannot be sent"):
        await program.call("shop__add", {"a": object()})
    with pytest.raises(BadArguments, match="bytes are more than a host takes"):
        await program.call("shop__add", {"a": "x" * (8 * 1024 * 1024)})


async def test_nothing_is_done_before_hello(host, tmp_path):
    """Ours: who says not what it attaches as may do nothing."""
    view = AttachedHost(tmp_path / "state")
    reader, writer = await view._connected()
    writer.write(encode_line(AskCall(id=1, name="shop__add")))
    told = await reader.readline()
    writer.close()

    assert b"hello comes first" in told
