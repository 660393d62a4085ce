"""Token introspection (RFC 7662) and revocation (RFC 7009).

Importing this takes the extra ``auth``.
"""

from typing import Any

import msgspec
from authlib.oauth2.rfc6749 import InvalidRequestError
from authlib.oauth2.rfc7009 import RevocationEndpoint
from authlib.oauth2.rfc7662 import IntrospectionEndpoint

from isthmus.auth.authorization_server.core.oauth_core import OAuthCore
from isthmus.auth.authorization_server.core.tokens import (
    ACCESS_JWT_TYPE,
    REVOKED_ISSUER,
    is_genuine,
    parse_refresh_token,
)
from isthmus.auth.authorization_server.storage.clients import AuthlibClient
from isthmus.auth.authorization_server.storage.records import ClientGrant
from isthmus.auth.protocol import AUTH_METHODS, CONFIDENTIAL_METHODS
from isthmus.auth.tokens.jose import InvalidToken, check_times, read_token, verify_jwt


class TokenStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A token of ours that somebody handed back.

    Attributes:
        claims: what it says, or what there is to say of it.
        grant: the grant it belongs to, or None.
        gen: the generation of a refresh token; None for an access token.
        ended: whether it is good for nothing any more.
    """

    claims: dict[str, Any]
    grant: ClientGrant | None
    gen: int | None
    ended: bool

    def check_client(self, client: AuthlibClient) -> bool:
        """Whether it was issued to this client."""
        return bool(self.claims.get("client_id") == client.client_id)

    def is_expired(self) -> bool:
        """Whether it is over."""
        return self.ended

    def is_revoked(self) -> bool:
        """Whether it was ended before its time."""
        return self.ended


def recognize_token(core: OAuthCore, text: str) -> TokenStatus | None:
    """Recognise a token of ours; None for what is none."""
    return recognize_refresh(core, text) if text.startswith("rt.") else recognize_access(core, text)


def recognize_refresh(core: OAuthCore, text: str) -> TokenStatus | None:
    """Recognise a refresh token."""
    records = core.records
    presented = parse_refresh_token(text)
    grant = None if presented is None else records.grant(presented.grant_id)
    if presented is None or grant is None:
        return None
    if not is_genuine(core.keyring.mac(records), presented, grant.client_id):
        return None
    over = grant.revoked_at is not None or grant.expires_at <= records.now
    claims = {
        "iss": core.settings.issuer,
        "sub": grant.user_id,
        "client_id": grant.client_id,
        "aud": grant.resource,
        "scope": grant.scope,
        "exp": int(grant.expires_at),
    }
    return TokenStatus(
        claims=claims, grant=grant, gen=presented.gen, ended=over or presented.gen != grant.gen
    )


def recognize_access(core: OAuthCore, text: str) -> TokenStatus | None:
    """Recognise an access token."""
    records = core.records
    try:
        read_token(text)
        keys = core.keyring.public(records)
        claims = verify_jwt(text, keys, algorithms=key_algorithms(keys), typ=ACCESS_JWT_TYPE)
        check_times(claims, records.now, leeway=0.0)
    except InvalidToken:
        return None
    if claims.get("iss") != core.settings.issuer:
        return None
    gid = claims.get("gid")
    grant = records.grant(gid) if isinstance(gid, str) else None
    over = (gid is not None and (grant is None or grant.revoked_at is not None)) or records.used(
        REVOKED_ISSUER, str(claims.get("jti"))
    )
    return TokenStatus(claims=dict(claims), grant=grant, gen=None, ended=over)


def key_algorithms(keys: list[dict[str, Any]]) -> list[str]:
    """The algorithms of our own keys."""
    return sorted({key["alg"] for key in keys})


class Revocation(RevocationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Ends a token before its time: a refresh token with its whole grant, an access token alone."""

    CLIENT_AUTH_METHODS = AUTH_METHODS

    def check_params(self, request: Any, client: AuthlibClient) -> None:
        """See that there is a token; hints are not needed, so that none is wrong."""
        if "token" not in request.form:
            raise InvalidRequestError("The token is missing.")

    def query_token(self, token_string: str, token_type_hint: str | None) -> TokenStatus | None:
        """The token, if it is one of ours."""
        return recognize_token(self.server, token_string)

    def authenticate_token(self, request: Any, client: AuthlibClient) -> TokenStatus | None:
        """The token, if it is this client's; what is somebody else's does not exist for it."""
        self.check_params(request, client)
        token = self.query_token(request.form["token"], None)
        return token if token is not None and token.check_client(client) else None

    def revoke_token(self, token: TokenStatus, request: Any) -> None:
        """End it."""
        records = self.server.records
        if token.gen is not None and token.grant is not None:
            records.revoke_grant(token.grant.id)
        else:
            records.first_use(
                REVOKED_ISSUER, str(token.claims["jti"]), float(token.claims["exp"]) + 60
            )
        records.audit(
            "revoked",
            client_id=str(token.claims["client_id"]),
            user_id=str(token.claims["sub"]),
            grant_id=token.grant.id if token.grant else "",
        )


class Introspection(IntrospectionEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Says what a token is good for, to its client and to those who were set up to ask."""

    CLIENT_AUTH_METHODS = CONFIDENTIAL_METHODS

    def check_params(self, request: Any, client: AuthlibClient) -> None:
        """See that there is a token; hints are not needed, so that none is wrong."""
        if "token" not in request.form:
            raise InvalidRequestError("The token is missing.")

    def query_token(self, token_string: str, token_type_hint: str | None) -> TokenStatus | None:
        """The token, if it is one of ours."""
        return recognize_token(self.server, token_string)

    def check_permission(self, token: TokenStatus, client: AuthlibClient, request: Any) -> bool:
        """Whether a client may know of it."""
        return client.client.introspects or token.check_client(client)

    def introspect_token(self, token: TokenStatus) -> dict[str, Any]:
        """The claims of a token; ``token_type`` for access tokens alone (RFC 7662 2.2)."""
        if token.gen is not None:
            return token.claims
        kind = "DPoP" if "cnf" in token.claims else "Bearer"
        return {**token.claims, "token_type": kind}
