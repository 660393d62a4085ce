"""Provider for Anthropic's messages API."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from isthmus.auth.tokens.secret import Secret
from isthmus.core.sampling import list_blocks
from isthmus.host.providers.http import (
    ProviderHttp,
    ProviderProblem,
    format_tool_result,
    make_aliases,
)
from isthmus.host.providers.openai_compatible import parse_tool_arguments
from isthmus.host.providers.provider import (
    Completion,
    Delta,
    Done,
    Offered,
    ProviderBroke,
    ProviderRefused,
    check_token_count,
)
from isthmus.transports.http.client.requests import Requests
from isthmus.wire import (
    CreateMessageResult,
    ImageContent,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

DEFAULT_BASE_URL = "https://api.anthropic.com"
API_VERSION = "2023-06-01"

# as the protocol spells them; others stay as they are
STOP_REASONS: Mapping[str, str] = {
    "end_turn": "endTurn",
    "max_tokens": "maxTokens",
    "model_context_window_exceeded": "maxTokens",
    "tool_use": "toolUse",
    "stop_sequence": "stopSequence",
}

TOOL_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
MAX_BLOCKS = 1_000


class AnthropicUsage(Struct, frozen=True):
    """Tokens so far."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None

    @property
    def read(self) -> int | None:
        """Tokens read, also from a cache."""
        if self.input_tokens is None:
            return None
        cached = (self.cache_creation_input_tokens or 0) + (self.cache_read_input_tokens or 0)
        return self.input_tokens + cached


class AnthropicMessage(Struct, frozen=True):
    """The message at its beginning."""

    model: str | None = None
    usage: AnthropicUsage = AnthropicUsage()


class AnthropicBlock(Struct, frozen=True):
    """A block at its beginning."""

    type: str
    text: str = ""
    id: str = ""
    name: str = ""


class AnthropicDelta(Struct, frozen=True):
    """New text of a block, or the stop reason of the message."""

    type: str = ""
    text: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class AnthropicEvent(Struct, frozen=True):
    """One event of the answer."""

    type: str
    message: AnthropicMessage | None = None
    index: int = 0
    content_block: AnthropicBlock | None = None
    delta: AnthropicDelta = AnthropicDelta()
    usage: AnthropicUsage | None = None
    error: ProviderProblem | None = None


class AnthropicModel(Struct, frozen=True):
    """A model in the list."""

    id: str
    max_input_tokens: int | None = None


class AnthropicModels(Struct, frozen=True):
    """The list of models."""

    data: list[AnthropicModel] = []


EVENT_DECODER = msgspec.json.Decoder(AnthropicEvent)
MODELS_DECODER = msgspec.json.Decoder(AnthropicModels)


class Anthropic:
    """Provider over the messages API.

    Args:
        key: the key.
        name: what models name the provider by.
        base_url: where the API is, without its version.
        timeout: seconds without a piece of an answer after which it counts as lost.
        requests: makes the requests; None makes them on connections of its own.

    Raises:
        ConfigError: the key would go to another machine over plain HTTP.
    """

    def __init__(
        self,
        key: Secret | str,
        *,
        name: str = "anthropic",
        base_url: str = "",
        timeout: float = 120.0,
        requests: Requests | None = None,
    ) -> None:
        self.name = name
        secret = Secret(key)
        headers = {"x-api-key": secret.reveal(), "anthropic-version": API_VERSION}
        self._http = ProviderHttp(
            name,
            base_url or DEFAULT_BASE_URL,
            headers,
            key=secret,
            timeout=timeout,
            requests=requests,
        )

    async def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:
        """The pieces of the answer as they come; see :class:`Provider`.

        Args:
            completion: the request: model, conversation and limits.
        """
        body, names = make_request(completion)
        answer = AnthropicAnswer(self.name, completion, names)
        async with aclosing(self._http.events("/v1/messages", body)) as events:
            async for part in events:
                event = self._http.decode(EVENT_DECODER, part.data)
                if event.error is not None:
                    raise self._http.problem(event.error)
                if event.type == "message_stop":
                    break
                text = answer.add(event)
                if text:
                    yield Delta(text)
        if answer.finish is None:
            raise self._http.unfinished()
        yield answer.done()

    async def models(self) -> Sequence[Offered]:
        """The models there are.

        Raises:
            ProviderError: the provider does not say.
        """
        body = await self._http.get("/v1/models?limit=1000")
        listed = self._http.decode(MODELS_DECODER, body)
        return [Offered(id=model.id, context=model.max_input_tokens) for model in listed.data]

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()


