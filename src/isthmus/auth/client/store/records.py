"""Records of a token store: tokens and registrations, their keys, and a store in memory.

A :class:`TokenStore` holds both under a :class:`Key`, so that one encrypted file, or one keyring,
is all that a program needs. What is kept says by itself how it is renewed: after a restart nothing
has to be discovered before a refresh token is used.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias
from weakref import WeakValueDictionary

import msgspec

from isthmus.auth.cache import BoundedDict
from isthmus.auth.tokens.secret import Secret, decode_secret, encode_secret


class Tokens(msgspec.Struct, frozen=True, kw_only=True, tag="tokens"):
    """Tokens that an authorization server granted a client for one resource.

    Attributes:
        access: goes with every request to the resource, and nowhere else.
        issuer: who issued it, as its metadata spell it.
        client_id: to whom.
        resource: for what, as the metadata of the MCP server spell it.
        kind: how the access token is presented, ``"Bearer"`` or ``"DPoP"``.
        refresh: gets the next ones without the user; None where none was issued.
        issued_at: seconds since the epoch.
        expires_at: seconds since the epoch, or None where nobody said.
        scopes: what was granted.
        asked: what was asked for when they were.
        token_endpoint: where the next ones are to be had.
        methods: how that endpoint lets clients authenticate; empty where it does not say.
        proof_key: the private key that the tokens are bound to, as a JWK in JSON.
        account: which of the user's accounts; empty where there is one.
        server: the canonical URI of the one MCP server they go to, where ``resource`` stands
            above it and ``Compat(parent_resources=…)`` allowed that; empty where it is ``resource``.
    """

    access: Secret
    issuer: str
    client_id: str
    resource: str
    kind: str = "Bearer"
    refresh: Secret | None = None
    issued_at: float = 0.0
    expires_at: float | None = None
    scopes: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    token_endpoint: str = ""
    methods: tuple[str, ...] = ()
    proof_key: Secret | None = None
    account: str = ""
    server: str = ""

    @property
    def key(self) -> "Key":
        """The key they are kept under, with the one MCP server they go to."""
        return Key(self.issuer, self.client_id, self.server or self.resource, self.account)


class Registration(msgspec.Struct, frozen=True, kw_only=True, tag="registration"):
    """Result of a registration of a client at an authorization server.

    Attributes:
        issuer: which server it was, as its metadata spell it; nobody else is shown any of this.
        client_id: what it calls the client.
        redirect_uri: where it sends the user back to.
        redirect: the same as it was configured, where port 0 stands for any.
        method: how the client authenticates: ``none``, ``client_secret_basic``,
            ``client_secret_post`` or ``private_key_jwt``.
        secret: with what, where that is a secret.
        expires_at: seconds since the epoch when the secret ends, or None.
        doubted: the server may know the client no more: no login is begun with it, and tokens that
            it was granted are renewed as long as that goes well.
    """

    issuer: str
    client_id: str
    redirect_uri: str = ""
    redirect: str = ""
    method: str = "none"
    secret: Secret | None = None
    expires_at: float | None = None
    doubted: bool = False

    @property
    def key(self) -> "Key":
        """The key it is kept under."""
        return Key(self.issuer, self.client_id, redirect=self.redirect)


Record: TypeAlias = Tokens | Registration  # what a store keeps


class Key(msgspec.Struct, frozen=True):
    """Key that a record is kept under.

    Tokens have a client, a resource and perhaps an account; registrations a client and a redirect.

    Attributes:
        issuer: the authorization server, as its metadata spell it, to the letter.
        client_id: the client.
        resource: the URI of the MCP server that tokens go to.
        account: which of the user's accounts; empty where there is one.
        redirect: where a registered client has users sent back to.
    """

    issuer: str
    client_id: str = ""
    resource: str = ""
    account: str = ""
    redirect: str = ""

    @property
    def text(self) -> str:
        """The key as one text that no other key shares."""
        return msgspec.json.encode(msgspec.structs.astuple(self)).decode()


class TokenStore(Protocol):
    """Store of tokens and registrations for a client; programs that share it have the same records."""

    async def get(self, key: Key) -> Record | None:
        """The record under ``key``; None where there is none.

        Args:
            key: the server and the client that the record is of.
        """
        ...

    async def put(self, key: Key, record: Record) -> None:
        """Store a record in the place of the one before.

        Args:
            key: the key.
            record: the record.
        """
        ...

    async def delete(self, key: Key) -> None:
        """Delete the record under ``key``; nothing happens where there is none.

        Args:
            key: the server and the client that the record is of.
        """
        ...

    async def keys(self) -> list[Key]:
        """Every key there is, the one put last at the end."""
        ...

    def lock(self, key: Key) -> AbstractAsyncContextManager[None]:
        """Keep everybody else who shares the store from renewing what is under a key.

        It is held while a refresh token is used, and never while the user or an MCP server is
        waited for.

        Args:
            key: the server and the client that the record is of.
        """
        ...


class MemoryTokenStore:
    """Store of tokens and registrations in memory, for as long as the program runs.

    Args:
        most: how many records; the oldest ones go.
    """

    def __init__(self, most: int = 1000) -> None:
        self._records: BoundedDict[Key, Record] = BoundedDict(most)
        self._locks: WeakValueDictionary[Key, asyncio.Lock] = WeakValueDictionary()

    async def get(self, key: Key) -> Record | None:
        """The record under ``key``; None where there is none.

        Args:
            key: the server and the client that the record is of.
        """
        return self._records.get(key)

    async def put(self, key: Key, record: Record) -> None:
        """Store a record in the place of the one before.

        Args:
            key: the key.
            record: the record.
        """
        self._records[key] = record

    async def delete(self, key: Key) -> None:
        """Delete the record under ``key``; nothing happens where there is none.

        Args:
            key: the server and the client that the record is of.
        """
        self._records.pop(key, None)

    async def keys(self) -> list[Key]:
        """Every key there is, the one put last at the end."""
        return list(self._records)

    @asynccontextmanager
    async def lock(self, key: Key) -> AsyncIterator[None]:
        """Let renewals under ``key`` take turns.

        Args:
            key: the server and the client that the record is of.
        """
        lock = self._locks.setdefault(key, asyncio.Lock())  # there while somebody holds it
        async with lock:
            yield


_encoder = msgspec.json.Encoder(enc_hook=encode_secret)
_decoder = msgspec.json.Decoder(Record, dec_hook=decode_secret)


def pack_record(record: Record) -> bytes:
    """A record as bytes, with its secrets in clear: they are to be encrypted at once."""
    return _encoder.encode(record)


def unpack_record(data: bytes) -> Record:
    """A record from what :func:`pack_record` made of it.

    Raises:
        msgspec.ValidationError: it is none.
    """
    record: Record = _decoder.decode(data)
    return record
