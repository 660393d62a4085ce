"""Traffic of a server as events: each request, question and notification, once it is over.

:func:`watch_traffic` calls a function with one :class:`TrafficEvent` each. ``isthmus dev`` prints them; a
page in a browser, as the console's, may show the same events. As for spans (ADR 0094), two methods of the
router are replaced in its instance, so that a server which nobody watches pays for nothing.

What never reaches the router has no event: a request over HTTP that is refused for its ``Origin``, its path
or its token, and a message that is no JSON-RPC.
"""

import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET, Raw, UnsetType

from isthmus.core.caller import Caller
from isthmus.core.redaction.values import Redactor
from isthmus.runtime.failures import log_failure
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.wire.jsonrpc import ErrorBody, encode
from isthmus.wire.struct import Id, wire_name

if TYPE_CHECKING:
    from isthmus.server.server import Server

MAX_NAME_CHARS = 200  # of a name, a URI, a question, or the text of an error
MAX_WIRE_CHARS = 4000  # of a message that is shown
MAX_WIRE_BYTES = 256 * 1024  # of a message that is read in order to be shown

TrafficKind: TypeAlias = Literal["request", "question", "notification"]


class TrafficEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A request, a question or a notification that is over.

    Texts are redacted and bounded. They are others' words: who shows them makes them safe for his display.

    Attributes:
        kind: a request of the client, a question of the server (up to 2025-11-25; since 2026-07-28 questions
            stand in the result of a request, see ``asked``), or a notification.
        sender: the side that sent it.
        time: when it came or was sent, in seconds since 1970.
        method: the JSON-RPC method.
        id: the JSON-RPC id of the request; of what the server sends, the request that it belongs to, if any.
        name: the tool, the prompt or the URI; of a question its words, of a progress how far it is.
        client: the name and version that the client gave, or an empty text.
        revision: the protocol revision.
        transport: ``"stdio"``, ``"http"``, …
        session: a name for the legacy session, or None.
        outcome: ``ok``, ``tool_error``, ``input_required``, ``task``, ``error`` or ``cancelled``; of a question
            the action of the user, where there is one; empty for notifications.
        code: of a JSON-RPC error.
        error: the text of an error, or of a tool that failed.
        asked: the methods of the questions in the result (since 2026-07-28).
        seconds: how long it took; None for notifications.
        sent: the message, where whole messages were wanted.
        answered: the message that answers it, likewise.
    """

    kind: TrafficKind
    sender: Literal["client", "server"]
    time: float
    method: str
    id: Id | None = None
    name: str | None = None
    client: str = ""
    revision: str = ""
    transport: str = ""
    session: str | None = None
    outcome: str = ""
    code: int | None = None
    error: str = ""
    asked: tuple[str, ...] = ()
    seconds: float | None = None
    sent: str | None = None
    answered: str | None = None


HearTraffic: TypeAlias = Callable[[TrafficEvent], object]


class MessageParams(msgspec.Struct, rename=wire_name):
    """The members of params that name what a message is about."""

    name: Any = UNSET
    uri: Any = UNSET
    message: Any = UNSET
    progress: Any = UNSET
    total: Any = UNSET
    level: Any = UNSET
    data: Any = UNSET


class AnsweredQuestion(msgspec.Struct):
    """The member of a question in a result that says what is asked."""

    method: str = ""


class AnswerHead(msgspec.Struct, rename=wire_name):
    """The members of a result that say how it ended."""

    is_error: Any = False
    result_type: Any = UNSET
    input_requests: dict[str, AnsweredQuestion] | UnsetType = UNSET
    content: Raw | UnsetType = UNSET
    task: Raw | UnsetType = UNSET
    action: Any = UNSET


class TextBlock(msgspec.Struct):
    """The text of a block of content."""

    text: Any = ""


NO_PARAMS = MessageParams()
NO_HEAD = AnswerHead()
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decode_params = msgspec.json.Decoder(MessageParams).decode
_decode_head = msgspec.json.Decoder(AnswerHead).decode
_decode_blocks = msgspec.json.Decoder(list[TextBlock]).decode


def watch_traffic(
    server: "Server", hear: HearTraffic, *, wire: bool = False, redactor: Redactor | None = None
) -> Callable[[], None]:
    """Call a function with each event of a server's traffic, until the returned function is called.

    Args:
        server: whose traffic; it may serve already.
        hear: called in the event loop that serves, so that it must be quick. What it raises is logged.
        wire: have whole messages in the events, redacted and 4,000 characters of each.
        redactor: takes secrets out of texts.
    """
    begun: list[TrafficWatch] = []
    over: list[bool] = []

    def watch(router: Router) -> None:
        if not over:
            begun.append(TrafficWatch(router, hear, redactor or Redactor(), wire=wire))

    def stop() -> None:
        over.append(True)
        while begun:
            begun.pop().remove()

    server.with_router(watch)
    return stop


class LinkFacts(msgspec.Struct, frozen=True):
    """The sender of a request, as long as its link lasts; the link itself is not held.

    Attributes:
        caller: who asks.
        transport: how it came.
        session: a name for the legacy session, or None.
    """

    caller: Caller
    transport: str
    session: str | None

    @classmethod
    def of(cls, inbound: Inbound) -> "LinkFacts":
        """The facts of a request; a handshake has told them to the link by the time that it is over."""
        origin = inbound.origin
        return cls(inbound.caller, origin.transport, origin.session).agreed_with(inbound.link)

    def agreed_with(self, link: Any) -> "LinkFacts":
        """These facts, with the caller of the link's handshake where there was none before."""
        agreed = getattr(link, "caller", None)
        if self.caller.info is not None or not isinstance(agreed, Caller):
            return self
        return LinkFacts(agreed, self.transport, self.session)


