"""The authorization code flow: to the user, back from the user, and a code for tokens.

What is sent along is recorded before the user leaves, and whatever comes back is held against the
record before any of it is used: the state, then who says it, and only then what it says.
"""

from collections.abc import Mapping

import msgspec

from isthmus.auth.client.callback import Params
from isthmus.auth.client.discovery import Place
from isthmus.auth.client.proofs import Proofs
from isthmus.auth.client.token_request import Granted
from isthmus.auth.client.tokens import Tokens
from isthmus.auth.client_identity import Identity
from isthmus.auth.foreign import said
from isthmus.auth.secret import Secret, s256
from isthmus.auth.urls import safe_browser_url, with_query
from isthmus.errors import AuthRefused, AuthUnsafe

__all__ = ["Login", "granted_tokens", "presentable"]


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one user's way to an authorization server and back.

    Attributes:
        place: whom they were sent to, with metadata that were checked, and for what resource.
        identity: which client sent them.
        redirect_uri: where they are to come back to.
        scopes: what is asked for; nothing leaves it to the server.
        state: comes back with them.
        verifier: whose hash goes with them; who has the code has to have it (RFC 7636).
        proof_key: the thumbprint of the key that the code is bound to, or None.
    """

    place: Place
    identity: Identity
    redirect_uri: str
    scopes: frozenset[str]
    state: Secret = msgspec.field(default_factory=Secret.random)
    verifier: Secret = msgspec.field(default_factory=Secret.random)
    proof_key: str | None = None

    def url(self) -> str:
        """Where the user is sent to.

        Raises:
            AuthUnsafe: the authorization server names no usable endpoint.
        """
        endpoint = self.place.server.authorization_endpoint
        if "#" in endpoint:
            issuer = said(self.place.server.issuer)
            raise AuthUnsafe(f"the authorization_endpoint of {issuer} has a fragment")
        safe_browser_url(endpoint)  # before there is a state in it
        fields = {
            "response_type": "code",
            "client_id": self.identity.client_id,
            "redirect_uri": self.redirect_uri,
            "state": self.state.reveal(),
            # spec 2026-07-28 basic/authorization/security-considerations#authorization-code-protection:
            # PKCE, by S256
            "code_challenge": s256(self.verifier),
            "code_challenge_method": "S256",
            # spec 2026-07-28 basic/authorization#resource-parameter-implementation: in both
            # requests, whether or not the server knows it
            "resource": self.place.resource,
        }
        if self.scopes:
            fields["scope"] = " ".join(sorted(self.scopes))
        if self.proof_key is not None:
            fields["dpop_jkt"] = self.proof_key
        return with_query(endpoint, fields)

    def code(self, params: Params) -> Secret:
        """The code in an answer that has our state.

        Raises:
            AuthUnsafe: it is not from whom we asked.
            AuthRefused: the user, or the server, said no.
        """
        server = self.place.server
        issuer, stated = server.issuer, params.get("iss")
        # spec 2026-07-28 basic/authorization#authorization-response-validation: compared as it
        # is, advertised or not, and before anything else in the answer is looked at
        if stated is None and server.authorization_response_iss_parameter_supported:
            raise AuthUnsafe(
                f"the answer to the login does not say that it is from {said(issuer)}, which says "
                "it always does: nothing of it is used"
            )
        if stated is not None and stated != issuer:
            raise AuthUnsafe(
                f"the answer to the login is not from {said(issuer)}, where the user was sent to: "
                "nothing of it is used"
            )
        if "error" in params:
            raise denied(issuer, params)
        if not params.get("code"):
            raise AuthUnsafe(f"{said(issuer)} sent the user back with neither code nor error")
        return Secret(params["code"])

    def form(self, code: Secret) -> dict[str, str]:
        """What is sent to the token endpoint for a code."""
        return {
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier.reveal(),
            "resource": self.place.resource,
        }


REFUSALS: Mapping[str, str] = {
    "access_denied": "the user, or a policy there, did not allow it",
    "invalid_scope": "it does not know these scopes: scopes=… asks for others",
    "invalid_target": "it does not know the MCP server's URL as a resource: register it there",
    "temporarily_unavailable": "try again later",
    "server_error": "something went wrong there: try again later",
}
"""What an authorization response's error means, and what helps."""


def denied(issuer: str, params: Params) -> AuthRefused:
    """The exception for an authorization response that is an error."""
    error = said(params["error"])
    more = params.get("error_description", "")
    words = f": {said(more)}" if more else ""
    hint = REFUSALS.get(error)
    return AuthRefused(
        f"{said(issuer)} did not authorize: {error}{words}{f' ({hint})' if hint else ''}", error
    )


def presentable(granted: Granted, issuer: str, proofs: Proofs) -> None:
    """See to it that a token is of a type that a request can carry.

    Raises:
        AuthUnsafe: it is not.
    """
    if granted.kind != "Bearer" and (granted.kind != "DPoP" or proofs.key is None):
        raise AuthUnsafe(f"{said(issuer)} issued a token that nobody here can present")


def granted_tokens(
    granted: Granted,
    *,
    place: Place,
    client_id: str,
    asked: frozenset[str],
    proofs: Proofs,
    now: float,
    account: str,
) -> Tokens:
    """What a token request brought, as it is kept."""
    server = place.server
    presentable(granted, server.issuer, proofs)
    return Tokens(
        access=granted.access,
        issuer=server.issuer,
        client_id=client_id,
        resource=place.resource,
        kind=granted.kind,
        refresh=granted.refresh,
        issued_at=now,
        expires_at=None if granted.expires_in is None else now + granted.expires_in,
        # RFC 6749 5.1: absent where it is what was asked for
        scopes=asked if granted.scopes is None else granted.scopes,
        asked=asked,
        token_endpoint=server.token_endpoint,
        methods=server.methods,
        proof_key=proofs.secret if granted.kind == "DPoP" else None,
        account=account,
        server=place.below,
    )
