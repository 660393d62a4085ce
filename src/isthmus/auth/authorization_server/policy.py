"""What clients may say of themselves, whether in a document of their own or by registering."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from isthmus.auth.jwk import PRIVATE
from isthmus.auth.names import CODE, REFRESH
from isthmus.auth.urls import is_loopback, split
from isthmus.core.base64url import from_text

__all__ = ["ClientMetadata", "Unacceptable", "check_jwks", "check_redirect", "check_redirects",
           "fitting_grants", "is_app_redirect"]  # fmt: skip

MOST_URIS = 20
LONGEST_URI = 2000
LONGEST_NAME = 200
MOST_KEYS = 10

APP = re.compile(r"(?P<scheme>[a-z][a-z0-9+.\-]*):(?P<rest>[A-Za-z0-9\-._~:/?@!$&'()*+,;=%]+)")
DANGEROUS = frozenset(
    {
        "javascript",
        "data",
        "vbscript",
        "file",
        "about",
        "blob",
        "filesystem",
        "view-source",
        "jar",
        "ftp",
        "ftps",
        "ws",
        "wss",
        "http",
        "https",
        "mailto",
        "tel",
        "sms",
        "intent",
        "content",
        "chrome",
        "resource",
        "mhtml",
        "mk",
        "res",
        "shell",
        "ms-msdt",
        "search-ms",
    }
)


class Unacceptable(Exception):
    """What a client says of itself cannot be; ``error`` is as RFC 7591 3.2.2 spells it."""

    def __init__(self, text: str, error: str = "invalid_client_metadata") -> None:
        super().__init__(text)
        self.error = error


class ClientMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Client metadata (RFC 7591 2), as far as it means something here; typed before it is used."""

    redirect_uris: list[str] = []
    token_endpoint_auth_method: str | None = None
    grant_types: list[str] = msgspec.field(default_factory=lambda: [CODE])
    response_types: list[str] = msgspec.field(default_factory=lambda: ["code"])
    client_name: str | None = None
    client_uri: str | None = None
    logo_uri: str | None = None
    scope: str | None = None
    jwks_uri: str | None = None
    jwks: dict[str, Any] | None = None
    application_type: str | None = None
    dpop_bound_access_tokens: bool = False
    software_id: str | None = None
    software_version: str | None = None


def check_redirects(uris: Sequence[str], schemes: Sequence[str]) -> None:
    """See that a client's redirect URIs can be.

    Raises:
        Unacceptable: one cannot, or there are none or too many.
    """
    if not 0 < len(uris) <= MOST_URIS:
        raise Unacceptable(f"redirect_uris has to list 1 to {MOST_URIS}", "invalid_redirect_uri")
    for uri in uris:
        check_redirect(uri, schemes)


def check_redirect(uri: str, schemes: Sequence[str]) -> None:
    """See that a redirect URI is one that a browser can safely be sent to.

    Args:
        uri: what it is.
        schemes: of apps, that it may have beside those with a dot in them.

    Raises:
        Unacceptable: it is not; says why, without it.
    """
    if len(uri) > LONGEST_URI:
        raise Unacceptable("a redirect URI is too long", "invalid_redirect_uri")
    scheme = uri.partition(":")[0].lower()
    if scheme in {"http", "https"}:
        try:
            parts = split(uri)
        except ValueError:
            raise Unacceptable("a redirect URI is no usable URL", "invalid_redirect_uri") from None
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if parts.scheme == "http" and not is_loopback(parts.host):
            raise Unacceptable(
                "a redirect URI is https, or http on this machine", "invalid_redirect_uri"
            )
        return
    found = APP.fullmatch(uri)
    # RFC 8252 7.1: an app's own scheme is a domain name turned round; a few are well known.
    if found is None or scheme in DANGEROUS or not ("." in scheme or scheme in schemes):
        raise Unacceptable(
            "a redirect URI has a scheme that nobody is sent to", "invalid_redirect_uri"
        )


def is_app_redirect(uri: str) -> bool:
    """Whether a redirect URI, which has been checked, leads to a program on the user's machine."""
    if uri.partition(":")[0].lower() not in {"http", "https"}:
        return True
    return is_loopback(split(uri).host)


def fitting_grants(asked: Sequence[str]) -> tuple[str, ...]:
    """The grant types that a client gets of those it wants.

    Raises:
        Unacceptable: there is none that brings a code.
    """
    fitting = tuple(dict.fromkeys(one for one in asked if one in {CODE, REFRESH}))
    if CODE not in fitting:
        raise Unacceptable(f"grant_types has to list {CODE}")
    return fitting


def check_jwks(jwks: Mapping[str, Any]) -> None:
    """See that a set of keys has public ones, and nothing else.

    Raises:
        Unacceptable: it has not.
    """
    keys = jwks.get("keys")
    if not isinstance(keys, list) or not 0 < len(keys) <= MOST_KEYS:
        raise Unacceptable(f"jwks has to list 1 to {MOST_KEYS} keys")
    for key in keys:
        kind = key.get("kty") if isinstance(key, dict) else None
        if kind not in {"RSA", "EC", "OKP"} or PRIVATE & set(key):
            raise Unacceptable("jwks has to list public keys only")
        texts = [key.get(name) for name in ("n", "x", "y", "e") if name in key]
        if not all(isinstance(text, str) and from_text(text) is not None for text in texts):
            raise Unacceptable("a key of jwks cannot be read")
