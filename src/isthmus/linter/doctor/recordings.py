"""Recordings: conversations that others recorded, read from text.

Four forms are taken. A **transcript** has lines ``C {…}`` and ``S {…}`` under headings ``## …``, as
in :mod:`isthmus.testing.transcript`, with its placeholders. **JSON Lines** and a **JSON array** hold
messages, or objects with a message and who sent it; **one message** stands alone. Who sent a bare
message follows from its method, or from what it answers.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from isthmus.errors import UsageError
from isthmus.linter.rules.conversation import (
    ObservedConversation,
    Side,
    get_other_side,
    make_id_key,
)
from isthmus.linter.rules.shapes import Placeholder
from isthmus.revisions import METHODS, Revision

MODERN_META: Mapping[str, Any] = {  # what ``"<modern>"`` stands for in a transcript
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "transcript", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {
        "elicitation": {"form": {}, "url": {}},
        "sampling": {},
        "roots": {},
    },
}

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


def read_recordings(
    text: str, revision: Revision | None = None, judged: tuple[Side, ...] = ("client", "server")
) -> list[ObservedConversation]:
    """The conversations in a text.

    Args:
        text: any of the forms above.
        revision: what they are held to; by default what they say themselves.
        judged: whose messages are looked at.

    Raises:
        UsageError: it holds no messages.
    """
    if any(line.startswith(("C {", "S {", "C [", "S [")) for line in text.splitlines()):
        recorded = list(_parse_transcripts(text))
    else:
        recorded = [[(number, *_unwrap_entry(entry)) for number, entry in _parse_entries(text)]]
    found = [_make_conversation(entries, revision, judged) for entries in recorded if entries]
    if not found:
        raise UsageError(
            "there are no messages: give JSON Lines, a JSON array, or lines 'C {…}' and 'S {…}'"
        )
    return found


# A line, who said it if that is known, and the message.
RecordedEntry: TypeAlias = tuple[int, Side | None, Any]


def _make_conversation(
    entries: list[RecordedEntry], revision: Revision | None, judged: tuple[Side, ...]
) -> ObservedConversation:
    """Make a conversation; the first revision that is stated holds for what came before, too."""
    first = _replay(entries, ObservedConversation(revision))
    return _replay(entries, ObservedConversation(revision, judged, first.revision))


def _replay(
    entries: list[RecordedEntry], conversation: ObservedConversation
) -> ObservedConversation:
    for number, side, message in entries:
        conversation.add(side or _guess_sender(message, conversation), message, number)
    return conversation


# Transcripts


def _parse_transcripts(text: str) -> Iterator[list[RecordedEntry]]:
    entries: list[RecordedEntry] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            yield entries
            entries = []
        elif line[:2] in {"C ", "S "}:
            side: Side = "client" if line[0] == "C" else "server"
            message = _decode_json(line[2:])
            entries.append((number, side, _mark_placeholders(_add_envelope(message))))
    yield entries


def _add_envelope(message: Any) -> Any:
    """A message, or each of a batch, with the member that a transcript leaves out."""
    if isinstance(message, list):
        return [_add_envelope(one) for one in message]
    return {"jsonrpc": "2.0", **message} if isinstance(message, dict) else message


def _mark_placeholders(value: Any) -> Any:
    """A message of a transcript, its placeholders told from text."""
    if value == "<modern>":
        return dict(MODERN_META)
    if isinstance(value, str) and value.startswith("<") and value.endswith(">"):
        return Placeholder(value)
    if isinstance(value, dict):
        return {name: _mark_placeholders(member) for name, member in value.items()}
    return [_mark_placeholders(item) for item in value] if isinstance(value, list) else value


# Messages


def _parse_entries(text: str) -> Iterator[tuple[int, Any]]:
    """The messages of a text with their lines; in an array, with their places."""
    whole = _decode_json(text)
    if isinstance(whole, list):
        yield from enumerate(whole, 1)
    elif not isinstance(whole, bytes):
        yield 1, whole
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                yield number, _decode_json(line)


def _decode_json(text: str) -> Any:
    """JSON, or the bytes where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text.encode()


def _unwrap_entry(entry: Any) -> tuple[Side | None, Any]:
    """The side that said a message, if an entry says it, and the message itself."""
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


def _guess_sender(message: Any, conversation: ObservedConversation) -> Side:
    """The side that will have said a message."""
    if not isinstance(message, dict):
        return "client"
    method = message.get("method")
    if method is None:
        return _guess_answerer(message, conversation)
    row = METHODS.get(method) if isinstance(method, str) else None
    if row is not None and len(row.senders) == 1:
        return next(iter(row.senders))
    if method == "notifications/progress":
        return "server"
    return "client"


def _guess_answerer(message: dict[str, Any], conversation: ObservedConversation) -> Side:
    """The side that was asked under the answer's id last, and has not answered yet."""
    for said in reversed(conversation.said):
        waits = said.kind == "request" and not said.answers
        if waits and make_id_key(said.message["id"]) == make_id_key(message.get("id")):
            return get_other_side(said.side)
    return "server"
