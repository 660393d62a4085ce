"""Program of another process of a host: it calls what it reads from stdin, and writes what came of it.

``python calling_host.py STORE``; each line is what to buy, and each line out ``result`` or an error.
"""

import asyncio
import sys

from isthmus import Server
from isthmus.errors import IsthmusError
from isthmus.host import Host, Policy
from isthmus.host.policy.rule_file import read_layers

RULES = """
[[rule]]
id = "calls"
effect = "ask"
when = { action = ["tool.call"] }
obligations = { remember = ["once", "tool_always"] }
"""


def make_shop():
    """A server with one tool."""
    shop = Server("shop")

    @shop.tool
    async def buy(what: str) -> str:
        """Buy something."""
        return f"bought {what}"

    return shop


def make_host(store, **options):
    """A process of the host."""
    host = Host(policy=Policy.of(read_layers(RULES, "user")), store=store, name="desk", **options)
    host.add("shop", make_shop())
    return host


def tell(line):
    """Write a line."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def serve(store):
    """Call what is read, until the end."""
    loop = asyncio.get_running_loop()
    async with make_host(store) as host:
        tell("open")
        while what := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            try:
                tell((await host.call("shop__buy", {"what": what})).text)
            except IsthmusError as error:
                tell(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
