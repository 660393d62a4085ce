"""T13: a refresh token that was renewed and not kept is one that its server takes for stolen."""

import asyncio
import time

import pytest

from isthmus import Client
from isthmus.auth import Loopback, MemoryTokenStore, OAuth, Registration, Secret, Tokens
from isthmus.auth.client.store.vault import StoreBroken
from support.auth.oauth_town import open_town
from support.event_loop import run_turns
from support.http.loopback_pages import json_page, serve_pages


class Strict:
    """A token endpoint at which each refresh token is good once; a second use ends it all."""

    def __init__(self, place):
        self.place = place
        self.uses = []
        self.came, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, asked):
        """Renew, and answer once the test lets it."""
        self.uses.append(asked.form["refresh_token"])
        number = len(self.uses)
        if self.uses[-1] != f"refresh-token-number-{number - 1}":
            return json_page({"error": "invalid_grant"}, 400)
        access = f"access-token-number-{number}"
        self.place.authority.tokens[access] = frozenset({"read"})
        self.came.set()
        await self.go.wait()
        answer = {"access_token": access, "refresh_token": f"refresh-token-number-{number}"}
        return json_page({**answer, "token_type": "Bearer", "expires_in": 3600})


async def logged_in(store, place, endpoint):
    """What a login of long ago has left in a store."""
    issuer, now = place.authority.issuer, time.time()
    client = Registration(issuer=issuer, client_id="desktop", redirect=Loopback().uri)
    tokens = Tokens(
        access=Secret("access-token-number-0"),
        refresh=Secret("refresh-token-number-0"),
        issuer=issuer,
        client_id="desktop",
        resource=place.url,
        issued_at=now - 3600,
        expires_at=now - 1,
        token_endpoint=endpoint,
    )
    await store.put(client.key, client)
    await store.put(tokens.key, tokens)
    return tokens.key


def nobody(_url):
    """A browser that must not be opened."""
    raise AssertionError("a browser was opened")


@pytest.fixture
async def house():
    """A town, and beside it a token endpoint that is strict."""
    async with open_town() as place, serve_pages() as authority:
        endpoint = authority.pages["/token"] = Strict(place)
        endpoint.url = f"{authority.url}/token"
        yield place, endpoint


@pytest.mark.covers("auth.threat.t13-refresh-race")
async def test_whoever_gives_up_waiting_leaves_the_renewal_to_its_end(house):
    """Ours: what was sent may have been taken, so its answer is kept whoever still wants it."""
    place, endpoint = house
    store = MemoryTokenStore()
    key = await logged_in(store, place, endpoint.url)
    client = Client(place.url, auth=OAuth(store=store, open_browser=nobody))
    opening = asyncio.create_task(client.open())
    await endpoint.came.wait()
    opening.cancel()
    await run_turns(100)
    endpoint.go.set()
    await asyncio.wait((opening,))
    async with Client(place.url, auth=OAuth(store=store, open_browser=nobody)) as later:
        assert "hello" == (await later.call_tool("hello")).text
    assert ["refresh-token-number-0"] == endpoint.uses
    assert Secret("refresh-token-number-1") == (await store.get(key)).refresh


class Full(MemoryTokenStore):
    """A store that takes nothing more once it is full."""

    full = False

    async def put(self, key, record):
        if self.full:
            raise StoreBroken("tokens.json cannot be written: No space left on device")
        await super().put(key, record)


@pytest.mark.covers("auth.threat.t13-refresh-race")
async def test_a_store_that_takes_nothing_does_not_bring_an_old_refresh_token_back(house, caplog):
    """Ours: the program goes on with what it has, says so, and never uses a token twice."""
    place, endpoint = house
    endpoint.go.set()
    store = Full()
    key = await logged_in(store, place, endpoint.url)
    store.full = True
    auth = OAuth(store=store, open_browser=nobody)
    async with Client(place.url, auth=auth) as client:
        assert "hello" == (await client.call_tool("hello")).text
        assert "No space left on device" in caplog.text
        place.revoked |= set(place.authority.tokens)
        place.resource["authorization_servers"] = [place.authority.issuer]
        place.authority.metadata["token_endpoint"] = endpoint.url
        assert "hello" == (await client.call_tool("hello")).text
        store.full = False
        place.revoked |= set(place.authority.tokens)
        assert "hello" == (await client.call_tool("hello")).text
    assert [f"refresh-token-number-{number}" for number in range(3)] == endpoint.uses
    assert Secret("refresh-token-number-3") == (await store.get(key)).refresh


class Watched(MemoryTokenStore):
    """A store that says when somebody wants tokens that another renews."""

    def __init__(self):
        super().__init__()
        self.wanted = asyncio.Event()
        self.locks = 0

    def lock(self, key):
        self.locks += 1
        if self.locks > 1:
            self.wanted.set()
        return super().lock(key)


async def test_a_logout_while_tokens_are_renewed_leaves_none(house):
    """Ours: what the renewal brings is forgotten like the rest."""
    place, endpoint = house
    store = Watched()
    await logged_in(store, place, endpoint.url)
    auth = OAuth(store=store, open_browser=nobody)
    client = Client(place.url, auth=auth)
    opening = asyncio.create_task(client.open())
    await endpoint.came.wait()
    leaving = asyncio.create_task(auth.logout(place.url))
    await store.wanted.wait()
    endpoint.go.set()
    await asyncio.wait((opening,))
    await leaving
    await client.close()
    assert [] == [key for key in await store.keys() if not key.redirect]
