"""Where a provider takes what: from its metadata, or written down by hand."""

from collections.abc import Sequence
from typing import Any

import msgspec

from isthmus.auth.upstream.faults import UpstreamUnavailable
from isthmus.auth.urls import is_secure, same_issuer
from isthmus.errors import UsageError

__all__ = ["Endpoints", "check_secure", "read_metadata", "urls_of"]


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider takes what; for one that publishes no metadata, written down by hand.

    Attributes:
        authorize: where users are sent.
        token: where codes and refresh tokens are exchanged.
        userinfo: says who a token's user is (OpenID Connect), or None.
        revoke: takes tokens back (RFC 7009), or None.
        introspect: says whether a token is good (RFC 7662), or None.
        jwks: the keys of its ID tokens, or None.
        issuer: what it says as ``iss``; None where it does not say it.
        says_issuer: it puts ``iss`` into every authorization response (RFC 9207).
        methods: how clients may authenticate; empty where nobody says.
        algorithms: what ID tokens may be signed with; empty for the usual ones.
    """

    authorize: str
    token: str
    userinfo: str | None = None
    revoke: str | None = None
    introspect: str | None = None
    jwks: str | None = None
    issuer: str | None = None
    says_issuer: bool = False
    methods: tuple[str, ...] = ()
    algorithms: tuple[str, ...] = ()


def read_metadata(document: Any, issuer: str, name: str) -> Endpoints:
    """A provider's metadata, as far as they matter here.

    Raises:
        UpstreamUnavailable: they are somebody else's, or lack something; the provider is not used.
    """
    found = document if isinstance(document, dict) else {}

    def text(member: str) -> str | None:
        value = found.get(member)
        return value if isinstance(value, str) and value else None

    def texts(member: str) -> tuple[str, ...]:
        value = found.get(member)
        return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()

    named, authorize, token = text("issuer"), text("authorization_endpoint"), text("token_endpoint")
    if named is None or not same_issuer(named, issuer):
        raise UpstreamUnavailable(f"the metadata of {name} are those of another issuer")
    if authorize is None or token is None:
        raise UpstreamUnavailable(f"the metadata of {name} name no place to log in")
    endpoints = Endpoints(
        authorize=authorize,
        token=token,
        userinfo=text("userinfo_endpoint"),
        revoke=text("revocation_endpoint"),
        introspect=text("introspection_endpoint"),
        jwks=text("jwks_uri"),
        issuer=named,
        says_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        methods=texts("token_endpoint_auth_methods_supported"),
        algorithms=texts("id_token_signing_alg_values_supported"),
    )
    if not all(map(is_secure, urls_of(endpoints))):
        raise UpstreamUnavailable(f"the metadata of {name} have a URL without https")
    return endpoints


def urls_of(endpoints: Endpoints | None) -> list[str]:
    """Every URL among some endpoints."""
    if endpoints is None:
        return []
    e = endpoints
    return [
        url for url in (e.authorize, e.token, e.userinfo, e.revoke, e.introspect, e.jwks) if url
    ]


def check_secure(name: str, urls: Sequence[str]) -> None:
    """See to it that nobody on the way can read tokens.

    Raises:
        UsageError: a URL is neither ``https`` nor on this machine.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#communication-security
    for url in urls:
        if not is_secure(url):
            raise UsageError(f"the provider {name!r} has {url!r}: it takes https, or this machine")
