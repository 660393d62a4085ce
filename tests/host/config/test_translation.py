"""Entries of other programs: what restricts, authorizes or times a server is taken over or an error."""

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies

from isthmus.host.catalog.names import is_chosen
from isthmus.host.config import translation
from isthmus.host.config.files import ConfigDocument
from isthmus.host.config.forms import BadMember
from isthmus.host.config.importing import import_servers, write_imported
from isthmus.host.config.layouts import RawServer, find_servers, read_inputs
from isthmus.host.config.load import load_config
from isthmus.host.config.servers import ServerReading, list_exposures, read_server
from isthmus.host.config.variables import UnresolvedVariable, VariableScope

TOOLS = ("read", "write", "delete")
BEFORE = {"A_TOKEN": "the-canary", "B": "b"}

PATHS = {
    "gemini": ".gemini/settings.json",
    "kiro": ".kiro/settings/mcp.json",
    "claude": ".claude.json",
    "cline": "cline_mcp_settings.json",
    "roo": "mcp_settings.json",
    "copilot": ".copilot/mcp-config.json",
    "opencode": "opencode.json",
    "zed": "zed/settings.json",
    "": "other.json",
}


def read(path, text):
    """What a file says that is read directly."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return load_config(path, folder=path.parent, environ=BEFORE, managed=path.parent / "none")


def read_both(folder, text, name="other.json"):
    """What a file says that is read directly, and what it says once it was imported."""
    direct = read(folder / name, text)
    ours = folder / "ours.json"
    taken = import_servers(folder / name)
    write_imported(taken, ours)
    again = (
        load_config(ours, folder=folder, environ=BEFORE, managed=folder / "none").servers
        if taken.servers
        else {}
    )
    assert sorted(direct.servers) == sorted(again)
    assert sorted(direct.broken) == sorted(taken.refused)
    return direct, again, taken


def chosen_of(entry):
    """The tools that an entry leaves of all."""
    return tuple(tool for tool in TOOLS if is_chosen(entry.options.tools, tool))


@pytest.mark.parametrize(
    ("entry", "left"),
    [
        ({"includeTools": ["read"]}, ("read",)),
        ({"excludeTools": ["delete"]}, ("read", "write")),
        ({"includeTools": ["read", "delete"], "excludeTools": ["delete"]}, ("read",)),
        ({"disabledTools": ["delete", "write"]}, ("read",)),
        ({"enabled_tools": ["read"], "disabled_tools": ["write"]}, ("read",)),
        ({"tools": ["read", "write"]}, ("read", "write")),
        ({"tools": ["*"]}, TOOLS),
        ({"tools": []}, ()),
        ({"includeTools": []}, ()),
        ({"tools": {"delete": False, "read": {"approval_mode": "approve"}}}, ("read", "write")),
        ({"includeTools": ["re*"]}, ()),
        ({"excludeTools": ["re*"]}, ("write", "delete")),
        ({"includeTools": ["read"], "host": {"tools": {"include": ["*e*"]}}}, ("read",)),
        ({"includeTools": ["read"], "host": {"tools": {"include": ["w*"]}}}, ()),
        ({"disabledTools": ["read"], "host": {"tools": {"exclude": ["w*"]}}}, ("delete",)),
    ],
)
def test_a_list_of_tools_is_obeyed_read_or_imported(tmp_path, entry, left):
    """Ours: what another program does not show its model is not shown here, either."""
    direct, again, _ = read_both(tmp_path, {"mcpServers": {"x": {"command": "c", **entry}}})

    assert {} == direct.broken
    assert (left, left) == (chosen_of(direct.servers["x"]), chosen_of(again["x"]))


@pytest.mark.parametrize(
    "entry",
    [
        {"disabled": True},
        {"enabled": False},
        {"isActive": False},
        {"enabled": True, "disabled": True},
    ],
)
def test_a_server_that_is_off_elsewhere_is_off_here(tmp_path, entry):
    """Ours: in each word that there is for it, read or imported."""
    direct, again, _ = read_both(tmp_path, {"mcpServers": {"x": {"command": "c", **entry}}})

    assert not direct.servers["x"].options.enabled
    assert not again["x"].options.enabled


def test_codex_switches_a_server_off(tmp_path):
    """Ours: ``enabled = false`` of TOML, read and imported."""
    text = '[mcp_servers.x]\ncommand = "c"\nenabled = false\nenabled_tools = ["read"]\n'
    direct, again, _ = read_both(tmp_path, text, ".codex/config.toml")

    assert not direct.servers["x"].options.enabled
    assert not again["x"].options.enabled
    assert ("read",) == chosen_of(again["x"])


@pytest.mark.parametrize(
    ("around", "on"),
    [
        ({"mcp": {"excluded": ["x"]}}, ["y"]),
        ({"mcp": {"allowed": ["x"]}}, ["x"]),
        ({"mcp": {"allowed": ["x"], "excluded": ["x"]}}, []),
        ({"mcp": {"allowed": []}}, []),
        ({"excludeMCPServers": ["x"]}, ["y"]),
        ({"disabledMcpServers": ["x"]}, ["y"]),
        ({"deniedMcpServers": [{"serverName": "x"}]}, ["y"]),
    ],
)
def test_what_a_file_says_of_its_servers_is_obeyed(tmp_path, around, on):
    """Ours: Gemini and Claude Code name servers outside of the entries."""
    servers = {"x": {"command": "c"}, "y": {"command": "c"}}
    direct, again, _ = read_both(tmp_path, {**around, "mcpServers": servers})

    assert on == [name for name, entry in direct.servers.items() if entry.options.enabled]
    assert on == [name for name, entry in again.items() if entry.options.enabled]


def test_a_list_of_servers_that_nobody_understands_breaks_them_all(tmp_path):
    """Ours: it may be the one that forbids them."""
    servers = {"x": {"command": "c"}}
    around = {"deniedMcpServers": [{"serverUrl": "https://*.example"}]}
    direct, _, taken = read_both(tmp_path, {**around, "mcpServers": servers})

    assert "other.json:1:2: deniedMcpServers: this restricts which servers" in direct.broken["x"]
    assert "deniedMcpServers" in taken.refused["x"]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"toolFilter": "safe"}, r"x\.toolFilter: isthmus does not know 'toolFilter'"),
        ({"allowedPaths": ["/"]}, "does not know 'allowedPaths'"),
        ({"requestTimeoutMs": 5}, "does not know 'requestTimeoutMs'"),
        ({"verifyTls": False}, "does not know 'verifyTls'"),
        ({"readOnly": True}, "does not know 'readOnly'"),
        ({"includeTools": "read"}, r"x\.includeTools: includeTools is a list of names"),
        ({"includeTools": ["run(ls)"]}, "restricts what a tool is given"),
        ({"disabled": "yes"}, "disabled is true or false"),
        ({"tools": {"read": {"approval_mode": "prompt"}}}, "'prompt' asks before calls"),
        ({"default_tools_approval_mode": "prompt"}, "'prompt' asks before calls"),
        ({"timeout": 60}, r'60 is seconds for Cline.*"timeouts": \{"call": "60s"\}'),
        ({"timeout": "60"}, "timeout is a number above 0"),
        ({"headersHelper": "/bin/x"}, "isthmus runs no program for headers"),
        ({"oauth": {"clientId": "c"}}, "isthmus auth login URL"),
        ({"auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "s"}}, "isthmus auth login URL"),
        ({"oauthScopes": ["a"]}, "isthmus auth login URL"),
        ({"authProviderType": "google_credentials"}, "isthmus auth login URL"),
        ({"bearer_token": "s"}, "does not know 'bearer_token'"),
        ({"bearer_token_env_var": "not a name"}, "this names a variable"),
        ({"env_vars": [{"name": "A", "source": "remote"}]}, "another machine"),
        ({"experimental_environment": "remote"}, "isthmus runs servers on this machine"),
        (
            {"sandboxEnabled": True, "sandbox": {"network": {"allowedDomains": ["a"]}}},
            "confine by network",
        ),
        ({"sandboxEnabled": True, "sandbox": {"filesystem": {"denyWrite": ["a"]}}}, "denyWrite"),
        (
            {"sandboxEnabled": True, "sandbox": {"filesystem": {"denyRead": ["${userHome}/.ssh"]}}},
            "userHome",
        ),
        ({"requestOptions": {"verifySsl": False}}, "isthmus has no 'verifySsl'"),
    ],
)
def test_a_restriction_that_is_not_understood_is_an_error_by_line(tmp_path, entry, says):
    """Ours: what is passed over silently is a restriction that is gone; the import refuses it, too."""
    direct, _, taken = read_both(tmp_path, {"mcpServers": {"x": {"command": "c", **entry}}})

    with pytest.raises(AssertionError, match=says):
        raise AssertionError(direct.broken["x"])
    assert direct.broken["x"].startswith(f"{tmp_path / 'other.json'}:1:")
    assert direct.broken["x"] == taken.refused["x"]


def test_our_own_word_settles_what_is_not_understood(tmp_path):
    """Ours: a file that is shared with another program can be used all the same."""
    entry = {
        "url": "https://x/mcp",
        "timeout": 60,
        "toolFilter": "safe",
        "oauth": {"clientId": "c"},
        "headersHelper": "/bin/x",
        "host": {
            "ignore": ["toolFilter"],
            "timeouts": {"call": "60s"},
            "auth": {"kind": "user-oauth"},
        },
    }
    direct, again, _ = read_both(tmp_path, {"mcpServers": {"x": entry}})

    assert {} == direct.broken
    assert (60.0, 60.0) == tuple(s["x"].options.timeouts.call for s in (direct.servers, again))


def test_what_restricts_nothing_is_passed_over(tmp_path):
    """Ours: consent that another program was given is none here, and its own settings are its own."""
    entry = {
        "autoApprove": ["read"],
        "alwaysAllow": ["read"],
        "trust": True,
        "gallery": "x",
        "dev": {},
    }
    direct, again, taken = read_both(tmp_path, {"mcpServers": {"x": {"command": "c", **entry}}})

    assert {} == direct.broken
    assert [
        "x: alwaysAllow, autoApprove, dev, gallery, trust mean nothing here, and are left out"
    ] == taken.notes
    assert "untrusted" == again["x"].options.trust


@pytest.mark.parametrize(
    ("program", "value", "seconds"),
    [
        ("gemini", 30_000, 30.0),
        ("claude", 5_000, 5.0),
        ("copilot", 2_000, 2.0),
        ("kiro", 100, 0.1),
        ("cline", 60, 60.0),
        ("roo", 3600, 3600.0),
        ("", 30_000, 30.0),
    ],
)
def test_a_timeout_counts_in_the_unit_of_its_program(tmp_path, program, value, seconds):
    """Ours: a thousand times as long is no limit."""
    whole = {"mcpServers": {"x": {"command": "c", "timeout": value}}}
    direct, again, _ = read_both(tmp_path, whole, PATHS[program])

    assert {} == direct.broken
    assert [(seconds, seconds)] * 2 == [
        (entry.options.timeouts.call, entry.options.timeouts.total)
        for entry in (direct.servers["x"], again["x"])
    ]


def test_codex_says_how_long_in_its_names(tmp_path):
    """Ours: until it has started, and for a call."""
    text = '[mcp_servers.x]\ncommand = "c"\nstartup_timeout_sec = 20\ntool_timeout_sec = 5\n'
    direct, again, _ = read_both(tmp_path, text, ".codex/config.toml")

    for entry in (direct.servers["x"], again["x"]):
        times = entry.options.timeouts
        assert (20.0, 5.0, 5.0) == (times.connect, times.call, times.total)


def test_codex_takes_tokens_and_headers_from_the_environment(tmp_path):
    """Ours: with nothing but the name in the file, also once it was imported."""
    text = """
