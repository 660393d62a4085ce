"""Authlib's core, made fit for MCP: what it asks of a framework, and what is ours to decide.

One :class:`OAuthCore` serves one request, in the store's thread, inside one transaction. Whatever has to be
awaited - documents and keys of clients, the user - was awaited before, and is in :class:`LookupResult`.

Importing this takes the extra ``auth``; nothing imports it before the first request.
"""

import json
import re
from typing import Any

import msgspec
from authlib.oauth2.rfc6749 import AuthorizationServer as AuthlibServer
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidScopeError, OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, JsonRequest
from authlib.oauth2.rfc9207 import IssuerParameter

from isthmus.auth.authorization_server.core.grants import register_grants
from isthmus.auth.authorization_server.core.requests import OAuthParameters
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import AccessToken, Keyring, TokenAnswer
from isthmus.auth.authorization_server.storage.clients import AuthlibClient, RegisteredClient
from isthmus.auth.authorization_server.storage.records import Records
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.tokens.jose import Claims
from isthmus.auth.tokens.secret import Secret

__all__ = ["Approval", "FormRequest", "LookupResult", "OAuthCore", "OAuthResponse"]


ERROR_TEXT = re.compile(r"[ !#-\[\]-~]*")
"""What an error may say (RFC 6749 5.2)."""


class LookupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked up before the transaction began.

    Attributes:
        document: the client whose id is a URL, from its document.
        client_assertion: what a client's assertion says, its signature verified.
        assertion: what the assertion of a grant says, its signature verified.
        user: the user behind a code, a refresh token or an assertion, as they are now.
    """

    document: RegisteredClient | None = None
    client_assertion: Claims | None = None
    assertion: Claims | None = None
    user: User | None = None


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody said yes to."""

    user: User
    scopes: frozenset[str] | None = None
    upstream_id: str | None = None
    ends_at: float | None = None


class OAuthResponse:
    """A response on its way.

    Attributes:
        status: of HTTP.
        body: the JSON text, or nothing.
        headers: names and values.
    """

    def __init__(self, status: int, body: Any, headers: Any) -> None:
        self.status = status
        self.body = json.dumps(body).encode() if isinstance(body, dict | list) else b""
        self.headers: list[tuple[str, str]] = list(headers)
        self.content = body if isinstance(body, dict) else {}

    @property
    def location(self) -> str | None:
        """Where it sends the browser."""
        return next((value for name, value in self.headers if name == "Location"), None)

    @location.setter
    def location(self, url: str) -> None:
        self.headers = [pair for pair in self.headers if pair[0] != "Location"]
        self.headers.append(("Location", url))


