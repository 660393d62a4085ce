"""Secret: a text that no log, error or page shows by accident.

Whoever makes, reads or gets a token, a code, a verifier, a password or a key wraps it at once.
The text comes out by :meth:`Secret.reveal` alone, so that a search for that word finds every place
where it does. All secrets that are alive are known to
:mod:`isthmus.core.redaction.live_secrets`, and :mod:`isthmus.auth.redaction` takes them out of what
is logged.
"""

import hashlib
import hmac
import secrets
from typing import Any, NoReturn

from isthmus.core.encoding import encode_base64url
from isthmus.core.redaction.live_secrets import register_secret

HIDDEN_TEXT = "[secret]"


class Secret:
    """A secret text, which repr and logs do not show.

    Two secrets are compared in a time that does not depend on how much of them is equal; a secret
    may be compared with a plain text in the same way.

    Example::

        >>> key = Secret("correct horse")
        >>> f"{key} {key!r}"
        "[secret] Secret('[secret]')"
        >>> key == Secret("correct horse")
        True

    Args:
        text: what it is; another secret is taken as its text.
    """

    __slots__ = ("__weakref__", "_text")

    def __init__(self, text: "str | Secret") -> None:
        self._text: str = text.reveal() if isinstance(text, Secret) else text
        register_secret(self)

    @classmethod
    def random(cls, size: int = 32) -> "Secret":
        """A new secret of ``size`` random bytes, spelt in base64url.

        Args:
            size: the number of random bytes; 32 by default.
        """
        return cls(secrets.token_urlsafe(size))

    def reveal(self) -> str:
        """The text of the secret."""
        return self._text

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret | str):
            return NotImplemented
        mine, theirs = self._text.encode("utf-8", "surrogatepass"), reveal(other)
        return hmac.compare_digest(mine, theirs.encode("utf-8", "surrogatepass"))

    def __hash__(self) -> int:
        return hash(self._text)

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"Secret({HIDDEN_TEXT!r})"

    def __str__(self) -> str:
        return HIDDEN_TEXT

    def __format__(self, spec: str) -> str:
        return format(HIDDEN_TEXT, spec)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: Any) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled: write what reveal() returns where it is safe")


def reveal(secret: Secret | str) -> str:
    """The text of what may be a secret or a plain text."""
    return secret.reveal() if isinstance(secret, Secret) else secret


def sha256_digest(secret: Secret | str) -> bytes:
    """The SHA-256 of a random text: what may be kept of it, so that it is known again."""
    return hashlib.sha256(reveal(secret).encode("utf-8", "surrogatepass")).digest()


_NAMES = hashlib.blake2b(key=secrets.token_bytes(32), digest_size=32)


def name_token(token: Secret | str | bytes) -> bytes:
    """The name that a token is remembered by in this process: a digest whose key nobody knows.

    Nobody can choose tokens whose names are alike, so that how long it takes to look one up, in a
    dict or by comparing names, says nothing about the tokens that are known.
    """
    if not isinstance(token, bytes):
        token = reveal(token).encode("utf-8", "surrogatepass")
    digest = _NAMES.copy()
    digest.update(token)
    return digest.digest()


def s256(secret: Secret | str) -> str:
    """The same as a text: the challenge of a verifier (RFC 7636 4.2), a proof's ``ath`` (RFC 9449)."""
    return encode_base64url(sha256_digest(secret))


# What msgspec asks where a record holds secrets, which it does not know.


def encode_secret(value: Any) -> Any:
    """A secret as a store writes it down, and encrypts at once."""
    if isinstance(value, Secret):
        return value.reveal()
    raise NotImplementedError(f"a record holds no {type(value).__name__}")


def decode_secret(kind: type, value: Any) -> Any:
    """A secret as it comes out of a store."""
    if kind is Secret:
        return Secret(value)
    raise NotImplementedError(f"a record holds no {kind.__name__}")