[mcp_servers.far]
url = "https://x.example/mcp"
bearer_token_env_var = "A_TOKEN"
http_headers = { "X-One" = "1" }
env_http_headers = { "X-B" = "B" }

[mcp_servers.near]
command = "c"
env_vars = ["A_TOKEN", { name = "B" }]
env = { C = "c" }
"""
    direct, again, taken = read_both(tmp_path, text, ".codex/config.toml")

    for servers in (direct.servers, again):
        assert {"Authorization": "Bearer the-canary", "X-One": "1", "X-B": "b"} == servers[
            "far"
        ].headers
        assert {"A_TOKEN": "the-canary", "B": "b", "C": "c"} == servers["near"].env
        assert "the-canary" in [one.reveal() for one in servers["far"].secrets]
    assert "canary" not in (tmp_path / "ours.json").read_text()
    assert "far: ${A_TOKEN} is sent to https://x.example" in taken.notes


@pytest.mark.parametrize("program", ["gemini", "kiro"])
def test_variables_without_braces_are_filled_in_where_the_program_does(tmp_path, program):
    """Ours: Gemini and Kiro write them like a shell."""
    entry = {"command": "c", "args": ["-t=$A_TOKEN"], "env": {"K": "$A_TOKEN", "L": "pa$word"}}
    direct, again, _ = read_both(tmp_path, {"mcpServers": {"x": entry}}, PATHS[program])

    for found in (direct.servers["x"], again["x"]):
        assert ("c", "-t=the-canary") == found.command
        assert {"K": "the-canary", "L": "pa$word"} == found.env


def test_a_variable_without_braces_elsewhere_is_told(tmp_path):
    """Ours: most programs hand it on as it stands, which is hardly what was meant."""
    whole = {"mcpServers": {"x": {"command": "c", "env": {"K": "$A_TOKEN"}}}}
    direct, _, taken = read_both(tmp_path, whole)

    assert {"K": "$A_TOKEN"} == direct.servers["x"].env
    assert [note for note in direct.notes if "write ${A_TOKEN} for the variable" in note]
    assert [note for note in taken.notes if "write ${A_TOKEN} for the variable" in note]


def test_a_variable_that_the_entry_sets_stands_in_for_the_environments(tmp_path):
    """Ours: the environment first; what is literal in the entry is the default."""
    entry = {
        "command": "c",
        "args": ["${OWN}", "${B}"],
        "env": {"OWN": "own", "B": "mine", "S": "${B}"},
    }
    direct, again, _ = read_both(tmp_path, {"mcpServers": {"x": entry}})

    for found in (direct.servers["x"], again["x"]):
        assert ("c", "own", "b") == found.command
        assert {"OWN": "own", "B": "mine", "S": "b"} == found.env


def test_inputs_of_settings_are_known(tmp_path):
    """Ours: VS Code has them beside the servers, in ``mcp``."""
    whole = {
        "mcp": {
            "servers": {"x": {"command": "c", "args": ["${input:id}"]}},
            "inputs": [{"id": "id", "default": "given"}],
        }
    }
    direct, again, _ = read_both(tmp_path, whole, "settings.json")

    assert ("c", "given") == direct.servers["x"].command == again["x"].command


def test_relative_places_are_where_they_were_after_an_import(tmp_path):
    """Ours: an entry that moves keeps its folder and its file of variables."""
    (tmp_path / "their" / "sub").mkdir(parents=True)
    (tmp_path / "their" / "my.env").write_text("V=1\n")
    whole = {"servers": {"x": {"command": "c", "cwd": "sub", "envFile": "my.env"}}}
    path = tmp_path / "their" / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps(whole))
    write_imported(import_servers(path), tmp_path / "ours.json")
    again = load_config(tmp_path / "ours.json", folder=tmp_path, environ={}, managed=tmp_path / "m")

    assert str(tmp_path / "their" / "sub") == again.servers["x"].cwd
    assert {"V": "1"} == again.servers["x"].env


def test_a_name_with_blanks_is_written_with_dashes(tmp_path):
    """Ours: Continue and VS Code have such names; a tool's name has none."""
    direct, again, taken = read_both(tmp_path, {"mcpServers": {"My  Server": {"command": "c"}}})

    assert ["My-Server"] == list(direct.servers) == list(again)
    assert [note for note in direct.notes if "'My  Server' is called 'My-Server' here" in note]
    assert ["'My  Server' is called 'My-Server' here"] == taken.notes


