"""Conversations that others recorded, read from text.

Four forms are taken. A **transcript** has lines ``C {…}`` and ``S {…}`` under headings ``## …``, as
in :mod:`isthmus.testing.transcript`, with its placeholders. **JSON Lines** and a **JSON array** hold
messages, or objects with a message and who sent it; **one message** stands alone. Who sent a bare
message follows from its method, or from what it answers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import UsageError
from isthmus.linter.conversation import Conversation, Side, key, other
from isthmus.linter.demands import Placeholder
from isthmus.revisions import METHODS, Revision

__all__ = ["read"]

MODERN_META: Mapping[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "transcript", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    },
}
"""What ``"<modern>"`` stands for in a transcript."""

CLIENT_WORDS = {
    "c",
    "client",
    "out",
    "outgoing",
    "send",
    "sent",
    "request",
    "client-to-server",
    ">",
}
SERVER_WORDS = {"s", "server", "in", "incoming", "receive", "received", "response",
                "server-to-client", "<"}  # fmt: skip
SIDE_NAMES = ("side", "from", "sender", "direction", "dir", "source")
MESSAGE_NAMES = ("message", "data", "payload", "body", "frame", "raw")


def read(
    text: str, revision: Revision | None = None, judged: tuple[Side, ...] = ("client", "server")
) -> list[Conversation]:
    """The conversations in a text.

    Args:
        text: any of the forms above.
        revision: what they are held to; by default what they say themselves.
        judged: whose messages are looked at.

    Raises:
        UsageError: it holds no messages.
    """
    if any(line.startswith(("C {", "S {", "C [", "S [")) for line in text.splitlines()):
        recorded = list(_transcripts(text))
    else:
        recorded = [[(number, *_unwrapped(entry)) for number, entry in _entries(text)]]
    found = [_conversation(entries, revision, judged) for entries in recorded if entries]
    if not found:
        raise UsageError(
            "there are no messages: give JSON Lines, a JSON array, or lines 'C {…}' and 'S {…}'"
        )
    return found


Entry: TypeAlias = tuple[int, Side | None, Any]
"""A line, who said it if that is known, and the message."""


def _conversation(
    entries: list[Entry], revision: Revision | None, judged: tuple[Side, ...]
) -> Conversation:
    """What was said; the first revision that is stated holds for what came before, too."""
    first = _told(entries, Conversation(revision))
    return _told(entries, Conversation(revision, judged, first.revision))


def _told(entries: list[Entry], conversation: Conversation) -> Conversation:
    for number, side, message in entries:
        conversation.add(side or _sender(message, conversation), message, number)
    return conversation


# Transcripts


def _transcripts(text: str) -> Iterator[list[Entry]]:
    entries: list[Entry] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            yield entries
            entries = []
        elif line[:2] in {"C ", "S "}:
            side: Side = "client" if line[0] == "C" else "server"
            message = _decoded(line[2:])
            entries.append((number, side, _filled(_whole(message))))
    yield entries


def _whole(message: Any) -> Any:
    """A message, or each of a batch, with the member that a transcript leaves out."""
    if isinstance(message, list):
        return [_whole(one) for one in message]
    return {"jsonrpc": "2.0", **message} if isinstance(message, dict) else message


def _filled(value: Any) -> Any:
    """A message of a transcript, its placeholders told from text."""
    if value == "<modern>":
        return dict(MODERN_META)
    if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
        return Placeholder(value)
    if isinstance(value, dict):
        return {name: _filled(member) for name, member in value.items()}
    return [_filled(item) for item in value] if isinstance(value, list) else value


# Messages


def _entries(text: str) -> Iterator[tuple[int, Any]]:
    """What the text holds, with its lines; in an array, its places."""
    whole = _decoded(text)
    if isinstance(whole, list):
        yield from enumerate(whole, 1)
    elif not isinstance(whole, bytes):
        yield 1, whole
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                yield number, _decoded(line)


def _decoded(text: str) -> Any:
    """JSON, or the bytes where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.encode()


def _unwrapped(entry: Any) -> tuple[Side | None, Any]:
    """Who said it, if that is said, and the message itself."""
    if not isinstance(entry, dict) or "jsonrpc" in entry:
        return None, entry
    message = next((entry[name] for name in MESSAGE_NAMES if name in entry), entry)
    if isinstance(message, str):
        message = message.encode()
    for name in SIDE_NAMES:
        word = str(entry.get(name, "")).lower()
        if word in CLIENT_WORDS or word.startswith("client"):
            return "client", message
        if word in SERVER_WORDS or word.startswith("server"):
            return "server", message
    return None, message


def _sender(message: Any, conversation: Conversation) -> Side:
    """Who will have said a message."""
    if not isinstance(message, dict):
        return "client"
    method = message.get("method")
    if method is None:
        return _answerer(message, conversation)
    row = METHODS.get(method) if isinstance(method, str) else None
    if row is not None and len(row.senders) == 1:
        return next(iter(row.senders))
    if method == "notifications/progress":
        return "server"
    return "client"


def _answerer(message: dict[str, Any], conversation: Conversation) -> Side:
    """The side that was asked under the answer's id last, and has not answered yet."""
    for said in reversed(conversation.said):
        waits = said.kind == "request" and not said.answers
        if waits and key(said.message["id"]) == key(message.get("id")):
            return other(said.side)
    return "server"
