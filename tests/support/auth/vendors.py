"""Well-known authorization servers on a shelf: metadata, keys, tokens and user pages, as each of them has them.

Shapes of 2026-11: what a vendor spells otherwise than others is a row of ``VENDORS``.
"""

import json
import time
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from isthmus.auth.net.network import Fetched
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from support.auth.documents import DocumentShelf

__all__ = ["FIELDS", "RESOURCE", "Vendor", "list_token_vendors"]

RESOURCE = "https://mcp.example.com/mcp"
TENANT = "11111111-2222-3333-4444-555555555555"
API = "66666666-7777-8888-9999-000000000000"
POOL = "eu-central-1_AbCdEfGhI"

FIELDS: dict[str, dict[str, str]] = {
    "github": {},
    "google": {},
    "entra": {"tenant": TENANT},
    "auth0": {"domain": "example.eu.auth0.com"},
    "workos": {"domain": "example.authkit.app"},
    "okta": {"domain": "example.okta.com"},
    "keycloak": {"url": "https://login.example.com/realms/tools"},
    "cognito": {"region": "eu-central-1", "pool": POOL},
}

# the issuer as tokens spell it, where its OpenID metadata is, and the claims of an access token
VENDORS: dict[str, dict[str, Any]] = {
    "google": {
        "issuer": "https://accounts.google.com",
        "metadata": "https://accounts.google.com/.well-known/openid-configuration",
    },
    "entra": {
        "issuer": f"https://login.microsoftonline.com/{TENANT}/v2.0",
        "metadata": f"https://login.microsoftonline.com/{TENANT}/v2.0/.well-known/openid-configuration",
        "claims": {"aud": API, "azp": "desk", "scp": "files.read", "oid": "person", "ver": "2.0"},
        "granted": f"{RESOURCE}/files.read",
    },
    "auth0": {
        "issuer": "https://example.eu.auth0.com/",
        "metadata": "https://example.eu.auth0.com/.well-known/openid-configuration",
        "claims": {
            "aud": [RESOURCE, "https://example.eu.auth0.com/userinfo"],
            "azp": "desk",
            "scope": "openid files.read",
        },
    },
    "workos": {
        "issuer": "https://example.authkit.app",
        "metadata": "https://example.authkit.app/.well-known/oauth-authorization-server",
        "claims": {"aud": RESOURCE, "client_id": "desk", "scope": "openid files.read", "sid": "s"},
    },
    "okta": {
        "issuer": "https://example.okta.com/oauth2/default",
        "metadata": "https://example.okta.com/oauth2/default/.well-known/openid-configuration",
        "claims": {"aud": RESOURCE, "cid": "desk", "scp": ["openid", "files.read"], "ver": 1},
    },
    "keycloak": {
        "issuer": "https://login.example.com/realms/tools",
        "metadata": "https://login.example.com/realms/tools/.well-known/openid-configuration",
        "claims": {
            "aud": [RESOURCE, "account"],
            "azp": "desk",
            "scope": "openid files.read",
            "typ": "Bearer",
        },
    },
    "cognito": {
        "issuer": f"https://cognito-idp.eu-central-1.amazonaws.com/{POOL}",
        "metadata": f"https://cognito-idp.eu-central-1.amazonaws.com/{POOL}/.well-known/openid-configuration",
        "claims": {
            "aud": RESOURCE,
            "client_id": "desk",
            "scope": "files.read",
            "token_use": "access",
        },
    },
}


def list_token_vendors() -> list[str]:
    """The vendors whose access tokens a server can accept."""
    return [name for name, vendor in VENDORS.items() if "claims" in vendor]


@cache
def _make_key(owner: str) -> PrivateKey:  # one for all tests: making one takes a tenth of a second
    return PrivateKey.generate("RS256", kid="k1")


class Vendor(DocumentShelf):
    """One vendor: metadata and keys where it has them, tokens for a code, and pages about the user.

    Attributes:
        forms: the forms that its token endpoint was sent, with their headers.
    """

    def __init__(self, name: str, owner: str = "vendor") -> None:
        super().__init__()
        self.name = name
        self.key = _make_key(owner)
        self.told = VENDORS.get(name, {})
        self.forms: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.nonce = ""
        self.keys_url = "https://keys.example.com/jwks"
        self.token_url = "https://github.com/login/oauth/access_token"
        if self.told:
            self.token_url = f"{self.told['issuer'].rstrip('/')}/token"
            self.put(self.told["metadata"], self._make_metadata())
            self.put(self.keys_url, {"keys": [self.key.jwk]})
        self.put("https://api.github.com/user", {"id": 583231, "login": "octocat"})

    def make_token(self, *, typ: str = "JWT", **changed: Any) -> str:
        """An access token; None leaves a claim out."""
        now = int(time.time())
        claims = {
            "iss": self.told["issuer"], "sub": "ada", "iat": now, "exp": now + 300,
            **self.told["claims"], **changed,
        }  # fmt: skip
        return sign_jwt({k: v for k, v in claims.items() if v is not None}, self.key, typ=typ)

    async def form(self, url: str, fields: Any, headers: Any = None, **_: Any) -> Fetched:
        """Give tokens for a code."""
        sent = dict(fields if isinstance(fields, dict) else parse_qsl(str(fields)))
        self.forms.append((url, sent, dict(headers or {})))
        now = int(time.time())
        answer: dict[str, Any] = {"access_token": "opaque", "token_type": "bearer"}
        if self.told:
            claims = {
                "iss": self.told["issuer"], "sub": "ada", "aud": "our-id", "name": "Ada",
                "iat": now, "exp": now + 300, "nonce": self.nonce,
            }  # fmt: skip
            answer["id_token"] = sign_jwt(claims, self.key)
        body = json.dumps(answer).encode()
        return Fetched(200, {"content-type": "application/json"}, body, url)

    def _make_metadata(self) -> dict[str, Any]:
        issuer = self.told["issuer"]
        base = issuer.rstrip("/")
        return {
            "issuer": issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": self.token_url,
            "jwks_uri": self.keys_url,
            "id_token_signing_alg_values_supported": ["RS256"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        }
