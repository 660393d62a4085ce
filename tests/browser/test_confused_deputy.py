"""The third-party flow in a real browser: who agreed to what, and where."""

import pytest
import pytest_asyncio

from chromium import Tab, serving
from house import house, request_url
from isthmus.auth.authorization_server.clients import RegisteredClient
from isthmus.auth.upstream.login import UpstreamLogin
from loopback_pages import pages
from upstream_flow import Clock, known
from upstream_provider import UpstreamProvider

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(120),
]

CONNECTED = (200, {"Content-Type": "text/html"}, b"<h1>Connected</h1>")


@pytest_asyncio.fixture(loop_scope="session")
async def provider():
    """A provider that asks nobody twice, as real ones do."""
    async with UpstreamProvider() as remote:
        yield remote


@pytest_asyncio.fixture(loop_scope="session")
async def client():
    """The web server of an honest client."""
    async with pages() as made:
        made.pages["/cb"] = lambda _: CONNECTED
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def evil():
    """The web server of an attacker, who has registered a client."""
    async with pages() as made:
        made.pages["/cb"] = lambda _: CONNECTED
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def issuer(provider, client, evil):
    """The URL of a server whose users log in at the provider; another site than that."""
    clients = [
        RegisteredClient(client_id=name, name=name.title(), redirect_uris=(f"{web.url}/cb",),
                         kind="dynamic")
        for name, web in (("honest", client), ("evil", evil))
    ]  # fmt: skip

    def make(url):
        users = UpstreamLogin(known(provider, Clock()))
        return house(url, users, *clients, consent="remember")

    async with serving(make, host="localhost") as (url, authority):
        yield url
        await authority.close()


def link(issuer, name, web):
    """What a client has its user open."""
    return request_url(issuer, client_id=name, redirect_uri=f"{web.url}/cb")


async def test_somebody_agrees_logs_in_elsewhere_and_is_back_at_the_client(
    tab, issuer, client, provider
):
    """The third-party flow: our consent, the provider's login, our code."""
    await tab.page.goto(link(issuer, "honest", client))
    assert "Allow Honest to use" in await tab.heading()
    assert "Acme" in await tab.page.locator("main").inner_text()
    assert 0 == provider.count("GET /authorize")
    await tab.press("Allow")
    assert "Connected" == await tab.heading()
    assert "code=" in tab.page.url
    assert tab.page.url.startswith(client.url)


@pytest.mark.covers("auth.threat.t17-confused-deputy", "auth.authority.consent-before-forwarding")
async def test_a_link_of_another_client_never_skips_our_question(
    tab, issuer, client, evil, provider
):
    """T17 in a browser: a consent to one client, and the provider's cookie, open nothing to another."""
    await tab.page.goto(link(issuer, "honest", client))
    await tab.press("Allow")
    asked = provider.count("GET /authorize")
    anchor = f'<a href="{link(issuer, "evil", evil).replace("&", "&amp;")}">Win</a>'
    evil.pages["/"] = lambda _: (200, {"Content-Type": "text/html"}, anchor.encode())
    await tab.page.goto(evil.url)
    await tab.page.get_by_text("Win").click()
    assert "Allow Evil to use" in await tab.heading()
    assert asked == provider.count("GET /authorize"), "the provider was not asked for it"
    assert "/cb" not in evil.paths(), "nothing went to the attacker"
    await tab.press("Deny")
    assert "error=access_denied" in tab.page.url
    assert "code=" not in tab.page.url
    assert asked == provider.count("GET /authorize")


@pytest.mark.covers("auth.threat.t18-other-browser", "auth.authority.upstream-state")
async def test_an_attackers_consent_does_not_carry_a_victims_login(
    chromium, tab, issuer, evil, provider
):
    """T18 in a browser: the attacker agrees, and sends the victim on to the provider."""
    attacker = await Tab.of(chromium)
    await attacker.page.goto(link(issuer, "evil", evil))
    form = {"decision": "allow"}
    for name in ("request", "token"):
        form[name] = await attacker.page.locator(f"input[name={name}]").first.input_value()
    agreed = await attacker.context.request.post(  # a browser would follow at once
        f"{issuer}/auth/consent", form=form, max_redirects=0
    )
    onward = agreed.headers["location"]
    assert onward.startswith(provider.url)
    await attacker.context.close()

    await tab.page.goto(onward)
    assert tab.page.url.startswith(issuer)
    assert "Connected" != await tab.heading()
    assert "/cb" not in evil.paths()
    assert 0 == provider.count("POST /token")
