"""AES-256-GCM sealing: bytes that the other side carries for us, and can neither read nor change.

What is sealed begins with a byte that says its kind and the id of its key; both, and what it is
bound to, are authenticated with the rest. Randomness arrives as an argument, as everywhere in the
core.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE_BYTES = 12  # as AES-GCM wants it

TAG_BYTES = 16

KEY_ID_BYTES = 4

HEAD_BYTES = 1 + KEY_ID_BYTES

SEAL_BYTES = HEAD_BYTES + NONCE_BYTES + TAG_BYTES  # that sealing adds


class SealBroken(IsthmusError):
    """Bytes that do not open. The reason is for the log; the other side is told nothing of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def encrypt(
    kind: bytes, content: bytes, keys: Sequence[bytes], nonce: bytes, binding: bytes
) -> bytes:
    """Seal bytes.

    Args:
        kind: one byte that no other sort of sealed bytes begins with.
        content: what to seal.
        keys: secrets of 16 bytes or more; the first one seals, the others only open.
        nonce: 12 random bytes, never used before.
        binding: what it belongs to; it opens with an equal one only.

    Raises:
        UsageError: no key, or a nonce of another length.
    """
    if not keys or len(nonce) != NONCE_BYTES:
        raise UsageError(f"sealing needs a key and a nonce of {NONCE_BYTES} bytes")
    key_id, cipher = make_cipher(keys[0])
    head = kind + key_id
    sealed: bytes = cipher.encrypt(nonce, content, head + binding)
    return head + nonce + sealed


def decrypt(kind: bytes, data: bytes, keys: Sequence[bytes], binding: bytes) -> bytes:
    """The bytes that :func:`encrypt` sealed.

    Args:
        kind: as it was sealed.
        data: what it gave.
        keys: the secrets it may have been sealed with.
        binding: as it was sealed.

    Raises:
        SealBroken: it was changed, belongs to something else, or was never ours.
    """
    if len(data) < SEAL_BYTES:
        raise SealBroken("not a token of ours")
    head, end = data[:HEAD_BYTES], HEAD_BYTES + NONCE_BYTES
    ciphers = (cipher for key_id, cipher in map(make_cipher, keys) if kind + key_id == head)
    cipher = next(ciphers, None)
    if cipher is None:
        raise SealBroken("sealed with a key this server does not have")
    from cryptography.exceptions import InvalidTag

    try:
        content: bytes = cipher.decrypt(data[HEAD_BYTES:end], data[end:], head + binding)
    except InvalidTag:
        raise SealBroken("changed, or made for another call or principal") from None
    return content


@lru_cache(maxsize=16)  # keys of the servers in this process
def make_cipher(key: bytes) -> "tuple[bytes, AESGCM]":
    """The id of a key, which tells nothing about it, and the cipher that it gives.

    Both are made by keys of their own, so that one secret can serve several purposes.
    """
    from hmac import digest

    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # The labels are those of the first tokens that were sealed so: they open as ever.
    key_id = digest(key, b"isthmus journal key id", "sha256")[:KEY_ID_BYTES]
    return key_id, AESGCM(digest(key, b"isthmus journal key", "sha256"))
