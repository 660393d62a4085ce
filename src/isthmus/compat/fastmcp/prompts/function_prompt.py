"""Prompts made of functions, under the names of ``fastmcp.prompts.function_prompt``."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic import PrivateAttr, TypeAdapter

from isthmus.compat.fastmcp.components.functions import (
    DECORATED,
    OfferedFunction,
    check_decorated,
    mark_function,
)
from isthmus.compat.fastmcp.exceptions import FastMCPError, PromptError, ValidationError
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.prompts.model import Prompt, PromptArgument, PromptResult
from isthmus.compat.fastmcp.utilities.tasks import drop_task


class FunctionPrompt(Prompt):
    """Prompt that a function renders.

    Attributes:
        fn: the function.
    """

    fn: Any

    _function: OfferedFunction = PrivateAttr()

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> "FunctionPrompt":
        """Make a prompt of a function.

        Raises:
            ValueError: no caller can fill its parameters, or it has no name.
        """
        given = {**getattr(fn, DECORATED, {}), **options}
        drop_task(given, "a prompt")
        function = OfferedFunction(fn, "prompts")
        name = given.pop("name", None) or function.name
        if name == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        description = given.pop("description", None)
        made = cls(
            fn=function.fn,
            name=name,
            description=function.doc.description if description is None else description,
            arguments=make_prompt_arguments(function),
            **{key: value for key, value in given.items() if value is not None},
        )
        made._function = function
        return made

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Read the texts of the arguments as their types, and call the function.

        Raises:
            ValidationError: an argument is missing; a ValueError before fastmcp 4.2.
            PromptError: an argument cannot be read, or the function failed.
        """
        given = arguments or {}
        required = {one.name for one in self.arguments or () if one.required}
        if missing := required - set(given):
            refusal = ValidationError if FLAVOUR.refuses_missing else ValueError
            raise refusal(f"Missing required arguments: {missing}")
        function = self._function
        try:
            values = {
                name: _read_argument(name, value, function.hints.get(name))
                for name, value in given.items()
                if name in function.signature.parameters
            }
            return self.convert_result(await function.call(function.bind(values)))
        except FastMCPError:
            raise
        except Exception as error:
            raise PromptError(f"Error rendering prompt {self.name!r}: {error}") from error


def make_prompt_arguments(function: OfferedFunction) -> list[PromptArgument]:
    """The arguments of a prompt; those that are no text say how to write them as JSON."""
    schema = function.make_schema()
    found: list[PromptArgument] = []
    for name, told in schema.get("properties", {}).items():
        description = told.get("description")
        annotation = function.signature.parameters[name].annotation
        if annotation is not function.signature.empty and annotation is not str:
            described = json.dumps(
                TypeAdapter(function.hints.get(name, annotation)).json_schema(),
                separators=(",", ":"),
            )
            note = FLAVOUR.prompt_note.format(schema=described)
            description = f"{description}\n\n{note}" if description else note
        needed = name in schema.get("required", [])
        found.append(PromptArgument(name=name, description=description, required=needed))
    return found


def _read_argument(name: str, value: Any, annotation: Any) -> Any:
    """The text of an argument as its type.

    Raises:
        PromptError: it fits neither as it is nor as JSON.
    """
    if annotation is None or not isinstance(value, str):
        return value
    try:
        return (_read_json if FLAVOUR.reads_json else _read_text)(value, annotation)
    except ValueError as error:
        raise PromptError(
            f"Could not convert argument '{name}' with value '{value}' to expected type {annotation}. "
            f"Error: {error}"
        ) from error


def _read_text(value: str, annotation: Any) -> Any:
    """A text as a type: as it is where that is text, else as JSON."""
    adapter = TypeAdapter(annotation)
    try:
        read = adapter.validate_python(value)
    except ValueError:
        read = None
    if isinstance(read, str):
        return read
    try:
        return adapter.validate_json(value)
    except ValueError:
        if read is None:
            raise
        return read


def _read_json(value: str, annotation: Any) -> Any:
    """A text as a type: as JSON where that fits, else as it is; ``str`` always as it is."""
    adapter = TypeAdapter(annotation)
    if annotation is not str:
        with suppress(ValueError):
            return adapter.validate_json(value)
    return adapter.validate_python(value)


def prompt(name_or_fn: Any = None, *, name: str | None = None, **options: Any) -> Any:
    """Mark a function as a prompt without a server; ``mcp.add_prompt(fn)`` offers it."""
    if isinstance(name_or_fn, str):
        name = name_or_fn

    def decorate(fn: Any) -> Any:
        check_decorated(fn, "prompt")
        mark_function(fn, "prompt", {"name": name, **options})
        return fn

    return decorate(name_or_fn) if callable(name_or_fn) else decorate
