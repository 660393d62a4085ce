"""T13, the client's half: two programs of one user renew one token."""

import asyncio
import sys
import time

import pytest

from isthmus.auth import FileTokenStore, Loopback, Registration, Secret, Tokens
from support.auth.oauth_town import open_town
from support.http.loopback_pages import json_page, serve_pages

KEY = "k" * 43

PROGRAM = """
import asyncio, sys
from isthmus import Client
from isthmus.auth import FileTokenStore, OAuth

class Telling(FileTokenStore):
    def lock(self, key):
        print("locking", flush=True)
        return super().lock(key)

def browser(url):
    raise SystemExit("a browser was opened")

async def main(url, path, key):
    auth = OAuth(store=Telling(path, key), open_browser=browser)
    async with Client(url, auth=auth) as client:
        print((await client.call_tool("hello")).text, flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


class Rotating:
    """A token endpoint at which a refresh token is good once, and a second use ends it all."""

    def __init__(self, place):
        self.place = place
        self.good = "refresh-token-number-0"
        self.rotations, self.reuses = 0, 0
        self.came, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self, asked):
        """Rotate, once the test lets it."""
        if asked.form["refresh_token"] != self.good:
            self.reuses += 1
            self.good = None
            return json_page({"error": "invalid_grant"}, 400)
        self.rotations += 1
        self.good = f"refresh-token-number-{self.rotations}"
        access = f"access-token-number-{self.rotations}"
        self.place.authority.tokens[access] = frozenset({"read"})
        self.came.set()
        await self.go.wait()
        answer = {"access_token": access, "refresh_token": self.good}
        return json_page({**answer, "token_type": "Bearer", "expires_in": 3600})


async def started(place, path):
    """One of the programs."""
    command = [sys.executable, "-c", PROGRAM, place.url, str(path), KEY]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def wait_for_request(endpoint, program):
    """Wait until the token endpoint is asked, by a program that must not end before."""
    came, ended = asyncio.create_task(endpoint.came.wait()), asyncio.create_task(program.wait())
    await asyncio.wait({came, ended}, return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    came.cancel()
    assert endpoint.came.is_set(), (await program.stderr.read()).decode()


async def store_expired_tokens(path, place, endpoint):
    """What both programs find: tokens that are over, and the client they are of."""
    store, now = FileTokenStore(path, KEY), time.time()
    issuer = place.authority.issuer
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
    client = Registration(issuer=issuer, client_id="desktop", redirect=Loopback().uri)
    await store.put(client.key, client)
    await store.put(tokens.key, tokens)
    return store, tokens.key


@pytest.mark.covers("auth.threat.t13-refresh-race")
async def test_two_programs_renew_a_token_once(tmp_path):
    """T13: the second waits for the first, takes what that has got, and nobody is logged out."""
    path = tmp_path / "tokens.json"
    async with open_town() as place, serve_pages() as authority:
        endpoint = authority.pages["/token"] = Rotating(place)
        store, key = await store_expired_tokens(path, place, f"{authority.url}/token")
        first = await started(place, path)
        await wait_for_request(endpoint, first)
        second = await started(place, path)
        told = await second.stdout.readline()
        endpoint.go.set()
        out, errors = zip(await first.communicate(), await second.communicate(), strict=True)
        renewed = await store.get(key)

    assert b"locking\n" == told
    assert (b"", b"") == errors
    assert [b"locking\nhello\n", b"hello\n"] == list(out)
    assert (1, 0) == (endpoint.rotations, endpoint.reuses)
    assert "access-token-number-1" == renewed.access
    assert "refresh-token-number-1" == renewed.refresh


@pytest.mark.covers("auth.threat.t13-refresh-race")
async def test_a_program_that_is_killed_while_it_renews_locks_nobody_out(tmp_path):
    """T13: its lock ends with it, and the next one renews."""
    path = tmp_path / "tokens.json"
    async with open_town() as place, serve_pages() as authority:
        endpoint = authority.pages["/token"] = Rotating(place)
        await store_expired_tokens(path, place, f"{authority.url}/token")
        first = await started(place, path)
        await wait_for_request(endpoint, first)
        first.kill()
        await first.communicate()
        endpoint.good = "refresh-token-number-0"  # a server with a grace period
        endpoint.go.set()
        second = await started(place, path)
        out, errors = await second.communicate()

    assert (b"locking\nhello\n", b"") == (out, errors)
