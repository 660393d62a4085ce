"""Shared state of a server's HTTP connections: known heads, the fields of every response, the sweep.

The sweep is one timer for all timeouts: it looks at every connection once a second, so that no
request and no response costs a timer of its own.
"""

import asyncio
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

from isthmus.transports.http.reply import Header
from isthmus.transports.http.request import HttpRequest

SWEEP_INTERVAL_S = 1.0

# In ticks of the sweep, a second each. The head of a request must come within the first.
HEAD_TIMEOUT_TICKS = 15
UNREAD_LOOK_TICKS = 15

# Looks at which a connection has exactly as much unread as at the one before, until it is given up
MAX_UNREAD_LOOKS = 2

MAX_KNOWN_HEADS = 4096
MAX_KNOWN_HEAD_BYTES = 2048
MAX_CREDENTIAL_TICKS = 60  # that a head with a token in it may be kept
HEAD_MARKS = 65536  # bytes, one of which is set for each head that came
# With a field of these the same bytes may mean another thing a second later, or are a secret
# that is good for more than this server
UNKNOWABLE_FIELDS = frozenset(
    {
        *(b"cookie", b"dpop", b"proxy-authorization"),
        *(b"connection", b"expect", b"transfer-encoding", b"upgrade"),
    }
)

CONNECTION_CLOSE: Header = (b"connection", b"close")

# RFC 9110 5.1 and 5.5: names are tokens, and no value has a line break in it
_FIELD_LINES = re.compile(
    rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [^\x00-\x08\x0a-\x1f\x7f]*\r\n)*"
).fullmatch


class WireRequest(HttpRequest):
    """What the head of a request says that came in on a connection of ours.

    Attributes:
        target: what stands in its first line.
        length: the bytes of its body where that was seen as a whole.
        keeps_alive: the connection may go on after it.
        expects_continue: its client waits to be told to send the body.
    """

    target: bytes = b""
    length: int = 0
    keeps_alive: bool = True
    expects_continue: bool = False


