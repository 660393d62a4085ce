"""What an HTTP app is to whatever it runs in: another application, or a server with a lifespan."""

from collections.abc import Mapping
from typing import Any, Protocol

from isthmus.transports.http.reply import Receive, Send

__all__ = ["Lives", "attach", "live"]


class Lives(Protocol):
    """What starts and stops."""

    async def start(self) -> None:
        """Get ready."""
        ...

    async def close(self) -> None:
        """Stop."""
        ...


def attach(app: Any, outer: Any, prefix: str, pages: Mapping[str, Any]) -> None:
    """Put an app into a Starlette or FastAPI application, with and without a slash.

    Args:
        app: the app.
        outer: the application.
        prefix: where the app shall be.
        pages: what shall be served at the very paths of the whole origin.
    """
    from starlette.routing import Mount, Route, WebSocketRoute  # it is there

    taken = {getattr(route, "path", None) for route in outer.router.routes}
    for path, page in pages.items():
        if path not in taken:  # another server's, which came first
            outer.router.routes.append(Route(path, Page(page)))
    outer.router.routes.append(Route(prefix, app))
    outer.router.routes.append(WebSocketRoute(prefix, app))
    outer.router.routes.append(Mount(prefix, app))


class Page:
    """An ASGI callable that a route takes for one, though it is a function.

    Args:
        page: the callable.
    """

    def __init__(self, page: Any) -> None:
        self._page = page

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve it."""
        await self._page(scope, receive, send)


async def live(app: Lives, receive: Receive, send: Send) -> None:
    """Answer an ASGI server that tells when it starts and stops."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await app.start()
            except Exception as error:  # noqa: BLE001 - the author's hook may raise anything
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        else:
            await app.close()
            await send({"type": "lifespan.shutdown.complete"})
            return
