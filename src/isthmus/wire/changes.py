"""Streams of changes: how a client hears of news since 2026-07-28."""

from isthmus.wire.base import UNSET, Meta, UnsetType, Wire
from isthmus.wire.results import Result

__all__ = ["AcknowledgedParams", "ListenParams", "ListenResult", "SubscriptionFilter"]


class SubscriptionFilter(Wire, frozen=True, kw_only=True):
    """Which changes are wanted, or were granted.

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
    """``subscriptions/listen``: tell me of these changes for as long as this stream lasts."""

    notifications: SubscriptionFilter
    meta: Meta | UnsetType = UNSET


class ListenResult(Result, frozen=True, kw_only=True):
    """The stream is over; ``_meta`` must carry its subscription id."""


class AcknowledgedParams(Wire, frozen=True, kw_only=True):
    """``notifications/subscriptions/acknowledged``: what was granted; first on the stream."""

    notifications: SubscriptionFilter
    meta: Meta | UnsetType = UNSET
