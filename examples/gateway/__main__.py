"""Two servers and two clients of different eras, with a gateway between them: ``python examples/gateway``.

The library speaks revisions of 2025, the cinema that of 2026. A client of 2025 calls both, and so does
one of 2026; what the servers ask reaches the client whose call it is. Everything is on this machine.
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from isthmus import Accepted, Client, Command
from isthmus.gateway import Gateway
from isthmus.host import Host
from isthmus.testing import serving
from isthmus.types import ElicitParams

HERE = Path(__file__).parent


def make_gateway() -> Gateway:
    """The gateway; a configuration file would say the same, see docs/guide/gateway.md."""
    host = Host(policy=HERE / "policy.toml")
    for name in ("library", "cinema"):
        host.add(name, Command(sys.executable, str(HERE / f"{name}.py")))
    return Gateway(host)


def make_user(name: str, answer: int) -> Any:
    """A user who answers every question with a number."""

    async def fill_in(question: ElicitParams) -> Accepted[dict[str, int]]:
        print(f"  {name} is asked: {question.message} {answer}", flush=True)
        return Accepted({"value": answer})

    return fill_in


async def visit(url: str, revision: str, name: str, answer: int) -> None:
    """One client of one revision, at both servers."""
    async with Client(url, revision=revision, elicit=make_user(name, answer)) as client:
        tools = [tool.name for tool in await client.list_tools()]
        print(f"{name}, {revision}: {', '.join(tools)}", flush=True)
        for tool, arguments in (
            ("library__lend", {"title": "Dune"}),
            ("cinema__book", {"film": "Playtime"}),
        ):
            print(f"  {tool}: {(await client.call_tool(tool, arguments)).text}", flush=True)


async def main() -> None:
    """Serve, and visit."""
    async with serving(make_gateway()) as url:
        await visit(url, "2025-06-18", "Ada", 14)
        await visit(url, "2026-07-28", "Bob", 7)
        async with Client(f"{url}/cinema") as client:
            read = await client.read_resource("cinema://programme")
            print(f"the cinema alone, at /mcp/cinema: {read.contents[0].text}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
