"""Encryption at rest: AES-256-GCM under keys that are derived from the one that the operator keeps."""

import hmac
import os
from base64 import urlsafe_b64decode
from binascii import Error as NotBase64
from collections.abc import Sequence

from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError

KEY_VARIABLE = "ISTHMUS_AUTH_KEY"
NONCE_BYTES = 12
MIN_KEY_BYTES = 32
KEY_ADVICE = (
    "make one with `python -c 'import secrets; print(secrets.token_urlsafe(32))'` and keep it "
    "where other secrets are kept"
)


def read_store_key(given: "Secret | str | bytes | None") -> bytes:
    """The key material that was given, or that the environment holds.

    Args:
        given: 32 bytes or more, or their base64url; None asks ``ISTHMUS_AUTH_KEY``.

    Raises:
        UsageError: there is none, or it is too short.
    """
    if isinstance(given, bytes):
        raw = given
    else:
        text = (
            given.reveal() if isinstance(given, Secret) else given or os.environ.get(KEY_VARIABLE)
        )
        if not text:
            raise UsageError(
                f"the store of an authorization server is encrypted, and there is no key: set "
                f"{KEY_VARIABLE}, or pass key=…; {KEY_ADVICE}"
            )
        raw = decode_key(text.strip())
    if len(raw) < MIN_KEY_BYTES:
        raise UsageError(
            f"a key has {MIN_KEY_BYTES} bytes or more, this one {len(raw)}; {KEY_ADVICE}"
        )
    return raw


def decode_key(text: str) -> bytes:
    """A key as environment variables hold it."""
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NotBase64, ValueError):
        raise UsageError(f"a key is spelt in base64url; {KEY_ADVICE}") from None


class StoreVault:
    """Seals what is stored and opens it again.

    Args:
        keys: key material; the first seals, all of them open, so that a key can be changed.

    Attributes:
        former: all but the first of them.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        self.former = keys[1:]
        self._keys = [derive_key(key, b"seal") for key in keys]
        self._macs = [derive_key(key, b"mac") for key in keys]

    def seal(self, content: bytes, binding: str) -> bytes:
        """Encrypt something for one place.

        Args:
            content: what it is.
            binding: where it is kept, such as ``"key/4f2a"``; it opens there only.
        """
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self._keys[0]).encrypt(nonce, content, binding.encode())

    def open(self, sealed: bytes, binding: str) -> bytes:
        """Decrypt what :meth:`seal` made for the same place.

        Raises:
            UsageError: no key of ours opens it, or it was changed or moved.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        for key in self._keys:
            try:
                return AESGCM(key).decrypt(
                    sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], binding.encode()
                )
            except InvalidTag:
                continue
        raise UsageError(
            f"{binding.partition('/')[0]!r} in the store cannot be read with this key: it was "
            f"encrypted with another {KEY_VARIABLE}, or changed since; give the former key after the "
            "new one, key=[new, former]"
        )

    def digest(self, text: str) -> bytes:
        """The keyed digest of a secret that is only ever compared."""
        return hmac.digest(self._macs[0], text.encode("utf-8", "surrogatepass"), "sha256")

    def matches(self, digest: bytes, text: str) -> bool:
        """Whether a secret is the one whose digest was kept, under any of the keys."""
        raw = text.encode("utf-8", "surrogatepass")
        found = [hmac.compare_digest(digest, hmac.digest(k, raw, "sha256")) for k in self._macs]
        return any(found)


def derive_key(key: bytes, purpose: bytes) -> bytes:
    """A key of 32 bytes for one purpose (HKDF-SHA256)."""
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    kdf = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"isthmus authority " + purpose)
    return kdf.derive(key)
