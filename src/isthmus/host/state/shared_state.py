"""Shared state of hosts: what the processes of one host keep in the store that they share.

Whoever can write to the store must not be able to allow anything: records are encrypted and
authenticated under a key that is derived from the secret of the host's processes, each bound to its
name. What was not written by a process of this host is not read.
"""

import os
from collections.abc import Callable
from hmac import digest
from typing import TYPE_CHECKING, TypeVar

from isthmus.core.sealing import NONCE_BYTES, SealBroken, decrypt, encrypt
from isthmus.nodes.node import Node
from isthmus.runtime.failures import log_warning
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.nodes.sealed_bus import SealedBus
    from isthmus.store.store import Store

T = TypeVar("T")
RECORD_PREFIX = "host/"
RECORD_KIND = b"\x41"  # of what is sealed
MAX_CAS_ATTEMPTS = 32
SCAN_PAGE_ENTRIES = 500


class SharedState:
    """Records that all processes of one host read and write.

    Args:
        node: this process among them.
        store: what they share.
    """

    def __init__(self, node: Node, store: "Store") -> None:
        self.node = node
        self.store = store
        self._keys: list[bytes] = []
        self._keyed_by: list[bytes] = []
        self._warned = False

    async def get(self, key: str) -> tuple[bytes | None, int]:
        """A record and its version; None and 0 where there is none.

        Raises:
            StoreUnavailable: it cannot be read, or no process of this host wrote it.
        """
        entry = await self.store.kv.get(RECORD_PREFIX + key)
        if entry is None:
            return None, 0
        value = self._open(key, entry.value)
        if value is None:
            raise StoreUnavailable(
                f"the record {key!r} in {self.store.name} was not written by a process of this "
                "host: nothing is decided by it"
            )
        return value, entry.version

    async def put(self, key: str, value: bytes, ttl: float | None = None) -> None:
        """Write a record, whatever was there.

        Raises:
            StoreUnavailable: it is not known to be written.
        """
        await self.store.kv.put(RECORD_PREFIX + key, self._seal(key, value), ttl)

    async def cas(
        self, key: str, value: bytes, version: int, ttl: float | None = None
    ) -> int | None:
        """Write a record if it has this version; None where another process was first.

        Raises:
            StoreUnavailable: it is not known to be written.
        """
        return await self.store.kv.cas(RECORD_PREFIX + key, self._seal(key, value), version, ttl)

    async def delete(self, key: str, version: int | None = None) -> bool:
        """Delete a record, if it has this version; says whether it was there.

        Raises:
            StoreUnavailable: it is not known to be deleted.
        """
        return await self.store.kv.delete(RECORD_PREFIX + key, version)

    async def scan(self, prefix: str, limit: int) -> list[tuple[str, bytes, int]]:
        """Up to ``limit`` records whose keys begin with ``prefix``: key, value, version.

        One that no process of this host wrote is left out.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        found: list[tuple[str, bytes, int]] = []
        after = ""
        while len(found) < limit:
            page = await self.store.kv.scan(RECORD_PREFIX + prefix, after, SCAN_PAGE_ENTRIES)
            for name, entry in page:
                key = name.removeprefix(RECORD_PREFIX)
                value = self._open(key, entry.value)
                if value is None:
                    self._warn(key)
                else:
                    found.append((key, value, entry.version))
            if len(page) < SCAN_PAGE_ENTRIES:
                break
            after = page[-1][0]
        return found[:limit]

    def _warn(self, key: str) -> None:
        """Log the first record that does not open: others may be many, and are looked at often."""
        if not self._warned:
            self._warned = True
            log_warning("the record %s was not written by a process of this host", key)

    async def update(
        self,
        key: str,
        change: Callable[[bytes | None], tuple[bytes | None, T]],
        ttl: float | None = None,
    ) -> T:
        """Change a record; other processes that change it as well come before or after.

        Args:
            key: the record.
            change: gets the value, or None; gives the new one, or None to leave it, and the result.
            ttl: seconds for which it is kept.

        Raises:
            StoreUnavailable: it was not done.
        """
        for _ in range(MAX_CAS_ATTEMPTS):
            value, version = await self.get(key)
            new, result = change(value)
            if new is None or await self.cas(key, new, version, ttl) is not None:
                return result
        raise StoreUnavailable(f"the record {key!r} is changed by too many processes at once")

    def on_gap(self, look: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when something may have been announced and not heard."""
        return self._bus.on_gap(look)

    @property
    def _bus(self) -> "SealedBus":
        bus = self.node.bus
        if bus is None:
            raise StoreUnavailable("this host has not joined the others of its store")
        return bus

    async def announce(self, channel: str, message: bytes = b"") -> None:
        """Tell the other processes to look at something; one that is not told looks in time."""
        try:
            await self._bus.publish(RECORD_PREFIX + channel, message)
        except StoreUnavailable as error:
            log_warning("other processes of this host are not told of %s: %s", channel, error)

    async def listen(self, channel: str, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Hear what is announced; gives what ends that.

        Raises:
            StoreUnavailable: nothing would be heard.
        """
        return await self._bus.subscribe(RECORD_PREFIX + channel, hear)

    def _seal(self, key: str, value: bytes) -> bytes:
        return encrypt(
            RECORD_KIND, value, self._derive_keys(), os.urandom(NONCE_BYTES), key.encode()
        )

    def _open(self, key: str, data: bytes) -> bytes | None:
        try:
            return decrypt(RECORD_KIND, data, self._derive_keys(), key.encode())
        except SealBroken:
            return None

    def _derive_keys(self) -> list[bytes]:
        """The keys of records; the first one seals, all of them open."""
        secrets = self.node.secrets
        if self._keyed_by != secrets:
            self._keyed_by = list(secrets)
            self._keys = [digest(one, b"isthmus host records", "sha256") for one in secrets]
        if not self._keys:
            raise StoreUnavailable("this host has not joined the others of its store")
        return self._keys
