"""Lifecycle of a conversation: ``initialize``, ``server/discover``, and pings of sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType

from isthmus.core.caller import Caller
from isthmus.core.encoding import replace_surrogates
from isthmus.errors import Refuse, UsageError
from isthmus.revisions import BY_NAME, LEGACY, MODERN, Revision, accept, project
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler
from isthmus.server.guard.caching import CacheHints
from isthmus.wire import (
    DiscoverParams,
    DiscoverResult,
    EmptyResult,
    Implementation,
    InitializeParams,
    InitializeResult,
    PingParams,
    ServerCapabilities,
)
from isthmus.wire.jsonrpc import shorten

MAX_INITIALIZE_BYTES = 256 * 1024  # of what a client says of itself, kept while its session lasts


class ServerHandshake:
    """Handlers of ``initialize``, ``server/discover`` and ``ping``.

    Args:
        info: who the server says it is.
        instructions: how to use it, for a model to read, or None.
        revisions: the revisions it speaks, oldest first.
        capabilities: what it offers now, to the sender of a request.
        caching: how long a client may keep what it discovered, and who may share it.

    Attributes:
        compose: composes the instructions for the sender of a request, where none are set.
        capabilities: what it says that it offers; a façade of another library says what that one would.
    """

    def __init__(
        self,
        info: Implementation,
        instructions: str | None,
        revisions: tuple[Revision, ...],
        capabilities: Callable[[Inbound], Awaitable[ServerCapabilities]],
        caching: CacheHints,
    ) -> None:
        self._info = info
        self._instructions: str | UnsetType = UNSET
        self.compose: Callable[[Inbound], Awaitable[str]] | None = None
        self.instruct(instructions)
        self._revisions = revisions
        self._sessions = [revision for revision in revisions if revision in LEGACY]
        self.capabilities = capabilities
        self._caching = caching

    @property
    def routes(self) -> Mapping[str, Handler]:
        """The handler of each method."""
        return {
            "initialize": self.initialize,
            "ping": self.ping,
            "server/discover": self.discover,
        }

    def instruct(self, instructions: str | None) -> None:
        """Set how the server is to be used, for a model to read."""
        self._instructions = UNSET if instructions is None else replace_surrogates(instructions)

    async def _find_instructions(self, inbound: Inbound) -> str | UnsetType:
        if self._instructions is not UNSET or self.compose is None:
            return self._instructions
        return replace_surrogates(await self.compose(inbound)) or UNSET

    async def initialize(self, params: InitializeParams, inbound: Inbound) -> InitializeResult:
        """Handle ``initialize``: agree on a revision and keep the client's facts.

        Raises:
            Refuse: this server speaks no revision with a handshake; it says which it speaks. Or
                there is too much to keep.
        """
        if (
            inbound.params is not None
            and (size := len(memoryview(inbound.params))) > MAX_INITIALIZE_BYTES
        ):
            raise Refuse(
                -32602, f"Invalid params: {size} bytes, and {MAX_INITIALIZE_BYTES} are kept at most"
            )
        revision = self._negotiate(params.protocol_version)
        capabilities = accept(params.capabilities, revision)
        inbound.link.agree(
            Caller(revision, capabilities, params.client_info, None, inbound.origin.principal)
        )
        result = InitializeResult(
            protocol_version=revision.name,
            capabilities=await self.capabilities(inbound),
            server_info=self._info,
            instructions=await self._find_instructions(inbound),
        )
        return project(result, revision)

    def _negotiate(self, wanted: str) -> Revision:
        revision = BY_NAME.get(wanted)
        if revision in self._sessions:
            return revision
        if self._sessions:
            # spec 2025-11-25 basic/lifecycle#version-negotiation: another version it supports,
            # which SHOULD be the latest
            return self._sessions[-1]
        # spec 2026-07-28 basic/versioning: the error SHOULD name the versions it supports
        supported = [revision.name for revision in self._revisions]
        raise Refuse(
            -32022,
            f"Unsupported protocol version {shorten(wanted)!r}: this server has no initialize, it speaks "
            f"{', '.join(supported)}",
            {"supported": supported, "requested": shorten(wanted)},
        )

    async def ping(self, _params: PingParams, _inbound: Inbound) -> EmptyResult:
        """Handle ``ping``."""
        return EmptyResult()

    async def discover(self, _params: DiscoverParams, inbound: Inbound) -> DiscoverResult:
        """Handle ``server/discover``."""
        return DiscoverResult(
            supported_versions=[r.name for r in self._revisions if r in MODERN],
            capabilities=await self.capabilities(inbound),
            instructions=await self._find_instructions(inbound),
            ttl_ms=self._caching.ttl_ms("server/discover"),
            cache_scope=self._caching.scope("server/discover"),
        )


class Pings:
    """Pings every session that opened, as often as the server's author wants it.

    spec 2025-11-25 basic/utilities/ping#implementation-considerations: the frequency SHOULD be
    configurable, and excessive pinging SHOULD be avoided. None is sent by default: a pipe that
    broke and an HTTP stream that nobody reads are noticed without.

    Args:
        every: seconds from one ping to the next, or None.
        misses: how many in a row without an answer mean that the client is gone.

    Raises:
        UsageError: a figure is none.
    """

    def __init__(self, every: float | None, misses: int) -> None:
        if (every is not None and not every > 0) or misses < 1:
            raise UsageError(
                f"ping_every={every!r} and ping_misses={misses!r}: seconds or None, and 1 or more"
            )
        self.every = every
        self.misses = misses
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[Any] = set()  # a client may say twice that it is initialized

    def watch(self, peer: Any) -> None:
        """A session has opened: ping its client for as long as it lasts."""
        if self.every is None or peer in self._watched:
            return
        from isthmus.runtime.pings import keep_pinging  # most servers do not ping

        self._watched.add(peer)
        peer.on_close(partial(self._watched.discard, peer))
        pinging = keep_pinging(
            peer, partial(_send_ping, peer), self.every, self.misses, whom="client"
        )
        task = asyncio.get_running_loop().create_task(pinging)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        peer.on_close(partial(_cancel_pinging, task))


def _cancel_pinging(task: "asyncio.Task[None]") -> None:
    """Stop pinging where a session ends; pings that end it themselves have still to close it."""
    if task is not asyncio.current_task():
        task.cancel()


async def _send_ping(peer: Any, timeout: float) -> None:
    await peer.call("ping", PingParams(), EmptyResult, timeout=timeout)
