"""Recorder: the tracer, the histograms and the propagator that spans of isthmus are made with."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.redaction.values import Redactor
from isthmus.telemetry.conventions import (
    CLIENT_OPERATION_DURATION,
    CLIENT_SESSION_DURATION,
    DESCRIPTIONS,
    DURATION_BUCKETS_S,
    ERROR_TYPE,
    EXECUTE_TOOL,
    METHOD_NAME,
    NAMED_METHODS,
    OPERATION_NAME,
    PROMPT_VARIABLE,
    PROTOCOL_VERSION,
    SERVER_OPERATION_DURATION,
    SERVER_SESSION_DURATION,
    TOOL_ARGUMENTS,
    TOOL_RESULT,
)
from isthmus.wire.jsonrpc import encode, shorten
from isthmus.wire.struct import wire_name

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

SCOPE_NAME = "isthmus"
CARRIED_KEY = "isthmus-carried"
NOTHING_CARRIED: Mapping[str, str] = {}
MAX_NAME_CHARS = 128
MAX_CARRIED_CHARS = 8192  # of one member of _meta that says where a request belongs
MAX_RECORDED_CHARS = 4096  # of arguments or a result
MAX_VARIABLES = 64  # of a prompt
MAX_DESCRIBED = 1024  # kinds of requests that are remembered
MAX_RECORDED_BYTES = 64 * 1024  # of what is looked at for it


class TracedParams(msgspec.Struct, rename=wire_name):
    """The members of params that a span tells of; the rest is not decoded."""

    name: Any = UNSET
    uri: Any = UNSET
    arguments: Raw | UnsetType = UNSET
    meta: Raw | UnsetType = UNSET


class Described(msgspec.Struct, frozen=True):
    """Name and attributes that spans of equal requests share.

    Attributes:
        name: what they are called.
        attributes: what they tell, few enough to stand on a histogram; not to be changed.
        where: the attributes of their connection, among these.
    """

    name: str
    attributes: dict[str, Any]
    where: Any


class ResultHead(msgspec.Struct, rename=wire_name):
    """The member of a result that says whether a tool failed."""

    is_error: Any = False


NO_PARAMS = TracedParams()

_decode_params = msgspec.json.Decoder(TracedParams).decode
_decode_head = msgspec.json.Decoder(ResultHead).decode


def read_params(params: Raw | bytes | None) -> TracedParams:
    """What a span tells of params; nothing of those that cannot be read."""
    if params is None:
        return NO_PARAMS
    try:
        return _decode_params(params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return NO_PARAMS


def is_tool_error(result: Raw | bytes) -> bool:
    """Whether a result of ``tools/call`` says that the tool failed."""
    data = bytes(result)
    if b'"isError"' not in data:
        return False
    try:
        return _decode_head(data).is_error is True
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


class Recorder:
    """The means by which requests are recorded.

    Args:
        tracers: where spans come from; the program's own by default.
        meters: where histograms come from; likewise.
        record_arguments: write arguments and results of tools, and arguments of prompts.
        redactor: takes secrets out of what is written.

    Attributes:
        tracer: makes spans.
        trace, context, propagate: the modules of OpenTelemetry.
        record_arguments: as given.
    """

    def __init__(
        self,
        tracers: "TracerProvider | None",
        meters: "MeterProvider | None",
        *,
        record_arguments: bool,
        redactor: Redactor | None,
    ) -> None:
        from opentelemetry import context, metrics, propagate, trace

        self.trace, self.context, self.propagate = trace, context, propagate
        self.attach, self.detach = context.attach, context.detach
        self.tracer = trace.get_tracer(SCOPE_NAME, tracer_provider=tracers)
        self.record_arguments = record_arguments
        self._redactor = redactor or Redactor()
        self._metrics = metrics
        # Both are proxies until the program sets its own, which may be after this.
        self._proxies = trace.get_tracer_provider(), metrics.get_meter_provider()
        are_proxies = all("Proxy" in type(one).__name__ for one in self._proxies)
        self._may_idle = tracers is None and meters is None and are_proxies
        meter = metrics.get_meter(SCOPE_NAME, meter_provider=meters)
        names = (
            *(SERVER_OPERATION_DURATION, SERVER_SESSION_DURATION),
            *(CLIENT_OPERATION_DURATION, CLIENT_SESSION_DURATION),
        )
        (
            self.server_operations,
            self.server_sessions,
            self.client_operations,
            self.client_sessions,
        ) = (
            meter.create_histogram(
                name,
                unit="s",
                description=DESCRIPTIONS[name],
                explicit_bucket_boundaries_advisory=DURATION_BUCKETS_S,
            )
            for name in names
        )
        self._described: dict[tuple[str, str | None, str, int], Described] = {}
        self._members = tuple(
            f'"{field}"'.encode() for field in propagate.get_global_textmap().fields
        )

    @property
    def is_idle(self) -> bool:
        """Whether nobody has said yet where spans and figures go: then nothing is done for them."""
        return (
            self._may_idle
            and self.trace.get_tracer_provider() is self._proxies[0]
            and self._metrics.get_meter_provider() is self._proxies[1]
        )

    def find_carrier(self, meta: Raw | UnsetType) -> dict[str, str] | None:
        """The members of ``_meta`` that a propagator may read; None where there are none for it."""
        if meta is UNSET:
            return None
        data = bytes(meta)
        for member in self._members:
            if member in data:
                break
        else:
            return None
        try:
            read = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return {
            key: value
            for key, value in read.items()
            if isinstance(value, str) and len(value) <= MAX_CARRIED_CHARS
        }

    def keep_carried(self, around: "Context", carrier: dict[str, str]) -> "Context":
        """A context that knows what came with the request that is served in it."""
        return self.context.set_value(CARRIED_KEY, carrier, around)

    def find_carried(self, around: "Context") -> Mapping[str, str]:
        """What came with the request that is served in a context."""
        carried: Any = self.context.get_value(CARRIED_KEY, around)
        return carried or NOTHING_CARRIED

    def describe(
        self, method: str, name: Any, revision: str, where: Mapping[str, Any]
    ) -> "Described":
        """What a span is called, and what it tells of any request like it.

        Args:
            method: the request's method.
            name: the tool or prompt that it is about, if it is about one.
            revision: what it is served in.
            where: attributes of the connection.
        """
        key = NAMED_METHODS.get(method)
        named = None if key is None or not isinstance(name, str) else name
        known = self._described.get((method, named, revision, id(where)))
        if known is not None and known.where is where:
            return known
        attributes: dict[str, Any] = {METHOD_NAME: shorten(method, MAX_NAME_CHARS)}
        called = attributes[METHOD_NAME]
        if named is not None and key is not None:
            attributes[key] = shorten(named, MAX_NAME_CHARS)
            called = f"{method} {attributes[key]}"
        if method == "tools/call":
            attributes[OPERATION_NAME] = EXECUTE_TOOL
        attributes[PROTOCOL_VERSION] = revision
        described = Described(called, {**attributes, **where}, where)
        if len(self._described) >= MAX_DESCRIBED:
            self._described.clear()  # a stranger makes up names
        self._described[method, named, revision, id(where)] = described
        return described

    def show_uri(self, uri: str) -> str:
        """The URI of a resource, without what is secret in it."""
        return self._redactor.text(uri[:MAX_RECORDED_CHARS])

    def record_input(self, span: "Span", method: str, arguments: Raw | UnsetType) -> None:
        """Write the arguments of a call, redacted and cut; only where that was asked for."""
        if arguments is UNSET or len(memoryview(arguments)) > MAX_RECORDED_BYTES:
            return
        if method == "tools/call":
            span.set_attribute(TOOL_ARGUMENTS, self._show(arguments))
        elif method == "prompts/get":
            try:
                shown = self._redactor.redact(msgspec.json.decode(arguments, type=dict[str, Any]))
            except (msgspec.DecodeError, RecursionError, UnicodeError):
                return
            for key, value in list(shown.items())[:MAX_VARIABLES]:
                name = PROMPT_VARIABLE + shorten(key, MAX_NAME_CHARS)
                span.set_attribute(name, str(value)[:MAX_RECORDED_CHARS])

    def record_output(self, span: "Span", result: Raw | bytes) -> None:
        """Write the result of a tool, redacted and cut."""
        if len(memoryview(result)) <= MAX_RECORDED_BYTES:
            span.set_attribute(TOOL_RESULT, self._show(result))

    def _show(self, data: Raw | bytes) -> str:
        try:
            shown = encode(self._redactor.redact(msgspec.json.decode(data))).decode()
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            return "[not JSON]"
        return shown[:MAX_RECORDED_CHARS]

    def set_error(self, span: "Span", kind: str, text: str | None = None) -> None:
        """Mark a span as failed, with the message that the other side is told."""
        trace = self.trace
        described = None if text is None else self._redactor.text(text[:MAX_RECORDED_CHARS])
        span.set_status(trace.Status(trace.StatusCode.ERROR, described))
        span.set_attribute(ERROR_TYPE, kind)
