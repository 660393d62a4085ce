"""Limits on password tries: per account and address, per address, per account.

:class:`LoginTries` says by which rules, and counts in memory; :class:`StoredLoginTries` counts by the same
rules in the store, where a restart and a second process know of it.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from isthmus.auth.authorization_server.users.users import fold_account
from isthmus.auth.net.addresses import address_block

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.storage.records import Records
    from isthmus.auth.authorization_server.storage.store import AuthStore


class Allowance(msgspec.Struct, frozen=True):
    """A rate: so many tries in so many seconds.

    Attributes:
        tries: the number of tries.
        seconds: the period that they are counted in, in seconds.
    """

    tries: int
    seconds: float


SAME_ACCOUNT_AND_ADDRESS = Allowance(5, 15 * 60.0)
SAME_ADDRESS = Allowance(50, 15 * 60.0)
# The last resort against many addresses; so high that locking somebody out takes some effort, and
# does so for an hour at most.
SAME_ACCOUNT = Allowance(100, 3600.0)


class TryCounts(Protocol):
    """Counts of tries by key, with the time of the first."""

    def get(self, key: str) -> tuple[int, float] | None:
        """The number and the beginning; None for a key that did nothing."""
        ...

    def put(self, key: str, count: int, began: float) -> None:
        """Set both."""
        ...

    def drop(self, key: str) -> None:
        """Begin anew with a key."""
        ...


class MemoryTryCounts:
    """Counts of this process.

    Args:
        size: the most keys to remember; those that began longest ago are forgotten first.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def get(self, key: str) -> tuple[int, float] | None:
        """The number and the beginning."""
        return self._counts.get(key)

    def put(self, key: str, count: int, began: float) -> None:
        """Set both; a key that begins anew is the last to be forgotten."""
        known = self._counts.get(key)
        if known is not None and known[1] != began:
            del self._counts[key]
        self._counts[key] = (count, began)
        while len(self._counts) > self._size:
            self._counts.popitem(last=False)

    def drop(self, key: str) -> None:
        """Begin anew with a key."""
        self._counts.pop(key, None)


class StoredTryCounts:
    """Counts in a store, for one transaction; keys are kept as digests, as people type passwords there.

    Args:
        records: the store, in a transaction.
        kind: what is counted.
        seconds: after which a count is of no use any more.
        size: as of :class:`MemoryTryCounts`.
    """

    def __init__(self, records: "Records", kind: str, seconds: float, size: int) -> None:
        self._records = records
        self._kind = kind
        self._seconds = seconds
        self._size = size

    def get(self, key: str) -> tuple[int, float] | None:
        """The number and the beginning."""
        row: tuple[int, float] | None = self._records.db.execute(
            "SELECT count, began FROM login_try WHERE kind = ? AND digest = ?",
            (self._kind, self._digest(key)),
        ).fetchone()
        return row

    def put(self, key: str, count: int, began: float) -> None:
        """Set both."""
        self._records.db.execute(
            "INSERT OR REPLACE INTO login_try VALUES (?, ?, ?, ?, ?)",
            (self._kind, self._digest(key), count, began, began + self._seconds),
        )
        self._records.db.execute(
            "DELETE FROM login_try WHERE kind = :kind AND digest IN (SELECT digest FROM login_try "
            "WHERE kind = :kind ORDER BY began LIMIT max(0, (SELECT count(*) FROM login_try "
            "WHERE kind = :kind) - :size))",
            {"kind": self._kind, "size": self._size},
        )

    def drop(self, key: str) -> None:
        """Begin anew with a key."""
        self._records.db.execute(
            "DELETE FROM login_try WHERE kind = ? AND digest = ?", (self._kind, self._digest(key))
        )

    def _digest(self, key: str) -> bytes:
        return self._records.vault.digest(f"login try {key}")


class TryWindow:
    """Counts per key, in windows that begin with a key's first try.

    Args:
        allowance: what each key may do.
        counts: where the counts are kept.
    """

    def __init__(self, allowance: Allowance, counts: TryCounts) -> None:
        self._allowance = allowance
        self._counts = counts

    def wait(self, key: str, now: float) -> float:
        """Seconds until the key has another try; 0 where it has one now."""
        count, began = self._counts.get(key) or (0, now)
        over = min(began, now) + self._allowance.seconds  # a clock may have been set back
        return over - now if count >= self._allowance.tries and now < over else 0.0

    def count(self, key: str, now: float) -> None:
        """Take note of a try."""
        count, began = self._counts.get(key) or (0, now)
        if now >= began + self._allowance.seconds:
            count, began = 0, now
        self._counts.put(key, count + 1, min(began, now))

    def give_back(self, key: str) -> None:
        """Take no note of one try after all."""
        known = self._counts.get(key)
        if known is not None:
            self._counts.put(key, max(0, known[0] - 1), known[1])

    def forget(self, key: str) -> None:
        """Begin anew with a key."""
        self._counts.drop(key)


