"""Presets of well-known authorization servers, held against stand-ins that speak as they do."""

from urllib.parse import parse_qs, urlsplit

import pytest

from isthmus.auth.authorization_server.upstream.identity import identify
from isthmus.auth.presets import ENTRA, GITHUB, OKTA, PRESETS
from isthmus.auth.resource_server.verifier import Presented
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from support.auth.upstream_flow import BACK
from support.auth.vendors import API, FIELDS, RESOURCE, Vendor, list_token_vendors

BY_NAME = {preset.name: preset for preset in PRESETS}


def make_verifier(name, vendor):
    """The verifier of a preset, which asks the stand-in."""
    audience = API if name == "entra" else None
    return BY_NAME[name].verifier(RESOURCE, audience=audience, network=vendor, **FIELDS[name])


async def verify(verifier, token):
    """Who a token speaks for."""
    return await verifier.verify(Presented("bearer", Secret(token)), RESOURCE)


@pytest.mark.parametrize("name", list_token_vendors())
async def test_a_token_of_the_vendor_is_accepted(name):
    """Ours: issuer, type, audience, scopes and client as the vendor spells them."""
    vendor = Vendor(name)
    who = await verify(make_verifier(name, vendor), vendor.make_token())

    assert ("ada", "desk", vendor.told["issuer"]) == (who.subject, who.client_id, who.issuer)
    assert vendor.told.get("granted", "files.read") in who.scopes


@pytest.mark.parametrize("name", list_token_vendors())
@pytest.mark.parametrize(
    "changed",
    [
        {"aud": None},
        {"aud": "https://other.example.com"},
        {"iss": "https://attacker.example.com"},
        {"exp": 1},
        {"scope": None, "scp": None, "permissions": None, "at_hash": "x"},
    ],
    ids=["no-audience", "other-audience", "other-issuer", "expired", "id-token"],
)
@pytest.mark.covers("auth.resource.audience-checked")
async def test_a_token_for_something_else_is_refused(name, changed):
    """2025-11-25 basic/authorization: what was not issued for this server is refused."""
    vendor = Vendor(name)
    assert await verify(make_verifier(name, vendor), vendor.make_token(**changed)) is None


@pytest.mark.parametrize("name", list_token_vendors())
async def test_a_token_signed_by_somebody_else_is_refused(name):
    """Ours: the keys are those of the vendor's metadata."""
    vendor, forger = Vendor(name), Vendor(name, "forger")
    assert await verify(make_verifier(name, vendor), forger.make_token()) is None


@pytest.mark.parametrize("name", list_token_vendors())
def test_a_server_is_guarded_by_one_call(name):
    """Ours: clients are sent to the vendor's issuer."""
    audience = API if name == "entra" else None
    auth = BY_NAME[name].resource_auth(RESOURCE, audience=audience, **FIELDS[name])

    assert auth.resource == RESOURCE


@pytest.mark.parametrize("name", sorted(BY_NAME))
async def test_users_log_in_with_the_vendor(name):
    """Ours: an authorization request with PKCE, a code for tokens, and who the user is."""
    vendor, nonce = Vendor(name), Secret.random()
    provider = BY_NAME[name].provider(
        client_id="our-id", client_secret="s" * 20, options={"network": vendor}, **FIELDS[name]
    )
    vendor.nonce = nonce.reveal()
    url = await provider.login_url(
        state=Secret.random(), challenge="c" * 43, nonce=nonce, redirect_uri=BACK
    )
    asked = parse_qs(urlsplit(url).query)
    assert ["S256"] == asked["code_challenge_method"]
    assert " ".join(BY_NAME[name].scopes) == asked["scope"][0]
    for key, value in BY_NAME[name].parameters.items():
        assert [value] == asked[key]

    tokens, told = await provider.exchange(Secret("code"), Secret("v" * 43), BACK)
    assert vendor.token_url == vendor.forms[0][0]
    subject, _ = await identify(provider, tokens, told, nonce)
    assert ("583231" if name == "github" else "ada") == subject


@pytest.mark.parametrize("name", ["github", "google"])
def test_opaque_tokens_for_a_vendors_own_api_are_no_tokens_for_ours(name):
    """2026-07-28 basic/authorization: a server must not accept tokens issued for something else."""
    with pytest.raises(UsageError, match=rf"UpstreamLogin\({name.upper()}\.provider"):
        BY_NAME[name].resource_auth(RESOURCE)


@pytest.mark.parametrize(
    ("preset", "fields"),
    [
        (ENTRA, {"tenant": "common"}),
        (ENTRA, {"tenant": "../11111111-2222-3333-4444-555555555555"}),
        (ENTRA, {}),
        (OKTA, {"domain": "example.okta.com/oauth2/x?"}),
        (OKTA, {"domain": "example.okta.com", "server": "../default"}),
        (OKTA, {"domain": "example.okta.com", "tenant": "x"}),
        (GITHUB, {"domain": "x.example.com"}),
    ],
)
def test_a_field_that_would_lead_elsewhere_is_refused(preset, fields):
    """Ours: what stands in an issuer can be nothing but what it is called."""
    with pytest.raises(UsageError):
        preset.make_issuer(**fields)


def test_entra_takes_the_name_of_the_api():
    """Ours: its tokens name the API by the id of its registration."""
    with pytest.raises(UsageError, match="audience="):
        ENTRA.verifier(RESOURCE, **FIELDS["entra"])
