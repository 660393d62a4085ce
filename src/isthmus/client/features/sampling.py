"""Sampling on a client: a model writes for a server, within what both may say to each other."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from msgspec import UNSET, structs

from isthmus.client.model.callbacks import maybe_await
from isthmus.client.model.questions import BadQuestion, UndeclaredQuestion
from isthmus.core.answers import Cancelled, Declined
from isthmus.core.sampling import find_request_flaw, find_result_flaw, list_blocks
from isthmus.errors import Rejected, UsageError
from isthmus.revisions import Revision
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    CreateMessageResult,
    ImageContent,
    SamplingCapability,
    TextContent,
    ToolUseContent,
)

Block: TypeAlias = TextContent | ImageContent | AudioContent | ToolUseContent

Sampled: TypeAlias = str | CreateMessageResult | Block | Sequence[Block] | Declined | Cancelled
"""What a model gave: text, blocks, or the whole result; ``Declined()`` where the user says no."""

Sample: TypeAlias = Callable[[CreateMessageParams], Awaitable[Sampled] | Sampled]
"""Has a model write: gets the conversation, gives what it wrote."""


class Sampling:
    """Answers ``sampling/createMessage``.

    Args:
        sample: has a model write.
        capability: what of sampling the client declared.
        longest: messages a conversation may have; None for any number.
    """

    def __init__(
        self, sample: Sample, capability: SamplingCapability, longest: int | None = None
    ) -> None:
        self._sample = sample
        self._capability = capability
        self._longest = longest

    async def answer(self, params: CreateMessageParams, revision: Revision) -> CreateMessageResult:
        """Have the model write.

        Raises:
            BadQuestion: the request is not one that may be put to a model.
            Rejected: the user does not want it answered.
            UsageError: the handler gave what no model may say.
        """
        params = self._check_request(params, revision)
        written = await maybe_await(self._sample(params))
        if isinstance(written, Declined | Cancelled):
            raise Rejected
        result = (
            written if isinstance(written, CreateMessageResult) else make_message_result(written)
        )
        wrong = find_result_flaw(params, result)
        if wrong:
            raise UsageError(f"the sampling handler's message cannot be sent: {wrong}")
        return result

    def _check_request(
        self, params: CreateMessageParams, revision: Revision
    ) -> CreateMessageParams:
        """The request as the handler may see it."""
        if (params.tools or params.tool_choice) and self._capability.tools is UNSET:
            # spec 2025-11-25 client/sampling#tools-in-sampling: clients MUST return an error
            raise UndeclaredQuestion(
                -32602, "Invalid params: this client did not declare sampling.tools"
            )
        if self._longest is not None and len(params.messages) > self._longest:
            raise BadQuestion(
                -32602,
                f"Invalid params: {len(params.messages)} messages, and this client takes at most "
                f"{self._longest}",
            )
        wrong = find_request_flaw(params)
        if wrong:
            # spec 2025-11-25 client/sampling#error-handling: -32602 for what is out of balance
            raise BadQuestion(-32602, f"Invalid params: {wrong}")
        declares = "context" in revision.members.get(SamplingCapability, ())
        if declares and self._capability.context is UNSET and params.include_context:
            # spec 2025-11-25 client/sampling#capabilities: only with sampling.context; the client
            # MAY ignore it otherwise
            return structs.replace(params, include_context=UNSET)
        return params


def make_message_result(written: Any) -> CreateMessageResult:
    """Make the whole result of what a handler gave.

    Raises:
        UsageError: it is nothing that a model writes.
    """
    parts = [TextContent(text=written)] if isinstance(written, str) else list_blocks(written)
    if not parts or not all(isinstance(part, Block) for part in parts):
        raise UsageError(
            f"a sampling handler gives text or a CreateMessageResult, not {written!r}; or blocks "
            "of content, or Declined()"
        )
    uses = any(isinstance(part, ToolUseContent) for part in parts)
    return CreateMessageResult(
        role="assistant",
        # spec 2025-11-25 client/sampling: one block alone, or a list of them
        content=parts[0] if len(parts) == 1 else parts,
        model="unknown",
        stop_reason="toolUse" if uses else "endTurn",
    )
