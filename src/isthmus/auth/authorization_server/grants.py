"""The grants: how a client gets tokens. Each is Authlib's, with what MCP wants of it laid over.

Importing this takes the extra ``auth``.
"""

import re
import secrets
from typing import TYPE_CHECKING, Any

from authlib.oauth2.rfc6749 import (
    InvalidGrantError,
    InvalidRequestError,
    UnauthorizedClientError,
)
from authlib.oauth2.rfc6749.grants import (
    AuthorizationCodeGrant,
    ClientCredentialsGrant,
    RefreshTokenGrant,
)
from authlib.oauth2.rfc7636 import CodeChallenge

from isthmus.auth.authorization_server.assertions import (
    IdJag,
    WorkloadGrant,
    by_assertion,
    by_basic,
)
from isthmus.auth.authorization_server.inspection import Introspection, Revocation
from isthmus.auth.authorization_server.minting import Minting, choose_resource
from isthmus.auth.authorization_server.records import Code, Grant
from isthmus.auth.authorization_server.tokens import (
    TokenAnswer,
    fresh_id,
    genuine,
    judge_refresh,
    read_refresh,
    refresh_token,
)
from isthmus.auth.authorization_server.users import User
from isthmus.auth.names import CONFIDENTIAL, METHODS
from isthmus.auth.secret import Secret, digest

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.oauth_core import FormRequest, OAuthCore

__all__ = ["equip"]

CHALLENGE = re.compile(r"[A-Za-z0-9\-_]{43}")
"""A SHA-256 in base64url: nothing else is a challenge of S256."""


class S256Required(CodeChallenge):  # type: ignore[misc]  # Authlib has no types
    """PKCE by S256, for every client, whatever else it authenticates with."""

    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 - Authlib's own way

    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None:
        """See that there is a challenge, and that it is one of S256."""
        data = grant.request.payload.data
        # spec 2025-11-25 basic/authorization#authorization-code-protection
        if not CHALLENGE.fullmatch(data.get("code_challenge", "")):
            raise InvalidRequestError("A code_challenge of S256 is required.")
        if data.get("code_challenge_method") != "S256":
            raise InvalidRequestError("The code_challenge_method has to be S256.")

    def validate_code_verifier(self, grant: Any, result: Any) -> None:
        """See that the verifier is there, and is the challenge's."""
        if not grant.request.form.get("code_verifier"):
            raise InvalidRequestError("A code_verifier is required.")
        super().validate_code_verifier(grant, result)

    def get_authorization_code_challenge_method(self, authorization_code: Any) -> str:
        """How every challenge of ours was made."""
        return "S256"


class ResourceIndicator:
    """Knows which MCP server the tokens are for (RFC 8707), before anybody is asked."""

    def __call__(self, grant: Any) -> None:
        """Have a grant ask this when its request is validated."""
        grant.register_hook("after_validate_authorization_request_payload", self.choose)

    def choose(self, grant: Any, result: Any) -> None:
        """Choose the resource, or refuse with ``invalid_target``."""
        grant.request.resource = choose_resource(grant.server.settings, grant.request.asked)


class StoredCode:
    """A code, as Authlib asks about it."""

    def __init__(self, code: Code, grant: Grant, *, sent: bool) -> None:
        self.row = code
        self.grant = grant
        self.code_challenge = code.challenge
        self._sent = sent

    def get_redirect_uri(self) -> str | None:
        """What the token request has to repeat, if it says anything: OAuth 2.1 dropped that."""
        return self.row.redirect_uri if self._sent else None

    def get_scope(self) -> str:
        """What was allowed."""
        return self.grant.scope


class CodeGrant(Minting, AuthorizationCodeGrant):  # type: ignore[misc]  # Authlib has no types
    """``authorization_code``: single use, bound to client, redirect URI, challenge and resource."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS

    def generate_authorization_code(self) -> str:
        """256 random bits."""
        self.secret = Secret(secrets.token_urlsafe(32))
        return self.secret.reveal()

    def save_authorization_code(self, code: str, request: "FormRequest") -> None:
        """Keep a code, and the grant that it stands for."""
        core: OAuthCore = self.server
        records, settings, approval = core.records, core.settings, core.approval
        if approval is None:  # pragma: no cover - there is no other way here
            raise InvalidRequestError
        scopes = (request.scope or "").split()
        if approval.scopes is not None:
            scopes = [scope for scope in scopes if scope in approval.scopes]
        ends = approval.ends_at
        grant = Grant(
            id=fresh_id(),
            client_id=request.client.client_id,
            user_id=approval.user.id,
            scope=" ".join(scopes),
            resource=request.resource,
            gen=0,
            created_at=records.now,
            rotated_at=None,
            expires_at=until(records.now + settings.refresh_ttl, ends),
            ends_at=ends,
            revoked_at=None,
            jkt=None,
            upstream_id=approval.upstream_id,
        )
        records.add_grant(grant)
        data = request.payload.data
        records.add_code(
            Code(
                digest=digest(code),
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
            self.server.settings, self.request.asked, stored.grant.resource
        )

    def authenticate_user(self, authorization_code: StoredCode) -> User | None:
        """Who said yes, as long as they may."""
        return able(self.server, authorization_code.grant)

    def delete_authorization_code(self, authorization_code: StoredCode) -> None:
        """Redeem the code. It is kept, so that its replay is known for one."""
        if not self.server.records.use_code(authorization_code.row):
            raise InvalidGrantError

    def generate_token(self, *, include_refresh_token: bool = True, **_: Any) -> TokenAnswer:
        """The first tokens of a grant."""
        core: OAuthCore = self.server
        grant: Grant = self.request.authorization_code.grant
        client_id, jkt = grant.client_id, self.request.jkt
        # spec 2025-06-18 basic/authorization#token-theft: a public client's refresh token is
        # worth nothing without the key it has shown
        if jkt is not None and self.request.client.client.public:
            core.records.bind_grant(grant.id, jkt)
        mac = core.keyring.mac(core.records)
        refresh = refresh_token(mac, grant.id, 0, client_id) if include_refresh_token else None
        return core.mint(
            self.request,
            subject=grant.user_id,
            scope=grant.scope,
            grant_id=grant.id,
            refresh=refresh,
        )


class StoredRefresh:
    """A refresh token, as Authlib asks about it."""

    def __init__(self, grant: Grant, gen: int) -> None:
        self.grant = grant
        self.gen = gen

    def check_client(self, client: Any) -> bool:
        """Whether it is this client's."""
        return bool(client.client_id == self.grant.client_id)

    def get_scope(self) -> str:
        """What it allows at most."""
        return self.grant.scope


