"""Serving of a console by itself, on an address of this machine."""

import asyncio
import contextlib
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cards.markup import element
from isthmus.console.app import Console
from isthmus.errors import UsageError
from isthmus.host.remote.view import HostView

if TYPE_CHECKING:
    import uvicorn

DEFAULT_PORT = 8765
LOOPBACK = "127.0.0.1"


def bind_port(port: int) -> socket.socket:
    """A socket that listens on this machine.

    Raises:
        UsageError: the port is taken.
    """
    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        raise UsageError(
            f"the console cannot listen on {LOOPBACK}:{port} ({error.strerror}): choose another port"
        ) from error


@asynccontextmanager
async def serve_console(
    view: HostView, port: int = DEFAULT_PORT, *, tell: Callable[[str], None] | None = None
) -> AsyncIterator[Console]:
    """Serve the console of a host on this machine, as long as this lasts.

    Args:
        view: the host.
        port: of TCP; 0 takes a free one.
        tell: gets the address to sign in at anew, after somebody has signed out everywhere.

    Raises:
        UsageError: the port is taken.
    """
    listening = bind_port(port)
    console = Console(view, f"http://{LOOPBACK}:{listening.getsockname()[1]}", tell=tell)
    server = _make_server(console)
    serving = asyncio.ensure_future(server.serve([listening]))
    try:
        # whoever asks for a console sees the calls from here on, not only from the first look
        async with view.attend("console"):
            await console.look()
            yield console
    finally:
        await console.close()
        server.should_exit = True
        await serving


def _make_server(console: Console) -> "uvicorn.Server":
    import uvicorn

    class Server(uvicorn.Server):
        """Leaves signals to whoever serves."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(
        uvicorn.Config(
            console,
            lifespan="off",
            loop="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )


@contextlib.contextmanager
def open_browser(url: str) -> Iterator[None]:
    """Open a page in the user's browser.

    The URL has a token, and the command lines of programs can be read by every user of a machine: so the
    browser is given a file that only this user can read, which leads there, and is gone afterwards.

    Args:
        url: the URL of the page, with its token.
    """
    import webbrowser

    with tempfile.TemporaryDirectory(prefix="isthmus-") as folder:  # 0700
        file = Path(folder) / "console.html"
        refresh = element("meta", {"http-equiv": "refresh", "content": f"0;url={url}"})
        file.write_text(f"<!DOCTYPE html>{refresh}", encoding="utf-8")
        webbrowser.open(file.as_uri())
        yield
