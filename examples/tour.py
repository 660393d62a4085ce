"""What isthmus does, on real input, revision by revision: ``make run``.

Seven parts: our server and our client in every revision over stdio and HTTP; our client on other
people's servers; another implementation's client on our server; a server that wants a login; a host
with four servers and a user who is asked; a shop that is made of other servers and of an API; a gateway. The second and the third, and one server of the fifth, need
packages from the package index, in environments of their own; where those cannot be had, the tour
says so.
"""

import asyncio
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from isthmus import Accepted, Client, Command
from isthmus.errors import ToolFailed
from isthmus.revisions import REVISIONS
from isthmus.testing import serving
from isthmus.types import ElicitParams, ProgressParams

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "tools")]

import host_tour  # noqa: E402 - examples/host_tour.py: found through the line above
import peers  # noqa: E402 - tools/peers.py: found through the line above
from bookings import server  # noqa: E402 - examples/bookings.py: found through the line above

LATEST_LEGACY, MODERN = "2025-11-25", "2026-07-28"
MODEL_SAYS = "A short text. It says little."


def say(text: str, depth: int = 1) -> None:
    """One line of the tour."""
    print("   " * depth + text, flush=True)


async def choose(question: ElicitParams) -> Accepted[Mapping[str, Any]]:
    """The user of this tour: always takes row 12, at the window."""
    say(f"the server asks: {question.message!r}, and we answer row 12", 2)
    return Accepted({"row": 12, "window": True})


async def think(_request: object) -> str:
    """The user's model in this tour: it has one opinion."""
    return MODEL_SAYS


def show(progress: ProgressParams) -> None:
    """Progress, as it arrives."""
    say(f"progress {progress.progress:g} of {progress.total:g}: {progress.message}", 2)


async def book(target: Any, revision: str | None) -> None:
    """List and call in one revision; ask the user where the revision can."""
    async with Client(target, revision=revision, elicit=choose, sample=think) as client:
        tools = [tool.name for tool in await client.list_tools()]
        say(f"{client.revision}: {client.info.name} offers {', '.join(tools)}")
        kind = await client.call_tool("price", {"kind": "window"})
        say(f"price(window) = {kind.text}", 2)
        if client.revision.name in {LATEST_LEGACY, MODERN}:
            date = datetime.now(UTC).date().isoformat()
            booked = await client.call_tool("book", {"date": date}, on_progress=show)
            say(f"book({date}) = {json.dumps(booked.structured)}", 2)
            summary = await client.call_tool("summarise", {"text": "Lorem ipsum."})
            say(f"summarise(…) = {summary.text!r}, said by the user's own model", 2)


async def ours() -> None:
    """Our client and our server, in every revision, in memory, over stdio and over HTTP."""
    print("\n1. One server file, five revisions (examples/bookings.py)")
    say("in memory, whatever is newest", 0)
    await book(server, None)
    for revision in REVISIONS:
        say(f"over stdio, {revision.name}", 0)
        await book(Command(sys.executable, str(HERE / "bookings.py")), revision.name)
    async with serving(server) as url:
        for revision in REVISIONS:
            say(f"over HTTP, {revision.name}", 0)
            await book(url, revision.name)


async def theirs() -> None:
    """Our client on other people's servers."""
    print("\n2. Our client, other people's servers")
    try:
        python = str(peers.python("servers"))
    except peers.Unavailable as why:
        say(f"left out, for the package index cannot be reached: {why}")
        return
    git = Command(python, "-m", "mcp_server_git", "--repository", str(ROOT))
    async with Client(git) as client:
        say(f"mcp-server-git speaks {client.revision}; the last commit of this repository:")
        log = await client.call_tool("git_log", {"repo_path": str(ROOT), "max_count": 1})
        for line in log.text.strip().splitlines()[:6]:
            say(line, 2)
    async with Client(Command(python, "-m", "mcp_server_time")) as client:
        say(f"mcp-server-time speaks {client.revision}:")
        when = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
        converted = json.loads((await client.call_tool("convert_time", when)).text)
        say(f"noon in UTC is {converted['target']['datetime'][11:16]} in Tokyo", 2)
        try:
            wrong = await client.call_tool("get_current_time", {"timezone": "Nowhere/Land"})
            wrong.parse(dict)
        except ToolFailed as error:
            say(f"and it says so when asked nonsense: {error}", 2)


async def other_client() -> None:
    """PyPI ``mcp``'s own client on our server, over both transports."""
    print("\n3. PyPI mcp's client, our server")
    try:
        python = peers.python("mcp2")
    except peers.Unavailable as why:
        say(f"left out, for the package index cannot be reached: {why}")
        return
    script = str(HERE / "elsewhere" / "official_client.py")
    async with serving(server) as url:
        for target in ([url], [sys.executable, str(HERE / "bookings.py")]):
            process = await asyncio.create_subprocess_exec(
                str(python), script, *target, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            for line in out.decode().splitlines():
                say(line)
            if process.returncode:
                raise SystemExit(f"the client ended with {process.returncode}")


async def run_example(name: str, *words: str) -> None:
    """A program of its own (examples/NAME), line by line."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(HERE / name),
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    out, _ = await process.communicate()
    for line in out.decode().splitlines():
        say(line)
    if process.returncode:
        raise SystemExit(f"examples/{name} ended with {process.returncode}")


async def login() -> None:
    """A server that wants a login, with the authorization server inside (examples/protected)."""
    print("\n4. A server that wants a login, and more of its user for more of its tools")
    await run_example("protected", "--headless")


async def host() -> None:
    """Many servers and one user who is asked (examples/host_tour.py)."""
    print("\n5. A host: four servers, and one user who is asked (examples/host/mcp.json)")
    try:
        git = str(peers.python("servers"))
    except peers.Unavailable as why:
        say(f"without mcp-server-git, for the package index cannot be reached: {why}")
        git = None
    await host_tour.main(git)


async def shop() -> None:
    """A server that is made of others: mounted, proxied, and of an OpenAPI document (examples/shop)."""
    print("\n6. One server of many: mounted, proxied, and of an API (examples/shop)")
    await run_example("shop")


async def gateway() -> None:
    """A gateway between servers and clients of different years (examples/gateway)."""
    print("\n7. A gateway: a client of 2025 asks through a server of 2026, and the reverse")
    await run_example("gateway")


async def main() -> None:
    """The whole tour; ends with exit code 0 when everything went well."""
    print("isthmus: the Model Context Protocol in Python, all five revisions")
    await ours()
    await theirs()
    await other_client()
    await login()
    await host()
    await shop()
    await gateway()
    print(
        "\nThat was the main job: servers, clients, logins, a host, a gateway; three transports, two eras."
    )
    print(
        "\nTo see and decide in a browser what a host does: .venv/bin/python examples/console"
        "\nIt starts servers of both eras, makes calls, has four that wait for you, and opens the page."
    )


if __name__ == "__main__":
    asyncio.run(main())
