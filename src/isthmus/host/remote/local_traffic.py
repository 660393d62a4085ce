"""Traffic of a host in this process, as its surfaces ask for it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.host.model.view import CallRecord, TrafficFigures, WireMessage
from isthmus.host.remote.requests import AskCallRecord, AskFigures, AskMessages, AskTraffic

if TYPE_CHECKING:
    from isthmus.host.remote.viewed_host import ViewedHost

MAX_FIGURE_MINUTES = 24 * 60


class TrafficRequests:
    """Answers requests about traffic.

    Args:
        host: whose traffic it is.
    """

    def __init__(self, host: "ViewedHost") -> None:
        self._host = host
        self.answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskTraffic: self._list_calls,
            AskCallRecord: self._find_call,
            AskMessages: self._list_messages,
            AskFigures: self._count,
        }

    async def _list_calls(self, request: AskTraffic) -> Sequence[CallRecord]:
        return self._host.traffic.list(request.query)

    async def _find_call(self, request: AskCallRecord) -> CallRecord | None:
        return self._host.traffic.find(request.call)

    async def _list_messages(self, request: AskMessages) -> Sequence[WireMessage]:
        return self._host.traffic.list_messages(request.call)

    async def _count(self, request: AskFigures) -> TrafficFigures:
        minutes = max(1, min(request.minutes, MAX_FIGURE_MINUTES))
        return self._host.traffic.count(minutes)
