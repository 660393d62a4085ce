"""A login that is kept ends by the authorization server's word, and not by any other answer."""

import time

import pytest

from isthmus import Client
from isthmus.auth import Loopback, MemoryTokenStore, OAuth, Tokens, desktop
from isthmus.errors import AuthError, AuthRefused, IsthmusError
from support.auth.oauth_town import TownBrowser, open_town

PROXY = {"error": "access_denied", "message": "blocked by the gateway"}


def oauth(browser=None, **options):
    """A way to log in that keeps what it gets in memory."""
    options.setdefault("store", MemoryTokenStore())
    return OAuth("desk", open_browser=browser or TownBrowser(), **options)


def answering(here, kind, answer):
    """Have the token endpoint answer one grant type as something in its place would."""
    token = here.authority.token
    here.authority.token = lambda form: answer if form["grant_type"] == kind else token(form)
    return token


async def list_stored_tokens(store):
    """The tokens that are kept."""
    records = [await store.get(key) for key in await store.keys()]
    return [record for record in records if isinstance(record, Tokens)]


@pytest.mark.covers("auth.client.kept-login-ends")
@pytest.mark.parametrize(
    "answer",
    [*[(status, {}) for status in (403, 404, 405, 410, 429, 502)], (403, PROXY), (400, PROXY)],
)
async def test_a_page_in_place_of_the_token_endpoint_ends_no_login(answer):
    """RFC 6749 5.2: only an error says that a refresh token is over; afterwards it is used again."""
    browser, store = TownBrowser(), MemoryTokenStore()
    async with open_town() as here, Client(here.url, auth=oauth(browser, store=store)) as client:
        here.revoked |= set(here.authority.tokens)
        token = answering(here, "refresh_token", answer)
        with pytest.raises(IsthmusError):
            await client.call_tool("hello")
        assert 1 == len(await list_stored_tokens(store))
        here.authority.token = token
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == here.authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


@pytest.mark.parametrize("answer", [(403, {}), (404, {}), (400, {}), (401, {})])
async def test_a_renewal_in_time_that_meets_a_page_is_tried_again(answer):
    """Ours: nobody refused the old token, so that it goes on, and its renewal is only put off."""
    browser, store = TownBrowser(), MemoryTokenStore()
    auth = oauth(browser, store=store)
    async with open_town() as here, Client(here.url, auth=auth) as client:
        token = answering(here, "refresh_token", answer)
        session = next(iter(auth.sessions._shared.values())).session
        session._now = lambda: time.time() + 3590  # of 3600
        assert "hello" == (await client.call_tool("hello")).text
        here.authority.token = token
        session._now = lambda: time.time() + 3601
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == here.authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


@pytest.mark.parametrize("status", [400, 401])
async def test_a_refusal_without_its_error_leads_to_the_user_and_deletes_nothing(status):
    """Ours: some servers refuse a refresh token without the JSON of RFC 6749 5.2."""
    browser, store = TownBrowser(), MemoryTokenStore()
    async with open_town() as here, Client(here.url, auth=oauth(browser, store=store)) as client:
        here.revoked |= set(here.authority.tokens)
        answering(here, "refresh_token", (status, {}))
        here.authority.response = lambda p: {
            "error": "access_denied", "state": p["state"], "iss": p["iss"],
        }  # fmt: skip
        with pytest.raises(AuthRefused, match="access_denied"):
            await client.call_tool("hello")
    assert 2 == len(browser.visited)
    assert 1 == len(await list_stored_tokens(store))


@pytest.mark.parametrize(
    ("error", "left"),
    [("invalid_grant", 0), ("unauthorized_client", 1), ("unsupported_grant_type", 1)],
)
async def test_only_the_error_about_the_token_deletes_it(error, left):
    """RFC 6749 5.2: invalid_grant is about the refresh token, the others are about its client."""
    store = MemoryTokenStore()

    def nobody(_url):
        raise AuthRefused("nobody is there")

    async with open_town() as here:
        async with Client(here.url, auth=oauth(store=store)):
            pass
        here.revoked |= set(here.authority.tokens)
        here.authority.refusal["refresh_token"] = error
        with pytest.raises(AuthRefused, match="nobody is there"):
            await Client(here.url, auth=oauth(nobody, store=store)).open()
    assert left == len(await list_stored_tokens(store))


async def test_a_token_endpoint_that_has_moved_is_found_again():
    """Ours: a refresh token goes where the metadata of its issuer now say."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        authority, page = here.authority, here.page
        authority.metadata["token_endpoint"] = f"{authority.issuer}/v2/token"

        def moved(method, path, *rest):
            if path == "/token":
                return 404, {}, {}
            return page(method, path.removeprefix("/v2"), *rest)

        here.page = moved
        here.revoked |= set(authority.tokens)
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


async def test_metadata_that_name_another_issuer_delete_nothing_until_a_login_there():
    """Ours: a wrong answer to one request must not cost a login."""
    browser, store = TownBrowser(), MemoryTokenStore()
    async with open_town() as here, Client(here.url, auth=oauth(browser, store=store)) as client:
        second, first = here.found("/second"), here.authority
        here.resource["authorization_servers"] = [second.issuer]
        second.metadata["registration_endpoint"] = None
        here.revoked |= set(first.tokens)
        with pytest.raises(AuthError):
            await client.call_tool("hello")
        here.resource["authorization_servers"] = [first.issuer]
        assert [first.issuer] == [tokens.issuer for tokens in await list_stored_tokens(store)]


async def test_a_login_that_nobody_finished_costs_no_other_login_its_registration():
    """Ours: it may be that the server forgot the client, and then what it granted ends by its word."""
    store = MemoryTokenStore()
    async with open_town() as here, open_town() as other:
        other.resource["authorization_servers"] = [here.authority.issuer]
        async with Client(here.url, auth=oauth(store=store)):
            pass

        async def unfinished(_url):
            return

        policy = desktop(here.url, other.url)
        redirect = Loopback(wait=0.05)
        auth = oauth(unfinished, store=store, redirect=redirect, network=policy)
        with pytest.raises(AuthError):
            await Client(other.url, auth=auth).open()
        here.revoked |= set(here.authority.tokens)
        async with Client(here.url, auth=oauth(store=store)) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert 1 == here.authority.counts["refresh_token"]
        assert 1 == len(here.authority.registered)
