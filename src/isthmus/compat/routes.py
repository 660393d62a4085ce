"""Routes of the façades: functions that take and give what Starlette has, as routes of isthmus."""

import logging
from collections.abc import Sequence
from inspect import isawaitable
from typing import Any

from isthmus.errors import UsageError
from isthmus.server.routes import RouteRequest, RouteResponse

logger = logging.getLogger("isthmus.compat")


def add_route(server: Any, path: str, methods: Sequence[str], fn: Any) -> None:
    """Serve a route whose function takes and gives what Starlette has.

    A path that isthmus cannot match, such as ``/`` or ``/items/{id}``, is left out with a warning: a program that is
    started on standard input and output has it for nothing.
    """
    try:
        server.route(path, methods=[one.upper() for one in methods])(make_route(fn))
    except UsageError as error:
        logger.warning("not served: %s; docs/guide/routes.md says what can be", error)


def make_route(fn: Any) -> Any:
    """Make what isthmus calls for a request of a function that takes starlette's."""

    async def answer(request: RouteRequest) -> RouteResponse:
        from urllib.parse import urlencode

        from starlette.requests import Request  # of the environment of whoever has routes

        scope = {
            "type": "http",
            "method": request.method,
            "path": request.path,
            "query_string": urlencode(request.query).encode(),
            "headers": [
                (k.encode("latin-1"), v.encode("latin-1")) for k, v in request.headers.items()
            ],
            "path_params": {},
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": request.body, "more_body": False}

        parts = ResponseParts()
        given = fn(Request(scope, receive))
        response = await given if isawaitable(given) else given
        await response(scope, receive, parts.take)
        return RouteResponse(parts.body, parts.status, headers=parts.headers)

    return answer


class ResponseParts:
    """Parts of a response that starlette sends."""

    def __init__(self) -> None:
        self.status, self.headers, self.body = 200, dict[str, str](), b""

    async def take(self, message: Any) -> None:
        """Take the next one."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): text.decode("latin-1")
                for name, text in message["headers"]
                if name.lower() != b"content-length"
            }
        else:
            self.body += message.get("body", b"")
