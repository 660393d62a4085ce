"""CLIENT spans: one for each request and notification that a client sends, its rounds included."""

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw, Struct, structs

from isthmus.client.model.trace_context import add_trace_context
from isthmus.errors import CallTimedOut, Refused
from isthmus.runtime.peer import Peer
from isthmus.telemetry.conventions import (
    ERROR_TYPE,
    NETWORKS,
    PROTOCOL_VERSION,
    REQUEST_ID,
    RESOURCE_URI,
    SERVER_ADDRESS,
    SERVER_PORT,
    STATUS_CODE,
    TOOL_ERROR,
    URI_METHODS,
)
from isthmus.telemetry.recorder import Recorder, is_tool_error
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import UNSET

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span

    from isthmus.client.connection import Connection

CHANNEL_NETWORKS = {"process": NETWORKS["stdio"], "pipes": NETWORKS["stdio"]}


class ClientSpans:
    """Traces what a client sends.

    Args:
        connection: the client's.
        recorder: the means.
    """

    def __init__(self, connection: "Connection", recorder: Recorder) -> None:
        self._connection = connection
        self._recorder = recorder
        self._where = describe_server(connection.target.name)
        self._peers: list[TracedPeer] = []
        connection.traced, connection.on_peer = True, self.watch
        if connection.peer is not None:
            self.watch(connection.peer)

    def watch(self, peer: Peer) -> None:
        """Trace what is sent through a peer, from its first word on."""
        self._peers = [one for one in self._peers if one.peer.lost is None]
        network = CHANNEL_NETWORKS.get(type(peer.channel).__module__.rpartition(".")[2], {})
        self._peers.append(TracedPeer(peer, self._recorder, {**network, **self._where}))

    def remove(self) -> None:
        """Trace no longer, if nobody else does by now."""
        if getattr(self._connection.on_peer, "__self__", None) is self:
            self._connection.on_peer = forget_peer
            self._connection.traced = False
        for peer in self._peers:
            peer.remove()


def forget_peer(_peer: Peer) -> None:
    """Nobody traces."""


