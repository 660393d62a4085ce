"""Leases: who holds a name, and until when; over any key-value store.

A lease ends by itself when its holder does not renew it in time. Time is the store's alone, so that
clocks of machines that disagree change nothing. Each change of holder has a version of its own: a
holder that was stopped past its time finds out when it renews.
"""

import msgspec

from isthmus.store.kv import KV, KVEntry


class Lease(msgspec.Struct, frozen=True):
    """A lease: a name with its present holder.

    Attributes:
        name: what is held.
        holder: who holds it.
        version: of the entry in the store; it changes with each renewal.
    """

    name: str
    holder: str
    version: int


class Leases:
    """Leases in a key-value store, each an entry that ends by itself.

    Args:
        kv: the store.
    """

    def __init__(self, kv: KV) -> None:
        self._kv = kv

    async def acquire(self, name: str, holder: str, ttl: float) -> Lease | None:
        """Take a lease on a name that nobody holds.

        Args:
            name: what to hold.
            holder: who will.
            ttl: seconds until it ends.

        Returns:
            The lease, or None where somebody holds it.
        """
        version = await self._kv.cas(_make_key(name), holder.encode(), 0, ttl)
        return None if version is None else Lease(name, holder, version)

    async def take_over(self, name: str, holder: str, ttl: float) -> Lease:
        """Take a lease on a name, whether it is held or not.

        Args:
            name: of what is held.
            holder: id of the new holder.
            ttl: seconds until it ends.
        """
        return Lease(name, holder, await self._kv.put(_make_key(name), holder.encode(), ttl))

    async def renew(self, lease: Lease, ttl: float) -> Lease | None:
        """Extend a lease; None where it has ended, or has another holder.

        Args:
            lease: the lease.
            ttl: seconds from now until it ends.
        """
        key = _make_key(lease.name)
        version = await self._kv.cas(key, lease.holder.encode(), lease.version, ttl)
        return None if version is None else Lease(lease.name, lease.holder, version)

    async def release(self, lease: Lease) -> bool:
        """End ``lease``; False where it had ended, or has another holder.

        Args:
            lease: the lease.
        """
        return await self._kv.delete(_make_key(lease.name), lease.version)

    async def find(self, name: str) -> Lease | None:
        """The lease of a name, or None where nobody holds it."""
        entry = await self._kv.get(_make_key(name))
        return None if entry is None else Lease(name, _read_holder(entry), entry.version)

    async def list(self, prefix: str, limit: int) -> "list[Lease]":
        """Up to ``limit`` leases whose names begin with ``prefix``, in order.

        Args:
            prefix: the beginning of the names.
            limit: the most leases to give.
        """
        entries = await self._kv.scan(_make_key(prefix), "", limit)
        return [
            Lease(_read_name(key), _read_holder(entry), entry.version) for key, entry in entries
        ]


LEASE_PREFIX = "lease/"


def _make_key(name: str) -> str:
    return LEASE_PREFIX + name


def _read_name(key: str) -> str:
    return key.removeprefix(LEASE_PREFIX)


def _read_holder(entry: KVEntry) -> str:
    return entry.value.decode(errors="replace")  # others may write to the store, too
