"""Changes of a host from a console, in this process and from another: servers, tools, grants, policy."""

import asyncio
import json
import time

import pytest

from isthmus import Server
from isthmus.errors import UsageError
from isthmus.host.approvals.fingerprints import compute_fingerprint
from isthmus.host.config.load import load_config
from isthmus.host.config.write import ShadowMember
from isthmus.host.host import Host
from isthmus.host.model.errors import ConfigError, Denied, HostError, Quarantined, Unknown
from isthmus.host.model.events import QuestionAsked
from isthmus.host.model.interaction import Decision
from isthmus.host.model.view import AuditQuery
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.remote.attached import AttachedHost
from isthmus.host.remote.control import Control
from support.host.console_hosts import ALLOW_ALL, make_console_host, view_host

pytestmark = pytest.mark.timeout(60)

ASK_ADD = ALLOW_ALL + '[[rule]]\nid = "add"\neffect = "ask"\nwhen = { tool = "add" }\n'
WAYS = pytest.mark.parametrize("way", ["local", "attached"])
ENTRY = {"command": "no-such-program", "args": ["--token", "s3cret-value-1234567890"]}


# Servers


def write_config(folder, **servers):
    """A configuration with these servers."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def read_servers(path):
    """The names of the servers that a configuration has."""
    return list(json.loads(path.read_text())["mcpServers"])


def open_configured(path, state):
    """A host of a file."""
    return Host.from_config(str(path), policy=Policy(read_layers(ALLOW_ALL, "user")), state=state)


@WAYS
async def test_a_server_is_added_and_removed(tmp_path, way):
    """Ours: the file has it, the host follows, and rows say who; secrets stand in no answer."""
    path, state = write_config(tmp_path, first={"command": "no-such-program"}), tmp_path / "state"
    async with open_configured(path, state) as host, view_host(host, way, state) as view:
        status = await view.add_server("second", ENTRY, by="ada")
        added = read_servers(path)
        with pytest.raises(ConfigError, match="second"):
            await view.add_server("second", ENTRY, by="ada")
        address = await view.server_address("second")
        await view.remove_server("second", by="bob")
        with pytest.raises(Unknown, match="second"):
            await view.remove_server("second", by="bob")
        rows = await view.audit_rows(AuditQuery(kind="config", server="second"))
        left = [one.name for one in host.view.servers()]

    assert ("second", str(path)) == (status.name, status.source)
    assert ["first", "second"] == added
    assert ["first"] == read_servers(path) == left
    assert "s3cret" not in str(status) + str(address)
    assert {("config.add", "ada"), ("config.remove", "bob")} == {
        (row.action, row.approver) for row in rows
    }


@WAYS
async def test_servers_of_a_program_are_neither_added_nor_removed(tmp_path, way):
    """Ours: the answer says that a program has them, and where they are added."""
    state = tmp_path / "state"
    async with make_console_host(state) as host, view_host(host, way, state) as view:
        with pytest.raises(ConfigError, match=r"made by a program.*host\.add"):
            await view.add_server("second", ENTRY)
        with pytest.raises(Unknown, match="stands in no file: the program that added it has it"):
            await view.remove_server("calc")
        with pytest.raises(Unknown, match="no server 'third'"):
            await view.remove_server("third")
        assert ["calc"] == [one.name for one in host.view.servers()]


async def test_a_program_adds_and_removes_nothing(tmp_path):
    """Ours: whoever is attached for calls changes no configuration, and no grant."""
    path, state = write_config(tmp_path, first={"command": "no-such-program"}), tmp_path / "state"
    async with (
        open_configured(path, state) as host,
        Control(host.view, state),
        AttachedHost(state, part="program", name="p") as view,
    ):
        for ask in (
            lambda: view.add_server("second", ENTRY),
            lambda: view.remove_server("first"),
            lambda: view.narrow_grant("g", uses=1),
            lambda: view.connect_account("first"),
        ):
            with pytest.raises(HostError, match="attaches as a surface"):
                await ask()

    assert ["first"] == read_servers(path)


# Tools


def make_shop(about):
    """A server with one tool."""
    server = Server("shop")

    @server.tool(description=about)
    async def look(what: str) -> str:
        return what

    return server


def open_shop(state, about, rules=ALLOW_ALL):
    """A host with a shop."""
    host = Host(policy=Policy(read_layers(rules, "user")), state=state)
    host.add("shop", make_shop(about))
    return host


@WAYS
async def test_a_changed_tool_is_shown_once_its_server_is_connected(tmp_path, way):
    """Ours: what was kept of an earlier run is not what the server says now; no call is needed."""
    state = tmp_path / "state"
    async with open_shop(state, "Look.") as host:
        await host.call("shop__look", {"what": "it"})
    async with (
        open_shop(state, "Look, and send it on.") as host,
        view_host(host, way, state) as view,
    ):
        await view.server_do("shop", "start", by="ada")
        (found,) = await view.server_tools("shop")

    assert "quarantined" == found.state
    assert "Look, and send it on." == found.tool.description
    assert any("send it on" in line for line in found.diff)


@WAYS
@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ('effect = "deny"\nreason = "no tool may change"', "no tool may change"),
        (
            'effect = "ask"\nobligations = { assurance = "second_person" }',
            "the rule wants second_person",
        ),
    ],
    ids=["denied", "second person"],
)
async def test_a_release_that_policy_does_not_allow_is_refused(tmp_path, way, rule, why):
    """Ours: a page is no way around a rule about changed tools."""
    state = tmp_path / "state"
    rules = f'{ALLOW_ALL}[[rule]]\nid = "changes"\n{rule}\nwhen = {{ action = "tool.change" }}\n'
    async with open_shop(state, "Look.") as host:
        await host.call("shop__look", {"what": "it"})
    async with (
        open_shop(state, "Look, and send it on.", rules) as host,
        view_host(host, way, state) as view,
    ):
        await view.server_do("shop", "start", by="ada")
        with pytest.raises(Denied, match=why) as denied:
            await view.release_tool("shop", "look", by="ada")
        states = [one.state for one in await view.server_tools("shop")]

    assert "changes" == denied.value.rule
    assert ["quarantined"] == states


@WAYS
async def test_a_tool_is_released_as_it_was_shown(tmp_path, way):
    """Ours: another fingerprint releases nothing; the one that was shown does, in somebody's name."""
    state = tmp_path / "state"
    async with open_shop(state, "Look.") as host:
        await host.call("shop__look", {"what": "it"})
        (before,) = await host.view.server_tools("shop")
    async with (
        open_shop(state, "Look, and send it on.") as host,
        view_host(host, way, state) as view,
    ):
        with pytest.raises(Quarantined):
            await host.call("shop__look", {"what": "it"})
        (shown,) = await view.server_tools("shop")
        refused = await view.release_tool(
            "shop", "look", fingerprint=before.fingerprint, by="mallory"
        )
        still = [one.state for one in await view.server_tools("shop")]
        released = await view.release_tool("shop", "look", fingerprint=shown.fingerprint, by="ada")
        result = await host.call("shop__look", {"what": "it"})
        now = [one.state for one in await view.server_tools("shop")]
        rows = await view.audit_rows(AuditQuery(kind="decision"))

    assert shown.fingerprint != before.fingerprint
    assert shown.fingerprint == compute_fingerprint(shown.tool)
    assert (False, ["quarantined"]) == (refused, still)
    assert (True, ["known"], "it") == (released, now, result.text)
    assert [("ada", "allow")] == [
        (row.approver, row.effect)
        for row in rows
        if row.action == "tool.change" and row.approver != "nobody"  # nobody was there to be asked
    ]