class LoginTries:
    """Says whether a password may be tried once more; unknown accounts count like known ones.

    Args:
        both: what one address may try at one account.
        address: what one address may try at all accounts together.
        account: what all addresses together may try at one account.
        size: the most accounts and addresses to remember of each kind.
        clock: seconds that never go back.
    """

    def __init__(
        self,
        both: Allowance = SAME_ACCOUNT_AND_ADDRESS,
        address: Allowance = SAME_ADDRESS,
        account: Allowance = SAME_ACCOUNT,
        *,
        size: int = 20_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.allowances = (both, address, account)
        self.size = size
        self._windows = [TryWindow(one, MemoryTryCounts(size)) for one in self.allowances]
        self._clock = clock

    @classmethod
    def over(cls, windows: Sequence[TryWindow], clock: Callable[[], float]) -> "LoginTries":
        """The same rules over counts that are kept elsewhere."""
        tries = cls(clock=clock)
        tries._windows = list(windows)
        return tries

    def take(self, account: str, address: str) -> int:
        """Count a try before it is judged, so that many at once are no way around.

        Args:
            account: as it was typed.
            address: of the TCP peer.

        Returns:
            0 where it may go on, else the seconds until another try has a chance.
        """
        now = self._clock()
        wait = max(
            window.wait(key, now) for window, key in self._windows_and_keys(account, address)
        )
        if wait > 0:
            return max(1, math.ceil(wait))
        for window, key in self._windows_and_keys(account, address):
            window.count(key, now)
        return 0

    def succeeded(self, account: str, address: str) -> None:
        """The try was good: it does not count, and this address has all its tries at this account.

        What it did at other accounts stays counted, else an account of one's own would buy tries
        at those of others. An office behind one address may log in as often as it likes.
        """
        (both, ours), *others = self._windows_and_keys(account, address)
        both.forget(ours)
        for window, key in others:
            window.give_back(key)

    def _windows_and_keys(self, account: str, address: str) -> Iterator[tuple[TryWindow, str]]:
        name, place = fold_account(account)[:128], address_block(address)
        return zip(self._windows, (f"{place} {name}", place, name), strict=True)


COUNT_KINDS = ("account and address", "address", "account")  # in the order of LoginTries.allowances


class StoredLoginTries:
    """Counts tries in the store of an authorization server, by the rules of a :class:`LoginTries`.

    Args:
        store: where they are counted.
        rules: what may be tried; what it counted itself is not looked at.
    """

    def __init__(self, store: "AuthStore", rules: LoginTries | None = None) -> None:
        self._store = store
        self._rules = rules or LoginTries()

    async def take(self, account: str, address: str) -> int:
        """Count a try before it is judged; see :meth:`Tries.take`.

        Raises:
            StoreLocked: another process has the store: nothing may be tried then.
        """
        return await self._store.write(
            lambda records: self._bind_records(records).take(account, address)
        )

    async def succeeded(self, account: str, address: str) -> None:
        """The try was good; see :meth:`Tries.succeeded`."""
        await self._store.write(
            lambda records: self._bind_records(records).succeeded(account, address)
        )

    def _bind_records(self, records: "Records") -> LoginTries:
        windows = [
            TryWindow(one, StoredTryCounts(records, kind, one.seconds, self._rules.size))
            for kind, one in zip(COUNT_KINDS, self._rules.allowances, strict=True)
        ]
        return LoginTries.over(windows, lambda: records.now)


REGISTRATION_KIND = "registration"

MAX_REGISTRATION_ADDRESSES = 20_000


def count_registration(records: "Records", allowance: Allowance, address: str) -> float:
    """Count a client's registration in the store, for all processes that have it.

    Args:
        records: the store, in a transaction.
        allowance: what one address may register.
        address: whom it came from.

    Returns:
        0 where it may go on; else the seconds until another one may, and it is not counted.
    """
    counts = StoredTryCounts(
        records, REGISTRATION_KIND, allowance.seconds, MAX_REGISTRATION_ADDRESSES
    )
    window, key = TryWindow(allowance, counts), address_block(address)
    wait = window.wait(key, records.now)
    if not wait:
        window.count(key, records.now)
    return wait
