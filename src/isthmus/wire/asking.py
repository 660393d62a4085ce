"""Questions inside a result: how a server asks since 2026-07-28 (basic/patterns/mrtr)."""

from typing import TypeAlias

from msgspec import Raw

from isthmus.wire.base import UNSET, Meta, UnsetType, Wire

__all__ = ["InputRequest", "InputRequiredResult", "InputResponses"]

InputResponses: TypeAlias = dict[str, Raw]
"""Answers by the key of their question; each is the raw result of the method asked."""


class InputRequest(Wire, frozen=True, kw_only=True):
    """One question: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``."""

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
