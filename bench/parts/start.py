"""Start-up: imports, the way to a first answer, and the command line."""

import resource
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from contenders import Contender, peers
from processes import (
    SERVER_CORE,
    cpu_seconds,
    find_free_port,
    read_output,
    run_child,
    wait_listening,
)
from results import ISTHMUS, MCP, Column, Table
from talks import PIPES, PipeTalk
from turns import Run

IMPORTS, SPAWN, COMMANDS = "imports", "spawn", "commands"
BARE, ALONE = "asyncio and msgspec", "python alone"
TABLES = (
    Table(
        IMPORTS,
        "Importing, and making a server with one tool: the least of some runs",
        {"import_ms": Column("CPU ms")},
    ),
    Table(
        SPAWN,
        "From the start of a stdio server to its answer to `initialize`: the least of some runs",
        {
            "answer_ms": Column("ms", pick="least"),
            "answer_cpu_ms": Column("CPU ms"),
        },
    ),
    Table(
        COMMANDS,
        "The command line: the least of some runs",
        {"wall_ms": Column("ms", pick="least"), "command_cpu_ms": Column("CPU ms")},
        compared=False,
    ),
)
PROGRAMS = {
    ISTHMUS: """
from isthmus import Server
server = Server("bench")
@server.tool
async def add(a: int, b: int) -> int: return a + b
""",
    MCP: """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool()
async def add(a: int, b: int) -> int: return a + b
""",
    BARE: "import asyncio, msgspec",
    ALONE: "pass",
}
STARTS, SHORT_STARTS = 9, 5
COMMAND_TIMEOUT_S = 30


def measure(run: Run) -> None:
    """Each start in turn, some times over."""
    starts = SHORT_STARTS if run.effort.short else STARTS
    run.take_turns(
        IMPORTS,
        {name: partial(time_import, name) for name in find_importable(run)},
        starts,
    )
    works = {one.name: partial(time_first_answer, one) for one in run.field if one.stdio}
    ours = next(one for one in run.field if one.name == ISTHMUS)
    works[f"{ISTHMUS} run"] = partial(time_first_answer, ours, by_command=True)
    run.take_turns(SPAWN, works, starts)
    time_commands(run, ours, starts)


def find_importable(run: Run) -> list[str]:
    """The rows of the first table: those whose packages are here."""
    here = {one.name for one in run.field}
    return [name for name in PROGRAMS if name != MCP or MCP in here]


def time_import(name: str) -> dict[str, float]:
    """CPU milliseconds of ``python -c``, interpreter and all."""
    python = str(peers.python("mcp2")) if name == MCP else sys.executable
    return {"import_ms": time_command([python, "-c", PROGRAMS[name]])["command_cpu_ms"]}


def time_command(argv: Sequence[str]) -> dict[str, float]:
    """Milliseconds that a command takes, on the wall and of CPU."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    read_output(argv, SERVER_CORE, COMMAND_TIMEOUT_S, given="")
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"wall_ms": took * 1e3, "command_cpu_ms": spent * 1e3}


def time_first_answer(one: Contender, *, by_command: bool = False) -> dict[str, float]:
    """Milliseconds from spawning a stdio server to its answer to ``initialize``.

    Args:
        one: whose server.
        by_command: started by ``isthmus run``, as the configurations of hosts have it.
    """
    argv = [find_command(), "run", "servers/example.py"] if by_command else one.over_stdio()
    start = time.perf_counter()
    with run_child(argv, **PIPES) as process:
        PipeTalk(process).shake_hands()
        took = time.perf_counter() - start
        return {"answer_ms": took * 1e3, "answer_cpu_ms": cpu_seconds(process.pid) * 1e3}


def find_command() -> str:
    """The program ``isthmus`` beside this interpreter."""
    return str(Path(sys.executable).with_name("isthmus"))


def time_commands(run: Run, ours: Contender, starts: int) -> None:
    """``isthmus --help`` and a call of a server that runs."""
    port, command = find_free_port(), find_command()
    with run_child(ours.over_http(port, "modern")) as process:
        wait_listening(port, process)
        url = f"http://127.0.0.1:{port}/mcp"
        argvs = {
            "isthmus --help": [command, "--help"],
            "isthmus call URL": [command, "call", url, "add", "a=20", "b=22"],
            "isthmus call FILE": [command, "call", "servers/example.py", "add", "a=20", "b=22"],
        }
        works = {row: partial(time_command, argv) for row, argv in argvs.items()}
        run.take_turns(COMMANDS, works, starts)
