"""How often somebody may try a password: per account and address, per address, per account."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

import msgspec

from isthmus.auth.authorization_server.limits import network_of
from isthmus.auth.authorization_server.users import folded

__all__ = ["Allowance", "Tries"]


class Allowance(msgspec.Struct, frozen=True):
    """So many tries in so many seconds."""

    tries: int
    seconds: float


SAME_ACCOUNT_AND_ADDRESS = Allowance(5, 15 * 60.0)
SAME_ADDRESS = Allowance(50, 15 * 60.0)
# The last resort against many addresses; so high that locking somebody out takes some effort, and
# does so for an hour at most.
SAME_ACCOUNT = Allowance(100, 3600.0)


class Window:
    """Counts per key, in windows that begin with a key's first try.

    Args:
        allowance: what each key may do.
        size: the most keys to remember; those that began longest ago are forgotten first.
    """

    def __init__(self, allowance: Allowance, size: int) -> None:
        self._allowance = allowance
        self._size = size
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def wait(self, key: str, now: float) -> float:
        """Seconds until the key has another try; 0 where it has one now."""
        count, began = self._counts.get(key, (0, now))
        over = began + self._allowance.seconds
        return over - now if count >= self._allowance.tries and now < over else 0.0

    def count(self, key: str, now: float) -> None:
        """Take note of a try."""
        count, began = self._counts.get(key, (0, now))
        if now >= began + self._allowance.seconds:
            self._counts.pop(key, None)
            count, began = 0, now
        self._counts[key] = (count + 1, began)
        while len(self._counts) > self._size:
            self._counts.popitem(last=False)

    def give_back(self, key: str) -> None:
        """Take no note of one try after all."""
        if key in self._counts:
            count, began = self._counts[key]
            self._counts[key] = (max(0, count - 1), began)

    def forget(self, key: str) -> None:
        """Begin anew with a key."""
        self._counts.pop(key, None)


class Tries:
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
        self._windows = [Window(allowance, size) for allowance in (both, address, account)]
        self._clock = clock

    def take(self, account: str, address: str) -> int:
        """Count a try before it is judged, so that many at once are no way around.

        Args:
            account: as it was typed.
            address: of the TCP peer.

        Returns:
            0 where it may go on, else the seconds until another try has a chance.
        """
        now = self._clock()
        wait = max(window.wait(key, now) for window, key in self._keyed(account, address))
        if wait > 0:
            return max(1, math.ceil(wait))
        for window, key in self._keyed(account, address):
            window.count(key, now)
        return 0

    def succeeded(self, account: str, address: str) -> None:
        """The try was good: it does not count, and this address has all its tries at this account.

        What it did at other accounts stays counted, else an account of one's own would buy tries
        at those of others. An office behind one address may log in as often as it likes.
        """
        (both, ours), *others = self._keyed(account, address)
        both.forget(ours)
        for window, key in others:
            window.give_back(key)

    def _keyed(self, account: str, address: str) -> Iterator[tuple[Window, str]]:
        name, place = folded(account)[:128], network_of(address)
        return zip(self._windows, (f"{place} {name}", place, name), strict=True)
