"""Extensions of a server, and methods and notifications of its author's own."""

import asyncio
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw, structs

from isthmus.core.extensions import check_own_method, find_settings, refuse_undeclared
from isthmus.errors import NotInRevision, UsageError
from isthmus.revisions import Method, Revision
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler, compose, wraps_all
from isthmus.server.asking.context import Context
from isthmus.server.features.invocation import plan_dependencies
from isthmus.server.schema.defaults import make_unsharer
from isthmus.server.schema.signatures import read_signature
from isthmus.server.settings import SharedSettings
from isthmus.wire import EmptyResult
from isthmus.wire.struct import Id, Wire

if TYPE_CHECKING:
    from isthmus.runtime.extension import Extension
    from isthmus.runtime.router import NoticeHandler

R = TypeVar("R")

MAX_NOTIFICATIONS_HANDLED = 256  # at the same time; what comes beyond is dropped, and logged


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


class DeclaredLayer:
    """A layer of an extension's that is not there for those who did not declare it.

    Args:
        extension: the extension.
        layer: the layer.
    """

    def __init__(self, extension: "Extension", layer: Any) -> None:
        self._identifier = extension.identifier
        self._layer = layer
        self.wraps = getattr(layer, "wraps", wraps_all)

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """The handler of a method inside the layer, for whoever declared the extension."""
        inside = compose(handler, (self._layer,), method)
        if inside is handler:
            return handler

        async def run(params: Any, inbound: Inbound) -> Wire | Raw:
            declared = find_settings(inbound.caller.capabilities, self._identifier) is not None
            return await (inside if declared else handler)(params, inbound)

        return run


def make_method_row(name: str, params: Any, result: Any) -> Method:
    """A method of an author's as a row of the table.

    Raises:
        UsageError: the specification has a method of this name.
    """
    check_own_method(name)
    return Method(name, frozenset({"client"}), params, result or EmptyResult)


def make_notification_row(name: str, params: Any) -> Method:
    """A notification of an author's as a row of the table.

    Raises:
        UsageError: the specification has a method of this name.
    """
    check_own_method(name)
    return Method(name, frozenset({"client"}), params)


def make_method_handler(
    fn: Callable[..., Any], settings: SharedSettings, params_type: Any
) -> Handler:
    """Make the handler of a method of an author's: ``fn(params)`` or ``fn(params, ctx)``.

    Args:
        fn: the function.
        settings: those of the server, shared by all its parts.
        params_type: what its params were decoded into.

    Raises:
        UsageError: the function takes anything else.
    """
    signature = read_signature(fn, Context)
    if len(signature.parameters) != 1:
        raise UsageError(
            f"{signature.name}: it serves a method, so it takes its params and, if it wants, the "
            "context"
        )

    unshare, argument = make_unsharer(params_type), signature.parameters[0].name
    plan = plan_dependencies(signature.injected, (argument,), settings)

    async def serve(params: Any, inbound: Inbound) -> Any:
        if unshare is not None:
            params = unshare(params)

        async def call(context: Context, injected: Sequence[Any] = ()) -> Any:
            values = dict(zip(signature.injected, injected, strict=True))
            values |= {name: signature.fill(name, context) for name in signature.filled}
            values[argument] = params
            given = [values[name] for name in signature.order if name not in signature.by_name]
            named = {name: values[name] for name in signature.by_name}
            if signature.is_async:
                return await fn(*given, **named)
            value = await settings.workers.run(partial(fn, *given, **named), context.leave)
            return await value if inspect.isawaitable(value) else value

        async def body(context: Context) -> Any:
            if plan is None:
                return await call(context)
            from isthmus.server.features.dependency_scope import call_with_dependencies

            work = partial(call, context)
            return await call_with_dependencies(
                plan, lambda c: work(c.values), lambda _: params, context, settings
            )

        from isthmus.server.asking.rounds import run_once  # there may be nobody who asks

        value = await run_once(body, inbound, settings)
        return EmptyResult() if value is None else value

    return serve


class NotificationListeners:
    """The functions that are told of a server's own notifications, and those at work.

    A notification has no answer, so whatever goes wrong is logged. At most
    :data:`MAX_NOTIFICATIONS_HANDLED` are acted on at the same time.
    """

    def __init__(self) -> None:
        self.heard: dict[str, NoticeHandler] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, name: str, handler: Handler) -> None:
        """Have a handler told of a notification."""

        def hear(params: Any, inbound: Inbound) -> None:
            if len(self._tasks) >= MAX_NOTIFICATIONS_HANDLED:
                log_warning(
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
            log_failure(name, error)


class UnrelatedLink(msgspec.Struct, frozen=True):
    """The way back to whoever sent a notification: related to no request.

    Attributes:
        link: the way back to the sender.
        revision: what it speaks.
    """

    link: Any  # a Link; msgspec cannot check protocols
    revision: Revision

    @property
    def _may_send(self) -> bool:
        """Whether a server may send anything outside a request: not since 2026-07-28."""
        return self.revision.allows("server", "ping")

    async def note(
        self,
        method: str,
        params: Wire | None = None,
        *,
        relates_to: Id | None = None,  # noqa: ARG002 - the protocol of links
    ) -> None:
        """Send a notification; since 2026-07-28 nothing can be sent outside a request."""
        if self._may_send:
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
        if not self._may_send:
            raise NotInRevision(f"revision {self.revision.name} has no requests of servers")
        answer: R = await self.link.call(method, params, result, timeout=timeout)
        return answer

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Run ``callback`` when the link ends."""
        undo: Callable[[], None] = self.link.on_close(callback)
        return undo
