"""A host with servers of two eras, something to see and something to decide: ``python examples/console``.

It opens the page in the browser; ``--no-open`` prints its address only, ``--port 0`` takes any free port.
Everything is on this machine. Control-C ends it, and what still waits then is denied.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import Any

from isthmus import Command
from isthmus.console import open_browser, serve_console
from isthmus.host import Host, HostError

HERE = Path(__file__).parent
SERVERS = {
    "store": HERE / "store.py",  # of every revision
    "library": HERE.parent / "gateway" / "library.py",  # of 2025: it asks for how long
    "cinema": HERE.parent / "gateway" / "cinema.py",  # of 2026: it asks for a row
    "lost": HERE / "no_such_file.py",  # broken on purpose: it costs the others nothing
}
ADDRESS = "12 Quay Street"
WAITING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("store__order", {"tea": "sencha", "grams": 500, "address": ADDRESS}),
    ("store__order", {"tea": "assam", "grams": 250, "address": ADDRESS, "note": "ring twice"}),
    ("library__lend", {"title": "Dune"}),
    ("cinema__book", {"film": "Playtime"}),
)
PASSING: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("store__find", {"words": words}) for words in ("a", "sen", "darjeeling", "oolong")),
    ("store__price", {"tea": "assam", "grams": 250}),
    ("store__price", {"tea": "oolong"}),
    ("store__restock", {"tea": "sencha"}),
    ("store__empty", {"reason": "spring cleaning"}),
    ("lost__anything", {}),
)


def make_host() -> Host:
    """The host; a configuration file would say the same, see docs/guide/host-config.md."""
    host = Host(policy=HERE / "policy.toml")
    for name, script in SERVERS.items():
        host.add(name, Command(sys.executable, str(script)))
    return host


async def call(host: Host, tool: str, arguments: dict[str, Any]) -> None:
    """One call, as a program makes it; how it ended is on the page."""
    with contextlib.suppress(HostError):
        await host.call(tool, arguments)


async def main(port: int, *, open_page: bool) -> None:
    """Serve the console until control-C."""
    end = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows has no such handlers
            asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with make_host() as host, serve_console(host.view, port) as console:
        print(f"the console is at {console.login_address} (control-C ends it)", flush=True)
        with open_browser(console.login_address) if open_page else contextlib.nullcontext():
            for tool, arguments in PASSING:
                await call(host, tool, arguments)
            waiting = [asyncio.ensure_future(call(host, *one)) for one in WAITING]
            print(
                f"{len(PASSING)} calls are made, and {len(WAITING)} wait for a person", flush=True
            )
            await end.wait()
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--no-open", action="store_true", help="open no browser")
    parser.add_argument("--port", type=int, default=8765, help="of the console; 0 takes a free one")
    given = parser.parse_args()
    asyncio.run(main(given.port, open_page=not given.no_open))
