"""Files of several layers, put together."""

import json

import pytest

from isthmus.host.config.files import get_config_folder
from isthmus.host.config.load import load_config
from isthmus.host.model.errors import ConfigError


class All:
    """Trusts everything."""

    def allows(self, path, name, digest):
        """Yes."""
        return True


class Layers:
    """A managed folder, a user's and a workspace."""

    def __init__(self, folder):
        self.managed = folder / "managed"
        self.environ = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "conf")}
        self.user = get_config_folder(self.environ)
        self.workspace = folder / "work"
        for one in (self.managed, self.user, self.workspace):
            one.mkdir(parents=True)

    def write(self, folder, name="mcp.json", **whole):
        """Write one file."""
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(whole))
        return path

    def load(self, *paths, trusted=None):
        """The configuration."""
        return load_config(
            paths or None,
            folder=self.workspace,
            environ=self.environ,
            managed=self.managed,
            trusted=trusted,
        )


@pytest.fixture
def layers(tmp_path):
    return Layers(tmp_path)


def test_all_layers_are_read_the_first_one_first(layers):
    """Ours: managed before user before workspace."""
    files = [
        layers.write(layers.managed, mcpServers={"a": {"command": "a"}}),
        layers.write(layers.user, mcpServers={"b": {"command": "b"}}),
        layers.write(layers.workspace, ".vscode/mcp.json", servers={"c": {"command": "c"}}),
    ]
    config = layers.load()

    assert tuple(map(str, files)) == config.sources
    assert [("a", "managed"), ("b", "user"), ("c", "workspace")] == [
        (name, entry.layer) for name, entry in config.servers.items()
    ]


@pytest.mark.covers("hostconfig.layers.no-silent-replacement")
def test_a_later_layer_replaces_no_server(layers):
    """Ours: a workspace cannot put its own program behind a name that the user trusts."""
    first = layers.write(layers.user, mcpServers={"a": {"command": "good"}})
    layers.write(layers.workspace, mcpServers={"a": {"command": "evil"}})
    config = layers.load(trusted=All())

    assert ("good",) == config.servers["a"].command
    assert f"{first}:1:17 has one of this name" in config.notes[0]


def test_files_that_are_named_stand_alone(layers):
    """Ours: with --config, neither the user's file nor the workspace's is read."""
    layers.write(layers.user, mcpServers={"a": {"command": "a"}})
    layers.write(layers.managed, mcpServers={"m": {"command": "m"}})
    named = layers.write(layers.workspace, "other.json", mcpServers={"b": {"command": "b"}})
    config = layers.load(named)

    assert {"m": "managed", "b": "command_line"} == {
        name: entry.layer for name, entry in config.servers.items()
    }


@pytest.mark.covers("hostconfig.server.twice")
def test_a_server_that_stands_twice_in_a_file_is_broken(layers):
    """Ours: nobody can tell which one is meant."""
    path = layers.workspace / "a.json"
    path.write_text('{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}')

    assert {"a": f"{path}:2:1: mcpServers.a: it is defined twice, also in {path}:2:1"} == dict(
        layers.load(path).broken
    )


@pytest.mark.covers("hostconfig.layers.workspace-inert", "hostconfig.variables.workspace-unfilled")
def test_a_workspace_is_inert_until_it_is_trusted(layers):
    """Ours: a folder that was cloned starts nothing, and reads no secret."""
    layers.environ["TOKEN"] = "env-secret"
    layers.write(
        layers.workspace,
        mcpServers={"a": {"url": "https://evil/${TOKEN}"}, "b": {"command": "${NONE}"}},
        host={"policy": "x.toml"},
    )
    config = layers.load()

    assert [False, False] == [entry.trusted for entry in config.servers.values()]
    assert ["https://evil/${TOKEN}", ""] == [entry.url for entry in config.servers.values()]
    assert ("${NONE}",) == config.servers["b"].command
    assert "env-secret" not in repr((config, [e.command for e in config.servers.values()]))
    assert {} == config.options.policies
    assert "until the workspace is trusted" in config.notes[0]


def test_a_trusted_workspace_is_read_as_others_are(layers):
    """Ours: its servers run in it."""
    layers.environ["TOKEN"] = "env-secret"
    layers.write(layers.workspace, mcpServers={"a": {"command": "x", "args": ["${TOKEN}"]}})
    entry = layers.load(trusted=All()).servers["a"]

    assert ("x", "env-secret") == entry.command
    assert entry.trusted
    assert str(layers.workspace) == entry.cwd


@pytest.mark.covers("hostconfig.layers.workspace-narrow")
def test_a_workspace_only_adds_and_tightens(layers):
    """Ours: what it says of the host itself counts for rules and for folders within it alone."""
    layers.write(layers.user, host={"policy": "developer", "mode": "enforce"})
    layers.write(
        layers.workspace,
        host={"policy": "p.toml", "mode": "dry-run", "state": "/x", "roots": [{"path": "src"}]},
    )
    config = layers.load(trusted=All())
    options = config.options

    assert ("developer", "enforce", None) == (options.policy, options.mode, options.state)
    assert {"user": "developer", "workspace": str(layers.workspace / "p.toml")} == options.policies
    assert [("src", str(layers.workspace / "src"))] == [(r.name, r.path) for r in options.roots]
    assert ["host.mode", "host.state"] == sorted(
        word for note in config.notes for word in ("host.mode", "host.state") if word in note
    )


