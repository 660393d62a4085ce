"""Events of a conversation as lines: calls, results, prompts, and how a turn ended."""

from collections.abc import Iterable, Iterator

from isthmus.cards.cards import describe_blocks
from isthmus.cards.lines import StyledLine, display_name, format_json, quote_block, warning_line
from isthmus.core.text import show_invisible
from isthmus.host.turns import Ended, ToolAsked, ToolDone, ToolRunning
from isthmus.wire import (
    SamplingMessage,
    TextContent,
    ToolResultContent,
)

MAX_RESULT_LINES = 12  # /show has all of them

BAR_CELLS = 24

END_REASONS = {
    "length": "The answer was cut off at its length limit.",
    "rounds": "The model was stopped: it made too many tool calls.",
    "budget": "The token budget is used up.",
    "cancelled": "Stopped.",
}


def describe_tool_call(event: ToolAsked) -> Iterator[StyledLine]:
    """A call that the model wants, with all its arguments."""
    if event.server:
        where = f"{display_name(event.tool)} of {display_name(event.server)}"
    else:
        where = f"{display_name(event.name)}, which does not exist"
    yield StyledLine(f"* the model wants to call {where}", "head")
    yield from quote_block(format_json(event.arguments))


def format_progress(event: ToolRunning) -> str:
    """The progress of a call, as a bar."""
    message = display_name(event.message)
    if not event.total or event.total <= 0:
        return f"  … {event.progress:g} {message}".rstrip()
    part = min(1.0, max(0.0, event.progress / event.total))
    full = round(part * BAR_CELLS)
    return f"  [{'#' * full}{'.' * (BAR_CELLS - full)}] {part:4.0%} {message}".rstrip()


def describe_tool_outcome(event: ToolDone) -> Iterator[StyledLine]:
    """The outcome of a call as lines; a long result is cut, and says so."""
    lines = list(describe_result(event.result))
    if event.failed:
        yield StyledLine(
            f"* {display_name(event.name)} failed{f' ({event.error})' if event.error else ''}",
            "warn",
        )
    else:
        yield StyledLine(f"* {display_name(event.name)} is done", "head")
    yield from lines[:MAX_RESULT_LINES]
    if len(lines) > MAX_RESULT_LINES:
        yield StyledLine(f"  … {len(lines) - MAX_RESULT_LINES} more lines: /show", "dim")


def describe_result(result: ToolResultContent) -> Iterator[StyledLine]:
    """A result, whole."""
    yield from describe_blocks(result.content)


def describe_inserted(messages: Iterable[SamplingMessage]) -> Iterator[StyledLine]:
    """The messages of a prompt."""
    for message in messages:
        yield StyledLine(f"* the prompt, as {message.role}", "head")
        parts = message.content if isinstance(message.content, list) else [message.content]
        for part in parts:
            if isinstance(part, TextContent):
                yield from quote_block(part.text)
            else:
                yield StyledLine(f"  | [{show_invisible(type(part).__name__)}]")


def describe_turn_end(event: Ended) -> Iterator[StyledLine]:
    """The reason why a turn ended, where it is not simply done."""
    if event.why == "failed":
        yield warning_line(f"No answer: {event.reason}")
    elif event.why in END_REASONS:
        yield StyledLine(f"  {END_REASONS[event.why]}", "warn")
