"""Messages between a gateway and the clients that call it, taken down while traffic is recorded.

A router of the gateway is listened to as long as somebody watches: the request of a call, what is said and
asked in its course, and its result belong to the attempt that is made for it. Nothing is heard otherwise.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import structs

from isthmus.runtime.peer import Peer
from isthmus.runtime.wiretap import PeerTap
from isthmus.wire.jsonrpc import ErrorBody

if TYPE_CHECKING:
    from isthmus.runtime.channel import Outgoing
    from isthmus.runtime.inbound import Inbound
    from isthmus.runtime.router import Router

CALL_METHODS = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})
MAX_BUFFERED_MESSAGES = 200  # of a request before its attempt is known

ServeRequest: TypeAlias = Callable[["Inbound"], Awaitable[bytes | ErrorBody]]
InboundKey: TypeAlias = tuple[int, str]
"""A link and the id of a request on it."""


class ClientMessage(NamedTuple):
    """A message between the gateway and a client.

    Attributes:
        direction: as the host sees it.
        message: the message, decoded.
        method: what it asks or answers.
    """

    direction: Literal["sent", "received"]
    message: dict[str, Any]
    method: str


TakeMessage: TypeAlias = Callable[[str, ClientMessage, float], None]
"""Told of the attempt's id, the message and when it was."""


def make_key(inbound: "Inbound") -> InboundKey:
    """The key of a request."""
    return id(inbound.link), repr(inbound.id)


class ClientConversation:
    """The messages of one request of a client; they wait until it is known which attempt it makes.

    Args:
        method: of the request.
        clock: says the seconds since the epoch.
        take: takes down a message of an attempt.
    """

    def __init__(self, method: str, clock: Callable[[], float], take: TakeMessage) -> None:
        self.method = method
        self.call = ""
        self._clock = clock
        self._take = take
        self._waiting: list[tuple[ClientMessage, float]] = []

    def add(self, message: ClientMessage) -> None:
        """One more message."""
        if self.call:
            self._take(self.call, message, self._clock())
        elif len(self._waiting) < MAX_BUFFERED_MESSAGES:
            self._waiting.append((message, self._clock()))

    def join(self, call: str) -> None:
        """It is known now which attempt it makes."""
        if not self.call:
            self.call = call
            for message, at in self._waiting:
                self._take(call, message, at)
            self._waiting.clear()


class HeardLink:
    """A response of HTTP since 2026-07-28 that is listened to; all else is the link's own.

    Args:
        link: the link.
        conversation: gets what is said on it.
    """

    __slots__ = ("__weakref__", "_conversation", "_link")

    def __init__(self, link: Any, conversation: ClientConversation) -> None:
        self._link = link
        self._conversation = conversation

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    async def note(self, method: str, params: Any = None, **options: Any) -> None:
        """Send a notification, and tell of it before."""
        said: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            said["params"] = read_json(msgspec.json.encode(params))
        self._conversation.add(ClientMessage("sent", said, method))
        await self._link.note(method, params, **options)


