"""Approval rows: each one call that a person is asked about, whoever of its clients still waits for it.

A row is bound to one principal, server, object, set of arguments, definition and version of the policy.
It is decided once and used once, and kept in the state of the host, or in the store that hosts share.
"""

import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec
from msgspec import Struct, structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.interaction import Decision, Interaction
from isthmus.host.model.trace import Trace
from isthmus.host.state.database import HostState, decode_row
from isthmus.host.state.presence import ProcessPresence

if TYPE_CHECKING:
    import sqlite3

    from isthmus.store.bus import Unsubscribe

ApprovalState: TypeAlias = Literal["pending", "decided", "used", "over", "unknown", "withdrawn"]
"""``used``: its call was, or is, on its way to the server; ``over``: that call has ended; ``unknown``: the
process in which it was used has ended first, so that nobody can tell whether it happened."""

WAITING_STATES: frozenset[ApprovalState] = frozenset({"pending", "decided"})
KEY_PURPOSE = b"isthmus approvals"


class ApprovalRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call that a person is asked about.

    Attributes:
        id: that of the question, which is in the address of its page.
        key: what it is bound to, digested under a secret; see :func:`digest_binding`.
        interaction: the question as people see it.
        expires: when it counts no more, in seconds since the epoch.
        state: how far it is.
        node: the process that puts the question; while it is used, the one that uses it.
        claim: the call that waits for it, or uses it; empty while there is none.
        claimed_at: the process of that call.
        decision: what a person decided; None until then.
        changed: when it came into this state, in seconds since the epoch.
    """

    id: str
    key: str
    interaction: Interaction
    expires: float
    state: ApprovalState = "pending"
    node: str = ""
    claim: str = ""
    claimed_at: str = ""
    decision: Decision | None = None
    changed: float = 0.0


ApprovalChange: TypeAlias = Callable[[ApprovalRow], ApprovalRow | None]
"""Gives the row as it is to be; None leaves it."""

encode_approval = msgspec.json.Encoder().encode
approval_decoder = msgspec.json.Decoder(ApprovalRow)


def digest_binding(
    secret: bytes, attempt: Attempt, identity: str, fingerprint: str, trace: Trace
) -> str | None:
    """Digest what an approval is bound to; None for arguments that have no digest.

    Args:
        secret: so that nobody who reads the key can guess arguments by it.
        attempt: with its whole arguments.
        identity: what its server is bound to.
        fingerprint: of the tool's definition.
        trace: what policy said: its version, the rule, and its demands.
    """
    bound = (
        *(attempt.principal, attempt.action, attempt.server, attempt.object, attempt.arguments),
        *(identity, fingerprint, *bind_trace(trace)),
    )
    try:
        text = msgspec.json.encode(bound, order="sorted")
    except (TypeError, ValueError, RecursionError):
        return None
    return hmac.new(secret, KEY_PURPOSE + b"\0" + text, sha256).hexdigest()


def bind_trace(trace: Trace) -> tuple[object, ...]:
    """The part of what policy said that an approval is bound to."""
    return trace.policy, trace.rule, trace.obligations


def is_bound_alike(one: Trace, other: Trace) -> bool:
    """Whether an approval under one trace is one under another, too: it counts for the rules that asked."""
    return bind_trace(one) == bind_trace(other)


class ApprovalStorage(Protocol):
    """Keeps approval rows."""

    @property
    def node(self) -> str:
        """The name of this process."""
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other processes change rows that are looked at here."""
        ...

    def get_secret(self) -> bytes:
        """The secret under which keys are digested: the same at all processes."""
        ...

    async def load(self) -> Sequence[ApprovalRow]:
        """All rows that this process may have to do with.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        ...

    async def add(self, row: ApprovalRow) -> None:
        """Keep a new row; it is durable when this returns.

        Raises:
            StoreUnavailable: it is not kept.
        """
        ...

    async def change(self, id: str, change: ApprovalChange) -> tuple[ApprovalRow | None, bool]:
        """Change a row, after or before all others who do; it is durable when this returns.

        Returns:
            The row as it is now, None where it is gone; whether that is by this change.

        Raises:
            StoreUnavailable: it is not known to be changed.
        """
        ...

    async def forget(self, ids: Sequence[str]) -> None:
        """Forget rows that count no more."""
        ...

    async def is_gone(self, node: str) -> bool:
        """Whether a process has ended."""
        ...

    async def listen(self, hear: Callable[[str], None]) -> "Unsubscribe":
        """Hear of the rows that other processes change, by id; gives what ends that."""
        ...

    async def read(self, id: str) -> ApprovalRow | None:
        """One row; None where it is gone."""
        ...

    async def close(self) -> None:
        """Keep what is there, and let others see that this process ends."""
        ...


class ApprovalTable:
    """Approval rows in the state of a host.

    Args:
        state: where they are kept.
        node: the name of this process.
    """

    is_shared = False

    def __init__(self, state: HostState, node: str) -> None:
        self.node = node
        self._state = state
        self._presence = ProcessPresence(state.folder, f"approvals {node}")

    def get_secret(self) -> bytes:
        """The key of the state."""
        return self._state.key()

    async def load(self) -> Sequence[ApprovalRow]:
        """The rows of processes that have ended; those of one that lives are its own."""
        presence, node = self._presence, self.node

        def work(db: "sqlite3.Connection") -> list[ApprovalRow]:
            presence.begin()
            found = []
            for (body,) in db.execute("SELECT body FROM approval ORDER BY id").fetchall():
                row = decode_row(approval_decoder, body, "an approval")
                if row is not None and presence.gone(f"approvals {row.node}"):
                    # A call that was on its way when its process ended is told once, by its row.
                    state: ApprovalState = "unknown" if row.state == "used" else row.state
                    row = structs.replace(row, node=node, claim="", claimed_at="", state=state)
                    db.execute(
                        "UPDATE approval SET body = ? WHERE id = ?", (encode_approval(row), row.id)
                    )
                    found.append(row)
            return found

        return await self._state.write(work)

    async def add(self, row: ApprovalRow) -> None:
        """Keep a new row."""
        values = row.id, int(row.expires * 1e6), encode_approval(row)
        await self._state.write(
            lambda db: db.execute("INSERT INTO approval VALUES (?, ?, ?)", values)
        )

    async def change(self, id: str, change: ApprovalChange) -> tuple[ApprovalRow | None, bool]:
        """Change a row within one transaction."""

        def work(db: "sqlite3.Connection") -> tuple[ApprovalRow | None, bool]:
            found = db.execute("SELECT body FROM approval WHERE id = ?", (id,)).fetchone()
            if found is None:
                return None, False
            now = approval_decoder.decode(found[0])
            new = change(now)
            if new is None:
                return now, False
            values = encode_approval(new), int(new.expires * 1e6), id
            db.execute("UPDATE approval SET body = ?, expires_us = ? WHERE id = ?", values)
            return new, True

        return await self._state.write(work)

    async def forget(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        rows = [(id,) for id in ids]
        await self._state.write(
            lambda db: db.executemany("DELETE FROM approval WHERE id = ?", rows)
        )

    async def is_gone(self, node: str) -> bool:
        """No other process has to do with rows of this one."""
        return node != self.node

    async def listen(self, hear: Callable[[str], None]) -> "Unsubscribe":  # noqa: ARG002 - as above
        """Nobody else changes them."""
        return lambda: None

    async def read(self, id: str) -> ApprovalRow | None:
        """One row."""
        return (await self.change(id, lambda _: None))[0]

    async def close(self) -> None:
        """End the presence of this process."""
        self._presence.end()
