"""FastAPI application: the OpenAPI document of it, tool names from its routes, and a check of routes.

FastAPI is never imported for this: an application brings it along.
"""

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from isthmus.errors import UsageError
from isthmus.openapi.sending import ApiUnavailable

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")


class FastApiRoutes:
    """The routes of a FastAPI application, as they are now.

    Args:
        app: the application.
        passed: headers of callers that are passed on to it: they are nobody's arguments.

    Raises:
        UsageError: it is no FastAPI application.
    """

    def __init__(self, app: Any, passed: Iterable[str] = ()) -> None:
        if not callable(getattr(app, "openapi", None)) or not hasattr(app, "routes"):
            raise UsageError(
                f"app is a FastAPI application, not {type(app).__name__}: for any other ASGI "
                "application write Server.from_openapi(spec, app=app)"
            )
        self._app = app
        self._passed = frozenset(name.lower() for name in passed)
        self._source: Any = None
        self._mark: tuple[int, ...] = ()
        self._document: dict[str, Any] = {}

    def read(self) -> dict[str, Any]:
        """The document of the application; the same object as long as no route was added."""
        mark = tuple(map(id, self._app.routes))
        stale = mark != self._mark
        source = self._make_document(stale=stale)
        if stale or source is not self._source:
            self._mark, self._source = mark, source
            self._document = self._prepare(source)
        return self._document

    def _make_document(self, *, stale: bool) -> dict[str, Any]:
        """What the application says of itself, where it kept that from before routes were added, too."""
        app = self._app
        kept = getattr(app, "openapi_schema", None)
        if kept is None or not stale or not self._document:
            found: dict[str, Any] = app.openapi()
            return found
        first = app.openapi()
        if first is not kept or app.openapi_schema is not kept:  # it saw them itself
            return dict(first)
        app.openapi_schema = None
        try:
            return dict(app.openapi())
        finally:
            app.openapi_schema = kept  # as the author, or its page of documentation, has it

    def _prepare(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """The document with the names of the routes as ``operationId``, and without servers."""
        names = self._name_operations()
        paths: dict[str, Any] = {}
        for path, item in source.get("paths", {}).items():
            paths[path] = {**item}
            for method in METHODS:
                operation = item.get(method)
                if isinstance(operation, Mapping):
                    paths[path][method] = {
                        **operation,
                        "operationId": names.get((method, path)) or operation.get("operationId"),
                        "parameters": [*filter(self._is_argument, operation.get("parameters", ()))],
                        "servers": [],
                    }
        # requests go to the application itself, wherever it is reached from outside
        return {**source, "paths": paths, "servers": []}

    def _is_argument(self, parameter: Mapping[str, Any]) -> bool:
        """Whether a parameter is for who calls a tool, and not passed on from his own request."""
        where, name = parameter.get("in"), str(parameter.get("name", "")).lower()
        return not (
            (where == "header" and name in self._passed)
            or (where == "cookie" and "cookie" in self._passed)
        )

    def _name_operations(self) -> dict[tuple[str, str], str]:
        """The tools' names by method and path: the author's ids, else the names of the functions."""
        named: dict[tuple[str, str], str] = {}
        taken: set[str] = set()
        for route in list_routes(self._app):
            if not is_described(route):
                continue
            methods = sorted(route.methods or ())
            own = route.operation_id or _find_custom_id(route)
            for method in methods:
                name = own or str(route.name)
                if len(methods) > 1 or name in taken:
                    name = own if own and own not in taken else f"{name}_{method.lower()}"
                while name in taken:
                    name = route.unique_id if route.unique_id not in taken else f"{name}_"
                taken.add(name)
                named[method.lower(), route.path_format] = name
        return named

    def check(self, scope: MutableMapping[str, Any], template: str) -> None:
        """See that the application takes a request for the operation that is meant.

        A path is matched with its parts decoded: ``/users/{id}`` with ``1/delete`` or ``me`` in it could
        be another route, such as one that is offered to nobody.

        Raises:
            ApiUnavailable: it would be another one.
        """
        path, method = scope["path"], scope["method"]
        root = getattr(self._app, "root_path", "") or ""
        if root and f"{path}/".startswith(f"{root}/"):  # as the application does before it matches
            path = path.removeprefix(root)
        for route in list_routes(self._app):
            pattern = getattr(route, "path_regex", None)
            methods = getattr(route, "methods", None)
            if pattern is None or (methods is not None and method not in methods):
                continue
            if is_websocket(route):
                continue
            if pattern.match(path):
                if is_described(route) and route.path_format == template:
                    return
                break
        raise ApiUnavailable("with these arguments the path would be that of another operation")


def list_routes(app: Any) -> Iterator[Any]:
    """The routes of an application, those of included routers among them."""
    import fastapi.routing  # it is there: the application is made of it

    flatten = getattr(fastapi.routing, "iter_route_contexts", None)
    return iter(app.routes if flatten is None else flatten(app.routes))


def is_described(route: Any) -> bool:
    """Whether a route is an operation of the document."""
    return bool(
        getattr(route, "include_in_schema", False)
        and hasattr(route, "operation_id")
        and getattr(route, "methods", None)
    )


def is_websocket(route: Any) -> bool:
    """Whether a route is for WebSockets, which no request of HTTP takes."""
    from starlette.routing import WebSocketRoute  # it is there, as FastAPI is

    return isinstance(getattr(route, "original_route", route), WebSocketRoute)


def _find_custom_id(route: Any) -> str:
    """The id of a route that a function of the author's made; empty for that which FastAPI makes."""
    from fastapi.utils import generate_unique_id

    made: str = getattr(route, "unique_id", "") or ""
    return "" if made == generate_unique_id(route) else made
