"""Sampling handlers over OpenAI-compatible APIs and Anthropic's, made of the providers of hosts.

Text, images and audio, tools and stop reasons are translated both ways; ``maxTokens`` is binding
whatever the provider writes. No error and no message holds the key.
"""

import os
from types import TracebackType
from typing import TYPE_CHECKING, Self

from isthmus.errors import UsageError
from isthmus.host.providers.anthropic import Anthropic
from isthmus.host.providers.openai_compatible import OpenAICompatible
from isthmus.host.providers.provider import Provider
from isthmus.host.sampling.completion import CompletionProgress, CompletionRunner
from isthmus.host.sampling.models import Model
from isthmus.wire import CreateMessageParams, CreateMessageResult

if TYPE_CHECKING:
    from isthmus.auth.tokens.secret import Secret

OPENAI_URL = "https://api.openai.com/v1"
DEFAULT_MAX_TOKENS = 4096


class ApiSamplingHandler:
    """Sampling handler over the API of a provider: one model, bounded in length and time.

    Args:
        provider: the provider.
        model: the provider's own name of the model.
        max_tokens: the most it may write at once, whatever a server asks for.
        timeout: seconds that an answer may take in all.
    """

    def __init__(self, provider: Provider, model: str, max_tokens: int, timeout: float) -> None:
        if not model:
            raise UsageError("model= takes the name of a model, as the provider spells it")
        if max_tokens < 1:
            raise UsageError(f"max_tokens= is 1 or more, not {max_tokens!r}")
        self._model = Model(id=model, provider=provider.name, max_output=max_tokens)
        self._runner = CompletionRunner({provider.name: provider})
        self._timeout = timeout

    async def __call__(self, params: CreateMessageParams) -> CreateMessageResult:
        """Answer a sampling request.

        Raises:
            ProviderError: there is no answer; which kind says why.
            Exhausted: the provider has too much to do.
        """
        written = await self._runner.write(
            self._model,
            params,
            tokens_in=0,
            seconds=self._timeout,
            progress=CompletionProgress(),
        )
        return written.result

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        await self._runner.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


class OpenAISamplingHandler(ApiSamplingHandler):
    """Sampling handler for OpenAI-compatible APIs: OpenAI, Ollama, vLLM and others.

    Example::

        async with OpenAISamplingHandler("gpt-5-mini") as sample:
            async with Client(url, sample=sample, sample_tools=True) as client:
                …

    Whatever a server asks is written without asking the user: hand it to servers you trust, or
    wrap it in a function that asks.

    Args:
        model: the model, as the provider spells it.
        api_key: the key; the variable ``OPENAI_API_KEY`` by default, for OpenAI's own address only.
        base_url: where the API is, with its version: what mostly ends in ``/v1``.
        max_tokens: the most it may write at once, whatever a server asks for.
        timeout: seconds that an answer may take.

    Raises:
        UsageError: there is no key for OpenAI, or no model.
        ConfigError: the key would go to another machine over plain HTTP.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: "Secret | str | None" = None,
        base_url: str = OPENAI_URL,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        timeout: float = 300.0,
    ) -> None:
        if api_key is None and base_url == OPENAI_URL:
            api_key = read_key("OPENAI_API_KEY")
        provider = OpenAICompatible(base_url, api_key)
        super().__init__(provider, model, max_tokens, timeout)


class AnthropicSamplingHandler(ApiSamplingHandler):
    """Sampling handler for Anthropic's API.

    Example::

        async with AnthropicSamplingHandler("claude-sonnet-4-5") as sample:
            async with Client(url, sample=sample, sample_tools=True) as client:
                …

    Whatever a server asks is written without asking the user: hand it to servers you trust, or
    wrap it in a function that asks.

    Args:
        model: the model, as the provider spells it.
        api_key: the key; the variable ``ANTHROPIC_API_KEY`` by default, for Anthropic's own address
            only.
        base_url: where the API is, without its version; Anthropic's by default.
        max_tokens: the most it may write at once, whatever a server asks for.
        timeout: seconds that an answer may take.

    Raises:
        UsageError: there is no key, or no model.
        ConfigError: the key would go to another machine over plain HTTP.
    """

    def __init__(
        self,
        model: str,
        *,
        api_key: "Secret | str | None" = None,
        base_url: str = "",
        max_tokens: int = DEFAULT_MAX_TOKENS,
        timeout: float = 300.0,
    ) -> None:
        if api_key is None:
            if base_url:
                raise UsageError("api_key= is needed for another address than Anthropic's own")
            api_key = read_key("ANTHROPIC_API_KEY")
        provider = Anthropic(api_key, base_url=base_url)
        super().__init__(provider, model, max_tokens, timeout)


def read_key(variable: str) -> str:
    """The key from a variable of the environment.

    Raises:
        UsageError: it is not set.
    """
    key = os.environ.get(variable, "")
    if not key:
        raise UsageError(f"there is no key: set {variable}, or give api_key=")
    return key