def test_zed_keeps_servers_as_context_servers(tmp_path):
    """Ours: with a command as a text or as an object; what an extension brings is none of ours."""
    text = """{ // Zed's
      "context_servers": {
        "a": {"source": "custom", "command": "c", "args": ["1"], "timeout": 60},
        "b": {"command": {"path": "d", "args": ["2"], "env": {"E": "e"}}, "settings": {}},
        "c": {"url": "https://x/mcp", "enabled": false},
        "d": {"source": "extension", "settings": {"key": 1}},
      },
    }"""
    direct, again, _ = read_both(tmp_path, text, "zed/settings.json")

    for servers in (direct.servers, again):
        assert [("c", "1"), ("d", "2"), ()] == [servers[n].command for n in "abc"]
        assert {"E": "e"} == servers["b"].env
        assert 60.0 == servers["a"].options.timeouts.call
        assert not servers["c"].options.enabled
    assert "extension of Zed" in direct.broken["d"]


@pytest.mark.parametrize("where", [("mcp",), ("mcp", "servers")])
def test_opencode_keeps_servers_under_mcp(tmp_path, where):
    """Ours: with commands as lists, variables of its own, and tools that are switched off beside."""
    servers = {
        "a": {"type": "local", "command": ["c", "1"], "environment": {"K": "{env:A_TOKEN}"}},
        "b": {"type": "remote", "url": "https://x/mcp", "enabled": False, "oauth": False},
        "c": {"type": "local", "command": ["c"], "timeout": 5000, "env": {"F": "{file:~/x}"}},
    }
    part = {where[1]: servers} if where[1:] else servers
    whole = {
        "mcp": part,
        "tools": {"a_delete": False, "b*": False, "webfetch": False, "a_read": True},
    }
    direct, again, _ = read_both(tmp_path, whole, "opencode.json")

    for found in (direct.servers, again):
        assert (("c", "1"), {"K": "the-canary"}) == (found["a"].command, found["a"].env)
        assert ("read", "write") == chosen_of(found["a"])
        assert ("https://x/mcp", "none") == (found["b"].url, found["b"].options.auth["kind"])
        assert () == chosen_of(found["b"])
        assert not found["b"].options.enabled
    assert "isthmus fills in no files" in direct.broken["c"]


