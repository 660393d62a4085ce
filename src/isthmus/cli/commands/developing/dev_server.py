"""Server process of ``isthmus dev``: serves a file once, and prints its traffic; a change ends it.

Started by :mod:`isthmus.cli.commands.developing.dev` with its orders in JSON as the only argument.
"""

import asyncio
import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from isthmus.cli.commands.developing.surface_report import is_first, make_hints, report_surface
from isthmus.cli.commands.developing.traffic_lines import TrafficPrinter, choose_stream, log_to
from isthmus.cli.commands.run import find_server, load_module, split_server_path
from isthmus.cli.exits import finish
from isthmus.errors import ConnectFailed
from isthmus.telemetry.traffic import watch_traffic

if TYPE_CHECKING:
    from isthmus.server.server import Server


class DevOrders(msgspec.Struct, frozen=True, kw_only=True):
    """Orders for a server process of ``isthmus dev``.

    Attributes:
        file: ``FILE.py`` or ``FILE.py:OBJECT``.
        folder: where servers of this run leave word for the next one; of this user alone.
        host: the address to listen on; None for stdio.
        port: the port.
        path: of the endpoint.
        wire: print whole messages.
        log_level: of the log records that are printed.
    """

    file: str
    folder: str
    host: str | None = None
    port: int = 0
    path: str | None = None
    wire: bool = False
    log_level: str = "warning"


def serve_dev(orders: DevOrders) -> None:
    """Serve a file until told to stop, printing what happens.

    Raises:
        UsageError: there is no such file, it fails to load, or has not one server.
        ConnectFailed: the address cannot be listened on.
    """
    stream = choose_stream("stdio" if orders.host is None else "http")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(line_buffering=True)  # what the file prints stands among the traffic
    log_to(stream, orders.log_level)
    path, name = split_server_path(orders.file)
    # Over stdio, standard output belongs to the protocol: what the file prints goes elsewhere.
    with contextlib.redirect_stdout(stream):
        server = find_server(load_module(path), name)
    printer = TrafficPrinter(stream)
    watch_traffic(server, printer, wire=orders.wire)
    if orders.host is None:
        _serve_stdio(server, orders, printer)
    else:
        _serve_http(server, orders, printer)


async def introduce(
    server: "Server", orders: DevOrders, printer: TrafficPrinter, url: str | None
) -> None:
    """Print what a server offers or what changed, and in the beginning how to connect to it."""
    folder = Path(orders.folder)
    first = is_first(folder)
    lines = await report_surface(server, folder)
    if not first:
        printer.say(*lines)
        return
    where = "over standard input and output" if url is None else f"at {url}"
    printer.say(
        f"{server.info.name} {server.info.version} is served {where}, and restarts at every change (Ctrl-C to stop)",
        *make_hints(server, url, orders.file, folder),
        *lines,
    )


def _serve_stdio(server: "Server", orders: DevOrders, printer: TrafficPrinter) -> None:
    from isthmus.server.serve.run import serve_stdio
    from isthmus.transports.shutdown import run_to_end

    async def serve() -> None:
        beside = asyncio.ensure_future(introduce(server, orders, printer, None))
        try:
            await serve_stdio(server)
        finally:
            beside.cancel()

    run_to_end(serve())


def _serve_http(server: "Server", orders: DevOrders, printer: TrafficPrinter) -> None:
    from isthmus.cli.commands.run_secret import use_kept_secret
    from isthmus.transports.http.serve import run

    use_kept_secret(server, orders.file)  # so that questions that are open outlast a reload
    app = server.asgi() if orders.path is None else server.asgi(path=orders.path)
    tasks: set[asyncio.Task[None]] = set()

    def greet(url: str) -> None:
        work = introduce(server, orders, printer, url)
        tasks.add(asyncio.get_running_loop().create_task(work))

    try:
        run(app, orders.host or "", orders.port, on_bound=greet, announce=False)
    except SystemExit as error:  # uvicorn's way of saying so; its log has the reason
        raise ConnectFailed(f"cannot listen on {orders.host}:{orders.port}") from error


def main() -> None:
    """Serve as the orders on the command line say."""
    orders = msgspec.json.decode(sys.argv[1], type=DevOrders)
    del sys.argv[1:]  # the file is to see no orders
    finish(lambda: serve_dev(orders))


if __name__ == "__main__":
    main()
