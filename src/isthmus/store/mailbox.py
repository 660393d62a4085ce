"""Mailbox: messages to one node, each with an answer; over any bus.

A letter that nobody answers in time is lost, as far as its sender knows: it may have been taken in
all the same. What must not happen twice is therefore guarded where it happens.
"""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count

import msgspec

from isthmus.errors import IsthmusError
from isthmus.runtime.failures import log_failure
from isthmus.store.bus import Bus, Unsubscribe

MAIL_TIMEOUT_S = 2.0  # that an answer to a letter may take

MAX_LETTERS_AT_WORK = 10_000  # letters that one mailbox works on at a time

REPLAY_WINDOW_LETTERS = 4096  # of one sender, that may come late and are known to be new

MAX_SENDERS = 1_000  # whose letters are remembered

Handler = Callable[[bytes], Awaitable[bytes]]
"""Takes a letter in, and gives the answer to it; what it raises is told to the sender."""


class MailUndelivered(IsthmusError):
    """A letter was not answered: nobody has this address any more, or it takes too long."""


class MailRefused(IsthmusError):
    """Whoever took a letter in could not do what it says; the message tells why."""


class Letter(msgspec.Struct, frozen=True, array_like=True):
    """One message between mailboxes.

    Attributes:
        number: the sender's, which the answer has, too; 0 where none is wanted.
        sender: where the answer goes; empty in an answer.
        topic: what it is about; in an answer, why there is none: empty where all is well.
        body: the rest.
    """

    number: int
    sender: str
    topic: str
    body: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Letter).decode


class ReplayWindow:
    """The numbers of one sender's newest letters: each is taken in once."""

    __slots__ = ("_newest", "_seen")

    def __init__(self) -> None:
        self._newest = 0
        self._seen = 0  # bit n: the letter n before the newest has come

    def accept(self, number: int) -> bool:
        """Note that a letter has come; False where it came before, or nobody can tell any more."""
        ahead = number - self._newest
        if ahead > 0:
            kept = self._seen << ahead if ahead < REPLAY_WINDOW_LETTERS else 0
            self._seen = (kept | 1) & ((1 << REPLAY_WINDOW_LETTERS) - 1)
            self._newest = number
            return True
        if -ahead >= REPLAY_WINDOW_LETTERS or self._seen >> -ahead & 1:
            return False
        self._seen |= 1 << -ahead
        return True


class Mailbox:
    """The letters of one node. One that wants an answer is taken in once, however often it comes.

    Args:
        bus: carries them.
        address: the node's name, which no other has.
    """

    def __init__(self, bus: Bus, address: str) -> None:
        self.address = address
        self._bus = bus
        self._handlers: dict[str, Handler] = {}
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._windows: dict[str, ReplayWindow] = {}
        self._unsubscribe: Unsubscribe | None = None

    def handle(self, topic: str, handler: Handler) -> None:
        """Call a function with each letter on a topic.

        Args:
            topic: the topic.
            handler: gets the body of a letter, and gives the body of the answer.
        """
        self._handlers[topic] = handler

    async def open(self) -> None:
        """Begin to take letters in.

        Raises:
            StoreUnavailable: none would come.
        """
        if self._unsubscribe is None:
            self._unsubscribe = await self._bus.subscribe(_make_channel(self.address), self._hear)

    async def close(self) -> None:
        """Take no more letters in, and give up those at work; who waits for answers is told."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(MailUndelivered(f"node {self.address} ends"))
        work = self._work - {asyncio.current_task()}  # a handler may be what closes it
        for task in work:
            task.cancel()
        if work:
            await asyncio.wait(work)

    async def send(
        self, address: str, topic: str, body: bytes, timeout: float = MAIL_TIMEOUT_S
    ) -> bytes:
        """Send a letter, and wait for the answer.

        Args:
            address: the node it is for.
            topic: what it is about.
            body: the rest.
            timeout: seconds to wait.

        Raises:
            MailUndelivered: nobody answered.
            MailRefused: it was taken in, and cannot be done.
            StoreUnavailable: it could not be sent.
        """
        number = next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            if not await self._bus.publish(
                _make_channel(address), _encode(Letter(number, self.address, topic, body))
            ):
                raise MailUndelivered(f"node {address} is not there")
            async with asyncio.timeout(timeout):
                answer: bytes = await future
                return answer
        except TimeoutError:
            raise MailUndelivered(f"node {address} does not answer") from None
        finally:
            self._waiting.pop(number, None)
            del future  # which keeps what is raised, and so would this frame

    async def post(self, address: str, topic: str, body: bytes) -> bool:
        """Send a letter that wants no answer.

        Args:
            address: the node it is for.
            topic: the topic, which selects the handler there.
            body: the content.

        Returns:
            False where it is known that nobody takes it in.
        """
        letter = Letter(0, self.address, topic, body)
        return await self._bus.publish(_make_channel(address), _encode(letter))

    def _hear(self, message: bytes) -> None:
        try:
            letter = _decode(message)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log_failure("a letter of another node", error)
            return
        if not letter.sender:
            self._take_answer(letter)
        elif letter.number and not self._is_new(letter):
            return
        elif len(self._work) < MAX_LETTERS_AT_WORK:
            task = asyncio.get_running_loop().create_task(self._serve(letter))
            self._work.add(task)
            task.add_done_callback(self._work.discard)

    def _is_new(self, letter: Letter) -> bool:
        """Whether a letter comes for the first time: who can write to the bus may say it again."""
        window = self._windows.get(letter.sender)
        if window is None:
            if len(self._windows) >= MAX_SENDERS:
                del self._windows[next(iter(self._windows))]
            window = self._windows[letter.sender] = ReplayWindow()
        return window.accept(letter.number)

    def _take_answer(self, letter: Letter) -> None:
        future = self._waiting.get(letter.number)
        if future is None or future.done():
            return  # nobody waits for it any more
        if letter.topic:
            future.set_exception(MailRefused(letter.topic))
        else:
            future.set_result(letter.body)

    async def _serve(self, letter: Letter) -> None:
        handler, fault, answer = self._handlers.get(letter.topic), "", b""
        if handler is None:
            fault = f"nobody takes in letters on {letter.topic!r} here"
        else:
            try:
                answer = await handler(letter.body)
            except IsthmusError as error:
                fault = str(error) or type(error).__name__
            except Exception as error:  # noqa: BLE001 - the sender must not wait for it in vain
                fault = f"it failed: {type(error).__name__}"
                log_failure(f"a letter on {letter.topic}", error)
        if letter.number:
            try:
                await self._bus.publish(
                    _make_channel(letter.sender), _encode(Letter(letter.number, "", fault, answer))
                )
            except IsthmusError as error:
                log_failure("an answer to another node", error)


def _make_channel(address: str) -> str:
    return f"mail/{address}"
