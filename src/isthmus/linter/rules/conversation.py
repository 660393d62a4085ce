"""Observed conversation: messages with their side, their revision, and what they answer."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.revisions import BY_NAME, LATEST, METHODS, MODERN, Revision
from isthmus.wire.meta import CLIENT_CAPABILITIES, PROTOCOL_VERSION

Side: TypeAlias = Literal["client", "server"]

Kind: TypeAlias = Literal["request", "notification", "result", "error", "batch", "broken"]


# Bytes that a conversation with a server may take; one that goes on for longer never ends.
MAX_CONVERSATION_BYTES = 32 * 2**20

MESSAGE_OVERHEAD_BYTES = 500  # bytes that a message costs beside its own


class ObservedMessage(msgspec.Struct, eq=False):
    """A message as it was observed.

    Attributes:
        number: its line in a recording, or its place in the conversation.
        side: who said it.
        kind: what it is; ``broken`` where it is no JSON-RPC message at all.
        message: decoded JSON; None where it is no JSON.
        revision: the revision it is said in.
        asked: the request it answers, if it answers one.
        answers: how often it was answered; for a request.
        batched: it came inside an array.
        flaw: why it is broken.
    """

    number: int
    side: Side
    kind: Kind
    message: Any
    revision: Revision
    asked: "ObservedMessage | None" = None
    answers: int = 0
    batched: bool = False
    flaw: str = ""

    @property
    def method(self) -> str:
        """The method of a request or notification, or of the request that is answered."""
        if self.kind in {"request", "notification"}:
            return str(self.message["method"])
        return self.asked.method if self.asked is not None else ""

    @property
    def params(self) -> dict[str, Any]:
        """The params, where they are an object."""
        params = self.message.get("params") if isinstance(self.message, dict) else None
        return params if isinstance(params, dict) else {}

    @property
    def result(self) -> dict[str, Any]:
        """The result, where it is an object."""
        result = self.message.get("result") if self.kind == "result" else None
        return result if isinstance(result, dict) else {}

    @property
    def where(self) -> str:
        """The message in words."""
        words = {
            "result": "the answer to",
            "error": "the error answer to",
            "request": "the request",
        }
        if self.kind in {"batch", "broken"} or not self.method:
            return {"batch": "a batch", "error": "an error"}.get(self.kind, "a message")
        return f"{words.get(self.kind, 'the notification')} {self.method}"


def get_other_side(side: Side) -> Side:
    """The other side."""
    return "client" if side == "server" else "server"


def make_id_key(id: Any) -> str:
    """An id as something to look it up by: 1 and "1" are two."""
    return msgspec.json.encode(str(id) if isinstance(id, str) else id).decode()


class ObservedConversation:
    """Messages in their order.

    Args:
        revision: what they are held to; by default what they say themselves.
        judged: whose messages are looked at.
        expected: what is taken for the revision until a message says which it is.

    Attributes:
        said: the messages.
        capabilities: what each side declared in its handshake, or last.
    """

    def __init__(
        self,
        revision: Revision | None = None,
        judged: Collection[Side] = ("client", "server"),
        expected: Revision = LATEST,
    ) -> None:
        self.pinned = revision
        self._expected = expected
        self.judged = judged
        self.said: list[ObservedMessage] = []
        self.size = 0
        self.capabilities: dict[Side, Mapping[str, Any]] = {}
        self._session: Revision | None = None
        self._asked: dict[tuple[Side, str], ObservedMessage] = {}

    @property
    def endless(self) -> bool:
        """Whether so much was said that there is no end of it to be seen."""
        return self.size > MAX_CONVERSATION_BYTES

    @property
    def revision(self) -> Revision:
        """The revision of what was said without saying which."""
        return self.pinned or self._session or self._expected

    def __iter__(self) -> Iterator[ObservedMessage]:
        """The messages of the sides that are judged."""
        return (said for said in self.said if said.side in self.judged)

    def asked(self, side: Side, id: Any) -> ObservedMessage | None:
        """The last request of a side under an id."""
        return self._asked.get((side, make_id_key(id)))

    def add(
        self, side: Side, message: Any, number: int = 0, *, batched: bool = False
    ) -> ObservedMessage:
        """Take down a message.

        Args:
            side: who says it.
            message: its bytes, or decoded JSON.
            number: its line, or 0 for its place in the conversation.
            batched: it came inside an array.
        """
        number = number or len(self.said) + 1
        self.size += MESSAGE_OVERHEAD_BYTES
        if isinstance(message, bytes):
            self.size += len(message)
            try:
                message = msgspec.json.decode(message)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                return self._add_broken(side, number, None, f"it is no JSON: {error}")
        if isinstance(message, list) and not batched:
            whole = ObservedMessage(number, side, "batch", message, self.revision)
            self.said.append(whole)
            for member in message:
                self.add(side, member, number, batched=True)
            return whole
        flaw = _find_envelope_flaw(message)
        if flaw:
            return self._add_broken(side, number, message, flaw)
        said = self._add_placed(side, message, number)
        said.batched = batched
        self.said.append(said)
        return said

    def _add_broken(self, side: Side, number: int, message: Any, flaw: str) -> ObservedMessage:
        said = ObservedMessage(number, side, "broken", message, self.revision, flaw=flaw)
        self.said.append(said)
        if isinstance(message, dict) and message.get("id") is not None and "method" in message:
            self._asked[side, make_id_key(message["id"])] = said  # it may be refused under its id
        return said

    def _add_placed(self, side: Side, message: dict[str, Any], number: int) -> ObservedMessage:
        if "method" in message:
            kind: Kind = "request" if "id" in message else "notification"
            said = ObservedMessage(number, side, kind, message, self.revision)
            said.revision = self._find_revision(said)
            if message.get("id") is not None:
                self._asked[side, make_id_key(message["id"])] = said
            return said
        kind = "error" if "error" in message else "result"
        id = message.get("id")
        asked = None if id is None else self._asked.get((get_other_side(side), make_id_key(id)))
        said = ObservedMessage(number, side, kind, message, self.revision, asked)
        if asked is not None:
            asked.answers += 1
            said.revision = asked.revision
            if kind == "result" and asked.answers == 1:
                self._learn_answer(said)
        return said

    def _find_revision(self, said: ObservedMessage) -> Revision:
        """The revision a message says it is in."""
        meta = said.params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        stated = meta.get(PROTOCOL_VERSION)
        revision = BY_NAME.get(stated) if isinstance(stated, str) else None
        if revision is not None and self.pinned is None:
            declared = meta.get(CLIENT_CAPABILITIES)
            if isinstance(declared, dict) and said.side == "client":
                self.capabilities["client"] = declared
            self._session = self._session or revision
            return revision
        if said.method == "initialize" and self._session is None and self.pinned is None:
            wanted = BY_NAME.get(str(said.params.get("protocolVersion")))
            self._session = wanted if wanted not in MODERN else None
        if said.method == "initialize":
            self._declare_capabilities("client", said.params)
        return self.revision

    def _learn_answer(self, said: ObservedMessage) -> None:
        """Keep what an answer settles."""
        if said.method == "initialize" and said.side == "server":
            chosen = BY_NAME.get(str(said.result.get("protocolVersion")))
            if chosen is not None and self.pinned is None:
                self._session = said.revision = chosen
            self._declare_capabilities("server", said.result)
        elif said.method == "server/discover":
            self._declare_capabilities("server", said.result)

    def _declare_capabilities(self, side: Side, where: Mapping[str, Any]) -> None:
        declared = where.get("capabilities")
        if isinstance(declared, dict):
            self.capabilities[side] = declared


def _find_envelope_flaw(message: Any) -> str:
    """Why something is no JSON-RPC message; empty if it is one."""
    if not isinstance(message, dict):
        return "it is no object"
    if message.get("jsonrpc") != "2.0":
        return 'the member "jsonrpc" must be "2.0"'
    answers = ("result" in message) + ("error" in message)
    if "method" not in message:
        return "" if answers == 1 else 'it needs a "method", or one of "result" and "error"'
    if not isinstance(message["method"], str):
        return 'the member "method" must be a string'
    return "it has a method and an answer" if answers else ""


def is_known_method(method: str) -> bool:
    """Whether any revision has a method of this name."""
    return method in METHODS


SERVER_ONLY: tuple[Side, ...] = ("server",)
