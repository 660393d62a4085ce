"""``isthmus dev``: traffic in lines, what changed after a reload, and how to connect."""

import asyncio
import contextlib
import io
import json
import logging
import os
import signal
import socket
import sys

import pytest

from isthmus import Client, Command, Server
from isthmus.cli.commands.developing.dev import DevOptions, find_port
from isthmus.cli.commands.developing.surface_report import is_first, make_hints, report_surface
from isthmus.cli.commands.developing.traffic_lines import AuthorFormatter, TrafficPrinter
from isthmus.cli.main import main
from isthmus.errors import ConnectFailed, UsageError
from isthmus.telemetry.traffic import TrafficEvent

FILE = '''import os

from isthmus import Server

print("loaded")
server = Server(os.environ.get("NAME", "shop"), version="1.2")


@server.tool
def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b
'''
CALL = TrafficEvent(
    kind="request", sender="client", time=0.0, method="tools/call", name="add", client="cli 7",
    revision="2026-07-28", transport="http", outcome="ok", seconds=0.0031,
)  # fmt: skip


def print_event(colours=False, **other):
    """The lines of an event."""
    stream = io.StringIO()
    fields = {name: getattr(CALL, name) for name in CALL.__struct_fields__}
    TrafficPrinter(stream, colours=colours)(TrafficEvent(**{**fields, **other}))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("other", "line"),
    [
        ({}, "cli 7 2026-07-28  tools/call add  ok  3.1 ms"),
        ({"client": "", "seconds": 2.51}, "a client 2026-07-28  tools/call add  ok  2.5 s"),
        (
            {"outcome": "error", "code": -32602, "error": "no"},
            "cli 7 2026-07-28  tools/call add  error -32602 no  3.1 ms",
        ),
        (
            {"outcome": "input_required", "asked": ("elicitation/create",)},
            "cli 7 2026-07-28  tools/call add  input_required elicitation/create  3.1 ms",
        ),
        (
            {"sender": "server", "method": "notifications/progress", "name": "1/3", "outcome": "", "seconds": None},
            "cli 7 2026-07-28  <- notifications/progress 1/3",
        ),
    ],
)  # fmt: skip
def test_an_event_is_a_line(other, line):
    """Ours: time, client and revision, method, name, outcome, milliseconds."""
    assert line == print_event(**other).split("  ", 1)[1].rstrip("\n")


def test_whole_messages_stand_below_their_line():
    """Ours: what came has >, what went <, whichever side asks."""
    asked = print_event(sent="q", answered="a").splitlines()[1:]
    question = print_event(sent="q", answered="a", sender="server").splitlines()[1:]

    assert (["    > q", "    < a"], ["    < q", "    > a"]) == (asked, question)


def test_a_terminal_obeys_nothing_that_a_stranger_says():
    """Ours: a name with escapes, line ends and direction marks stays one line of text."""
    evil = "\x1b[2J\r\nadd\u202e"
    shown = print_event(name=evil, client=evil, error=evil, method=evil, sent=evil, asked=(evil,))

    assert 2 == len(shown.splitlines())
    assert not {"\x1b", "\r", "\u202e"} & set(shown)
    assert "\x1b[32mok" in print_event(colours=True)


def test_what_dev_itself_asks_is_not_shown():
    """Ours: its look at the server after a reload is no traffic."""
    assert "" == print_event(transport="memory")


def test_a_reader_that_has_left_stops_nothing():
    """Ours: `isthmus dev app.py | head` leaves a server that goes on."""
    stream = io.StringIO()
    stream.close()
    TrafficPrinter(stream, colours=False)(CALL)


