"""Assertions: signed by clients to authenticate, by others to vouch for a user or a program.

Signatures were verified before the transaction, since that may take a request for keys. What is left
is judged here: for whom an assertion is, until when, and that it is new.

Importing this takes the extra ``auth``.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from authlib.oauth2.drafts.id_jag import IDJAGGrant
from authlib.oauth2.rfc6749 import (
    BaseGrant,
    InvalidClientError,
    InvalidGrantError,
    OAuth2Request,
    TokenEndpointMixin,
    UnauthorizedClientError,
)

from isthmus.auth.authorization_server.clients import Known
from isthmus.auth.authorization_server.minting import Minting, choose_resource, shown_key
from isthmus.auth.authorization_server.tokens import TokenAnswer
from isthmus.auth.authorization_server.users import User
from isthmus.auth.jose import Claims, InvalidToken, audiences, check_times, number, type_of
from isthmus.auth.names import CLIENT_ASSERTION, CONFIDENTIAL, ID_JAG_TYPE, JWT_BEARER

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.oauth_core import OAuthCore

__all__ = ["IdJag", "WorkloadGrant", "by_assertion", "by_basic"]

NEEDED = ("sub", "client_id", "resource", "jti")

LONGEST_LIFE = 3600.0
"""Seconds that an assertion may be good for, since its id is remembered that long."""

Query = Callable[[str], Known | None]


def by_basic(query_client: Query, request: Any) -> Known | None:
    """Authenticate a client by its id and secret in the header, both form-encoded."""
    basic = request.asked.basic
    if basic is None:
        return None
    client = query_client(basic.client_id)
    if client is None or not client.check_client_secret(basic.secret):
        raise InvalidClientError(status_code=401, description="The client is unknown, or its secret wrong.")  # fmt: skip
    return client


def by_assertion(core: "OAuthCore") -> Callable[[Query, Any], Known | None]:
    """The way to authenticate a client by what it has signed (RFC 7523, ``private_key_jwt``)."""

    def authenticate(query_client: Query, request: Any) -> Known | None:
        if request.form.get("client_assertion_type") != CLIENT_ASSERTION:
            return None
        claims = core.found.client_assertion
        if claims is None:
            raise InvalidClientError(description="The client assertion is not accepted.")
        client_id, settings = claims.get("sub"), core.settings
        named = request.form.get("client_id", client_id)
        if not isinstance(client_id, str) or claims.get("iss") != client_id or named != client_id:
            raise InvalidClientError(description="The client assertion is of another client.")
        # The issuer, or the endpoint as older clients have it; and nobody else beside it.
        if not audiences(claims) or not audiences(claims) <= {settings.issuer, settings.url("token")}:  # fmt: skip
            raise InvalidClientError(description="The client assertion is for somebody else.")
        if not fresh(core, claims, client_id):
            raise InvalidClientError(description="The client assertion is too old, or was used before.")  # fmt: skip
        return query_client(client_id)

    return authenticate


def fresh(core: "OAuthCore", claims: Mapping[str, Any], issuer: str) -> bool:
    """Whether an assertion is good now, and for the first time; then it was."""
    now, jti = core.records.now, claims.get("jti")
    try:
        end = check_times(claims, now)
    except InvalidToken:
        return False
    if not isinstance(jti, str) or not 0 < len(jti) <= 256 or end > now + LONGEST_LIFE:
        return False
    return core.records.first_use(f"assertion {issuer}", jti, end + 60)


class IdJag(Minting, IDJAGGrant):  # type: ignore[misc]  # Authlib has no types
    """An enterprise's identity provider vouches for a user, so that nobody is asked (ID-JAG)."""

    TOKEN_ENDPOINT_AUTH_METHODS = CONFIDENTIAL

    @classmethod
    def check_token_endpoint(cls, request: OAuth2Request) -> bool:
        """Whether this is for us: the grant type is that of other assertions, too."""
        return (
            super().check_token_endpoint(request)
            and type_of(request.form.get("assertion", "")) == ID_JAG_TYPE
        )

    def _process_assertion_claims(self, assertion: str) -> Claims:
        """What the assertion says; its signature and its type have been verified."""
        core: OAuthCore = self.server
        claims = core.found.assertion
        if claims is None:
            raise InvalidGrantError("The assertion is not accepted.")
        # spec 2026-07-28 basic/authorization#mcp-authorization-extensions
        if audiences(claims) != {core.settings.issuer}:
            raise InvalidGrantError("The assertion is for another authorization server.")
        if not all(isinstance(claims.get(name), str) for name in NEEDED):
            raise InvalidGrantError("The assertion lacks sub, client_id, resource or jti.")
        if number(claims.get("iat")) is None:
            raise InvalidGrantError("The assertion does not say when it was made.")
        # What is usual is for clients that name no scope, and not where nothing is vouched for.
        if not str(claims.get("scope", "usual")).split():
            raise InvalidGrantError("The scope of the assertion names nothing.")
        # A key of another kind, such as that of a certificate, is one that nobody has shown here.
        jkt, bound = self.request.jkt, claims.get("cnf")
        if bound is not None and (jkt is None or bound != {"jkt": jkt}):
            raise InvalidGrantError("The assertion is bound to another key.")
        return claims

    def check_jti(self, claims: Claims, jti: str) -> bool:
        """Whether the assertion is good now, and new."""
        return fresh(self.server, claims, str(claims.get("iss")))

    def authenticate_user(self, subject: str) -> User | None:
        """Whom it is about."""
        user = self.server.found.user
        return user if user is not None and not user.disabled else None

    def check_id_jag_permission(self, client: Known, user: User, scopes: list[str]) -> bool:
        """Whether tokens are issued for what it names."""
        core: OAuthCore = self.server
        resource: str = self.request.id_jag_claims["resource"]
        self.request.resource = choose_resource(core.settings, self.request.asked, resource)
        return True

    def generate_token(
        self, *, scope: str | None = None, user: Any = None, **_: Any
    ) -> TokenAnswer:
        """A token about the user; there is no refresh token with it."""
        core: OAuthCore = self.server
        allowed = core.allowed_scope(self.request.client, scope)
        core.records.audit(
            "id_jag",
            client_id=self.request.client.client_id,
            user_id=user.id,
            detail=str(self.request.id_jag_claims["iss"]),
        )
        return core.mint(self.request, subject=user.id, scope=allowed)


