"""Sampling: messages to a client's model, and what it wrote, in the forms that authors use."""

from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import UNSET, UnsetType

from isthmus.core.sampling import find_unbalanced_tools
from isthmus.errors import UsageError
from isthmus.server.schema.results import Audio, Image
from isthmus.wire import (
    AudioContent,
    ClientCapabilities,
    CreateMessageResult,
    ImageContent,
    ModelHint,
    ModelPreferences,
    Role,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)

T = TypeVar("T")

SamplingBlock: TypeAlias = (
    TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent | UnknownContent
)
"""One piece of a message to or from a model."""


class SampledMessage:
    """The message that the client's model wrote.

    Args:
        result: as it came.

    Attributes:
        role: who speaks, mostly ``"assistant"``.
        content: what was written, always a list.
        model: the model that wrote it.
        stop_reason: why it stopped: ``"endTurn"``, ``"maxTokens"``, ``"toolUse"``, …, or None.
    """

    __slots__ = ("content", "model", "role", "stop_reason")

    def __init__(self, result: CreateMessageResult) -> None:
        said = result.content
        self.role: Role = result.role
        self.content: list[SamplingBlock] = list(said) if isinstance(said, list) else [said]
        self.model = result.model
        self.stop_reason: str | None = result.stop_reason or None

    @property
    def text(self) -> str:
        """All text in it, put together."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_uses(self) -> list[ToolUseContent]:
        """The tools the model wants called; answer each with a ``ToolResultContent``."""
        return [block for block in self.content if isinstance(block, ToolUseContent)]

    @property
    def message(self) -> SamplingMessage:
        """The same as a message, to go on with the conversation."""
        alone = len(self.content) == 1
        return SamplingMessage(role=self.role, content=self.content[0] if alone else self.content)

    def __repr__(self) -> str:
        return f"SampledMessage({self.text!r}, model={self.model!r})"


SamplingInput: TypeAlias = str | Image | Audio | SamplingBlock | SamplingMessage | SampledMessage
"""A message: text or a block the user says, or a whole message."""


def make_conversation(said: SamplingInput | Sequence[SamplingInput]) -> list[SamplingMessage]:
    """Messages to a model; what is not a message yet is the user's.

    Results of tools that stand side by side are one message, as the uses they answer were.

    Raises:
        UsageError: there is nothing in it, or something that cannot be said to a model: each use
            of a tool needs its result in the next message.
    """
    if isinstance(said, str) or not isinstance(said, Sequence):
        said = [said]
    messages = [_make_message(one) for one in _gather_results(said)]
    if not messages:
        raise UsageError("sampling needs at least one message")
    # spec 2025-11-25 client/sampling#tool-use-and-result-balance: a MUST
    wrong = find_unbalanced_tools(messages)
    if wrong:
        raise UsageError(f"this conversation cannot be sent: {wrong}")
    return messages


def _gather_results(said: Sequence[SamplingInput]) -> list[Any]:
    """Gather results of tools that stand side by side into one message."""
    found: list[Any] = []
    results: list[SamplingBlock] = []
    for one in said:
        if not isinstance(one, ToolResultContent):
            results = []
            found.append(one)
            continue
        if not results:
            found.append(results)
        results.append(one)
    return [
        SamplingMessage(role="user", content=one[0] if len(one) == 1 else one)
        if isinstance(one, list)
        else one
        for one in found
    ]


def _make_message(said: SamplingInput) -> SamplingMessage:
    if isinstance(said, SamplingMessage):
        return said
    if isinstance(said, SampledMessage):
        return said.message
    if isinstance(said, str):
        return SamplingMessage(role="user", content=TextContent(text=said))
    if isinstance(said, Image | Audio):
        return SamplingMessage(role="user", content=said.to_content())
    return SamplingMessage(role="user", content=said)


def make_preferences(
    wanted: ModelPreferences | str | Sequence[str] | None,
) -> ModelPreferences | UnsetType:
    """Make the model preferences; names are hints, the best first."""
    if wanted is None:
        return UNSET
    if isinstance(wanted, ModelPreferences):
        return wanted
    names = [wanted] if isinstance(wanted, str) else wanted
    return ModelPreferences(hints=[ModelHint(name=name) for name in names])


def omit_none(value: T | None) -> T | UnsetType:
    """A member that is left out where there is nothing to say."""
    return UNSET if value is None else value


def choose_context(wanted: Any, capabilities: ClientCapabilities) -> Any:
    """Choose whose context to add, as far as the client can."""
    sampling = capabilities.sampling
    # spec 2026-07-28 client/sampling#capabilities: SHOULD NOT without sampling.context
    able = sampling is not UNSET and sampling.context is not UNSET
    return UNSET if wanted is None or (wanted != "none" and not able) else wanted
