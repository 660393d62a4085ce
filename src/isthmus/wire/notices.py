"""Notifications that several features share."""

from isthmus.wire.base import UNSET, Id, Meta, UnsetType, Wire

__all__ = [
    "CancelledParams",
    "ElicitationCompleteParams",
    "ListChangedParams",
    "ProgressParams",
    "ResourceUpdatedParams",
    "RootsListChangedParams",
]


class CancelledParams(Wire, frozen=True, kw_only=True):
    """``notifications/cancelled``: the answer to a request is no longer wanted.

    ``request_id`` is optional in 2025-11-25 only (tasks are cancelled by ``tasks/cancel``).
    """

    request_id: Id | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ProgressParams(Wire, frozen=True, kw_only=True):
    """``notifications/progress``: how far a request has come.

    Attributes:
        progress_token: the token its sender put into ``_meta``.
        progress: how far; it grows with every notification (basic/utilities/progress: a MUST).
        total: how far it will go, where known.
        message: the same in words (since 2025-03-26).
        meta: anything else.
    """

    progress_token: Id
    progress: int | float
    total: int | float | UnsetType = UNSET
    message: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListChangedParams(Wire, frozen=True, kw_only=True):
    """``notifications/{tools,prompts,resources}/list_changed``: list them anew."""

    meta: Meta | UnsetType = UNSET


class ResourceUpdatedParams(Wire, frozen=True, kw_only=True):
    """``notifications/resources/updated``: a resource has changed; read it anew.

    ``uri`` may lie below the one that was subscribed to.
    """

    uri: str
    meta: Meta | UnsetType = UNSET


class RootsListChangedParams(Wire, frozen=True, kw_only=True):
    """``notifications/roots/list_changed``: list the roots anew (up to 2025-11-25)."""

    meta: Meta | UnsetType = UNSET


class ElicitationCompleteParams(Wire, frozen=True, kw_only=True):
    """``notifications/elicitation/complete``: the page elsewhere was dealt with (2025-11-25)."""

    elicitation_id: str
    meta: Meta | UnsetType = UNSET
