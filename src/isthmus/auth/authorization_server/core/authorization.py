"""Authorization requests (RFC 6749 4.1): judged on arrival, then approved or denied by people."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from isthmus.auth.authorization_server.core.lookups import Approval, LookupResult, Lookups
from isthmus.auth.authorization_server.core.requests import (
    OAuthParameters,
    RequestRefused,
    UntrustedRedirect,
)
from isthmus.auth.authorization_server.core.settings import AuthorizationSettings
from isthmus.auth.authorization_server.core.tokens import make_id
from isthmus.auth.authorization_server.core.transactions import OAuthTransactions
from isthmus.auth.authorization_server.storage.clients import (
    AuthlibClient,
    RegisteredClient,
    is_app_redirect,
)
from isthmus.auth.authorization_server.storage.records import PendingAuthorization, Records
from isthmus.auth.authorization_server.storage.store import AuthStore, StoreLocked
from isthmus.auth.authorization_server.users.users import User
from isthmus.auth.net.urls import add_query, split_url
from isthmus.errors import AuthRefused

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.oauth_core import FormRequest, OAuthCore

REQUEST_OVER = "this request was answered before, or is too old"


class AuthorizationRequests:
    """Judges requests for authorization, and answers them.

    Args:
        settings: what they are judged by.
        store: keeps them until they are answered.
        lookups: finds their clients.
        transactions: has Authlib judge and answer them.
    """

    def __init__(
        self,
        settings: AuthorizationSettings,
        store: AuthStore,
        lookups: Lookups,
        transactions: OAuthTransactions,
    ) -> None:
        self._settings = settings
        self._store = store
        self._lookups = lookups
        self._transactions = transactions

    async def ask(self, parameters: OAuthParameters) -> PendingAuthorization | str:
        """Judge a request; see :meth:`AuthorizationServer.ask`."""
        if not self._settings.has_users:
            raise RequestRefused("nobody can log in at this server", status=400)
        try:
            found = LookupResult(
                document=await self._lookups.document(
                    parameters.get("client_id"), parameters.address
                )
            )
        except RequestRefused as refusal:
            raise RequestRefused(refusal.text) from None  # to people it is one and the same
        try:
            try:
                return await self._transactions.write(
                    lambda core: self._judge(core, parameters), found
                )
            except StoreLocked:
                # RFC 6749 4.1.2.1: a 503 would not reach the client through the browser
                return await self._transactions.read(
                    lambda core: self._redirect_busy(core, parameters), found
                )
        except ValueError:
            # Authlib raises it for an error text with characters that none may have.
            raise RequestRefused("the link has characters that it must not have") from None

    def _judge(self, core: "OAuthCore", parameters: OAuthParameters) -> PendingAuthorization | str:
        pending = self._judge_request(core, parameters)
        if isinstance(pending, PendingAuthorization):
            core.records.save_pending(pending)
        return pending

    def _redirect_busy(self, core: "OAuthCore", parameters: OAuthParameters) -> str:
        """The URL to send a browser to when nothing can be written.

        Raises:
            StoreLocked: nowhere, before its user was asked anything.
        """
        found = self._judge_request(core, parameters)
        if isinstance(found, str):
            return found
        known = core.query_client(found.client_id)
        if known is None or not is_trusted_redirect(known.client, found.redirect_uri):
            raise StoreLocked("the store is locked by another process")
        return self._make_error_url(found.redirect_uri, "temporarily_unavailable", found.state)

    def _judge_request(
        self, core: "OAuthCore", parameters: OAuthParameters
    ) -> PendingAuthorization | str:
        from authlib.oauth2 import OAuth2Error

        request = self._make_request(parameters)
        try:
            grant = core.get_consent_grant(request)
        except OAuth2Error as error:
            named = core.query_client(parameters.get("client_id") or "")
            # spec 2026-07-28 basic/authorization/security-considerations#open-redirection
            if not error.redirect_uri:
                raise RequestRefused(
                    explain_refusal(error.error, named, parameters.get("redirect_uri"))
                ) from None
            # RFC 6749 4.1.2.1: a parameter that is missing is no type that is not supported
            missing = parameters.get("response_type") is None
            code = "invalid_request" if missing else error.error
            url = self._make_error_url(error.redirect_uri, code, parameters.get("state"))
            if named is None or not is_trusted_redirect(named.client, error.redirect_uri):
                raise UntrustedRedirect(url) from None
            return url
        known: AuthlibClient = request.client
        now, client = core.records.now, known.client
        return PendingAuthorization(
            txn=make_id() + make_id(),
            client_id=client.client_id,
            client_name=client.label,
            client_kind=client.kind,
            client_uri=home_page_of(client.client_uri),
            redirect_uri=grant.redirect_uri,
            scopes=tuple((request.scope or "").split()),
            resource=request.resource,
            state=parameters.get("state"),
            query=parameters.pairs,
            created_at=now,
            expires_at=now + self._settings.login.request_ttl,
        )

    async def approve(
        self,
        pending: PendingAuthorization,
        user: User,
        *,
        scopes: Collection[str] | None = None,
        upstream_id: str | None = None,
        ends_at: float | None = None,
    ) -> str:
        """Give the client a code; see :meth:`AuthorizationServer.approve`."""
        if user.disabled:
            return await self.deny(pending)
        allowed = None if scopes is None else frozenset(scopes)
        approval = Approval(user=user, scopes=allowed, upstream_id=upstream_id, ends_at=ends_at)
        try:
            found = LookupResult(document=await self._lookups.document(pending.client_id))
        except RequestRefused as refusal:
            raise AuthRefused(refusal.text, "temporarily_unavailable") from None

        def work(core: "OAuthCore") -> str:
            from authlib.oauth2 import OAuth2Error

            kept = take_pending(core.records, pending)
            request = self._make_request(OAuthParameters(method="GET", pairs=kept.query))
            try:
                grant = core.get_consent_grant(request)
            except OAuth2Error as error:
                raise AuthRefused("the client may no longer have this", error.error) from None
            if (grant.redirect_uri, request.resource) != (kept.redirect_uri, kept.resource):
                raise AuthRefused("the client has changed since it asked", "invalid_request")
            core.records.audit("approved", client_id=pending.client_id,
                                   user_id=approval.user.id)  # fmt: skip
            response = core.create_authorization_response(request, approval.user, grant)
            return str(response.location)

        return await self._transactions.write(work, found, approval)

    async def deny(self, pending: PendingAuthorization, error: str = "access_denied") -> str:
        """Tell the client that it gets nothing; see :meth:`AuthorizationServer.deny`."""

        def work(records: Records) -> PendingAuthorization:
            kept = take_pending(records, pending)
            records.audit("denied", client_id=kept.client_id, detail=error)
            return kept

        kept = await self._store.write(work)
        return self._make_error_url(kept.redirect_uri, error, kept.state)

    def _make_error_url(self, redirect_uri: str, error: str, state: str | None) -> str:
        """The redirect URI with an error (RFC 6749 4.1.2.1), for the browser."""
        # spec 2026-07-28 basic/authorization#authorization-response-validation: errors have iss too
        pairs = [("error", error), ("state", state), ("iss", self._settings.issuer)]
        return add_query(redirect_uri, ((name, value) for name, value in pairs if value))

    def _make_request(self, parameters: OAuthParameters) -> "FormRequest":
        from isthmus.auth.authorization_server.core.oauth_core import FormRequest

        return FormRequest(parameters, self._settings.url("authorize"))


def take_pending(records: Records, pending: PendingAuthorization) -> PendingAuthorization:
    """Take a request out of the store, since it is being answered; what is there counts.

    Raises:
        AuthRefused: somebody did before, or it is too old.
    """
    kept = records.take_pending(pending.txn)
    if kept is None:
        raise AuthRefused(REQUEST_OVER, "access_denied")
    return kept


def is_trusted_redirect(client: RegisteredClient, redirect_uri: str) -> bool:
    """Whether a browser may be sent there before its user was asked anything.

    Anybody can register a page of theirs, or publish a document that names it: a link to this
    server would then be a link to that. What stays on the user's computer is nobody's page.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#open-redirection: SHOULD only
    # redirect automatically to a URI that it trusts (OAuth 2.1 7.12.2)
    return client.kind == "static" or is_app_redirect(redirect_uri)


def home_page_of(uri: str) -> str:
    """A client's home page where it is a page of the web, which may be linked to; else empty."""
    try:
        split_url(uri)
    except ValueError:
        return ""
    return uri


def explain_refusal(error: str, named: AuthlibClient | None, back: str | None) -> str:
    """Explain on a page why a request is refused and nobody is redirected; nothing of it is repeated."""
    if error == "invalid_client":
        return "the program that sent you here is not known to this server"
    if named is not None and back and not named.check_redirect_uri(back):
        return (
            "the program that sent you here wants you to be sent back to an address that is not "
            "registered for it"
        )
    return "the program that sent you here did not ask as it should, and it is not clear where to send you back"
