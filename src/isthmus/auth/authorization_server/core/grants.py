"""Grants, the ways in which a client gets tokens: Authlib's, with what MCP wants of them laid over.

``authorization_code`` and ``client_credentials``, and the assertions by which others vouch for a user
(ID-JAG) or a program (RFC 7523). Signatures of assertions were verified before the transaction, since that
may take a request for keys. What is left is judged here: for whom one is, until when, and that it is new.

Importing this takes the extra ``auth``.
"""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any

from authlib.oauth2.drafts.id_jag import IDJAGGrant
from authlib.oauth2.rfc6749 import (
    BaseGrant,
    InvalidClientError,
    InvalidGrantError,
    InvalidRequestError,
    OAuth2Request,
    TokenEndpointMixin,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant, ClientCredentialsGrant
from authlib.oauth2.rfc7636 import CodeChallenge

from isthmus.auth.authorization_server.core.introspection import Introspection, Revocation
from isthmus.auth.authorization_server.core.oauth_core import (
    FormRequest,
    OAuthCore,
    ProofBoundGrant,
    check_request_proof,
    choose_resource,
    earliest_end,
)
from isthmus.auth.authorization_server.core.refresh_grant import RefreshGrant
from isthmus.auth.authorization_server.core.tokens import (
    TokenAnswer,
    make_id,
    make_refresh_token,
)
from isthmus.auth.authorization_server.storage.clients import AuthlibClient
from isthmus.auth.authorization_server.storage.records import AuthorizationCode, ClientGrant
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.protocol import (
    AUTH_METHODS,
    CLIENT_ASSERTION_TYPE,
    CONFIDENTIAL_METHODS,
    ID_JAG_JWT_TYPE,
    JWT_BEARER_GRANT,
)
from isthmus.auth.tokens.audience import audiences_of, is_issued_for
from isthmus.auth.tokens.jose import (
    Claims,
    InvalidToken,
    check_times,
    parse_date,
    token_type,
)
from isthmus.auth.tokens.secret import Secret, sha256_digest

S256_CHALLENGE = re.compile(r"[A-Za-z0-9\-_]{43}")  # a SHA-256 in base64url

REQUIRED_ID_JAG_CLAIMS = ("sub", "client_id", "resource", "jti")
MAX_ASSERTION_LIFE_S = 3600.0  # its id is remembered that long

ClientQuery = Callable[[str], AuthlibClient | None]


class S256Required(CodeChallenge):  # type: ignore[misc]  # Authlib has no types
    """PKCE by S256, for every client, whatever else it authenticates with."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 - Authlib's own way

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """See that there is a challenge, and that it is one of S256."""
        data = grant.request.payload.data
        # spec 2025-11-25 basic/authorization#authorization-code-protection
        if not S256_CHALLENGE.fullmatch(data.get("code_challenge", "")):
            raise InvalidRequestError("A code_challenge of S256 is required.")
        if data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("The code_challenge_method has to be S256.")

    def validate_code_verifier(self, grant: Any, result: Any) -> None:
        """See that the verifier is there, and is the challenge's."""
        if not grant.request.form.get("code_verifier"):
            raise InvalidRequestError("A code_verifier is required.")
        super().validate_code_verifier(grant, result)

    def get_authorization_code_challenge_method(self, authorization_code: Any) -> str:
        """The code challenge method, which is always S256."""
        return "S256"


class ResourceIndicator:
    """Knows which MCP server the tokens are for (RFC 8707), before anybody is asked."""

    def __call__(self, grant: Any) -> None:
        """Have a grant ask this when its request is validated."""
        grant.register_hook("after_validate_authorization_request_payload", self.choose)

    def choose(self, grant: Any, result: Any) -> None:
        """Choose the resource, or refuse with ``invalid_target``."""
        grant.request.resource = choose_resource(grant.server.settings, grant.request.parameters)


class StoredCode:
    """A code, as Authlib asks about it."""

    def __init__(self, code: AuthorizationCode, grant: ClientGrant, *, sent: bool) -> None:
        self.row = code
        self.grant = grant
        self.code_challenge = code.challenge
        self._sent = sent

    def get_redirect_uri(self) -> str | None:
        """The redirect URI that the token request has to repeat, if it sends one: OAuth 2.1 dropped that."""
        return self.row.redirect_uri if self._sent else None

    def get_scope(self) -> str:
        """The scope that was allowed."""
        return self.grant.scope


class CodeGrant(ProofBoundGrant, AuthorizationCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """``authorization_code``: single use, bound to client, redirect URI, challenge and resource."""

    TOKEN_ENDPOINT_AUTH_METHODS = AUTH_METHODS

    def generate_authorization_code(self) -> str:
        """256 random bits."""
        self.secret = Secret(secrets.token_urlsafe(32))
        return self.secret.reveal()

    def save_authorization_code(self, code: str, request: FormRequest) -> None:
        """Keep a code, and the grant that it stands for."""
        core: OAuthCore = self.server
        records, settings, approval = core.records, core.settings, core.approval
        if approval is None:  # pragma: no cover - there is no other way here
            raise InvalidRequestError
        scopes = (request.scope or "").split()
        if approval.scopes is not None:
            scopes = [scope for scope in scopes if scope in approval.scopes]
        ends = approval.ends_at
        grant = ClientGrant(
            id=make_id(),
            client_id=request.client.client_id,
            user_id=approval.user.id,
            scope=" ".join(scopes),
            resource=request.resource,
            gen=0,
            created_at=records.now,
            rotated_at=None,
            expires_at=earliest_end(records.now + settings.refresh_ttl, ends),
            ends_at=ends,
            revoked_at=None,
            jkt=None,
            upstream_id=approval.upstream_id,
        )
        records.add_grant(grant)
        data = request.payload.data
        records.add_code(
            AuthorizationCode(
                digest=sha256_digest(code),
                grant_id=grant.id,
                client_id=grant.client_id,
                redirect_uri=data.get("redirect_uri", ""),
                sent_redirect=int("redirect_uri" in data),
                challenge=data["code_challenge"],
                jkt=data.get("dpop_jkt"),
                expires_at=records.now + settings.code_ttl,
                used_at=None,
            )
        )

    def query_authorization_code(self, code: str, client: Any) -> StoredCode | None:
        """The code that a client presents; None where it is good for nothing."""
        records = self.server.records
        row = records.code(code)
        if row is None or row.client_id != client.client_id:
            return None
        grant = records.grant(row.grant_id)
        if grant is None:
            return None
        if row.used_at is not None:
            # spec 2026-07-28 basic/authorization/security-considerations: RFC 6749 4.1.2
            records.revoke_grant(grant.id)
            records.audit("code_replay", client_id=grant.client_id, user_id=grant.user_id,
                          grant_id=grant.id)  # fmt: skip
            return None
        if row.expires_at <= records.now or grant.revoked_at is not None:
            return None
        if row.jkt is not None and row.jkt != self.request.jkt:
            return None
        sent = bool(row.sent_redirect) and "redirect_uri" in self.request.form
        return StoredCode(row, grant, sent=sent)

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        super().validate_token_request()
        stored: StoredCode = self.request.authorization_code
        self.request.resource = choose_resource(
            self.server.settings, self.request.parameters, stored.grant.resource
        )

    def authenticate_user(self, authorization_code: StoredCode) -> User | None:
        """The user who approved, unless they are gone or disabled."""
        return self.server.active_user(authorization_code.grant)

    def delete_authorization_code(self, authorization_code: StoredCode) -> None:
        """Redeem the code. It is kept, so that its replay is known for one."""
        if not self.server.records.use_code(authorization_code.row):
            raise InvalidGrantError

    def generate_token(self, *, include_refresh_token: bool = True, **_: Any) -> TokenAnswer:
        """The first tokens of a grant."""
        core: OAuthCore = self.server
        grant: ClientGrant = self.request.authorization_code.grant
        client_id, jkt = grant.client_id, self.request.jkt
        # spec 2025-06-18 basic/authorization#token-theft: a public client's refresh token is
        # worth nothing without the key it has shown
        if jkt is not None and self.request.client.client.public:
            core.records.bind_grant(grant.id, jkt)
        mac = core.keyring.mac(core.records)
        refresh = make_refresh_token(mac, grant.id, 0, client_id) if include_refresh_token else None
        return core.mint(
            self.request,
            subject=grant.user_id,
            scope=grant.scope,
            grant_id=grant.id,
            refresh=refresh,
        )


class ClientCredentialsFlow(ProofBoundGrant, ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """``client_credentials``: for clients that act for themselves."""

    TOKEN_ENDPOINT_AUTH_METHODS = CONFIDENTIAL_METHODS

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        super().validate_token_request()
        if self.request.client.client.public:
            raise UnauthorizedClientError
        self.request.resource = choose_resource(self.server.settings, self.request.parameters)

    def generate_token(self, *, scope: str | None = None, **_: Any) -> TokenAnswer:
        """A token about the client itself."""
        core: OAuthCore = self.server
        allowed = core.allowed_scope(self.request.client, scope)
        return core.mint(self.request, subject=self.request.client.client_id, scope=allowed)


class IdJagGrant(ProofBoundGrant, IDJAGGrant):  # type: ignore[misc]  # Authlib has no types
    """An enterprise's identity provider vouches for a user, so that nobody is asked (ID-JAG)."""

    TOKEN_ENDPOINT_AUTH_METHODS = CONFIDENTIAL_METHODS

    @classmethod
    def check_token_endpoint(cls, request: OAuth2Request) -> bool:
        """Whether this is for us: the grant type is that of other assertions, too."""
        return (
            super().check_token_endpoint(request)
            and token_type(request.form.get("assertion", "")) == ID_JAG_JWT_TYPE
        )

    def _process_assertion_claims(self, assertion: str) -> Claims:
        """The claims of the assertion; its signature and its type have been verified."""
        core: OAuthCore = self.server
        claims = core.found.assertion
        if claims is None:
            raise InvalidGrantError("The assertion is not accepted.")
        # spec 2026-07-28 basic/authorization#mcp-authorization-extensions
        if audiences_of(claims) != {core.settings.issuer}:
            raise InvalidGrantError("The assertion is for another authorization server.")
        if not all(isinstance(claims.get(name), str) for name in REQUIRED_ID_JAG_CLAIMS):
            raise InvalidGrantError("The assertion lacks sub, client_id, resource or jti.")
        if parse_date(claims.get("iat")) is None:
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
        return use_assertion_once(self.server, claims, str(claims.get("iss")))

    def authenticate_user(self, subject: str) -> User | None:
        """The user that the assertion is about."""
        user = self.server.found.user
        return user if user is not None and not user.disabled else None

    def check_id_jag_permission(self, client: AuthlibClient, user: User, scopes: list[str]) -> bool:
        """Whether tokens are issued for what it names."""
        core: OAuthCore = self.server
        resource: str = self.request.id_jag_claims["resource"]
        self.request.resource = choose_resource(core.settings, self.request.parameters, resource)
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

    GRANT_TYPE = JWT_BEARER_GRANT

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        core: OAuthCore = self.server
        claims = core.found.assertion
        if claims is None:
            raise InvalidGrantError("The assertion is not accepted.")
        settings = core.settings
        workload = settings.workloads.get((str(claims.get("iss")), str(claims.get("sub"))))
        if workload is None or not is_issued_for(claims, {workload.audience or settings.issuer}):
            raise InvalidGrantError("The assertion is of nobody who is known, or for another.")
        try:
            check_times(claims, core.records.now)
        except InvalidToken:
            raise InvalidGrantError("The assertion is not good at this time.") from None
        if self.request.form.get("client_id", workload.client_id) != workload.client_id:
            raise InvalidGrantError("The assertion is of another client.")
        client = core.query_client(workload.client_id)
        if client is None or not client.check_grant_type(JWT_BEARER_GRANT):
            raise UnauthorizedClientError
        self.request.client = client
        self.request.jkt = check_request_proof(core, self.request.parameters)
        self.validate_requested_scope()
        self.request.resource = choose_resource(settings, self.request.parameters)

    def create_token_response(self) -> tuple[int, Any, Any]:
        """A token about the program."""
        core: OAuthCore = self.server
        client: AuthlibClient = self.request.client
        scope = core.allowed_scope(client, self.request.payload.scope)
        answer = core.mint(self.request, subject=client.client_id, scope=scope)
        return 200, answer, self.TOKEN_RESPONSE_HEADER


def authenticate_basic(query_client: ClientQuery, request: Any) -> AuthlibClient | None:
    """Authenticate a client by its id and secret in the header, both form-encoded."""
    basic = request.parameters.basic
    if basic is None:
        return None
    client = query_client(basic.client_id)
    if client is None or not client.check_client_secret(basic.secret):
        raise InvalidClientError(status_code=401, description="The client is unknown, or its secret wrong.")  # fmt: skip
    return client


def make_assertion_method(core: OAuthCore) -> Callable[[ClientQuery, Any], AuthlibClient | None]:
    """The way to authenticate a client by what it has signed (RFC 7523, ``private_key_jwt``)."""

    def authenticate(query_client: ClientQuery, request: Any) -> AuthlibClient | None:
        if request.form.get("client_assertion_type") != CLIENT_ASSERTION_TYPE:
            return None
        claims = core.found.client_assertion
        if claims is None:
            raise InvalidClientError(description="The client assertion is not accepted.")
        client_id, settings = claims.get("sub"), core.settings
        named = request.form.get("client_id", client_id)
        if not isinstance(client_id, str) or claims.get("iss") != client_id or named != client_id:
            raise InvalidClientError(description="The client assertion is of another client.")
        # The issuer, or the endpoint as older clients have it; and nobody else beside it.
        if not audiences_of(claims) or not audiences_of(claims) <= {settings.issuer, settings.url("token")}:  # fmt: skip
            raise InvalidClientError(description="The client assertion is for somebody else.")
        if not use_assertion_once(core, claims, client_id):
            raise InvalidClientError(description="The client assertion is too old, or was used before.")  # fmt: skip
        return query_client(client_id)

    return authenticate


def use_assertion_once(core: OAuthCore, claims: Mapping[str, Any], issuer: str) -> bool:
    """Whether an assertion is good now, and for the first time; then it was."""
    now, jti = core.records.now, claims.get("jti")
    try:
        end = check_times(claims, now)
    except InvalidToken:
        return False
    if not isinstance(jti, str) or not 0 < len(jti) <= 256 or end > now + MAX_ASSERTION_LIFE_S:
        return False
    return core.records.first_use(f"assertion {issuer}", jti, end + 60)


def register_grants(core: OAuthCore) -> None:
    """Give an authorization server its grants, its ways to authenticate, and its other endpoints."""
    core.register_client_auth_method("client_secret_basic", authenticate_basic)
    core.register_client_auth_method("private_key_jwt", make_assertion_method(core))
    core.register_grant(CodeGrant, [S256Required(), ResourceIndicator()])
    core.register_grant(RefreshGrant)
    core.register_grant(ClientCredentialsFlow)
    core.register_grant(IdJagGrant)
    core.register_grant(WorkloadGrant)
    core.register_endpoint(Revocation)
    core.register_endpoint(Introspection)