@pytest.mark.parametrize(
    ("name", "glob", "left"),
    [
        ("a", "*_delete", ("read", "write")),
        ("a", "a*te", ("read",)),
        ("a", "?_delete", ("read", "write")),
        ("a", "a_*", ()),
        ("a", "*", ()),
        ("my.a", "my_a_delete", ("read", "write")),
        ("a", "b_*", ("read", "write", "delete")),
    ],
)
def test_globs_of_opencode_restrict_however_they_are_written(tmp_path, name, glob, left):
    """Ours: a star or a question mark may stand in the server's part of a tool's name."""
    server = {"type": "local", "command": ["c"]}
    whole = {"mcp": {name: server}, "permission": {glob: "deny"}}
    direct, again, _ = read_both(tmp_path, whole, "opencode.json")

    for found in (direct.servers, again):
        assert left == chosen_of(found[name])


def test_goose_keeps_servers_as_extensions_in_yaml(tmp_path):
    """Ours: with the place of what is wrong; its own parts are no servers."""
    pytest.importorskip("yaml")
    text = """# Goose's
extensions:
  fetch:
    type: stdio
    cmd: uvx
    args: [mcp-server-fetch, NO]
    envs: {LANG: no}
    env_keys: [A_TOKEN]
    available_tools: []
    timeout: 300
    enabled: true
  far:
    type: streamable_http
    uri: https://x.example/mcp
    enabled: false
    available_tools: [read]
  odd:
    type: stdio
    cmd: c
    toolFilter: x
  developer: {type: builtin, name: developer, bundled: true}
"""
    direct, again, _ = read_both(tmp_path, text, "goose/config.yaml")

    for found in (direct.servers, again):
        assert ("uvx", "mcp-server-fetch", "NO") == found["fetch"].command
        assert {"LANG": "no", "A_TOKEN": "the-canary"} == found["fetch"].env
        assert (300.0, TOOLS) == (found["fetch"].options.timeouts.call, chosen_of(found["fetch"]))
        assert "http" == found["far"].kind
        assert not found["far"].options.enabled
        assert ("read",) == chosen_of(found["far"])
    assert (
        f"{tmp_path / 'goose/config.yaml'}:20:5: extensions.odd.toolFilter" in direct.broken["odd"]
    )
    assert "a part of Goose" in direct.broken["developer"]