class AnthropicAnswer:
    """An answer, as far as it has come.

    Args:
        provider: the provider's name.
        completion: what was asked.
        names: the names of tools as the model knows them, by our own.
    """

    def __init__(self, provider: str, completion: Completion, names: Mapping[str, str]) -> None:
        self.finish: str | None = None
        self._provider = provider
        self._model = completion.model
        self._own = {alias: name for name, alias in names.items()}
        self._blocks: dict[int, tuple[AnthropicBlock, list[str]]] = {}
        self._read: int | None = None
        self._wrote: int | None = None

    def add(self, event: AnthropicEvent) -> str:
        """Add one event; returns the text that it adds."""
        if event.message is not None:
            self._model = event.message.model or self._model
            self._count(event.message.usage)
        if event.usage is not None:
            self._count(event.usage)
        self.finish = event.delta.stop_reason or self.finish
        if event.content_block is not None:
            return self._begin(event.index, event.content_block)
        found = self._blocks.get(event.index)
        if event.type != "content_block_delta" or found is None:
            return ""
        found[1].append(event.delta.text or event.delta.partial_json)
        return event.delta.text if found[0].type == "text" else ""

    def _begin(self, index: int, block: AnthropicBlock) -> str:
        if len(self._blocks) >= MAX_BLOCKS:
            raise ProviderBroke(f"a model gave more than {MAX_BLOCKS} blocks")
        self._blocks[index] = (block, [block.text])
        return block.text if block.type == "text" else ""

    def _count(self, usage: AnthropicUsage) -> None:
        self._read = usage.read if usage.read is not None else self._read
        self._wrote = usage.output_tokens if usage.output_tokens is not None else self._wrote

    def done(self) -> Done:
        """The whole message."""
        content: list[Any] = []
        for block, pieces in self._blocks.values():
            text = "".join(pieces)
            if block.type == "text" and text:
                content.append(TextContent(text=text))
            elif block.type == "tool_use":
                name = self._own.get(block.name, block.name)
                given = parse_tool_arguments(self._provider, name, text)
                content.append(ToolUseContent(id=block.id, name=name, input=given))
        content = content or [TextContent(text="")]
        return Done(
            result=CreateMessageResult(
                role="assistant",
                content=content[0] if len(content) == 1 else content,
                model=self._model,
                stop_reason=STOP_REASONS.get(self.finish or "", self.finish or ""),
            ),
            tokens_in=check_token_count(self._read),
            tokens_out=check_token_count(self._wrote),
        )


def make_request(completion: Completion) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the body of the request, and the names that tools have in it.

    Raises:
        ProviderRefused: something in it cannot be said here.
    """
    if completion.schema is not None:
        raise ProviderRefused("the messages API takes no JSON schema: give the model a tool")
    names = make_aliases([tool.name for tool in completion.tools])
    body: dict[str, Any] = {
        "model": completion.model,
        "max_tokens": completion.max_tokens,
        "stream": True,
        "messages": [
            {
                "role": message.role,
                "content": [make_block(part, names) for part in list_blocks(message.content)],
            }
            for message in completion.messages
        ],
    }
    if completion.system:
        body["system"] = completion.system
    if completion.temperature is not None:
        body["temperature"] = completion.temperature
    if completion.stop:
        body["stop_sequences"] = list(completion.stop)
    if completion.tools:
        body["tools"] = [
            {
                "name": names[tool.name],
                "description": tool.description or "",
                "input_schema": tool.input_schema,
            }
            for tool in completion.tools
        ]
        choice = completion.tool_choice
        if choice is not None and choice.mode:
            body["tool_choice"] = {"type": TOOL_CHOICES[choice.mode]}
    return body, names


def make_block(part: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Make a block as the API has it.

    Raises:
        ProviderRefused: there is no way to say it.
    """
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImageContent):
        source = {"type": "base64", "media_type": part.mime_type, "data": part.data}
        return {"type": "image", "source": source}
    if isinstance(part, ToolUseContent):
        name = names.get(part.name, part.name)
        return {"type": "tool_use", "id": part.id, "name": name, "input": part.input}
    if isinstance(part, ToolResultContent):
        return make_tool_result(part)
    kind = getattr(part, "mime_type", type(part).__name__)
    raise ProviderRefused(f"the messages API has no way to give a model {kind}")


def make_tool_result(part: ToolResultContent) -> dict[str, Any]:
    """Make the result of a tool, with its pictures, where it has nothing but text and those."""
    plain = all(isinstance(one, TextContent | ImageContent) for one in part.content)
    content: Any = (
        [make_block(one, {}) for one in part.content]
        if plain and part.content
        else format_tool_result(part)
    )
    whole = {"type": "tool_result", "tool_use_id": part.tool_use_id, "content": content}
    if part.is_error is not UNSET:
        whole["is_error"] = part.is_error
    return whole
