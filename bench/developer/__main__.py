"""Costs of developers' features, as ratios of one run, with floors: ``python bench/developer``.

A call in memory over 2026-07-28: direct, mounted, proxied, with spans and histograms; a document of 1,200
operations made into a server; the import of a server. Ends with 1 where a floor is missed.
"""

import asyncio
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

import middleware

from isthmus import Client, Server
from telemetry import make_bare, make_client, make_meters, make_tracers

OPERATIONS = 1_200
IMPORTS = 5
ATTEMPTS = 3
MIB = 1024


class Measure(NamedTuple):
    """One row of the table.

    Attributes:
        name: what was measured.
        value: what came out.
        floor: what it must not exceed, and ``goal`` what it should not.
        unit: of all three.
    """

    name: str
    value: float
    floor: float = float("inf")
    goal: float = float("inf")
    unit: str = "times"

    @property
    def is_held(self) -> bool:
        """Whether the floor is held."""
        return self.value <= self.floor


def mount(inner: Server) -> Server:
    """A server that mounts another one without a prefix."""
    outer = Server("outer")
    outer.mount(inner)
    return outer


async def compare_calls() -> list[Measure]:
    """Calls of one tool by several ways, as multiples of the direct one's CPU."""
    least = await middleware.compare(
        {
            "direct": Client(middleware.make_server(())),
            "mounted": Client(mount(middleware.make_server(()))),
            "proxied": Client(Server.proxy(middleware.make_server(()))),
            "traced": make_client(tracer_provider=make_tracers(), meter_provider=make_meters()),
            "no provider": make_client(),
            "bare": make_bare(),
        }
    )
    direct = least["direct"]
    return [
        Measure("mounted call against direct", least["mounted"] / direct, 1.1, 1.03),
        Measure("proxied call in memory", least["proxied"] / direct, 2.5, 1.8),
        Measure("telemetry on, no provider", least["no provider"] / direct, 1.25, 1.12),
        Measure(
            "spans and histograms, against those of the SDK alone",
            least["traced"] / least["bare"],
            1.25,
            1.12,
        ),
        Measure("spans and histograms of the SDK alone", least["bare"] / direct),
    ]


def make_document(operations: int) -> dict[str, Any]:
    """A document of operations, each with a body of some members."""
    pet = {"type": "object", "properties": {f"m{n}": {"type": "string"} for n in range(12)}}
    paths = {
        f"/things{number}/{{id}}": {
            "post": {
                "operationId": f"make{number}",
                "summary": f"Make thing {number}.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}
                    }
                },
                "responses": {"200": {"description": "Done."}},
            }
        }
        for number in range(operations)
    }
    info = {"title": "Many", "version": "1"}
    schemas = {"schemas": {"Pet": pet}}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": schemas}


def import_document() -> None:
    """Make a server of the document, and print seconds and KiB (in a process of its own)."""
    document = make_document(OPERATIONS)
    Server.from_openapi(
        make_document(1), base_url="https://api.example"
    )  # what it takes is imported
    before, start = measure_memory(), time.process_time()
    Server.from_openapi(document, base_url="https://api.example", search=False)
    print(json.dumps([time.process_time() - start, measure_memory() - before]))


def measure_memory() -> int:
    """The most memory that this process has held, in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def measure_document() -> list[Measure]:
    """The time and memory of a large document."""
    done = subprocess.run(
        [sys.executable, __file__, "--document"], capture_output=True, text=True, check=True
    )
    seconds, kib = json.loads(done.stdout)
    return [
        Measure(f"{OPERATIONS} operations, import", seconds, 2.0, 0.7, "s"),
        Measure(f"{OPERATIONS} operations, memory", kib / MIB, 60, 60, "MiB"),
    ]


def measure_import() -> Measure:
    """The CPU of a process that imports isthmus and makes a server, the least of some."""
    code = "from isthmus import Server\ns = Server('x')\n@s.tool\ndef f(a: int) -> int: return a"
    least = float("inf")
    for _ in range(IMPORTS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, spent)
    return Measure("import and a server, CPU", least * 1000, goal=96, unit="ms")


def main() -> int:
    """Print the table."""
    for _ in range(ATTEMPTS):  # a busy moment is no miss
        calls = asyncio.run(compare_calls())
        if all(row.is_held for row in calls):
            break
    rows = [*calls, *measure_document(), measure_import()]
    print("| measure | seen | floor | goal | |\n| --- | ---: | ---: | ---: | --- |")
    for row in rows:
        reached = "goal" if row.value <= row.goal else "floor" if row.is_held else "MISSED"
        reached = reached if row.goal < float("inf") else ""
        seen, floor, goal = (
            "" if value == float("inf") else f"{value:.2f} {row.unit}" for value in row[1:4]
        )
        print(f"| {row.name} | {seen} | {floor} | {goal} | {reached} |")
    return 0 if all(row.is_held for row in rows) else 1


if __name__ == "__main__":
    if "--document" in sys.argv:
        import_document()
    else:
        sys.exit(main())