class FormRequest(OAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """A request as Authlib sees it.

    Args:
        asked: what was read.
        url: the endpoint, as the issuer spells it.
    """

    def __init__(self, asked: OAuthParameters, url: str) -> None:
        super().__init__(asked.method, url)
        self.asked = asked
        fields = dict(asked.pairs)
        self.payload = BasicOAuth2Payload(fields)
        self._fields = fields
        self.jkt: str | None = None
        self.resource: str = ""

    @property
    def form(self) -> dict[str, str]:
        """The parameters."""
        return self._fields

    @property
    def args(self) -> dict[str, str]:
        """The parameters."""
        return self._fields


class JsonRegistration(JsonRequest):  # type: ignore[misc]  # Authlib has no types
    """A registration as Authlib sees it."""

    class Payload:
        """Holds the metadata."""

        def __init__(self, data: Any) -> None:
            self.data = data

    def __init__(self, data: Any, url: str) -> None:
        super().__init__("POST", url)
        self.payload = self.Payload(data)
        self.credential: Any = None


class OwnIssuerParameter(IssuerParameter):  # type: ignore[misc]  # Authlib has no types
    """Adds ``iss`` to every authorization response.

    Args:
        issuer: ours.
    """

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer

    def get_issuer(self) -> str:
        """What ``iss`` says."""
        # spec 2026-07-28 basic/authorization#authorization-response-validation
        return self._issuer


class OAuthCore(AuthlibServer):  # type: ignore[misc]  # Authlib has no types
    """The authorization server during one request.

    Args:
        settings: what it was set up with.
        keyring: its keys.
        records: the store, in a transaction.
        found: what was looked up before.
        approval: what somebody said yes to, where this is the answer to it.

    Raises:
        UsageError: the store is another authorization server's.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        keyring: Keyring,
        records: Records,
        found: LookupResult,
        approval: Approval | None = None,
    ) -> None:
        super().__init__(scopes_supported=list(settings.scopes))
        self.settings = settings
        self.keyring = keyring
        self.records = records
        records.claim(settings.issuer)
        self.found = found
        self.approval = approval
        # The class alone would be ignored: it is called with the server.
        self.register_extension(OwnIssuerParameter(settings.issuer))
        register_grants(self)

    # What Authlib asks of a framework

    def create_oauth2_request(self, request: FormRequest) -> FormRequest:
        """The request, which has been read."""
        return request

    def create_json_request(self, request: JsonRegistration) -> JsonRegistration:
        """The request, which has been read."""
        return request

    def handle_response(self, status: int, body: Any, headers: Any) -> OAuthResponse:
        """The response, which is sent after the transaction."""
        # Some of Authlib's errors repeat what came with the request.
        if isinstance(body, dict) and not ERROR_TEXT.fullmatch(
            str(body.get("error_description", ""))
        ):
            del body["error_description"]
        return OAuthResponse(status, body, headers)

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        """Nobody listens."""

    def query_client(self, client_id: str) -> AuthlibClient | None:
        """A client by its id, however it is known."""
        settings = self.settings
        client: RegisteredClient | None = settings.static.get(client_id)
        digest: bytes | None = None
        if client is None and (stored := self.records.client(client_id)) is not None:
            client, digest = stored
        document = self.found.document
        if client is None and document is not None and document.client_id == client_id:
            client = document
        if client is None:
            return None
        return AuthlibClient(
            client,
            digest=digest,
            matches=self.records.vault.matches,
            offered=tuple(settings.scopes),
            usual=settings.usual_scopes,
        )

    def save_token(self, token: Any, request: Any) -> None:
        """Access tokens are not stored, and refresh tokens are a count in their grant."""

    # What is ours

    def allowed_scope(self, client: AuthlibClient, scope: str | None) -> str:
        """What a client gets of the scopes it asks for.

        Raises:
            InvalidScopeError: it may have none of them.
        """
        allowed = client.get_allowed_scope(scope)
        if allowed is None:
            raise InvalidScopeError
        return allowed

    def mint(
        self,
        request: FormRequest,
        *,
        subject: str,
        scope: str,
        grant_id: str | None = None,
        refresh: Secret | None = None,
    ) -> TokenAnswer:
        """The answer of the token endpoint.

        Args:
            request: with its client, resource and key known.
            subject: whom the token is about.
            scope: what it allows.
            grant_id: the grant it belongs to.
            refresh: the refresh token that goes with it.

        Raises:
            InvalidClientError: the client gets bound tokens only, and has shown no key.
            InvalidScopeError: the token would be longer than any resource takes.
        """
        client: AuthlibClient = request.client
        if client.client.dpop_bound and request.jkt is None:
            raise InvalidClientError(description="This client gets tokens by DPoP only.")
        life = self._life(grant_id)
        access = AccessToken(
            issuer=self.settings.issuer,
            subject=subject,
            client_id=client.client_id,
            resource=request.resource,
            scope=scope,
            grant_id=grant_id,
            jkt=request.jkt,
            begins=self.records.now,
            life=life,
        ).signed(self.keyring.signing(self.records))
        if len(access.reveal()) > self.settings.max_token_bytes:
            # it would be refused wherever it is shown
            raise InvalidScopeError(
                description="A token for all of this would be too long: ask for fewer scopes."
            )
        self.records.use_client(client.client_id)
        answer = TokenAnswer(
            access_token=access.reveal(),
            token_type="DPoP" if request.jkt else "Bearer",
            expires_in=life,
            scope=scope,
        )
        if refresh is not None:
            answer["refresh_token"] = refresh.reveal()
        return answer

    def _life(self, grant_id: str | None) -> int:
        """Seconds that an access token lives: no longer than its grant can."""
        usual = self.settings.access_ttl
        grant = None if grant_id is None else self.records.grant(grant_id)
        if grant is None or grant.ends_at is None:
            return usual
        return max(1, min(usual, int(grant.ends_at - self.records.now)))
