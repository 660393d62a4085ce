"""Logins at a provider in a real browser, which holds cookies of both and follows every redirect."""

import pytest
import pytest_asyncio

from isthmus.auth import Provider, UpstreamLogin
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from isthmus.core.principal import Principal
from isthmus.errors import UpstreamRequired
from support.auth.authority import PASSWORD, make_authority, make_users, request_url
from support.auth.upstream_provider import UpstreamProvider
from support.browser.chromium import Tab, make_certificate, serve_in_browser
from support.http.loopback_pages import serve_pages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(120),
]


@pytest_asyncio.fixture(loop_scope="session")
async def remote():
    """The provider: it asks once, and then never again."""
    async with UpstreamProvider() as provider:
        yield provider


@pytest_asyncio.fixture(loop_scope="session")
async def client():
    """The web servers of two clients, an honest one and an attacker's."""
    async with serve_pages() as made:
        for path in ("/cb", "/evil"):
            made.pages[path] = lambda _: (200, {"Content-Type": "text/html"}, b"<h1>Connected</h1>")
        yield made


def acme(remote, name="acme"):
    """The provider as our server knows it."""
    return Provider(
        name,
        title="Acme",
        issuer=remote.url,
        client_id=remote.client_id,
        client_secret=remote.client_secret,
        scopes=["openid", "profile"],
        api=[remote.url],
    )


@pytest.fixture
def make(remote, client):
    """Makes an authorization server whose users log in at the provider."""
    good, evil = (
        RegisteredClient(
            client_id=name,
            name="Notes",
            kind=kind,
            redirect_uris=(f"{client.url}{path}",),
            auth_method="none",
        )
        for name, kind, path in (("app", "static", "/cb"), ("evil", "dynamic", "/evil"))
    )
    return lambda url: make_authority(url, UpstreamLogin(acme(remote)), good, evil)


@pytest_asyncio.fixture(loop_scope="session")
async def issuer(make):
    """The URL of a running authorization server, at another site than the provider."""
    async with serve_in_browser(make, host="localhost") as (url, authority):
        yield url
        await authority.close()


async def test_somebody_agrees_here_logs_in_there_and_is_back_at_the_client(
    tab, issuer, client, remote, tmp_path
):
    """We demand that the whole way works in a browser, across sites."""
    await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
    assert "Allow Notes to use" in await tab.heading()
    assert "You are asked to sign in at Acme next." in await tab.page.locator("main").inner_text()
    assert [] == remote.authorizations
    await tab.page.screenshot(path=tmp_path / "consent.png", full_page=True)
    await tab.press("Allow")
    assert "Connected" == await tab.heading()
    assert "code=" in tab.page.url
    assert 1 == len(remote.authorizations)


@pytest.mark.covers("auth.threat.t17-confused-deputy")
async def test_a_link_of_another_client_stops_at_our_page(tab, issuer, client, remote):
    """T17 in a browser that holds the provider's consent: it is asked, and sent nowhere."""
    await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
    await tab.press("Allow")
    before = len(remote.authorizations)
    link = request_url(issuer, client_id="evil", redirect_uri=f"{client.url}/evil")
    page = f'<meta http-equiv="refresh" content="0;url={link.replace("&", "&amp;")}">'
    client.pages["/trap"] = lambda _: (200, {"Content-Type": "text/html"}, page.encode())

    await tab.page.goto(f"{client.url}/trap")
    await tab.page.get_by_role("button", name="Allow").wait_for()

    assert "Not verified" in await tab.page.locator("main").inner_text()
    assert before == len(remote.authorizations)
    assert not any("/evil?" in url for _, url, _ in tab.answers)


@pytest.mark.covers("auth.threat.t18-other-browser")
async def test_the_upstream_url_of_one_browser_ends_in_another(
    chromium, tab, issuer, client, remote
):
    """T18 in two browsers: the attacker agrees, the victim follows the link, nobody gets a code."""
    remote.asks = True
    await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
    await tab.press("Allow")
    assert "Do you agree?" == await tab.heading()
    url, remote.asks = tab.page.url, False
    victim = await Tab.of(chromium)

    await victim.page.goto(url)

    assert "This request is over" == await victim.heading()
    assert victim.page.url.startswith(f"{issuer}/auth/upstream/acme?")
    assert 0 == remote.count("POST /token")
    await victim.context.close()


@pytest.mark.covers("auth.authority.upstream-state")
async def test_over_https_the_cookie_of_a_journey_is_host_bound(
    chromium, make, client, remote, tmp_path
):
    """The security best practices demand it; it is there after approval, and gone afterwards."""
    tab = await Tab.of(chromium, ignore_https_errors=True)
    async with serve_in_browser(make, host="localhost", tls=make_certificate(tmp_path)) as (
        issuer,
        authority,
    ):
        await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
        assert ["__Host-isthmus-browser"] == [c["name"] for c in await tab.context.cookies(issuer)]
        remote.asks = True
        await tab.press("Allow")
        assert "Do you agree?" == await tab.heading()
        seen = await tab.context.cookies(issuer)
        (journey,) = [c for c in seen if c["name"].startswith("__Host-isthmus-upstream-")]
        assert (True, True, "Lax", "/") == (
            journey["secure"],
            journey["httpOnly"],
            journey["sameSite"],
            journey["path"],
        )
        remote.asks = False
        await tab.page.reload()
        assert "code=" in tab.page.url
        assert ["__Host-isthmus-browser"] == [c["name"] for c in await tab.context.cookies(issuer)]
        await authority.close()
    await tab.context.close()


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.covers("auth.resource.same-user-in-browser")
async def test_an_account_is_connected_by_a_login_and_a_question(chromium, remote, tmp_path, width):
    """We demand that a link leads through login and question to the provider, on any screen."""
    tab = await Tab.of(chromium, viewport={"width": width, "height": 720})

    def make(url):
        return make_authority(url, make_users(tmp_path), providers=[acme(remote)])

    async with serve_in_browser(make, host="localhost") as (issuer, authority):
        alice = Principal(issuer=issuer, subject="alice", client_id="app")
        with pytest.raises(UpstreamRequired) as required:
            await authority.services.upstream(alice, "acme")
        await tab.page.goto(await required.value.page())
        await tab.log_in("alice", PASSWORD)
        assert "use your account at Acme?" in await tab.heading()
        await tab.page.screenshot(path=tmp_path / "connect.png", full_page=True)
        wide = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width
        await tab.press("Continue")
        assert "Connected" == await tab.heading()
        assert ["acme"] == await authority.services.connected("alice")
        api = await authority.services.upstream(alice, "acme")
        assert "alice" == (await api.json("/user"))["login"]
        await authority.close()
    assert [] == tab.violated
    await tab.context.close()


async def test_no_page_of_a_provider_runs_anything(tab, issuer, client, remote):
    """We demand that what a provider sends back is not shown."""
    remote.deny = '"><img src=x onerror=alert(1)>'
    await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
    await tab.press("Allow")

    assert "error=server_error" in tab.page.url
    assert "onerror" not in tab.page.url
