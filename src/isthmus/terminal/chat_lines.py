"""What happens in a conversation, as lines for people."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from isthmus.core.plain_text import visible
from isthmus.host.turns import Ended, ToolAsked, ToolDone, ToolRunning
from isthmus.terminal.lines import Line, block, name, pretty, warning
from isthmus.wire import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolResultContent,
)

__all__ = ["asked", "bar", "done", "ended", "inserted", "show_content", "shown"]

SHOWN = 12
"""Lines of a result that are shown at once; /show has all of them."""

WIDTH = 24

WHY = {
    "length": "The answer was cut: it had become as long as it may be.",
    "rounds": "The model used tools again and again, and was stopped.",
    "budget": "The budget of tokens is used up.",
    "cancelled": "Stopped.",
}


def asked(event: ToolAsked) -> Iterator[Line]:
    """A call that the model wants, with all its arguments."""
    if event.server:
        where = f"{name(event.tool)} of {name(event.server)}"
    else:
        where = f"{name(event.name)}, which there is not"
    yield Line(f"* the model wants to call {where}", "head")
    yield from block(pretty(event.arguments))


def bar(event: ToolRunning) -> str:
    """How far a call has come."""
    message = name(event.message)
    if not event.total or event.total <= 0:
        return f"  … {event.progress:g} {message}".rstrip()
    part = min(1.0, max(0.0, event.progress / event.total))
    full = round(part * WIDTH)
    return f"  [{'#' * full}{'.' * (WIDTH - full)}] {part:4.0%} {message}".rstrip()


def done(event: ToolDone) -> Iterator[Line]:
    """What came of a call; a long result is cut, and says so."""
    lines = list(shown(event.result))
    if event.failed:
        yield Line(
            f"* {name(event.name)} failed{f' ({event.error})' if event.error else ''}", "warn"
        )
    else:
        yield Line(f"* {name(event.name)} is done", "head")
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield Line(f"  … {len(lines) - SHOWN} more lines: /show", "dim")


def shown(result: ToolResultContent) -> Iterator[Line]:
    """A result, whole."""
    yield from show_content(result.content)


def show_content(content: Iterable[Any]) -> Iterator[Line]:
    """Blocks of content, whole."""
    for part in content:
        match part:
            case TextContent():
                yield from block(part.text)
            case ImageContent() | AudioContent():
                yield Line(f"  | [{name(part.mime_type)}, {len(part.data) * 3 // 4} bytes]")
            case ResourceLink():
                yield Line(f"  | [resource {name(part.uri)}]")
            case EmbeddedResource():
                yield from block(part.resource.text or f"[{part.resource.uri}]")
            case _:
                yield from block(json.dumps(part))


def inserted(messages: Iterable[SamplingMessage]) -> Iterator[Line]:
    """The messages of a prompt."""
    for message in messages:
        yield Line(f"* the prompt, as {message.role}", "head")
        parts = message.content if isinstance(message.content, list) else [message.content]
        for part in parts:
            if isinstance(part, TextContent):
                yield from block(part.text)
            else:
                yield Line(f"  | [{visible(type(part).__name__)}]")


def ended(event: Ended) -> Iterator[Line]:
    """Why a turn is over, where it is not simply done."""
    if event.why == "failed":
        yield warning(f"No answer: {event.reason}")
    elif event.why in WHY:
        yield Line(f"  {WHY[event.why]}", "warn")
