"""What the audit log says of servers themselves, of settings and of grants."""

import sys

import pytest
from msgspec import structs

from isthmus import Command, Server
from isthmus.host import Decision, Host
from isthmus.host.model.entries import HostConfig, ServerEntry, ServerOptions
from isthmus.host.model.errors import ServerUnavailable
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.testing.faults import until

CODE = """
import os
from isthmus import Server
server = Server("clock", version="1.0")

@server.tool
async def noon() -> str:
    \"\"\"Noon.\"\"\"
    return "twelve"

@server.tool
async def die() -> str:
    \"\"\"End at once.\"\"\"
    os._exit(3)

server.run()
"""
ALLOW = Policy.of(read_layers('[[rule]]\nid = "all"\neffect = "allow"\nwhen = { action = ["tool.call"] }\n', "user"))  # fmt: skip


async def allow(_interaction):
    return Decision(verdict="allow", by="ada")


async def rows_of(host, *kinds):
    await host.audit.flush()
    return [row for row in await host.audit.tail(200) if row.kind in (kinds or ("server",))]


def make_host(tmp_path, code=CODE):
    host = Host(policy=ALLOW, approver=allow, state=tmp_path / "state")
    host.add("clock", Command(sys.executable, "-c", code))
    return host


@pytest.mark.covers("hostaudit.rows.servers")
async def test_starts_and_ends_of_a_server_are_written_down(tmp_path):
    """Ours: with what it is bound to, which process it is, and what is spoken."""
    async with make_host(tmp_path) as host:
        await host.call("clock__noon")
        await host.view.server_do("clock", "stop")
        await host.call("clock__noon")
        await host.view.server_do("clock", "restart")
        rows = await rows_of(host)
        found = await host.audit.verify()

    assert [
        "server.start", "server.stop", "server.restart", "server.stop", "server.restart",
    ] == [row.action for row in rows]  # fmt: skip
    first = rows[0]
    assert ("clock", "clock", "2026-07-28") == (first.server, first.object, first.era)
    assert first.identity.startswith("command:")
    assert first.detail["pid"] > 0
    assert found.good


@pytest.mark.covers("hostaudit.rows.servers")
async def test_the_end_of_the_host_is_the_end_of_its_servers(tmp_path):
    """Ours: the row is written before the log is closed."""
    async with make_host(tmp_path) as host:
        await host.call("clock__noon")
    async with Host(state=tmp_path / "state") as host:
        rows = await rows_of(host)

    assert ["server.start", "server.stop"] == [row.action for row in rows]


@pytest.mark.covers("hostaudit.rows.servers")
async def test_a_server_that_ends_by_itself_is_lost(tmp_path):
    """Ours: with the reason, and without secrets."""
    async with make_host(tmp_path) as host:
        with pytest.raises(Exception, match="exit"):
            await host.call("clock__die")
        await until(lambda: host.servers["clock"].state != "ready")
        (row,) = [row for row in await rows_of(host) if row.action == "server.lost"]

    assert row.failed
    assert "3" in row.error


@pytest.mark.covers("hostaudit.rows.servers")
async def test_a_server_that_cannot_be_started_fails(tmp_path):
    """Ours: nothing came; the row says why."""
    async with make_host(tmp_path, "import sys; sys.exit('no --token hunter')") as host:
        with pytest.raises(ServerUnavailable):
            await host.view.server_do("clock", "start")
        rows = await rows_of(host)

    assert "server.fail" == rows[0].action
    assert rows[0].failed
    assert [] == [row for row in rows if "hunter" in str(row)]


@pytest.mark.covers("hostaudit.rows.servers")
async def test_switching_a_server_on_and_off_is_written_down(tmp_path):
    """Ours: whether it was up or not."""
    async with make_host(tmp_path) as host:
        await host.call("clock__noon")
        await host.view.server_do("clock", "disable")
        await host.view.server_do("clock", "enable")
        rows = await rows_of(host)

    assert ["server.start", "server.stop", "server.disable", "server.enable"] == [
        row.action for row in rows
    ]


@pytest.mark.covers("hostaudit.rows.servers")
async def test_another_configuration_is_written_down():
    """Ours: which servers came, went and changed."""
    entry = ServerEntry(name="a", kind="http", url="https://a.example/mcp")
    config = HostConfig(servers={"a": entry, "b": structs.replace(entry, name="b")})
    after = HostConfig(
        servers={
            "a": structs.replace(entry, options=ServerOptions(trust="full")),
            "c": structs.replace(entry, name="c"),
        }
    )
    async with Host(config) as host:
        await host.parts.configs.reload(after)
        (row,) = await rows_of(host, "config")

    assert ("config.reload", ["c"], ["b"]) == (
        row.action, row.detail["added"], row.detail["removed"],
    )  # fmt: skip


@pytest.mark.covers("hostaudit.rows.grants")
async def test_a_grant_that_is_given_and_taken_back_is_written_down():
    """Ours: by its id, with what it is for and how long."""
    rules = '[[rule]]\nid = "a"\neffect = "ask"\nwhen = { action = ["tool.call"] }\nobligations = { remember = ["once", "tool_always"] }\n'  # fmt: skip
    server = Server("shop")

    @server.tool
    async def buy() -> str:
        """Buy."""
        return "tea"

    async def always(_interaction):
        return Decision(verdict="allow", remember="tool_always", by="ada")

    host = Host(policy=Policy.of(read_layers(rules, "user")), approver=always)
    host.add("shop", server)
    async with host:
        await host.call("shop__buy")
        (grant,) = await host.view.grants()
        assert await host.view.revoke(grant.id)
        assert not await host.view.revoke(grant.id)
        given, ended = await rows_of(host, "grant")

    assert (grant.id, "allow", "shop", "buy", "tool_always") == (
        given.grant, given.effect, given.server, given.object, given.detail["scope"],
    )  # fmt: skip
    assert (grant.id, "grant.revoke") == (ended.grant, ended.action)
