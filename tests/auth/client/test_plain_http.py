"""Plain http: no grant sends tokens over it, but to loopback and to origins that Compat names."""

import pytest

from isthmus.auth.client.discovery import Compat
from isthmus.auth.client.grants.client_credentials import ClientCredentials
from isthmus.auth.client.grants.oauth import OAuth
from isthmus.auth.client.store.records import MemoryTokenStore
from isthmus.errors import AuthUnsafe


def user(compat=None):
    return OAuth(store=MemoryTokenStore(), compat=compat)


def machine(compat=None):
    return ClientCredentials("robot", secret="of-the-robot", compat=compat)


@pytest.mark.parametrize("made", [user, machine])
@pytest.mark.parametrize("url", ["http://mcp.example/mcp", "http://10.0.0.7:8000/mcp"])
async def test_tokens_do_not_go_where_anybody_on_the_way_reads_them(made, url):
    """RFC 6750 5.3: TLS, always; the message says what is wrong and what to do about it."""
    with pytest.raises(AuthUnsafe, match=r"plain http.*https URL.*Compat\(plain_http="):
        made().over(url, None)


@pytest.mark.parametrize("made", [user, machine])
@pytest.mark.parametrize("url", ["http://tools:8000/mcp", "http://TOOLS:8000/other"])
async def test_origins_named_by_compat_may_have_tokens_over_plain_http(made, url):
    """Ours: for the origins that are named, and no others."""
    own = made(Compat(plain_http=frozenset({"http://tools:8000"})))
    own.over(url, None)

    with pytest.raises(AuthUnsafe):
        own.over("http://tools:8001/mcp", None)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/mcp", "http://localhost/mcp"])
async def test_loopback_urls_need_no_tls(url):
    """Ours: nobody is on the way."""
    user().over(url, None)
