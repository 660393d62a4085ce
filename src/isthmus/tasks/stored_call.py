"""Stored call: what it takes to start a task again, encrypted in the store.

Arguments and the caller belong to the client, and the store to the operator: a call is sealed under
a key that the nodes derive from their secret, and opens for its own task only. No token is in it, and
no header; nothing that the task says outside its record reaches its client after a restart.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from isthmus.core.caller import Caller
from isthmus.core.principal import Principal
from isthmus.core.sealing import NONCE_BYTES, decrypt, encrypt
from isthmus.errors import ConnectionLost
from isthmus.revisions import BY_NAME, METHODS
from isthmus.runtime.channel import Origin
from isthmus.runtime.inbound import Inbound
from isthmus.wire import CallToolParams, ClientCapabilities, Implementation, LogLevel
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Id

R = TypeVar("R")

STORED_CALL_KIND = b"c"


class StoredCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that may be made again.

    Attributes:
        id: of the request.
        params: the parameters of the call.
        revision: in which it is served.
        capabilities: of the client.
        info: the client's name and version, or None.
        log_level: the least severe log level that it wants, or None.
        principal: who authenticated, or None.
        user: who called over a transport without tokens, or None.
        transport: on which it came.
        session: in which it came, or None.
        progress_token: what progress is reported under, or None.
    """

    id: Id
    params: Raw
    revision: str
    capabilities: ClientCapabilities
    info: Implementation | None = None
    log_level: LogLevel | None = None
    principal: Principal | None = None
    user: str | None = None
    transport: str
    session: str | None = None
    progress_token: Id | None = None


_decode = msgspec.json.Decoder(StoredCall).decode


def seal_call(params: CallToolParams, inbound: Inbound, keys: Sequence[bytes], key: str) -> bytes:
    """Seal a call for the store.

    Args:
        params: of the call.
        inbound: the call.
        keys: the first one seals.
        key: of the task's record, which the call is bound to.
    """
    caller, principal = inbound.caller, inbound.principal
    owned = principal if isinstance(principal, Principal) else None
    call = StoredCall(
        id=inbound.id,
        params=Raw(encode(params)),
        revision=caller.revision.name,
        capabilities=caller.capabilities,
        info=caller.info,
        log_level=caller.log_level,
        principal=owned,
        user=None if principal is None or owned is not None else str(principal),
        transport=inbound.origin.transport,
        session=inbound.origin.session,
        progress_token=inbound.progress_token,
    )
    return encrypt(STORED_CALL_KIND, encode(call), keys, os.urandom(NONCE_BYTES), key.encode())


def open_call(sealed: bytes, keys: Sequence[bytes], key: str) -> tuple[CallToolParams, Inbound]:
    """The call in sealed bytes: its parameters, and a request without a way back.

    Raises:
        SealBroken: it was sealed with another secret, or for another task.
        msgspec.DecodeError: another version of isthmus wrote it.
    """
    call = _decode(decrypt(STORED_CALL_KIND, sealed, keys, key.encode()))
    principal = call.principal or call.user
    inbound = Inbound(
        call.id,
        "tools/call",
        call.params,
        Caller(BY_NAME[call.revision], call.capabilities, call.info, call.log_level, principal),
        LostLink(),
        Origin(call.transport, principal=principal, session=call.session),
        call.progress_token,
    )
    return METHODS["tools/call"].decode_params(call.params), inbound


class LostLink:
    """The way back to a client whose request another process answered."""

    async def note(self, method: str, params: Any = None, *, relates_to: Id | None = None) -> None:
        """Nothing: nobody is there to be told."""

    async def call(
        self,
        method: str,
        params: Any,  # noqa: ARG002 - the protocol of links
        result: type[R],  # noqa: ARG002
        *,
        relates_to: Id | None = None,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
    ) -> R:
        """Refuse to ask: a task that was started again asks through its record.

        Raises:
            ConnectionLost: always.
        """
        raise ConnectionLost(
            f"{method} cannot be asked: the process that had the connection has ended"
        )

    def agree(self, caller: Caller) -> None:
        """Nothing: no handshake comes this way."""

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """Nothing: it was closed before."""
        return lambda: None
