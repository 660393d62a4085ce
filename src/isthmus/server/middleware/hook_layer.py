"""Layers that a server makes of objects with hooks: found, checked and bound to its methods."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import Raw

from isthmus.errors import UsageError
from isthmus.revisions import METHODS
from isthmus.runtime.failures import log_failure, log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler, await_result, name_of
from isthmus.server.middleware.hooks import (
    HOOKS,
    LIST_METHODS,
    METHOD_HOOKS,
    Middleware,
    MiddlewareContext,
)
from isthmus.wire import EmptyResult, InputRequiredResult, Tool
from isthmus.wire.results import Result
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.runtime.router import NoticeHandler
    from isthmus.server.declare import Declarations
    from isthmus.server.settings import SharedSettings
    from isthmus.store.kv import KV

Hook: TypeAlias = Callable[[MiddlewareContext[Any], Callable[..., Any]], Any]

MAX_NOTIFICATIONS_HANDLED = 256  # at the same time by one layer; further ones are dropped

INITIALIZED = "notifications/initialized"

# What the session itself deals with before anybody else sees it.
SESSION_NOTIFICATIONS = frozenset({"notifications/cancelled", "notifications/progress"})

HOOK_OF_METHOD = {method: hook for hook, method in METHOD_HOOKS.items()}


class ServerParts:
    """The parts of a server that its middleware may use.

    Args:
        settings: those of the server.
        declared: what it offers.
    """

    __slots__ = ("_declared", "_settings")

    def __init__(self, settings: "SharedSettings", declared: "Declarations") -> None:
        self._settings = settings
        self._declared = declared

    @property
    def name(self) -> str:
        """The name of the server, as it was constructed with."""
        return self._settings.info.name

    @property
    def state(self) -> Any:
        """The value of the server's lifespan; None before it is open."""
        return self._settings.lifespan.value

    @property
    def kv(self) -> "KV | None":
        """The values that the processes of this server share; None where there is one process."""
        store = self._settings.store
        return None if store is None else store.kv

    def find_tool(self, name: str, meta: Any = None) -> Tool | None:
        """A tool of the server's own, as it is listed; None where there is none.

        Args:
            name: of the tool.
            meta: ``_meta`` of the call, which may ask for a version.
        """
        entry = self._declared.tools.listing.seek(name, meta)
        return None if entry is None else entry.shown

    @property
    def varies_by_caller(self) -> bool:
        """Whether it depends on who asks what there is (``Server.visibility``), here or in what is mounted."""
        return depends_on_caller(self._declared)

    def watch_changes(self, watch: Callable[[str, str | None], None]) -> None:
        """Call ``watch`` with each change: the method of its notification, and the URI or None.

        It is called from any thread, and with an empty notification where changes were missed.

        Args:
            watch: gets the method of the notification, and the URI of the resource or None.
        """
        self._settings.changes.watchers.append(watch)

    def offer_resources(self) -> None:
        """Declare the capability: the middleware itself serves something at a URI."""
        resources = self._declared.resources
        resources.listing.used = resources.templates.used = True


def depends_on_caller(declared: Any) -> bool:
    """Whether a server, or one that it mounts, decides for each caller what is there."""
    composition = getattr(declared, "composition", None)
    if composition is None:
        return False
    mounted = (getattr(provider, "inner", None) for provider in composition.providers)
    return getattr(composition, "gate", None) is not None or any(
        depends_on_caller(getattr(inner, "declared", None)) for inner in mounted
    )


def make_layer(middleware: Any, settings: "SharedSettings", declared: "Declarations") -> Any:
    """The layer of something that is put in place as a middleware.

    Raises:
        UsageError: it is none, or has a hook of a name that does not exist.
    """
    hooks = find_hooks(middleware)
    if not hooks:
        return middleware  # an async function, or an object that is called like one
    parts = ServerParts(settings, declared)
    attach = getattr(middleware, "attach", None)
    if attach is not None:
        attach(parts)
    return HookLayer(middleware, hooks, parts)


def find_hooks(middleware: Any) -> dict[str, Hook]:
    """The hooks that an object defines; none where it is a plain function.

    Raises:
        UsageError: it is no middleware, or has a hook of a name that does not exist.
    """
    kind, name = type(middleware), name_of(middleware)
    if isinstance(middleware, type):
        raise UsageError(f"the middleware {name} is a class: pass an instance, {name}(…)")
    is_ours, callable_itself = isinstance(middleware, Middleware), callable(middleware)
    names = [one for one in dir(middleware) if one.startswith("on_")]
    found = {one: getattr(middleware, one) for one in names if _defines_hook(middleware, one)}
    known = {one: hook for one, hook in found.items() if one in HOOKS}
    if callable_itself and not known:
        return {}
    if callable_itself:
        raise UsageError(
            f"the middleware {name} is callable and has hooks ({', '.join(known)}): "
            "use one or the other"
        )
    for one in found:
        if one not in HOOKS:
            raise UsageError(
                f"the middleware {name} has an unknown hook {one}(): {suggest_hook(one)}"
            )
    if not known:
        what = "defines no hook" if is_ours else f"is no middleware, but {kind.__name__}"
        raise UsageError(
            f"{name} {what}: it takes an async function (inbound, call_next), or an object with "
            f"hooks such as on_call_tool(ctx, call_next)"
        )
    return known


def _defines_hook(middleware: Any, name: str) -> bool:
    inherited = getattr(Middleware, name, None)
    own = getattr(type(middleware), name, None)
    return callable(getattr(middleware, name)) and (own is None or own is not inherited)


