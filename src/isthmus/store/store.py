"""Store: all that processes share behind one option, ``store=``.

A store is a :class:`~isthmus.store.kv.KV`, a :class:`~isthmus.store.log.Log`, a
:class:`~isthmus.store.bus.Bus` and meters (:class:`~isthmus.store.meter.Meter`) on one engine.
Leases and mailboxes are made of these, so that an engine has four things to do.
"""

from typing import TYPE_CHECKING, Protocol

from isthmus.errors import StoreUnavailable, UsageError

if TYPE_CHECKING:
    from isthmus.store.bus import Bus
    from isthmus.store.kv import KV
    from isthmus.store.log import Log
    from isthmus.store.meter import Meter, Rate


__all__ = ["Store", "StoreUnavailable", "open_store"]


class Store(Protocol):
    """The state that processes share; that of one process is :class:`~isthmus.store.memory_store.MemoryStore`."""

    @property
    def name(self) -> str:
        """The store as messages call it: its URL without a password."""
        ...

    @property
    def kv(self) -> "KV":
        """Values by key."""
        ...

    @property
    def log(self) -> "Log":
        """Log of what was said on streams."""
        ...

    @property
    def bus(self) -> "Bus":
        """Messages to all who listen."""
        ...

    def meter(self, name: str, rate: "Rate") -> "Meter":
        """A meter that all processes share.

        Args:
            name: what is limited; meters of one name count together.
            rate: what each key may do.
        """
        ...

    async def open(self, *, durable: bool = False) -> None:
        """Connect, and see that the engine is set up for this; safe to call twice.

        Args:
            durable: whether what is stored must outlive the engine, as tasks must.

        Raises:
            UsageError: a setting of the engine would lose data; it names the setting and the
                command that mends it.
            StoreUnavailable: it cannot be reached.
        """
        ...

    async def close(self) -> None:
        """Close the engine; it may be opened again."""
        ...


def open_store(target: "str | Store") -> "Store":
    """The store that ``store=`` names; nothing is connected yet.

    Args:
        target: ``"redis://HOST:PORT/DB"``, ``"rediss://…"``, ``"unix://PATH"``,
            ``"sqlite:///PATH"``, or a store as it is.

    Raises:
        UsageError: there is no such store.
    """
    if not isinstance(target, str):
        return target
    scheme, colon, _ = target.partition("://")
    if colon and scheme in {"redis", "rediss", "unix", "valkey", "valkeys"}:
        from isthmus.store.redis_store import RedisStore  # most servers have none

        return RedisStore(target)
    if colon and scheme == "sqlite":
        from isthmus.store.sqlite_store import SqliteStore

        return SqliteStore(target)
    shown = target
    if "@" in target:  # a password may be before it, also where "//" is missing
        shown = f"{scheme}://…" if colon and scheme.isalnum() else "…"
    raise UsageError(
        f"store={shown!r} is no store: write 'redis://HOST:6379/0', 'unix:///path/redis.sock', "
        "'sqlite:///path/file.db', or give a Store"
    )
