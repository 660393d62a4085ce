"""Authorization, on all three roles of OAuth: resource server, authorization server and client.

``isthmus.auth.resource_server`` guards an MCP server, ``isthmus.auth.authorization_server`` issues
tokens, ``isthmus.auth.client`` gets them, ``isthmus.auth.authorization_server.upstream`` reaches services behind a
server. What all of them are made of stands beside these packages.

Names are imported when they are first used. What needs ``pip install 'isthmus[auth]'`` says so
when it is.
"""

from typing import TYPE_CHECKING, Any

from isthmus.auth import redaction

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.core.requests import Limits
    from isthmus.auth.authorization_server.core.settings import (
        CimdPolicy,
        DcrPolicy,
        LoginPolicy,
        RegistrationPolicy,
        TrustedIdp,
        Workload,
    )
    from isthmus.auth.authorization_server.server import AuthorizationServer
    from isthmus.auth.authorization_server.storage.clients import RegisteredClient
    from isthmus.auth.authorization_server.storage.store import (
        AuthStore,
        MemoryAuthStore,
        SQLiteAuthStore,
    )
    from isthmus.auth.authorization_server.upstream.api import (
        Upstream,
        UpstreamDenied,
        UpstreamFailed,
        UpstreamUnavailable,
    )
    from isthmus.auth.authorization_server.upstream.login import UpstreamLogin
    from isthmus.auth.authorization_server.upstream.provider import Endpoints, Provider
    from isthmus.auth.authorization_server.users.login_limits import Allowance
    from isthmus.auth.authorization_server.users.passwords import PasswordUsers
    from isthmus.auth.authorization_server.users.users import (
        Delegated,
        HeaderUsers,
        LoginPage,
        LoginRedirect,
        LoginRefused,
        LoginRequest,
        User,
        UserBackend,
    )
    from isthmus.auth.client.discovery import Compat as Compat
    from isthmus.auth.client.grants.bearer_token import BearerToken
    from isthmus.auth.client.grants.client_credentials import ClientCredentials
    from isthmus.auth.client.grants.enterprise import EnterpriseManaged
    from isthmus.auth.client.grants.jwt_bearer import JwtBearer
    from isthmus.auth.client.grants.oauth import OAuth, ScopeRequest, Status
    from isthmus.auth.client.redirect import ByHand, Loopback
    from isthmus.auth.client.registration import StaticClient
    from isthmus.auth.client.store.file_store import FileTokenStore, StoreBusy
    from isthmus.auth.client.store.keyring_store import default_store
    from isthmus.auth.client.store.records import (
        Key,
        MemoryTokenStore,
        Registration,
        Tokens,
        TokenStore,
    )
    from isthmus.auth.client.store.vault import StoreBroken
    from isthmus.auth.net.network import (
        Fetched,
        Network,
        NetworkFailed,
        NetworkPolicy,
        NetworkRefused,
        desktop,
    )
    from isthmus.auth.resource_server.introspection import (
        IntrospectionVerifier as IntrospectionVerifier,
    )
    from isthmus.auth.resource_server.jwt import JWTVerifier as JWTVerifier
    from isthmus.auth.resource_server.replays import KVReplays as KVReplays
    from isthmus.auth.resource_server.replays import ReplayStore as ReplayStore
    from isthmus.auth.resource_server.replays import SQLiteReplays as SQLiteReplays
    from isthmus.auth.resource_server.resource_auth import ResourceAuth as ResourceAuth
    from isthmus.auth.resource_server.resource_auth import ScopeModel
    from isthmus.auth.resource_server.verifier import ByIssuer, StaticTokens
    from isthmus.auth.resource_server.verifier import Presented as Presented
    from isthmus.auth.resource_server.verifier import TokenVerifier as TokenVerifier
    from isthmus.auth.resource_server.verifier import VerifierUnavailable as VerifierUnavailable
    from isthmus.auth.tokens.dpop import Nonces
    from isthmus.auth.tokens.jose import PrivateKey
    from isthmus.auth.tokens.secret import Secret
    from isthmus.core.principal import Principal as Principal

__all__ = [
    "Allowance",
    "AuthStore",
    "AuthorizationServer",
    "BearerToken",
    "ByHand",
    "ByIssuer",
    "CimdPolicy",
    "ClientCredentials",
    "Compat",
    "DcrPolicy",
    "Delegated",
    "Endpoints",
    "EnterpriseManaged",
    "Fetched",
    "FileTokenStore",
    "HeaderUsers",
    "IntrospectionVerifier",
    "JWTVerifier",
    "JwtBearer",
    "KVReplays",
    "Key",
    "Limits",
    "LoginPage",
    "LoginPolicy",
    "LoginRedirect",
    "LoginRefused",
    "LoginRequest",
    "Loopback",
    "MemoryAuthStore",
    "MemoryTokenStore",
    "Network",
    "NetworkFailed",
    "NetworkPolicy",
    "NetworkRefused",
    "Nonces",
    "OAuth",
    "PasswordUsers",
    "Presented",
    "Principal",
    "PrivateKey",
    "Provider",
    "RegisteredClient",
    "Registration",
    "RegistrationPolicy",
    "ReplayStore",
    "ResourceAuth",
    "SQLiteAuthStore",
    "SQLiteReplays",
    "ScopeModel",
    "ScopeRequest",
    "Secret",
    "StaticClient",
    "StaticTokens",
    "Status",
    "StoreBroken",
    "StoreBusy",
    "TokenStore",
    "TokenVerifier",
    "Tokens",
    "TrustedIdp",
    "Upstream",
    "UpstreamDenied",
    "UpstreamFailed",
    "UpstreamLogin",
    "UpstreamUnavailable",
    "User",
    "UserBackend",
    "VerifierUnavailable",
    "Workload",
    "default_store",
    "desktop",
]

