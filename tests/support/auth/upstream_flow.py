"""Tokens of a provider without a browser, and a clock that tests can put forward."""

import time
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp

from isthmus.auth.authorization_server.upstream.provider import Provider
from isthmus.auth.tokens.secret import Secret
from support.auth.authority import VERIFIER, Visitor, client_answer, s256_challenge
from support.http.asgi_driver import fetch

__all__ = [
    "BACK",
    "Traveller",
    "authorize_user",
    "log_in_user",
    "make_upstream",
    "post_form",
    "redeem_code",
]

BACK = "http://127.0.0.1:1/auth/upstream/acme"


def make_upstream(remote, clock=time.time, **more):
    """A provider as our server knows it."""
    return Provider(
        **{
            "name": "acme",
            "issuer": remote.url,
            "client_id": remote.client_id,
            "client_secret": remote.client_secret,
            "scopes": ["openid", "files"],
            "api": [remote.url],
            "title": "Acme",
            "clock": clock,
            **more,
        }
    )


async def authorize_user(remote, provider, verifier=None, nonce=None):
    """The parameters of the redirect that a browser would come back with."""
    verifier, nonce = verifier or Secret.random(), nonce or Secret.random()
    url = await provider.login_url(
        state=Secret.random(),
        challenge=s256_challenge(verifier.reveal()),
        nonce=nonce,
        redirect_uri=BACK,
    )
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(url, allow_redirects=False) as answer,
    ):
        back = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    return back, verifier, nonce


async def log_in_user(remote, provider):
    """Tokens of a user who just logged in, and the provider's whole answer."""
    back, verifier, nonce = await authorize_user(remote, provider)
    tokens, told = await provider.exchange(Secret(back["code"]), verifier, BACK)
    return tokens, told, nonce


class Traveller(Visitor):
    """A browser without a window that visits our server and a provider, with cookies for both.

    Args:
        authority: our ASGI app.
        issuer: its URL.
    """

    def __init__(self, authority, issuer):
        super().__init__(authority, issuer)
        self.elsewhere = {}
        self.visited = []

    async def abroad(self, url):
        """Open a URL of the provider's; where it sends one back to."""
        self.visited.append(url)
        async with (
            aiohttp.ClientSession(cookies=self.elsewhere) as browser,
            browser.get(url, allow_redirects=False) as answer,
        ):
            self.elsewhere.update({name: found.value for name, found in answer.cookies.items()})
            return answer.headers["Location"]

    async def consent(self, url, decision="allow"):
        """Open an authorization request, answer our consent page; the answer to that."""
        page = await self.follow(await self.get(url))
        assert page.status == 200, page.body
        return await self.decide(page, decision)

    async def log_in_upstream(self, url):
        """The whole way: our consent, the provider, and back; our last answer."""
        sent = await self.consent(url)
        back = await self.abroad(sent.header("location"))
        return await self.get(back)


async def redeem_code(authority, issuer, exchange):
    """The answer of our token endpoint to the code that a client was sent."""
    fields = {
        "grant_type": "authorization_code",
        "code": client_answer(exchange)["code"],
        "redirect_uri": "https://notes.example/cb",
        "client_id": "app",
        "code_verifier": VERIFIER,
    }
    return await post_form(authority, issuer, "/token", fields)


async def post_form(authority, issuer, path, fields):
    """The answer to a form that a client posts."""
    headers = {
        "host": urlsplit(issuer).netloc,
        "content-type": "application/x-www-form-urlencoded",
    }
    return await fetch(authority, path=path, headers=headers, body=urlencode(fields).encode())