class RefreshGrant(Minting, RefreshTokenGrant):  # type: ignore[misc]  # Authlib has no types
    """``refresh_token``: rotated on each use, in a way that parallel uses agree on."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    # spec 2026-07-28 basic/authorization/security-considerations#token-theft
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> StoredRefresh | None:
        """The grant that a refresh token belongs to; None where it is good for nothing."""
        core: OAuthCore = self.server
        records, client = core.records, self.request.client
        presented = read_refresh(refresh_token)
        mac = core.keyring.mac(records)
        if presented is None or not genuine(mac, presented, client.client_id):
            return None
        grant = records.grant(presented.grant_id)
        if grant is None or grant.revoked_at is not None or grant.expires_at <= records.now:
            return None
        if grant.jkt is not None and grant.jkt != self.request.jkt:
            return None
        if able(core, grant) is None:
            return None
        if not judge_refresh(records, grant, presented.gen, core.settings.rotation_grace):
            return None
        return StoredRefresh(grant, presented.gen)

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        super().validate_token_request()
        self.request.resource = choose_resource(
            self.server.settings, self.request.asked, self.request.refresh_token.grant.resource
        )

    def authenticate_user(self, refresh_token: StoredRefresh) -> User | None:
        """Who said yes, as long as they may."""
        return able(self.server, refresh_token.grant)

    def issue_token(self, user: User, refresh_token: StoredRefresh) -> TokenAnswer:
        """The next tokens of a grant, or once more those that were the next."""
        return self.next_token(refresh_token.grant, refresh_token.gen)

    def next_token(self, grant: Grant, gen: int) -> TokenAnswer:
        """Go on from one generation of a grant."""
        core: OAuthCore = self.server
        records = core.records
        if gen == grant.gen:
            end = until(records.now + core.settings.refresh_ttl, grant.ends_at)
            if not records.rotate(grant.id, gen, end):  # pragma: no cover - we hold the lock
                raise InvalidGrantError
        mac = core.keyring.mac(records)
        return core.mint(
            self.request,
            subject=grant.user_id,
            scope=self.request.payload.scope or grant.scope,
            grant_id=grant.id,
            refresh=refresh_token(mac, grant.id, gen + 1, grant.client_id),
        )

    def revoke_old_credential(self, refresh_token: StoredRefresh) -> None:
        """The old one ended when the generation changed."""


class MachineGrant(Minting, ClientCredentialsGrant):  # type: ignore[misc]  # Authlib has no types
    """``client_credentials``: for clients that act for themselves."""

    TOKEN_ENDPOINT_AUTH_METHODS = CONFIDENTIAL

    def validate_token_request(self) -> None:
        """Judge a token request; by the end of it, everything is known."""
        super().validate_token_request()
        if self.request.client.client.public:
            raise UnauthorizedClientError
        self.request.resource = choose_resource(self.server.settings, self.request.asked)

    def generate_token(self, *, scope: str | None = None, **_: Any) -> TokenAnswer:
        """A token about the client itself."""
        core: OAuthCore = self.server
        allowed = core.allowed_scope(self.request.client, scope)
        return core.mint(self.request, subject=self.request.client.client_id, scope=allowed)


def able(core: "OAuthCore", grant: Grant) -> User | None:
    """The user behind a grant, unless they are gone or disabled."""
    user = core.found.user
    return user if user is not None and user.id == grant.user_id and not user.disabled else None


def until(usual: float, ends_at: float | None) -> float:
    """When something ends that must not outlive something else."""
    return usual if ends_at is None else min(usual, ends_at)


def equip(core: "OAuthCore") -> None:
    """Give an authorization server its grants, its ways to authenticate, and its other endpoints."""
    core.register_client_auth_method("client_secret_basic", by_basic)
    core.register_client_auth_method("private_key_jwt", by_assertion(core))
    core.register_grant(CodeGrant, [S256Required(), ResourceIndicator()])
    core.register_grant(RefreshGrant)
    core.register_grant(MachineGrant)
    core.register_grant(IdJag)
    core.register_grant(WorkloadGrant)
    core.register_endpoint(Revocation)
    core.register_endpoint(Introspection)
