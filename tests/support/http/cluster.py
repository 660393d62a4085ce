"""Several nodes that serve one server over one store, in one event loop, and a client of all of them."""

import asyncio
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from isthmus import Context, Server
from isthmus.store import MemoryStore, StoreUnavailable
from support.http.asgi_driver import Exchange
from support.http.messages import BOTH, INITIALIZE, INITIALIZED, legacy_call_body

if TYPE_CHECKING:
    from isthmus.transports.http.app import HttpApp

LEGACY_REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
CLIENT_CAPABILITIES = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}


class FallibleStore(MemoryStore):
    """A store whose bus counts what is published, and that can be lost."""

    def __init__(self) -> None:
        super().__init__(lambda: asyncio.get_running_loop().time())
        self.is_lost = False
        self.channels: list[str] = []
        self._publish = self.bus.publish
        self.bus.publish = self._publish_or_fail  # type: ignore[method-assign]

    async def _publish_or_fail(self, channel: str, message: bytes) -> bool:
        if self.is_lost:
            raise StoreUnavailable("the store is lost")
        self.channels.append(channel)
        return await self._publish(channel, message)


class ClusterNode:
    """One node: a server as its own process would have it, and its app.

    Args:
        store: what the nodes share.
        options: options of the app.
    """

    def __init__(self, store: Any, options: dict[str, Any]) -> None:
        self.server = make_asking_server(store)
        self.cancelled: list[str] = []
        self.noted: list[str] = []

        @self.server.on_notification("acme/moved")
        def moved(params: dict[str, Any]) -> None:
            self.noted.append(params["to"])

        @self.server.tool
        async def wait(name: str) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled.append(name)
            return "never"

        self.app: HttpApp = self.server.asgi(**options)

    @property
    def id(self) -> str:
        """Its id among the nodes."""
        return self.app.node.id

    @property
    def book(self) -> Any:
        """The sessions that it holds."""
        return self.app._book

    async def kill(self, *, is_seen: bool = True) -> None:
        """End it without a word, as kill -9 does.

        Args:
            is_seen: its lease has ended, too.
        """
        node: Any = self.app.node
        node._renewing.cancel()
        await asyncio.wait((node._renewing,))
        if is_seen:
            await node.leases.release(node._lease)
        await node.mailbox.close()
        self.app._book.shared.leave()
        await self.server._changes.leave()


def make_asking_server(store: Any) -> Server:
    """A server whose tools ask, wait and speak."""
    server = Server("cluster", secret=b"s" * 32, store=store)

    @server.tool
    async def ask(ctx: Context) -> str:
        return str((await ctx.roots())[0].uri)

    @server.tool
    async def hello() -> str:
        return "hello"

    @server.tool
    async def log(ctx: Context) -> str:
        ctx.log.debug("fine")
        ctx.log.error("coarse")
        return "logged"

    server.add_resource(lambda: "", "a://b", name="r")
    server.add_prompt(lambda: "", name="p")
    return server


class Cluster:
    """Nodes over one store; use it with ``async with``.

    Args:
        count: so many nodes.
        store: what they share; a store in memory if not given, None for none.
        stores: one for each node instead, over one engine.
        **options: of the apps.
    """

    def __init__(
        self, count: int = 2, store: Any = True, stores: Sequence[Any] = (), **options: Any
    ) -> None:
        self.store = FallibleStore() if store is True else store
        self.nodes = [ClusterNode(own, options) for own in stores or [self.store] * count]

    async def __aenter__(self) -> Self:
        for node in self.nodes:
            await node.app.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for node in self.nodes:
            await node.app.close()

    async def open_client(self, revision: str, at: int = 0, seed: int = 0, **more: Any) -> Any:
        """A client with a session that is opened at one of the nodes."""
        client = ClusterClient(self, revision, seed, **more)
        await client.open(at)
        return client


class ClusterClient:
    """A client of one session, which sends each message to any node.

    Args:
        cluster: the nodes.
        revision: the revision it asks for.
        seed: of the order in which it takes nodes.
        head: more headers.
    """

    def __init__(self, cluster: Cluster, revision: str, seed: int = 0, **head: str) -> None:
        self.cluster = cluster
        self.revision = revision
        self.session: str | None = None
        self._random = random.Random(seed)  # noqa: S311 - the same order each time
        self._head = {name.replace("_", "-"): value for name, value in head.items()}

    async def open(self, at: int = 0) -> None:
        """Open the session at one node, and say at another that it is open."""
        params = {
            **INITIALIZE["params"],  # type: ignore[dict-item]
            "protocolVersion": self.revision,
            "capabilities": CLIENT_CAPABILITIES,
        }
        answer = await self.begin({**INITIALIZE, "params": params}, at).done()
        assert 200 == answer.status, answer.body
        self.session = answer.header("mcp-session-id")
        assert 202 == await self.say(INITIALIZED)

    def begin(self, body: Any, at: int | None = None, method: str = "POST") -> Exchange:
        """Begin a request to one node, or to any."""
        node = self._random.choice(self.cluster.nodes) if at is None else self.cluster.nodes[at]
        head = {"host": "localhost:8000", "content-type": "application/json", "accept": BOTH}
        if self.session is not None:
            head |= {"mcp-session-id": self.session, "mcp-protocol-version": self.revision}
        return Exchange(node.app, method, headers={**head, **self._head}, body=body)

    def listen(self, at: int) -> Exchange:
        """Open the session's standing stream at one node."""
        node = self.cluster.nodes[at]
        head = {
            "host": "localhost:8000",
            "accept": "text/event-stream",
            "mcp-session-id": str(self.session),
            "mcp-protocol-version": self.revision,
        }
        return Exchange(node.app, "GET", headers={**head, **self._head})

    def call(self, tool: str, id: Any, at: int | None = None, **arguments: Any) -> Exchange:
        """Begin to call a tool."""
        body = legacy_call_body(tool, id)
        body["params"]["arguments"] = arguments
        return self.begin(body, at)

    async def say(self, body: Any, at: int | None = None) -> int:
        """Post a response or a notification; the status that came back."""
        return (await self.begin(body, at).done()).status

    async def answer(self, question: Any, uri: str, at: int | None = None) -> int:
        """Answer a question for roots; the status that came back."""
        result = {"roots": [{"uri": uri}]}
        return await self.say({"jsonrpc": "2.0", "id": question["id"], "result": result}, at)
