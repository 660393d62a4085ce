"""T16, the client's half: URLs that a browser, or a shell, would make something else of."""

import pytest

from isthmus.auth import NetworkPolicy, OAuth
from isthmus.auth.client.discovery import DiscoveryResult, ServerMetadata
from isthmus.auth.client.grants.authorization_code import AuthorizationRequest
from isthmus.auth.client.redirect import open_default_browser, visit_in_browser
from isthmus.auth.protocol import ClientIdentity
from isthmus.errors import AuthRequired, AuthUnsafe

URLS = (
    "file:///etc/passwd",
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "vbscript:msgbox(1)",
    "ms-settings:",
    "smb://evil.example/share",
    "ftp://evil.example/",
    "-flag",
    "--new-window=https://evil.example",
    "https://a" + chr(34) + " & calc",
    "https://a.example/$(touch x)`id`",
    "https://a.example/a b",
    "https://a.example/" + chr(39) + ";id;" + chr(39),
    "https://a.example/\\..\\calc.exe",
    "https://a.example/" + chr(10) + "id",
    "https://user:secret@a.example/",
    "https://a.example\\@evil.example/",
    "http://evil.example/authorize",
    "http://127.0.0.1.evil.example/",
    "https://",
    "HTTP://evil.example/",
    "",
)


@pytest.mark.covers("auth.threat.t16-dangerous-urls", "auth.client.url-opened-safely")
@pytest.mark.parametrize("url", URLS)
async def test_it_is_not_opened(url):
    """The spec: only https, and http of this machine; CVE-2025-6514 was the rest."""
    opened = []
    with pytest.raises(AuthUnsafe, match="not opened in a browser"):
        await visit_in_browser(opened.append, url)
    assert [] == opened


@pytest.mark.parametrize("url", URLS)
async def test_no_endpoint_makes_a_login_url_of_it(url):
    """Ours: what metadata name is put together with a query before it is opened."""
    server = ServerMetadata(issuer="https://a.example", authorization_endpoint=url)
    login = AuthorizationRequest(
        discovered=DiscoveryResult(resource="https://mcp.example", server=server),
        identity=ClientIdentity(client_id="c"),
        redirect_uri="http://127.0.0.1:1/callback",
        scopes=frozenset(),
    )
    opened = []
    with pytest.raises(AuthUnsafe):
        await visit_in_browser(opened.append, login.url())
    assert [] == opened


async def test_a_good_one_is_opened_as_it_is():
    """Ours: an opener may be asynchronous, too."""
    opened = []

    async def opener(url):
        opened.append(url)

    await visit_in_browser(opener, "https://a.example/authorize?x=1&scope=a%20b")
    await visit_in_browser(opened.append, "http://127.0.0.1:8000/authorize")
    assert 2 == len(opened)


async def test_no_shell_sees_it(monkeypatch):
    """Ours: the standard library's opener gets one argument; without a browser one is told."""
    import webbrowser

    seen = []
    monkeypatch.setattr(webbrowser, "open", lambda url: seen.append(url) or False)
    with pytest.raises(AuthRequired, match=r"no browser here.* --no-browser prints the URL"):
        await open_default_browser("https://a.example/")
    assert ["https://a.example/"] == seen
    assert NetworkPolicy() == OAuth(network=NetworkPolicy()).login.policy
