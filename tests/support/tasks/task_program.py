"""Program of one node: a server with tasks over a store that others have, too.

``task_program.py STORE PORT TTL`` serves over HTTP; its lease lasts TTL seconds.
"""

import asyncio
import sys

from isthmus import Server
from isthmus.nodes.node import Node

store, port, ttl = sys.argv[1:]
Node.__init__.__kwdefaults__["ttl"] = float(ttl)  # a test does not wait as long as people may
server = Server("killed", store=store)


@server.tool(task="optional")
async def wait_for_ever() -> str:
    """Work until the process ends."""
    await asyncio.Event().wait()
    return "never"


@server.tool(task="optional", retry_safe=True)
async def note(path: str) -> str:
    """Write down that it runs; the first run goes on for ever."""
    with open(path, "a", encoding="utf-8") as file:  # noqa: ASYNC230, PTH123 - a line
        file.write("run\n")
    with open(path, encoding="utf-8") as file:  # noqa: ASYNC230, PTH123
        if len(file.readlines()) == 1:
            await asyncio.Event().wait()
    return "done"


server.run("http", port=int(port))
