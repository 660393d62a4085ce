"""Growth: what many tools, pages of tools and resource templates make each call cost."""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from processes import cpu_seconds, read_memory, run_child
from results import ISTHMUS, Column, Table, make_sizes
from talks import PIPES, PipeTalk, time_requests
from turns import Run

TOOLS = (10, 100, 1_000, 5_000)
TEMPLATES = (10, 1_000, 5_000)
PAGED = (1_000, 5_000, 20_000)
SHORT_MOST = 1_000
LIST, FIRST_LIST, CALL, SPAWN, SPAWN_CPU, MEMORY = (
    *("tools list", "tools first list", "tools call", "tools spawn", "tools spawn cpu"),
    "tools memory",
)
PAGES, TEMPLATE, UNKNOWN = "pages", "templates", "unknown resource"
TABLES = (
    Table(LIST, "`tools/list` again over stdio, by the tools: server CPU", make_sizes("ms", TOOLS)),
    Table(FIRST_LIST, "The first `tools/list`, by the tools: server CPU", make_sizes("ms", TOOLS)),
    Table(CALL, "`tools/call` over stdio, by the tools: server CPU", make_sizes("µs", TOOLS)),
    Table(
        SPAWN,
        "From the start of a stdio server to its first answer, by the tools",
        make_sizes("ms", TOOLS),
    ),
    Table(SPAWN_CPU, "The same, server CPU", make_sizes("ms", TOOLS)),
    Table(MEMORY, "Memory of a server, by the tools", make_sizes("MB", TOOLS, pick="median")),
    Table(
        PAGES,
        "A page of 50 tools, by the tools: server CPU, over the whole list",
        {
            **make_sizes("ms", PAGED),
            **{f"{size} first": Column(f"{size}, the first time") for size in PAGED},
        },
        compared=False,
    ),
    Table(
        TEMPLATE,
        "`resources/read` by the last of the resource templates: server CPU",
        make_sizes("µs", TEMPLATES),
    ),
    Table(
        UNKNOWN,
        "`resources/read` of a URI that no template knows: server CPU",
        make_sizes("µs", TEMPLATES),
    ),
)
PAGE_SIZE = 50
TURN_S = 0.25
MOST_TIMES = 2_000
LIST_PARAMS: dict[str, Any] = {}


def measure(run: Run) -> None:
    """More and more tools, then pages, then templates."""
    for size in limit_sizes(run, TOOLS):
        measure_tools(run, size)
    for size in limit_sizes(run, PAGED):
        with run.open_pipes(PAGES, f"pages={size}", ISTHMUS) as talks:
            works = {name: partial(walk_pages, talk, size) for name, talk in talks.items()}
            run.take_turns(PAGES, works, rounds=1)
    for size in limit_sizes(run, TEMPLATES):
        measure_templates(run, size)


def limit_sizes(run: Run, sizes: tuple[int, ...]) -> Iterator[int]:
    """The sizes of this run: the short form has no large ones."""
    return (size for size in sizes if size <= SHORT_MOST or not run.effort.short)


def measure_tools(run: Run, size: int) -> None:
    """Starts, lists and calls with so many tools."""
    case, column = f"tools={size}", str(size)
    offering = [one for one in run.field if one.stdio and one.offers(case)]
    for _ in range(2 if run.effort.short else 3):
        for one in offering:
            run.take(
                SPAWN, one.name, partial(time_start, run, one.over_stdio(case), column, one.name)
            )
    with run.open_pipes(LIST, case) as talks:
        for name, talk in talks.items():
            run.take(FIRST_LIST, name, partial(time_once, talk, column))
        ask = {name: talk.make_request("tools/list", {}) for name, talk in talks.items()}
        run.take_turns(
            LIST,
            {
                name: partial(time_many, talk, ask[name], column, 1e3)
                for name, talk in talks.items()
            },
        )
        for name, talk in talks.items():
            weight = read_memory(talk.pid) / 1024
            run.results.add(MEMORY, name, **{column: weight})
        params = {"name": "add", "arguments": {"a": 20, "b": 22}}
        call = {name: talk.make_request("tools/call", params) for name, talk in talks.items()}
        run.take_turns(
            CALL,
            {
                name: partial(time_many, talk, call[name], column, 1e6)
                for name, talk in talks.items()
            },
        )


def time_start(run: Run, argv: list[str], column: str, row: str) -> dict[str, float]:
    """Milliseconds until the first answer; of CPU, in the table beside it."""
    start = time.perf_counter()
    with run_child(argv, **PIPES) as process:
        PipeTalk(process).shake_hands()
        took = time.perf_counter() - start
        run.results.add(SPAWN_CPU, row, **{column: cpu_seconds(process.pid) * 1e3})
    return {column: took * 1e3}


def time_once(talk: PipeTalk, column: str) -> dict[str, float]:
    """Milliseconds of server CPU of the first list."""
    before = cpu_seconds(talk.pid)
    talk.request("tools/list", {})
    return {column: (cpu_seconds(talk.pid) - before) * 1e3}


def time_many(talk: PipeTalk, ask: Any, column: str, unit: float) -> dict[str, float]:
    """Server CPU of a request, over as many as fit in a turn."""
    began = time.perf_counter()
    ask()
    once = max(time.perf_counter() - began, TURN_S / MOST_TIMES)
    return {column: time_requests(talk, ask, max(2, int(TURN_S / once))) * unit}


def walk_pages(talk: PipeTalk, size: int) -> dict[str, float]:
    """Server CPU of a page: over all pages, the first time and the second."""
    found = {}
    for column in (f"{size} first", str(size)):
        before, pages, params = cpu_seconds(talk.pid), 0, dict[str, Any]()
        while True:
            page = talk.request("tools/list", params)
            pages += 1
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        if pages != -(-size // PAGE_SIZE):
            raise RuntimeError(f"{pages} pages of {size} tools")
        found[column] = (cpu_seconds(talk.pid) - before) / pages * 1e3
    return found


def measure_templates(run: Run, size: int) -> None:
    """Reading by the last template, and by none."""
    column, last = str(size), f"note{size - 1}://word"
    with run.open_pipes(TEMPLATE, f"templates={size}") as talks:
        works = {name: partial(read_template, talk, last, column) for name, talk in talks.items()}
        run.take_turns(TEMPLATE, works)
        works = {name: partial(read_unknown, talk, column) for name, talk in talks.items()}
        run.take_turns(UNKNOWN, works)


def read_template(talk: PipeTalk, uri: str, column: str) -> dict[str, float]:
    """Microseconds of server CPU to read by a template."""
    return time_many(talk, talk.make_request("resources/read", {"uri": uri}), column, 1e6)


def read_unknown(talk: PipeTalk, column: str) -> dict[str, float]:
    """Microseconds of server CPU to say that there is no such resource."""
    ask = talk.make_request("resources/read", {"uri": "elsewhere://word"})
    times = 0
    before, end = cpu_seconds(talk.pid), time.perf_counter() + TURN_S
    while time.perf_counter() < end:
        if b'"error"' not in (answer := ask()):
            raise RuntimeError(f"not refused: {answer[:300]!r}")
        times += 1
    return {column: (cpu_seconds(talk.pid) - before) / times * 1e6}