def test_continue_keeps_servers_as_a_list_in_yaml(tmp_path):
    """Ours: with names, options of requests, and secrets in its own spelling."""
    pytest.importorskip("yaml")
    text = """name: mine
mcpServers:
  - name: My Browser
    command: npx
    args: ["-y", "x"]
    connectionTimeout: 2000
  - name: far
    type: streamable-http
    url: https://x.example/mcp
    requestOptions:
      timeout: 5000
      headers:
        Authorization: Bearer ${{ secrets.KEY }}
"""
    path = tmp_path / "assistant.yaml"
    direct = read(path, text)
    taken = import_servers(path)

    assert (("npx", "-y", "x"), 2.0) == (
        direct.servers["My-Browser"].command,
        direct.servers["My-Browser"].options.timeouts.connect,
    )
    assert "isthmus config secret set KEY" in direct.broken["far"]
    assert {"Authorization": "Bearer ${secret:KEY}"} == taken.servers["far"]["headers"]
    assert {"call": 5.0, "total": 5.0} == taken.servers["far"]["host"]["timeouts"]


def test_a_sandbox_of_vs_code_holds_here(tmp_path):
    """Ours: without a list of domains there is no network, as there."""
    entry = {
        "command": "c",
        "sandboxEnabled": True,
        "sandbox": {"filesystem": {"denyRead": ["/k"]}},
    }
    direct, again, _ = read_both(tmp_path, {"servers": {"x": entry}})

    for found in (direct.servers["x"], again["x"]):
        assert ("/k",) == found.options.sandbox.deny_read
        assert not found.options.sandbox.network


