"""Protected resource metadata: what it says, and where it is."""

import pytest

from isthmus.auth.resource_server.metadata import list_metadata_paths
from support.auth.protected_server import ISSUER, RESOURCE, Files, make_guard
from support.http.asgi_driver import fetch

PATH = "/.well-known/oauth-protected-resource"
HEAD = {"host": "localhost:8000", "origin": "https://page.example"}


@pytest.mark.covers("auth.resource.metadata-served", "auth.resource.no-offline-access")
@pytest.mark.parametrize("path", [f"{PATH}/mcp", PATH])
async def test_the_metadata_name_the_resource_its_issuers_and_the_base_scopes(path):
    """Spec 2025-06-18 basic/authorization#authorization-server-location; RFC 9728 2."""
    answer = await fetch(Files().app, "GET", path, headers=HEAD)

    assert {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "scopes_supported": ["files:read"],
        "bearer_methods_supported": ["header"],
    } == answer.json
    assert (200, "*") == (answer.status, answer.header("access-control-allow-origin"))


async def test_the_metadata_say_how_tokens_are_bound():
    """RFC 9728 2: for DPoP."""
    allowed, required = (
        make_guard(dpop="allow").metadata,
        make_guard(dpop="require", name="Files").metadata,
    )

    assert "ES256" in allowed["dpop_signing_alg_values_supported"]
    assert "dpop_bound_access_tokens_required" not in allowed
    assert required["dpop_bound_access_tokens_required"] is True
    assert "Files" == required["resource_name"]


@pytest.mark.parametrize(
    ("verb", "status", "size"), [("HEAD", 200, 0), ("OPTIONS", 204, 0), ("POST", 405, 0)]
)
async def test_the_metadata_page_takes_get_head_and_options(verb, status, size):
    """Ours: any page may ask, without a token."""
    answer = await fetch(Files().app, verb, f"{PATH}/mcp", headers=HEAD)

    assert (status, size) == (answer.status, len(answer.body))


async def test_the_metadata_are_not_served_under_another_host():
    """Ours: DNS rebinding is stopped here as everywhere."""
    answer = await fetch(Files().app, "GET", PATH, headers={"host": "evil.example"})

    assert 403 == answer.status


@pytest.mark.covers("auth.resource.metadata-announced")
@pytest.mark.parametrize(
    ("resource", "alone", "expected"),
    [
        ("https://h/mcp", True, [f"{PATH}/mcp", PATH]),
        ("https://h/mcp", False, [f"{PATH}/mcp"]),
        ("https://h/a/b/", True, [f"{PATH}/a/b", PATH]),
        ("https://h", True, [PATH]),
        ("https://h/", False, [PATH]),
    ],
)
def test_the_metadata_are_at_the_well_known_path_and_at_the_root_of_a_server_alone(
    resource, alone, expected
):
    """RFC 9728 3.1."""
    assert expected == list_metadata_paths(resource, alone=alone)


async def test_further_pages_are_served_beside_it():
    """Ours: an authorization server has its endpoints on the same origin."""

    async def page(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": scope["path"].encode()})

    app = Files(make_guard(routes={"/authorize": page})).app

    found = [
        (await fetch(app, "GET", path, headers=HEAD)).body for path in ("/authorize", "/authorize/")
    ]

    assert [b"/authorize", b"/authorize/"] == found
