"""Agreement of nodes: one secret, one server, one layout of the store.

The first node that opens a store writes down what it is; every later one compares, and does not
start where it differs. Where no secret was given to the nodes, the first one makes it up and leaves
it in the store, encrypted where ``ISTHMUS_STORE_KEY`` says with what.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from hmac import digest

import msgspec

from isthmus.errors import UsageError
from isthmus.store.kv import KV
from isthmus.store.store import Store

STORE_LAYOUT = 1  # the layout of keys and values in a store

STORE_KEY_VARIABLE = "ISTHMUS_STORE_KEY"

AGREEMENT_KEY = "agreement"

SECRET_BYTES = 32

MAX_AGREEMENT_ATTEMPTS = 8  # to write it down where several nodes start at once


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """What all nodes of one store have in common.

    Attributes:
        layout: of keys and values.
        kind: ``"server"`` or ``"host"``.
        name: of the server or the host.
        prints: fingerprints of the secrets, where they were given to the nodes.
        secret: the secret, where the nodes made it up; encrypted where ``sealed`` says so.
        sealed: ``secret`` is encrypted under ``ISTHMUS_STORE_KEY``.
    """

    layout: int
    kind: str
    name: str
    prints: tuple[str, ...] = ()
    secret: bytes = b""
    sealed: bool = False


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Agreement).decode


async def agree(store: Store, kind: str, name: str, secrets: Sequence[bytes]) -> list[bytes]:
    """Agree with the other nodes of a store, or be the first.

    Args:
        store: what they share, opened.
        kind: ``"server"`` or ``"host"``.
        name: of the server or the host.
        secrets: those given to this node, the one that seals first; none to take the store's.

    Returns:
        The secrets, the one that seals first.

    Raises:
        UsageError: another node is something else; the message says what, and how to mend it.
        StoreUnavailable: the store cannot be used now.
    """
    for _ in range(MAX_AGREEMENT_ATTEMPTS):
        entry = await store.kv.get(AGREEMENT_KEY)
        if entry is None:
            made, known = _make(kind, name, secrets)
            if await store.kv.cas(AGREEMENT_KEY, _encode(made), 0) is not None:
                return known
            continue
        there = _read(entry.value, store)
        _compare(there, store, kind, name)
        if secrets:
            await _compare_secrets(store.kv, entry.version, there, secrets, store.name)
            return list(secrets)
        return [_open_secret(there, store)]
    raise UsageError(
        f"the nodes of {store.name} could not agree on their settings: start them again"
    )


def _make(kind: str, name: str, secrets: Sequence[bytes]) -> tuple[Agreement, list[bytes]]:
    """The agreement that a first node proposes, and the secrets in it."""
    if secrets:
        prints = tuple(_make_print(secret) for secret in secrets)
        return Agreement(layout=STORE_LAYOUT, kind=kind, name=name, prints=prints), list(secrets)
    secret = os.urandom(SECRET_BYTES)
    key = _read_store_key()
    kept = secret if key is None else _encrypt(key, secret)
    made = Agreement(layout=STORE_LAYOUT, kind=kind, name=name, secret=kept, sealed=key is not None)
    return made, [secret]


def _read(value: bytes, store: Store) -> Agreement:
    try:
        return _decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError(
            f"{store.name} holds something under the key {AGREEMENT_KEY!r} that isthmus did not "
            "write: use a prefix or a store of your own"
        ) from None


def _compare(there: Agreement, store: Store, kind: str, name: str) -> None:
    """See that this node is what the others are.

    Raises:
        UsageError: it is not.
    """
    if there.layout != STORE_LAYOUT:
        raise UsageError(
            f"the nodes of {store.name} keep their data in layout {there.layout}, and this isthmus "
            f"in {STORE_LAYOUT}: run one version of isthmus on all of them, or use another store"
        )
    if (there.kind, there.name) != (kind, name):
        raise UsageError(
            f"{store.name} belongs to the {there.kind} {there.name!r}, and this is the {kind} "
            f"{name!r}: give each its own store, or its own prefix (redis://…?prefix=NAME:)"
        )


async def _compare_secrets(
    kv: KV, version: int, there: Agreement, secrets: Sequence[bytes], where: str
) -> None:
    """See that the nodes share a secret; write down those of a node that has newer ones.

    Raises:
        UsageError: they share none.
    """
    prints = tuple(_make_print(secret) for secret in secrets)
    if not set(prints) & set(there.prints):
        theirs = "made theirs up" if there.secret else "were given others"
        raise UsageError(
            f"the nodes of {where} {theirs}: give all of them the same secret=; to change it, start "
            "all of them with secret=[old, new] first, and then with secret=[new, old]"
        )
    if prints != there.prints:
        await kv.cas(AGREEMENT_KEY, _encode(msgspec.structs.replace(there, prints=prints)), version)


def _open_secret(there: Agreement, store: Store) -> bytes:
    """The secret in the store.

    Raises:
        UsageError: it was given to the other nodes, or cannot be decrypted.
    """
    if not there.secret:
        raise UsageError(
            f"the other nodes of {store.name} were given a secret, and this one was not: "
            "start it with the same secret="
        )
    key = _read_store_key()
    if there.sealed != (key is not None):
        has = "is encrypted" if there.sealed else "is not encrypted"
        raise UsageError(
            f"the secret in {store.name} {has}: set {STORE_KEY_VARIABLE} on all nodes, or on none"
        )
    if key is None:
        return there.secret
    secret = _decrypt(key, there.secret)
    if secret is None:
        raise UsageError(
            f"{STORE_KEY_VARIABLE} is not the key that the secret in {store.name} was encrypted "
            "with: set the same one on all nodes"
        )
    return secret


def _make_print(secret: bytes) -> str:
    """A fingerprint that tells secrets apart, and tells nothing of them."""
    return digest(secret, b"isthmus agreement", "sha256").hex()


def _read_store_key() -> bytes | None:
    """The key that the environment gives for what lies in the store."""
    given = os.environ.get(STORE_KEY_VARIABLE, "")
    return sha256(b"isthmus store" + given.encode()).digest() if given else None


_NONCE_BYTES = 12


def _encrypt(key: bytes, secret: bytes) -> bytes:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    nonce = os.urandom(_NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, secret, b"secret")


def _decrypt(key: bytes, data: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    try:
        return AESGCM(key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], b"secret")
    except (InvalidTag, ValueError):
        return None
