"""Wire conversations as text: they read as documentation and run as tests.

A transcript is a text file of conversations. ``##`` begins one and names it, ``#`` is a comment,
``C`` is what the client says and ``S`` what the server must say, in that order::

    ## A tool that asks, modern: the question travels in the result.
    C {"id": 1, "method": "tools/call", "params": {"name": "book", "_meta": "<modern>"}}
    S {"id": 1, "result": {"resultType": "input_required", "requestState": "<state>", "...": ""}}

``"jsonrpc": "2.0"`` is understood; an array is a batch. In an ``S`` line ``"<name>"`` takes whatever is there and keeps
it; the same name later, in a ``C`` or an ``S`` line, stands for that value. ``"<any>"`` takes
anything and keeps nothing. A member ``"..."`` in an object allows members that are not listed.
``"<modern>"`` is the ``_meta`` of a 2026-07-28 request from a client that can answer everything,
``"<modern-tasks>"`` that of one that also has the extension for tasks.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from isthmus.runtime.channel import Channel, Outgoing
from isthmus.wire import CLIENT_CAPABILITIES, TASKS

MODERN_META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "transcript", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    },
}
TASKS_META: dict[str, Any] = {
    **MODERN_META,
    CLIENT_CAPABILITIES: {**MODERN_META[CLIENT_CAPABILITIES], "extensions": {TASKS: {}}},
}
ANY_FURTHER_MEMBERS = "..."


class Mismatch(AssertionError):
    """The server did not say what the transcript has it say."""


class TranscriptLine(msgspec.Struct, frozen=True):
    """One message of a conversation.

    Attributes:
        number: its line in the file.
        side: who says it.
        message: what is said, with placeholders.
    """

    number: int
    side: Literal["C", "S"]
    message: Any


class ScriptedConversation(msgspec.Struct, frozen=True):
    """One conversation of a transcript: its name, and what is said in it."""

    name: str
    lines: list[TranscriptLine]


class MessageListener(Protocol):
    """Is told every message of a conversation: who said it, and its bytes."""

    def __call__(self, side: Literal["C", "S"], data: bytes) -> None:
        """Take note of one message."""
        ...


def load(path: Path) -> list[ScriptedConversation]:
    """Read the conversations of a transcript.

    Args:
        path: a file of comments, names and messages, one a line.

    Raises:
        ValueError: a line is not a comment, a name or a message; the message says where.
    """
    conversations: list[ScriptedConversation] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if text.startswith("## "):
            conversations.append(ScriptedConversation(text[3:].strip(), []))
        elif text.startswith(("C ", "S ")) and conversations:
            side: Literal["C", "S"] = "C" if text[0] == "C" else "S"
            try:
                message = json.loads(text[2:])
            except ValueError as error:
                raise ValueError(f"{path.name}:{number}: {error}") from error
            conversations[-1].lines.append(TranscriptLine(number, side, message))
        elif text.strip() and not text.startswith("#"):
            raise ValueError(
                f"{path.name}:{number}: neither '##', '#', 'C {{' nor 'S {{': {text!r}"
            )
    return conversations


async def play(
    conversation: ScriptedConversation, channel: Channel, heard: MessageListener | None = None
) -> None:
    """Play a transcript: send the client's lines on a channel, and check the server's lines.

    Args:
        conversation: what is to be said.
        channel: the client's end of a connection to the server.
        heard: is told every message as it was on the wire.

    Raises:
        Mismatch: the server said something else, or nothing; the message says where.
    """
    kept: dict[str, Any] = {"<modern>": MODERN_META, "<modern-tasks>": TASKS_META}
    for line in conversation.lines:
        if line.side == "C":
            data = msgspec.json.encode(_to_frame(_fill_placeholders(line.message, kept)))
            if heard is not None:
                heard("C", data)
            await channel.send(Outgoing(data))
            continue
        delivery = await channel.receive()
        if delivery is None:
            raise Mismatch(f"line {line.number}: the server hung up instead of saying it")
        if heard is not None:
            heard("S", delivery.data)
        said = json.loads(delivery.data)
        problem = _difference(_to_frame(line.message), said, kept, "$")
        if problem:
            raise Mismatch(
                f"{conversation.name}, line {line.number}: {problem}\n"
                f"   the server said {delivery.data.decode()}"
            )


def _to_frame(message: Any) -> Any:
    """Put in what is understood; each member of a batch is a message."""
    if isinstance(message, list):
        return [_to_frame(member) for member in message]
    return {"jsonrpc": "2.0", **message}


def _is_placeholder(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("<") and value.endswith(">")


def _fill_placeholders(value: Any, kept: dict[str, Any]) -> Any:
    """A client's message with its placeholders replaced by what they stand for."""
    if _is_placeholder(value):
        return kept.get(value, value)
    if isinstance(value, dict):
        return {key: _fill_placeholders(member, kept) for key, member in value.items()}
    if isinstance(value, list):
        return [_fill_placeholders(item, kept) for item in value]
    return value


def _difference(wanted: Any, said: Any, kept: dict[str, Any], path: str) -> str | None:
    """The difference of what the server said from what it was to say, or None."""
    if wanted == "<any>":
        return None
    if _is_placeholder(wanted):
        if wanted not in kept:
            kept[wanted] = said
        wanted = kept[wanted]
    if isinstance(wanted, dict) and isinstance(said, dict):
        return _objects(wanted, said, kept, path)
    if isinstance(wanted, list) and isinstance(said, list):
        return _lists(wanted, said, kept, path)
    if wanted != said or isinstance(wanted, bool) is not isinstance(said, bool):
        return f"at {path}: expected {json.dumps(wanted)}, got {json.dumps(said)}"
    return None


def _objects(
    wanted: dict[str, Any], said: dict[str, Any], kept: dict[str, Any], path: str
) -> str | None:
    for key, member in wanted.items():
        if key == ANY_FURTHER_MEMBERS:
            continue
        if key not in said:
            return f"at {path}: no member {key!r}"
        problem = _difference(member, said[key], kept, f"{path}.{key}")
        if problem:
            return problem
    more = [] if ANY_FURTHER_MEMBERS in wanted else sorted(said.keys() - wanted.keys())
    return f"at {path}: unexpected members {more}" if more else None


def _lists(
    wanted: Sequence[Any], said: Sequence[Any], kept: dict[str, Any], path: str
) -> str | None:
    if len(wanted) != len(said):
        return f"at {path}: expected {len(wanted)} items, got {len(said)}"
    for i, (item, other) in enumerate(zip(wanted, said, strict=True)):
        problem = _difference(item, other, kept, f"{path}[{i}]")
        if problem:
            return problem
    return None
