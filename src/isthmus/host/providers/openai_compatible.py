"""Provider for OpenAI's chat completions, which many others speak as well.

OpenAI, Ollama, vLLM, llama.cpp, LM Studio and most gateways do.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.auth.tokens.secret import Secret
from isthmus.core.sampling import list_blocks
from isthmus.host.providers.http import (
    ProviderHttp,
    ProviderProblem,
    format_tool_result,
    make_aliases,
)
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
    AudioContent,
    CreateMessageResult,
    ImageContent,
    SamplingMessage,
    TextContent,
    ToolResultContent,
    ToolUseContent,
)

# as the protocol spells them; others stay as they are
STOP_REASONS: Mapping[str, str] = {
    "stop": "endTurn",
    "length": "maxTokens",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
}

SOUND_FORMATS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
MAX_TOOL_CALLS = 128


class OpenAIFunction(Struct, frozen=True):
    """Part of the use of a tool."""

    name: str | None = None
    arguments: str | None = None


class OpenAIToolCall(Struct, frozen=True):
    """Part of the use of a tool; the parts of one have the same index."""

    index: int = 0
    id: str | None = None
    function: OpenAIFunction = OpenAIFunction()


class OpenAIDelta(Struct, frozen=True):
    """New text, and new parts of tool calls."""

    content: str | None = None
    tool_calls: list[OpenAIToolCall] | None = None


class OpenAIChoice(Struct, frozen=True):
    """One answer; only one is asked for."""

    delta: OpenAIDelta = OpenAIDelta()
    finish_reason: str | None = None


class OpenAIUsage(Struct, frozen=True):
    """Tokens of the completion."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class OpenAIChunk(Struct, frozen=True):
    """One event of the answer."""

    choices: list[OpenAIChoice] = []
    model: str | None = None
    usage: OpenAIUsage | None = None
    error: ProviderProblem | str | None = None


class OpenAIModel(Struct, frozen=True):
    """A model in the list; its context has a different name at every server."""

    id: str
    meta: dict[str, Any] | None = None
    context_length: Any = None
    max_model_len: Any = None
    context_window: Any = None

    @property
    def context(self) -> int | None:
        """Tokens it can read and write together."""
        meta = (self.meta or {}).get("n_ctx")
        for value in (meta, self.context_length, self.max_model_len, self.context_window):
            if isinstance(value, int) and value > 0:
                return value
        return None


class OpenAIModels(Struct, frozen=True):
    """The list of models."""

    data: list[OpenAIModel] = []


CHUNK_DECODER = msgspec.json.Decoder(OpenAIChunk)
MODELS_DECODER = msgspec.json.Decoder(OpenAIModels)


class OpenAICompatible:
    """Provider over chat completions.

    Example::

        OpenAICompatible("http://127.0.0.1:11434/v1", name="local")

    Args:
        base_url: where the API is, with its version: what ends in ``/v1`` mostly.
        key: the key; None for none.
        name: what models name the provider by.
        timeout: seconds without a piece of an answer after which it counts as lost.
        headers: for every request, beyond the usual ones.
        requests: makes the requests; None makes them on connections of its own.

    Raises:
        ConfigError: the key would go to another machine over plain HTTP.
    """

    def __init__(
        self,
        base_url: str,
        key: Secret | str | None = None,
        *,
        name: str = "openai",
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
        requests: Requests | None = None,
    ) -> None:
        self.name = name
        secret = Secret(key) if key else None
        auth = {"Authorization": f"Bearer {secret.reveal()}"} if secret else {}
        self._http = ProviderHttp(
            name,
            base_url,
            {**(headers or {}), **auth},
            key=secret,
            timeout=timeout,
            requests=requests,
        )
        self._renamed: set[str] = set()  # models that want another member for max_tokens

    async def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:
        """The pieces of the answer as they come; see :class:`Provider`.

        Args:
            completion: the request: model, conversation and limits.
        """
        body, names = make_request(completion)
        answer = OpenAIAnswer(completion, names)
        while True:
            renamed = completion.model in self._renamed
            if renamed:
                body["max_completion_tokens"] = body.pop("max_tokens")
            try:
                async with aclosing(self._http.events("/chat/completions", body)) as events:
                    async for event in events:
                        if event.data.strip() == b"[DONE]":
                            break
                        for delta in self._decode(answer, event.data):
                            yield delta
                break
            except ProviderRefused as error:
                # newer models of OpenAI want the other name, and everybody else this one
                if renamed or "max_completion_tokens" not in str(error):
                    raise
                self._renamed.add(completion.model)
        if answer.finish is None:
            raise self._http.unfinished()
        yield answer.done(self.name)

    async def models(self) -> Sequence[Offered]:
        """The models there are.

        Raises:
            ProviderError: the provider does not say.
        """
        listed = self._http.decode(MODELS_DECODER, await self._http.get("/models"))
        return [Offered(id=model.id, context=model.context) for model in listed.data]

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    def _decode(self, answer: "OpenAIAnswer", data: bytes) -> list[Delta]:
        chunk = self._http.decode(CHUNK_DECODER, data)
        if chunk.error is not None:
            raise self._http.problem(chunk.error)
        return answer.add(chunk)


