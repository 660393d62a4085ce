"""Credentials of a request: exactly one token, in the Authorization header and nowhere else."""

import re
from collections.abc import Iterable
from typing import NamedTuple

# Bytes of an access token, unless a server says otherwise; so much that one issues at most.
MAX_TOKEN_BYTES = 16 * 1024

MAX_PROOF_BYTES = 8 * 1024
MAX_SCHEME_BYTES = 16

TOKEN68 = re.compile(rb"[A-Za-z0-9\-._~+/]+=*")
SCHEMES = {b"bearer": "bearer", b"dpop": "dpop"}


class MalformedCredentials(Exception):
    """Credentials that are none: the message says what is wrong with them."""


class Credentials(NamedTuple):
    """A token as it was presented.

    Attributes:
        scheme: ``bearer`` or ``dpop``.
        token: what may be a token; nothing has been checked yet.
    """

    scheme: str
    token: str


def read_credentials(
    headers: Iterable[tuple[bytes, bytes]], limit: int = MAX_TOKEN_BYTES
) -> Credentials | None:
    """The token of a request; None where it brings none of a kind that is known here.

    Nothing but the ``Authorization`` header is looked at.

    Args:
        headers: of the request.
        limit: bytes that the token may have.

    Raises:
        BadCredentials: there are several, or it is no token, or too long.
    """
    # spec 2026-07-28 basic/authorization#token-requirements: MUST NOT be in the query string, so
    # that one there is none
    values = [value for name, value in headers if name == b"authorization"]
    if not values:
        return None
    if len(values) > 1:
        raise MalformedCredentials("there is more than one Authorization header")
    value = values[0].strip(b" \t")
    if len(value) > limit + MAX_SCHEME_BYTES:
        raise MalformedCredentials(
            f"the Authorization header has a token of more than {limit} bytes"
        )
    scheme, _, token = value.partition(b" ")
    known = SCHEMES.get(scheme.lower())
    if known is None:
        return None
    token = token.strip(b" ")
    if not is_token(token):
        raise MalformedCredentials("the Authorization header has a scheme and no token after it")
    return Credentials(known, token.decode("ascii"))


def is_token(text: bytes) -> bool:
    """Whether something is spelled as a token that a header can have."""
    return TOKEN68.fullmatch(text) is not None


def read_bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """What may be the token of a request whose only credentials are a bearer token.

    None says nothing of what is wrong, or whether anything is: :func:`read_credentials` and
    :func:`read_proof` do. Where these find a token as well, it is this one; nothing is told here of
    what a token may be spelled with, so that it is good for looking up tokens that they found before.
    """
    found = None
    for name, value in headers:
        if name == b"authorization":
            if found is not None:
                return None
            found = value
        elif name == b"dpop":
            return None
    if found is None or not found.startswith(b"Bearer "):
        return None
    return found[7:]


def read_proof(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The DPoP proof of a request, or None.

    Raises:
        BadCredentials: there are several (RFC 9449 4.3), or it is far too long.
    """
    values = [value for name, value in headers if name == b"dpop"]
    if not values:
        return None
    if len(values) > 1:
        raise MalformedCredentials("there is more than one DPoP header")
    if len(values[0]) > MAX_PROOF_BYTES:
        raise MalformedCredentials(f"the DPoP header is longer than {MAX_PROOF_BYTES} bytes")
    return values[0].decode("latin-1").strip()
