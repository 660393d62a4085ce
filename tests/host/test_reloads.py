"""Reloads while something is under way: what was begun ends as it would have, and is written down."""

import asyncio

import pytest
from msgspec import Struct, structs

from isthmus import Context, Server
from isthmus.host import Decision, Host
from isthmus.host.model.entries import HostConfig, ServerLimits
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers

RULES = """
[[rule]]
id = "calls"
effect = "allow"
when = { action = ["tool.call", "resource.read", "prompt.get"] }
"""

REVISIONS = pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", "2026-07-28"])


class Colour(Struct):
    name: str


class Shop:
    """A host with one server, whose calls wait until the test lets them go on."""

    def __init__(self, revision="2026-07-28", **options):
        server = Server("shop", revisions=[revision])
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.asked = []

        @server.tool
        async def wait(words: str) -> str:
            """Wait."""
            self.began.set()
            await self.go.wait()
            return words

        @server.tool
        async def paint(ctx: Context) -> str:
            """Wait, then ask."""
            self.began.set()
            await self.go.wait()
            answer = await ctx.elicit("Which colour?", Colour)
            return answer.value.name

        @server.resource("shop://stock")
        async def stock() -> str:
            """What there is."""
            self.began.set()
            await self.go.wait()
            return "3 left"

        @server.prompt
        async def ask() -> str:
            """Ask for something."""
            self.began.set()
            await self.go.wait()
            return "Have you tea?"

        policy = Policy.of(read_layers(RULES, "user"))
        self.host = Host(approver=self.person, policy=policy)
        self.host.add("shop", server, **options)

    async def call(self, tool, **arguments):
        """A call that its server has begun to serve."""
        return await self.begun(self.host.call(f"shop__{tool}", arguments))

    async def begun(self, work):
        """What its server has begun to serve."""
        self.began.clear()
        call = asyncio.ensure_future(work)
        call.add_done_callback(lambda _: self.began.set())
        await self.began.wait()
        return call

    def person(self, interaction):
        """Somebody who likes blue."""
        self.asked.append(interaction.attempt.action)
        return Decision(verdict="allow", edited={"name": "blue"})

    async def reload(self, how):
        """The server is gone, another one, or switched off in the next configuration."""
        parts = self.host.parts
        entry = parts.supervisor.config.servers["shop"]
        options = {
            "changed": structs.replace(entry.options, idle_stop=1.0),
            "disabled": structs.replace(entry.options, enabled=False),
        }
        servers = {} if how == "removed" else {"shop": structs.replace(entry, options=options[how])}
        await parts.configs.reload(HostConfig(servers=servers))

    async def outcomes(self):
        """What the audit log says of calls, the last first."""
        await self.host.audit.flush()
        rows = await self.host.audit.tail(100)
        return [row for row in rows if (row.kind, row.action) == ("outcome", "tool.call")]


@REVISIONS
@pytest.mark.parametrize("how", ["removed", "changed", "disabled"])
@pytest.mark.covers("hostservers.reload.outcome")
async def test_a_call_under_way_ends_as_it_would_have_without_the_reload(how, revision):
    """Ours: its result reaches the caller, and stands in the audit log as its outcome."""
    shop = Shop(revision, limits=ServerLimits(result_bytes=2_000))
    words = "tea " * 5_000
    async with shop.host as host:
        call = await shop.call("wait", words=words)
        await shop.reload(how)
        shop.go.set()
        result = await call
        (row,) = await shop.outcomes()
        rest = await host.read(result.content[1].uri)

    assert result.text.startswith("tea tea ")
    assert words.removeprefix(result.content[0].text)[:100] in rest.contents[0].text
    assert not row.failed
    assert "" == row.error


@pytest.mark.parametrize("how", ["removed", "changed", "disabled"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.covers("hostservers.reload.outcome")
async def test_a_server_that_is_replaced_may_still_ask_in_the_course_of_its_last_calls(
    how, revision
):
    """Ours: its question is put to the person as before, and its answer reaches it."""
    shop = Shop(revision)
    async with shop.host:
        call = await shop.call("paint")
        await shop.reload(how)
        shop.go.set()
        result = await call
        (row,) = await shop.outcomes()

    assert "blue" == result.text
    assert ["elicit.form"] == shop.asked
    assert not row.failed


@REVISIONS
@pytest.mark.covers("hostservers.reload.outcome")
async def test_what_is_read_while_its_server_goes_is_read(revision):
    """Ours: a resource and a prompt as well as a call."""
    shop = Shop(revision)
    async with shop.host as host:
        await host.catalog.load()
        read = await shop.begun(host.read("shop+shop://stock"))
        prompt = await shop.begun(host.prompt("shop__ask"))
        await shop.reload("removed")
        shop.go.set()
        texts = (await read).contents[0].text, (await prompt).messages[0].content.text
        await host.audit.flush()
        rows = [row for row in await host.audit.tail(100) if row.kind == "outcome"]

    assert ("3 left", "Have you tea?") == texts
    assert [("resource.read", False), ("prompt.get", False)] == sorted(
        ((row.action, row.failed) for row in rows), reverse=True
    )