class OpenAIToolUse:
    """A use of a tool, as far as it has come."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = self.name = ""
        self.arguments: list[str] = []


class OpenAIAnswer:
    """An answer, as far as it has come.

    Args:
        completion: what was asked.
        names: the names of tools as the model knows them, by our own.
    """

    def __init__(self, completion: Completion, names: Mapping[str, str]) -> None:
        self.finish: str | None = None
        self._model = completion.model
        self._own = {alias: name for name, alias in names.items()}
        self._texts: list[str] = []
        self._uses: dict[int, OpenAIToolUse] = {}
        self._usage = OpenAIUsage()

    def add(self, chunk: OpenAIChunk) -> list[Delta]:
        """Add one event; returns the text that it adds."""
        self._model = chunk.model or self._model
        self._usage = chunk.usage or self._usage
        found: list[Delta] = []
        for choice in chunk.choices[:1]:
            self.finish = choice.finish_reason or self.finish
            if choice.delta.content:
                self._texts.append(choice.delta.content)
                found.append(Delta(choice.delta.content))
            for call in choice.delta.tool_calls or ():
                self._call(call)
        return found

    def _call(self, call: OpenAIToolCall) -> None:
        use = self._uses.setdefault(call.index, OpenAIToolUse())
        if len(self._uses) > MAX_TOOL_CALLS:
            raise ProviderBroke(f"a model asks for more than {MAX_TOOL_CALLS} tools at once")
        use.id = call.id or use.id
        use.name = call.function.name or use.name
        use.arguments.append(call.function.arguments or "")

    def done(self, provider: str) -> Done:
        """The whole message.

        Raises:
            ProviderBroke: the model's arguments for a tool are no JSON object.
        """
        text = "".join(self._texts)
        content: list[Any] = [TextContent(text=text)] if text or not self._uses else []
        for number, use in sorted(self._uses.items(), key=itemgetter(0)):
            content.append(
                ToolUseContent(
                    id=use.id or f"call_{number}",
                    name=self._own.get(use.name, use.name),
                    input=parse_tool_arguments(provider, use.name, "".join(use.arguments)),
                )
            )
        reason = STOP_REASONS.get(self.finish or "", self.finish or "")
        # some say "stop" after they asked for a tool
        reason = "toolUse" if self._uses and reason == "endTurn" else reason
        return Done(
            result=CreateMessageResult(
                role="assistant",
                content=content[0] if len(content) == 1 else content,
                model=self._model,
                stop_reason=reason,
            ),
            tokens_in=check_token_count(self._usage.prompt_tokens),
            tokens_out=check_token_count(self._usage.completion_tokens),
        )


def parse_tool_arguments(provider: str, name: str, arguments: str) -> dict[str, Any]:
    """Parse the arguments of a tool as a model wrote them; none are an empty object.

    Raises:
        ProviderBroke: they are no JSON object.
    """
    try:
        found: dict[str, Any] = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ProviderBroke(
            f"the model of provider {provider!r} gave tool {name[:100]!r} arguments that are no JSON "
            f"object: {error}",
            provider=provider,
        ) from error
    return found


def make_request(completion: Completion) -> tuple[dict[str, Any], dict[str, str]]:
    """Make the body of the request, and the names that tools have in it.

    Raises:
        ProviderRefused: something in it cannot be said here.
    """
    names = make_aliases([tool.name for tool in completion.tools])
    messages: list[dict[str, Any]] = []
    if completion.system:
        messages.append({"role": "system", "content": completion.system})
    for message in completion.messages:
        messages += make_messages(message, names)
    body: dict[str, Any] = {
        "model": completion.model,
        "messages": messages,
        "max_tokens": completion.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if completion.temperature is not None:
        body["temperature"] = completion.temperature
    if completion.stop:
        body["stop"] = list(completion.stop)
    if completion.schema is not None:
        form = {"name": "answer", "schema": completion.schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    if completion.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": names[tool.name],
                    "description": tool.description or "",
                    "parameters": tool.input_schema,
                },
            }
            for tool in completion.tools
        ]
        choice = completion.tool_choice
        if choice is not None and choice.mode:
            body["tool_choice"] = choice.mode
    return body, names


def make_messages(message: SamplingMessage, names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Make the API's messages of one message; each result of a tool is a message."""
    results, parts, uses = [], [], []
    for part in list_blocks(message.content):
        if isinstance(part, ToolResultContent):
            results.append(
                {
                    "role": "tool",
                    "tool_call_id": part.tool_use_id,
                    "content": format_tool_result(part),
                }
            )
        elif isinstance(part, ToolUseContent):
            arguments = msgspec.json.encode(part.input).decode()
            function = {"name": names.get(part.name, part.name), "arguments": arguments}
            uses.append({"id": part.id, "type": "function", "function": function})
        else:
            parts.append(make_content_part(part))
    if not parts and not uses:
        return results
    texts = [part["text"] for part in parts if part["type"] == "text"]
    # a list is for those that can have pictures: not every server takes one for plain text
    content: Any = "\n".join(texts) if len(texts) == len(parts) else parts
    whole: dict[str, Any] = {"role": message.role, "content": content or None}
    if uses:
        whole["tool_calls"] = uses
    return [*results, whole]


def make_content_part(part: Any) -> dict[str, Any]:
    """Make a content part of a text, a picture or a sound.

    Raises:
        ProviderRefused: there is no way to say it.
    """
    if isinstance(part, TextContent):
        return {"type": "text", "text": part.text}
    if isinstance(part, ImageContent):
        url = f"data:{part.mime_type};base64,{part.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    if isinstance(part, AudioContent) and part.mime_type in SOUND_FORMATS:
        sound = {"data": part.data, "format": SOUND_FORMATS[part.mime_type]}
        return {"type": "input_audio", "input_audio": sound}
    kind = getattr(part, "mime_type", type(part).__name__)
    raise ProviderRefused(f"chat completions have no way to give a model {kind}")
