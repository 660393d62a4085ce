"""Tests of a browser's way to a provider and back: what is made, kept, compared and thrown away."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.auth.authorization_server.pages.browser import BrowserCookies, BrowserRequest
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.upstream.redirects import ProviderRedirects
from support.auth.upstream_flow import BACK, make_upstream

ISSUER = "https://mcp.example"


@pytest.fixture
async def journeys(clock):
    """Journeys of a server with https."""
    store = MemoryAuthStore(clock=clock)
    yield ProviderRedirects(store, BrowserCookies(ISSUER))
    await store.close()


def visit(cookies, **fields):
    """A browser that comes back."""
    held = dict(cookie.partition(";")[0].split("=", 1) for cookie in cookies)
    return BrowserRequest("GET", fields, {}, held, "192.0.2.1")


async def left(journeys, acme, **more):
    """A journey that has begun: the state, the cookies, and all that the provider is told."""
    url, cookies = await journeys.begin(acme, BACK, "login", "txn-1", **more)
    told = dict(parse_qsl(urlsplit(url).query))
    return told["state"], cookies, told


@pytest.mark.covers("auth.authority.upstream-state")
async def test_every_journey_has_its_own_random_values(journeys, acme):
    """Spec: state is random for each request; ours: verifier, nonce and cookie as well."""
    first, second = await left(journeys, acme), await left(journeys, acme)

    for name in ("state", "nonce", "code_challenge"):
        assert first[2][name] != second[2][name]
        assert 43 == len(first[2][name])
    assert first[1] != second[1]


@pytest.mark.covers("auth.authority.consent-page")
async def test_the_cookie_is_host_bound_and_not_for_scripts(journeys, acme):
    """Spec: __Host-, Secure, HttpOnly, SameSite=Lax."""
    _, (cookie,), _ = await left(journeys, acme)

    assert cookie.startswith("__Host-isthmus-upstream-")
    assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure", "Max-Age=600"} <= set(
        cookie.split("; ")
    )


async def test_a_returning_browser_finds_its_request(journeys, acme):
    """Ours: the journey, the code, and a cookie that is taken away."""
    state, cookies, told = await left(journeys, acme, user_id="alice")

    arrival = await journeys.end(acme, visit(cookies, state=state, code="c-1-2-3-4-5"))

    assert ("login", "txn-1", "alice", BACK) == (
        arrival.request.purpose,
        arrival.request.about,
        arrival.request.user_id,
        arrival.request.redirect_uri,
    )
    assert arrival.code == "c-1-2-3-4-5"
    assert told["nonce"] == arrival.request.nonce
    assert "Max-Age=0" in arrival.cookies[0]


@pytest.mark.covers("auth.authority.upstream-state")
@pytest.mark.parametrize("wrong", ["no cookie", "another cookie", "another provider", "no state"])
async def test_a_wrong_response_uses_up_its_state(journeys, acme, remote, clock, wrong):
    """Spec: single use, also where it did not come to anything."""
    state, cookies, _ = await left(journeys, acme)
    _, others, _ = await left(journeys, acme)
    provider, held, fields = acme, cookies, {"state": state, "code": "c"}
    if wrong == "no cookie":
        held = ()
    elif wrong == "another cookie":
        name, value = cookies[0].partition("=")[0], others[0].partition("=")[2]
        held = (f"{name}={value}",)
    elif wrong == "another provider":
        provider = make_upstream(remote, clock, name="other")
    else:
        fields = {"code": "c"}

    with pytest.raises(RequestRefused):
        await journeys.end(provider, visit(held, **fields))
    if wrong != "no state":
        with pytest.raises(RequestRefused):
            await journeys.end(acme, visit(cookies, state=state, code="c"))


@pytest.mark.parametrize("fields", [{}, {"code": ""}, {"error": "x", "code": "c"}])
async def test_an_answer_without_a_code_that_counts_has_none(journeys, acme, fields):
    """Ours: an error beside a code is an error."""
    state, cookies, _ = await left(journeys, acme)

    arrival = await journeys.end(acme, visit(cookies, state=state, **fields))

    assert (None, "") == (arrival.code, arrival.error)


async def test_a_provider_request_shows_no_secrets(journeys, acme):
    """Ours: not its repr, and not the store, where it is sealed."""
    state, cookies, _ = await left(journeys, acme)
    arrival = await journeys.end(acme, visit(cookies, state=state, code="c"))

    assert "ProviderRequest(provider='acme', purpose='login')" == repr(arrival.request)
