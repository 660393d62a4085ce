"""Prompt, its arguments and messages, under the names of ``fastmcp.prompts.base``."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec
import pydantic_core
from pydantic import BaseModel

from isthmus.compat.fastmcp.components.component import FastMCPComponent, drop_none, dump_model
from isthmus.compat.fastmcp.components.content import is_content, load_types, make_text
from isthmus.wire import GetPromptResult
from isthmus.wire import Prompt as WirePrompt

Role = Literal["user", "assistant"]


class Message:
    """Message of a prompt.

    Args:
        content: text, a content block, or a value that is written as JSON.
        role: who says it.
    """

    def __init__(self, content: Any, role: Role = "user") -> None:
        if isinstance(content, str):
            content = make_text(content)
        elif not is_content(content):
            content = make_text(pydantic_core.to_json(content, fallback=str).decode())
        self.role: Role = role
        self.content = content

    def __repr__(self) -> str:
        return f"Message({self.content!r}, role={self.role!r})"

    def to_mcp_prompt_message(self) -> Any:
        """Convert it to ``mcp.types.PromptMessage``."""
        return load_types().PromptMessage(role=self.role, content=self.content)


def UserMessage(content: Any, role: Role = "user") -> Message:  # noqa: N802 - the foreign name
    """Make a message of the user (2.x)."""
    return Message(content, role)


def AssistantMessage(content: Any, role: Role = "assistant") -> Message:  # noqa: N802 - same
    """Make a message of the model (2.x)."""
    return Message(content, role)


def PromptMessage(role: Role, content: Any) -> Any:  # noqa: N802 - same
    """Make a message of ``mcp.types``."""
    return load_types().PromptMessage(role=role, content=content)


class PromptArgument(BaseModel):
    """Argument of a prompt.

    Attributes:
        name: its name.
        description: what it is for.
        required: whether it must be given.
    """

    name: str
    description: str | None = None
    required: bool = False


class PromptResult:
    """Result of rendering a prompt: messages, a description and meta.

    Args:
        messages: text, or a list of messages.
        description: what they are for.
        meta: meta of the result.

    Raises:
        TypeError: there is something else than messages.
    """

    def __init__(
        self, messages: Any, description: str | None = None, meta: dict[str, Any] | None = None
    ) -> None:
        if isinstance(messages, str):
            messages = [Message(messages)]
        if not isinstance(messages, list):
            raise TypeError(f"messages must be str or list[Message], got {type(messages).__name__}")
        self.messages: list[Message] = messages
        self.description = description
        self.meta = meta

    def to_wire(self) -> GetPromptResult:
        """The result as isthmus sends it."""
        members = {
            "description": self.description,
            "messages": [
                {"role": one.role, "content": dump_model(one.content)} for one in self.messages
            ],
            "_meta": self.meta,
        }
        return msgspec.convert(drop_none(members), GetPromptResult)

    def to_mcp_prompt_result(self) -> Any:
        """Convert it to ``mcp.types.GetPromptResult``."""
        return load_types().GetPromptResult.model_validate(msgspec.to_builtins(self.to_wire()))


class Prompt(FastMCPComponent):
    """Prompt of a server written for fastmcp; a subclass overrides ``render``.

    Attributes:
        arguments: what it takes.
    """

    KEY_PREFIX: ClassVar[str] = "prompt"

    arguments: list[PromptArgument] | None = None

    @classmethod
    def from_function(cls, fn: Callable[..., Any], **options: Any) -> Any:
        """Make a prompt of a function; the options are those of ``@mcp.prompt``."""
        from isthmus.compat.fastmcp.prompts.function_prompt import FunctionPrompt

        return FunctionPrompt.from_function(fn, **options)

    async def render(self, arguments: dict[str, Any] | None = None) -> Any:
        """Render it: a subclass does, and returns text, messages or a :class:`PromptResult`."""
        raise NotImplementedError("Subclasses must implement render()")

    def convert_result(self, value: Any) -> PromptResult:
        """Make a result of what a function returned.

        Raises:
            TypeError: it is no message.
        """
        if isinstance(value, PromptResult):
            return value
        from isthmus.compat.fastmcp.components.component import make_public_meta

        single = isinstance(value, str | Message) or type(value).__name__ == "PromptMessage"
        if not single and not isinstance(value, list | tuple):
            raise TypeError(
                f"Prompt must return str, list[Message], or PromptResult, got {type(value).__name__}"
            )
        items = [value] if single else value
        messages = [make_message(one, number) for number, one in enumerate(items)]
        return PromptResult(messages, self.description, make_public_meta(self.meta))

    def to_wire(self, name: str) -> WirePrompt:
        """The prompt as isthmus lists it."""
        listed = {
            **self.list_shared_members(),
            "name": name,
            "arguments": [drop_none(one.model_dump()) for one in self.arguments or ()],
        }
        return msgspec.convert(drop_none(listed), WirePrompt)

    def to_mcp_prompt(self, **overrides: Any) -> Any:
        """Convert it to ``mcp.types.Prompt``."""
        listed = msgspec.to_builtins(self.to_wire(overrides.pop("name", self.name)))
        return load_types().Prompt.model_validate({**listed, **overrides})


def make_message(value: Any, number: int) -> Message:
    """A message of a list that a prompt returned.

    Raises:
        TypeError: it is none.
    """
    if isinstance(value, Message):
        return value
    if isinstance(value, str) or is_content(value):
        return Message(value)
    if type(value).__name__ == "PromptMessage":
        return Message(value.content, value.role)
    raise TypeError(
        f"messages[{number}] must be Message or str, got {type(value).__name__}. "
        f"Use Message({value!r}) to wrap the value."
    )
