"""Tools made of functions, under the names of ``fastmcp.tools.function_tool``."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from pydantic import PrivateAttr
from pydantic import ValidationError as PydanticError

from isthmus.compat.fastmcp.components.content import load_types
from isthmus.compat.fastmcp.components.functions import (
    DECORATED,
    OfferedFunction,
    check_decorated,
    mark_function,
)
from isthmus.compat.fastmcp.exceptions import ToolError, ValidationError
from isthmus.compat.fastmcp.tools.model import Tool, ToolResult
from isthmus.compat.fastmcp.tools.output_schema import make_output_schema
from isthmus.compat.fastmcp.utilities.json_schema import is_object_schema
from isthmus.compat.fastmcp.utilities.tasks import read_task_config
from isthmus.compat.fastmcp.utilities.types import NotSet


class FunctionTool(Tool):
    """Tool that is a function.

    Attributes:
        fn: the function.
        run_in_thread: a plain function runs in a thread, so that it may block.
    """

    fn: Any
    run_in_thread: bool = True
    exclude_args: list[str] | None = None

    _function: OfferedFunction = PrivateAttr()

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> "FunctionTool":
        """Make a tool of a function.

        Raises:
            ValueError: no caller can fill its parameters, it has no name, its output schema is no object, or it may be
                a task and is not async.
        """
        given = {**getattr(fn, DECORATED, {}), **options}
        function = OfferedFunction(fn, "tools")
        name = given.pop("name", None) or function.name
        if name == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        returned = function.find_return()
        output = given.pop("output_schema", NotSet)
        if output is NotSet:
            output = make_output_schema(returned)
        elif output is False:
            output = None
        elif output is not None and not is_object_schema(output):
            raise ValueError(
                f"Output schemas must represent object types due to MCP spec limitations. Received: {output!r}"
            )
        description = given.pop("description", None)
        task = read_task_config(given.pop("task", None))
        task.validate_function(function.fn, name)
        parameters = function.make_schema()
        for excluded in given.get("exclude_args") or ():
            parameters.get("properties", {}).pop(excluded, None)
        made = cls(
            fn=function.fn,
            name=name,
            description=function.doc.description if description is None else description,
            parameters=parameters,
            output_schema=output,
            return_type=returned,
            task_config=task,
            annotations=make_annotations(given.pop("annotations", None)),
            **{key: value for key, value in given.items() if value is not None},
        )
        made._function = function
        return made

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Check arguments, call the function, and make a result of what it returns.

        Raises:
            ValidationError: the arguments do not fit.
            ToolError: it took longer than its timeout.
            Exception: whatever the function raised.
        """
        from isthmus.compat.fastmcp.server.context import find_context

        context = find_context()
        strict = context is not None and context.fastmcp.strict_input_validation
        try:
            bound = self._function.bind(arguments, strict=strict)
        except PydanticError as error:
            raise ValidationError(str(error), log_level=logging.WARNING) from error
        call = self._function.call(bound, threaded=self.run_in_thread)
        if self.timeout is None:
            return self.convert_result(await call)
        try:
            async with asyncio.timeout(self.timeout) as timer:
                value = await call
        except TimeoutError:
            if not timer.expired():
                raise
            raise ToolError(
                f"Tool '{self.name}' execution timed out after {self.timeout}s"
            ) from None
        return self.convert_result(value)


def make_annotations(given: Any) -> Any:
    """Annotations as ``mcp.types.ToolAnnotations``, also where they were given as a dict."""
    return load_types().ToolAnnotations(**given) if isinstance(given, dict) else given


def tool(name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
    """Mark a function as a tool without a server; ``mcp.add_tool(fn)`` offers it."""
    if isinstance(name_or_fn, str):
        name = name_or_fn

    def decorate(fn: Any) -> Any:
        check_decorated(fn, "tool")
        mark_function(fn, "tool", {"name": name, **options})
        return fn

    return decorate(name_or_fn) if callable(name_or_fn) else decorate
