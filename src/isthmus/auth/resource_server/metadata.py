"""Protected resource metadata (RFC 9728): the page that tells clients whom to ask for tokens."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from isthmus.auth.net.urls import split_url, well_known_url
from isthmus.transports.http.authorizer import AsgiApp
from isthmus.transports.http.reply import JSON_TYPE, Header, Receive, Scope, Send, send_response

METADATA_SUFFIX = "oauth-protected-resource"

# The metadata is the same for everybody and tells nothing that is not public.
METADATA_HEADERS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"cache-control", b"public, max-age=300"),
)
PREFLIGHT_HEADERS: tuple[Header, ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET"),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-max-age", b"7200"),
)


def make_resource_metadata(
    resource: str,
    authorization_servers: Sequence[str],
    scopes: frozenset[str],
    *,
    algorithms: Sequence[str] = (),
    bound: bool = False,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """The metadata.

    Args:
        resource: the resource, as it is spelt in tokens.
        authorization_servers: who issues them.
        scopes: those to ask for in the beginning.
        algorithms: of DPoP proofs, where they are taken.
        bound: only tokens bound to a key are taken.
        more: further members; those that are None are left out.
    """
    found: dict[str, Any] = {
        "resource": resource,
        # spec 2026-07-28 basic/authorization/authorization-server-discovery#authorization-server-location: at least one
        "authorization_servers": list(authorization_servers),
        "scopes_supported": sorted(scopes) or None,
        "bearer_methods_supported": ["header"],
        "dpop_signing_alg_values_supported": list(algorithms) or None,
        "dpop_bound_access_tokens_required": bound or None,
        **more,
    }
    return {name: value for name, value in found.items() if value is not None}


def list_metadata_paths(resource: str, *, alone: bool) -> list[str]:
    """The paths where the metadata of a resource is looked for, best first.

    Args:
        resource: the resource.
        alone: nothing else on its origin has metadata, so that it may be at the root, too.
    """
    # spec 2025-11-25 basic/authorization#protected-resource-metadata-discovery-requirements
    found = [split_url(well_known_url(resource, METADATA_SUFFIX)).path]
    root = f"/.well-known/{METADATA_SUFFIX}"
    return [*found, root] if alone and root not in found else found


def make_metadata_page(members: Mapping[str, Any]) -> AsgiApp:
    """The ASGI app that serves the metadata."""
    body = msgspec.json.encode(members)

    async def serve(scope: Scope, _receive: Receive, send: Send) -> None:
        verb = scope["method"]
        if verb in {"GET", "HEAD"}:
            await send_response(send, 200, (JSON_TYPE, *METADATA_HEADERS), body, verb=verb)
        elif verb == "OPTIONS":
            await send_response(send, 204, PREFLIGHT_HEADERS)
        else:
            await send_response(send, 405, ((b"allow", b"GET, HEAD, OPTIONS"), *METADATA_HEADERS))

    return serve
