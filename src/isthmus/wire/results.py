"""Results: the members they have in common, and results that ask for input first."""

from typing import Literal, TypeAlias

from msgspec import Raw

from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire

CacheScope: TypeAlias = Literal["public", "private"]
"""Who may share a cached result: everybody, or one user only."""


class Result(Wire, frozen=True, kw_only=True):
    """The members that every result of a server may carry.

    Since 2026-07-28 ``result_type`` is required on the wire; the router writes it where a
    handler leaves it out. A client treats its absence as ``"complete"``.

    Attributes:
        result_type: ``"complete"``, ``"input_required"`` or another kind of result (since
            2026-07-28).
        meta: further members, in ``_meta``.
    """

    result_type: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class EmptyResult(Result, frozen=True, kw_only=True):
    """Done, with nothing to report."""


class CacheableResult(Result, frozen=True, kw_only=True):
    """A result that says how long and by whom it may be cached (2026-07-28 server/utilities/caching).

    Attributes:
        ttl_ms: milliseconds it stays fresh; 0 for not at all.
        cache_scope: who may share it.
    """

    ttl_ms: int | UnsetType = UNSET
    cache_scope: CacheScope | UnsetType = UNSET


# Questions inside a result: since 2026-07-28 a server asks so (basic/patterns/mrtr)

InputResponses: TypeAlias = dict[str, Raw]
"""Answers by the key of their question; each is the raw result of the method asked."""


class InputRequest(Wire, frozen=True, kw_only=True):
    """A question: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.

    Attributes:
        method: the method.
        params: its params, as raw JSON.
    """

    method: str
    params: Raw | UnsetType = UNSET


class InputRequiredResult(Wire, frozen=True, kw_only=True):
    """The request cannot be completed yet: answer these and send it again.

    Attributes:
        result_type: always ``"input_required"``.
        input_requests: questions by keys of the server's choice.
        request_state: the server's state; the client hands it back unread.
        meta: anything else.
    """

    result_type: str = "input_required"
    input_requests: dict[str, InputRequest] | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET
