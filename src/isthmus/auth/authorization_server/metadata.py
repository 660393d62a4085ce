"""What the authorization server says of itself (RFC 8414)."""

from typing import Any

from isthmus.auth.authorization_server.settings import Settings
from isthmus.auth.dpop import ALGORITHMS as PROOF_ALGORITHMS
from isthmus.auth.jose import COMMON
from isthmus.auth.names import CODE, CONFIDENTIAL, JWT_BEARER, MACHINE, METHODS, REFRESH

__all__ = ["document"]

ID_JAG_PROFILE = "urn:ietf:params:oauth:grant-profile:id-jag"


def document(settings: Settings) -> dict[str, Any]:
    """The metadata."""
    # spec 2025-06-18 basic/authorization#overview: RFC 8414
    grants = [CODE, REFRESH, MACHINE]
    if settings.trusted_idps or settings.workloads:
        grants.append(JWT_BEARER)
    found: dict[str, Any] = {
        "issuer": settings.issuer,
        "authorization_endpoint": settings.url("authorize"),
        "token_endpoint": settings.url("token"),
        "revocation_endpoint": settings.url("revoke"),
        "introspection_endpoint": settings.url("introspect"),
        "jwks_uri": settings.url("jwks"),
        "scopes_supported": list(settings.scopes),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": grants,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": settings.registration.cimd.enabled,
        "dpop_signing_alg_values_supported": list(PROOF_ALGORITHMS),
        "protected_resources": list(settings.resources),
    }
    for endpoint, methods in (
        ("token", METHODS),
        ("revocation", METHODS),
        ("introspection", CONFIDENTIAL),
    ):
        found[f"{endpoint}_endpoint_auth_methods_supported"] = list(methods)
        found[f"{endpoint}_endpoint_auth_signing_alg_values_supported"] = list(COMMON)
    if settings.registration.dcr.enabled:
        found["registration_endpoint"] = settings.url("register")
    if settings.trusted_idps:
        # spec 2026-07-28 basic/authorization#mcp-authorization-extensions
        found["authorization_grant_profiles_supported"] = [ID_JAG_PROFILE]
    return found
