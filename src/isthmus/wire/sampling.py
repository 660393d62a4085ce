"""Sampling: a server asks the client's model to write a message."""

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isthmus.wire.content import (
    AudioContent,
    ContentBlock,
    ImageContent,
    TextContent,
    UnknownContent,
)
from isthmus.wire.identity import Role
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire
from isthmus.wire.tasks import TaskMetadata
from isthmus.wire.tools import Tool


class ToolUseContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="tool_use"):
    """The model wants a tool called (since 2025-11-25).

    Attributes:
        id: which the :class:`ToolResultContent` names.
        name: of the tool.
        input: its arguments.
        meta: further members, in ``_meta``.
    """

    id: str
    name: str
    input: dict[str, Any]
    meta: Meta | UnsetType = UNSET


class ToolResultContent(Wire, frozen=True, kw_only=True, tag_field="type", tag="tool_result"):
    """The result of a tool, for the model to go on with (since 2025-11-25).

    Attributes:
        tool_use_id: the ``id`` of the :class:`ToolUseContent` it answers.
        content: as in ``CallToolResult``.
        structured_content: an object in 2025-11-25, any JSON since.
        is_error: the tool failed.
        meta: anything else.
    """

    tool_use_id: str
    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


if TYPE_CHECKING:
    SamplingMessageContentBlock: TypeAlias = (
        TextContent
        | ImageContent
        | AudioContent
        | ToolUseContent
        | ToolResultContent
        | UnknownContent
    )
    """A block of content of a message to or from a model."""
else:
    SamplingMessageContentBlock = (
        TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent
    )


class SamplingMessage(Wire, frozen=True, kw_only=True):
    """One message to or from a model; several blocks of content since 2025-11-25.

    Attributes:
        role: ``"user"`` or ``"assistant"``.
        content: one block, or several since 2025-11-25.
        meta: further members, in ``_meta``.
    """

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    meta: Meta | UnsetType = UNSET


class ModelHint(Wire, frozen=True, kw_only=True):
    """Part of a model's name.

    Attributes:
        name: the part of the name, such as ``sonnet``.
    """

    name: str | UnsetType = UNSET


class ModelPreferences(Wire, frozen=True, kw_only=True):
    """Preferences among models: hints in order, and three weights from 0 to 1.

    Attributes:
        hints: models that the server would like, the best first.
        cost_priority: weight of a low price.
        speed_priority: weight of a fast answer.
        intelligence_priority: weight of ability.
    """

    hints: list[ModelHint] | UnsetType = UNSET
    cost_priority: int | float | UnsetType = UNSET
    speed_priority: int | float | UnsetType = UNSET
    intelligence_priority: int | float | UnsetType = UNSET


class ToolChoice(Wire, frozen=True, kw_only=True):
    """Whether the model may, must or must not use tools (since 2025-11-25).

    Attributes:
        mode: ``"auto"`` (may, also where absent), ``"required"`` (must) or ``"none"`` (must not).
    """

    mode: Literal["auto", "required", "none"] | UnsetType = UNSET


class CreateMessageParams(Wire, frozen=True, kw_only=True):
    """``sampling/createMessage``: have a model write the next message.

    Attributes:
        messages: the conversation so far.
        max_tokens: the most the model may write.
        system_prompt: a suggestion the client may change or drop.
        model_preferences: which model would be best.
        include_context: whose context to add; other than ``"none"`` needs the capability.
        temperature: the provider's scale.
        stop_sequences: where the model is to stop.
        metadata: for the provider, in its own format.
        tools: what the model may ask to have called (since 2025-11-25).
        tool_choice: whether it must (since 2025-11-25).
        task: run it as a task (2025-11-25).
        meta: anything else (up to 2025-11-25).
    """

    messages: list[SamplingMessage]
    max_tokens: int
    system_prompt: str | UnsetType = UNSET
    model_preferences: ModelPreferences | UnsetType = UNSET
    include_context: Literal["none", "thisServer", "allServers"] | UnsetType = UNSET
    temperature: int | float | UnsetType = UNSET
    stop_sequences: list[str] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    tools: list[Tool] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType = UNSET
    task: TaskMetadata | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class CreateMessageResult(Wire, frozen=True, kw_only=True):
    """The message a model wrote, and which model it was.

    ``stop_reason`` is ``"endTurn"``, ``"stopSequence"``, ``"maxTokens"``, ``"toolUse"`` or the
    provider's own word.

    Attributes:
        role: ``"user"`` or ``"assistant"``.
        content: one block, or several since 2025-11-25.
        model: the name of the model.
        stop_reason: ``"endTurn"``, ``"stopSequence"``, ``"maxTokens"``, ``"toolUse"`` or the
            provider's own word.
        meta: further members, in ``_meta``.
    """

    role: Role
    content: SamplingMessageContentBlock | list[SamplingMessageContentBlock]
    model: str
    stop_reason: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET
