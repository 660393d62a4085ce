"""The command itself: as a function here, as a process where a terminal or a pipe matters."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import isthmus
from isthmus.cli.main import main
from support.ports import find_free_port

SHOP = str(Path(__file__).parents[1] / "support" / "cli" / "shop.py")
ISTHMUS = (sys.executable, "-m", "isthmus")
MUTE = (sys.executable, "-c", "import sys; sys.stdin.read()")


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs the command in this process: its exit code, stdout and stderr."""
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115, PTH123 - monkeypatch restores it

    def command(*words):
        with pytest.raises(SystemExit) as ended:
            main(words)
        out, err = capsys.readouterr()
        return ended.value.code or 0, out, err

    yield command
    sys.stdin.close()


def test_an_era_is_opened_whatever_the_server_offers(run):
    """Ours: the shop speaks every revision."""
    _, out, _ = run("inspect", SHOP, "--era", "legacy", "--json")

    assert "2025-11-25" == json.loads(out)["revision"]


def test_a_tools_result_is_all_there_is_on_stdout(run):
    """Ours: `x=$(isthmus call …)` is what the tool said, whatever the server prints."""
    assert (0, "42\n", "") == run("call", SHOP, "add", "a=20", "b=22")


def test_a_program_gets_the_whole_result_as_json(run):
    """Ours: `--json` is the result as the protocol has it."""
    code, out, _ = run("call", SHOP, "add", "--json", "--json-args", '{"a": 1}', "b=2")

    assert 0 == code
    assert {"content", "structuredContent"} <= set(json.loads(out))


def test_the_version_is_told(run):
    """Ours: a bug report begins with it."""
    assert (0, f"isthmus {isthmus.__version__}\n", "") == run("--version")


def test_a_tool_that_is_not_there_is_told_with_those_that_are(run):
    """Ours: the names are listed, those like it first."""
    _, _, err = run("call", SHOP, "ad")

    assert (
        "isthmus: the server has no tool 'ad'; it has: add, buy, fail, stumble, trick, wait\n"
        == err
    )


def test_the_standard_error_of_a_failed_server_is_shown(run):
    """Ours: the caller is told a type only, but whoever launched the server may see the rest."""
    code, out, err = run("call", SHOP, "stumble")

    assert (1, "") == (code, out)
    told, title, *words = err.splitlines()
    assert "the tool failed: Tool 'stumble' failed: ValueError" == told
    assert "the server wrote to standard error:" == title
    assert "  | ValueError: no apples in this crate" == words[-1]
    assert "loaded" not in err


def test_a_script_that_serves_nothing_is_told_what_it_lacks(run, tmp_path):
    """Ours: who forgot the last line of a server reads which one it is."""
    script = tmp_path / "nothing.py"
    script.write_text("x = 1\n")
    code, _, err = run("list", str(script))

    assert 3 == code
    assert "ended with exit code 0" in err
    assert "does it call server.run()?" in err


def test_a_command_that_lacks_its_target_shows_itself(run):
    """Ours: the example in a message is the command that was typed."""
    _, _, err = run("check")

    assert "as in: isthmus check -- uvx mcp-server-time" in err


def test_a_tool_that_fails_says_so_on_stderr(run):
    """Ours: exit code 1 means that the tool ran and failed."""
    assert (1, "", "the tool failed: out of apples\n") == run("call", SHOP, "fail")


@pytest.mark.parametrize("where", [["--http", "0"], ["--unix", "s.sock"], ["--tcp", "0"], []])
def test_a_lifespan_that_fails_is_not_told_as_an_address(run, tmp_path, monkeypatch, where):
    """The author reads what was raised, and nothing about listening."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "broken.py").write_text(
        "import contextlib\n"
        "from isthmus import Server\n"
        "@contextlib.asynccontextmanager\n"
        "async def life(server):\n"
        "    raise RuntimeError('db is down')\n"
        "    yield\n"
        "server = Server('s', lifespan=life)\n"
    )
    ended, _, err = run("run", "broken.py", *where)

    assert 3 == ended
    assert "isthmus: the server's lifespan failed: RuntimeError: db is down" in err
    assert "cannot listen" not in err
    assert "broken.py" in err


LOUD = """
import sys
from isthmus import Context, Server
from isthmus.errors import ToolError

server = Server("loud")
LONG = "x" * 20_000 + chr(0x202E) + chr(27) + "[2J"

@server.tool
async def shout() -> str:
    raise ToolError(LONG)

@server.tool
async def log(ctx: Context) -> str:
    await ctx.log("error", LONG)
    return "logged"

