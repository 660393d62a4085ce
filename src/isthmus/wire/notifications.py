"""Notifications: cancellation, progress, changes, log messages, and the streams that bring them."""

from typing import Any, Literal, TypeAlias

from isthmus.wire.results import Result
from isthmus.wire.struct import UNSET, Id, Meta, UnsetType, Wire


class CancelledParams(Wire, frozen=True, kw_only=True):
    """``notifications/cancelled``: the answer to a request is no longer wanted.

    ``request_id`` is optional in 2025-11-25 only (tasks are cancelled by ``tasks/cancel``).

    Attributes:
        request_id: the id of the request.
        reason: the reason in words.
        meta: further members, in ``_meta``.
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
    """``notifications/{tools,prompts,resources}/list_changed``: the list is to be fetched anew.

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class ResourceUpdatedParams(Wire, frozen=True, kw_only=True):
    """``notifications/resources/updated``: a resource has changed; read it anew.

    ``uri`` may lie below the one that was subscribed to.

    Attributes:
        uri: the URI of what changed.
        meta: further members, in ``_meta``.
    """

    uri: str
    meta: Meta | UnsetType = UNSET


class RootsListChangedParams(Wire, frozen=True, kw_only=True):
    """``notifications/roots/list_changed``: list the roots anew (up to 2025-11-25).

    Attributes:
        meta: further members, in ``_meta``.
    """

    meta: Meta | UnsetType = UNSET


class ElicitationCompleteParams(Wire, frozen=True, kw_only=True):
    """``notifications/elicitation/complete``: the page elsewhere was dealt with (2025-11-25).

    Attributes:
        elicitation_id: ``elicitation_id`` of the :class:`ElicitParams`.
        meta: further members, in ``_meta``.
    """

    elicitation_id: str
    meta: Meta | UnsetType = UNSET


# Streams of changes, since 2026-07-28


class SubscriptionFilter(Wire, frozen=True, kw_only=True):
    """The changes that are wanted, or were granted.

    Attributes:
        tools_list_changed: the list of tools changes.
        prompts_list_changed: the list of prompts changes.
        resources_list_changed: the list of resources changes.
        resource_subscriptions: URIs of resources that change.
        task_ids: tasks whose status changes, of the extension for tasks.
    """

    tools_list_changed: bool | UnsetType = UNSET
    prompts_list_changed: bool | UnsetType = UNSET
    resources_list_changed: bool | UnsetType = UNSET
    resource_subscriptions: list[str] | UnsetType = UNSET
    task_ids: list[str] | UnsetType = UNSET


class ListenParams(Wire, frozen=True, kw_only=True):
    """``subscriptions/listen``: send these changes for as long as this stream lasts (since 2026-07-28).

    Attributes:
        notifications: the wanted changes.
        meta: further members, in ``_meta``.
    """

    notifications: SubscriptionFilter
    meta: Meta | UnsetType = UNSET


class ListenResult(Result, frozen=True, kw_only=True):
    """The stream is over; ``_meta`` must carry its subscription id."""


class AcknowledgedParams(Wire, frozen=True, kw_only=True):
    """``notifications/subscriptions/acknowledged``: what was granted; first on the stream.

    Attributes:
        notifications: the granted changes.
        meta: further members, in ``_meta``.
    """

    notifications: SubscriptionFilter
    meta: Meta | UnsetType = UNSET


# Log messages

LogLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""Severity of a log message, as RFC 5424 names it."""

LOG_LEVELS: tuple[LogLevel, ...] = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""The levels, least severe first."""


class SetLevelParams(Wire, frozen=True, kw_only=True):
    """``logging/setLevel``: the least severe level a session wants (up to 2025-11-25).

    Attributes:
        level: the least severe level that the client wants.
        meta: further members, in ``_meta``.
    """

    level: LogLevel
    meta: Meta | UnsetType = UNSET


class LogMessageParams(Wire, frozen=True, kw_only=True):
    """``notifications/message``: one log message; ``data`` is any JSON.

    Attributes:
        level: the severity.
        data: the message: a text, or any other JSON.
        logger: the source in the program.
        meta: further members, in ``_meta``.
    """

    level: LogLevel
    data: Any
    logger: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET
