"""``Client`` of ``mcp`` 2.x, on isthmus' client."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Self

from isthmus.compat import types
from isthmus.compat.mcp.client.memory import InMemoryTransport
from isthmus.compat.mcp.client.session import ClientSession
from isthmus.compat.mcp.client.stdio import StdioServerParameters
from isthmus.compat.mcp.client.streams import make_streams
from isthmus.revisions import LEGACY, REVISIONS

MODES = ("legacy", "auto", *(one.name for one in REVISIONS if one not in LEGACY))


class Client:
    """Client of ``mcp`` 2: ``async with Client(server) as client``.

    Args:
        server: a server in this process, a URL, ``StdioServerParameters``, or a transport.
        mode: ``"auto"``, ``"legacy"`` for the handshake, or a revision since 2026-07-28.
        raise_exceptions: not heeded; what a handler raises is in the log.
        cache, prior_discover, input_required_max_rounds: not heeded.
        **callbacks: of :class:`ClientSession`.

    Raises:
        ValueError: there is no such mode.
    """

    def __init__(
        self,
        server: Any,
        *,
        mode: str = "auto",
        raise_exceptions: bool = False,
        cache: Any = None,
        prior_discover: Any = None,
        input_required_max_rounds: int | None = None,
        **callbacks: Any,
    ) -> None:
        del raise_exceptions, cache, prior_discover, input_required_max_rounds
        if mode not in MODES:
            raise ValueError(f"mode must be one of {', '.join(MODES)}; got {mode!r}")
        self.server = server
        self.mode = mode
        self._callbacks = callbacks
        self._session: ClientSession | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if self._session is not None:
            raise RuntimeError("Client is already entered; cannot reenter")
        async with AsyncExitStack() as stack:
            read, write = await stack.enter_async_context(find_transport(self.server))
            session = ClientSession(read, write, **self._callbacks)
            await stack.enter_async_context(session)
            choice = {"era": self.mode} if self.mode in {"legacy", "auto"} else {}
            await session.open(**(choice or {"revision": self.mode}))
            self._session, self._stack = session, stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._session = None
        await self._stack.aclose()

    @property
    def session(self) -> ClientSession:
        """The session.

        Raises:
            RuntimeError: it is not connected.
        """
        if self._session is None:
            raise RuntimeError("Client must be used within an async context manager")
        return self._session

    def __getattr__(self, name: str) -> Any:
        """A request or a fact of the session."""
        if name in FORWARDED:
            return getattr(self.session, name)
        raise AttributeError(f"Client has no attribute {name!r}: see docs/guide/compat.md")

    async def list_tools(self, **given: Any) -> Any:
        """One page of the tools."""
        return await self.session.list_tools(params=make_page_params(**given))

    async def list_resources(self, **given: Any) -> Any:
        """One page of the resources."""
        return await self.session.list_resources(params=make_page_params(**given))

    async def list_resource_templates(self, **given: Any) -> Any:
        """One page of the templates."""
        return await self.session.list_resource_templates(params=make_page_params(**given))

    async def list_prompts(self, **given: Any) -> Any:
        """One page of the prompts."""
        return await self.session.list_prompts(params=make_page_params(**given))


# What a client has of its session as it is.
FORWARDED = frozenset({
    *("protocol_version", "server_info", "server_capabilities", "instructions"),
    *("call_tool", "complete", "get_prompt", "read_resource", "send_ping"),
    *("send_progress_notification", "send_roots_list_changed", "set_logging_level"),
    *("subscribe_resource", "unsubscribe_resource"),
})  # fmt: skip


def make_page_params(
    *, cursor: str | None = None, meta: Mapping[str, Any] | None = None, cache_mode: Any = None
) -> Any:
    """The params of a request for a page; None for the first one."""
    del cache_mode
    if cursor is None and meta is None:
        return None
    return types.PaginatedRequestParams(cursor=cursor, meta=meta)


def find_transport(server: Any) -> Any:
    """The way to what ``Client(…)`` was pointed at: a context manager that gives two streams."""
    if isinstance(server, str):
        return DirectTransport(server)
    if isinstance(server, StdioServerParameters):
        from isthmus.compat.mcp.client.stdio import stdio_client

        return stdio_client(server)
    if hasattr(server, "make_isthmus_server") or hasattr(server, "router"):
        return InMemoryTransport(server)
    return server


class DirectTransport:
    """Way to a URL."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def __aenter__(self) -> tuple[Any, Any]:
        return make_streams(self._url)

    async def __aexit__(self, *_: object) -> None:
        """Nothing is open here."""
