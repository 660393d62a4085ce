"""How a conversation opens: the handshake of sessions, and discovery."""

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from isthmus.core.caller import Caller
from isthmus.core.surrogates import without_surrogates
from isthmus.errors import Refuse
from isthmus.revisions import BY_NAME, LEGACY, MODERN, Revision, accept, project
from isthmus.runtime.inbound import Inbound
from isthmus.server.caching import Caching
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

__all__ = ["Opening"]


LARGEST = 256 * 1024
"""Bytes that a client may say of itself: they are kept for as long as its session lasts."""


class Opening:
    """Answers the first words of a client, whichever they are.

    Args:
        info: who the server says it is.
        instructions: how to use it, for a model to read, or None.
        revisions: the revisions it speaks, oldest first.
        capabilities: what it offers now, to the sender of a request.
        caching: how long a client may keep what it discovered, and who may share it.
    """

    def __init__(
        self,
        info: Implementation,
        instructions: str | None,
        revisions: tuple[Revision, ...],
        capabilities: Callable[[Inbound], ServerCapabilities],
        caching: Caching,
    ) -> None:
        self._info = info
        self._instructions: str | UnsetType = UNSET
        self.instruct(instructions)
        self._revisions = revisions
        self._sessions = [revision for revision in revisions if revision in LEGACY]
        self._capabilities = capabilities
        self._caching = caching

    def instruct(self, instructions: str | None) -> None:
        """Set how the server is to be used, for a model to read."""
        self._instructions = UNSET if instructions is None else without_surrogates(instructions)

    async def initialize(self, params: InitializeParams, inbound: Inbound) -> InitializeResult:
        """Handle ``initialize``: agree on a revision and keep the client's facts.

        Raises:
            Refuse: this server speaks no revision with a handshake; it says which it speaks. Or
                there is too much to keep.
        """
        if inbound.params is not None and (size := len(memoryview(inbound.params))) > LARGEST:
            raise Refuse(-32602, f"Invalid params: {size} bytes, and {LARGEST} are kept at most")
        revision = self._agreed(params.protocol_version)
        capabilities = accept(params.capabilities, revision)
        inbound.link.agree(
            Caller(revision, capabilities, params.client_info, None, inbound.origin.principal)
        )
        result = InitializeResult(
            protocol_version=revision.name,
            capabilities=self._capabilities(inbound),
            server_info=self._info,
            instructions=self._instructions,
        )
        return project(result, revision)

    def _agreed(self, wanted: str) -> Revision:
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
            capabilities=self._capabilities(inbound),
            instructions=self._instructions,
            ttl_ms=self._caching.ttl_ms("server/discover"),
            cache_scope=self._caching.scope("server/discover"),
        )