class HeardPeer:
    """A connection of a client that is listened to, for the requests on it that are being served."""

    def __init__(self, peer: Peer, find: Callable[[InboundKey], ClientConversation | None]) -> None:
        self._peer = peer
        self._find = find
        self._asked: dict[str, tuple[ClientConversation, str]] = {}
        self._tap = PeerTap(peer, self._hear)
        self.requests = 1

    def release(self) -> None:
        """Listen no more."""
        self._tap.release()

    def _hear(
        self,
        direction: Literal["sent", "received"],  # noqa: ARG002 - what is sent has `out`
        data: bytes,
        out: "Outgoing | None",
    ) -> None:
        if out is None:
            for message in list_messages(data):
                self._hear_received(message)
            return
        for one in out.members or (out,):
            # the answer itself is heard where it is made
            if one.relates_to is not None and one.answers is None:
                self._hear_sent(one)

    def _hear_sent(self, out: "Outgoing") -> None:
        conversation = self._find((id(self._peer), repr(out.relates_to)))
        if conversation is None:
            return
        if out.calls is not None:
            self._asked[repr(out.calls)] = conversation, out.method
        for message in list_messages(out.data):
            conversation.add(ClientMessage("sent", message, out.method))

    def _hear_received(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            conversation, method = self._asked.pop(repr(message.get("id")), (None, ""))
        else:
            method, params = str(message["method"]), message.get("params")
            about = params.get("requestId") if isinstance(params, dict) else None
            conversation = None if about is None else self._find((id(self._peer), repr(about)))
        if conversation is not None:
            conversation.add(ClientMessage("received", message, method))


class FrontRouters:
    """The routers of a gateway, which are listened to while somebody watches.

    Args:
        clock: says the seconds since the epoch.
        take: takes down a message of an attempt.
        find_call: finds the attempt that goes on with a request; empty for none.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        take: TakeMessage,
        find_call: Callable[[InboundKey], str],
    ) -> None:
        self._clock = clock
        self._take = take
        self._find_call = find_call
        self._routers: list[Router] = []
        self._heard: list[tuple[Router, ServeRequest, ServeRequest | None]] = []
        self._open: dict[InboundKey, ClientConversation] = {}
        self._peers: dict[int, HeardPeer] = {}
        self._is_listening = False

    def add(self, router: "Router") -> None:
        """One more router, as long as the host lasts."""
        self._routers.append(router)
        if self._is_listening:
            self._listen_to(router)

    def listen(self) -> None:
        """Take messages down from now on."""
        self._is_listening = True
        for router in self._routers:
            self._listen_to(router)

    def release(self) -> None:
        """Take nothing down any more; requests that are being served go on unheard."""
        self._is_listening = False
        for router, serve, before in self._heard:
            if vars(router).get("serve") is serve:  # else somebody listens in front of us
                del vars(router)["serve"]
                if before is not None:
                    vars(router)["serve"] = before
        self._heard.clear()
        for peer in self._peers.values():
            peer.release()
        self._peers.clear()
        self._open.clear()

    def join(self, call: str, inbound: "Inbound") -> None:
        """An attempt is made for a request."""
        conversation = self._open.get(make_key(inbound))
        if conversation is not None:
            conversation.join(call)

    def _listen_to(self, router: "Router") -> None:
        before, serve = vars(router).get("serve"), router.serve

        async def serve_heard(inbound: "Inbound") -> bytes | ErrorBody:
            if not self._is_listening or inbound.method not in CALL_METHODS:
                return await serve(inbound)
            return await self._serve(serve, inbound)

        router.serve = serve_heard  # type: ignore[method-assign]  # of this one router, for a while
        self._heard.append((router, serve_heard, before))

    async def _serve(self, serve: "ServeRequest", inbound: "Inbound") -> bytes | ErrorBody:
        conversation = ClientConversation(inbound.method, self._clock, self._take)
        peer = inbound.link if isinstance(inbound.link, Peer) else None
        if peer is None:
            inbound = structs.replace(inbound, link=HeardLink(inbound.link, conversation))
        key = make_key(inbound)
        self._open[key] = conversation
        conversation.add(ClientMessage("received", spell_request(inbound), inbound.method))
        self._begin(peer)
        try:
            outcome = await serve(inbound)
            if not conversation.call:
                conversation.join(self._find_call(key))
            answer = spell_answer(inbound, outcome)
            conversation.add(ClientMessage("sent", answer, inbound.method))
            return outcome
        finally:
            if self._open.get(key) is conversation:
                del self._open[key]
            self._end(peer)

    def _begin(self, peer: Peer | None) -> None:
        if peer is None:
            return
        heard = self._peers.get(id(peer))
        if heard is None:
            self._peers[id(peer)] = HeardPeer(peer, self._open.get)
        else:
            heard.requests += 1

    def _end(self, peer: Peer | None) -> None:
        heard = None if peer is None else self._peers.get(id(peer))
        if heard is None:
            return
        heard.requests -= 1
        if not heard.requests:
            heard.release()
            del self._peers[id(peer)]


def spell_request(inbound: "Inbound") -> dict[str, Any]:
    """A request as it came."""
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": inbound.id, "method": inbound.method}
    if inbound.params is not None:
        said["params"] = read_json(inbound.params)
    return said


def spell_answer(inbound: "Inbound", outcome: bytes | ErrorBody) -> dict[str, Any]:
    """The answer to a request as it goes."""
    said: dict[str, Any] = {"jsonrpc": "2.0", "id": inbound.id}
    if isinstance(outcome, ErrorBody):
        return {**said, "error": read_json(msgspec.json.encode(outcome))}
    return {**said, "result": read_json(outcome)}


def read_json(data: Any) -> Any:
    """JSON of a message, or a word in place of what cannot be read."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return "[not JSON]"


def list_messages(data: bytes) -> Iterator[dict[str, Any]]:
    """The messages in a frame."""
    value = read_json(data)
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, Mapping):
            yield dict(one)
