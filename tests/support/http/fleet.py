"""A fleet: some nodes of one server in this process, over one store, each driven by ASGI."""

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from isthmus import Context, Server
from isthmus.store.memory_store import MemoryStore
from isthmus.store.store import Store
from support.http.asgi_driver import Exchange, fetch
from support.http.messages import INITIALIZE, INITIALIZED, legacy_call_body, legacy_head
from support.store.cut_store import CutStore

__all__ = ["SECRET", "Fleet", "FleetClient", "FleetNode", "Steps"]

SECRET = b"s" * 32


class Steps:
    """A tool that does what a test tells it, one step after the other.

    Attributes:
        begun: it was called.
        done: what it has done.
    """

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.done: asyncio.Queue[Any] = asyncio.Queue()
        self._orders: asyncio.Queue[Any] = asyncio.Queue()

    async def serve(self, ctx: Context) -> str:
        """Report the numbers that come; let go of the client for ``"let go"``; end with None."""
        self.begun.set()
        while (order := await self._orders.get()) is not None:
            if order == "let go":
                await ctx.close_stream(retry=0)
            else:
                await ctx.progress(order)
            self.done.put_nowait(order)
        return "done"

    async def tell(self, *orders: Any) -> None:
        """Have it do things, and wait until it has."""
        for order in orders:
            self._orders.put_nowait(order)
            await self.done.get()

    def end(self) -> None:
        """Have it answer."""
        self._orders.put_nowait(None)


class FleetNode:
    """One node: its own way to the store, its server and its app.

    Attributes:
        steps: what its tool ``steps`` does.
        server: the node's server.
        app: the node's app.
        store: its way to the store, which can be cut.
    """

    def __init__(self, store: Store, options: dict[str, Any]) -> None:
        self.store = CutStore(store)
        self.steps = Steps()
        self.server = Server("fleet", version="1", secret=SECRET, store=self.store)
        self.server.tool(self.steps.serve, name="steps")
        self.server.tool(_hello, name="hello")
        self.server.resource("fleet://ship")(_hello)
        self.server.prompt(_hello, name="greet")
        self.app = self.server.asgi(**options)
        self.exchanges: list[Exchange] = []

    @property
    def id(self) -> str:
        """The node's id."""
        return self.app.node.id

    def begin(self, method: str = "POST", **options: Any) -> Exchange:
        """Begin a request at this node."""
        exchange = Exchange(self.app, method, **options)
        self.exchanges.append(exchange)
        return exchange

    async def kill(self) -> None:
        """End it without a word, as ``kill -9`` does: nothing it does is seen by anybody any more."""
        self.pause()
        for exchange in self.exchanges:
            exchange.leave()

    def pause(self) -> None:
        """Stop its heart: its lease ends, and no letter reaches it; what it still does goes out."""
        node: Any = self.app.node
        node._renewing.cancel()
        node.mailbox._unsubscribe()
        node.mailbox._unsubscribe = None

    async def end_lease(self) -> None:
        """As :meth:`pause`, with the lease ended now; for engines whose time passes by itself."""
        node: Any = self.app.node
        self.pause()
        await asyncio.wait((node._renewing,))
        await node.leases.release(node._lease)


class Fleet:
    """Some nodes over one store.

    Args:
        count: how many, over one store in memory, on the loop's clock.
        stores: that of each node, where they are not this one; each over the same engine.
        **options: of each app.
    """

    def __init__(
        self, count: int = 2, *, stores: Sequence[Store] | None = None, **options: Any
    ) -> None:
        self._stores = stores
        self._count = count
        self._options = options
        self.nodes: list[FleetNode] = []

    async def __aenter__(self) -> Self:
        stores = self._stores
        if stores is None:
            stores = [MemoryStore(asyncio.get_running_loop().time)] * self._count
        self.nodes = [FleetNode(store, self._options) for store in stores]
        for node in self.nodes:
            await node.app.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            for exchange in node.exchanges:
                exchange.leave()
            await node.app.close(drain=0.0)


class FleetClient:
    """A client of a fleet, which sends each request to the node that a test names.

    Attributes:
        session: its session's id.
        revision: the revision it speaks.
    """

    def __init__(self, session: str, revision: str) -> None:
        self.session = session
        self.revision = revision

    @classmethod
    async def connect(cls, node: FleetNode, revision: str = "2025-11-25") -> Self:
        """Open a session at a node."""
        params = {**INITIALIZE["params"], "protocolVersion": revision}  # type: ignore[dict-item]
        answer = await fetch(node.app, headers=legacy_head(), body={**INITIALIZE, "params": params})
        session = answer.header("mcp-session-id")
        assert session is not None, answer.body
        client = cls(session, revision)
        await fetch(node.app, headers=client.head(), body=INITIALIZED)
        return client

    def head(self, **more: str) -> Any:
        """The headers of its requests."""
        return {**legacy_head(self.session, **more), "mcp-protocol-version": self.revision}

    def call(self, node: FleetNode, tool: str = "steps", id: Any = 1) -> Exchange:
        """Begin a call of a tool at a node."""
        body = legacy_call_body(tool, id, progressToken="t")
        return node.begin(headers=self.head(), body=body)

    def get(self, node: FleetNode, last_id: str | None = None) -> Exchange:
        """Listen at a node, from the beginning or after an event."""
        more = {"accept": "text/event-stream"}
        if last_id is not None:
            more["last_event_id"] = last_id
        return node.begin("GET", headers=self.head(**more))


async def _hello() -> str:
    """A tool that answers at once."""
    return "hello"
