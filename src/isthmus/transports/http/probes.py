"""Health and readiness probes, beside which a server may have pages of its own: what balancers and process managers ask before they send clients here.

``/health`` says that the process lives. ``/ready`` says whether it should get new clients: not while
it starts, not while it drains, and not while its store cannot be reached. Neither says why, so they are
open to everybody: no authorization, and any ``Host``, since balancers ask by the address of a node. A
page elsewhere that gets them read by a trick with names (DNS rebinding) learns that a server is there.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from isthmus.core.http.rules import Refusal
from isthmus.errors import UsageError
from isthmus.transports.http.reply import Header
from isthmus.transports.http.request import Exchange
from isthmus.wire.struct import UNSET

if TYPE_CHECKING:
    from isthmus.store.store import Store

Page: TypeAlias = Callable[[Exchange], Awaitable[Any]]  # answers a request to a path of its own

START_TIMEOUT_S = 0.5  # that a probe waits for a server that starts

STORE_TIMEOUT_S = 1.0

STORE_CHECK_LIFE_S = 1.0  # that an answer to "is the store there" is good for

OK_BODY = b'{"status":"ok"}'
UNAVAILABLE_BODY = b'{"status":"unavailable"}'
NO_STORE: Header = (b"cache-control", b"no-store")  # no cache may answer in place of this process
RETRY_SOON: Header = (b"retry-after", b"1")
PROBED_BY_GET = Refusal(
    405, -32600, "This path is for probes: send GET", UNSET, (("allow", "GET, HEAD"),)
)

STORE_PROBE_KEY = "probe"  # read, and never written, to see that a store answers


class ProbedApp(Protocol):
    """An app, as far as probes ask about it."""

    @property
    def is_draining(self) -> bool:
        """Whether it was told to stop."""
        ...

    @property
    def has_started(self) -> bool:
        """Whether it serves requests on this event loop."""
        ...

    async def ensure_started(self) -> bool:
        """Start it where nobody did; False where it cannot start."""
        ...


class HealthProbes:
    """The two probes of one app.

    Args:
        app: what they are about.
        health: the path that says that the process lives, or None for no such path.
        ready: the path that says whether it takes new clients, or None.
        store: what the app shares with other processes, or None.

    Attributes:
        paths: both paths, and those of pages of the server's own.
    """

    def __init__(
        self, app: ProbedApp, health: str | None, ready: str | None, store: "Store | None"
    ) -> None:
        self._app = app
        self._health = None if health is None else "/" + health.strip("/")
        self._ready = None if ready is None else "/" + ready.strip("/")
        self._store = store
        self._checked: tuple[float, bool] | None = None
        self._starting: asyncio.Task[bool] | None = None
        self.paths = frozenset(path for path in (self._health, self._ready) if path is not None)
        self._pages: dict[str, Page] = {}

    def add_page(self, path: str, page: Page, taken: Collection[str]) -> None:
        """Have a page of the server's own at a path, also in place of a probe.

        Raises:
            UsageError: something else is there.
        """
        below = tuple(f"{one}/" for one in (*taken, "/.well-known"))
        if path in taken or path.startswith(below):
            raise UsageError(
                f"route {path!r}: this path is the endpoint's, or one of authorization"
            )
        self._pages[path] = page
        self.paths |= {path}

    def begin(self, exchange: Exchange) -> Awaitable[Any]:
        """Begin to answer a request to one of the paths."""
        page = self._pages.get(exchange.request.path)
        if page is not None:
            return page(exchange)
        if exchange.request.method not in {"GET", "HEAD"}:
            return exchange.refuse(PROBED_BY_GET)
        if exchange.request.path == self._health:
            return exchange.send_whole(200, OK_BODY, (NO_STORE,))
        return self._answer_ready(exchange)

    async def _answer_ready(self, exchange: Exchange) -> None:
        if await self._is_ready():
            await exchange.send_whole(200, OK_BODY, (NO_STORE,))
        else:
            await exchange.send_whole(503, UNAVAILABLE_BODY, (NO_STORE, RETRY_SOON))

    async def _is_ready(self) -> bool:
        if self._app.is_draining:
            return False
        if not self._app.has_started and not await self._start():
            return False
        return self._store is None or await self._reach_store(self._store)

    async def _start(self) -> bool:
        """Start what the first request would start: else nobody would ever send that one."""
        loop = asyncio.get_running_loop()
        starting = self._starting
        if starting is None or starting.done() or starting.get_loop() is not loop:
            starting = self._starting = loop.create_task(self._app.ensure_started())
        await asyncio.wait((starting,), timeout=START_TIMEOUT_S)
        return starting.done() and starting.result()

    async def _reach_store(self, store: "Store") -> bool:
        now = asyncio.get_running_loop().time()
        if self._checked is not None and 0 <= now - self._checked[0] < STORE_CHECK_LIFE_S:
            return self._checked[1]
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                await store.kv.get(STORE_PROBE_KEY)
                found = True
        except Exception:  # noqa: BLE001 - a store of the author's own may raise anything
            found = False
        self._checked = now, found
        return found
