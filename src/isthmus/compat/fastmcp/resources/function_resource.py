"""Resources made of functions, under the names of ``fastmcp.resources.function_resource``."""

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import PrivateAttr

from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.components.functions import DECORATED, OfferedFunction, mark_function
from isthmus.compat.fastmcp.resources.model import Resource
from isthmus.compat.fastmcp.utilities.tasks import drop_task


class FunctionResource(Resource):
    """Resource that a function gives.

    Attributes:
        fn: the function.
    """

    fn: Any

    _function: OfferedFunction = PrivateAttr()

    @classmethod
    def from_function(cls, fn: Callable[..., Any], uri: Any, **options: Any) -> "FunctionResource":
        """Make a resource of a function."""
        given = {**getattr(fn, DECORATED, {}), **options}
        given.pop("uri", None)
        given.pop("security", None)
        drop_task(given, "a resource")
        function = OfferedFunction(fn, "resources")
        description = given.pop("description", None)
        made = cls(
            fn=function.fn,
            uri=uri,
            name=given.pop("name", None) or function.name,
            description=inspect.getdoc(function.fn) if description is None else description,
            annotations=make_resource_annotations(given.pop("annotations", None)),
            **{key: value for key, value in given.items() if value is not None},
        )
        made._function = function
        return made

    async def read(self) -> Any:
        """Call the function; another resource that it returns is read."""
        value = await self._function.call(((), {}))
        return await value.read() if isinstance(value, Resource) else value


def make_resource_annotations(given: Any) -> Any:
    """Annotations as ``mcp.types.Annotations``, also where they were given as a dict."""
    return load_types().Annotations(**given) if isinstance(given, dict) else given


def resource(uri: str, **options: Any) -> Any:
    """Mark a function as a resource without a server; ``mcp.add_resource(fn)`` offers it.

    Raises:
        TypeError: there is no URI.
    """
    if callable(uri):
        raise TypeError("The @resource decorator requires a URI. Use @resource('uri')")

    def decorate(fn: Any) -> Any:
        mark_function(fn, "resource", {"uri": uri, **options})
        return fn

    return decorate
