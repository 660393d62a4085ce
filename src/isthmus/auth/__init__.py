"""Authorization, on all three roles of OAuth: resource server, authorization server and client.

``isthmus.auth.resource_server`` guards an MCP server, ``isthmus.auth.authorization_server`` issues
tokens, ``isthmus.auth.client`` gets them; ``isthmus.auth.authorization_server.upstream`` reaches
services behind a server. They share ``isthmus.auth.tokens`` and ``isthmus.auth.net``.

Names are imported when they are first used. A name that needs ``pip install 'isthmus[auth]'`` says
so then.
"""

from typing import TYPE_CHECKING

from isthmus.auth import redaction
from isthmus.lazy import lazy_getattr

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
    from isthmus.auth.client.discovery import Compat
    from isthmus.auth.client.grants.bearer_token import BearerToken
    from isthmus.auth.client.grants.client_credentials import ClientCredentials
    from isthmus.auth.client.grants.enterprise import EnterpriseManaged
    from isthmus.auth.client.grants.jwt_bearer import JwtBearer
    from isthmus.auth.client.grants.login import ScopeRequest, Status
    from isthmus.auth.client.grants.oauth import OAuth
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
    from isthmus.auth.resource_server.introspection import IntrospectionVerifier
    from isthmus.auth.resource_server.jwt import JWTVerifier
    from isthmus.auth.resource_server.replays import KVReplays, ReplayStore, SQLiteReplays
    from isthmus.auth.resource_server.resource_auth import ResourceAuth, ScopeModel
    from isthmus.auth.resource_server.verifier import (
        ByIssuer,
        Presented,
        StaticTokens,
        TokenVerifier,
        VerifierUnavailable,
    )
    from isthmus.auth.tokens.dpop import Nonces
    from isthmus.auth.tokens.jose import PrivateKey
    from isthmus.auth.tokens.secret import Secret
    from isthmus.core.principal import Principal

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

_NAMES_BY_MODULE = {
    "isthmus.auth.authorization_server.core.requests": "Limits",
    "isthmus.auth.authorization_server.core.settings": "CimdPolicy DcrPolicy LoginPolicy RegistrationPolicy TrustedIdp Workload",
    "isthmus.auth.authorization_server.server": "AuthorizationServer",
    "isthmus.auth.authorization_server.storage.clients": "RegisteredClient",
    "isthmus.auth.authorization_server.storage.store": "AuthStore MemoryAuthStore SQLiteAuthStore",
    "isthmus.auth.authorization_server.users.login_limits": "Allowance",
    "isthmus.auth.authorization_server.users.passwords": "PasswordUsers",
    "isthmus.auth.authorization_server.users.users": "Delegated HeaderUsers LoginPage LoginRedirect LoginRefused LoginRequest User UserBackend",
    "isthmus.auth.client.discovery": "Compat",
    "isthmus.auth.client.grants.bearer_token": "BearerToken",
    "isthmus.auth.client.grants.client_credentials": "ClientCredentials",
    "isthmus.auth.client.grants.enterprise": "EnterpriseManaged",
    "isthmus.auth.client.grants.jwt_bearer": "JwtBearer",
    "isthmus.auth.client.grants.login": "ScopeRequest Status",
    "isthmus.auth.client.grants.oauth": "OAuth",
    "isthmus.auth.client.redirect": "ByHand Loopback",
    "isthmus.auth.client.registration": "StaticClient",
    "isthmus.auth.client.store.file_store": "FileTokenStore StoreBusy",
    "isthmus.auth.client.store.keyring_store": "default_store",
    "isthmus.auth.client.store.records": "Key MemoryTokenStore Registration TokenStore Tokens",
    "isthmus.auth.client.store.vault": "StoreBroken",
    "isthmus.auth.net.network": "Fetched Network NetworkFailed NetworkPolicy NetworkRefused desktop",
    "isthmus.auth.resource_server.introspection": "IntrospectionVerifier",
    "isthmus.auth.resource_server.jwt": "JWTVerifier",
    "isthmus.auth.resource_server.replays": "KVReplays ReplayStore SQLiteReplays",
    "isthmus.auth.resource_server.resource_auth": "ResourceAuth ScopeModel",
    "isthmus.auth.resource_server.verifier": "ByIssuer Presented StaticTokens TokenVerifier VerifierUnavailable",
    "isthmus.auth.tokens.dpop": "Nonces",
    "isthmus.auth.tokens.jose": "PrivateKey",
    "isthmus.auth.tokens.secret": "Secret",
    "isthmus.auth.authorization_server.upstream.api": "Upstream UpstreamDenied UpstreamFailed UpstreamUnavailable",
    "isthmus.auth.authorization_server.upstream.login": "UpstreamLogin",
    "isthmus.auth.authorization_server.upstream.provider": "Endpoints Provider",
    "isthmus.core.principal": "Principal",
}
_MODULE_OF = {name: module for module, names in _NAMES_BY_MODULE.items() for name in names.split()}


redaction.install()  # before anything of authorization can say anything

__getattr__ = lazy_getattr(__name__, _MODULE_OF)


def __dir__() -> list[str]:
    """The public names, whether they are imported yet or not."""
    return sorted(__all__)