def test_a_files_own_login_is_shown_without_its_secrets(tmp_path):
    """Ours: words of other programs have keys in them, too."""
    from isthmus.host.config.explain import explain_server
    from isthmus.host.config.load import merge_documents, read_config_layers

    path = tmp_path / "a.json"
    entry = {
        "url": "https://x",
        "oauth": {"clientSecret": "canary"},
        "http_headers": {"X-Key": "canary"},
    }
    path.write_text(json.dumps({"mcpServers": {"x": entry}}))
    layers, notes = read_config_layers(path, folder=tmp_path, environ={}, managed=tmp_path / "m")

    assert "canary" not in repr(explain_server(merge_documents(layers, notes, environ={}), "x"))


def test_a_workspaces_address_hides_no_secret_in_a_name(tmp_path):
    """Ours: whoever is asked for the machine's address would get to know it."""
    servers = {
        "a": {"url": "https://${A_TOKEN}.evil.example/mcp"},
        "b": {"url": "https://${secret:b}.evil.example/mcp"},
        "c": {"url": "https://${B}.example/mcp?k=${A_TOKEN}", "headers": {"X": "${B:-y}"}},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    class Trusting:
        def allows(self, *_said):
            return True

    config = load_config(
        None, folder=tmp_path, environ=BEFORE | {"XDG_CONFIG_HOME": str(tmp_path / "c")},
        managed=tmp_path / "m", trusted=Trusting(),
    )  # fmt: skip

    assert ["c"] == list(config.servers)
    assert "${A_TOKEN} may not stand in the name" in config.broken["a"]
    assert "${secret:b} may not stand in the name" in config.broken["b"]
    assert ("${B}", "${A_TOKEN}") == config.servers["c"].sent


def test_a_mistyped_name_to_ignore_is_told(tmp_path):
    """Ours: it would ignore nothing."""
    entry = {"command": "c", "host": {"ignore": ["toolFliter"]}}
    config = read(tmp_path / "a.json", {"mcpServers": {"x": entry}})

    assert ["there is no member 'toolFliter' that could be ignored"] == [
        note.partition("host.ignore: ")[2] for note in config.notes
    ]


def test_a_token_of_the_users_is_named_with_its_destination(tmp_path):
    """Ours: how tokens are got sends variables, too."""
    auth = {"kind": "static", "token": "${A_TOKEN}"}
    direct, _, taken = read_both(
        tmp_path, {"mcpServers": {"x": {"url": "https://x.example/mcp", "host": {"auth": auth}}}}
    )

    assert ("${A_TOKEN}",) == direct.servers["x"].sent
    assert "x: ${A_TOKEN} is sent to https://x.example" in taken.notes


MEMBERS_OF_ALL = sorted(
    {
        *translation.COMMON_MEMBERS,
        *translation.MEMBER_SYNONYMS,
        *translation.ONLY_TOOLS_MEMBERS,
        *translation.EXCLUDED_TOOLS_MEMBERS,
        *translation.OFF_SWITCHES,
    }
    | {*translation.MEMBER_READERS, *translation.HARMLESS_MEMBERS, "toolFilter", "icon"}
)
PLAIN = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.text(max_size=8),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(
            strategies.sampled_from(
                ["filesystem", "network", "headers", "path", "args", "tools", "x"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
PROGRAMS = ["", "gemini", "claude", "opencode", "zed", "goose", "continue", "codex", "cline"]


@given(
    strategies.dictionaries(strategies.sampled_from(MEMBERS_OF_ALL), PLAIN, max_size=6),
    strategies.sampled_from(PROGRAMS),
)
def test_an_entry_of_any_shape_is_read_or_told_by_place(value, program):
    """Ours: a file may be wrong in every way, and costs its server alone."""
    raw = RawServer("x", value, ("mcpServers", "x"), program)
    reading = ServerReading(
        scope=VariableScope(environ={}), layer="user", source="f", base=Path("/"), notes=[], unknown=[],
        withheld=[], used={},
    )  # fmt: skip
    try:
        keys = read_server(raw, reading) and raw.keys
    except (BadMember, UnresolvedVariable) as error:
        keys = error.keys

    assert raw.keys == keys[:2]
    assert isinstance(list_exposures(raw), list)


@given(PLAIN, PLAIN)
def test_a_file_of_any_shape_has_its_servers_or_none(part, around):
    """Ours: lists of servers where nobody expects them are no trouble."""
    whole = {"mcpServers": part, "mcp": around, "disabledMcpServers": around, "tools": part}
    for name in ("a.json", "opencode.json", "a.yaml", ".mcp.json"):
        document = ConfigDocument(Path(name), "", {**whole, "inputs": part}, "")
        assert all(isinstance(raw, RawServer) for raw in find_servers(document, "/w"))
        assert isinstance(read_inputs(document), dict)
