"""T17: the provider knows one client, us, and approves silently; so we ask, for each client, each time."""

import json
from urllib.parse import quote, urlsplit

import pytest

from isthmus.auth import UpstreamLogin
from support.auth.authority import (
    client_answer,
    form_action,
    hidden_fields,
    make_authority,
    request_url,
)
from support.auth.upstream_flow import Traveller, make_upstream, redeem_code
from support.http.asgi_driver import fetch

ISSUER = "http://127.0.0.1:8000"
EVIL = "https://evil.example/cb"

pytestmark = pytest.mark.covers("auth.threat.t17-confused-deputy")


@pytest.fixture(params=["always", "remember"])
async def authority(request, remote):
    """Our authorization server in front of it, whatever it may remember."""
    made = make_authority(ISSUER, UpstreamLogin(make_upstream(remote)), consent=request.param)
    yield made
    await made.close()


@pytest.fixture
async def victim(authority, remote):
    """A browser that has gone the whole way for an honest client, and holds every cookie of that."""
    browser = Traveller(authority, ISSUER)
    sent = await browser.log_in_upstream(request_url(ISSUER))
    assert 200 == (await redeem_code(authority, ISSUER, sent)).status
    assert {"consent": remote.client_id} == browser.elsewhere
    remote.authorizations.clear()
    return browser


@pytest.fixture
async def link(authority):
    """What the attacker sends: a request of a client that they registered, with their own redirect."""
    document = {
        "client_name": "Notes",
        "redirect_uris": [EVIL],
        "token_endpoint_auth_method": "none",
    }
    made = await fetch(
        authority,
        path="/register",
        headers={"host": urlsplit(ISSUER).netloc, "content-type": "application/json"},
        body=json.dumps(document).encode(),
    )
    assert 201 == made.status, made.body
    return request_url(ISSUER, client_id=made.json["client_id"], redirect_uri=EVIL)


@pytest.mark.covers("auth.authority.consent-before-forwarding")
@pytest.mark.parametrize("site", ["none", "cross-site", "same-origin"])
async def test_confused_deputy_link_never_skips_our_consent(victim, remote, link, site):
    """Spec: consent for this client comes before the provider, whatever was agreed to elsewhere."""
    page = await victim.follow(await victim.get(link, site), site)

    assert (200, None) == (page.status, page.header("location"))
    assert b"evil.example" in page.body
    assert b"Not verified" in page.body
    assert [] == remote.authorizations


@pytest.mark.covers("auth.authority.consent-before-forwarding")
async def test_the_attackers_own_consent_is_not_the_victims(victim, authority, remote, link):
    """Spec: consent is bound to the browser that gave it: its pages and forms are of no use in another."""
    attacker = Traveller(authority, ISSUER)
    page = await attacker.follow(await attacker.get(link))
    fields = {**hidden_fields(page), "decision": "allow"}

    opened = await victim.get(f"{ISSUER}/auth/consent?request={quote(fields['request'])}")
    posted = await victim.post(form_action(page), fields, site="cross-site")
    forged = await victim.post(form_action(page), fields)

    assert (410, 410, 410) == (opened.status, posted.status, forged.status)
    assert [] == remote.authorizations


@pytest.mark.covers("auth.authority.consent-before-forwarding")
async def test_no_link_of_ours_begins_a_login_at_the_provider(victim, authority, remote, link):
    """Ours: every page that a link can open, with what an attacker knows."""
    attacker = Traveller(authority, ISSUER)
    page = await attacker.follow(await attacker.get(link))
    handle = quote(hidden_fields(page)["request"])
    paths = [path for path in authority.routes if path != "/authorize"]

    for path in paths:
        for query in (
            "",
            f"?request={handle}",
            f"?request={handle}&decision=allow",
            "?state=x&code=y",
        ):
            opened = await victim.get(f"{ISSUER}{path}{query}")
            where = opened.header("location") or ""
            assert not where.startswith((remote.url, EVIL)), path
    assert [] == remote.authorizations


async def test_a_victim_that_says_no_tells_the_attacker_nothing_else(victim, remote, link):
    """Ours: the client hears access_denied, and the provider hears nothing."""
    page = await victim.follow(await victim.get(link))
    sent = await victim.decide(page, "deny")

    assert {"error", "state", "iss"} == set(client_answer(sent))
    assert [] == remote.authorizations
