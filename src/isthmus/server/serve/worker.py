"""Worker process: serves HTTP on sockets that it inherits from its supervisor.

A line (a socket pair) connects the two. The worker says on it when it serves, and is told on it to
drain; where the supervisor is gone, killed or not, the line ends, and the worker drains by itself.
"""

import asyncio
import os
import signal
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from isthmus.server.server import Server
    from isthmus.transports.http.app import HttpApp

ORDERS_VARIABLE = "ISTHMUS_WORKER"

DRAIN_ORDER, HURRY_ORDER = b"d", b"h"

ORPHAN_GRACE_S = 5.0  # beyond its drain, that a worker without a supervisor may take to end


class WorkerOrders(msgspec.Struct, frozen=True):
    """What a worker is told by its environment when it is started.

    Attributes:
        line: the descriptor of its end of the line.
        sockets: the descriptors of the sockets to accept on.
        store: the store to use where the file names none, or None.
    """

    line: int
    sockets: list[int]
    store: str | None = None


def encode_orders(orders: WorkerOrders) -> str:
    """Orders as a variable of an environment."""
    return msgspec.json.encode(orders).decode()


def take_orders(environ: "MutableMapping[str, str]") -> WorkerOrders | None:
    """Orders of a supervisor, or None; what this process starts shall not take them for its own.

    Raises:
        UsageError: they are not a supervisor's.
    """
    said = environ.pop(ORDERS_VARIABLE, None)
    if said is None:
        return None
    try:
        return msgspec.json.decode(said, type=WorkerOrders)
    except msgspec.DecodeError:
        raise UsageError(
            f"{ORDERS_VARIABLE} is set to something that isthmus did not write: unset it"
        ) from None


class WorkerLine:
    """A worker's end of the line to its supervisor.

    Args:
        descriptor: of the socket.
    """

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._app: HttpApp | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        threading.Thread(target=self._hear, name="isthmus-supervisor", daemon=True).start()

    def report_ready(self, app: "HttpApp", url: str) -> None:
        """Tell the supervisor that this worker serves; on its event loop."""
        self._app, self._loop = app, asyncio.get_running_loop()
        with suppress(OSError):  # it is gone: the thread sees that
            self._socket.sendall(url.encode() + b"\n")

    def _hear(self) -> None:
        """Hear what the supervisor says until it is gone; in a thread, whatever the loop does."""
        with suppress(OSError):
            while order := self._socket.recv(1):
                self._act(order)
        self._act(DRAIN_ORDER)
        drain = 0.0 if self._app is None else self._app.drain.seconds + self._app.drain.lead
        threading.Event().wait(drain + ORPHAN_GRACE_S)
        os._exit(1)  # the loop is stuck, and nobody else would end it

    def _act(self, order: bytes) -> None:
        loop = self._loop
        if loop is None:  # it does not serve yet, so that nobody waits for it
            os._exit(0)
        with suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(self._obey, order)

    def _obey(self, order: bytes) -> None:
        """Do as a signal would have it, which the server's own parts hear of in the same way."""
        if self._app is None:
            return
        if not self._app.is_draining:
            signal.raise_signal(signal.SIGTERM)
        if order == HURRY_ORDER:
            signal.raise_signal(signal.SIGTERM)


class Worker:
    """This process, where a supervisor started it.

    Args:
        orders: of the supervisor.
    """

    def __init__(self, orders: WorkerOrders) -> None:
        self._orders = orders
        self._line = WorkerLine(orders.line)

    def serve(self, server: "Server", options: dict[str, Any]) -> None:
        """Serve until it is told to stop.

        Args:
            server: what to serve.
            options: of the HTTP app.

        Raises:
            UsageError: the server needs a store, and cannot be given one any more.
            LifespanFailed: what has to be opened before the first request raised.
        """
        from isthmus.transports.http.serve import run

        if self._orders.store is not None and server.store is None:
            give_store(server, self._orders.store)
        app = server.asgi(**options)
        sockets = [socket.socket(fileno=descriptor) for descriptor in self._orders.sockets]
        for one in sockets:
            one.set_inheritable(False)

        def report(url: str) -> None:
            self._line.report_ready(app, url)

        run(app, sockets=sockets, on_bound=report, announce=False)


def join_supervisor(environ: "MutableMapping[str, str]") -> Worker | None:
    """This process as the worker that a supervisor started; None where none did.

    Raises:
        UsageError: the environment has orders that are not a supervisor's.
    """
    orders = take_orders(environ)
    return None if orders is None else Worker(orders)


def give_store(server: "Server", store: str) -> None:
    """Have a server share a store with the other processes that serve it.

    Raises:
        UsageError: it has begun to serve.
    """
    try:
        server.configure(store=store)
    except UsageError as error:
        raise UsageError(
            f"several processes need a store, and this server cannot be given one ({error}): write "
            f"Server(…, store={store!r}), or make the app (server.asgi()) in another file"
        ) from error
