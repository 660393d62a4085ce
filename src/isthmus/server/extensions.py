"""What is not of the specification, on a server: extensions, and notifications of one's own."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.core.extensions import refusal, settings_of
from isthmus.core.surrogates import writable
from isthmus.errors import CapabilityMissing, NotInRevision, UsageError
from isthmus.revisions import METHODS, Method, Revision
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext, Handler, Middleware
from isthmus.wire import ClientCapabilities
from isthmus.wire.base import Id, Wire

if TYPE_CHECKING:
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.router import NoticeHandler

__all__ = [
    "MAX_HEARD",
    "Listeners",
    "ask_own",
    "check_own",
    "for_declared",
    "may_ask",
    "notice_row",
    "only_declared",
    "require_extension",
]

R = TypeVar("R")

MAX_HEARD = 256
"""Notifications acted on at the same time; what comes beyond is dropped, and logged."""


def only_declared(extension: "Extension", handler: Handler) -> Handler:
    """A handler of an extension's method, for those who declared the extension.

    Raises, when called:
        Refuse: the caller did not.
    """
    identifier = extension.identifier

    async def serve(params: Any, inbound: Inbound) -> Wire | Raw:
        # spec 2026-07-28 basic/versioning#extension-negotiation: MUST revert to the core protocol
        # or reject the request with an appropriate error
        if settings_of(inbound.caller.capabilities, identifier) is None:
            raise refusal(identifier, inbound.method, inbound.caller.revision)
        return await handler(params, inbound)

    return serve


def for_declared(extension: "Extension", layer: Middleware) -> Middleware:
    """A layer of an extension's that is not there for those who did not declare it."""
    identifier = extension.identifier

    async def run(inbound: Inbound, call_next: CallNext) -> Wire | Raw:
        if settings_of(inbound.caller.capabilities, identifier) is None:
            return await call_next(inbound)
        return await layer(inbound, call_next)

    return run


def notice_row(name: str, params: Any) -> Method:
    """A notification of an author's as a row of the table.

    Raises:
        UsageError: the specification has a method of this name.
    """
    check_own(name)
    return Method(name, frozenset({"client"}), params)


def check_own(name: str) -> None:
    """See to it that a name is not one of the specification's.

    Raises:
        UsageError: it is.
    """
    if name in METHODS:
        raise UsageError(f"{name!r} is a method of the specification: choose another name")


def may_ask(revision: Revision) -> bool:
    """Whether a server may send requests of its own at all; where it may, it may ping."""
    return revision.allows("server", "ping")


def require_extension(capabilities: ClientCapabilities, identifier: str) -> Mapping[str, Any]:
    """The settings a client declared for an extension.

    Raises:
        CapabilityMissing: it did not declare it.
    """
    settings = settings_of(capabilities, identifier)
    if settings is None:
        raise CapabilityMissing(
            f"the client did not declare the extension {identifier}",
            {"extensions": {identifier: {}}},
        )
    return settings


async def ask_own(
    inbound: Inbound, method: str, params: Any, result: type[R], timeout: float | None
) -> R:
    """Send the client a request that is not of the specification, and wait for its answer.

    Raises:
        NotInRevision: servers send no requests since 2026-07-28.
        UsageError: the specification has a method of this name.
        Refused, CallTimedOut, ConnectionLost, Misbehaved: as it went.
    """
    check_own(method)
    if not may_ask(inbound.caller.revision):
        raise NotInRevision(f"revision {inbound.caller.revision.name} has no requests of servers")
    answer: R = await inbound.link.call(
        method, writable(params), result, relates_to=inbound.id, timeout=timeout
    )
    return answer


class Listeners:
    """The functions that are told of a server's own notifications, and those at work.

    A notification has no answer, so whatever goes wrong is logged. At most :data:`MAX_HEARD` are
    acted on at the same time.
    """

    def __init__(self) -> None:
        self.heard: dict[str, NoticeHandler] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, name: str, handler: Handler) -> None:
        """Have a handler told of a notification."""

        def hear(params: Any, inbound: Inbound) -> None:
            if len(self._tasks) >= MAX_HEARD:
                _log().warning("%s dropped: %d others are being acted on", name, MAX_HEARD)
                return
            aside = structs.replace(inbound, link=Aside(inbound.link, inbound.caller.revision))
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
            _log().error("%s failed", name, exc_info=error)


class Aside(msgspec.Struct, frozen=True):
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
        if may_ask(self.revision):
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
        if not may_ask(self.revision):
            raise NotInRevision(f"revision {self.revision.name} has no requests of servers")
        answer: R = await self.link.call(method, params, result, timeout=timeout)
        return answer

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the link ends."""
        undo: Callable[[], None] = self.link.on_close(callback)
        return undo


def _log() -> Any:
    import logging  # not needed until something fails

    return logging.getLogger("isthmus")
