"""``isthmus dev``: serve a file while it is written, with reload, traffic and what changed.

This process watches the files, and runs one server process after the other (``dev_server``). Traffic comes as
events (:mod:`isthmus.telemetry.traffic`), of which lines are only one form: a page in a browser would hear the
same events by ``watch_traffic``.
"""

import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from isthmus.cli.commands.run import DEFAULT_HOST, EndpointPath, parse_address, split_server_path
from isthmus.cli.declarations import Argument, CommandSet, Option
from isthmus.cli.exits import finish
from isthmus.cli.openapi_target import is_document
from isthmus.cli.options import EnvWords
from isthmus.errors import ConnectFailed, UsageError

app = CommandSet()

DEFAULT_PORT = 8000
MAX_PORTS_TRIED = 20  # from the default one on, where it is taken

DevAddress: TypeAlias = Annotated[
    str | None,
    Option(metavar="HOST:PORT", help="Address; by default 127.0.0.1:8000 or the next free port."),
]
OverStdio: TypeAlias = Annotated[
    bool,
    Option(
        "--stdio", help="Serve over stdio, for a client that launches it; traffic goes to stderr."
    ),
]
WholeMessages: TypeAlias = Annotated[
    bool, Option("--wire", help="Show complete messages, with secrets removed.")
]
LogRecords: TypeAlias = Annotated[
    Literal["debug", "info", "warning", "error"] | None,
    Option("--log-level", help="Lowest level of log records to show; warning by default."),
]


@app.command("dev")
def dev(
    file: Annotated[str, Argument(metavar="FILE[:OBJECT]", show_default=False)],
    http: DevAddress = None,
    *,
    stdio: OverStdio = False,
    wire: WholeMessages = False,
    path: EndpointPath = None,
    env: EnvWords = None,
    log_level: LogRecords = None,
) -> None:
    """Serve a file during development, with reload and traffic."""

    def work() -> Coroutine[Any, Any, None]:
        options = DevOptions(
            http=http, stdio=stdio, wire=wire, path=path,
            env=tuple(env or ()), log_level=log_level or "warning",
        )  # fmt: skip
        return supervise_dev(file, find_folder(file), options, options.choose_address())

    finish(work)


class DevOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``isthmus dev``, as they were typed.

    Attributes:
        http: where to listen, or None.
        stdio: serve the program that started this.
        wire: show whole messages.
        path: of the endpoint.
        env: variables of the server process, ``NAME=VALUE`` each.
        log_level: of the log records that are shown.
    """

    http: str | None = None
    stdio: bool = False
    wire: bool = False
    path: str | None = None
    env: Sequence[str] = ()
    log_level: str = "warning"

    def choose_address(self) -> tuple[str, int] | None:
        """Where to listen, with a port that is free now; None for stdio.

        Raises:
            UsageError: the options contradict each other.
            ConnectFailed: the port is taken.
        """
        if self.path is not None and not self.path.startswith("/"):
            raise UsageError(f"--path {self.path}: a path begins with /, as in /mcp")
        if self.stdio:
            given = [name for name in ("http", "path") if getattr(self, name) is not None]
            if given:
                raise UsageError(f"--stdio and --{given[0]} exclude each other: leave out one")
            return None
        if self.http is None:
            return DEFAULT_HOST, find_port(
                DEFAULT_HOST, range(DEFAULT_PORT, DEFAULT_PORT + MAX_PORTS_TRIED)
            )
        host, port = parse_address(self.http)
        return host, find_port(host, (port,))


def find_port(host: str, ports: Sequence[int]) -> int:
    """The first of some ports that is free; 0 means any one.

    It stays the same at every reload, so that clients find the server again.

    Raises:
        ConnectFailed: all of them are taken, or the address is none of this machine.
    """
    reason = ""
    for port in ports:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            if os.name == "posix":
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except (OSError, OverflowError) as error:
                reason = str(error)
                continue
            found: int = probe.getsockname()[1]
            return found
    raise ConnectFailed(
        f"cannot listen on {host}:{ports[0]}: {reason}; choose another with --http HOST:PORT"
    )


def find_folder(file: str) -> Path:
    """The folder of a file, which is watched.

    Raises:
        UsageError: there is no such file, or it is no Python file.
    """
    if is_document(file):
        raise UsageError(f"dev serves Python files; write: isthmus run {file}")
    path = Path(split_server_path(file)[0])
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return path.resolve().parent


async def supervise_dev(
    file: str, watched: Path, options: DevOptions, address: tuple[str, int] | None
) -> None:
    """Run a server process for a file, and a new one at every change, until told to stop.

    Args:
        file: ``FILE.py`` or ``FILE.py:OBJECT``.
        watched: the folder whose changes count.
        options: as they were typed.
        address: where to listen; None for stdio.

    Raises:
        UsageError: a variable is none.
    """
    from isthmus.cli.reload import reload_listening, reload_stdio

    async with make_child(file, options, address) as (command, environ):
        if address is None:
            await reload_stdio(command, watched, environ)
        else:
            await reload_listening(command, watched, environ)


@contextlib.asynccontextmanager
async def make_child(
    file: str, options: DevOptions, address: tuple[str, int] | None
) -> AsyncIterator[tuple[list[str], dict[str, str]]]:
    """The command line and the environment of server processes, with a folder that they share.

    Raises:
        UsageError: a variable is none.
    """
    from tempfile import TemporaryDirectory

    from isthmus.cli.commands.developing.dev_server import DevOrders
    from isthmus.cli.targets import read_variables

    environ = {**os.environ, **read_variables(options.env)}
    host, port = address or (None, 0)
    with TemporaryDirectory(prefix="isthmus-dev-") as folder:
        orders = DevOrders(
            file=file, folder=folder, host=host, port=port, path=options.path,
            wire=options.wire, log_level=options.log_level,
        )  # fmt: skip
        # -P: as for the command isthmus, a file of the current folder stands for no library
        words = ("-P", "-m", "isthmus.cli.commands.developing.dev_server")
        yield [sys.executable, *words, msgspec.json.encode(orders).decode()], environ