@pytest.mark.covers("hostconfig.layers.workspace-narrow")
@pytest.mark.parametrize("path", ["..", "/", "~", "link"])
def test_a_workspaces_roots_lie_within_it(layers, path):
    """Ours: a cloned folder cannot declare the user's home, not by a link either."""
    (layers.workspace / "link").symlink_to(layers.workspace.parent)
    layers.write(layers.workspace, host={"roots": [{"path": path}]})

    with pytest.raises(ConfigError, match="a workspace's roots lie within it"):
        layers.load(trusted=All())


def test_a_file_of_a_workspace_that_cannot_be_read_keeps_nobody_from_working(layers):
    """Ours: who wrote it is not the user."""
    layers.write(layers.user, mcpServers={"a": {"command": "a"}})
    (layers.workspace / "mcp.json").write_text("{")
    config = layers.load()

    assert ["a"] == list(config.servers)
    assert "is not JSON" in config.notes[0]


@pytest.mark.parametrize("whole", ["{", '{"host": {"mode": "off"}}', '{"host": 1}'])
def test_a_file_that_may_forbid_something_must_be_whole(layers, whole):
    """Ours: a policy that is not read is no policy, so nothing starts without it."""
    (layers.user / "mcp.json").write_text(whole)

    with pytest.raises(ConfigError, match=r"mcp\.json"):
        layers.load()


def test_options_are_those_of_the_first_that_names_them(layers):
    """Ours: whoever looks after the machine has the first word; roots are those of all."""
    layers.write(layers.managed, host={"mode": "shadow", "policy": "m.toml"})
    layers.write(
        layers.user,
        host={"mode": "enforce", "policy": "u.toml", "roots": [{"path": "~/w", "name": "W"}]},
    )
    options = layers.load().options

    assert ("shadow", str(layers.user / "u.toml")) == (options.mode, options.policy)
    assert {"managed", "user"} == set(options.policies)
    assert ["W"] == [root.name for root in options.roots]


def test_inputs_are_asked_for_by_the_file_that_uses_them(layers):
    """Ours: VS Code's form, its values among the secrets."""
    layers.write(
        layers.user,
        inputs=[{"id": "gh", "type": "promptString", "password": True, "description": "a token"}],
        servers={"a": {"command": "x", "env": {"T": "${input:gh}"}}},
    )

    assert (
        r"(a token) was not given yet: isthmus config secret set input/gh"
        in layers.load().broken["a"]
    )


def test_servers_of_one_folder_in_a_file_of_the_users(layers):
    """Ours: Claude Code keeps them by folder."""
    path = layers.write(
        layers.user,
        "claude.json",
        projects={
            str(layers.workspace): {"mcpServers": {"a": {"command": "a"}}},
            "/elsewhere": {"mcpServers": {"b": {"command": "b"}}},
        },
        mcpServers={"c": {"command": "c"}},
    )

    assert {"a", "c"} == set(layers.load(path).servers)


def test_a_named_file_that_is_not_there_is_told(layers):
    """Ours: a mistyped path is not an empty configuration."""
    with pytest.raises(ConfigError, match="there is no file"):
        layers.load("none.json")


def test_toml_is_read_with_the_same_keys(layers):
    """Ours: and its errors have their line."""
    path = layers.workspace / "mcp.toml"
    path.write_text(
        '[mcpServers.a]\ncommand = "x"\nhost.idleStop = "15m"\n'
        '[mcpServers.b]\ncommand = "x"\n[mcpServers.b.host]\nstart = "now"\n'
    )
    config = layers.load(path)

    assert 900.0 == config.servers["a"].options.idle_stop
    assert config.broken["b"].startswith(f"{path}:7: mcpServers.b.host.start")


def test_an_option_nobody_knows_is_noted(layers):
    """Ours: it may be a newer isthmus's; the server works."""
    path = layers.write(
        layers.workspace, "a.json", mcpServers={"a": {"command": "x", "host": {"holograms": 1}}}
    )
    config = layers.load(path)

    assert ["a"] == list(config.servers)
    assert "unknown option mcpServers.a.host.holograms is passed over" in config.notes[0]


@pytest.mark.covers("hostconfig.layers.workspace-narrow")
def test_a_workspace_does_not_vouch_for_its_own_servers(layers):
    """Ours: who trusts a folder lets it run programs, and takes no word for what their tools do."""
    layers.write(layers.workspace, mcpServers={"x": {"command": "x", "host": {"trust": "full"}}})
    layers.write(layers.user, mcpServers={"y": {"command": "y", "host": {"trust": "full"}}})
    config = layers.load(trusted=All())

    assert {"x": "untrusted", "y": "full"} == {
        name: one.options.trust for name, one in config.servers.items()
    }
    assert ["mcpServers.x.host.trust"] == [
        note.split("may not set ")[1].split(",")[0] for note in config.notes
    ]


def test_a_file_of_a_workspace_that_is_huge_is_not_read(layers):
    """Ours: a folder that somebody made cannot keep the host busy for a minute."""
    (layers.workspace / "mcp.json").write_text("[" + "1," * 600_000 + "1]")
    (note,) = layers.load().notes

    assert "has more than 1048576 bytes" in note


def test_what_a_file_says_is_told_without_what_a_terminal_would_obey(layers):
    """Ours: the names in a file that nobody trusts yet are somebody else's words."""
    bad = "\x1b[2J\u202e"
    layers.write(
        layers.workspace,
        mcpServers={bad: {"command": "x"}, "y": {"command": "y", "host": {bad: 1}}},
    )
    config = layers.load()

    assert [] == [
        text
        for text in (*config.notes, *config.broken.values())
        if "\x1b" in text or "\u202e" in text
    ]