@server.tool
def crash() -> str:
    print(LONG, file=sys.stderr, flush=True)
    raise SystemExit(3)

@server.tool(name="n" * 120)
def named() -> str:
    return ""
"""


@pytest.mark.parametrize("tool", ["shout", "log", "crash", "none"])
def test_a_servers_error_text_is_bounded_and_cleaned_in_a_pipe_too(run, tmp_path, tool):
    """Ours: an error is read at a terminal in the end, and one line of it may be megabytes."""
    (tmp_path / "loud.py").write_text(LOUD)
    _, _, err = run("call", str(tmp_path / "loud.py"), tool)

    assert 0 < len(err) < 10_000
    assert [] == [c for c in err if c not in "\n\t" and not c.isprintable()]
    assert "n" * 101 not in err


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["call", SHOP, "sub"], 2, "no tool 'sub'"),
        (["call", SHOP, "add", "a=1"], 2, "also needs: b=…"),
        (["call", SHOP, "add", "a=x", "b=1"], 2, "wants integer"),
        (["call", SHOP], 2, "also needs: TOOL"),
        (["list"], 2, "which server?"),
        (["list", "nobody"], 2, "a command goes after --"),
        (["list", SHOP, "--revision", "1999-01-01"], 2, "there is no revision"),
        (["list", "--", "no-such-program"], 3, "no such command"),
        (["list", "http://127.0.0.1:9/mcp"], 3, "127.0.0.1"),
        (["read", SHOP, "shop://nowhere"], 4, "shop://nowhere"),
        (["prompt", SHOP, "insult"], 4, "insult"),
        (["call", SHOP, "wait", "--timeout", "5"], 5, "--timeout SECONDS allows more"),
        (["list", "--timeout", "1", "--", *MUTE], 3, "no connection within 1 s"),
        (["list", "--timeout", "1", "--", *MUTE], 3, "--timeout SECONDS allows more"),
        (["list", SHOP, "--era", "modern", "--revision", "2025-06-18"], 2, "of the modern era"),
        (["run", "nowhere.py"], 2, "there is no file"),
        (["run", SHOP, "--http", "somewhere"], 2, "write HOST:PORT"),
        (["run", SHOP, "--tcp", "somewhere"], 2, "--tcp somewhere: write HOST:PORT"),
        (["run", SHOP, "--tcp", "0.0.0.0:0"], 2, "can be reached from other machines"),
        (["run", SHOP, "--tcp", "1", "--unix", "x"], 2, "on one address: choose --unix or --tcp"),
        (["run", SHOP, "--http", "1", "--exposed"], 2, "--exposed goes with --tcp"),
        (["run", SHOP, "--unix", "/nowhere/x.sock"], 3, "cannot listen on unix:///nowhere/x.sock"),
        (["list", "unix:///nowhere/x.sock"], 3, "No such file or directory: is the server"),
        (["list", "tcp://127.0.0.1:9"], 3, "Connection refused: is a server running there?"),
        (["list", "tcp://nowhere"], 2, "write tcp://HOST:PORT"),
        (["list", "ws://127.0.0.1:9/mcp"], 3, "is a server running there?"),
        (["run", f"{SHOP}:nothing"], 2, "nothing is no isthmus Server"),
        (["run", f"{SHOP}:Order"], 2, "Order failed when it was called to make a Server"),
        (["list", "http://127.0.0.1:9/mcp"], 3, "Connection refused: is a server running there?"),
    ],
)
def test_each_way_to_fail_has_its_exit_code_and_its_sentence(run, words, code, says):
    """Ours: stdout stays empty, and stderr says what, where, and how to mend it."""
    ended, out, err = run(*words)

    assert (code, "") == (ended, out)
    assert says in err
    assert "Traceback" not in err


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2026-07-28"])
def test_a_server_is_inspected_in_any_revision(run, revision):
    """Ours: what a server is, in one screen."""
    code, out, _ = run("inspect", SHOP, "--revision", revision)

    assert 0 == code
    assert out.startswith(f"shop 2.0\n  revision      {revision}\n")
    assert "  add(a: integer, b: integer)\n      Add two numbers.\n" in out
    assert "        a: the first.\n" in out
    assert "  instructions  Buy something.\n" in out


def test_a_listing_has_a_line_each(run):
    """Ours: tools, resources and prompts, with how much they weigh."""
    _, out, _ = run("list", SHOP)

    assert "tools: 6, " in out
    assert "  shop://hours" in out
    assert "  greet(name)\n      Greet somebody.\n" in out


def test_a_listing_for_programs_has_wire_names(run):
    """Ours: `--json` speaks the protocol's language."""
    _, out, _ = run("list", SHOP, "--json")

    assert {"tools", "resources", "resourceTemplates", "prompts"} == set(json.loads(out))


