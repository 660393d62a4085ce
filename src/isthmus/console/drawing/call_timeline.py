"""Timeline of a call: its steps from the attempt to the outcome, with times and bars, and its wire messages.

A client of one era and a server of another stand in one conversation: three lanes, and an arrow for each message.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from isthmus.cards.markup import Markup, element
from isthmus.console.drawing.page_parts import (
    NOTHING,
    draw_badge,
    draw_block,
    draw_empty,
    draw_fold,
)
from isthmus.console.drawing.plots import format_seconds
from isthmus.host.model.view import CallRecord, CallStep, WireMessage

BAR_WIDTH = 240
BAR_HEIGHT = 12
MIN_BAR_WIDTH = 2
MAX_SUMMARY_CHARS = 160

STEP_WORDS = {
    "attempt": "attempt",
    "rule": "rule",
    "question": "question",
    "answer": "answer",
    "sent": "upstream",
    "progress": "progress",
    "retry": "again",
    "outcome": "outcome",
}


def draw_timeline(record: CallRecord) -> Markup:
    """The steps of a call, each with its time since the attempt and a bar of how long it took."""
    if not record.steps:
        return draw_empty("No steps were recorded: the call ended before anybody watched.")
    begin = record.steps[0].at
    end = max(record.steps[-1].at, begin + (record.seconds or 0.0))
    rows = [
        _draw_step(step, begin, end, until)
        for step, until in zip(record.steps, _list_ends(record.steps, end), strict=True)
    ]
    return element("ol", {"class": "timeline"}, *rows)


def _list_ends(steps: Sequence[CallStep], end: float) -> list[float]:
    """When each step gives way to the next."""
    return [*(step.at for step in steps[1:]), end]


def _draw_step(step: CallStep, begin: float, end: float, until: float) -> Markup:
    span = max(until - step.at, 0.0)
    lasting = span if step.kind != "outcome" else 0.0
    return element(
        "li",
        {"class": f"step step-{step.kind}"},
        element("span", {"class": "step-at"}, f"+{format_seconds(max(step.at - begin, 0.0))}"),
        element("span", {"class": "step-kind"}, STEP_WORDS.get(step.kind, step.kind)),
        element("span", {"class": "step-text"}, step.text),
        element("span", {"class": "step-bar"}, _draw_span(step.at - begin, span, end - begin)),
        element("span", {"class": "step-span"}, format_seconds(lasting) if lasting else ""),
    )


def _draw_span(start: float, span: float, whole: float) -> Markup:
    """A bar where a step stands within the whole call."""
    scale = BAR_WIDTH / whole if whole > 0 else 0.0
    width = max(span * scale, MIN_BAR_WIDTH)
    x = min(max(start * scale, 0.0), BAR_WIDTH - width)
    frame = {
        "class": "span-picture",
        "viewBox": f"0 0 {BAR_WIDTH} {BAR_HEIGHT}",
        "preserveAspectRatio": "none",
        "aria-hidden": "true",
    }
    ground = {"class": "span-ground", "width": str(BAR_WIDTH), "height": str(BAR_HEIGHT)}
    bar = {
        "class": "span-bar",
        "x": f"{x:.1f}",
        "width": f"{width:.1f}",
        "height": str(BAR_HEIGHT),
    }
    return element("svg", frame, element("rect", ground), element("rect", bar))


def draw_conversation(record: CallRecord, messages: Sequence[WireMessage]) -> Markup:
    """The wire messages of a call between its client, this host and its server."""
    if not messages:
        return draw_empty(
            "No messages were kept of this call. While somebody watches, those of the last 200 calls are."
        )
    begin = messages[0].at
    return element(
        "ol",
        {"class": "wire"},
        _draw_lanes(record),
        *(_draw_message(n, message, begin) for n, message in enumerate(messages)),
    )


def _draw_lanes(record: CallRecord) -> Markup:
    client = f"{record.client or record.asker or 'this program'}"
    lanes = [
        _draw_lane(client, record.client_revision),
        _draw_lane("isthmus", ""),
        _draw_lane(record.server, record.revision),
    ]
    return element("li", {"class": "lanes"}, *lanes)


def _draw_lane(name: str, revision: str) -> Markup:
    spoken = element("span", {"class": "lane-era"}, revision) if revision else NOTHING
    return element("span", {"class": "lane"}, name, spoken)


def _draw_message(number: int, message: WireMessage, begin: float) -> Markup:
    summary, body = describe_message(message.text)
    side = "client" if message.side == "client" else "server"
    # the client's lane is on the left of ours, and the server's on the right
    rightward = (message.direction == "sent") == (side == "server")
    head = element(
        "span",
        {"class": "wire-head"},
        element("span", {"class": "step-at"}, f"+{format_seconds(max(message.at - begin, 0.0))}"),
        element("span", {"class": "wire-arrow"}, "→" if rightward else "←"),
        element("span", {"class": "unseen"}, f"{message.direction}: "),
        element("code", {}, summary),
    )
    look = f"message message-{side} message-{message.direction}"
    return element(
        "li", {"class": look}, draw_fold(head, draw_block(body), key=f"message-{number}")
    )


def describe_message(text: str) -> tuple[str, str]:
    """A message in a few words, and the whole of it to be read."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return text[:MAX_SUMMARY_CHARS], text
    summary = " ".join(_list_words(message)) or type(message).__name__
    try:
        body = json.dumps(message, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        body = text
    return summary[:MAX_SUMMARY_CHARS], body


def _list_words(message: Any) -> Iterator[str]:
    """The method, what it is about, the outcome and the id of a message."""
    if isinstance(message, list):
        yield f"batch of {len(message)}"
        return
    if not isinstance(message, dict):
        return
    if "method" in message:
        yield str(message["method"])
        params = message.get("params")
        if isinstance(params, dict):
            about = params.get("name") or params.get("uri") or params.get("message")
            if isinstance(about, str):
                yield about
    elif "error" in message:
        error = message["error"]
        yield (
            f"error {error.get('code')} {error.get('message')}"
            if isinstance(error, dict)
            else "error"
        )
    elif "result" in message:
        result = message["result"]
        kind = result.get("resultType") if isinstance(result, dict) else None
        yield f"result {kind}" if isinstance(kind, str) else "result"
        if isinstance(result, dict) and result.get("isError") is True:
            yield "isError"
    if "id" in message:
        yield f"#{message['id']}"


def draw_outcome(record: CallRecord) -> Markup:
    """The outcome of a call as a badge."""
    return draw_badge(record.outcome)
