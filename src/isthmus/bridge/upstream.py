"""Upstream connection of a proxy: a client whose calls and answers are those of somebody else.

It declares what the calling client declared, adds the facts of that client to every call, and makes
each call for one round only: questions go back to whom they concern.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.bridge.forwarded import ForwardedCall
from isthmus.client.client import Client
from isthmus.client.model.questions import BadQuestion
from isthmus.client.targets import ClientTarget
from isthmus.core.answers import Cancelled
from isthmus.core.caller import Caller
from isthmus.core.negotiation import make_facts_meta
from isthmus.errors import ConnectionLost, HeaderMismatch, Misbehaved, SessionEnded
from isthmus.revisions import METHODS, Revision
from isthmus.runtime.peer import Peer
from isthmus.server.asking.logging import DEFAULT_LEVEL
from isthmus.wire import (
    CallToolParams,
    ClientCapabilities,
    CreateTaskResult,
    LogMessageParams,
    RootsCapability,
    TaskCreated,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.meta import PROTOCOL_VERSION
from isthmus.wire.struct import Meta, Wire

HOPS_KEY = "io.github.isthmus/proxy-hops"
"""Member of ``_meta`` that counts the proxies that a request came through."""

RESERVED_PREFIX = PROTOCOL_VERSION.partition("/")[0]  # of what the specification puts into _meta

MAX_KEPT_FACTS = 256  # different capabilities of callers whose facts are kept encoded

_decode_meta = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_hops = msgspec.json.Decoder(int).decode

NO_CAPABILITIES = ClientCapabilities()

NOTHING_CAME: Mapping[str, Any] = {}


class UpstreamClient(Client):
    """A connection of a proxy to the server behind it.

    Args:
        target: the server.
        capabilities: what the callers that it serves can be asked; see :func:`askable_part`.
        options: further arguments of ``Client``.
        is_own: all its calls are of one session, so that whatever is asked concerns that session.

    Attributes:
        own_log_level: the level that was asked of a server of up to 2025-11-25.
    """

    def __init__(
        self,
        target: ClientTarget,
        capabilities: ClientCapabilities,
        options: Mapping[str, Any],
        *,
        is_own: bool = False,
    ) -> None:
        asked: dict[str, Any] = {}
        if capabilities.elicitation is not UNSET:
            asked["elicit"] = answer_nothing
        if capabilities.sampling is not UNSET:
            asked["sample"] = answer_nothing
        if capabilities.roots is not UNSET:
            asked["roots"] = ()
        super().__init__(
            target, capabilities=capabilities, on_log=self._on_log_message, **asked, **options
        )
        self._answering.redirect(self._forward)
        self._calls_in_flight: dict[ForwardedCall, None] = {}
        self._facts: dict[tuple[bytes, str | None], Meta] = {}
        self._is_own = is_own
        self.own_log_level: str | None = None
        self._has_ended = False
        self.on_lost(self._note_end)

    @property
    def is_modern(self) -> bool:
        """Whether every call states who calls, so that callers may share the connection."""
        return self._connection.meta is not UNSET

    @property
    def is_lost(self) -> bool:
        """Whether it has ended, and another is needed."""
        peer = self._connection.peer
        return self._has_ended or peer is None or (peer.lost is not None and not self._renews(peer))

    def _renews(self, peer: Peer) -> bool:
        """Whether a session that has ended is followed by another, without anybody's doing."""
        return self._connection.target.http and isinstance(peer.lost, SessionEnded)

    def _note_end(self, _error: ConnectionLost) -> None:
        self._has_ended = True

    @property
    def is_idle(self) -> bool:
        """Whether no call is under way."""
        return not self._calls_in_flight

    # What the server behind says and asks

    def _on_log_message(self, params: LogMessageParams) -> None:
        call = self._find_concerned()
        if call is not None:
            call.log(params)

    async def _forward(self, method: str, params: Any, _revision: Revision) -> Wire:
        call = self._find_concerned()
        if call is None:
            raise BadQuestion(
                -32603, f"Nobody can be asked {method}: it belongs to no one call of this proxy"
            )
        # A person may be asked, who takes as long as it takes.
        with self.held():
            return await call.put(method, params)

    def _find_concerned(self) -> ForwardedCall | None:
        """The call that something belongs to; None where it may be more than one caller's."""
        if len(self._calls_in_flight) == 1 or (self._is_own and self._calls_in_flight):
            return next(reversed(self._calls_in_flight))
        return None

    # Calls

    async def forward(
        self,
        call: ForwardedCall,
        method: str,
        params: Any,
        name: str,
        came: Mapping[str, Any] = NOTHING_CAME,
    ) -> Any:
        """Make one round of a call.

        Args:
            call: whose it is.
            method: the method.
            params: as the client gave them.
            name: the tool, prompt or URI.
            came: what goes to the server behind of what came back from a round before.

        Returns:
            The result, or an ``InputRequiredResult``.

        Raises:
            IsthmusError: as it went.
        """
        caller, modern = call.inbound.caller, self.is_modern
        meta = {**call.meta, **self._state_facts_of(caller)} if modern else call.meta
        params = structs.replace(params, meta=meta, **came)
        calls = self._calls_in_flight
        calls[call] = None
        try:
            if method != "tools/call":
                return await self._send(call, method, params, name)
            if not modern:
                await self._follow_log_level(caller)
                if self._tasks.asks_itself and await self._is_task(name):
                    ended = await self._tasks.call(params, self._bind_progress(call), None)
                    return ended.wire
            elif self._tools.mirrored and params.arguments is not UNSET:
                return await self._send_mirrored(call, params)
            return await self._send(call, method, params, name)
        finally:
            del calls[call]

    async def _send_mirrored(self, call: ForwardedCall, params: CallToolParams) -> Any:
        """Call a tool of a server over HTTP, whose arguments may travel in headers, too."""
        headers = await self._find_headers(params)
        try:
            return await self._send(call, "tools/call", params, params.name, headers)
        except HeaderMismatch:
            # spec 2026-07-28 basic/transports/streamable-http#client-behavior: SHOULD list the
            # tools again and retry with the headers they ask for
            await self.list_tools(fresh=True)
            again = await self._find_headers(params)
            if again == headers:
                raise
            return await self._send(call, "tools/call", params, params.name, again)

    async def _send(
        self,
        call: ForwardedCall,
        method: str,
        params: Any,
        name: str,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> Any:
        connection, told = self._connection, self._bind_progress(call)
        header_name = name or None
        raw: Raw | None = None
        if told is None:  # the shorter way, which most calls go
            settings = connection.settings
            with suppress(SessionEnded):
                raw = await connection.live().call(
                    method,
                    params,
                    Raw,
                    timeout=settings.timeout,
                    max_timeout=settings.max_timeout,
                    name=header_name,
                    headers=headers,
                )
        if raw is None:
            raw = await connection.send(
                method, params, Raw, on_progress=told, name=header_name, headers=headers
            )
        result = connection.read_result(METHODS[method], raw)
        if isinstance(result, TaskCreated | CreateTaskResult):
            raise Misbehaved(f"the server made a task of {method}, which nobody offered")
        return result

    def _bind_progress(self, call: ForwardedCall) -> Any:
        return None if call.inbound.progress_token is None else call.report

    async def _is_task(self, name: str) -> bool:
        """Whether a tool runs as a task only: it is awaited here."""
        if not self._tools.knows(name):
            await self.list_tools()
        return self._tools.task(name) == "required"

    async def _find_headers(self, params: CallToolParams) -> tuple[tuple[str, str], ...]:
        """The headers that repeat arguments, where the server behind is reached over HTTP."""
        if not self._tools.knows(params.name):
            await self.list_tools()
        return self._tools.headers(params.name, msgspec.json.decode(params.arguments or b"{}"))

    async def _follow_log_level(self, caller: Caller) -> None:
        """Ask a server of up to 2025-11-25 for the level that this session wants."""
        level = caller.log_level
        if level is None or level == self.own_log_level or not self._is_own:
            return
        self.own_log_level = level
        if self.capabilities.logging is not UNSET:
            await self.set_log_level(level)

    def _state_facts_of(self, caller: Caller) -> Meta:
        level = caller.log_level
        if level is None and caller.revision.allows("client", "logging/setLevel"):
            level = DEFAULT_LEVEL  # of a session that never said which level it wants
        key = (encode(caller.capabilities), level)
        known = self._facts.get(key)
        if known is None:
            if len(self._facts) >= MAX_KEPT_FACTS:
                self._facts.clear()
            connection = self._connection
            known = self._facts[key] = make_facts_meta(
                self.revision,
                connection.settings.info,
                askable_part(caller.capabilities),
                level,
            )
        return known


def split_meta(meta: Meta | Raw | UnsetType) -> tuple[dict[str, Any], int]:
    """The part of a caller's ``_meta`` that goes on to the server behind, and how many proxies it passed.

    Left out is what the specification defines: it is said anew of this connection.
    """
    if not meta:
        return {}, 0
    found: Mapping[str, Any] = _decode_meta(meta) if isinstance(meta, Raw) else meta
    hops = found.get(HOPS_KEY, 0)
    if isinstance(hops, Raw):
        try:
            hops = _decode_hops(hops)
        except msgspec.DecodeError:
            hops = 0
    kept = {
        key: value
        for key, value in found.items()
        if key not in {HOPS_KEY, "progressToken"} and not key.startswith(RESERVED_PREFIX)
    }
    return kept, hops if isinstance(hops, int) and hops > 0 else 0


def askable_part(capabilities: ClientCapabilities) -> ClientCapabilities:
    """The capabilities of a caller that a proxy passes on: the questions that go back to it.

    Tasks, extensions and changes of roots end at the proxy.
    """
    roots = capabilities.roots
    return ClientCapabilities(
        elicitation=capabilities.elicitation,
        sampling=capabilities.sampling,
        roots=UNSET if roots is UNSET else RootsCapability(),
    )


def is_askable(capabilities: ClientCapabilities) -> bool:
    """Whether a caller can be asked anything."""
    return not (
        capabilities.elicitation is UNSET
        and capabilities.sampling is UNSET
        and capabilities.roots is UNSET
    )


def asks_in_result(revision: Revision) -> bool:
    """Whether questions travel in results, so that a call ends with them."""
    return not revision.allows("server", "roots/list")


def answer_nothing(_params: Any) -> Cancelled:
    """Stands for a function that answers, and is never called: questions are redirected."""
    return Cancelled()