async def test_a_traceback_is_of_the_authors_code_only(tmp_path):
    """Ours: no frame of isthmus in the log of a tool that failed."""
    server, stream = Server("s"), io.StringIO()

    @server.tool
    def connect() -> str:
        raise RuntimeError("no route")

    handler = logging.StreamHandler(stream)
    handler.setFormatter(AuthorFormatter())
    logger = logging.getLogger("isthmus")
    logger.addHandler(handler)
    try:
        async with Client(server) as client:
            await client.call_tool("connect")
    finally:
        logger.removeHandler(handler)
    shown = stream.getvalue()

    assert "RuntimeError: no route" in shown
    assert __file__ in shown
    assert os.path.join("src", "isthmus") not in shown  # noqa: PTH118 - a part of paths


def test_a_traceback_that_was_redacted_before_is_shown():
    """Ours: the filter of authorization leaves a text in place of an exception with a secret."""
    told = {"msg": "failed", "exc_text": "RuntimeError: no route, password=hunter2hunter2"}
    shown = AuthorFormatter().format(logging.makeLogRecord(told))

    assert "RuntimeError: no route" in shown
    assert "hunter2" not in shown


async def test_the_first_server_tells_what_it_offers_and_the_next_what_changed(tmp_path):
    """Ours: field by field, with what breaks callers; notes of the linter are told once."""
    server = Server("s")

    @server.tool
    def add(a: int) -> int:
        return a

    assert is_first(tmp_path)
    first = await report_surface(server, tmp_path)
    assert not is_first(tmp_path)
    same = await report_surface(server, tmp_path)
    server.remove_tool("add")
    server.add_tool(lambda a=1: a, name="sum", description="Adds.")
    changed = await report_surface(server, tmp_path)

    assert "it offers 1 tool" == first[0]
    assert first[1].startswith("warning tools.described: ")
    assert 2 == len(first)
    assert ["reloaded: 1 tool, as before"] == same
    assert "reloaded: 1 tool; changed:" == changed[0]
    assert "  - tools.add  (breaking: it is gone)" in changed
    assert "  + tools.sum  (compatible: it is new)" in changed
    assert "1 change breaks callers." in changed
    assert "nothing more that the linter notes" == changed[-1]


async def test_a_server_that_cannot_list_is_told_and_served_all_the_same(tmp_path):
    """Ours: the surface before it is kept for the next one."""

    @contextlib.asynccontextmanager
    async def fail(_server):
        raise RuntimeError("no database")
        yield

    server = Server("s", lifespan=fail)
    server.add_tool(lambda: "x", name="x")
    [line] = await report_surface(server, tmp_path)

    assert line.startswith("what it offers cannot be listed: ")
    assert is_first(tmp_path)


async def test_hints_are_complete(tmp_path):
    """Ours: a call with its arguments, an installation, and an entry of mcp.json that is JSON."""
    server = Server("s")
    server.add_tool(lambda a, b=1: a, name="add")
    await report_surface(server, tmp_path)
    call, install, entry = make_hints(server, "http://127.0.0.1:1/mcp", "a.py", tmp_path)
    [launched] = make_hints(server, None, str(tmp_path / "a.py:server"), tmp_path)

    assert call.endswith("isthmus call http://127.0.0.1:1/mcp add a=…")
    assert install.endswith("isthmus install http://127.0.0.1:1/mcp --into claude-code")
    url = {"type": "http", "url": "http://127.0.0.1:1/mcp"}
    assert {"mcpServers": {"s": url}} == json.loads(entry.split(maxsplit=1)[1])
    args = json.loads(launched.split(maxsplit=1)[1])["mcpServers"]["s"]["args"]
    assert ["-P", "-m", "isthmus", "dev", str(tmp_path / "a.py:server"), "--stdio"] == args


