"""Provider of models: the protocol that completes a conversation in pieces, its values and errors."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

from isthmus.host.model.errors import HostError
from isthmus.wire import CreateMessageResult, SamplingMessage, Tool, ToolChoice

MAX_REPORTED_TOKENS = 1_000_000_000


class Completion(Struct, frozen=True, kw_only=True):
    """A request to a provider: the conversation that a model continues.

    Attributes:
        model: the provider's own name of the model.
        messages: the conversation so far, oldest message first.
        max_tokens: the most it may write.
        system: the system prompt; None for none.
        tools: what it may ask to have called.
        tool_choice: whether it may, must or must not; None leaves it to the model.
        temperature: on the provider's scale; None for the provider's own.
        stop: texts at which it stops.
        schema: a JSON schema that the answer is to obey; None for plain text.
        metadata: for the provider, in its own format.
    """

    model: str
    messages: Sequence[SamplingMessage]
    max_tokens: int
    system: str | None = None
    tools: Sequence[Tool] = ()
    tool_choice: ToolChoice | None = None
    temperature: float | None = None
    stop: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = {}


class Delta(Struct, frozen=True):
    """A piece of text of an answer.

    Attributes:
        text: the text, to be added to what came before.
    """

    text: str


class Done(Struct, frozen=True, kw_only=True):
    """The end of an answer: the whole message, and its tokens.

    Attributes:
        result: what was written, by which model, and why it stopped.
        tokens_in: tokens the model read; None where the provider does not say.
        tokens_out: tokens it wrote; None where the provider does not say.
    """

    result: CreateMessageResult
    tokens_in: int | None = None
    tokens_out: int | None = None


class Offered(Struct, frozen=True, kw_only=True):
    """A model that a provider says it has.

    Attributes:
        id: the provider's own name of it.
        context: tokens it can read and write together; None where the provider does not say.
    """

    id: str
    context: int | None = None


def check_token_count(count: int | None) -> int | None:
    """Check a provider's count of tokens; None where it cannot be, so that it is estimated."""
    return count if count is not None and 0 <= count <= MAX_REPORTED_TOKENS else None


class Provider(Protocol):
    """Protocol of a provider of models.

    Attributes:
        name: what models name it by in the catalog of models.
    """

    name: str

    def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:
        """The pieces of the answer as they come, and :class:`Done` as the last one, exactly once.

        Closing the generator, as cancelling who reads it does, lets go of the connection at once.

        Args:
            completion: the request: model, conversation and limits.

        Raises:
            ProviderError: there is no answer; which kind says what to do about it.
        """
        ...

    async def models(self) -> Sequence[Offered]:
        """The models there are.

        Raises:
            ProviderError: the provider does not say.
        """
        ...

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        ...


class ProviderError(HostError):
    """A provider of models failed to answer.

    Args:
        message: the text of the error.

    Attributes:
        provider: its name.
        retry_after: seconds after which another try is worth it; None where nobody said so.
        again: whether the same request may be sent again soon, as long as nothing of an answer has
            come.
    """

    # whether the same request may be sent again soon, as long as nothing of an answer has come
    again = False

    def __init__(
        self, message: str, *, provider: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.retry_after = retry_after


class BadCredentials(ProviderError):
    """The key is missing, wrong, or not allowed to use this model."""


class RateLimited(ProviderError):
    """The provider wants fewer requests, or more money; ``retry_after`` is what it said."""

    again = True


class TooLong(ProviderError):
    """The conversation does not fit into the model's context."""


class ProviderRefused(ProviderError):
    """The provider does not take the request: the model is unknown, or a member has no meaning."""


class ProviderUnavailable(ProviderError):
    """The provider does not answer, or only says that it cannot."""

    again = True


class ProviderBroke(ProviderError):
    """The answer broke off or made no sense: what had come until then is no answer."""


class ProviderEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Entry of a provider in a models file.

    Attributes:
        kind: which of the ways; ``openai`` is the one of OpenAI, Ollama, vLLM and llama.cpp.
        base_url: where; empty for the usual place of ``anthropic``.
        key: where its key is: ``${env:NAME}`` or ``${secret:NAME}``; never the key itself.
        timeout: seconds without a piece of an answer after which it counts as lost.
        concurrency: completions at once.
    """

    kind: Literal["openai", "anthropic", "manual"] = "openai"
    base_url: str = ""
    key: str = ""
    timeout: float = 120.0
    concurrency: int = 8