class TracedPeer:
    """Traces what one peer sends.

    Args:
        peer: the peer.
        recorder: the means.
        where: attributes that say where the server is.
    """

    def __init__(self, peer: Peer, recorder: Recorder, where: Mapping[str, Any]) -> None:
        self.peer = peer
        self._recorder = recorder
        self._where = where
        self._kind = recorder.trace.SpanKind.CLIENT
        self._began = time.perf_counter()
        peer.call = self.call  # type: ignore[method-assign]  # until `remove`
        peer.note = self.note  # type: ignore[method-assign]
        self._forget = peer.on_close(self._record_session)

    def remove(self) -> None:
        """Trace no longer, if nobody else does by now."""
        self._forget()
        for name in ("call", "note"):
            if getattr(self.peer.__dict__.get(name), "__self__", None) is self:
                del self.peer.__dict__[name]

    async def call(self, method: str, params: Any, result: Any, **options: Any) -> Any:
        """Send a request in a span, and wait for its answer."""
        recorder, peer = self._recorder, self.peer
        if recorder.is_idle:
            told = add_trace_context(params)
            return await Peer.call(peer, method, told, result, **options)
        began = time.perf_counter()
        own = {REQUEST_ID: str(peer.session.next_id())}
        span, attributes, around = self._start(method, params, options.get("name"), own)
        token = recorder.attach(around)
        try:
            told = self._inject(params, around)
            answer: Any = await Peer.call(peer, method, told, result, **options)
        except BaseException as error:
            attributes = self._finish_error(span, attributes, error)
            raise
        else:
            if method == "tools/call":
                attributes = self._finish_tool(span, attributes, answer)
            return answer
        finally:
            recorder.detach(token)
            span.end()
            recorder.client_operations.record(time.perf_counter() - began, attributes, around)

    async def note(self, method: str, params: Any = None, **options: Any) -> None:
        """Send a notification in a span."""
        if self._recorder.is_idle:
            await Peer.note(self.peer, method, params, **options)
            return
        began = time.perf_counter()
        span, attributes, around = self._start(method, params, None, {})
        try:
            await Peer.note(self.peer, method, self._inject(params, around), **options)
        except BaseException as error:
            attributes = self._finish_error(span, attributes, error)
            raise
        finally:
            span.end()
            seconds = time.perf_counter() - began
            self._recorder.client_operations.record(seconds, attributes, around)

    def _start(
        self, method: str, params: Any, name: str | None, own: dict[str, Any]
    ) -> "tuple[Span, dict[str, Any], Context]":
        recorder = self._recorder
        named = name or getattr(params, "name", None)
        kind = recorder.describe(method, named, self.peer.revision.name, self._where)
        attributes = {**kind.attributes, **own}
        if method in URI_METHODS and isinstance(uri := getattr(params, "uri", None), str):
            attributes[RESOURCE_URI] = recorder.show_uri(uri)
        around = recorder.context.get_current()
        span = recorder.tracer.start_span(kind.name, around, self._kind, attributes)
        if recorder.record_arguments and span.is_recording():
            given = getattr(params, "arguments", UNSET)
            raw = given if given is UNSET or isinstance(given, Raw) else Raw(encode(given))
            recorder.record_input(span, method, raw)
        return span, kind.attributes, recorder.trace.set_span_in_context(span, around)

    def _inject(self, params: Any, around: "Context") -> Any:
        """Params whose ``_meta`` says which span they belong to; what a caller put there stays."""
        if not (
            isinstance(params, dict) or (isinstance(params, Struct) and hasattr(params, "meta"))
        ):
            return params
        carrier: dict[str, str] = {}
        self._recorder.propagate.inject(carrier, around)
        if not carrier:
            return params
        given: Any = params.get("_meta") if isinstance(params, dict) else params.meta
        meta = merge_meta(carrier, given or {}, self._recorder.find_carried(around))
        if isinstance(params, dict):
            return {**params, "_meta": meta}
        return structs.replace(params, meta=meta)

    def _finish_tool(self, span: "Span", attributes: dict[str, Any], answer: Any) -> dict[str, Any]:
        """Tell how a call ended that has an answer; the attributes for the histogram."""
        recorder, raw = self._recorder, isinstance(answer, Raw)
        if recorder.record_arguments and span.is_recording():
            recorder.record_output(span, answer if raw else encode(answer))
        if is_tool_error(answer) if raw else getattr(answer, "is_error", False) is True:
            recorder.set_error(span, TOOL_ERROR)
            return {**attributes, ERROR_TYPE: TOOL_ERROR}
        return attributes

    def _finish_error(
        self, span: "Span", attributes: dict[str, Any], error: BaseException
    ) -> dict[str, Any]:
        """Tell how a request ended that has no answer; the attributes for the histogram."""
        kind = name_error(error)
        counted = {**attributes, ERROR_TYPE: kind}
        text = None
        if isinstance(error, Refused):
            counted[STATUS_CODE], text = kind, error.message
            span.set_attribute(STATUS_CODE, kind)
        self._recorder.set_error(span, kind, text)
        return counted

    def _record_session(self) -> None:
        attributes = {**self._where, PROTOCOL_VERSION: self.peer.revision.name}
        self._recorder.client_sessions.record(time.perf_counter() - self._began, attributes)


def merge_meta(
    carrier: Mapping[str, str], given: Raw | Mapping[str, Any], carried: Mapping[str, str]
) -> dict[str, Any]:
    """The members of ``_meta`` with those of a trace.

    Args:
        carrier: the trace as it is now.
        given: what the caller put there, which stays.
        carried: what came with the request that is being served: a proxy hands it on as it came,
            and the trace has gone on since.
    """
    own = msgspec.json.decode(given, type=dict[str, Raw]) if isinstance(given, Raw) else given
    kept = {
        key: value
        for key, value in own.items()
        if key not in carrier or not _is_same_text(value, carried.get(key))
    }
    return {**carrier, **kept}


def _is_same_text(value: Any, text: str | None) -> bool:
    if isinstance(value, Raw):
        value = msgspec.json.decode(value)
    return text is not None and bool(value == text)


def name_error(error: BaseException) -> str:
    """The class of an error, in a few words that many errors share."""
    if isinstance(error, Refused):
        return str(error.code)
    if isinstance(error, CallTimedOut):
        return "timeout"
    if isinstance(error, asyncio.CancelledError):
        return "cancelled"
    return f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")


def describe_server(name: str) -> dict[str, Any]:
    """The attributes of where a server is, by its URL; none for what has no URL."""
    scheme, colon, _ = name.partition("://")
    if not colon or scheme not in NETWORKS:
        return {}
    from urllib.parse import urlsplit  # for URLs alone

    found: dict[str, Any] = dict(NETWORKS[scheme])
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        return found
    if host and scheme != "unix":
        found[SERVER_ADDRESS] = host
        found[SERVER_PORT] = port or (443 if scheme in {"https", "wss"} else 80)
    return found