class WorkloadGrant(BaseGrant, TokenEndpointMixin):  # type: ignore[misc]  # Authlib has no types
    """A platform vouches for a program that runs on it, which we know as a client."""

    GRANT_TYPE = JWT_BEARER

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        core: OAuthCore = self.server
        claims = core.found.assertion
        if claims is None:
            raise InvalidGrantError("The assertion is not accepted.")
        settings = core.settings
        workload = settings.workloads.get((str(claims.get("iss")), str(claims.get("sub"))))
        if workload is None or (workload.audience or settings.issuer) not in audiences(claims):
            raise InvalidGrantError("The assertion is of nobody who is known, or for another.")
        try:
            check_times(claims, core.records.now)
        except InvalidToken:
            raise InvalidGrantError("The assertion is not good at this time.") from None
        if self.request.form.get("client_id", workload.client_id) != workload.client_id:
            raise InvalidGrantError("The assertion is of another client.")
        client = core.query_client(workload.client_id)
        if client is None or not client.check_grant_type(JWT_BEARER):
            raise UnauthorizedClientError
        self.request.client = client
        self.request.jkt = shown_key(core, self.request.asked)
        self.validate_requested_scope()
        self.request.resource = choose_resource(settings, self.request.asked)

    def create_token_response(self) -> tuple[int, Any, Any]:
        """A token about the program."""
        core: OAuthCore = self.server
        client: Known = self.request.client
        scope = core.allowed_scope(client, self.request.payload.scope)
        answer = core.mint(self.request, subject=client.client_id, scope=scope)
        return 200, answer, self.TOKEN_RESPONSE_HEADER
