"""Approval rows that the processes of one host share: a call may come again to any of them."""

from collections.abc import Callable, Sequence
from hmac import digest
from typing import TYPE_CHECKING

from isthmus.host.approvals.approval_rows import (
    ApprovalChange,
    ApprovalRow,
    approval_decoder,
    encode_approval,
)
from isthmus.host.state.shared_state import SharedState
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.store.bus import Unsubscribe

APPROVAL_PREFIX = "approval/"
APPROVAL_CHANNEL = "approvals"
MAX_APPROVAL_RECORDS = 10_000
APPROVAL_SLACK_S = 60.0  # that a record outlives its row
CHANGED_TTL_S = 7 * 86400.0  # of one that was decided: it is forgotten when it expires


class ApprovalRecords:
    """Approval rows in a store.

    Args:
        shared: the store.
        clock: says the seconds since the epoch.
    """

    is_shared = True

    def __init__(self, shared: SharedState, clock: Callable[[], float]) -> None:
        self._shared = shared
        self._clock = clock

    @property
    def node(self) -> str:
        """The id of this process."""
        return self._shared.node.id

    def get_secret(self) -> bytes:
        """The secret of the host's processes; with another one, calls are asked about again."""
        secrets = self._shared.node.secrets
        if not secrets:
            raise StoreUnavailable("this host has not joined the others of its store")
        return digest(secrets[0], b"isthmus host approvals", "sha256")

    async def load(self) -> Sequence[ApprovalRow]:
        """All rows."""
        rows = await self._shared.scan(APPROVAL_PREFIX, MAX_APPROVAL_RECORDS)
        return [approval_decoder.decode(value) for _, value, _ in rows]

    async def add(self, row: ApprovalRow) -> None:
        """Keep a new row."""
        await self._shared.put(APPROVAL_PREFIX + row.id, encode_approval(row), self._ttl(row))
        await self._shared.announce(APPROVAL_CHANNEL, row.id.encode())

    async def change(self, id: str, change: ApprovalChange) -> tuple[ApprovalRow | None, bool]:
        """Change a row by compare-and-swap."""

        def work(value: bytes | None) -> tuple[bytes | None, tuple[ApprovalRow | None, bool]]:
            now = None if value is None else approval_decoder.decode(value)
            new = None if now is None else change(now)
            return (None, (now, False)) if new is None else (encode_approval(new), (new, True))

        done = await self._shared.update(APPROVAL_PREFIX + id, work, CHANGED_TTL_S)
        if done[1]:
            await self._shared.announce(APPROVAL_CHANNEL, id.encode())
        return done

    def _ttl(self, row: ApprovalRow) -> float:
        return max(row.expires - self._clock(), 0.0) + APPROVAL_SLACK_S

    async def forget(self, ids: Sequence[str]) -> None:
        """Delete rows."""
        for id in ids:
            await self._shared.delete(APPROVAL_PREFIX + id)

    async def is_gone(self, node: str) -> bool:
        """Whether a process has ended."""
        return node != self.node and not await self._shared.node.is_alive(node)

    async def listen(self, hear: Callable[[str], None]) -> "Unsubscribe":
        """Hear of rows that other processes change."""
        return await self._shared.listen(APPROVAL_CHANNEL, lambda message: hear(message.decode()))

    async def read(self, id: str) -> ApprovalRow | None:
        """One row."""
        value, _ = await self._shared.get(APPROVAL_PREFIX + id)
        return None if value is None else approval_decoder.decode(value)

    async def close(self) -> None:
        """The node leaves by itself."""
