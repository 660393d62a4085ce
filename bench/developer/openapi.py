"""Import of a large OpenAPI document: 1,200 operations with shared schemas, time and memory.

Run it: ``python bench/developer/openapi.py``. Each figure is of a process of its own.
"""

import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

OPERATIONS, SCHEMAS = 1_200, 400
MAX_SECONDS, MAX_MIB = 2.0, 60.0


def make_document() -> dict[str, Any]:
    """A document as large APIs have it: schemas that refer to one another, parameters, bodies."""
    schemas: dict[str, Any] = {}
    for n in range(SCHEMAS):
        properties: dict[str, Any] = {
            f"field_{at}": {
                "type": "string",
                "description": f"What field {at} is about, in some words.",
            }
            for at in range(12)
        }
        properties["id"] = {"type": "integer", "format": "int64", "readOnly": True}
        for step in (1, 7):
            properties[f"other_{step}"] = {
                "$ref": f"#/components/schemas/Schema{(n * 3 + step) % SCHEMAS}"
            }
        schemas[f"Schema{n}"] = {
            "type": "object",
            "required": ["id", "field_0"],
            "properties": properties,
        }
    paths: dict[str, Any] = {}
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "maximum": 100}}
    owner = {"name": "owner", "in": "path", "required": True, "schema": {"type": "string"}}
    for n in range(OPERATIONS // 3):
        answer = {
            "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/Schema{n}"}}}
        }
        about: dict[str, Any] = {
            "tags": [f"group{n % 30}"],
            "summary": f"Deal with the things of kind {n}",
            "description": "Some sentences about what it does. " * 6,
            "responses": {"200": answer},
        }
        body = {"required": True, "content": answer["content"]}
        paths[f"/owners/{{owner}}/things{n}"] = {
            "parameters": [owner],
            "get": {**about, "operationId": f"listThings{n}", "parameters": [limit]},
            "post": {**about, "operationId": f"makeThing{n}", "requestBody": body},
            "delete": {**about, "operationId": f"dropThings{n}"},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Large", "version": "1"},
        "servers": [{"url": "https://large.example"}],
        "paths": paths,
        "components": {"schemas": schemas},
    }


def measure(search: bool) -> None:
    """Print seconds and MiB of an import, in this process."""
    from isthmus import Server

    data = json.dumps(make_document()).encode()
    Server("warm")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    Server.from_openapi(data, search=search)
    taken = time.process_time() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(json.dumps([taken, more, len(data)]))


def main() -> None:
    """Print the table."""
    print("| 1,200 operations | seconds of CPU | MiB | document |")
    print("|---|---|---|---|")
    for search in (True, False):
        command = [sys.executable, os.path.abspath(__file__), str(int(search))]  # noqa: PTH100 - a script
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        taken, more, size = json.loads(out)
        kind = "found by searching" if search else "each a tool"
        good = "" if taken <= MAX_SECONDS and more <= MAX_MIB else " (beyond the bound)"
        print(f"| {kind} | {taken:.2f}{good} | {more:.0f} | {size / 2**20:.1f} MiB |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1] == "1")
    else:
        main()
