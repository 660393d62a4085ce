"""Trace context of a request, as W3C Trace Context and OpenTelemetry have it.

Three members of ``_meta`` are set aside for it, the only ones without a prefix besides
``progressToken``. They come from the other side, so whatever is not of the standards' form is as
good as not there: a trace then begins anew.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from isthmus.wire.meta import read_meta

_PARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_LATER = r"(?!00)[0-9a-f]{2}-.{52}-[!-~]*"
_PRINTABLE = r"[\t -~]*"
MAX_STATE_CHARS, MAX_BAGGAGE_CHARS = 512, 8192


class TraceContext(msgspec.Struct, frozen=True):
    """The trace of a request.

    Attributes:
        traceparent: the trace, and the span in it that the request came from.
        tracestate: what tracing systems add, or None.
        baggage: properties that travel along, or None.
    """

    traceparent: str
    tracestate: str | None = None
    baggage: str | None = None

    @property
    def trace_id(self) -> str:
        """The trace's own id, 32 hexadecimal digits."""
        return self.traceparent[3:35]

    @property
    def span_id(self) -> str:
        """The id of the span the request came from, 16 hexadecimal digits."""
        return self.traceparent[36:52]

    @property
    def sampled(self) -> bool:
        """Whether who asks records it."""
        return bool(int(self.traceparent[53:55], 16) & 1)

    def members(self) -> dict[str, str]:
        """The same as members of ``_meta``, or as HTTP headers of requests to others."""
        members = {
            "traceparent": self.traceparent,
            "tracestate": self.tracestate,
            "baggage": self.baggage,
        }
        return {name: value for name, value in members.items() if value is not None}


def read_trace(params: Raw | None) -> TraceContext | None:
    """The trace that the parameters of a request say it belongs to, or None."""
    return parse_trace(read_meta(params))


def parse_trace(meta: Mapping[str, Any]) -> TraceContext | None:
    """The trace in a request's ``_meta``, or None where there is none, or none of the form."""
    # spec 2026-07-28 basic#_meta: values MUST follow W3C Trace Context and W3C Baggage
    parent = meta.get("traceparent")
    if not isinstance(parent, str) or not _is_parent(parent):
        return None
    return TraceContext(
        parent,
        _take_printable(meta.get("tracestate"), MAX_STATE_CHARS),
        _take_printable(meta.get("baggage"), MAX_BAGGAGE_CHARS),
    )


def _is_parent(text: str) -> bool:
    if re.fullmatch(_PARENT, text):
        return True
    return bool(
        re.fullmatch(_LATER, text) and re.fullmatch(_PARENT, text[:55])
    )  # of a later version


def _take_printable(value: Any, longest: int) -> str | None:
    fits = isinstance(value, str) and 0 < len(value) <= longest and re.fullmatch(_PRINTABLE, value)
    return value if fits else None
