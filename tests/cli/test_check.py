"""``isthmus check`` and ``isthmus validate`` as commands."""

import json
import os
import sys
from pathlib import Path

import pytest

from isthmus.cli.commands.run import find_server, load_module
from isthmus.cli.main import main
from isthmus.linter.rules.catalog import RULES
from isthmus.testing import serving

EXAMPLES = Path(__file__).parents[2] / "examples"
BOOKINGS = str(EXAMPLES / "bookings.py")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command in this process: its exit code, stdout and stderr."""
    nothing = open(os.devnull)  # noqa: SIM115, PTH123 - closed below
    monkeypatch.setattr(sys, "stdin", nothing)

    def command(*words):
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    yield command
    nothing.close()


@pytest.mark.covers("linter.command.exit-codes")
def test_our_own_example_has_nothing_wrong_over_stdio(run):
    """Ours: every revision, and not even a warning."""
    code, out, _ = run("check", BOOKINGS, "--strict", "--json")
    report = json.loads(out)

    assert 0 == code
    assert 5 == len(report["spoken"])
    assert [] == report["findings"]


async def test_our_own_everything_has_nothing_wrong_over_http():
    """Ours: the server of the conformance suite, as a process would serve it."""
    server = find_server(load_module(EXAMPLES / "everything.py"), "")
    async with serving(server) as url:
        process = await _isthmus("check", url, "--strict", "--json")
    report = json.loads(process[1])

    assert [] == report["findings"]
    assert 0 == process[0]
    assert 5 == len(report["spoken"])


async def _isthmus(*words):
    import asyncio

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "isthmus", *words, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return process.returncode, out


@pytest.mark.covers("linter.command.exit-codes")
def test_findings_are_printed_in_a_table(run, tmp_path):
    """Ours: the rule, the place, the clause and the mend; exit code 1."""
    recording = tmp_path / "recording.jsonl"
    recording.write_text(
        'C {"id": 1, "method": "ping"}\nS {"id": 1, "result": {}}\nS {"id": 1, "result": {}}\n'
    )
    code, out, _ = run("validate", str(recording), "--revision", "2025-11-25")

    assert 1 == code
    assert "messages.unasked" in out
    assert "2025-11-25 basic#responses" in out
    assert "1 error, 0 warnings, 0 notes" in out


@pytest.mark.parametrize(
    ("line", "strict", "code"),
    [
        ('S {"id": 1, "error": {"code": 0, "message": "no"}}', [], 0),
        ('S {"id": 1, "error": {"code": 0, "message": "no"}}', ["--strict"], 1),
        ('S {"id": 1, "error": {"code": 1, "message": "no"}}', ["--strict"], 0),
        ('S {"id": 1, "error": {"message": "no"}}', [], 1),
        ('S {"id": 1, "error": {"message": "no"}}', ["--skip", "messages"], 0),
        ('S {"id": 1, "error": {"message": "no"}}', ["--side", "client"], 0),
    ],
)
def test_warnings_count_where_they_are_to(run, tmp_path, line, strict, code):
    """Ours: 0 is clean, 1 is not, and --strict, --skip and --side say what counts."""
    recording = tmp_path / "recording.txt"
    recording.write_text(f'C {{"id": 1, "method": "ping"}}\n{line}\n')

    assert code == run("validate", str(recording), "--revision", "2025-11-25", *strict)[0]


@pytest.mark.covers("linter.command.exit-codes")
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["validate", "no-such-file"], "cannot read"),
        (["validate", os.devnull], "no messages"),
        (["validate", BOOKINGS, "--revision", "1999-01-01"], "there is no revision"),
        (["validate", BOOKINGS, "--side", "left"], "there is no side"),
        (["validate", BOOKINGS, "--only", "nothing"], "there is no rule"),
        (["check", BOOKINGS, "--only", "nothing"], "there is no rule"),
        (["check", BOOKINGS, "--revision", "1999-01-01"], "there is no revision"),
        (["check", BOOKINGS, "--call", "book:{"], "no JSON"),
        (["check", BOOKINGS, "--call", "book:[]"], "a JSON object"),
        (["check", "--timeout", "0.5", "--", sys.executable, "-c", "1"], "speaks none of"),
        (["check", "http://127.0.0.1:9/mcp"], "speaks none of"),
    ],
)
def test_nothing_to_check_has_exit_code_2(run, words, says):
    """Ours: a script can tell a bad server from a bad command line."""
    code, _, err = run(*words)

    assert 2 == code
    assert says in err


def test_a_check_that_looked_at_nothing_praises_nothing(run):
    """Ours: no word that all is well, and one reason for all revisions once."""
    code, out, err = run("check", "--", sys.executable, "-c", "1")

    assert (2, "") == (code, out)
    assert 1 == err.count("ended with exit code 0")
    assert "2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05: the connection ended" in err


def test_a_server_that_goes_away_while_it_is_checked_is_exit_code_3(run, tmp_path):
    """Ours: a script must not take it for a server without fault."""
    served = tmp_path / "served"
    script = tmp_path / "once.py"
    script.write_text(
        "import pathlib, sys\n"
        f"served = pathlib.Path({str(served)!r})\n"
        "sys.exit('enough') if served.exists() else served.touch()\n"
        "from isthmus import Server\n"
        "Server('once', version='1').run()\n"
    )
    code, out, err = run("check", "--timeout", "2", "--", sys.executable, str(script))

    assert 3 == code
    assert "the server was gone" in out
    assert "nothing is wrong" not in out
    assert "enough" in err


def test_messages_are_read_from_standard_input(run, monkeypatch, tmp_path):
    """Ours: `… | isthmus validate -`."""
    recording = tmp_path / "recording.txt"
    recording.write_text('{"jsonrpc": "2.0", "id": true, "method": "ping"}')
    with recording.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, out, _ = run("validate", "-", "--json", "--revision", "2025-11-25")

    assert 1 == code
    assert ["messages.id"] == [finding["rule"] for finding in json.loads(out)["findings"]]


def test_the_rules_are_listed(run):
    """Ours: a line each."""
    code, out, _ = run("check", "--rules")

    assert 0 == code
    assert list(RULES) == [line.split()[0] for line in out.splitlines()]


# Gateways

GATEWAY = Path(__file__).parents[1] / "support" / "linter" / "mounted_gateway.py"


async def test_a_gateway_is_started_checked_and_ended():
    """Ours: by one command line, with the servers behind it and the clients before it."""
    command = f"{sys.executable} {GATEWAY} {{config}} {{port}}"
    code, out = await _isthmus("check", "--gateway", command, "--strict", "--json")
    report = json.loads(out)

    assert [] == report["findings"]
    assert 0 == code
    assert "2026-07-28" in report["spoken"]


def test_the_configuration_for_a_gateway_is_printed(run):
    """Ours: for one that is started by hand."""
    code, out, _ = run("check", "--upstream-config", "--upstream-port", "9100")
    servers = json.loads(out)["mcpServers"]

    assert 0 == code
    assert {"legacy", "modern", "spare"} == set(servers)
    assert "http://127.0.0.1:9101/mcp" == servers["modern"]["url"]


def test_a_gateway_that_does_not_start_is_told_with_its_output(run):
    """Ours: the last it said is why."""
    command = f"{sys.executable} -c 'print(\"no port for me\")' {{config}}"
    code, _, err = run("check", "--gateway", command)

    assert 3 == code
    assert "no port for me" in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--gateway", "some-gateway"], "{config}"),
        (["--gateway", "some-gateway 'a"], "cannot be read"),
        (["--gateway", "http://127.0.0.1:1/mcp", "app.py"], "app.py"),
        (["--gateway", "http://127.0.0.1:1/mcp", "--gateway-url", "http://x"], "--gateway-url"),
        (["--gateway", "http://127.0.0.1:1/mcp", "--token-env", "NO_SUCH"], "NO_SUCH"),
        (["--gateway", "http://127.0.0.1:1/mcp", "--only", "tools"], "no rule"),
    ],
)
def test_a_command_line_for_a_gateway_that_means_nothing_is_refused(run, words, reason):
    """Ours: before anything is started."""
    code, _, err = run("check", *words)

    assert 2 == code
    assert reason in err


def test_the_rules_about_gateways_are_listed(run):
    """Ours: beside those about servers."""
    _, out, _ = run("check", "--rules", "--gateway", "any")

    assert "gateway.passthrough" in out