_HOMES = {
    "Allowance": "isthmus.auth.authorization_server.users.login_limits",
    "AuthStore": "isthmus.auth.authorization_server.storage.store",
    "AuthorizationServer": "isthmus.auth.authorization_server.server",
    "BearerToken": "isthmus.auth.client.grants.bearer_token",
    "ByHand": "isthmus.auth.client.redirect",
    "ByIssuer": "isthmus.auth.resource_server.verifier",
    "CimdPolicy": "isthmus.auth.authorization_server.core.settings",
    "ClientCredentials": "isthmus.auth.client.grants.client_credentials",
    "Compat": "isthmus.auth.client.discovery",
    "DcrPolicy": "isthmus.auth.authorization_server.core.settings",
    "Delegated": "isthmus.auth.authorization_server.users.users",
    "Endpoints": "isthmus.auth.authorization_server.upstream.provider",
    "EnterpriseManaged": "isthmus.auth.client.grants.enterprise",
    "Fetched": "isthmus.auth.net.network",
    "FileTokenStore": "isthmus.auth.client.store.file_store",
    "HeaderUsers": "isthmus.auth.authorization_server.users.users",
    "IntrospectionVerifier": "isthmus.auth.resource_server.introspection",
    "JWTVerifier": "isthmus.auth.resource_server.jwt",
    "JwtBearer": "isthmus.auth.client.grants.jwt_bearer",
    "Key": "isthmus.auth.client.store.records",
    "LoginPolicy": "isthmus.auth.authorization_server.core.settings",
    "Limits": "isthmus.auth.authorization_server.core.requests",
    "LoginPage": "isthmus.auth.authorization_server.users.users",
    "LoginRedirect": "isthmus.auth.authorization_server.users.users",
    "LoginRefused": "isthmus.auth.authorization_server.users.users",
    "LoginRequest": "isthmus.auth.authorization_server.users.users",
    "Loopback": "isthmus.auth.client.redirect",
    "MemoryAuthStore": "isthmus.auth.authorization_server.storage.store",
    "MemoryTokenStore": "isthmus.auth.client.store.records",
    "Network": "isthmus.auth.net.network",
    "NetworkFailed": "isthmus.auth.net.network",
    "NetworkPolicy": "isthmus.auth.net.network",
    "NetworkRefused": "isthmus.auth.net.network",
    "Nonces": "isthmus.auth.tokens.dpop",
    "OAuth": "isthmus.auth.client.grants.oauth",
    "PasswordUsers": "isthmus.auth.authorization_server.users.passwords",
    "Presented": "isthmus.auth.resource_server.verifier",
    "Principal": "isthmus.core.principal",
    "PrivateKey": "isthmus.auth.tokens.jose",
    "Provider": "isthmus.auth.authorization_server.upstream.provider",
    "RegisteredClient": "isthmus.auth.authorization_server.storage.clients",
    "Registration": "isthmus.auth.client.store.records",
    "RegistrationPolicy": "isthmus.auth.authorization_server.core.settings",
    "SQLiteReplays": "isthmus.auth.resource_server.replays",
    "ReplayStore": "isthmus.auth.resource_server.replays",
    "KVReplays": "isthmus.auth.resource_server.replays",
    "ResourceAuth": "isthmus.auth.resource_server.resource_auth",
    "SQLiteAuthStore": "isthmus.auth.authorization_server.storage.store",
    "ScopeModel": "isthmus.auth.resource_server.resource_auth",
    "ScopeRequest": "isthmus.auth.client.grants.oauth",
    "Secret": "isthmus.auth.tokens.secret",
    "StaticClient": "isthmus.auth.client.registration",
    "StaticTokens": "isthmus.auth.resource_server.verifier",
    "Status": "isthmus.auth.client.grants.oauth",
    "StoreBroken": "isthmus.auth.client.store.vault",
    "StoreBusy": "isthmus.auth.client.store.file_store",
    "TokenStore": "isthmus.auth.client.store.records",
    "TokenVerifier": "isthmus.auth.resource_server.verifier",
    "Tokens": "isthmus.auth.client.store.records",
    "TrustedIdp": "isthmus.auth.authorization_server.core.settings",
    "Upstream": "isthmus.auth.authorization_server.upstream.api",
    "UpstreamDenied": "isthmus.auth.authorization_server.upstream.api",
    "UpstreamFailed": "isthmus.auth.authorization_server.upstream.api",
    "UpstreamLogin": "isthmus.auth.authorization_server.upstream.login",
    "UpstreamUnavailable": "isthmus.auth.authorization_server.upstream.api",
    "User": "isthmus.auth.authorization_server.users.users",
    "UserBackend": "isthmus.auth.authorization_server.users.users",
    "VerifierUnavailable": "isthmus.auth.resource_server.verifier",
    "Workload": "isthmus.auth.authorization_server.core.settings",
    "default_store": "isthmus.auth.client.store.keyring_store",
    "desktop": "isthmus.auth.net.network",
}


redaction.install()  # before anything of authorization can say anything


def __getattr__(name: str) -> Any:
    """Import a public name on its first use, and keep it (PEP 562)."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isthmus.auth' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
