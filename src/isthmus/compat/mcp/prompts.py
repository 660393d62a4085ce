"""Prompts of ``MCPServer`` and ``FastMCP``: a function, its arguments, and its messages."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pydantic_core
from pydantic import BaseModel, ConfigDict, validate_call

from isthmus.compat import types
from isthmus.compat.dialect import MCP2, Dialect
from isthmus.compat.exceptions import MCPError
from isthmus.compat.functions import (
    RunInThread,
    find_context_name,
    get_function_name,
    is_async_callable,
    make_arguments_model,
    read_signature,
)
from isthmus.compat.mcp.context import Context
from isthmus.compat.media import Audio, Image


class Message(BaseModel):
    """A message of a prompt; its content is text, a picture, a sound, or a block."""

    role: str = "user"
    content: Any

    def __init__(self, content: Any, **given: Any) -> None:
        super().__init__(content=make_block(content), **given)


class UserMessage(Message):
    """A message of the user."""

    role: str = "user"


class AssistantMessage(Message):
    """A message of the assistant."""

    role: str = "assistant"


def make_block(content: Any) -> Any:
    """Text, a picture or a sound as a content block; a block as it is."""
    if isinstance(content, str):
        return types.TextContent(text=content)
    if isinstance(content, Image):
        return content.to_image_content()
    if isinstance(content, Audio):
        return content.to_audio_content()
    if isinstance(content, dict):
        return types.PromptMessage(role="user", content=content).content
    return content


class PromptArgument(BaseModel):
    """An argument of a prompt."""

    name: str
    description: str | None = None
    required: bool = False


class Prompt:
    """A prompt: a function that gives messages."""

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Any = None,
        arguments: Sequence[Any] | None = None,
        dialect: Dialect = MCP2,
    ) -> None:
        self.name = name or get_function_name(fn)
        if self.name == "<lambda>":
            raise ValueError("You must provide a name for lambda functions")
        self.title, self.icons, self.meta = title, icons, None
        self.description = description or fn.__doc__ or ""
        self.dialect = dialect
        self.context_name = find_context_name(fn, Context)
        skipped = () if self.context_name is None else (self.context_name,)
        model = make_arguments_model(fn, read_signature(fn), skipped, dialect)
        schema = model.model_json_schema()
        required = schema.get("required", [])
        self.arguments = (
            [*arguments]
            if arguments is not None
            else [
                PromptArgument(
                    name=key, description=one.get("description"), required=key in required
                )
                for key, one in schema.get("properties", {}).items()
            ]
        )
        self.is_async = is_async_callable(fn)
        self.fn = _check_calls(fn)

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **given: Any) -> "Prompt":
        """The prompt of a function."""
        return cls(fn, **given)

    def list_item(self) -> Any:
        """The prompt as it is listed."""
        return types.Prompt(
            name=self.name,
            title=self.title,
            description=self.description,
            arguments=[
                types.PromptArgument(
                    name=one.name, description=one.description, required=one.required
                )
                for one in self.arguments
            ],
            icons=self.icons,
        )

    async def render(
        self, arguments: dict[str, Any] | None, context: Any, run_in_thread: RunInThread
    ) -> Any:
        """The messages, or the questions that come before them.

        Raises:
            ValueError: an argument is missing, or the function failed.
        """
        given = arguments or {}
        missing = {one.name for one in self.arguments if one.required} - set(given)
        if missing:
            raise ValueError(f"Missing required arguments: {missing}")
        try:
            bound = given if self.context_name is None else {**given, self.context_name: context}
            if self.is_async:
                made = await self.fn(**bound)
            elif self.dialect.threads:
                made = await run_in_thread(partial(self.fn, **bound))
            else:
                made = self.fn(**bound)
                if hasattr(made, "__await__"):
                    made = await made
            if isinstance(made, types.InputRequiredResult):
                return made
            return [_convert(one) for one in (made if isinstance(made, list | tuple) else [made])]
        except MCPError:
            raise
        except Exception as error:
            told = "" if self.dialect.threads else f": {error}"
            raise ValueError(f"Error rendering prompt {self.name}{told}") from error


def _check_calls(fn: Any) -> Any:
    """The function with its arguments cast, its context as it is."""
    return validate_call(config=ConfigDict(arbitrary_types_allowed=True))(fn)


def _convert(value: Any) -> Any:
    try:
        return to_message(value)
    except Exception as error:
        raise ValueError(f"Could not convert prompt result to message: {value}") from error


def to_message(value: Any) -> Any:
    """A message of what a prompt's function gave."""
    if isinstance(value, dict):
        return types.PromptMessage(
            role=value.get("role", "user"), content=make_block(value["content"])
        )
    if isinstance(value, Message):
        return types.PromptMessage(role=value.role, content=value.content)
    if isinstance(value, types.PromptMessage):
        return value
    if isinstance(value, str | types.ContentBlock | Image | Audio):
        return types.PromptMessage(role="user", content=make_block(value))
    text = pydantic_core.to_json(value, fallback=str, indent=2).decode()
    return types.PromptMessage(role="user", content=make_block(text))