def suggest_hook(name: str) -> str:
    """Say which hook a misspelt one was meant to be."""
    words = sorted(name.rstrip("s").split("_"))
    for hook in HOOKS:
        if sorted(hook.rstrip("s").split("_")) == words:
            return f"did you mean {hook}()?"
    from difflib import get_close_matches  # only for who misspells

    close = get_close_matches(name, HOOKS, 1)
    known = ", ".join(sorted(HOOKS))
    return f"did you mean {close[0]}()?" if close else f"there are {known}"


class HookLayer:
    """The hooks of one object, as a layer around a server's handlers.

    Args:
        middleware: the object.
        hooks: its hooks by name.
        parts: those of the server that it is put in place on.
    """

    def __init__(self, middleware: Any, hooks: Mapping[str, Hook], parts: ServerParts) -> None:
        self._name = name_of(middleware)
        self._hooks = hooks
        self._parts = parts
        self._methods = getattr(middleware, "methods", None)
        self._reads_results = getattr(middleware, "reads_results", True)
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"HookLayer({self._name})"

    def wraps(self, method: str) -> bool:
        """Whether some hook may want to look into the results of a method."""
        return self._reads_results and bool(self._find_hooks(method))

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """The handler inside the hooks for its method; itself where there are none."""
        for name in reversed(self._find_hooks(method)):
            handler = self._bind(name, method, handler)
        return handler

    def wrap_notices(self, notices: "Mapping[str, NoticeHandler]") -> "dict[str, NoticeHandler]":
        """What is done about notifications, inside the hooks for them."""
        wrapped = dict(notices)
        names = [one for one in ("on_message", "on_notification") if one in self._hooks]
        for method in {*notices, *list_client_notifications()} if names else ():
            if self._methods is None or method in self._methods:
                wrapped[method] = self._bind_notice(names, method, notices.get(method))
        return wrapped

    def _find_hooks(self, method: str) -> list[str]:
        found = []
        if self._methods is None or method in self._methods:
            found = [one for one in ("on_message", "on_request") if one in self._hooks]
        own = HOOK_OF_METHOD.get(method, "")
        return [*found, own] if own in self._hooks else found

    def _bind(self, name: str, method: str, handler: Handler) -> Handler:
        hook, parts, label = self._hooks[name], self._parts, f"{self._name}.{name}"
        reads = self._reads_results or method not in LIST_METHODS

        async def call_next(ctx: MiddlewareContext[Any]) -> Any:
            if type(ctx) is not MiddlewareContext:
                raise UsageError(
                    f"the middleware {label} calls call_next({type(ctx).__name__}): it takes the "
                    "context, `await call_next(ctx)`, or `call_next(ctx.replace(params))`"
                )
            result = await handler(ctx.params, ctx.inbound)
            return decode_result(method, result) if reads and type(result) is Raw else result

        async def serve(params: Any, inbound: Inbound) -> Wire | Raw:
            made = hook(MiddlewareContext(params, inbound, parts), call_next)
            result: Wire | Raw = await await_result(made, label, method)
            return result

        return serve

    def _bind_notice(
        self, names: Iterable[str], method: str, inner: "NoticeHandler | None"
    ) -> "NoticeHandler":
        opens = method == INITIALIZED

        async def innermost(params: Any, inbound: Inbound) -> Wire:
            if inner is not None and not opens:
                inner(params, inbound)
            return EmptyResult()

        handler: Handler = innermost
        for name in reversed(list(names)):
            handler = self._bind_notice_hook(name, handler)

        def hear(params: Any, inbound: Inbound) -> None:
            if opens and inner is not None:
                inner(params, inbound)  # a session that has begun cannot be held up
            if len(self._tasks) >= MAX_NOTIFICATIONS_HANDLED:
                log_warning("%s dropped: %d others are being acted on", method, len(self._tasks))
                return
            task = asyncio.get_running_loop().create_task(run_notice(handler, params, inbound))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return hear

    def _bind_notice_hook(self, name: str, handler: Handler) -> Handler:
        hook, parts = self._hooks[name], self._parts

        async def call_next(ctx: MiddlewareContext[Any]) -> Any:
            return await handler(ctx.params, ctx.inbound)

        async def serve(params: Any, inbound: Inbound) -> Wire:
            await hook(MiddlewareContext(params, inbound, parts), call_next)
            return EmptyResult()

        return serve


async def run_notice(handler: Handler, params: Any, inbound: Inbound) -> None:
    """Run the hooks of a notification, which has no answer to carry an error."""
    try:
        await handler(params, inbound)
    except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
        log_failure(inbound.method, error)


def list_client_notifications() -> list[str]:
    """The notifications of clients that a hook may hear of."""
    return [
        row.name
        for row in METHODS.values()
        if row.result is None and "client" in row.senders and row.name not in SESSION_NOTIFICATIONS
    ]


def decode_result(method: str, raw: Raw) -> Any:
    """A result that a handler gave as bytes, as a hook wants to see it; itself if it cannot be read."""
    row = METHODS.get(method)
    if row is None or row.result is None:
        return raw
    try:
        if row.asks and msgspec.json.decode(raw, type=Result).result_type == "input_required":
            return msgspec.json.decode(raw, type=InputRequiredResult)
        return row.decode_result(raw)
    except (msgspec.DecodeError, RecursionError):
        return raw
