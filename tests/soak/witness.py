"""A server that writes down what it does: ``python tests/soak/witness.py FILE [PORT REVISION]``.

On stdio it may kill whoever started it in the middle of a call, as the call says.
"""

import os
import signal
import sys

from msgspec import Struct

from isthmus import Context, Server

LOG = sys.argv[1] if len(sys.argv) > 1 else os.devnull
REVISION = sys.argv[3] if len(sys.argv) > 3 else "2025-11-25"

server = Server("witness", revisions=[REVISION])


class Colour(Struct):
    """What is asked for."""

    name: str


def wrote(*words: str) -> None:
    """One line, in one step, that outlives everybody."""
    file = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, (" ".join(words) + "\n").encode())
    finally:
        os.close(file)


@server.tool
async def buy(lot: str, killing: str = "") -> str:
    """Buy something; the caller may be killed before or after that."""
    if killing == "before":
        os.kill(os.getppid(), signal.SIGKILL)
    wrote("buy", lot)
    if killing == "after":
        os.kill(os.getppid(), signal.SIGKILL)
    return f"bought {lot}"


@server.tool
async def paint(lot: str, ctx: Context) -> str:
    """Ask for a colour, then paint; the question goes as the revision has it."""
    said = await ctx.elicit(f"{lot} one", Colour, key="one")
    wrote("paint", lot)
    return f"{lot} is {said.value.name}"


@server.tool(task="required")
async def build(lot: str, ctx: Context) -> str:
    """Ask for two colours in a task."""
    wrote("build", lot)
    first = await ctx.elicit(f"{lot} one", Colour, key="one")
    second = await ctx.elicit(f"{lot} two", Colour, key="two")
    wrote("built", lot)
    return f"{lot} is {first.value.name} and {second.value.name}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("http", port=int(sys.argv[2]))
    else:
        server.run()
