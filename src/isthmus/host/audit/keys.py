"""Keys of the audit log, derived from the state's key: digests, the chain, signatures, encryption."""

import hashlib
import hmac
import os
from functools import cached_property

from isthmus.errors import IsthmusError

NONCE_BYTES = 12


class CannotOpen(IsthmusError):
    """Something encrypted was changed or moved, or the state's key is another one."""


class AuditKeys:
    """The keys of one audit log.

    Args:
        seed: the state's key.
    """

    def __init__(self, seed: bytes) -> None:
        self.digests = self._derive(seed, b"digest")
        self.chain = self._derive(seed, b"chain")
        self._head = self._derive(seed, b"head")
        self._signing = self._derive(seed, b"sign")
        self._sealing = self._derive(seed, b"seal")

    @staticmethod
    def _derive(seed: bytes, purpose: bytes) -> bytes:
        return hashlib.blake2b(b"isthmus audit " + purpose, key=seed, digest_size=32).digest()

    def mac_head(self, body: bytes) -> bytes:
        """The authentication code of a head, in hex (keyed BLAKE2b)."""
        return hashlib.blake2b(body, key=self._head, digest_size=32).hexdigest().encode()

    def is_head(self, body: bytes, mac: bytes) -> bool:
        """Whether an authentication code is that of a head, and made with this key."""
        return hmac.compare_digest(self.mac_head(body), mac)

    def sign(self, message: bytes) -> bytes:
        """Sign a message (Ed25519)."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._signing).sign(message)

    @cached_property
    def public(self) -> bytes:
        """The public key of the signatures, for whoever checks them elsewhere."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._signing).public_key().public_bytes_raw()

    def is_signature(self, message: bytes, signature: bytes) -> bool:
        """Whether a signature is one of this key over a message."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def seal(self, content: bytes, place: bytes) -> bytes:
        """Encrypt a content (AES-256-GCM); it can be decrypted at the same place only."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(NONCE_BYTES)
        return nonce + AESGCM(self._sealing).encrypt(nonce, content, place)

    def open(self, sealed: bytes, place: bytes) -> bytes:
        """Decrypt what :meth:`seal` made.

        Raises:
            CannotOpen: it was changed or moved, or the key is another one.
        """
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._sealing).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], place)
        except (InvalidTag, ValueError):
            raise CannotOpen(
                "what was kept here was changed, or encrypted with another key: put the host.key "
                "that belongs to this host.db beside it"
            ) from None
