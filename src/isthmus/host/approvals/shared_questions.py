"""Questions that the processes of one host share: each is decided once, at whatever process.

A question is a record in the store. It is *waiting* until somebody decides it; the first decision
wins, by compare-and-swap. One that is given at another process than the one where the call waits makes it
*decided*: the call's own process takes it up, and makes it *taken*. Nobody else ever acts on it: what
waited in a process that has ended is *withdrawn*.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct, structs

from isthmus.errors import IsthmusError
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Assurance
from isthmus.host.state.shared_state import SharedState
from isthmus.runtime.failures import log_warning

if TYPE_CHECKING:
    from isthmus.store.bus import Unsubscribe

QUESTION_PREFIX, SURFACE_PREFIX = "question/", "surface/"
QUESTION_CHANNEL = "questions"
QUESTION_TOPIC = "question"
QUESTION_SLACK_S = 60.0  # that a record outlives the deadline of its question
ANSWERED_TTL_S = 120.0  # whoever decides late is told by whom it was decided
SURFACE_TTL_S = 6.0
MAX_QUESTION_RECORDS = 10_000
MAX_HOST_NODES = 1_000

QuestionState: TypeAlias = Literal["waiting", "decided", "taken", "withdrawn"]


class QuestionRecord(Struct, frozen=True, kw_only=True):
    """A question as all processes see it.

    Attributes:
        node: where the call waits.
        state: see the module.
        interaction: what is asked.
        decision: what was decided, once it was.
        decided_at: the process where.
    """

    node: str
    state: QuestionState
    interaction: Interaction
    decision: Decision | None = None
    decided_at: str = ""


class RemoteSurfaces(Struct, frozen=True):
    """The surfaces of one process.

    Attributes:
        assurance: the best among them.
        only_decides: none of them can answer what wants more than a yes.
    """

    assurance: Assurance
    only_decides: bool = False


_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(QuestionRecord)
_surfaces_decoder = msgspec.json.Decoder(RemoteSurfaces)
_decision_decoder = msgspec.json.Decoder(Decision)


class SharedQuestions:
    """The records of questions.

    Args:
        shared: the store.
    """

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._unsubscribe: list[Unsubscribe] = []

    @property
    def node(self) -> str:
        """The id of this process."""
        return self._shared.node.id

    async def open(
        self,
        hear: Callable[[str], None],
        look: Callable[[], None],
        take: Callable[[str], Awaitable[Decision | None]],
    ) -> None:
        """Begin to hear what other processes do.

        Args:
            hear: called with the id of a question that has changed.
            look: called when anything may have changed.
            take: told of a question of this process that was decided elsewhere; gives what counts.

        Raises:
            StoreUnavailable: nothing would be heard.
        """

        async def on_letter(body: bytes) -> bytes:
            decision = await take(body.decode())
            return b"" if decision is None else _encode(decision)

        async def on_death(_node: str) -> None:
            look()

        node = self._shared.node

        async def on_return() -> None:
            look()

        node.on_death(on_death)
        node.on_return(on_return)
        if node.mailbox is not None:
            node.mailbox.handle(QUESTION_TOPIC, on_letter)
        self._unsubscribe.append(
            await self._shared.listen(QUESTION_CHANNEL, lambda message: hear(message.decode()))
        )
        self._unsubscribe.append(self._shared.on_gap(look))

    async def close(self) -> None:
        """Hear nothing more, and say that nobody can be asked here."""
        while self._unsubscribe:
            self._unsubscribe.pop()()
        try:
            await self.tell_surfaces(None)
        except IsthmusError as error:
            log_warning("the surfaces of this host stay listed for a moment: %s", error)

    # Questions

    async def post(self, interaction: Interaction) -> None:
        """Put a question to all processes.

        Raises:
            StoreUnavailable: they cannot see it, so it is not asked.
        """
        record = QuestionRecord(node=self.node, state="waiting", interaction=interaction)
        ttl = max(interaction.deadline - interaction.opened, 0.0) + QUESTION_SLACK_S
        await self._shared.put(QUESTION_PREFIX + interaction.id, _encode(record), ttl)
        await self._announce(interaction.id)

    async def read(self, id: str) -> QuestionRecord | None:
        """A question, or None.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        value, _ = await self._shared.get(QUESTION_PREFIX + id)
        return None if value is None else _decoder.decode(value)

    async def scan(self) -> dict[str, QuestionRecord]:
        """All questions by id.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        rows = await self._shared.scan(QUESTION_PREFIX, MAX_QUESTION_RECORDS)
        return {key.removeprefix(QUESTION_PREFIX): _decoder.decode(value) for key, value, _ in rows}

    async def settle(self, id: str, decision: Decision) -> tuple[QuestionRecord | None, bool]:
        """Decide a question that waits.

        Returns:
            The question as it is now, None where it is gone; whether this decision is the one.

        Raises:
            StoreUnavailable: it is not known to be decided.
        """

        def change(now: QuestionRecord) -> QuestionRecord | None:
            if now.state != "waiting":
                return None
            state: QuestionState = "taken" if now.node == self.node else "decided"
            return structs.replace(now, state=state, decision=decision, decided_at=self.node)

        return await self._update(id, change)

    async def take(self, id: str) -> bool:
        """Take up a decision of another process; False where the question was withdrawn.

        Raises:
            StoreUnavailable: it is not known to be taken.
        """

        def change(now: QuestionRecord) -> QuestionRecord | None:
            return structs.replace(now, state="taken") if now.state == "decided" else None

        return (await self._update(id, change))[1]

    async def withdraw(self, id: str, decision: Decision) -> bool:
        """Take a question back; False where that has happened, or its decision was taken up.

        Raises:
            StoreUnavailable: it is not known to be withdrawn.
        """

        def change(now: QuestionRecord) -> QuestionRecord | None:
            if now.state == "withdrawn" or (now.state == "taken" and now.node != self.node):
                return None
            return structs.replace(now, state="withdrawn", decision=decision)

        return (await self._update(id, change))[1]

    async def tell_home(self, record: QuestionRecord) -> Decision | None:
        """Tell the process where the call waits that it was decided; what counts there, if known."""
        mailbox = self._shared.node.mailbox
        if mailbox is None:
            return None
        try:
            answer = await mailbox.send(record.node, QUESTION_TOPIC, record.interaction.id.encode())
        except IsthmusError as error:  # it looks by itself, or has ended
            log_warning("the process where a call waits is not told of a decision: %s", error)
            return None
        return _decision_decoder.decode(answer) if answer else None

    async def is_alive(self, node: str) -> bool:
        """Whether a process lives.

        Raises:
            StoreUnavailable: nobody can tell.
        """
        return await self._shared.node.is_alive(node)

    # Surfaces

    async def tell_surfaces(self, surfaces: RemoteSurfaces | None) -> None:
        """Tell that somebody can be asked here, for some seconds; None: nobody.

        Raises:
            StoreUnavailable: it is not known to be told.
        """
        key = SURFACE_PREFIX + self.node
        if surfaces is None:
            await self._shared.delete(key)
        else:
            await self._shared.put(key, _encode(surfaces), SURFACE_TTL_S)

    async def read_surfaces(self) -> list[RemoteSurfaces]:
        """The surfaces of each other process at which somebody can be asked.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        rows = await self._shared.scan(SURFACE_PREFIX, MAX_HOST_NODES)
        mine = SURFACE_PREFIX + self.node
        return [_surfaces_decoder.decode(value) for key, value, _ in rows if key != mine]

    async def tell_look(self) -> None:
        """Have the other processes look at everything."""
        await self._announce("")

    async def _announce(self, id: str) -> None:
        await self._shared.announce(QUESTION_CHANNEL, id.encode())

    async def _update(
        self, id: str, change: Callable[[QuestionRecord], QuestionRecord | None]
    ) -> tuple[QuestionRecord | None, bool]:
        """Change a question; as it is then, and whether that is by this change."""
        key = QUESTION_PREFIX + id
        while True:
            value, version = await self._shared.get(key)
            if value is None:
                return None, False
            now = _decoder.decode(value)
            new = change(now)
            if new is None:
                return now, False
            if await self._shared.cas(key, _encode(new), version, ANSWERED_TTL_S) is not None:
                await self._announce(id)
                return new, True
