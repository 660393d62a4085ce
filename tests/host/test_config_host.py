"""A host with a configuration: what is trusted, agreed to, granted and confined, all at once."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from isthmus.errors import IsthmusError
from isthmus.host.config.files import read_document
from isthmus.host.config.trust import TrustStore, load_trusted_config
from isthmus.host.confinement.sandbox import explain_unavailable
from isthmus.host.host import Host
from isthmus.host.model.errors import Denied, ServerUnavailable
from isthmus.host.state.database import HostState
from isthmus.transports.command import Command

SERVER = """
from isthmus import Context, Server
server = Server("desk")

@server.tool
async def where(ctx: Context) -> str:
    return " ".join(root.name for root in await ctx.roots())

@server.tool
def read(path: str) -> str:
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__

server.run()
"""


class House:
    """A workspace, a state, and somebody who answers."""

    def __init__(self, folder, monkeypatch):
        self.work, self.state = folder / "work", folder / "state"
        (self.work / "src").mkdir(parents=True)
        (self.work / "src" / "file").write_text("work")
        (folder / "key").write_text("canary")
        self.key = folder / "key"
        self.script = folder / "app" / "server.py"
        self.script.parent.mkdir()
        self.script.write_text(SERVER)
        monkeypatch.setenv("HOME", str(folder))
        self.environ = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "conf")}
        self.asked = []
        self.answer = True

    def write(self, *more, host=None, **options):
        """The workspace's file."""
        entry = {"command": sys.executable, "args": [str(self.script), *more], "host": options}
        whole = {"mcpServers": {"desk": entry}, "host": host or {}}
        (self.work / "mcp.json").write_text(json.dumps(whole))

    async def trust(self):
        """The user looks at it, and trusts it."""
        state = HostState(self.state)
        await TrustStore(state).trust(str(self.work), [read_document(self.work / "mcp.json")])
        await state.close()

    def approve(self, interaction):
        """What the user says."""
        self.asked.append(interaction)
        return self.answer

    def host(self):
        """A host in this workspace."""
        return Host.from_config(
            folder=self.work,
            environ=self.environ,
            state=self.state,
            approver=self.approve,
            policy="developer",
        )

    def actions(self):
        """What was asked, but for calls."""
        return [one.attempt.action for one in self.asked if one.attempt.action != "tool.call"]


@pytest.fixture
def house(tmp_path, monkeypatch):
    return House(Path(tmp_path).resolve(), monkeypatch)


@pytest.mark.covers("hostconfig.layers.workspace-inert", "hostconfig.trust.changed-inert")
async def test_a_cloned_folder_runs_nothing_before_it_is_trusted_and_agreed_to(house):
    """Ours: first trust, then the exact command, then the call; and again where it changes."""
    house.write()
    async with house.host() as host:
        with pytest.raises((Denied, ServerUnavailable), match="trust"):
            await host.call("desk__read", {"path": str(house.key)})
    assert [] == house.asked
    await house.trust()
    async with house.host() as host:
        first = await host.call("desk__read", {"path": str(house.key)})
        house.write("--other")
        config, _ = load_trusted_config(folder=house.work, environ=house.environ, state=house.state)
        await host.reload(config)
        with pytest.raises((Denied, ServerUnavailable), match="trust"):
            await host.call("desk__read", {"path": str(house.key)})

    assert ("canary", ["server.install"]) == (first.text, house.actions())
    assert (sys.executable, str(house.script)) == house.asked[0].payload.argv


@pytest.mark.covers("hostconfig.install.silence-denies")
async def test_who_does_not_agree_starts_nothing(house):
    """Ours: and what is said is why."""
    house.write()
    house.answer = False
    await house.trust()
    async with house.host() as host:
        with pytest.raises((Denied, ServerUnavailable), match="not allowed"):
            await host.call("desk__read", {"path": str(house.key)})


@pytest.mark.skipif(bool(explain_unavailable()), reason=f"no sandbox here: {explain_unavailable()}")
@pytest.mark.covers("hostconfig.roots.sandbox", "hostconfig.roots.consent")
async def test_a_confined_server_works_in_what_it_was_granted(house):
    """Ours: asked for its command and its folders, then it reads there and nowhere else."""
    house.write(host={"roots": [{"path": "src", "name": "Source"}]}, sandbox=True)
    await house.trust()
    async with house.host() as host:
        inside = await host.call("desk__read", {"path": str(house.work / "src" / "file")})
        outside = await host.call("desk__read", {"path": str(house.key)})
        roots = await host.call("desk__where", {})

    assert ("work", "FileNotFoundError", "Source") == (inside.text, outside.text, roots.text)
    assert ["server.install", "roots.expose"] == house.actions()
    assert "none of your home" in house.asked[0].payload.sandbox[0]


async def test_rules_of_the_machine_hold_beside_a_policy_that_is_named(house, tmp_path):
    """Ours: --policy chooses the user's rules, and no way around the administrator's."""
    from isthmus.host.model.entries import HostOptions
    from isthmus.host.reloading import load_policy

    rules = tmp_path / "managed.toml"
    rules.write_text('[[rule]]\nid = "never"\neffect = "deny"\nwhen = { action = "tool.call" }\n')
    options = HostOptions(policies={"managed": str(rules), "user": "developer"})

    for given in (None, "developer"):
        found = load_policy(given, options)
        assert [("never", "managed")] == [
            (r.rule.id, r.layer) for r in found.rules if r.layer == "managed"
        ]


@pytest.mark.covers("hostconfig.connect.consent")
async def test_nothing_is_sent_to_a_server_before_the_user_agrees_to_connect(house):
    """Ours: not one connection is opened to its address, whatever is asked of the host."""
    heard = []

    async def accept(_reader, writer):
        heard.append(house.actions())
        writer.close()

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        entry = {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}
        (house.work / "mcp.json").write_text(json.dumps({"mcpServers": {"far": entry}}))
        await house.trust()
        house.answer = False
        async with house.host() as host:
            with pytest.raises((Denied, ServerUnavailable)):
                await host.call("far__read", {}, timeout=5)
            refused, before = host.servers["far"].state, list(heard)
            house.answer = True
            with pytest.raises(IsthmusError):
                await host.servers["far"].start()

    assert ("quarantined", []) == (refused, before)
    assert ["server.connect"] * 2 == heard[0]


@pytest.mark.covers("hostconfig.sandbox.host-own")
@pytest.mark.skipif(bool(explain_unavailable()), reason=explain_unavailable())
async def test_a_confined_server_cannot_reach_its_host_by_a_root(tmp_path, monkeypatch):
    """Ours: a state, rules, a configuration or kept tokens within a root are not for who works there."""
    work, kept = tmp_path / "work", tmp_path / "work" / "isthmus"
    kept.mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(work))
    (work / "rules.toml").write_text("")
    host = {"state": "./state", "policy": "./rules.toml", "roots": [{"path": ".", "name": "work"}]}
    server = {"command": sys.executable, "args": ["x"], "host": {"sandbox": {}}}
    (work / "mcp.json").write_text(json.dumps({"host": host, "mcpServers": {"x": server}}))
    async with Host.from_config(str(work / "mcp.json")) as one:
        entry = one.config.servers["x"]
        await one.parts.roots.grant(entry, [str(work)], "me")
        argv = one.parts.roots.confine(entry)(Command("true")).argv
    places = (work, work / "state", kept, work / "rules.toml", work / "mcp.json")

    assert ["--bind", "--tmpfs", "--tmpfs", "--ro-bind-try", "--ro-bind-try"] == [
        argv[argv.index(str(place)) - 1] for place in places
    ]
