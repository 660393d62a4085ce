"""What a search among 5,000 tools costs, and how often it finds what is meant.

Run it: ``python bench/hosts/search.py``. The catalog is that of the tests, with each server as often as
it takes. It prints the time to make the index, milliseconds of a search (every query once, words not
met before among them; then all of them again; by the clock, and by the processor's time, which other
programs do not lengthen), and the recall among the first five for the queries that
words and weights were chosen by, and for the third that was held out. The target is p99 below 5 ms.

Then the same for the tools of real servers: sentences about some servers, by which words and weights were chosen, and
about others. Only names and parameters of those tools are kept here; a file that tools/tool_facts.py wrote, as the
argument, has their descriptions, too.
"""

import json
import sys
import time
from pathlib import Path
from statistics import quantiles

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from isthmus.search.tool_index import ToolIndex
from support.host.tool_corpus import (
    find_misses,
    load_held_out,
    load_queries,
    load_real_held_out,
    load_real_tools,
    load_real_tuned,
    load_tools,
    load_tuned,
    measure_recall,
)

TOOLS = 5_000


def crowded() -> ToolIndex:
    """An index of so many tools."""
    index, servers, again = ToolIndex(), load_tools(), 0
    while len(index) < TOOLS:
        again += 1
        for server, tools in servers.items():
            name = f"{server}-{again}"
            index.replace(name, [(f"{name}__{tool.name}", tool) for _, tool in tools])
    return index


def spread(seconds: list[float]) -> str:
    """The median, and the 99th of a hundred."""
    marks = quantiles(seconds, n=100)
    return f"p50 {marks[49] * 1000:.2f} ms, p99 {marks[98] * 1000:.2f} ms"


def timed(index: ToolIndex) -> str:
    """What each query takes."""
    wall, cpu = [], []
    for query, _ in load_queries():
        began, worked = time.perf_counter(), time.thread_time()
        index.search(query, limit=5)
        cpu.append(time.thread_time() - worked)
        wall.append(time.perf_counter() - began)
    return f"{spread(wall)} by the clock; {spread(cpu)} of the processor"


def main() -> None:
    """Print it."""
    began = time.perf_counter()
    index = crowded()
    print(f"index of {len(index)} tools: {(time.perf_counter() - began) * 1000:.0f} ms")
    print(f"search, every query once:  {timed(index)}")
    print(f"search, the same again:    {timed(index)}")
    small = ToolIndex()
    for server, tools in load_tools().items():
        small.replace(server, tools)
    for name, queries in (("chosen by", load_tuned()), ("held out", load_held_out())):
        recall = 1 - len(find_misses(small, queries)) / len(queries)
        print(f"recall@5, {name:9}: {recall:.3f} of {len(queries)} queries, {len(small)} tools")
    real(None)
    for path in sys.argv[1:2]:
        real(json.loads(Path(path).read_text(encoding="utf-8")))


def real(descriptions: dict[str, str] | None) -> None:
    """Print how the tools of real servers are found."""
    index = ToolIndex()
    for server, tools in load_real_tools(descriptions).items():
        index.replace(server, tools)
    of = "names and parameters" if descriptions is None else "whole definitions"
    print(f"{len(index)} tools of real servers, {of}:")
    for name, queries in (
        ("chosen by", load_real_tuned()),
        ("other servers", load_real_held_out()),
    ):
        one, five, mean = measure_recall(index, queries)
        print(
            f"  {name:13}: recall@1 {one:.3f}, recall@5 {five:.3f}, MRR {mean:.3f} of {len(queries)}"
        )


if __name__ == "__main__":
    main()
