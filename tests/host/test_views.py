"""A host looks the same from this process and from another: one suite, both ways."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from isthmus import Server
from isthmus.host.host import Host
from isthmus.host.model.errors import BadArguments, Denied, Unknown
from isthmus.host.model.events import QuestionAnswered, QuestionAsked
from isthmus.host.model.interaction import CallAsked, Decision
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from support.host.audit_rows import wait_until

YES = Decision(verdict="allow", by="ada")
NO = Decision(verdict="deny", by="ada")

pytestmark = pytest.mark.timeout(60)


def calculator():
    server = Server("calculator")

    @server.tool
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


@pytest.fixture
async def host(tmp_path):
    host = Host(state=tmp_path / "state")
    host.add("calc", calculator())
    async with host:
        yield host


@asynccontextmanager
async def viewing(host, way, tmp_path):
    """The host, seen from here, or as from another process."""
    if way == "local":
        yield host.view
        return
    async with Control(host.view, tmp_path / "state"), AttachedHost(tmp_path / "state") as view:
        yield view


@pytest.fixture(params=["local", "attached"])
async def view(request, host, tmp_path):
    async with viewing(host, request.param, tmp_path) as view:
        yield view


async def next_question(events):
    """The next question."""
    async for event in events:
        if isinstance(event, QuestionAsked):
            return event.interaction
    return None


def calling(host, a=1):
    return asyncio.ensure_future(host.call("calc__add", {"a": a, "b": 2}))


@pytest.mark.covers("hostaudit.view.same")
async def test_a_question_is_seen_and_answered(host, view):
    """Ours: whole, with what it is about and why it is asked; then it is gone."""
    events = view.events()
    async with view.attend("test"):
        call = calling(host)
        question = await next_question(events)
        waiting = view.pending()
        why = await view.explain(question.id)
        first = await view.decide(question.id, YES)
        result = await call
        async for event in events:
            if isinstance(event, QuestionAnswered):
                break

    assert [question] == list(waiting)
    assert isinstance(question.payload, CallAsked)
    assert {"a": 1, "b": 2} == question.payload.arguments
    assert "Add two numbers." == question.payload.tool.description
    assert why
    assert first
    assert "3" == result.text
    assert [] == list(view.pending())


@pytest.mark.covers("hostaudit.view.same")
async def test_the_second_answer_comes_too_late(host, view):
    """Ours: the first one counts, and the second is told."""
    events = view.events()
    async with view.attend("test"):
        call = calling(host)
        question = await next_question(events)
        answers = [await view.decide(question.id, NO), await view.decide(question.id, YES)]
        with pytest.raises(Denied):
            await call

    assert [True, False] == answers
    assert not await view.decide("nothing", YES)


@pytest.mark.covers("hostaudit.view.edited")
async def test_arguments_can_be_edited(host, view):
    """Ours: the call is made with what the person made of it."""
    events = view.events()
    async with view.attend("test"):
        call = calling(host)
        question = await next_question(events)
        edited = Decision(verdict="allow", by="ada", edited={"a": 40, "b": 2})
        await view.decide(question.id, edited)

        assert "42" == (await call).text


@pytest.mark.covers("hostaudit.view.same")
@pytest.mark.parametrize("arguments", [[["a", 1], ["b", 2]], [1], "ab"])
async def test_arguments_without_names_are_refused(view, arguments):
    """Ours: pairs are no object; the terminal hands on whatever its user wrote as JSON."""
    with pytest.raises(BadArguments, match="arguments of"):
        await view.call("calc__add", arguments)


@pytest.mark.covers("hostaudit.view.leaving")
async def test_where_nobody_attends_it_is_denied(host, view):
    """Ours: before anybody came, and when the last one leaves with a question open."""
    with pytest.raises(Denied):
        await calling(host)
    events = view.events()
    async with view.attend("test"):
        call = calling(host)
        await next_question(events)
    with pytest.raises(Denied):
        await call


@pytest.mark.covers("hostaudit.view.same")
async def test_servers_are_seen_and_can_be_stopped_and_started(host, view):
    """Ours: an unknown one is an error of the same kind on both sides."""
    await view.server_do("calc", "start")
    started = [one.state for one in host.view.servers()]
    await view.server_do("calc", "stop")
    await wait_until(lambda: "ready" != view.servers()[0].state)  # the news is on its way

    assert ["ready"] == started
    assert ["calc"] == [one.name for one in view.servers()]
    assert [] == list(await view.log_tail("calc"))
    with pytest.raises(Unknown, match="no server 'x'"):
        await view.server_do("x", "start")


@pytest.mark.covers("hostaudit.view.same")
async def test_what_is_remembered_is_seen_and_ended(host, view):
    """Ours: a grant from here is one of the host's."""
    events = view.events()
    async with view.attend("test"):
        call = calling(host)
        question = await next_question(events)
        await view.decide(question.id, Decision(verdict="allow", by="ada", remember="arguments"))
        await call
        again = await asyncio.wait_for(calling(host), 10)
    grants = await view.grants()
    ended = await view.revoke(grants[0].id)

    assert "3" == again.text
    assert ["add"] == [one.object for one in grants]
    assert ended
    assert not await view.revoke("nothing")


@pytest.mark.covers("hostaudit.view.same")
async def test_the_end_of_the_audit_log_is_seen(host, view):
    """Ours: with everything up to now."""
    with pytest.raises(Denied):
        await calling(host)
    lines = await view.audit_tail(1)

    assert [("outcome", "Denied")] == [(one.kind, one.error) for one in lines]


@pytest.mark.covers("hostaudit.view.ends")
@pytest.mark.parametrize("way", ["local", "attached"])
async def test_events_end_when_the_host_does(tmp_path, way):
    """Ours: a surface that waits for the next one goes on."""
    host = Host(state=tmp_path / "state")
    host.add("calc", calculator())
    async with host, viewing(host, way, tmp_path) as view:

        async def listen():
            return [event async for event in view.events()]

        listening = asyncio.ensure_future(listen())
        await asyncio.sleep(0)
        host.core.events.close()
        await asyncio.wait_for(listening, 30)
