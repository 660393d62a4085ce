"""One server for several programs of one user: a notebook on a Unix socket.

In one terminal ``python shared.py serve ./notes.sock``, in others
``python shared.py ./notes.sock "buy milk"``.
"""

import asyncio
import sys

from isthmus import Client, Principal, Server

server = Server("notebook", version="1.0")
notes: list[str] = []


@server.tool
def note(text: str, who: Principal) -> list[str]:
    """Write a note, and read all there are."""
    notes.append(f"{text} ({who.subject})")
    return notes


async def main(path: str, text: str) -> None:
    """Write one note as a client."""
    async with Client(f"unix://{path}") as client:
        for line in (await client.call_tool("note", {"text": text})).parse(list[str]):
            print(line)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        server.run("unix", path=sys.argv[2])
    else:
        asyncio.run(main(*sys.argv[1:3]))
