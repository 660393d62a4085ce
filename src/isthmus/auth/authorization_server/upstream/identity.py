"""Identity of a provider's user: by ID token, by user info, or by a function of the operator's."""

import hashlib
from collections.abc import Mapping
from typing import Any

from isthmus.auth.authorization_server.upstream.api import (
    FixedToken,
    Upstream,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamUnavailable,
)
from isthmus.auth.authorization_server.upstream.provider import Endpoints, Provider, refuse_id_token
from isthmus.auth.authorization_server.upstream.token_rows import UpstreamTokens
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.protocol import parse_members
from isthmus.auth.tokens.audience import audiences_of
from isthmus.auth.tokens.jose import (
    ALGORITHMS,
    DEFAULT_ALGORITHMS,
    Claims,
    InvalidToken,
    check_times,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError

MAX_ID_CHARS, MAX_SUBJECT_CHARS, MAX_SHOWN_NAME_CHARS = 255, 255, 200


async def identify(
    provider: Provider,
    tokens: UpstreamTokens,
    members: Mapping[str, Any],
    nonce: Secret,
    *,
    required: bool = True,
) -> tuple[str, str]:
    """The user's id at the provider, and what they are called.

    Args:
        provider: whose user.
        tokens: what a code was just exchanged for.
        members: the whole answer, which may have an ID token.
        nonce: what the authorization request had.
        required: it has to be known; else both are empty where nothing says it.

    Raises:
        UpstreamDenied: the provider vouches for nobody, or for somebody else.
        UpstreamUnavailable: it cannot be asked.
    """
    if provider.user_id is not None:
        return await identify_by_function(provider, tokens)
    endpoints = await provider.endpoints()
    id_token = members.get("id_token")
    claims: Mapping[str, Any]
    if isinstance(id_token, str) and endpoints.jwks is not None:
        claims = await verify_id_token(provider, endpoints, Secret(id_token), nonce)
    elif "openid" in provider.scopes and endpoints.jwks is not None:
        raise UpstreamDenied(f"{provider.title} gave no ID token")
    elif endpoints.userinfo is not None:
        claims = await fetch_userinfo(provider, endpoints.userinfo, tokens)
    elif not required:
        return "", ""
    else:
        raise UpstreamDenied(
            f"nothing says who a user of {provider.title} is: give the provider user_id=, or the "
            "scope openid"
        )
    return read_subject(provider, claims.get("sub"), claims)


def make_user(provider: Provider, subject: str, name: str) -> User:
    """A provider's user as one of ours: no other provider's user has the same id."""
    id = f"{provider.issuer}|{subject}"
    if len(id) > MAX_ID_CHARS:
        id = f"{provider.name}|{hashlib.sha256(id.encode()).hexdigest()}"
    return User(id=id, name=name)


async def is_token_alive(provider: Provider, tokens: UpstreamTokens) -> bool:
    """Whether the provider still honours an access token that has not expired.

    Raises:
        UpstreamUnavailable: it cannot be asked.
    """
    active = await provider.introspect(tokens)
    if active is not None:
        return active
    try:
        if provider.user_id is not None:
            subject, _ = await identify_by_function(provider, tokens)
        elif (where := (await provider.endpoints()).userinfo) is not None:
            subject = str((await fetch_userinfo(provider, where, tokens)).get("sub", ""))
        else:
            return True
    except UpstreamDenied:
        return False
    return tokens.subject in {"", subject}


async def identify_by_function(provider: Provider, tokens: UpstreamTokens) -> tuple[str, str]:
    """Ask the operator's function who the user is."""
    if provider.user_id is None:
        return "", ""
    try:
        found = await provider.user_id(Upstream(provider, FixedToken(tokens.access)))
    except UpstreamFailed as error:
        if error.status == 401:
            raise UpstreamDenied(f"{provider.title} does not honour its own token") from None
        raise UpstreamUnavailable(f"{provider.title} does not say who its user is") from None
    if isinstance(found, User):
        return read_subject(provider, found.id, {"name": found.name})
    return read_subject(provider, str(found) if isinstance(found, int) else found, {})


async def fetch_userinfo(provider: Provider, url: str, tokens: UpstreamTokens) -> Mapping[str, Any]:
    """Fetch the claims of the user info endpoint (OpenID Connect Core 5.3)."""
    headers = {"accept": "application/json", "authorization": f"Bearer {tokens.access.reveal()}"}
    try:
        answer = await provider.network.fetch("GET", url, headers=headers)
    except AuthError as error:
        raise provider.unavailable(error) from None
    # RFC 6750 3.1: a token that is over is a 401; a 403 may be a proxy's, or a rate limit
    if answer.status == 401:
        raise UpstreamDenied(f"{provider.title} does not honour its own token")
    members = parse_members(answer.body) if answer.status == 200 else None
    if not members:
        raise UpstreamUnavailable(f"{provider.title} does not say who its user is")
    return members


async def verify_id_token(
    provider: Provider, endpoints: Endpoints, id_token: Secret, nonce: Secret
) -> Claims:
    """The claims of an ID token, once everything about it is right (OpenID Connect Core 3.1.3.7)."""
    allowed = tuple(a for a in endpoints.algorithms if a in ALGORITHMS) or DEFAULT_ALGORITHMS
    try:
        claims = await provider.keys(endpoints).verify(id_token, algorithms=allowed)
        check_times(claims, provider.clock())
    except InvalidToken as error:
        raise refuse_id_token(provider, str(error)) from None
    except AuthError as error:
        raise provider.unavailable(error) from None
    us, meant = provider.identity.client_id, audiences_of(claims)
    if claims.get("iss") != (endpoints.issuer or provider.issuer):
        raise refuse_id_token(provider, "it is of another issuer")
    if us not in meant or (len(meant) > 1 and claims.get("azp") != us):
        raise refuse_id_token(provider, "it is for another client")
    if not isinstance(claims.get("nonce"), str) or nonce != claims["nonce"]:
        raise refuse_id_token(provider, "it answers another request")
    return claims


def read_subject(provider: Provider, subject: Any, claims: Mapping[str, Any]) -> tuple[str, str]:
    """The id and the name of a user, if there is an id."""
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS:
        raise UpstreamDenied(f"{provider.title} does not say who its user is")
    for claim in ("name", "preferred_username", "email"):
        name = claims.get(claim)
        if isinstance(name, str) and name:
            return subject, name[:MAX_SHOWN_NAME_CHARS]
    return subject, ""
