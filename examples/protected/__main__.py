"""The server and the client of this folder, one talking to the other: ``python examples/protected``.

A browser opens twice: log in as ada, "correct horse battery". With ``--headless`` somebody without a
browser does that.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from client import visit
from isthmus.auth import MemoryTokenStore, OAuth
from isthmus.errors import AuthRequired
from isthmus.testing import Person

HERE = Path(__file__).parent


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def listening(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until the server listens."""
    while process.returncode is None:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise SystemExit("the server ended before it listened")


class Shown(Person):
    """Somebody who says what they are asked for."""

    async def open(self, url: str) -> None:
        """Log in and consent."""
        scopes = parse_qs(urlsplit(url).query)["scope"][0]
        print(f"the browser opens: may the client have {scopes}?")
        await super().open(url)


async def main(*, headless: bool) -> None:
    """Start the server, visit it."""
    ada = Shown("ada", "correct horse battery")
    port = free_port()
    origin = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            HERE / "server.py",
            folder,
            env={**os.environ, "BOOKINGS_ORIGIN": origin},
            stderr=subprocess.DEVNULL if headless else None,
        )
        try:
            await asyncio.wait_for(listening(port, process), 30)
            shown = {"open_browser": ada.open} if headless else {}
            auth = OAuth("Bookings example", store=MemoryTokenStore(), **shown)
            await visit(f"{origin}/mcp", auth)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


if __name__ == "__main__":
    try:
        asyncio.run(main(headless="--headless" in sys.argv))
    except AuthRequired as error:
        raise SystemExit(f"{error}. Here, --headless logs in without a browser.") from None
