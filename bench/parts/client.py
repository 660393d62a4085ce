"""Clients: over HTTP against one fixed fast server, and in memory against their own server."""

import json
from functools import partial

from contenders import Contender
from processes import LOAD_CORE, SERVER_CORE, find_free_port, read_output, run_child, wait_listening
from results import LIMIT, Column, Table
from turns import Run

COLUMNS = {
    "sequential_us": Column("CPU one after another, µs/call"),
    "at_once_us": Column("CPU, 16 at once, µs/call"),
    "sequential": Column("calls/s, one after another", less=False, pick="median"),
    "at_once_16": Column("calls/s, 16 at once", less=False, pick="median"),
}
LISTS = {"list_500_ms": Column("list of 500 tools, CPU ms")}
MEMORY = "client memory"
TITLES = {
    "legacy": "Clients over HTTP, 2025-06-18, against one fixed fast server",
    "modern": "Clients over HTTP, 2026-07-28, against one fixed fast server",
}
TABLES = (
    *(Table(f"client {wire}", title, COLUMNS) for wire, title in TITLES.items()),
    Table(MEMORY, "Client and server in one process, 2025-06-18", COLUMNS | LISTS),
)
CLIENT_TIMEOUT_S = 60


def measure(run: Run) -> None:
    """Everybody's client, on both wires and in memory."""
    clients = [one for one in run.field if one.client]
    fixed = next(one for one in run.field if one.name == LIMIT)
    port = find_free_port()
    with run_child(fixed.over_http(port, "legacy json")) as process:
        wait_listening(port, process)
        url = f"http://127.0.0.1:{port}/mcp"
        for wire in TITLES:
            works = {
                one.name: partial(measure_client, one, url, LOAD_CORE, wire, run) for one in clients
            }
            run.take_turns(f"client {wire}", works)
    works = {
        one.name: partial(measure_client, one, "memory", SERVER_CORE, "legacy", run)
        for one in clients
    }
    run.take_turns(MEMORY, works)


def measure_client(one: Contender, target: str, core: int, wire: str, run: Run) -> dict[str, float]:
    """The columns of one client, whose process says them itself."""
    argv = [*one.client, target, str(run.effort.seconds), wire]
    found: dict[str, float] = json.loads(read_output(argv, core, CLIENT_TIMEOUT_S))
    return found
