"""Scripted provider: it plays answers from a program or a file, for tests, examples and demonstrations.

A file is a JSON list; each member answers once, in their order::

    [
      "Hello.",
      {"use": "shop__book", "with": {"day": "May 1"}},
      [{"use": "a__x"}, {"use": "b__y"}],
      {"say": "word by word", "pause": 0.05},
      {"fail": "nobody answers"},
      {"when": "weather", "say": "It rains."}
    ]

A member with ``when`` answers whenever the last message has those words, as often as that is.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct, structs, to_builtins

from isthmus.core.sampling import list_blocks
from isthmus.errors import UsageError
from isthmus.host.providers.provider import Completion, Delta, Done, Offered, ProviderUnavailable
from isthmus.wire import CreateMessageResult, TextContent, ToolUseContent

STEP_MEMBERS = {"say", "use", "with", "fail", "pause", "when"}


class Slow(Struct, frozen=True):
    """An answer that takes its time.

    Attributes:
        answer: what is answered.
        seconds: the pause before each piece of it; infinity never answers.
    """

    answer: Any
    seconds: float


class When(Struct, frozen=True):
    """An answer for some completions only, as often as they come.

    Attributes:
        fits: says whether it is one of them.
        answer: what is answered.
    """

    fits: Callable[[Completion], bool]
    answer: Any


# text, the use of a tool, blocks, a whole result, an error, one of them after a pause, or a
# function that makes one of them of the completion
ScriptedAnswer: TypeAlias = (
    str
    | ToolUseContent
    | Sequence[TextContent | ToolUseContent]
    | CreateMessageResult
    | Exception
    | Slow
    | Callable[[Completion], Any]
)


class Scripted:
    """Provider that answers by a script, the same on every run; a word is a token.

    Example::

        Scripted("always this")
        Scripted(["first", ToolUseContent(id="1", name="add", input={"a": 1}), "last"])
        Scripted([When(lambda asked: "weather" in words(asked), "It rains."), "anything else"])

    Args:
        script: one answer for every completion, or a list: the first :class:`When` that fits
            answers; otherwise the next of the plain answers, each of which is given once.
        name: what models name the provider by.
        models: what it says it has.
        deaf: it goes on writing beyond ``max_tokens``, as a model must not.

    Attributes:
        asked: every completion it was given, in order.
        closed: whether it was closed.
    """

    def __init__(
        self,
        script: ScriptedAnswer | Sequence[ScriptedAnswer | When],
        *,
        name: str = "scripted",
        models: Sequence[str] = ("scripted",),
        deaf: bool = False,
    ) -> None:
        listed = isinstance(script, Sequence) and not isinstance(script, str)
        steps: Sequence[Any] = script if listed else [When(accept_all, script)]  # type: ignore[assignment] # the check above
        self.name = name
        self.asked: list[Completion] = []
        self.closed = False
        self._rules = [step for step in steps if isinstance(step, When)]
        self._rest = [step for step in steps if not isinstance(step, When)]
        self._models = models
        self._deaf = deaf

    async def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:
        """The script's answer, one word in each piece.

        Args:
            completion: the request: model, conversation and limits.

        Raises:
            UsageError: the script is over.
            Exception: the script says so.
        """
        self.asked.append(completion)
        answer, pause = self._next(completion), 0.0
        while isinstance(answer, Slow) or callable(answer):
            if isinstance(answer, Slow):
                answer, pause = answer.answer, answer.seconds
            else:
                answer = answer(completion)
        if isinstance(answer, Exception):
            await wait_pause(pause)
            try:
                raise answer
            finally:
                del answer  # it keeps this frame, and must not be kept by it
        done = self._done(completion, answer)
        for piece in split_pieces(done.result):
            await wait_pause(pause)
            yield Delta(piece)
        await wait_pause(pause)
        yield done

    async def models(self) -> Sequence[Offered]:
        """The names it was made with."""
        return [Offered(id=name) for name in self._models]

    async def close(self) -> None:
        """Note that the provider was closed."""
        self.closed = True

    def _next(self, completion: Completion) -> Any:
        for rule in self._rules:
            if rule.fits(completion):
                return rule.answer
        if not self._rest:
            raise UsageError(
                f"the script of {self.name!r} has ended: completion {len(self.asked)} has no answer"
            )
        return self._rest.pop(0)

    def _done(self, completion: Completion, answer: Any) -> Done:
        if isinstance(answer, CreateMessageResult):
            result = answer
        else:
            parts = [TextContent(text=answer)] if isinstance(answer, str) else list_blocks(answer)
            uses = any(isinstance(part, ToolUseContent) for part in parts)
            result = CreateMessageResult(
                role="assistant",
                content=parts[0] if len(parts) == 1 else list(parts),
                model=completion.model,
                stop_reason="toolUse" if uses else "endTurn",
            )
        if not self._deaf:
            result = truncate_result(result, completion.max_tokens)
        read = len(join_prompt(completion).split())
        wrote = sum(len(piece.split()) for piece in split_pieces(result)) or 1
        return Done(result=result, tokens_in=read, tokens_out=wrote)


def accept_all(_completion: Completion) -> bool:
    """Accept every completion."""
    return True


def join_prompt(completion: Completion) -> str:
    """Join all that a model is given to read into one text, for rules that look for a word."""
    parts = [part for message in completion.messages for part in list_blocks(message.content)]
    texts = [
        part.text if isinstance(part, TextContent) else str(to_builtins(part)) for part in parts
    ]
    return "\n".join([completion.system, *texts] if completion.system else texts)


def split_pieces(result: CreateMessageResult) -> list[str]:
    """Split the text of a message into words, blanks kept."""
    text = "".join(
        part.text for part in list_blocks(result.content) if isinstance(part, TextContent)
    )
    found: list[str] = []
    for word in text.split(" "):
        found.append(word if not found else f" {word}")
    return [piece for piece in found if piece]


def truncate_result(result: CreateMessageResult, most: int) -> CreateMessageResult:
    """Truncate a message to so many words; one that uses tools is left as it is."""
    written = result.content
    if not isinstance(written, TextContent) or len(written.text.split()) <= most:
        return result
    text = " ".join(written.text.split()[:most])
    return CreateMessageResult(
        role=result.role,
        content=TextContent(text=text),
        model=result.model,
        stop_reason="maxTokens",
    )


async def wait_pause(seconds: float) -> None:
    """Wait for a pause; infinity never ends."""
    if seconds == float("inf"):
        await asyncio.Event().wait()
    elif seconds:
        await asyncio.sleep(seconds)


def read_script(path: str | os.PathLike[str], *, name: str = "scripted") -> Scripted:
    """Read the provider that plays a file.

    Raises:
        UsageError: there is no such file, or it is no script; the message says what and where.
    """
    file = Path(path)
    try:
        steps = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}") from None
    if not isinstance(steps, list):
        raise UsageError(f"{file}: a script is a list of answers, in their order")
    found = [_read_step(step, f"{file}, step {number}") for number, step in enumerate(steps, 1)]
    return Scripted(found, name=name)


def _read_step(step: Any, where: str) -> Any:
    answer = _read_answer(step, where)
    if isinstance(step, dict) and "when" in step:
        wanted = str(step["when"]).lower()
        return When(lambda completion: wanted in read_last_message(completion), answer)
    return answer


def _read_answer(step: Any, where: str) -> Any:
    if isinstance(step, str):
        return step
    if isinstance(step, list):
        return [_read_block(part, where, number) for number, part in enumerate(step)]
    if not isinstance(step, dict) or set(step) - STEP_MEMBERS:
        raise UsageError(
            f"{where}: a text, a list or an object of {', '.join(sorted(STEP_MEMBERS))}"
        )
    if "fail" in step:
        return ProviderUnavailable(str(step["fail"]))
    answer = [_read_block(step, where, 0)]
    return Slow(answer, float(step["pause"])) if "pause" in step else answer


def _read_block(part: Any, where: str, number: int) -> TextContent | ToolUseContent:
    if isinstance(part, str):
        return TextContent(text=part)
    if isinstance(part, dict) and isinstance(part.get("use"), str):
        given = part.get("with", {})
        if isinstance(given, dict):
            return ToolUseContent(id=f"use_{number}", name=part["use"], input=given)
    if isinstance(part, dict) and isinstance(part.get("say"), str):
        return TextContent(text=part["say"])
    raise UsageError(f"{where}: it has neither text nor tool calls: {json.dumps(part)}")


def read_last_message(completion: Completion) -> str:
    """The text of the last message, in small letters."""
    recent = structs.replace(completion, system=None, messages=completion.messages[-1:])
    return join_prompt(recent).lower()
