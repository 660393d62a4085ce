"""Messages of recorded calls: what goes over the wire between the host and a server, without secrets.

Connections are listened to while traffic is recorded, and let go afterwards. A message belongs to the
call whose request it is, or answers; what a server asks by itself belongs to the one call under way.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from isthmus.core.redaction.values import Redactor
from isthmus.host.model.view import WireMessage
from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT
from isthmus.host.traffic.client_messages import ClientMessage
from isthmus.runtime.wiretap import PeerTap

if TYPE_CHECKING:
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.runtime.channel import Outgoing
    from isthmus.runtime.peer import Peer

MAX_CALLS_WITH_MESSAGES = 200
MAX_MESSAGES = 200  # of one call
MAX_MESSAGE_BYTES = 64 * 1024
MAX_OPEN_IDS = 4_096
HIDDEN = "[hidden by a rule]"
HIDDEN_ANSWER = "[a person's answer]"
HIDDEN_STATE = "[the server's state]"
MAX_HIDDEN_CALLS = 20_000

Direction: TypeAlias = Literal["sent", "received"]
RequestKey: TypeAlias = tuple[int, Direction, str]
"""A connection, who asked, and the id of the request."""


class OpenRequest(NamedTuple):
    """A request that has no answer yet.

    Attributes:
        call: the call that it belongs to; empty for none.
        method: what it asks.
    """

    call: str
    method: str


NO_REQUEST = OpenRequest("", "")


class HeardConnection(NamedTuple):
    """A connection that is listened to.

    Attributes:
        number: of its peer.
        server, isolation: where it leads, and whose it is.
    """

    number: int
    server: str
    isolation: str


class MessageRecorder:
    """Records messages of calls.

    Args:
        redactor: takes out what is secret.
        clock: says the seconds since the epoch.
        find_lone_call: finds the one call that is under way at a connection; empty where there are none
            or several.
        on_retry: told of a call whose request is sent once more.
    """

    def __init__(
        self,
        redactor: Redactor,
        clock: Callable[[], float],
        find_lone_call: Callable[[str, str], str],
        on_retry: Callable[[str], None],
    ) -> None:
        self._redactor = redactor
        self._clock = clock
        self._find_lone_call = find_lone_call
        self._on_retry = on_retry
        self._of: OrderedDict[str, list[WireMessage]] = OrderedDict()
        self._requests: dict[str, str] = {}
        self._open: OrderedDict[RequestKey, OpenRequest] = OrderedDict()
        self._taps: dict[int, tuple[Peer, PeerTap]] = {}
        self._hidden: OrderedDict[str, None] = OrderedDict()

    def hide(self, call: str) -> None:
        """A rule hides places of what this call holds."""
        self._hidden[call] = None
        if len(self._hidden) > MAX_HIDDEN_CALLS:
            self._hidden.popitem(last=False)

    # Taps

    def listen(self, servers: "Mapping[str, HostedServer]") -> None:
        """Listen to every connection that is open now."""
        for number, (peer, _) in list(self._taps.items()):
            if peer.lost is not None:
                del self._taps[number]
        for name, hosted in servers.items():
            for isolation, connection in list(hosted.connections.items()):
                client = connection.client
                used = None if client is None else client.connection.peer
                if used is not None and id(used) not in self._taps and used.lost is None:
                    hear = partial(self._hear, HeardConnection(id(used), name, isolation))
                    self._taps[id(used)] = used, PeerTap(used, hear)

    def release(self) -> None:
        """Listen to none any more."""
        for _, tap in self._taps.values():
            tap.release()
        self._taps.clear()
        self._open.clear()

    # Messages

    def list(self, call: str) -> Sequence[WireMessage]:
        """The messages of a call, in order."""
        return sorted(self._of.get(call, ()), key=lambda one: one.at)

    def _hear(
        self,
        heard: HeardConnection,
        direction: Direction,
        data: bytes,
        out: "Outgoing | None",
    ) -> None:
        """Take down a message, for the call that it belongs to."""
        try:
            value = msgspec.json.decode(data)
        except (ValueError, RecursionError):
            return
        members = value if isinstance(value, list) else [value]
        for member in members:
            if isinstance(member, dict):
                about = self._find_request(member, heard, direction)
                if about.call:
                    shown = hide_answers(member, about.method)
                    self._take(about.call, direction, shown, is_request=out is not None)

    def _find_request(
        self, message: Mapping[str, Any], heard: HeardConnection, direction: Direction
    ) -> OpenRequest:
        """The call that a message belongs to, empty where nobody can tell, and what it asks or answers."""
        number, method = message.get("id"), message.get("method")
        other: Direction = "received" if direction == "sent" else "sent"
        if method is None:  # an answer to what the other side asked
            return self._open.pop((heard.number, other, repr(number)), NO_REQUEST)
        call = ""
        if direction == "sent":
            attempt = CURRENT_ATTEMPT.get()
            call = "" if attempt is None else attempt.id
        elif number is None:
            params = message.get("params")
            token = params.get("progressToken") if isinstance(params, dict) else None
            call = self._open.get((heard.number, "sent", repr(token)), NO_REQUEST).call
        call = call or self._find_lone_call(heard.server, heard.isolation)
        found = OpenRequest(call, str(method))
        if call and number is not None:
            self._open[heard.number, direction, repr(number)] = found
            if len(self._open) > MAX_OPEN_IDS:
                self._open.popitem(last=False)
        return found

    def take_client(self, call: str, said: ClientMessage, at: float) -> None:
        """Take down a message between the gateway and the client that calls it."""
        text = self._spell(call, hide_answers(said.message, said.method))
        message = WireMessage(at=at, direction=said.direction, text=text, side="client")
        self._keep(call, message)

    def _take(
        self, call: str, direction: Direction, message: dict[str, Any], *, is_request: bool
    ) -> None:
        method = message.get("method")
        if is_request and method == "tools/call":
            if call in self._requests:
                self._on_retry(call)
            self._requests[call] = method
        text = self._spell(call, message)
        self._keep(call, WireMessage(at=self._clock(), direction=direction, text=text))

    def _keep(self, call: str, message: WireMessage) -> None:
        found = self._of.get(call)
        if found is None:
            found = self._of[call] = []
            if len(self._of) > MAX_CALLS_WITH_MESSAGES:
                old, _ = self._of.popitem(last=False)
                self._requests.pop(old, None)
        if len(found) < MAX_MESSAGES:
            found.append(message)

    def _spell(self, call: str, message: dict[str, Any]) -> str:
        """A message as JSON, without what is secret and what a rule hides, and not too long."""
        if call in self._hidden or self._redactor.has_pointers:
            message = hide_contents(message)
        text = msgspec.json.encode(self._redactor.redact(message)).decode()
        if len(text) <= MAX_MESSAGE_BYTES:
            return text
        return f"{text[:MAX_MESSAGE_BYTES]}… ({len(text) - MAX_MESSAGE_BYTES:,} more characters)"


def id_of(peer: "Peer") -> int:
    """A number for a peer that is kept."""
    return id(peer)


def hide_answers(message: dict[str, Any], method: str) -> dict[str, Any]:
    """A message without what people have answered, and without the server's state.

    The audit log has of an answer whether it was a yes, and no more; what one user is asked for is
    nothing for an operator. With a state its call could be gone on with.

    Args:
        message: the message.
        method: what it asks, or answers.
    """
    params, result = message.get("params"), message.get("result")
    shown = dict(message)
    if isinstance(params, dict):
        shown["params"] = params = _hide_member(params, "requestState", HIDDEN_STATE)
        answers = params.get("inputResponses")
        if isinstance(answers, dict):
            hidden = {
                key: _hide_member(one, "content", HIDDEN_ANSWER)
                if isinstance(one, dict) and "action" in one
                else one
                for key, one in answers.items()
            }
            shown["params"] = {**params, "inputResponses": hidden}
    if isinstance(result, dict):
        shown["result"] = _hide_member(result, "requestState", HIDDEN_STATE)
        if method == "elicitation/create":
            shown["result"] = _hide_member(result, "content", HIDDEN_ANSWER)
    return shown


def _hide_member(value: dict[str, Any], name: str, words: str) -> dict[str, Any]:
    return {**value, name: words} if name in value else value


def hide_contents(message: dict[str, Any]) -> dict[str, Any]:
    """A message without its arguments and its result, where rules name places in them."""
    shown = dict(message)
    params = shown.get("params")
    if isinstance(params, dict):
        shown["params"] = {
            name: value if name in {"name", "uri", "progressToken"} else HIDDEN
            for name, value in params.items()
        }
    for name in ("result", "error"):
        if name in shown:
            shown[name] = HIDDEN
    return shown
