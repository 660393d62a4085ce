"""Completions of providers, within limits that are enforced here whatever the provider does.

An answer is tried again only while nothing of it has come. A provider that does not answer is left
alone for a while. What is longer than it may be is cut, and the connection closed.
"""

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing

import msgspec
from msgspec import Struct

from isthmus.core.sampling import find_result_flaw, list_blocks
from isthmus.host.model.errors import Exhausted
from isthmus.host.model.tokens import BYTES_PER_TOKEN
from isthmus.host.providers.provider import (
    Completion,
    Delta,
    Done,
    Provider,
    ProviderBroke,
    ProviderError,
    ProviderUnavailable,
)
from isthmus.host.sampling.models import Model
from isthmus.wire import CreateMessageParams, CreateMessageResult, TextContent, ToolUseContent

MAX_TRIES = 3
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 10.0  # the longest that a provider may ask for

# a provider which does not answer is left alone so long, unless it says how long
PROVIDER_REST_S = 10.0
MAX_PROVIDER_REST_S = 600.0  # whatever it says: it may have been wrong
MAX_BYTES_PER_TOKEN = 8
SLACK_BYTES = 64  # no tokenizer needs more text for a token, on the average of a longer text

# of a block that no model has written: its type, its id and the name of its tool
BLOCK_FRAME_BYTES = 512
DEFAULT_CONCURRENCY = 8


class CompletionProgress:
    """Progress of an answer, for whoever has to stop it.

    Attributes:
        written: bytes of text.
    """

    __slots__ = ("written",)

    def __init__(self) -> None:
        self.written = 0

    @property
    def tokens(self) -> int:
        """Tokens written, about."""
        return math.ceil(self.written / BYTES_PER_TOKEN)


class WrittenMessage(Struct, frozen=True, kw_only=True):
    """A written message, with its tokens.

    Attributes:
        result: the message, and the model that wrote it.
        tokens_in: tokens read; estimated where the provider does not say.
        tokens_out: tokens written; likewise.
        cut: whether it had to be stopped here.
    """

    result: CreateMessageResult
    tokens_in: int
    tokens_out: int
    cut: bool = False


class ProviderRest(Struct, frozen=True):
    """A provider that is left alone."""

    until: float
    why: str


