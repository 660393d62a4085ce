"""Authorization, on all three roles of OAuth: resource server, authorization server and client.

``isthmus.auth.resource_server`` guards an MCP server, ``isthmus.auth.authorization_server`` issues
tokens, ``isthmus.auth.client`` gets them, ``isthmus.auth.upstream`` reaches services behind a
server. What all of them are made of stands beside these packages.

Names are imported when they are first used. What needs ``pip install 'isthmus[auth]'`` says so
when it is.
"""

from typing import TYPE_CHECKING, Any

from isthmus.auth import redaction

if TYPE_CHECKING:
    from isthmus.auth.authorization_server.authority import (
        AuthorizationServer as AuthorizationServer,
    )
    from isthmus.auth.authorization_server.clients import RegisteredClient as RegisteredClient
    from isthmus.auth.authorization_server.limits import Limits as Limits
    from isthmus.auth.authorization_server.passwords import PasswordUsers as PasswordUsers
    from isthmus.auth.authorization_server.proxy_users import HeaderUsers as HeaderUsers
    from isthmus.auth.authorization_server.settings import CimdPolicy as CimdPolicy
    from isthmus.auth.authorization_server.settings import DcrPolicy as DcrPolicy
    from isthmus.auth.authorization_server.settings import LoginPolicy as LoginPolicy
    from isthmus.auth.authorization_server.settings import RegistrationPolicy as RegistrationPolicy
    from isthmus.auth.authorization_server.settings import TrustedIdp as TrustedIdp
    from isthmus.auth.authorization_server.settings import Workload as Workload
    from isthmus.auth.authorization_server.store import AuthStore as AuthStore
    from isthmus.auth.authorization_server.store import MemoryAuthStore as MemoryAuthStore
    from isthmus.auth.authorization_server.store import SQLiteAuthStore as SQLiteAuthStore
    from isthmus.auth.authorization_server.tries import Allowance as Allowance
    from isthmus.auth.authorization_server.users import Delegated as Delegated
    from isthmus.auth.authorization_server.users import LoginPage as LoginPage
    from isthmus.auth.authorization_server.users import LoginRedirect as LoginRedirect
    from isthmus.auth.authorization_server.users import LoginRefused as LoginRefused
    from isthmus.auth.authorization_server.users import LoginRequest as LoginRequest
    from isthmus.auth.authorization_server.users import User as User
    from isthmus.auth.authorization_server.users import UserBackend as UserBackend
    from isthmus.auth.client.bearer_token import BearerToken as BearerToken
    from isthmus.auth.client.callback import ByHand as ByHand
    from isthmus.auth.client.callback import Loopback as Loopback
    from isthmus.auth.client.client_credentials import ClientCredentials as ClientCredentials
    from isthmus.auth.client.discovery import Compat as Compat
    from isthmus.auth.client.enterprise import EnterpriseManaged as EnterpriseManaged
    from isthmus.auth.client.jwt_bearer import JwtBearer as JwtBearer
    from isthmus.auth.client.keyring_store import default_store as default_store
    from isthmus.auth.client.locks import StoreBusy as StoreBusy
    from isthmus.auth.client.oauth import OAuth as OAuth
    from isthmus.auth.client.oauth import ScopeRequest as ScopeRequest
    from isthmus.auth.client.oauth import Status as Status
    from isthmus.auth.client.static import StaticClient as StaticClient
    from isthmus.auth.client.store import FileTokenStore as FileTokenStore
    from isthmus.auth.client.tokens import Key as Key
    from isthmus.auth.client.tokens import MemoryTokenStore as MemoryTokenStore
    from isthmus.auth.client.tokens import Registration as Registration
    from isthmus.auth.client.tokens import Tokens as Tokens
    from isthmus.auth.client.tokens import TokenStore as TokenStore
    from isthmus.auth.client.vault import StoreBroken as StoreBroken
    from isthmus.auth.dpop import Nonces as Nonces
    from isthmus.auth.jose import PrivateKey as PrivateKey
    from isthmus.auth.network import Fetched as Fetched
    from isthmus.auth.network import Network as Network
    from isthmus.auth.network import NetworkFailed as NetworkFailed
    from isthmus.auth.network import NetworkPolicy as NetworkPolicy
    from isthmus.auth.network import NetworkRefused as NetworkRefused
    from isthmus.auth.network import desktop as desktop
    from isthmus.auth.resource_server.introspection import (
        IntrospectionVerifier as IntrospectionVerifier,
    )
    from isthmus.auth.resource_server.issuers import ByIssuer as ByIssuer
    from isthmus.auth.resource_server.jwt import JWTVerifier as JWTVerifier
    from isthmus.auth.resource_server.replays import KVReplays as KVReplays
    from isthmus.auth.resource_server.replays import ReplayStore as ReplayStore
    from isthmus.auth.resource_server.replays import SQLiteReplays as SQLiteReplays
    from isthmus.auth.resource_server.resource_auth import ResourceAuth as ResourceAuth
    from isthmus.auth.resource_server.scopes import ScopeModel as ScopeModel
    from isthmus.auth.resource_server.static import StaticTokens as StaticTokens
    from isthmus.auth.resource_server.verifier import Presented as Presented
    from isthmus.auth.resource_server.verifier import TokenVerifier as TokenVerifier
    from isthmus.auth.resource_server.verifier import VerifierUnavailable as VerifierUnavailable
    from isthmus.auth.secret import Secret as Secret
    from isthmus.auth.upstream.api import Upstream as Upstream
    from isthmus.auth.upstream.endpoints import Endpoints as Endpoints
    from isthmus.auth.upstream.faults import UpstreamDenied as UpstreamDenied
    from isthmus.auth.upstream.faults import UpstreamFailed as UpstreamFailed
    from isthmus.auth.upstream.faults import UpstreamUnavailable as UpstreamUnavailable
    from isthmus.auth.upstream.login import UpstreamLogin as UpstreamLogin
    from isthmus.auth.upstream.provider import Provider as Provider
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
    "Allowance": "isthmus.auth.authorization_server.tries",
    "AuthStore": "isthmus.auth.authorization_server.store",
    "AuthorizationServer": "isthmus.auth.authorization_server.authority",
    "BearerToken": "isthmus.auth.client.bearer_token",
    "ByHand": "isthmus.auth.client.callback",
    "ByIssuer": "isthmus.auth.resource_server.issuers",
    "CimdPolicy": "isthmus.auth.authorization_server.settings",
    "ClientCredentials": "isthmus.auth.client.client_credentials",
    "Compat": "isthmus.auth.client.discovery",
    "DcrPolicy": "isthmus.auth.authorization_server.settings",
    "Delegated": "isthmus.auth.authorization_server.users",
    "Endpoints": "isthmus.auth.upstream.endpoints",
    "EnterpriseManaged": "isthmus.auth.client.enterprise",
    "Fetched": "isthmus.auth.network",
    "FileTokenStore": "isthmus.auth.client.store",
    "HeaderUsers": "isthmus.auth.authorization_server.proxy_users",
    "IntrospectionVerifier": "isthmus.auth.resource_server.introspection",
    "JWTVerifier": "isthmus.auth.resource_server.jwt",
    "JwtBearer": "isthmus.auth.client.jwt_bearer",
    "Key": "isthmus.auth.client.tokens",
    "LoginPolicy": "isthmus.auth.authorization_server.settings",
    "Limits": "isthmus.auth.authorization_server.limits",
    "LoginPage": "isthmus.auth.authorization_server.users",
    "LoginRedirect": "isthmus.auth.authorization_server.users",
    "LoginRefused": "isthmus.auth.authorization_server.users",
    "LoginRequest": "isthmus.auth.authorization_server.users",
    "Loopback": "isthmus.auth.client.callback",
    "MemoryAuthStore": "isthmus.auth.authorization_server.store",
    "MemoryTokenStore": "isthmus.auth.client.tokens",
    "Network": "isthmus.auth.network",
    "NetworkFailed": "isthmus.auth.network",
    "NetworkPolicy": "isthmus.auth.network",
    "NetworkRefused": "isthmus.auth.network",
    "Nonces": "isthmus.auth.dpop",
    "OAuth": "isthmus.auth.client.oauth",
    "PasswordUsers": "isthmus.auth.authorization_server.passwords",
    "Presented": "isthmus.auth.resource_server.verifier",
    "Principal": "isthmus.core.principal",
    "PrivateKey": "isthmus.auth.jose",
    "Provider": "isthmus.auth.upstream.provider",
    "RegisteredClient": "isthmus.auth.authorization_server.clients",
    "Registration": "isthmus.auth.client.tokens",
    "RegistrationPolicy": "isthmus.auth.authorization_server.settings",
    "SQLiteReplays": "isthmus.auth.resource_server.replays",
    "ReplayStore": "isthmus.auth.resource_server.replays",
    "KVReplays": "isthmus.auth.resource_server.replays",
    "ResourceAuth": "isthmus.auth.resource_server.resource_auth",
    "SQLiteAuthStore": "isthmus.auth.authorization_server.store",
    "ScopeModel": "isthmus.auth.resource_server.scopes",
    "ScopeRequest": "isthmus.auth.client.oauth",
    "Secret": "isthmus.auth.secret",
    "StaticClient": "isthmus.auth.client.static",
    "StaticTokens": "isthmus.auth.resource_server.static",
    "Status": "isthmus.auth.client.oauth",
    "StoreBroken": "isthmus.auth.client.vault",
    "StoreBusy": "isthmus.auth.client.locks",
    "TokenStore": "isthmus.auth.client.tokens",
    "TokenVerifier": "isthmus.auth.resource_server.verifier",
    "Tokens": "isthmus.auth.client.tokens",
    "TrustedIdp": "isthmus.auth.authorization_server.settings",
    "Upstream": "isthmus.auth.upstream.api",
    "UpstreamDenied": "isthmus.auth.upstream.faults",
    "UpstreamFailed": "isthmus.auth.upstream.faults",
    "UpstreamLogin": "isthmus.auth.upstream.login",
    "UpstreamUnavailable": "isthmus.auth.upstream.faults",
    "User": "isthmus.auth.authorization_server.users",
    "UserBackend": "isthmus.auth.authorization_server.users",
    "VerifierUnavailable": "isthmus.auth.resource_server.verifier",
    "Workload": "isthmus.auth.authorization_server.settings",
    "default_store": "isthmus.auth.client.keyring_store",
    "desktop": "isthmus.auth.network",
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
