"""A model's part, read from a file: for trying a host without a model, and without a network.

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

import json
import os
from pathlib import Path
from typing import Any

from msgspec import structs

from isthmus.errors import UsageError
from isthmus.host.providers.failures import ProviderUnavailable
from isthmus.host.providers.provider import Completion
from isthmus.host.providers.scripted import Scripted, Slow, When, words
from isthmus.wire import TextContent, ToolUseContent

__all__ = ["scripted_from"]

KEYS = {"say", "use", "with", "fail", "pause", "when"}


def scripted_from(path: str | os.PathLike[str], *, name: str = "scripted") -> Scripted:
    """The provider that plays a file.

    Args:
        path: the file.
        name: what the provider is called.

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
        raise UsageError(f"{file}: a script is a list, with what is said first at its beginning")
    found = [_step(step, f"{file}, step {number}") for number, step in enumerate(steps, 1)]
    return Scripted(found, name=name)


def _step(step: Any, where: str) -> Any:
    """One answer, or one that is for some messages only."""
    answer = _answer(step, where)
    if isinstance(step, dict) and "when" in step:
        wanted = str(step["when"]).lower()
        return When(lambda completion: wanted in last(completion), answer)
    return answer


def _answer(step: Any, where: str) -> Any:
    if isinstance(step, str):
        return step
    if isinstance(step, list):
        return [_block(part, where, number) for number, part in enumerate(step)]
    if not isinstance(step, dict) or set(step) - KEYS:
        raise UsageError(f"{where}: a text, a list or an object of {', '.join(sorted(KEYS))}")
    if "fail" in step:
        return ProviderUnavailable(str(step["fail"]))
    answer = [_block(step, where, 0)]
    return Slow(answer, float(step["pause"])) if "pause" in step else answer


def _block(part: Any, where: str, number: int) -> TextContent | ToolUseContent:
    if isinstance(part, str):
        return TextContent(text=part)
    if isinstance(part, dict) and isinstance(part.get("use"), str):
        given = part.get("with", {})
        if isinstance(given, dict):
            return ToolUseContent(id=f"use_{number}", name=part["use"], input=given)
    if isinstance(part, dict) and isinstance(part.get("say"), str):
        return TextContent(text=part["say"])
    raise UsageError(f"{where}: it neither says nor uses anything: {json.dumps(part)}")


def last(completion: Completion) -> str:
    """What the last message says, in small letters."""
    recent = structs.replace(completion, system=None, messages=completion.messages[-1:])
    return words(recent).lower()
