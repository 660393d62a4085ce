"""Dynamic client registration (RFC 7591): metadata is typed before anything looks at it.

Importing this takes the extra ``auth``.
"""

import secrets
from collections.abc import Mapping
from typing import Any

import msgspec
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint

from isthmus.auth.authorization_server.core.oauth_core import JsonRegistration, OAuthCore
from isthmus.auth.authorization_server.storage.clients import (
    ClientMetadata,
    RegisteredClient,
    UnacceptableClient,
    check_jwks,
    check_redirects,
    choose_grants,
    is_app_redirect,
)
from isthmus.auth.protocol import AUTH_METHODS, SECRET_METHODS
from isthmus.auth.tokens.secret import Secret

DAY_S = 86_400.0
APPLICATION_TYPES = frozenset({"native", "web"})
REGISTRATION_HEADERS = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]


class RegistrationEndpoint(ClientRegistrationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """The registration endpoint during one request."""

    server: OAuthCore

    def create_registration_response(self, request: JsonRegistration) -> tuple[int, Any, Any]:
        """Register a client, or say what is wrong with it."""
        try:
            client, metadata = self.read(request.payload.data)
        except UnacceptableClient as flaw:
            raise OAuth2Error(error=flaw.error, description=str(flaw)) from None
        self.make_room()
        info = self.generate_client_info(request, client)
        self.save_client(info, client, request)
        secret = info.pop("client_secret", None)
        body = {**info, **metadata}
        if secret is not None:
            body.update(client_secret=secret.reveal(), client_secret_expires_at=0)
        return 201, RegistrationAnswer(body), REGISTRATION_HEADERS

    def make_room(self) -> None:
        """See that there is room for another client: those that are of no use to anybody give way.

        Raises:
            OAuth2Error: all of them are.
        """
        records, most = self.server.records, self.server.settings.registration.dcr.most
        if records.count_clients() < most:
            return
        records.forget_clients(max(1, most // 100))  # some more, so that few have to look for them
        if records.count_clients() >= most:
            raise OAuth2Error(
                error="temporarily_unavailable",
                description="Too many clients are registered: see DcrPolicy(most=).",
                status_code=503,
            )

    def read(self, raw: Any) -> tuple[RegisteredClient, dict[str, Any]]:
        """Read a client's metadata, and say which of it is registered.

        Raises:
            UnacceptableClient: it cannot be.
        """
        try:
            metadata = msgspec.convert(raw, ClientMetadata)
        except msgspec.ValidationError:
            raise UnacceptableClient("the metadata is not what RFC 7591 2 describes") from None
        dcr = self.server.settings.registration.dcr
        check_redirects(metadata.redirect_uris, dcr.schemes)
        if metadata.response_types != ["code"]:
            raise UnacceptableClient("response_types has to be code alone")
        method = choose_client_auth(metadata)
        client = RegisteredClient(
            client_id="",
            name=(metadata.client_name or "")[:200],
            redirect_uris=tuple(metadata.redirect_uris),
            grant_types=choose_grants(metadata.grant_types),
            auth_method=method,
            jwks=metadata.jwks,
            jwks_uri=metadata.jwks_uri,
            scopes=self.scopes(metadata.scope),
            application_type=choose_application_type(metadata),
            client_uri=(metadata.client_uri or "")[:2000],
            kind="dynamic",
            dpop_bound=metadata.dpop_bound_access_tokens,
            created_at=self.server.records.now,
        )
        return client, describe_registered(client, metadata)

    def scopes(self, scope: str | None) -> tuple[str, ...] | None:
        """The scopes that a client registers for: those of its wishes that there are."""
        if not scope or not scope.split():
            return None
        wanted = [one for one in dict.fromkeys(scope.split()) if one in self.server.settings.scopes]
        return tuple(wanted) or None

    def generate_client_info(self, request: JsonRegistration, client: Any = None) -> dict[str, Any]:
        """Make the client's id, and a secret if it is to authenticate by one."""
        info: dict[str, Any] = {
            "client_id": f"c.{secrets.token_urlsafe(18)}",
            "client_id_issued_at": int(self.server.records.now),
        }
        if client.auth_method in SECRET_METHODS:
            info["client_secret"] = Secret.random()
        return info

    def save_client(
        self, client_info: Mapping[str, Any], client_metadata: Any, request: JsonRegistration
    ) -> RegisteredClient:
        """Keep the client, for a day unless it gets a token."""
        records, dcr = self.server.records, self.server.settings.registration.dcr
        client: RegisteredClient = msgspec.structs.replace(
            client_metadata, client_id=client_info["client_id"]
        )
        secret: Secret | None = client_info.get("client_secret")
        records.save_client(
            client,
            None if secret is None else secret.reveal(),
            expires_at=records.now + dcr.ttl_unused_days * DAY_S,
        )
        return client


class RegistrationAnswer(dict[str, Any]):
    """A registration's answer, which shows nothing where it is logged as a whole."""

    def __repr__(self) -> str:
        return f"RegistrationAnswer({', '.join(self)})"

    __str__ = __repr__


def choose_client_auth(metadata: ClientMetadata) -> Any:
    """The authentication method of a client, by RFC 7591's default if it does not say.

    Raises:
        UnacceptableClient: in no way that we have, or its keys are none.
    """
    method = metadata.token_endpoint_auth_method or "client_secret_basic"
    if method not in AUTH_METHODS:
        raise UnacceptableClient(
            "token_endpoint_auth_method is none of those that the metadata lists"
        )
    if metadata.jwks is not None:
        check_jwks(metadata.jwks)
    if method == "private_key_jwt" and (metadata.jwks is None) == (metadata.jwks_uri is None):
        raise UnacceptableClient("private_key_jwt takes one of jwks and jwks_uri")
    return method


def choose_application_type(metadata: ClientMetadata) -> str:
    """The application type of a client, by its redirect URIs if it does not say.

    Raises:
        UnacceptableClient: its redirect URIs are not of that kind.
    """
    apps = [is_app_redirect(uri) for uri in metadata.redirect_uris]
    said = metadata.application_type
    if said is None:
        return "native" if all(apps) else "web"
    if said not in APPLICATION_TYPES:
        raise UnacceptableClient("application_type is native or web")
    # OpenID Connect Registration 2; spec 2026-07-28
    # basic/authorization/client-registration#dynamic-client-registration
    if said == "web" and any(apps):
        raise UnacceptableClient("a web application is sent to https alone: register as native",
                           "invalid_redirect_uri")  # fmt: skip
    return said


def describe_registered(client: RegisteredClient, metadata: ClientMetadata) -> dict[str, Any]:
    """The metadata that was registered, as RFC 7591 3.2.1 has it answered."""
    named = {
        "client_name": client.name,
        "client_uri": client.client_uri,
        "jwks_uri": client.jwks_uri,
        "jwks": client.jwks,
        "scope": " ".join(client.scopes) if client.scopes else "",
        "software_id": metadata.software_id,
        "software_version": metadata.software_version,
    }
    return {
        "redirect_uris": list(client.redirect_uris),
        "grant_types": list(client.grant_types),
        "response_types": ["code"],
        "token_endpoint_auth_method": client.auth_method,
        "application_type": client.application_type,
        "dpop_bound_access_tokens": client.dpop_bound,
        **{name: value for name, value in named.items() if value},
    }
