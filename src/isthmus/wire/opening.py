"""How a conversation opens: the legacy handshake, and modern discovery."""

from isthmus.wire.base import UNSET, Meta, UnsetType, Wire
from isthmus.wire.capabilities import ClientCapabilities, ServerCapabilities
from isthmus.wire.identity import Implementation
from isthmus.wire.results import CacheableResult

__all__ = [
    "DiscoverParams",
    "DiscoverResult",
    "InitializeParams",
    "InitializeResult",
    "InitializedParams",
    "PingParams",
]


class InitializeParams(Wire, frozen=True, kw_only=True):
    """``initialize``: a client's first words (up to 2025-11-25)."""

    protocol_version: str
    capabilities: ClientCapabilities
    client_info: Implementation
    meta: Meta | UnsetType = UNSET


class InitializeResult(Wire, frozen=True, kw_only=True):
    """The server's half of the handshake (up to 2025-11-25).

    Attributes:
        protocol_version: the revision the session will use; a client that cannot speak it
            disconnects.
        capabilities: what the server offers.
        server_info: who it says it is.
        instructions: how to use it, for a model to read.
        meta: anything else.
    """

    protocol_version: str
    capabilities: ServerCapabilities
    server_info: Implementation
    instructions: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class InitializedParams(Wire, frozen=True, kw_only=True):
    """``notifications/initialized``: the handshake is over (up to 2025-11-25)."""

    meta: Meta | UnsetType = UNSET


class DiscoverParams(Wire, frozen=True, kw_only=True):
    """``server/discover``: what do you speak and offer (since 2026-07-28)?"""

    meta: Meta | UnsetType = UNSET


class DiscoverResult(CacheableResult, frozen=True, kw_only=True):
    """What a server speaks and offers (2026-07-28 server/discover)."""

    supported_versions: list[str]
    capabilities: ServerCapabilities
    instructions: str | UnsetType = UNSET


class PingParams(Wire, frozen=True, kw_only=True):
    """``ping``: are you there (up to 2025-11-25)?"""

    meta: Meta | UnsetType = UNSET