def test_a_port_that_is_taken_is_passed_over_unless_it_was_asked_for():
    """Ours: and one that is asked for and taken is told at once, not at every reload."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert find_port("127.0.0.1", (port, 0)) not in {0, port}
        with pytest.raises(ConnectFailed, match="choose another with --http"):
            DevOptions(http=f"127.0.0.1:{port}").choose_address()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stdio": True, "http": ":1"}, "--stdio and --http exclude each other"),
        ({"stdio": True, "path": "/x"}, "--stdio and --path exclude each other"),
        ({"path": "x"}, "a path begins with /"),
        ({"http": "here"}, "write HOST:PORT"),
    ],
)
def test_options_that_cannot_be_are_told(options, said):
    """Ours: before anything is started."""
    with pytest.raises(UsageError, match=said):
        DevOptions(**options).choose_address()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.py"], "there is no file no.py"),
        (["api.json"], "write: isthmus run api.json"),
        (["app.py", "--stdio", "--env", "=s3cret"], "write NAME=VALUE"),
    ],
)
def test_files_and_variables_that_cannot_be_are_told(tmp_path, monkeypatch, capsys, words, said):
    """Ours: with the exit code of a wrong command line, and no secret."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(FILE)
    (tmp_path / "api.json").write_text('{"openapi": "3.1.0"}')
    with pytest.raises(SystemExit) as left:
        main(["dev", *words])
    err = capsys.readouterr().err

    assert (2, True) == (left.value.code, said in err), err
    assert "s3cret" not in err


@pytest.mark.timeout(120)
async def test_a_file_is_served_with_its_traffic_and_again_after_a_mistake(tmp_path):
    """Ours: a process of its own, as people use it, with a call, an error, and two changes."""
    path = tmp_path / "app.py"
    path.write_text(FILE)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "msgspec.py").write_text("raise RuntimeError")  # stands for nothing
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "isthmus", "dev", str(path), "--http", "127.0.0.1:0"),
        *("--path", "/tools", "--wire", "--env", "NAME=till"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path / "elsewhere",
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
    )
    lines = []

    async def read_until(words):
        while words not in (line := (await process.stdout.readline()).decode()):
            assert line, lines
            lines.append(line)
        lines.append(line)
        return line

    try:
        served = await read_until("is served at ")
        url = served.split(" at ")[1].split(",")[0]
        await read_until("it offers 1 tool")
        async with Client(url, name="cli", version="7") as client:
            await client.call_tool("divide", {"a": 1, "b": 0})
        await read_until("tools/call divide  tool_error")
        await read_until("    < ")
        path.write_text("(")
        await read_until("waiting for a change")
        path.write_text(FILE.replace("b: int", "c: int").replace("a / b", "a / c"))
        await read_until("reloaded: 1 tool; changed:")
        await read_until("break callers")
        async with Client(url) as client:
            await client.call_tool("divide", {"a": 1, "c": 1})
        await read_until("tools/call divide  ok")
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()

    assert served.startswith("till 1.2 is served at http://127.0.0.1:")
    assert url.endswith("/tools")
    assert "ZeroDivisionError: division by zero\n" in lines
    assert [] == [line for line in lines if os.path.join("src", "isthmus") in line]  # noqa: PTH118
    assert 0 == process.returncode


@pytest.mark.timeout(120)
async def test_a_client_launches_it_and_the_traffic_goes_to_standard_error(tmp_path):
    """Ours: standard output belongs to the protocol."""
    path = tmp_path / "app.py"
    path.write_text(FILE)
    told, heard = [], asyncio.Event()

    def hear(line):
        told.append(line)
        if all(any(part in one for one in told) for part in ("tools/call divide  ok", "is served")):
            heard.set()  # the server tells how to connect beside its first calls

    from isthmus.client.targets import command_target

    command = Command(sys.executable, "-m", "isthmus", "dev", f"{path}:server", "--stdio")
    async with Client(command_target(command, hear)) as client:
        result = await client.call_tool("divide", {"a": 1, "b": 2})
        await asyncio.wait_for(heard.wait(), 100)

    assert 0.5 == result.structured_content["result"]
    assert [True] == [line.startswith("shop 1.2 is served over standard") for line in told if "is served" in line]  # fmt: skip
    assert "loaded" in told