class ServerContext:
    """What all connections of one of uvicorn's servers share.

    Args:
        state: uvicorn's record of the server.
        loop: the event loop it runs on.

    Attributes:
        find_known: gives the request that begins with some bytes, on an address of ours; or None.
        tick: how often the sweep has looked.
        state: uvicorn's record of the server.
        is_draining: each connection ends with its next answer.
        rendered: those of its default headers that were rendered last.
        json_head: the head of a JSON answer, up to its length.
    """

    def __init__(self, state: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._known: dict[tuple[str, bytes], WireRequest] = {}
        self.find_known = self._known.get
        self._credentialed: list[tuple[str, bytes]] = []  # those of them that have a token
        self._marks = bytearray(HEAD_MARKS)
        self._marked = 0
        self.tick = 0
        self.loop = loop
        self.state = state
        self._unread: dict[Any, tuple[int, int]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self.is_draining = False
        self.rendered: Any = None
        self.json_head = self._fields = b""

    def drain(self) -> None:
        """Have each connection end with the answer to the request that it has, or gets next."""
        self.is_draining = True
        self._known.clear()  # so that every head is parsed, and looked at there
        for connection in [*self.state.connections]:
            end_after_answer = getattr(connection, "end_after_answer", None)
            if end_after_answer is not None:
                end_after_answer()

    # Known heads

    def add_known(self, data: bytes, request: WireRequest) -> None:
        """Remember the head of a request that comes for the second time and may be known by its bytes.

        A client sends the same head again and again. What the parser and the guard made of it is what
        they would make of the same bytes again, on the same address of ours: there is nothing to
        parse, and no second parser that could read a request in another way. A head is large beside
        an idle session, which has one of its own that comes once: so the first time only a mark
        stays of it. Whether a token in it is still good is asked anew with each request.

        Args:
            data: the request as a whole and nothing else, as it was parsed in one piece.
            request: what came of it; it was let pass.
        """
        end = data.find(b"\r\n\r\n") + 4
        head, length = data[:end], len(data) - end
        names = [name for name, _ in request.fields]
        if (
            self.is_draining
            or end > MAX_KNOWN_HEAD_BYTES
            or not head.startswith(b"POST ")
            or request.version != "1.1"
            or head.count(b"\n") != len(names) + 2
            or head.count(b"\r") != len(names) + 2
            or names.count(b"content-length") != 1
            or (b"content-length", b"%d" % length) not in request.fields
            or not request.keeps_alive
            or not UNKNOWABLE_FIELDS.isdisjoint(names)
            or not self._mark(request.local, head)
        ):
            return
        request.length = length
        if len(self._known) >= MAX_KNOWN_HEADS and (request.local, head) not in self._known:
            del self._known[next(iter(self._known))]
        if b"authorization" in names:
            if len(self._credentialed) >= MAX_KNOWN_HEADS:  # many of these have given way
                self._forget_credentials()
            self._credentialed.append((request.local, head))
        self._known[request.local, head] = request

    def _forget_credentials(self) -> None:
        """Let go of the heads that have a token in them: it may never be sent again."""
        for key in self._credentialed:
            self._known.pop(key, None)
        self._credentialed.clear()

    def _mark(self, local: str, head: bytes) -> bool:
        """Mark a head as one that came; whether it was marked before, or one with the same mark."""
        mark = hash((local, head)) % HEAD_MARKS
        if self._marks[mark]:
            return True
        if self._marked >= MAX_KNOWN_HEADS:
            self._marks = bytearray(HEAD_MARKS)
            self._marked = 0
        self._marks[mark] = 1
        self._marked += 1
        return False

    # What every response has

    def render_head(self, status: int, headers: Iterable[Header]) -> bytes:
        """The head of a response.

        Raises:
            RuntimeError: a header has a name that is none, or a line break in its value.
        """
        if self.state.default_headers is not self.rendered:
            self.render()
        lines = [b"%b: %b\r\n" % field for field in headers]
        fields = b"".join(lines)
        if fields.count(b"\n") != len(lines) or _FIELD_LINES(fields) is None:
            raise RuntimeError(f"a response has an invalid header: {fields[:200]!r}")
        return b"%b%b%b\r\n" % (_status_line(status), self._fields, fields)

    def render(self) -> None:
        """Render the fields that all responses have."""
        # RFC 9110 6.6.1: an origin server with a clock MUST send Date; uvicorn makes a new list of
        # these each second, with the Date in it.
        self.rendered = self.state.default_headers
        self._fields = b"".join(b"%b: %b\r\n" % field for field in self.rendered)
        self.json_head = b"%b%bcontent-type: application/json\r\ncontent-length: " % (
            _status_line(200),
            self._fields,
        )

    # The sweep

    def watch(self) -> None:
        """Look at all connections from now on, for as long as there are any."""
        if self._timer is None:
            self._timer = self.loop.call_later(SWEEP_INTERVAL_S, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        try:
            self.look()
        finally:
            if self.state.connections:
                self.watch()
            else:
                self._forget_credentials()

    def look(self) -> None:
        """Look at all connections: those that have waited for too long are closed.

        Those for WebSockets and other parsers are among them, whose heads are not waited for here.
        """
        self.tick += 1
        connections = [*self.state.connections]
        for one in connections:
            look = getattr(one, "look", None)
            if look is not None:
                look(self.tick)
        if self.tick % MAX_CREDENTIAL_TICKS == 0:
            self._forget_credentials()
        if self.tick % UNREAD_LOOK_TICKS == 0:
            self._give_up_unread(connections)

    def _give_up_unread(self, connections: Iterable[Any]) -> None:
        """Cut connections whose client takes nothing of what waits for it.

        What a client reads makes it less, and what is said to it meanwhile makes it more.
        """
        before, self._unread = self._unread, {}
        for one in connections:
            size = one.transport.get_write_buffer_size()
            if not size:
                continue
            seen, looks = before.get(one, (0, 0))
            looks = looks + 1 if seen == size else 0
            if looks < MAX_UNREAD_LOOKS:
                self._unread[one] = size, looks
            else:
                one.transport.abort()


def find_context(state: Any, loop: asyncio.AbstractEventLoop) -> ServerContext:
    """The context of one of uvicorn's servers; made with its first connection."""
    context: ServerContext | None = getattr(state, "isthmus_context", None)
    if context is None or context.loop is not loop:
        context = state.isthmus_context = ServerContext(state, loop)
    return context


_STATUS_LINES: dict[int, bytes] = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def _status_line(status: int) -> bytes:
    return _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
