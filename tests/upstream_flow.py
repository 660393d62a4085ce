"""How tests get tokens of a provider without a browser, and a clock that they can put forward."""

import hashlib
import time
from urllib.parse import parse_qsl, urlsplit

import aiohttp

from isthmus.auth.secret import Secret
from isthmus.auth.upstream.provider import Provider
from isthmus.core.base64url import to_text

__all__ = ["BACK", "Clock", "authorized", "known", "logged_in"]

BACK = "http://127.0.0.1:1/auth/upstream/acme"


class Clock:
    """Seconds since the epoch that a test can move."""

    def __init__(self):
        self.ahead = 0.0

    def __call__(self):
        return time.time() + self.ahead


def known(remote, clock, **more):
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


async def authorized(remote, provider, verifier=None, nonce=None):
    """What a browser comes back with, without a browser: the parameters of the redirect."""
    verifier, nonce = verifier or Secret.random(), nonce or Secret.random()
    challenge = to_text(hashlib.sha256(verifier.reveal().encode()).digest())
    url = await provider.login_url(
        state=Secret.random(), challenge=challenge, nonce=nonce, redirect_uri=BACK
    )
    async with (
        aiohttp.ClientSession() as browser,
        browser.get(url, allow_redirects=False) as answer,
    ):
        back = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    return back, verifier, nonce


async def logged_in(remote, provider):
    """Tokens of a user who just logged in, and the provider's whole answer."""
    back, verifier, nonce = await authorized(remote, provider)
    tokens, told = await provider.exchange(Secret(back["code"]), verifier, BACK)
    return tokens, told, nonce
