"""``isthmus policy``: rules shown, tested, linted, explained, and tried on what was done."""

import asyncio
import json

import pytest

from isthmus.cli.main import main
from isthmus.host.audit.log import AuditLog
from isthmus.host.model.row import AuditRow
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.policy.shipped import load_shipped_rules
from isthmus.host.state.database import HostState

RULES = """
extends = "personal-read-only"

[[rule]]
id = "no-rm"
effect = "deny"
when = { server = "files", tool = "rm" }
"""
CASES = """
[[case]]
name = "rm"
attempt = { server = "files", tool = "rm" }
expect = "deny"
rule = "no-rm"

[[case]]
name = "ls"
attempt = { server = "files", tool = "ls" }
expect = "deny"
"""
CONFIG = {
    "mcpServers": {
        "files": {
            "command": "mcp-files",
            "host": {"trust": "full", "labels": {"reads": ["private"], "egress": True}},
        }
    },
    "host": {"policy": "./policy.toml"},
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A user with a configuration, a policy and cases."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_text(RULES)
    (tmp_path / "cases.toml").write_text(CASES)
    (tmp_path / "host.json").write_text(json.dumps(CONFIG))
    return tmp_path


@pytest.fixture
def isthmus(home, capsys):
    """Runs a command; gives its exit code, and what it wrote to both outputs."""

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["policy", *words])
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


def test_printed_rules_can_be_read_again(isthmus):
    """Ours: the rules in force are a file of rules, layer by layer."""
    code, out, err = isthmus("show", "--policy", "developer")

    assert (0, "") == (code, err)
    assert len(load_shipped_rules("developer")) == len(read_layers(out, "user")[0].rules)
    layers = json.loads(isthmus("show", "--file", "host.json", "--json")[1])["layers"]
    assert [("default", "personal-read-only"), ("user", "no-rm")] == [
        (layers[0]["layer"], layers[0]["source"]), (layers[1]["layer"], layers[1]["rules"][0]["id"]),
    ]  # fmt: skip


def test_cases_that_come_out_another_way_fail(isthmus):
    """Ours: for a person and for a program."""
    code, out, _ = isthmus("test", "cases.toml", "--policy", "policy.toml")

    assert 1 == code
    assert "✗ ls: expected deny, but it is ask by changes" in out
    assert "2 cases, 1 of them came out another way" in out
    assert ["ls"] == [
        one["name"]
        for one in json.loads(
            isthmus("test", "cases.toml", "--json", "--policy", "policy.toml")[1]
        )["failures"]
    ]


def test_doubtful_rules_fail_the_lint(isthmus, home):
    """Ours: a name that no configured server has is one."""
    assert (0, "7 rules, nothing doubtful\n", "") == isthmus("lint", "--file", "host.json")
    (home / "policy.toml").write_text(RULES.replace('"files"', '"fils"'))
    code, out, _ = isthmus("lint", "--file", "host.json")

    assert 1 == code
    assert "unknown      no-rm (user, line 4): no server is called 'fils'; there are files" in out
    assert "unknown" == json.loads(isthmus("lint", "--file", "host.json", "--json")[1])[0]["code"]


def test_an_attempt_is_explained_with_every_rule_that_fits(isthmus):
    """Ours: with what the configuration says of the server."""
    code, out, _ = isthmus("explain", "files", "rm", "--file", "host.json")
    assert (0, "deny by no-rm: rule 'no-rm' (user) denies it\n  decides no-rm (user): deny\n  fits    changes (default): ask\n") == (
        code, out.partition("  policy")[0],
    )  # fmt: skip

    facts = '{"annotations": {"read_only": true}, "labels": ["private", "untrusted"]}'
    trace = json.loads(
        isthmus("explain", "files", "ls", "--file", "host.json", "--facts", facts, "--json")[1]
    )
    assert ("ask", "data-flow") == (trace["effect"], trace["rule"])
    _, out, _ = isthmus("explain", "files", "ls", "--file", "host.json", "--facts", facts)
    assert "  chain   egress: tool.call 'ls' of 'files' sends it out" in out
    assert "  demands remember = once" in out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("show", "--policy", "nothing"), "nothing cannot be read"),
        (("test", "gone.toml", "--policy", "developer"), "gone.toml cannot be read"),
        (("explain", "x", "--args", "{"), "is not JSON"),
        (
            ("explain", "x", "--facts", '{"trusted": 1}', "--policy", "developer"),
            "did you mean 'trust'?",
        ),
        (
            ("explain", "x", "--action", "tool.cal", "--policy", "developer"),
            "did you mean 'tool.call'?",
        ),
        (("replay", "--policy", "developer"), "there is no audit log"),
    ],
)
def test_a_bad_option_is_refused_in_a_sentence(isthmus, words, says):
    """Ours: with exit code 2."""
    code, out, err = isthmus(*words)

    assert (2, "") == (code, out)
    assert says in err


@pytest.mark.covers("hostpolicy.replay.differences")
def test_another_policy_is_tried_on_what_was_done(isthmus, home):
    """Ours: newly denied, asked and allowed, with counts."""

    async def fill():
        state = HostState(home / "host")
        log = AuditLog(state)
        for number, tool in enumerate(("rm", "rm", "ls")):
            await log.write(
                AuditRow(kind="intent", call=str(number), principal="user:local", action="tool.call", server="files",
                    object=tool, effect="allow", rule="x")
            )  # fmt: skip
        await log.close()
        await state.close()

    asyncio.run(fill())
    code, out, _ = isthmus("replay", "--policy", "policy.toml", "--state", "host")

    assert 0 == code
    assert [
        "newly deny: 2", "        2 tool.call files rm: allow before, no-rm decides",
        "newly ask: 1", "        1 tool.call files ls: allow before, changes decides",
        "newly allow: 0", "3 attempts decided anew",
    ] == out.splitlines()  # fmt: skip
    found = json.loads(isthmus("replay", "--policy", "policy.toml", "--state", "host", "--json")[1])
    assert (3, 2) == (found["rows"], found["differences"][0]["count"])
