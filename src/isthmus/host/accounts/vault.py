"""Vault of accounts: the tokens of each principal at each server, and what is known of them.

What stands under one principal is never read for another: a view of the vault has one principal, and gives
what is kept under that name only. The registrations of this host as a client belong to all.
"""

import hashlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

import msgspec

from isthmus.auth.client.store.records import (
    Key,
    Record,
    Tokens,
    pack_record,
    unpack_record,
)
from isthmus.auth.client.store.vault import StoreBroken, parse_record_key
from isthmus.auth.tokens.secret import Secret, sha256_digest
from isthmus.host.accounts.storage import AccountStorage

AccountState: TypeAlias = Literal["connected", "expired", "refused", "missing"]
"""State of an account: expired is to be connected again, refused is not taken by the server."""

MAX_ACCOUNTS = 1000  # that are listed of one principal
MAX_CLIENTS = 1000
LOGIN_LIFE_S = 600.0


class AccountNote(msgspec.Struct, frozen=True):
    """What is known of an account beside its tokens.

    Attributes:
        state: its state, where tokens do not say it.
        at: since when, in seconds since the epoch.
    """

    state: AccountState
    at: float


class StoredRecord(msgspec.Struct, frozen=True):
    """A record as it is kept: when, and what."""

    at: float
    data: bytes


class AccountVault:
    """The accounts of all principals.

    Args:
        storage: keeps them, sealed.
        clock: says seconds since the epoch.
    """

    def __init__(self, storage: AccountStorage, clock: Callable[[], float] = time.time) -> None:
        self.storage = storage
        self.clock = clock

    def of(self, principal: str) -> "PrincipalVault":
        """The view of one principal."""
        return PrincipalVault(self, principal)

    # Notes

    async def note(self, principal: str, server: str, state: AccountState) -> None:
        """Note the state of an account."""
        body = msgspec.json.encode(AccountNote(state, self.clock()))
        await self.storage.put(name_note(principal, server), body)

    async def read_note(self, principal: str, server: str) -> AccountNote | None:
        """What was noted of an account."""
        body = await self.storage.get(name_note(principal, server))
        return None if body is None else msgspec.json.decode(body, type=AccountNote)

    async def clear_note(self, principal: str, server: str) -> None:
        """Note nothing of an account any more."""
        await self.storage.take(name_note(principal, server))

    # What may be used once

    async def use_once(self, nonce: str, life: float) -> bool:
        """Use something up; False where somebody has."""
        return await self.storage.add(f"used/{digest_name(nonce)}", b"", life)

    async def put_login(self, state: Secret, body: bytes) -> None:
        """Keep a login that is under way, under its state."""
        await self.storage.put(name_login(state), body, LOGIN_LIFE_S)

    async def get_login(self, state: Secret) -> bytes | None:
        """A login that is under way."""
        return await self.storage.get(name_login(state))

    async def take_login(self, state: Secret) -> bytes | None:
        """End a login; of those who try at once, one gets it."""
        return await self.storage.take(name_login(state))


class PrincipalVault:
    """The vault as one principal sees it: a :class:`~isthmus.auth.client.store.records.TokenStore`.

    Args:
        vault: of all.
        principal: whose accounts are read and written.
    """

    def __init__(self, vault: AccountVault, principal: str) -> None:
        self._vault = vault
        self._storage = vault.storage
        self._principal = principal

    async def get(self, key: Key) -> Record | None:
        """The record that is kept under a key."""
        body = await self._storage.get(self._name(key))
        return None if body is None else unpack_stored(body)[1]

    async def put(self, key: Key, record: Record) -> None:
        """Keep a record in the place of the one before."""
        stored = StoredRecord(self._vault.clock(), pack_record(record))
        await self._storage.put(self._name(key), msgspec.msgpack.encode(stored))

    async def delete(self, key: Key) -> None:
        """Keep nothing under a key any more."""
        await self._storage.take(self._name(key))

    async def keys(self) -> list[Key]:
        """Every key of this principal and of the registrations, the one put last at the end."""
        found = [
            *await self._storage.scan("client/", MAX_CLIENTS),
            *await self._storage.scan(self._prefix, MAX_ACCOUNTS),
        ]
        dated = [(unpack_stored(body)[0], name) for name, body in found]
        keys = [read_key(name) for _, name in sorted(dated)]
        return [key for key in keys if key is not None]

    async def list_tokens(self) -> list[tuple[float, Tokens]]:
        """All tokens of this principal, and when they were kept; the last first."""
        found = await self._storage.scan(self._prefix, MAX_ACCOUNTS)
        opened = [unpack_stored(body) for _, body in found]
        tokens = [(at, record) for at, record in opened if isinstance(record, Tokens)]
        return sorted(tokens, key=lambda one: one[0], reverse=True)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Keep everybody else from renewing what is under a key."""
        async with self._storage.lock(self._name(key)):
            yield

    @property
    def _prefix(self) -> str:
        return f"token/{self._principal}/"

    def _name(self, key: Key) -> str:
        return f"client/{key.text}" if key.redirect else f"{self._prefix}{key.text}"


def unpack_stored(body: bytes) -> tuple[float, Record | None]:
    """A record and when it was kept; None where it is of another isthmus."""
    try:
        stored = msgspec.msgpack.decode(body, type=StoredRecord)
        return stored.at, unpack_record(stored.data)
    except msgspec.DecodeError:
        return 0.0, None


def read_key(name: str) -> Key | None:
    """The key in a record's name."""
    try:
        return parse_record_key(name[name.index("[") :])
    except (ValueError, StoreBroken):
        return None


def name_note(principal: str, server: str) -> str:
    """The name of a note."""
    return f"note/{principal}/{server}"


def name_login(state: Secret) -> str:
    """The name of a login: what is stored does not tell the state."""
    return f"login/{sha256_digest(state).hex()}"


def digest_name(text: str) -> str:
    """A text as a part of a name."""
    return hashlib.sha256(text.encode()).hexdigest()
