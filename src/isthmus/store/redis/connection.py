"""Connection to a Redis server: commands of one turn of the loop in one write, answers in order.

hiredis, the parser of the Redis project, reads and writes the protocol. What is here is what
asyncio needs around it: whoever is cancelled leaves the connection as it is, any number of calls are
under way at a time, and an answer that does not come ends all of them in time.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from isthmus.errors import UsageError
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    import ssl

    from isthmus.store.redis.address import RedisAddress

CONNECT_TIMEOUT_S = 1.0  # to connect and to be let in

COMMAND_TIMEOUT_S = 2.0  # until an answer

GRACE_S = 0.1  # before the end of that time, in which a process that was stopped reads what came

MAX_REPLY_BYTES = 64 * 1024 * 1024  # of one answer

MAX_UNSENT_BYTES = 64 * 1024 * 1024  # that wait until the server reads them

MAX_SHOWN_CHARS = 200  # of an error of Redis's in one of ours

CLIENT_NAME = "isthmus"  # as CLIENT LIST shows us

Word = str | bytes | int

Reply = Any
"""A number, bytes, None, or a list of these."""

HearMessage = Callable[[bytes, bytes], None]
"""Called with the channel and the message."""

OnLost = Callable[["RedisConnection", str], None]
"""Called once with a connection that has ended, and the reason."""


class RedisReplyError(Exception):
    """An error that Redis answered with; its first word is a code."""


class RedisCut(StoreUnavailable):
    """The connection ended before an answer came: whether it was done is not known."""


class RedisMisconfigured(StoreUnavailable):
    """The server does not let us in, and will not until somebody changes a setting."""


class RedisConnection(asyncio.Protocol):
    """One open connection.

    Args:
        name: of the store, for messages.
        on_lost: called once when it has ended.
        hear: called with each message of a channel; None on a connection for commands.
    """

    def __init__(self, name: str, on_lost: OnLost, hear: HearMessage | None = None) -> None:
        import hiredis

        self._name = name
        self._on_lost = on_lost
        self._hear = hear
        self._loop = asyncio.get_running_loop()
        self._protocol_error = hiredis.ProtocolError
        self._reader = hiredis.Reader(replyError=RedisReplyError)
        self._pack = cast("Callable[[tuple[Word, ...]], bytes]", hiredis.pack_command)
        self._transport: asyncio.Transport | None = None
        self._under_way: deque[tuple[float, asyncio.Future[Reply]]] = deque()
        self._out: list[bytes] = []
        self._unparsed_bytes = 0
        self._full = False
        self._watchdog: asyncio.TimerHandle | None = None
        self._late: object = None
        self.lost = ""

    def send(self, words: tuple[Word, ...]) -> "asyncio.Future[Reply]":
        """Send a command together with all others of this turn of the loop.

        Args:
            words: the command and its arguments.

        Returns:
            What will be its answer, or raise RedisReplyError, RedisCut or StoreUnavailable.

        Raises:
            StoreUnavailable: it was not sent.
        """
        if self.lost:
            raise StoreUnavailable(f"{self._name} cannot be reached: {self.lost}")
        if self._full:
            raise StoreUnavailable(f"{self._name} does not read what it is sent: it is overloaded")
        loop = self._loop
        future: asyncio.Future[Reply] = loop.create_future()
        if not self._out:
            loop.call_soon(self._flush)
        self._out.append(self._pack(words))
        self._under_way.append((loop.time() + COMMAND_TIMEOUT_S, future))
        if self._watchdog is None:
            self._watchdog = loop.call_later(COMMAND_TIMEOUT_S - GRACE_S, self._watch)
        return future

    def end(self, reason: str, *, answered: bool = True) -> None:
        """End the connection; whoever waits for an answer is told.

        Args:
            reason: why.
            answered: whether the server still answers: what is asked again may succeed then.
        """
        if self.lost:
            return
        self.lost = reason
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.abort()
        text = f"{self._name}: {reason}; whether it was done is not known"
        while self._under_way:
            _, future = self._under_way.popleft()
            if not future.done():
                future.set_exception(RedisCut(text) if answered else StoreUnavailable(text))
        self._on_lost(self, reason)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport, and have a dead machine noticed."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=MAX_UNSENT_BYTES)
        found = transport.get_extra_info("socket")
        if found is not None and found.family != getattr(socket, "AF_UNIX", None):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        """Hand each whole answer to whoever waits for it."""
        reader = self._reader
        reader.feed(data)
        self._unparsed_bytes += len(data)
        try:
            while (reply := reader.gets()) is not False:
                self._unparsed_bytes = 0
                self._take_reply(reply)
        except self._protocol_error:
            self.end("it sent something that is no answer of Redis", answered=False)
        if self._unparsed_bytes > MAX_REPLY_BYTES:
            self.end(f"it sent an answer of more than {MAX_REPLY_BYTES} bytes", answered=False)

    def pause_writing(self) -> None:
        """Take no more commands: the server does not read."""
        self._full = True

    def resume_writing(self) -> None:
        """Take commands again."""
        self._full = False

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        self.end("the connection ended" if error is None else f"the connection ended: {error}")

    # Inside

    def _flush(self) -> None:
        out, self._out = self._out, []
        if self._transport is not None and not self.lost:
            self._transport.write(b"".join(out))

    def _take_reply(self, reply: Reply) -> None:
        if self._hear is not None and type(reply) is list and reply[:1] == [b"message"]:
            self._hear(reply[1], reply[2])
            return
        if not self._under_way:
            if not self.lost:
                words = str(reply)[:MAX_SHOWN_CHARS]
                self.end(f"it answered what nobody asked: {words}", answered=False)
            return
        _, future = self._under_way.popleft()
        if future.done():  # its caller was cancelled
            return
        if isinstance(reply, RedisReplyError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _watch(self) -> None:
        """End the connection where the oldest command has no answer in time.

        A process that was stopped may find its time over before it has read what came meanwhile:
        it gets a last short while to do so.
        """
        self._watchdog = None
        if not self._under_way:
            return
        oldest = self._under_way[0]
        left = oldest[0] - self._loop.time()
        if left <= GRACE_S and self._late is oldest:
            self.end(f"no answer within {COMMAND_TIMEOUT_S:g} s", answered=False)
            return
        if left <= GRACE_S:
            self._late, left = oldest, 2 * GRACE_S
        self._watchdog = self._loop.call_later(left - GRACE_S, self._watch)


async def connect(
    address: "RedisAddress", on_lost: OnLost, hear: HearMessage | None = None
) -> RedisConnection:
    """Connect to a server, and be let in.

    Args:
        address: where it is.
        on_lost: called once when the connection has ended.
        hear: called with each message of a channel; None for a connection for commands.

    Raises:
        StoreUnavailable: it cannot be reached now.
        RedisMisconfigured: it does not let us in.
        UsageError: hiredis is not installed.
    """
    import ssl

    try:
        made = RedisConnection(address.name, on_lost, hear)
    except ImportError:
        raise UsageError("a store in Redis takes hiredis: pip install 'isthmus[redis]'") from None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            await _open_transport(address, made)
            await _greet(address, made)
    except TimeoutError:
        made.end("it was too slow", answered=False)
        raise StoreUnavailable(
            f"{address.name} cannot be reached: no answer within {CONNECT_TIMEOUT_S:g} s"
        ) from None
    except ssl.SSLError as error:
        made.end("TLS failed", answered=False)
        raise RedisMisconfigured(
            f"{address.name} cannot be reached over TLS: {getattr(error, 'verify_message', '') or error.reason}; "
            "name the certificate of its authority by ?ssl_ca_certs=FILE, or write redis:// where "
            "it does not encrypt"
        ) from None
    except OSError as error:
        made.end("it cannot be reached", answered=False)
        raise StoreUnavailable(f"{address.name} cannot be reached: {error}") from None
    except BaseException:
        made.end("it was not opened")
        raise
    return made


async def _open_transport(address: "RedisAddress", made: RedisConnection) -> None:
    loop = asyncio.get_running_loop()
    if address.path:
        await loop.create_unix_connection(lambda: made, address.path)
        return
    context = _make_tls_context(address) if address.tls else None
    await loop.create_connection(lambda: made, address.host, address.port, ssl=context)


def _make_tls_context(address: "RedisAddress") -> "ssl.SSLContext":
    import ssl

    try:
        context = ssl.create_default_context(cafile=address.ca or None)
        if address.certificate:
            context.load_cert_chain(address.certificate, address.key or None)
    except OSError as error:  # an SSLError is one, too
        raise RedisMisconfigured(
            f"the certificates for {address.name} cannot be read: {error}"
        ) from None
    return context


async def _greet(address: "RedisAddress", made: RedisConnection) -> None:
    """Say who we are and which database we want, and see that we are let in."""
    asked: list[asyncio.Future[Reply]] = []
    if address.password:
        user = (address.username,) if address.username else ()
        asked.append(made.send(("AUTH", *user, address.password)))
    if address.db:
        asked.append(made.send(("SELECT", address.db)))
    asked.append(made.send(("PING",)))
    named = made.send(("CLIENT", "SETNAME", CLIENT_NAME))
    done = await asyncio.gather(*asked, named, return_exceptions=True)
    for answer in done[:-1]:  # some services do not know names
        if isinstance(answer, RedisReplyError):
            raise _judge_greeting(address, str(answer)) from None
        if isinstance(answer, BaseException):
            raise StoreUnavailable(f"{address.name} cannot be reached: {made.lost}") from None


def _judge_greeting(address: "RedisAddress", message: str) -> StoreUnavailable:
    code = message.partition(" ")[0]
    if code in {"WRONGPASS", "NOAUTH"} or "AUTH" in message:
        needs = "wants a password" if code == "NOAUTH" else "does not take this password"
        return RedisMisconfigured(
            f"{address.name} {needs} ({message[:MAX_SHOWN_CHARS]}): write "
            "redis://USER:PASSWORD@HOST:PORT/DB, USER only where it has users"
        )
    if "DB index" in message or "SELECT" in message:
        return RedisMisconfigured(
            f"{address.name} has no database {address.db} ({message[:MAX_SHOWN_CHARS]}): name "
            "another, or raise 'databases' in redis.conf"
        )
    if code == "NOPERM":
        return RedisMisconfigured(f"{address.name} refuses: {message[:MAX_SHOWN_CHARS]}")
    return StoreUnavailable(f"{address.name} is not ready: {message[:MAX_SHOWN_CHARS]}")
