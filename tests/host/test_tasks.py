"""Calls that became tasks: followed to their end, also by the next process."""

import asyncio
import sqlite3
from contextlib import closing

import pytest
from msgspec import Struct

from isthmus import Context, Server
from isthmus.errors import TaskCancelled
from isthmus.host import Decision, Host, OutcomeUnknown, Unknown
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers

REVISIONS = pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])


class Colour(Struct):
    name: str


def workshop(revision):
    """A server with a tool that is a task, and asks two things in its course."""
    server = Server("shop", revisions=[revision])
    server.begun = []

    @server.tool(task="required")
    async def paint(ctx: Context) -> str:
        """Paint."""
        server.begun.append(1)
        first = await ctx.elicit("First?", Colour, key="first")
        second = await ctx.elicit("Second?", Colour, key="second")
        return f"{first.value.name} and {second.value.name}"

    return server


def make_host(server, person, state):
    """A host that asks about forms only."""
    allowed = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = "tool.call" }\n'
    policy = Policy.of(read_layers(allowed, "user"))
    host = Host(approver=person, policy=policy, state=state)
    host.add("shop", server)
    return host


def colour(name):
    """The answer to a form."""
    return Decision(verdict="allow", edited={"name": name})


@REVISIONS
@pytest.mark.covers("hostkernel.tasks.resumed")
async def test_a_task_is_followed_by_the_next_host_and_asks_nothing_twice(revision, tmp_path):
    """Ours: the first answer has reached the server, the host ends, and the next one goes on."""
    server, second = workshop(revision), asyncio.Event()

    async def person(interaction):
        if "First" in interaction.payload.params.message:
            return colour("red")
        second.set()
        return await asyncio.Event().wait()

    async with make_host(server, person, tmp_path) as host:
        calling = asyncio.ensure_future(host.call("shop__paint"))
        await second.wait()
        (call,) = host.tasks.open
    with pytest.raises(OutcomeUnknown):
        await calling

    asked = []

    async def again(interaction):
        asked.append((interaction.payload.params.message, interaction.attempt.parent))
        return colour("blue")

    async with make_host(server, again, tmp_path) as host:
        result = await host.tasks.result(call)
        rows = await host.view.audit_tail(100)
        assert {} == dict(host.tasks.open)

    assert "red and blue" == result.text
    assert [("Second?", call)] == asked
    assert [1] == server.begun
    ends = [row.error for row in rows if (row.kind, row.call) == ("outcome", call)]
    assert ("outcome-unknown", "") == (ends[0], ends[-1])


@REVISIONS
async def test_a_task_that_is_over_is_forgotten(revision, tmp_path):
    """Ours: nothing of it is kept for the next process."""

    async def person(_interaction):
        return colour("red")

    async with make_host(workshop(revision), person, tmp_path) as host:
        assert "red and red" == (await host.call("shop__paint")).text
        assert {} == dict(host.tasks.open)
        with pytest.raises(Unknown):
            await host.tasks.result("nothing")
    async with make_host(workshop(revision), person, tmp_path) as host:
        assert {} == dict(host.tasks.open)
        assert 0 == len(host.core.decisions)


@REVISIONS
async def test_a_task_whose_end_was_written_down_ends_no_second_time(revision, tmp_path):
    """Ours: a host may be killed after the outcome of a task, and before it has let go of it."""
    file, kept = tmp_path / "host.db", []

    async def person(interaction):
        if "Second" in interaction.payload.params.message:
            with closing(sqlite3.connect(file)) as db:
                kept.append(db.execute("SELECT * FROM task_handle").fetchone())
                kept.append(db.execute("SELECT * FROM decision").fetchone())
        return colour("red")

    async with make_host(workshop(revision), person, tmp_path) as host:
        await host.call("shop__paint")
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO task_handle VALUES (?, ?, ?, ?, ?)", kept[0])
        db.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?)", kept[1])
    async with make_host(workshop(revision), person, tmp_path) as host:
        assert {} == dict(host.tasks.open)
        rows = await host.view.audit_tail(100)

    with closing(sqlite3.connect(file)) as db:
        assert [] == db.execute("SELECT * FROM decision").fetchall()
    ends = [row for row in rows if row.kind == "outcome" and row.action == "tool.call"]
    assert 1 == len(ends)


@REVISIONS
@pytest.mark.covers("hostkernel.tasks.cancelled")
async def test_a_task_is_cancelled_through_the_pipeline(revision, tmp_path):
    """Ours: whoever waits hears it, and the audit log has both."""
    waits = asyncio.Event()

    async def person(interaction):
        if interaction.attempt.action == "task.cancel":
            return True
        waits.set()
        return await asyncio.Event().wait()

    async with make_host(workshop(revision), person, tmp_path) as host:
        calling = asyncio.ensure_future(host.call("shop__paint"))
        await waits.wait()
        (handle,) = host.tasks.open.values()
        await host.cancel_task("shop", handle.task)
        with pytest.raises(TaskCancelled):
            await calling
        rows = await host.view.audit_tail(100)

    assert {"tool.call", "task.cancel"} <= {row.action for row in rows if row.kind == "outcome"}


async def test_a_task_that_another_host_follows_is_left_to_it(tmp_path):
    """Ours: two hosts on one state do not answer its questions twice."""
    server, waits = workshop("2026-07-28"), asyncio.Event()

    async def person(_interaction):
        waits.set()
        return await asyncio.Event().wait()

    async with make_host(server, person, tmp_path) as first:
        calling = asyncio.ensure_future(first.call("shop__paint"))
        await waits.wait()
        async with make_host(server, person, tmp_path) as second:
            assert {} == dict(second.tasks.open)
        assert 1 == len(first.tasks.open)
    with pytest.raises(OutcomeUnknown):
        await calling