def test_a_prompt_is_printed_by_role(run):
    """Ours: a prompt reads as a conversation."""
    assert (0, "user: Say hello to Ada.\n", "") == run("prompt", SHOP, "greet", "name=Ada")


def test_a_text_resource_is_printed(run):
    """Ours: reading is one word."""
    assert (0, "8 to 18\n", "") == run("read", SHOP, "shop://hours")


def test_a_question_without_a_terminal_is_declined_and_says_so(run):
    """Ours: a script is never left hanging on a question."""
    code, out, err = run("call", SHOP, "buy")

    assert (1, "") == (code, out)
    assert "declined: the server asks 'How many apples?'" in err
    assert "the tool failed: Nothing bought." in err


def test_a_name_of_mcp_json_is_a_target(run, tmp_path, monkeypatch):
    """Ours: what a host is configured with can be called."""
    entry = {"command": sys.executable, "args": ["-m", "isthmus", "run", "${SHOP}"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOP", SHOP)

    assert (0, "3\n", "") == run("call", "shop", "add", "a=1", "b=2")


def test_the_help_has_the_exit_codes(run):
    """Ours: nobody needs to look them up elsewhere."""
    code, out, _ = run("--help")

    assert 0 == code
    assert "130 interrupted" in " ".join(out.split())


def test_bytes_reach_a_file_as_they_are():
    """Ours: `isthmus read … > logo.png` is the picture."""
    done = subprocess.run([*ISTHMUS, "read", SHOP, "shop://logo"], capture_output=True, check=True)

    assert b"\x89PNG\x00" == done.stdout


def at_terminal(*words, answers=(), stdout=subprocess.PIPE):
    """Runs the command with a terminal for stdin and stderr, typing each answer at its prompt."""
    ours, theirs = pty.openpty()
    if stdout is None:
        stdout = theirs
    with subprocess.Popen([*ISTHMUS, *words], stdin=theirs, stderr=theirs, stdout=stdout) as child:
        os.close(theirs)
        try:
            shown = typed(ours, answers) + read_out(ours)
        except BaseException:
            child.kill()  # nobody types to it any more
            raise
        out = child.stdout.read() if child.stdout else b""
    return child.returncode, out, shown


def typed(terminal, answers):
    """Types each answer when its prompt is there; what was shown after the last of them."""
    shown = b""
    for prompt, answer in answers:
        while prompt not in shown:
            shown += os.read(terminal, 4096)
        shown = shown.partition(prompt)[2]
        os.write(terminal, answer)
    return shown


def read_out(descriptor):
    """Everything until the other side of a terminal is gone."""
    data = b""
    while True:
        try:
            more = os.read(descriptor, 4096)
        except OSError:  # Linux's end of a terminal
            more = b""
        if not more:
            os.close(descriptor)
            return data
        data += more


def test_a_person_answers_blank_by_blank():
    """Ours: the form is asked at the terminal, and only the result is on stdout."""
    answers = [
        (b"count (integer): ", b"many\n"),
        (b"not a whole number", b"3\n"),
        (b"empty for n): ", b"y\n"),
        (b"  gift: y", b""),
        (b"Send this? [y/n] ", b"y\n"),
    ]
    code, out, _ = at_terminal("call", SHOP, "buy", answers=answers)

    assert (0, b"3 apples as a gift\n") == (code, out)


def test_control_d_turns_away():
    """Spec: cancelling is neither yes nor no."""
    code, out, shown = at_terminal("call", SHOP, "buy", answers=[(b"count (integer): ", b"\x04")])

    assert (1, b"") == (code, out)
    assert b"\r\nthe tool failed: Nothing bought." in shown


def test_a_terminal_is_not_painted_by_a_server():
    """Ours: escape sequences and direction marks of a server never reach the screen."""
    _, _, shown = at_terminal("call", SHOP, "trick", stdout=None)

    assert b"a[31mbc" == shown.strip()


def test_a_server_started_by_hand_says_that_it_waits_for_a_program():
    """Ours: whoever runs a server file at a terminal would take the silence for a hang."""
    says = b"shop serves the program that started it, on standard input and output"
    code, out, shown = at_terminal("run", SHOP, answers=[(says, b"\x04")])

    assert (0, b"") == (code, out)
    assert b"Ctrl-C to stop" in shown


def test_an_interrupt_has_its_exit_code():
    """Ours: control-C ends the command and the server, without a traceback."""
    options = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        # tests that run in the background have a shell that turned it off, and children inherit that
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    }
    with subprocess.Popen([*ISTHMUS, "call", SHOP, "wait"], **options) as process:
        while b"waiting" not in process.stderr.readline():
            pass
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()

    assert (130, b"", b"isthmus: interrupted\n") == (process.returncode, out, err)


def talk(process, **message):
    """Sends a server one message."""
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def hear(process):
    """A server's next message."""
    return json.loads(process.stdout.readline())


def test_a_host_keeps_its_pipe_when_the_file_changes(tmp_path):
    """Ours: `run --reload` replaces the server, and the host lists again."""
    path = tmp_path / "server.py"
    source = "from isthmus import Server\nserver = Server('s')\n@server.tool\ndef one(): ...\n"
    path.write_text(source)
    command = [*ISTHMUS, "run", str(path), "--reload"]
    opening = {"protocolVersion": "2025-06-18", "capabilities": {}}
    opening["clientInfo"] = {"name": "test", "version": "1"}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        talk(process, id=1, method="initialize", params=opening)
        assert "2025-06-18" == hear(process)["result"]["protocolVersion"]
        talk(process, method="notifications/initialized")
        talk(process, id=2, method="tools/list")
        assert ["one"] == [tool["name"] for tool in hear(process)["result"]["tools"]]
        path.write_text(source + "@server.tool\ndef two(): ...\n")
        assert "notifications/tools/list_changed" == hear(process)["method"]
        talk(process, id=3, method="tools/list")
        answer = hear(process)
        process.stdin.close()

    assert ["one", "two"] == [tool["name"] for tool in answer["result"]["tools"]]


def until(process, words):
    """Reads a process's stderr up to a line with the words in it."""
    while words not in (line := process.stderr.readline()):
        assert line, f"it ended without saying {words!r}"


def test_an_http_server_is_replaced_when_the_file_changes_and_ends_with_its_keeper(tmp_path, run):
    """Ours: `run --http --reload` serves what the file says now, and leaves nothing behind."""
    path = tmp_path / "server.py"
    source = "from isthmus import Server\nserver = Server('s')\n@server.tool\ndef one() -> str:\n"
    path.write_text(source + "    return 'first'\n")
    port = find_free_port()
    command = [*ISTHMUS, "run", str(path), "--reload", "--http", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        until(process, b"serves on")
        first = run("call", f"http://127.0.0.1:{port}/mcp", "one")
        path.write_text(source + "    return 'second, longer'\n")
        until(process, b"serves on")
        second = run("call", f"http://127.0.0.1:{port}/mcp", "one")
        process.terminate()
        process.communicate()
    code, _, _ = run("call", f"http://127.0.0.1:{port}/mcp", "one")

    assert ["first\n", "second, longer\n"] == [first[1], second[1]]
    assert (0, 3) == (process.returncode, code)


@pytest.mark.parametrize("transport", ["unix", "tcp", "websocket"])
def test_a_file_is_served_where_an_option_says_until_the_process_is_told_to_stop(
    tmp_path, run, transport
):
    """Ours: the commands that talk reach what `isthmus run` serves, and it ends in good order."""
    port = find_free_port()
    place, target = {
        "unix": (str(tmp_path / "shop.sock"), f"unix://{tmp_path}/shop.sock"),
        "tcp": (f"127.0.0.1:{port}", f"tcp://127.0.0.1:{port}"),
        "websocket": (f"127.0.0.1:{port}", f"ws://127.0.0.1:{port}/mcp"),
    }[transport]
    with subprocess.Popen(
        [*ISTHMUS, "run", SHOP, f"--{transport}", place], stderr=subprocess.PIPE
    ) as process:
        until(process, b"serves on")
        called = run("call", target, "add", "a=20", "b=22")
        process.terminate()
        process.communicate()

    assert (0, "42\n", "") == called
    # uvicorn ends as the signal wants it, after everything is closed
    assert process.returncode == (-signal.SIGTERM if transport == "websocket" else 0)
    assert not (tmp_path / "shop.sock").exists()


def test_no_garbage_is_looked_for_while_a_server_is_loaded(tmp_path):
    """Ours: five thousand tools that are declared stay, and are not gone through again and again."""
    file, told = tmp_path / "tells.py", tmp_path / "told"
    file.write_text(
        "import gc, pathlib\n"
        f"pathlib.Path({str(told)!r}).write_text(str(gc.get_threshold()[0]))\n"
        "from isthmus import Server\n"
        "server = Server('tells')\n"
    )
    subprocess.run([*ISTHMUS, "run", str(file)], stdin=subprocess.DEVNULL, check=True)

    assert int(told.read_text()) >= 50_000
