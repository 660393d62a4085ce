"""What is not of the specification, on a server: extensions, and notifications of one's own."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.core.encoding import make_encodable
from isthmus.core.extensions import find_settings, refuse_undeclared
from isthmus.errors import CapabilityMissing, NotInRevision, UsageError
from isthmus.revisions import METHODS, Method, Revision
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext, Handler, Middleware
from isthmus.wire import ClientCapabilities
from isthmus.wire.struct import Id, Wire

if TYPE_CHECKING:
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.router import NoticeHandler

__all__ = [
    "MAX_NOTIFICATIONS_HANDLED",
    "NotificationListeners",
    "check_own_method",
    "make_notification_row",
    "may_send_requests",
    "require_extension",
    "run_if_declared",
    "send_own_request",
    "serve_if_declared",
]

R = TypeVar("R")

MAX_NOTIFICATIONS_HANDLED = 256
"""Notifications acted on at the same time; what comes beyond is dropped, and logged."""


def serve_if_declared(extension: "Extension", handler: Handler) -> Handler:
    """A handler of an extension's method, for those who declared the extension.

    Raises, when called:
        Refuse: the caller did not.
    """
    identifier = extension.identifier

    async def serve(params: Any, inbound: Inbound) -> Wire | Raw:
        # spec 2026-07-28 basic/versioning#extension-negotiation: MUST revert to the core protocol
        # or reject the request with an appropriate error
        if find_settings(inbound.caller.capabilities, identifier) is None:
            raise refuse_undeclared(identifier, inbound.method, inbound.caller.revision)
        return await handler(params, inbound)

    return serve


def run_if_declared(extension: "Extension", layer: Middleware) -> Middleware:
    """A layer of an extension's that is not there for those who did not declare it."""
    identifier = extension.identifier

    async def run(inbound: Inbound, call_next: CallNext) -> Wire | Raw:
        if find_settings(inbound.caller.capabilities, identifier) is None:
            return await call_next(inbound)
        return await layer(inbound, call_next)

    return run


def make_notification_row(name: str, params: Any) -> Method:
    """A notification of an author's as a row of the table.

    Raises:
        UsageError: the specification has a method of this name.
    """
    check_own_method(name)
    return Method(name, frozenset({"client"}), params)


def check_own_method(name: str) -> None:
    """See to it that a name is not one of the specification's.

    Raises:
        UsageError: it is.
    """
    if name in METHODS:
        raise UsageError(f"{name!r} is a method of the specification: choose another name")


def may_send_requests(revision: Revision) -> bool:
    """Whether a server may send requests of its own at all; where it may, it may ping."""
    return revision.allows("server", "ping")


def require_extension(capabilities: ClientCapabilities, identifier: str) -> Mapping[str, Any]:
    """The settings a client declared for an extension.

    Raises:
        CapabilityMissing: it did not declare it.
    """
    settings = find_settings(capabilities, identifier)
    if settings is None:
        raise CapabilityMissing(
            f"the client did not declare the extension {identifier}",
            {"extensions": {identifier: {}}},
        )
    return settings


async def send_own_request(
    inbound: Inbound, method: str, params: Any, result: type[R], timeout: float | None
) -> R:
    """Send the client a request that is not of the specification, and wait for its answer.

    Raises:
        NotInRevision: servers send no requests since 2026-07-28.
        UsageError: the specification has a method of this name.
        Refused, CallTimedOut, ConnectionLost, Misbehaved: as it went.
    """
    check_own_method(method)
    if not may_send_requests(inbound.caller.revision):
        raise NotInRevision(f"revision {inbound.caller.revision.name} has no requests of servers")
    answer: R = await inbound.link.call(
        method, make_encodable(params), result, relates_to=inbound.id, timeout=timeout
    )
    return answer


class NotificationListeners:
    """The functions that are told of a server's own notifications, and those at work.

    A notification has no answer, so whatever goes wrong is logged. At most :data:`MAX_NOTIFICATIONS_HANDLED` are
    acted on at the same time.
    """

    def __init__(self) -> None:
        self.heard: dict[str, NoticeHandler] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, name: str, handler: Handler) -> None:
        """Have a handler told of a notification."""

        def hear(params: Any, inbound: Inbound) -> None:
            if len(self._tasks) >= MAX_NOTIFICATIONS_HANDLED:
                _get_logger().warning(
                    "%s dropped: %d others are being acted on", name, MAX_NOTIFICATIONS_HANDLED
                )
                return
            aside = structs.replace(
                inbound, link=UnrelatedLink(inbound.link, inbound.caller.revision)
            )
            task = asyncio.get_running_loop().create_task(self._run(name, handler, params, aside))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self.heard[name] = hear

    def close(self) -> None:
        """Stop whoever is still at work."""
        for task in list(self._tasks):
            task.cancel()

    async def _run(self, name: str, handler: Handler, params: Any, inbound: Inbound) -> None:
        try:
            await handler(params, inbound)
        except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
            _get_logger().error("%s failed", name, exc_info=error)


class UnrelatedLink(msgspec.Struct, frozen=True):
    """The way back to whoever sent a notification: related to no request.

    Attributes:
        link: the way back to the sender.
        revision: what it speaks.
    """

    link: Any  # a Link; msgspec cannot check protocols
    revision: Revision

    async def note(
        self,
        method: str,
        params: Wire | None = None,
        *,
        relates_to: Id | None = None,  # noqa: ARG002 - the protocol of links
    ) -> None:
        """Send a notification; since 2026-07-28 nothing can be sent outside a request."""
        if may_send_requests(self.revision):
            await self.link.note(method, params)

    async def call(
        self,
        method: str,
        params: Wire | None,
        result: type[R],
        *,
        relates_to: Id | None = None,  # noqa: ARG002 - the protocol of links
        timeout: float | None = None,
    ) -> R:
        """Send a request and wait for its answer.

        Raises:
            NotInRevision: servers send no requests since 2026-07-28.
        """
        if not may_send_requests(self.revision):
            raise NotInRevision(f"revision {self.revision.name} has no requests of servers")
        answer: R = await self.link.call(method, params, result, timeout=timeout)
        return answer

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the link ends."""
        undo: Callable[[], None] = self.link.on_close(callback)
        return undo


def _get_logger() -> Any:
    import logging  # not needed until something fails

    return logging.getLogger("isthmus")
