"""A host that ends while a person is asked, and the next one on the same state."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.errors import IsthmusError
from isthmus.host import Denied, Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers

CALLS = '[[rule]]\nid = "calls"\neffect = "allow"\nwhen = { action = "tool.call" }\n'


def shop(revision, task):
    """A server that asks in the course of a call, and counts how often it is called."""
    server = Server("shop", revisions=[revision])
    server.begun = []

    @server.tool(task=task)
    async def seat(ctx: Context) -> str:
        """Ask for a seat."""
        server.begun.append(1)
        return type(await ctx.elicit("Which?", key="seat")).__name__

    return server


def make_host(server, person, state, rules=CALLS):
    host = Host(approver=person, policy=Policy.of(read_layers(rules, "user")), state=state)
    host.add("shop", server)
    return host


@pytest.mark.covers("hostkernel.restart.open-question")
@pytest.mark.parametrize(
    ("revision", "task", "again"),
    [
        ("2025-11-25", None, []),
        ("2026-07-28", None, []),
        ("2025-11-25", "required", ["elicit.form"]),
        ("2026-07-28", "required", ["elicit.form"]),
    ],
)
async def test_a_question_that_was_open_is_asked_again_where_its_call_lives_on(
    revision, task, again, tmp_path
):
    """Ours: a task goes on with the next host; any other call has ended, and is not made again."""
    server, waits, asked = shop(revision, task), asyncio.Event(), []

    async def person(_interaction):
        waits.set()
        return await asyncio.Event().wait()

    async def next_person(interaction):
        asked.append(interaction.attempt.action)
        return False

    async with make_host(server, person, tmp_path) as host:
        calling = asyncio.ensure_future(host.call("shop__seat"))
        await waits.wait()
        (open_call,) = {one.attempt.parent for one in host.view.pending()}
    with pytest.raises(IsthmusError):
        await calling
    async with make_host(server, next_person, tmp_path) as host:
        results = [(await host.tasks.result(call)).text for call in list(host.tasks.open)]
        rows = [row for row in await host.view.audit_tail(100) if row.call == open_call]
        assert [] == list(host.view.pending())

    assert (again, ["Declined"] * len(again)) == (asked, results)
    ends = [row for row in rows if row.kind == "outcome"]
    assert ends[0].failed
    assert 1 + len(again) == len(ends)
    assert 1 == len(server.begun) or revision == "2026-07-28"


@pytest.mark.covers("hostkernel.restart.open-approval")
async def test_a_call_that_was_not_approved_when_the_host_ended_is_never_made(tmp_path):
    """Ours: the end is a no, written down, and the next host knows nothing of the call."""
    server, waits, asked = shop("2026-07-28", None), asyncio.Event(), []

    async def person(_interaction):
        waits.set()
        return await asyncio.Event().wait()

    async with make_host(server, person, tmp_path, rules="") as host:
        calling = asyncio.ensure_future(host.call("shop__seat"))
        await waits.wait()
    with pytest.raises(Denied):
        await calling
    async with make_host(server, asked.append, tmp_path, rules="") as host:
        ends = [row for row in await host.view.audit_tail(9) if row.kind == "outcome"]

    assert ([], [], ["Denied"]) == (asked, server.begun, [row.error for row in ends])
