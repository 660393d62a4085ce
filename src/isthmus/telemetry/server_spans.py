"""SERVER spans: one for each request and notification that a router serves."""

import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.telemetry.conventions import (
    CALLERS_FAULT_CODES,
    CANCELLED,
    ERROR_TYPE,
    METHOD_NAME,
    NAMED_METHODS,
    NETWORKS,
    OTHER,
    PROTOCOL_VERSION,
    REQUEST_ID,
    RESOURCE_URI,
    SESSION_ID,
    STATUS_CODE,
    TOOL_ERROR,
    URI_METHODS,
)
from isthmus.telemetry.recorder import Recorder, is_tool_error, read_params
from isthmus.wire.jsonrpc import ErrorBody

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span

NO_NETWORK: dict[str, str] = {}
MAX_ID_CHARS = 256
FINISHED_METHODS = frozenset({"tools/call", "initialize"})


class ServerSpans:
    """Traces what a router serves; the router's own methods are put in the place of these again.

    Args:
        router: the router.
        recorder: the means.
    """

    def __init__(self, router: Router, recorder: Recorder) -> None:
        self._router = router
        self._recorder = recorder
        self._empty = recorder.context.Context()
        self._kind = recorder.trace.SpanKind.SERVER
        self._is_over = False
        self._before = {name: vars(router).get(name) for name in ("serve", "note")}
        top = getattr(self._before["serve"], "__self__", None)
        if isinstance(top, ServerSpans):  # which is replaced
            self._before = top._before  # noqa: SLF001 - of this class
            serve, note = top._serve, top._note  # noqa: SLF001
        else:  # nobody, or a watch of the traffic, which goes on
            serve, note = router.serve, router.note
        self._serve: Callable[[Inbound], Awaitable[bytes | ErrorBody]] = serve
        self._note: Callable[[str, Raw | None, Inbound], None] = note
        router.serve = self.serve  # type: ignore[method-assign]  # until `remove`
        router.note = self.note  # type: ignore[method-assign]

    def remove(self) -> None:
        """Trace no longer; what others put in this place since stays."""
        self._is_over = True
        for name, before in self._before.items():
            if getattr(vars(self._router).get(name), "__self__", None) is self:
                del vars(self._router)[name]
                if before is not None:
                    vars(self._router)[name] = before

    async def serve(self, inbound: Inbound) -> bytes | ErrorBody:
        """Serve a request in a span."""
        recorder = self._recorder
        if recorder.is_idle or self._is_over:
            return await self._serve(inbound)
        began = time.perf_counter()
        span, attributes, around = self._start(inbound, inbound.params)
        token = recorder.attach(around)
        try:
            outcome = await self._serve(inbound)
        except BaseException:
            span.set_attribute(CANCELLED, True)  # nothing else comes out of a router
            raise
        else:
            if isinstance(outcome, ErrorBody):
                attributes = self._finish_error(span, attributes, inbound.method, outcome)
            elif inbound.method in FINISHED_METHODS:
                attributes = self._finish(span, attributes, inbound, outcome)
            return outcome
        finally:
            recorder.detach(token)
            span.end()
            recorder.server_operations.record(time.perf_counter() - began, attributes, around)

    def note(self, method: str, params: Raw | None, inbound: Inbound) -> None:
        """Act on a notification in a span."""
        recorder = self._recorder
        if recorder.is_idle or self._is_over or method not in self._router.notices:
            self._note(method, params, inbound)  # nothing comes of it, whatever its name
            return
        began = time.perf_counter()
        span, attributes, around = self._start(inbound, params)
        token = recorder.attach(around)
        try:
            self._note(method, params, inbound)
        finally:
            recorder.detach(token)
            span.end()
            recorder.server_operations.record(time.perf_counter() - began, attributes, around)

    def _start(
        self, inbound: Inbound, params: Raw | None
    ) -> "tuple[Span, dict[str, Any], Context]":
        recorder, method, origin = self._recorder, inbound.method, inbound.origin
        read = read_params(params)
        where = NETWORKS.get(origin.transport, NO_NETWORK)
        kind = recorder.describe(method, read.name, inbound.caller.revision.name, where)
        attributes = {**kind.attributes}
        if inbound.id != "":
            attributes[REQUEST_ID] = str(inbound.id)[:MAX_ID_CHARS]
        if origin.session is not None:
            attributes[SESSION_ID] = origin.session
        if method in URI_METHODS and isinstance(read.uri, str):
            attributes[RESOURCE_URI] = recorder.show_uri(read.uri)
        carrier = None if read.meta is UNSET else recorder.find_carrier(read.meta)
        parent, links = self._empty, None
        if origin.transport.startswith("http"):
            parent, links = self._find_parent(inbound, carrier)
        elif carrier:
            parent = recorder.propagate.extract(carrier, parent)
        span = recorder.tracer.start_span(kind.name, parent, self._kind, attributes, links)
        if recorder.record_arguments and span.is_recording():
            recorder.record_input(span, method, read.arguments)
        around = recorder.trace.set_span_in_context(span, parent)
        if carrier:
            around = recorder.keep_carried(around, carrier)
        return span, kind.attributes, around

    def _find_parent(
        self, inbound: Inbound, carrier: dict[str, str] | None
    ) -> "tuple[Context, list[Link] | None]":
        """The context that a request over HTTP belongs to: of ``_meta``, or else of HTTP, or none."""
        recorder = self._recorder
        trace, extract = recorder.trace, recorder.propagate.extract
        around, links = self._empty, None
        ambient = trace.get_current_span()
        if ambient.is_recording():
            around = recorder.context.get_current()
            links = [trace.Link(ambient.get_span_context())]
        elif not carrier and "traceparent" in inbound.origin.headers:
            around = extract(dict(inbound.origin.headers), around)
        if not carrier:
            return around, None
        parent = extract(carrier, around)
        found = trace.get_current_span(parent).get_span_context()
        if links and found == links[0].context:
            return parent, None  # what was carried is of no form: HTTP's span is the parent
        return parent, links

    def _finish(
        self, span: "Span", attributes: dict[str, Any], inbound: Inbound, outcome: bytes
    ) -> dict[str, Any]:
        """Tell how a request ended that has a result; the attributes for the histogram."""
        recorder = self._recorder
        if inbound.method == "initialize":
            self._time_session(inbound)
            return attributes
        if recorder.record_arguments and span.is_recording():
            recorder.record_output(span, outcome)
        if is_tool_error(outcome):
            recorder.set_error(span, TOOL_ERROR)
            return {**attributes, ERROR_TYPE: TOOL_ERROR}
        return attributes

    def _finish_error(
        self, span: "Span", attributes: dict[str, Any], method: str, error: ErrorBody
    ) -> dict[str, Any]:
        """Tell how a request ended that was refused; the attributes for the histogram."""
        code = str(error.code)
        span.set_attribute(STATUS_CODE, code)
        counted = {**attributes, STATUS_CODE: code}
        # Names that a stranger makes up are too many for the names of spans and for histograms.
        if error.code == -32601:
            span.update_name(OTHER)
            counted[METHOD_NAME] = OTHER
        elif method in NAMED_METHODS:
            if error.code == -32602:
                span.update_name(method)
            counted.pop(NAMED_METHODS[method], None)
        if error.code not in CALLERS_FAULT_CODES:
            counted[ERROR_TYPE] = code
            self._recorder.set_error(span, code, error.message)
        return counted

    def _time_session(self, inbound: Inbound) -> None:
        """Record how long a session lasts, when it ends."""
        began, sessions = time.perf_counter(), self._recorder.server_sessions
        link, network = inbound.link, NETWORKS.get(inbound.origin.transport, NO_NETWORK)

        def record() -> None:
            attributes: dict[str, Any] = dict(network)
            caller = getattr(link, "caller", None)
            if caller is not None:
                attributes[PROTOCOL_VERSION] = caller.revision.name
            sessions.record(time.perf_counter() - began, attributes)

        link.on_close(record)
