"""``isthmus gateway check``: one line for each server, profile and rule that is wrong, before it serves."""

import json
import sys

import pytest

from isthmus.cli.main import main

RULES = """
[[rule]]
id = "everything"
effect = "allow"
"""

SERVER = """
from isthmus import Server
server = Server("shop")

@server.tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b
"""


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Run the check on a configuration: its exit code, and its rows by subject."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.toml").write_text(RULES, encoding="utf-8")

    def run(servers, *options, **gateway):
        config = {
            "mcpServers": servers,
            "host": {"policy": str(tmp_path / "rules.toml"), "gateway": gateway},
        }
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps(config, indent=1), encoding="utf-8")
        state = str(tmp_path / "state")
        words = ["gateway", "check", "--config", str(path), "--state", state, *options]
        monkeypatch.setattr(sys, "argv", ["isthmus", *words])
        with pytest.raises(SystemExit) as end:
            main()
        return end.value.code, capsys.readouterr().out

    return run


def read_rows(text):
    """The rows by subject."""
    return {row["subject"]: row for row in json.loads(text)}


def test_a_server_that_cannot_be_reached_is_named_with_its_first_failing_step(check):
    """Ours: a port where nobody listens, and a program that nobody has agreed to run."""
    code, text = check(
        {
            "away": {"url": "http://127.0.0.1:1/mcp"},
            "new": {"command": sys.executable, "args": ["-c", "pass"]},
            "off": {"url": "http://127.0.0.1:1/mcp", "disabled": True},
        },
        "--json",
    )
    rows = read_rows(text)

    assert code == 1
    assert ("failed", "connect") == (rows["server away"]["verdict"], rows["server away"]["step"])
    assert ("failed", "consent") == (rows["server new"]["verdict"], rows["server new"]["step"])
    assert "mcp.json:3" in rows["server away"]["place"]
    assert rows["server off"]["verdict"] == "off"


def test_a_profile_that_names_nobody_is_told_by_its_line(check):
    """Ours: a mistyped server in a profile would offer nothing."""
    code, text = check(
        {"off": {"url": "http://127.0.0.1:1/mcp", "disabled": True}},
        "--json",
        profiles={"work": {"servers": ["of", "off"]}},
    )
    row = read_rows(text)["profile work"]

    assert code == 0
    assert row["verdict"] == "warning"
    assert "'of' names no server" in row["text"]
    assert "mcp.json:" in row["place"]
    assert (
        check(
            {"off": {"url": "http://127.0.0.1:1/mcp", "disabled": True}},
            "--strict",
            profiles={"work": {"servers": ["of"]}},
        )[0]
        == 1
    )


def test_each_server_has_one_line(check):
    """Ours: verdict, subject, step and reason, as a person reads them."""
    code, text = check({"away": {"url": "http://127.0.0.1:1/mcp"}})
    lines = text.splitlines()

    assert code == 1
    assert lines[0].startswith("failed   server away: connect: ")
    assert lines[-1].startswith(("ok       policy", "warning  policy"))


def test_members_that_nobody_knows_are_told(check):
    """Ours: what sounds like an option of a gateway, and is none."""
    _, text = check(
        {"off": {"url": "http://127.0.0.1:1/mcp", "disabled": True, "host": {"zzz": 1}}}, "--json"
    )

    assert any("zzz" in row.get("text", "") for row in json.loads(text))


def test_a_configuration_without_servers_fails(check):
    """Ours: a gateway in front of nothing is a mistake."""
    code, text = check({})

    assert code == 1
    assert "it has no server" in text
