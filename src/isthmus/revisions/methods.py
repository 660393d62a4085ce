"""Every method of every revision: one row each."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal

import msgspec

from isthmus import wire
from isthmus.revisions.table import Sender
from isthmus.wire.reading import forgiving_reader, reader


class Method(msgspec.Struct, frozen=True, eq=False, dict=True):
    """One request or notification, in whichever revisions have it.

    Attributes:
        name: as on the wire.
        senders: the sides that send it, in some revision or other.
        params: the struct of its params.
        result: the type of its result; None for a notification.
        asks: since 2026-07-28 it may be answered with questions (``InputRequiredResult``).
        cacheable: since 2026-07-28 its result says how long it may be cached.
        named_by: the member of its params that goes into ``Mcp-Name``, or None.
    """

    name: str
    senders: frozenset[Sender]
    params: type
    result: Any = None
    asks: bool = False
    cacheable: bool = False
    named_by: Literal["name", "uri", "task_id"] | None = None

    @cached_property
    def decode_params(self) -> Callable[[bytes | msgspec.Raw], Any]:
        """Params from JSON; raises ``msgspec.ValidationError`` with the JSON path."""
        return reader(self.params)

    @cached_property
    def decode_result(self) -> Callable[[bytes | msgspec.Raw], Any]:
        """The result from JSON; raises ``msgspec.ValidationError`` with the JSON path.

        Raises:
            TypeError: the method is a notification.
        """
        if self.result is None:
            raise TypeError(f"{self.name} is a notification: it has no result")
        return forgiving_reader(self.result)


_CLIENT: frozenset[Sender] = frozenset({"client"})
_SERVER: frozenset[Sender] = frozenset({"server"})
_BOTH = _CLIENT | _SERVER

_ROWS = (
    # opening
    Method("initialize", _CLIENT, wire.InitializeParams, wire.InitializeResult),
    Method("ping", _BOTH, wire.PingParams, wire.EmptyResult),
    Method("server/discover", _CLIENT, wire.DiscoverParams, wire.DiscoverResult, cacheable=True),
    # what a client asks of a server
    Method("tools/list", _CLIENT, wire.ListToolsParams, wire.ListToolsResult, cacheable=True),
    Method(
        "tools/call", _CLIENT, wire.CallToolParams, wire.CallToolResult, asks=True, named_by="name"
    ),
    Method(
        "resources/list",
        _CLIENT,
        wire.ListResourcesParams,
        wire.ListResourcesResult,
        cacheable=True,
    ),
    Method(
        "resources/templates/list",
        _CLIENT,
        wire.ListResourceTemplatesParams,
        wire.ListResourceTemplatesResult,
        cacheable=True,
    ),
    Method(
        "resources/read",
        _CLIENT,
        wire.ReadResourceParams,
        wire.ReadResourceResult,
        asks=True,
        cacheable=True,
        named_by="uri",
    ),
    Method("resources/subscribe", _CLIENT, wire.SubscribeParams, wire.EmptyResult),
    Method("resources/unsubscribe", _CLIENT, wire.UnsubscribeParams, wire.EmptyResult),
    Method("prompts/list", _CLIENT, wire.ListPromptsParams, wire.ListPromptsResult, cacheable=True),
    Method(
        "prompts/get",
        _CLIENT,
        wire.GetPromptParams,
        wire.GetPromptResult,
        asks=True,
        named_by="name",
    ),
    Method("completion/complete", _CLIENT, wire.CompleteParams, wire.CompleteResult),
    Method("logging/setLevel", _CLIENT, wire.SetLevelParams, wire.EmptyResult),
    Method("subscriptions/listen", _CLIENT, wire.ListenParams, wire.ListenResult),
    # what a server asks of a client
    Method("sampling/createMessage", _SERVER, wire.CreateMessageParams, wire.CreateMessageResult),
    Method("elicitation/create", _SERVER, wire.ElicitParams, wire.ElicitResult),
    Method("roots/list", _SERVER, wire.ListRootsParams, wire.ListRootsResult),
    # tasks: of 2025-11-25, and of the extension
    Method("tasks/get", _BOTH, wire.GetTaskParams, wire.GetTaskResult, named_by="task_id"),
    Method("tasks/result", _BOTH, wire.GetTaskPayloadParams, wire.GetTaskPayloadResult),
    Method("tasks/cancel", _BOTH, wire.CancelTaskParams, wire.CancelTaskResult, named_by="task_id"),
    Method("tasks/list", _BOTH, wire.ListTasksParams, wire.ListTasksResult),
    Method("tasks/update", _CLIENT, wire.UpdateTaskParams, wire.EmptyResult, named_by="task_id"),
    # notifications
    Method("notifications/cancelled", _BOTH, wire.CancelledParams),
    Method("notifications/progress", _BOTH, wire.ProgressParams),
    Method("notifications/initialized", _CLIENT, wire.InitializedParams),
    Method("notifications/roots/list_changed", _CLIENT, wire.RootsListChangedParams),
    Method("notifications/tasks/status", _BOTH, wire.TaskStatusParams),
    Method("notifications/tasks", _SERVER, wire.DetailedTask),
    Method("notifications/message", _SERVER, wire.LogMessageParams),
    Method("notifications/tools/list_changed", _SERVER, wire.ListChangedParams),
    Method("notifications/prompts/list_changed", _SERVER, wire.ListChangedParams),
    Method("notifications/resources/list_changed", _SERVER, wire.ListChangedParams),
    Method("notifications/resources/updated", _SERVER, wire.ResourceUpdatedParams),
    Method("notifications/elicitation/complete", _SERVER, wire.ElicitationCompleteParams),
    Method("notifications/subscriptions/acknowledged", _SERVER, wire.AcknowledgedParams),
)

METHODS: Mapping[str, Method] = {row.name: row for row in _ROWS}
"""All methods of the protocol by their names."""
