"""Authorization code flow with PKCE: the request, the response, and the form that exchanges the code.

What is sent along is recorded before the user leaves, and whatever comes back is held against the
record before any of it is used: the state, then who says it, and only then what it says.
"""

from collections.abc import Mapping

import msgspec

from isthmus.auth.client.discovery import DiscoveryResult
from isthmus.auth.client.redirect import AuthorizationParams
from isthmus.auth.net.urls import add_query, check_browser_url
from isthmus.auth.protocol import ClientIdentity, quote_foreign
from isthmus.auth.tokens.secret import Secret, s256
from isthmus.errors import AuthRefused, AuthUnsafe


class AuthorizationRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one user's way to an authorization server and back.

    Attributes:
        discovered: whom they were sent to, with metadata that were checked, and for what resource.
        identity: which client sent them.
        redirect_uri: where they are to come back to.
        scopes: what is asked for; nothing leaves it to the server.
        state: comes back with them.
        verifier: whose hash goes with them; who has the code has to have it (RFC 7636).
        proof_key: the thumbprint of the key that the code is bound to, or None.
    """

    discovered: DiscoveryResult
    identity: ClientIdentity
    redirect_uri: str
    scopes: frozenset[str]
    state: Secret = msgspec.field(default_factory=Secret.random)
    verifier: Secret = msgspec.field(default_factory=Secret.random)
    proof_key: str | None = None

    def url(self) -> str:
        """The URL that the user is sent to.

        Raises:
            AuthUnsafe: the authorization server names no usable endpoint.
        """
        endpoint = self.discovered.server.authorization_endpoint
        if "#" in endpoint:
            issuer = quote_foreign(self.discovered.server.issuer)
            raise AuthUnsafe(f"the authorization_endpoint of {issuer} has a fragment")
        check_browser_url(endpoint)  # before there is a state in it
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
            "resource": self.discovered.resource,
        }
        if self.scopes:
            fields["scope"] = " ".join(sorted(self.scopes))
        if self.proof_key is not None:
            fields["dpop_jkt"] = self.proof_key
        return add_query(endpoint, fields)

    def code(self, params: AuthorizationParams) -> Secret:
        """The code in an answer that has our state.

        Raises:
            AuthUnsafe: it is not from whom we asked.
            AuthRefused: the user, or the server, said no.
        """
        server = self.discovered.server
        issuer, stated = server.issuer, params.get("iss")
        # spec 2026-07-28 basic/authorization#authorization-response-validation: compared as it
        # is, advertised or not, and before anything else in the answer is looked at
        if stated is None and server.authorization_response_iss_parameter_supported:
            raise AuthUnsafe(
                f"the answer to the login does not say that it is from {quote_foreign(issuer)}, which says "
                "it always does: nothing of it is used"
            )
        if stated is not None and stated != issuer:
            raise AuthUnsafe(
                f"the answer to the login is not from {quote_foreign(issuer)}, where the user was sent to: "
                "nothing of it is used"
            )
        if "error" in params:
            raise make_authorization_error(issuer, params)
        if not params.get("code"):
            raise AuthUnsafe(
                f"{quote_foreign(issuer)} sent the user back with neither code nor error"
            )
        return Secret(params["code"])

    def form(self, code: Secret) -> dict[str, str]:
        """The form that exchanges a code at the token endpoint."""
        return {
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "redirect_uri": self.redirect_uri,
            "code_verifier": self.verifier.reveal(),
            "resource": self.discovered.resource,
        }


# What an authorization response's error means, and what helps.
AUTHORIZATION_ERROR_HINTS: Mapping[str, str] = {
    "access_denied": "the user, or a policy there, did not allow it",
    "invalid_scope": "it does not know these scopes: scopes=… asks for others",
    "invalid_target": "it does not know the MCP server's URL as a resource: register it there",
    "temporarily_unavailable": "try again later",
    "server_error": "something went wrong there: try again later",
}


def make_authorization_error(issuer: str, params: AuthorizationParams) -> AuthRefused:
    """The exception for an authorization response that is an error."""
    error = quote_foreign(params["error"])
    more = params.get("error_description", "")
    words = f": {quote_foreign(more)}" if more else ""
    hint = AUTHORIZATION_ERROR_HINTS.get(error)
    return AuthRefused(
        f"{quote_foreign(issuer)} did not authorize: {error}{words}{f' ({hint})' if hint else ''}",
        error,
    )