# Grants


async def give_grant(host, view, principal="user:local", **remember):
    """Have a call of add allowed for longer: the grant."""
    async with view.attend("test"):
        events = view.events()
        calling = asyncio.ensure_future(
            host.call("calc__add", {"a": 1, "b": 2}, principal=principal)
        )
        async for event in events:
            if isinstance(event, QuestionAsked):
                said = Decision(verdict="allow", by="ada", **remember)
                assert await view.decide(event.interaction.id, said)
                break
        await calling
    return (await view.grants())[0]


@WAYS
async def test_a_grant_is_narrowed(tmp_path, way):
    """Ours: a narrower one stands in its place, which counts, and a row says who did it."""
    state = tmp_path / "state"
    async with make_console_host(state, ASK_ADD) as host, view_host(host, way, state) as view:
        grant = await give_grant(host, view, remember="tool_always")
        until = time.time() + 600
        assert await view.narrow_grant(grant.id, until=until, by="ada")
        (ending,) = await view.grants()
        assert await view.narrow_grant(ending.id, scope="session", uses=1, by="ada")
        (narrowed,) = await view.grants()
        assert not await view.narrow_grant(grant.id, uses=1, by="ada")
        await host.call("calc__add", {"a": 3, "b": 4})
        left = await view.grants()
        rows = await view.audit_rows(AuditQuery(kind="grant"))

    assert (until, "tool_always", None) == (ending.until, ending.scope, ending.uses)
    assert (until, "session", 1) == (narrowed.until, narrowed.scope, narrowed.uses)
    assert (grant.principal, grant.object, grant.by) == (
        narrowed.principal, narrowed.object, narrowed.by,
    )  # fmt: skip
    assert [] == list(left)
    assert ["ada", "ada"] == [row.approver for row in rows if row.action == "grant.narrow"]