class WatchedLink:
    """A link of one request, of which every notification is told; all else is the link's own.

    Args:
        link: the link.
        watch: hears of it.
        facts: whose request it is.
    """

    __slots__ = ("_facts", "_link", "_watch")

    def __init__(self, link: Any, watch: "TrafficWatch", facts: LinkFacts) -> None:
        self._link = link
        self._watch = watch
        self._facts = facts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    async def note(self, method: str, params: Any = None, **options: Any) -> None:
        """Tell of a notification, and send it."""
        self._watch.tell_sent(self._facts, "notification", method, params, options)
        await self._link.note(method, params, **options)


class TrafficWatch:
    """Tells of what a router serves, and of what is sent on the links of its requests.

    Args:
        router: the router.
        hear: called with each event.
        redactor: takes secrets out of texts.
        wire: whole messages are wanted.
    """

    def __init__(
        self, router: Router, hear: HearTraffic, redactor: Redactor, *, wire: bool
    ) -> None:
        self._router = router
        self._hear = hear
        self._redactor = redactor
        self._wire = wire
        self._is_over = False
        self._links: WeakKeyDictionary[Any, LinkFacts] = WeakKeyDictionary()
        self._before = {name: vars(router).get(name) for name in ("serve", "note")}
        self._serve, self._note = router.serve, router.note
        router.serve = self.serve  # type: ignore[method-assign]  # until `remove`
        router.note = self.note  # type: ignore[method-assign]

    def remove(self) -> None:
        """Tell of nothing more; what others put in this place since stays."""
        self._is_over = True
        for name, before in self._before.items():
            if getattr(vars(self._router).get(name), "__self__", None) is self:
                del vars(self._router)[name]
                if before is not None:
                    vars(self._router)[name] = before
        for link in tuple(self._links):
            vars(link).pop("note", None)
            vars(link).pop("call", None)
        self._links.clear()

    async def serve(self, inbound: Inbound) -> bytes | ErrorBody:
        """Serve a request, and tell of it."""
        began, at = time.perf_counter(), time.time()
        self._watch_link(inbound)
        told: dict[str, Any] = {"outcome": "cancelled"}
        try:
            outcome = await self._serve(inbound)
            told = self._describe_answer(inbound, outcome)
            return outcome
        finally:
            seconds = time.perf_counter() - began
            sent = self._show_request(inbound.id, inbound.method, inbound.params)
            name = self._name(inbound.method, inbound.params)
            self._tell(
                LinkFacts.of(inbound), kind="request", sender="client", time=at, method=inbound.method,
                id=inbound.id, name=name, seconds=seconds, sent=sent, **told,
            )  # fmt: skip

    def note(self, method: str, params: Raw | None, inbound: Inbound) -> None:
        """Act on a notification, and tell of it."""
        self._watch_link(inbound)
        sent = self._show_request(None, method, params)
        self._tell(
            LinkFacts.of(inbound), kind="notification", sender="client", time=time.time(), method=method,
            name=self._name(method, params), sent=sent,
        )  # fmt: skip
        self._note(method, params, inbound)

    def _watch_link(self, inbound: Inbound) -> None:
        """Hear what is sent on the link of a request, from now on."""
        link, facts = inbound.link, LinkFacts.of(inbound)
        if not hasattr(link, "__dict__"):  # of one request, and slots only: it is enclosed
            inbound.link = WatchedLink(link, self, facts)
            return
        try:
            known = link in self._links
            self._links[link] = facts
        except TypeError:
            return  # it cannot be remembered: what is sent on it is not told
        if not known:
            link.note, link.call = self._replace_methods(link, link.note, link.call)

    def _replace_methods(self, link: Any, note: Any, call: Any) -> tuple[Any, Any]:
        """The methods of a link that outlasts its requests, with word of each use."""

        async def tell_note(method: str, params: Any = None, **options: Any) -> None:
            facts = self._links.get(link)
            if facts is not None:
                self.tell_sent(facts.agreed_with(link), "notification", method, params, options)
            await note(method, params, **options)

        async def tell_call(method: str, params: Any, result: Any, **options: Any) -> Any:
            asked = call(method, params, result, **options)
            facts = self._links.get(link)
            if facts is None:
                return await asked
            return await self._ask(facts.agreed_with(link), asked, method, params, options)

        return tell_note, tell_call

    async def _ask(
        self,
        facts: LinkFacts,
        asked: Awaitable[Any],
        method: str,
        params: Any,
        options: dict[str, Any],
    ) -> Any:
        """Wait for the answer to a question, and tell of it."""
        began, at = time.perf_counter(), time.time()
        told: dict[str, Any] = {"outcome": "cancelled"}
        try:
            answer = await asked
        except Exception as error:
            told = {"outcome": "error", "error": self._cut(str(error))}
            raise
        else:
            told = {"outcome": "ok"}
            if isinstance(answer, Raw):
                action = _read_head(answer).action
                outcome = self._cut(action) if isinstance(action, str) else "ok"
                told = {"outcome": outcome, "answered": self._show({"result": answer})}
            return answer
        finally:
            seconds = time.perf_counter() - began
            more = {"time": at, "seconds": seconds, **told}
            self.tell_sent(facts, "question", method, params, options, **more)

    def tell_sent(
        self,
        facts: LinkFacts,
        kind: TrafficKind,
        method: str,
        params: Any,
        options: dict[str, Any],
        **more: Any,
    ) -> None:
        """Tell of what the server has sent."""
        if self._is_over:
            return
        try:
            raw = None if params is None else Raw(encode(params))
        except (TypeError, ValueError, RecursionError):
            raw = None  # the link says what is wrong with it
        sent = self._show_request(None, method, raw)
        at = more.pop("time", None) or time.time()
        related, name = options.get("relates_to"), self._name(method, raw)
        self._tell(
            facts, kind=kind, sender="server", time=at, method=method, id=related, name=name,
            sent=sent, **more,
        )  # fmt: skip

    def _tell(self, facts: LinkFacts, **told: Any) -> None:
        """Complete an event with whom it is about, and hand it over."""
        if self._is_over:  # another watch, which came later, goes on by way of this one
            return
        info = facts.caller.info
        client = "" if info is None else f"{info.name} {info.version}"
        try:
            event = TrafficEvent(
                client=self._cut(client),
                revision=facts.caller.revision.name,
                transport=facts.transport,
                session=facts.session,
                **{**told, "method": self._cut(told["method"])},
            )
            self._hear(event)
        except Exception as error:  # noqa: BLE001 - who watches must not keep anything from being served
            log_failure("the watch of the traffic", error)

    def _describe_answer(self, inbound: Inbound, outcome: bytes | ErrorBody) -> dict[str, Any]:
        if isinstance(outcome, ErrorBody):
            answered = self._show({"id": inbound.id, "error": outcome})
            text = self._cut(outcome.message)
            return {"outcome": "error", "code": outcome.code, "error": text, "answered": answered}
        told: dict[str, Any] = {"outcome": "ok"}
        head = _read_head(outcome)
        if head.is_error is True and inbound.method == "tools/call":
            told = {"outcome": "tool_error", "error": self._cut(_read_text(head))}
        elif head.result_type == "input_required":
            questions = head.input_requests or {}
            asked = tuple(self._cut(one.method) for one in questions.values())
            told = {"outcome": "input_required", "asked": asked}
        elif head.result_type == "task" or (head.task and inbound.method == "tools/call"):
            told = {"outcome": "task"}
        return {**told, "answered": self._show({"id": inbound.id, "result": Raw(outcome)})}

    def _name(self, method: str, params: Raw | None) -> str | None:
        """The words that say what a message is about."""
        read = _read_params(params)
        if method == "notifications/progress":
            total = "" if read.total in (UNSET, None) else f"/{read.total}"
            message = read.message if isinstance(read.message, str) else ""
            return self._cut(f"{read.progress}{total} {message}".rstrip())
        if method == "notifications/message":
            return self._cut(f"{read.level}: {self._redactor.redact(read.data)}")
        named = (read.name, read.uri, read.message)
        return next((self._cut(one) for one in named if isinstance(one, str)), None)

    def _cut(self, text: str) -> str:
        """A text that is short enough, without secrets."""
        shown = self._redactor.text(text[: 4 * MAX_NAME_CHARS])
        return shown if len(shown) <= MAX_NAME_CHARS else f"{shown[:MAX_NAME_CHARS]}…"

    def _show_request(self, id: Id | None, method: str, params: Raw | None) -> str | None:
        if not self._wire:
            return None
        message = {} if id is None else {"id": id}
        return self._show({**message, "method": method, "params": {} if params is None else params})

    def _show(self, message: dict[str, Any]) -> str | None:
        """A message as text, redacted and bounded; None where none are wanted."""
        if not self._wire:
            return None
        try:
            whole = encode({"jsonrpc": "2.0", **message})
            if len(whole) > MAX_WIRE_BYTES:
                return f"[{len(whole)} bytes]"
            shown = encode(self._redactor.redact(msgspec.json.decode(whole))).decode()
        except (*UNREADABLE, TypeError, ValueError):
            return "[not to be read]"
        cut = len(shown) - MAX_WIRE_CHARS
        return shown if cut <= 0 else f"{shown[:MAX_WIRE_CHARS]}… and {cut} more"


def _read_params(params: Raw | None) -> MessageParams:
    try:
        return NO_PARAMS if params is None else _decode_params(params)
    except UNREADABLE:
        return NO_PARAMS


def _read_head(result: bytes | Raw) -> AnswerHead:
    try:
        return _decode_head(result)
    except UNREADABLE:
        return NO_HEAD


def _read_text(head: AnswerHead) -> str:
    """The words with which a tool failed."""
    try:
        blocks = [] if head.content is UNSET else _decode_blocks(head.content)
    except UNREADABLE:
        blocks = []
    return " ".join(one.text for one in blocks if isinstance(one.text, str) and one.text)
