"""Authlib's authorization server, made fit for MCP: tokens are minted here, for one resource and key.

One :class:`OAuthCore` serves one request, in the store's thread, inside one transaction. Whatever has to be
awaited - documents and keys of clients, the user - was awaited before, and is in :class:`LookupResult`.

Importing this takes the extra ``auth``; nothing imports it before the first request.
"""

import hmac
import re
from typing import Any

from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749 import AuthorizationServer as AuthlibServer
from authlib.oauth2.rfc6749 import InvalidClientError, InvalidScopeError, OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload, JsonRequest
from authlib.oauth2.rfc9207 import IssuerParameter

from isthmus.auth.authorization_server.core.lookups import Approval, LookupResult
from isthmus.auth.authorization_server.core.requests import OAuthParameters, OAuthResponse
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import AccessToken, Keyring, TokenAnswer
from isthmus.auth.authorization_server.storage.clients import AuthlibClient, RegisteredClient
from isthmus.auth.authorization_server.storage.records import ClientGrant, Records
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.net.urls import canonical_resource
from isthmus.auth.tokens.dpop import InvalidProof, NonceNeeded, Nonces, ReplayCache, check_proof
from isthmus.auth.tokens.secret import Secret

ERROR_TEXT = re.compile(r"[ !#-\[\]-~]*")  # RFC 6749 5.2


class FormRequest(OAuth2Request):  # type: ignore[misc]  # Authlib has no types
    """A request as Authlib sees it.

    Args:
        parameters: what was read.
        url: the endpoint, as the issuer spells it.
    """

    def __init__(self, parameters: OAuthParameters, url: str) -> None:
        super().__init__(parameters.method, url)
        self.parameters = parameters
        fields = dict(parameters.pairs)
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
        """The issuer for the parameter ``iss``."""
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
        """Do nothing: nobody listens."""

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
        """The scopes that a client gets of those it asks for.

        Raises:
            InvalidScopeError: it may have none of them.
        """
        allowed = client.get_allowed_scope(scope)
        if allowed is None:
            raise InvalidScopeError
        return allowed

    def active_user(self, grant: ClientGrant) -> User | None:
        """The user behind a grant, unless they are gone or disabled."""
        user = self.found.user
        return user if user is not None and user.id == grant.user_id and not user.disabled else None

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
        life = self._access_life(grant_id)
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

    def _access_life(self, grant_id: str | None) -> int:
        """Seconds that an access token lives: no longer than its grant can."""
        usual = self.settings.access_ttl
        grant = None if grant_id is None else self.records.grant(grant_id)
        if grant is None or grant.ends_at is None:
            return usual
        return max(1, min(usual, int(grant.ends_at - self.records.now)))


def earliest_end(usual: float, ends_at: float | None) -> float:
    """When something ends that must not outlive something else."""
    return usual if ends_at is None else min(usual, ends_at)


class ProofBoundGrant:
    """A grant whose tokens are ours: it knows the key they are bound to before it judges anything."""

    server: OAuthCore
    request: Any

    def authenticate_token_endpoint_client(self) -> Any:
        """The client of a token request, after its proof of possession."""
        self.request.jkt = check_request_proof(self.server, self.request.parameters)
        self.request.client = super().authenticate_token_endpoint_client()  # type: ignore[misc]  # Authlib's grant comes next
        return self.request.client


def choose_resource(
    settings: AuthorizationSettings, parameters: OAuthParameters, granted: str | None = None
) -> str:
    """The MCP server that tokens are for, spelt as ours.

    Args:
        settings: which there are.
        parameters: the request, which may name one.
        granted: what was granted before: it may be repeated, not changed.

    Raises:
        OAuth2Error: ``invalid_target``.
    """
    # spec 2026-07-28 basic/authorization#resource-parameter-implementation: RFC 8707
    found = {find_resource(settings, one) for one in parameters.all("resource")}
    if granted is not None:
        found.add(find_resource(settings, granted))
    resource = found.pop() if found else settings.resources[0]
    if found or resource is None:
        raise OAuth2Error(
            error="invalid_target",
            description="The resource is none that tokens are issued for here, or not the one "
            "that was granted.",
        )
    return resource


def find_resource(settings: AuthorizationSettings, resource: str) -> str | None:
    """A resource as we spell it; None for what is none of ours."""
    try:
        named = canonical_resource(resource)
    except ValueError:
        return None
    return next((one for one in settings.resources if canonical_resource(one) == named), None)


class StoredProofs(ReplayCache):
    """The proofs that were taken already, by any process.

    Args:
        records: the store, in a transaction.
    """

    def __init__(self, records: Records) -> None:
        super().__init__(0)
        self._records = records

    def first(self, jkt: str, jti: str, now: float, until: float) -> bool:
        """Whether a proof is new; see :meth:`ReplayCache.first`."""
        return self._records.first_use(f"dpop {jkt}", jti, until)


def check_request_proof(core: OAuthCore, parameters: OAuthParameters) -> str | None:
    """The thumbprint of the key that a request proves; None where it proves none.

    Raises:
        OAuth2Error: it has a proof, which is not good.
    """
    if parameters.proof is None:
        return None
    wanted = make_nonces(core) if core.settings.dpop_nonce else None
    try:
        return check_proof(
            parameters.proof,
            method="POST",
            url=core.settings.url("token"),
            token=None,
            now=core.records.now,
            replays=StoredProofs(core.records),
            nonce=wanted,
        )
    except NonceNeeded:
        raise OAuth2Error(
            error="use_dpop_nonce", description="The proof needs the nonce that is given here."
        ) from None
    except InvalidProof as flaw:
        text = "".join(sign for sign in str(flaw) if sign not in '"\\' and " " <= sign <= "~")
        raise OAuth2Error(error="invalid_dpop_proof", description=text) from None


def make_nonces(core: OAuthCore) -> Nonces:
    """The nonces for proofs, the same in every process."""
    mac = core.keyring.mac(core.records)
    return Nonces(hmac.digest(mac, b"dpop nonces", "sha256"))