class CompletionRunner:
    """Runs completions of providers.

    Args:
        providers: by name.
        at_once: completions at once, by provider.
        clock: gives seconds that never go back.
    """

    def __init__(
        self,
        providers: Mapping[str, Provider],
        at_once: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.providers = dict(providers)
        self._at_once = dict(at_once or {})
        self._clock = clock
        self._places: dict[str, asyncio.Semaphore] = {}
        self._rests: dict[str, ProviderRest] = {}
        self._retired: list[Provider] = []

    def replace(self, providers: Mapping[str, Provider], at_once: Mapping[str, int]) -> None:
        """Replace the providers; those of before are closed in the end."""
        kept = {id(provider) for provider in providers.values()}
        self._retired += [one for one in self.providers.values() if id(one) not in kept]
        self.providers = dict(providers)
        self._at_once = dict(at_once)
        self._places = {}

    def unhealthy(self) -> dict[str, str]:
        """Providers that are left alone at the moment, and why."""
        now = self._clock()
        self._rests = {name: rest for name, rest in self._rests.items() if rest.until > now}
        return {name: rest.why for name, rest in self._rests.items()}

    def missing(self, model: Model) -> str:
        """Why a model's provider cannot be asked; empty where it can."""
        if model.provider in self.providers:
            return ""
        return f"there is no provider {model.provider!r}"

    async def write(
        self,
        model: Model,
        params: CreateMessageParams,
        *,
        tokens_in: int,
        seconds: float,
        progress: CompletionProgress,
    ) -> WrittenMessage:
        """Run a completion of a model.

        Args:
            model: who.
            params: what; at most ``max_tokens`` are written.
            tokens_in: the length of the prompt, about.
            seconds: how long it may take in all.
            progress: is told how far it has come.

        Raises:
            ProviderError: there is no answer.
            Exhausted: the provider has too much to do.
        """
        provider = self.providers[model.provider]
        completion = make_completion(model, params)
        place = self._places.setdefault(
            model.provider,
            asyncio.Semaphore(self._at_once.get(model.provider, DEFAULT_CONCURRENCY)),
        )
        try:
            # a person who writes by hand has the time of a person
            by_hand = getattr(provider, "by_hand", False)
            async with asyncio.timeout(None if by_hand else seconds), place:
                written = await self._try_several(provider, completion, tokens_in, progress)
        except TimeoutError as error:
            if place.locked() and not progress.written:
                raise Exhausted(f"provider {model.provider!r} has too much to do") from error
            raise ProviderBroke(
                f"provider {model.provider!r} did not finish within {seconds:g} s",
                provider=model.provider,
            ) from error
        wrong = find_result_flaw(params, written.result)
        if wrong:
            raise ProviderBroke(f"provider {model.provider!r}: {wrong}", provider=model.provider)
        self._rests.pop(model.provider, None)
        return written

    async def close(self) -> None:
        """Close all providers."""
        for provider in (*self._retired, *self.providers.values()):
            await provider.close()

    async def _try_several(
        self,
        provider: Provider,
        completion: Completion,
        tokens_in: int,
        progress: CompletionProgress,
    ) -> WrittenMessage:
        """Run a completion in a few tries."""
        pause = FIRST_PAUSE_S
        for left in reversed(range(MAX_TRIES)):
            try:
                return await self._try_once(provider, completion, tokens_in, progress)
            except ProviderError as error:
                wait = pause if error.retry_after is None else error.retry_after
                if not error.again or progress.written or not left or wait > MAX_PAUSE_S:
                    self._leave_alone(provider.name, error)
                    raise
            await asyncio.sleep(wait)
            pause *= 2
        raise AssertionError("the last try returns or raises")  # pragma: no cover

    def _leave_alone(self, provider: str, error: ProviderError) -> None:
        if error.again:
            seconds = PROVIDER_REST_S if error.retry_after is None else error.retry_after
            seconds = min(seconds, MAX_PROVIDER_REST_S)
            why = "does not answer" if isinstance(error, ProviderUnavailable) else "wants a pause"
            self._rests[provider] = ProviderRest(self._clock() + seconds, f"it {why}")

    async def _try_once(
        self,
        provider: Provider,
        completion: Completion,
        tokens_in: int,
        progress: CompletionProgress,
    ) -> WrittenMessage:
        most = completion.max_tokens * MAX_BYTES_PER_TOKEN + SLACK_BYTES
        texts: list[str] = []
        async with aclosing(provider.complete(completion)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Done):
                    check_tool_uses(piece, completion, provider.name)
                    return settle_answer(piece, completion, tokens_in)
                if isinstance(piece, Delta):
                    texts.append(piece.text)
                    progress.written += len(piece.text.encode("utf-8", "replace"))
                if progress.written > most:
                    # spec 2026-07-28 client/sampling#sampling-parameters: MUST respect maxTokens;
                    # leaving the block closes the connection
                    break
            else:
                raise ProviderBroke(f"provider {provider.name!r} did not end its answer")
        return stop_answer("".join(texts), completion, tokens_in)


def make_completion(model: Model, params: CreateMessageParams) -> Completion:
    """Make a provider's completion of a request."""
    most = params.max_tokens
    if model.max_output is not None:
        most = min(most, model.max_output)
    return Completion(
        model=model.called,
        messages=params.messages,
        max_tokens=most,
        system=params.system_prompt or None,
        tools=params.tools or (),
        tool_choice=params.tool_choice or None,
        temperature=params.temperature if isinstance(params.temperature, int | float) else None,
        stop=params.stop_sequences or (),
        metadata=params.metadata or {},
    )


def check_tool_uses(done: Done, completion: Completion, provider: str) -> None:
    """Check that uses of tools, which cannot be cut, are not longer than they may be.

    Raises:
        ProviderBroke: it is.
    """
    uses = [part for part in list_blocks(done.result.content) if isinstance(part, ToolUseContent)]
    most = completion.max_tokens * MAX_BYTES_PER_TOKEN + SLACK_BYTES + BLOCK_FRAME_BYTES * len(uses)
    size = sum(len(msgspec.json.encode(use)) for use in uses)
    if size > most:
        # spec 2026-07-28 client/sampling#sampling-parameters: MUST respect maxTokens
        raise ProviderBroke(
            f"provider {provider!r} asks for tools in {size} bytes, and {most} are the most that "
            f"{completion.max_tokens} tokens come to",
            provider=provider,
        )


def settle_answer(done: Done, completion: Completion, tokens_in: int) -> WrittenMessage:
    """Settle a finished answer; it is cut where the provider wrote more than it should have."""
    text = "".join(
        part.text for part in list_blocks(done.result.content) if isinstance(part, TextContent)
    )
    wrote = done.tokens_out
    if wrote is None:
        wrote = math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)
    read = tokens_in if done.tokens_in is None else done.tokens_in
    size = len(text.encode("utf-8", "replace"))
    told = done.tokens_out is not None and wrote > completion.max_tokens
    over = told or size > completion.max_tokens * MAX_BYTES_PER_TOKEN + SLACK_BYTES
    if over and isinstance(done.result.content, TextContent):
        # spec 2026-07-28 client/sampling#sampling-parameters: MUST respect maxTokens
        least = completion.max_tokens * BYTES_PER_TOKEN / max(size, 1)
        kept = truncate_text(text, completion.max_tokens / wrote if told else least)
        return WrittenMessage(
            result=make_cut_result(kept, done.result.model),
            tokens_in=read,
            tokens_out=wrote,
            cut=True,
        )
    return WrittenMessage(result=done.result, tokens_in=read, tokens_out=wrote)


def stop_answer(text: str, completion: Completion, tokens_in: int) -> WrittenMessage:
    """Make a message of an answer that had to be stopped."""
    size = max(len(text.encode("utf-8", "replace")), 1)
    kept = truncate_text(text, completion.max_tokens * BYTES_PER_TOKEN / size)
    return WrittenMessage(
        result=make_cut_result(kept, completion.model),
        tokens_in=tokens_in,
        tokens_out=math.ceil(size / BYTES_PER_TOKEN),
        cut=True,
    )


def truncate_text(text: str, share: float) -> str:
    """Truncate a text to a share, at the end of a word where there is one."""
    if share >= 1:
        return text
    kept = text[: int(len(text) * share)]
    words, blank, _ = kept.rpartition(" ")
    return words if blank else kept


def make_cut_result(text: str, model: str) -> CreateMessageResult:
    """Make the result of a message that became too long."""
    return CreateMessageResult(
        role="assistant", content=TextContent(text=text), model=model, stop_reason="maxTokens"
    )
