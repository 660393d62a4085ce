"""Custom methods on a client: extensions, and requests and notifications of a server's own."""

from collections.abc import Callable
from typing import Any, TypeVar

from isthmus.client.model.callbacks import maybe_await
from isthmus.core.extensions import check_own_method
from isthmus.errors import UsageError
from isthmus.revisions import Method
from isthmus.runtime.extension import Extension
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import Handler, Middleware
from isthmus.runtime.router import NoticeHandler, Router
from isthmus.wire import EmptyResult

F = TypeVar("F", bound=Callable[..., Any])


class CustomMethods:
    """Handlers of a server's own requests and notifications.

    Args:
        routes: the handlers of the specification's requests.
        notices: what to do about the specification's notifications.
        tell: calls a function with what it is to be told, beside the conversation if it is async.
        around: goes around every request, where there is something.
    """

    def __init__(
        self,
        routes: dict[str, Handler],
        notices: dict[str, NoticeHandler],
        tell: Callable[[Callable[[Any], Any], object], None],
        around: Middleware | None = None,
    ) -> None:
        self._routes = routes
        self._notices = notices
        self._tell = tell
        self._rows: dict[str, Method] = {}
        self._around = () if around is None else (around,)

    def router(self) -> Router:
        """The router for all of it, and for whatever is added later."""
        return Router(
            self._routes, self._notices, sender="server", extra=self._rows, middleware=self._around
        )

    def extend(self, extension: Extension) -> None:
        """Hear the notifications of an extension.

        Its methods are a server's to serve: since 2026-07-28, the first revision with extensions,
        a server sends no requests.

        Raises:
            UsageError: a name is taken.
        """
        for name, heard in extension.notices.items():
            self.on_notification(name, heard.params)(heard.fn)

    def on_notification(self, name: str, params: Any) -> Callable[[F], F]:
        """Decorate a function told of a notification."""

        def decorate(fn: F) -> F:
            self._claim(Method(name, frozenset({"server"}), params))
            self._notices[name] = lambda said, _inbound: self._tell(fn, said)
            return fn

        return decorate

    def method(self, name: str, params: Any, result: Any) -> Callable[[F], F]:
        """Decorate what serves a request."""

        def decorate(fn: F) -> F:
            self._claim(Method(name, frozenset({"server"}), params, result or EmptyResult))
            self._routes[name] = make_handler(fn)
            return fn

        return decorate

    def _claim(self, row: Method) -> None:
        check_own_method(row.name)
        if row.name in self._rows:
            raise UsageError(f"this client has {row.name!r} already")
        self._rows[row.name] = row


def make_handler(fn: Callable[[Any], Any]) -> Handler:
    """A function, async or plain, as a handler of the router."""

    async def serve(params: Any, _inbound: Inbound) -> Any:
        value = await maybe_await(fn(params))
        return EmptyResult() if value is None else value

    return serve