@WAYS
@pytest.mark.parametrize(
    "wider",
    [{}, {"until": 1.0}, {"until": 4_000_000_000.0}, {"uses": 0}, {"scope": "tool_always"}],
    ids=str,
)
async def test_a_grant_is_not_widened(tmp_path, way, wider):
    """Ours: what is refused leaves the grant as it is."""
    state = tmp_path / "state"
    async with make_console_host(state, ASK_ADD) as host, view_host(host, way, state) as view:
        until = time.time() + 600
        grant = await give_grant(host, view, remember="until", until=until)
        with pytest.raises(UsageError, match=r"narrow|new (end|number of uses) of a grant"):
            await view.narrow_grant(grant.id, **wider)
        assert [grant] == list(await view.grants())


# Policy


@WAYS
async def test_a_promoted_policy_holds_until_the_configuration_is_read_again(tmp_path, way):
    """Ours: no file is written for it, as the page and the guide say."""
    path, state = write_config(tmp_path, first={"command": "no-such-program"}), tmp_path / "state"
    text = path.read_text()
    async with open_configured(path, state) as host, view_host(host, way, state) as view:
        before = await view.policy_layers()
        host.core.pipeline.shadow = Policy.named("locked-down")
        assert await view.promote_shadow(by="ada")
        promoted = await view.policy_layers()
        await host.reread()
        after = await view.policy_layers()

    assert before == after
    assert before != promoted
    assert text == path.read_text()


SHADOW_FILES = {
    "mcp.json": (
        (
            '{\n  // ours\n  "host": {\n    "policy": "developer",\n    "shadow": "locked-down",\n'
            '    "search": {}\n  },\n  "mcpServers": {}\n}\n'
        ),
        (
            '{\n  // ours\n  "host": {\n    "policy": "locked-down",\n    "search": {}\n  },\n'
            '  "mcpServers": {}\n}\n'
        ),
    ),
    "mcp.toml": (
        '# ours\n[host]\nshadow = "locked-down"  # soon\npolicy = "developer"\n\n[mcpServers]\n',
        '# ours\n[host]\npolicy = "locked-down"\n\n[mcpServers]\n',
    ),
}


@WAYS
@pytest.mark.parametrize("name", SHADOW_FILES)
async def test_a_promoted_policy_is_written_where_that_is_wanted(tmp_path, way, name):
    """Ours: comments and order stay; after a reload and with the next host it is in force."""
    if name.endswith("toml"):
        pytest.importorskip("tomlkit", reason="the extra isthmus[toml]")
    path, state = tmp_path / name, tmp_path / "state"
    path.write_text(SHADOW_FILES[name][0])
    async with (
        Host.from_config(str(path), state=state) as host,
        view_host(host, way, state) as view,
    ):
        done = await view.promote_shadow(by="ada", keep=True)
        await host.reread()
        layers = await view.policy_layers()
        (row,) = await view.audit_rows(AuditQuery(kind="policy"))
    assert str(path) == done.file
    assert SHADOW_FILES[name][1] == path.read_text()
    assert {"default"} == {layer.layer for layer in layers}
    assert Policy.named("locked-down").layers[0].rules[0].id == layers[0].rules[0].name
    assert ("policy.promote", "ada") == (row.action, row.approver)


@WAYS
async def test_what_to_paste_is_said_where_nothing_is_written(tmp_path, way):
    """Ours: in the language of the file; and why it was not written, where that was asked for."""
    path, state = tmp_path / "mcp.json", tmp_path / "state"
    path.write_text(SHADOW_FILES["mcp.json"][0])
    async with (
        Host.from_config(str(path), state=state) as host,
        view_host(host, way, state) as view,
    ):
        done = await view.promote_shadow(by="ada")
        host.core.pipeline.shadow = Policy.named("developer")
        path.write_text('{"host": {"shadow": "developer"}, ')
        broken = await view.promote_shadow(by="ada", keep=True)
    assert ("", "", str(path)) == (done.file, done.reason, done.place)
    assert {"host": {"policy": "locked-down"}} == json.loads(done.paste)
    assert ("", True) == (broken.file, bool(broken.reason))


@WAYS
async def test_a_host_of_a_program_says_where_its_policy_is_given(tmp_path, way):
    """Ours: no file names it."""
    state = tmp_path / "state"
    async with make_console_host(state, ASK_ADD) as host, view_host(host, way, state) as view:
        host.core.pipeline.shadow = Policy.named("locked-down")
        done = await view.promote_shadow(by="ada", keep=True)
    assert "the program" in done.reason
    assert "policy=" in done.paste


def test_a_file_that_counts_before_is_not_passed_by(tmp_path):
    """Ours: what would be written would not count; the error names the file that does."""
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text('{"host": {"policy": "developer"}, "mcpServers": {}}')
    second.write_text('{"host": {"shadow": "locked-down"}, "mcpServers": {}}')
    config = load_config([first, second])
    member = ShadowMember.find(config)
    with pytest.raises(ConfigError, match=r"first\.json names the policy, and counts before"):
        member.promote()
    assert "shadow" in second.read_text()
