"""T18: one person consents, another one logs in: the way to the provider and back is one browser's."""

import pytest

from isthmus import Context, Server
from isthmus.auth import UpstreamLogin
from support.auth.authority import make_authority, request_url
from support.auth.upstream_flow import Traveller, make_upstream, redeem_code
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

ISSUER = "http://127.0.0.1:8000"

pytestmark = pytest.mark.covers("auth.threat.t18-other-browser")


@pytest.fixture
async def authority(remote):
    """Our authorization server in front of it."""
    made = make_authority(ISSUER, UpstreamLogin(make_upstream(remote)))
    yield made
    await made.close()


@pytest.fixture
def attacker(authority):
    """A browser of somebody who consents to anything."""
    return Traveller(authority, ISSUER)


@pytest.fixture
def victim(authority):
    """A browser of somebody who is logged in at the provider, where consent is silent."""
    return Traveller(authority, ISSUER)


async def granted(authority):
    """How many grants there are."""
    count = "SELECT count(*) FROM grant_"
    return await authority.store.read(lambda r: r.db.execute(count).fetchone()[0])


@pytest.mark.covers("auth.authority.upstream-state")
async def test_attacker_consents_and_sends_victim_the_upstream_url(
    authority, remote, attacker, victim
):
    """Spec: the state is matched against a cookie that only the consenting browser has."""
    sent = await attacker.consent(request_url(ISSUER))
    back = await victim.abroad(sent.header("location"))

    landed = await victim.get(back)

    assert (410, None) == (landed.status, landed.header("location"))
    assert (0, 0) == (remote.count("POST /token"), await granted(authority))


@pytest.mark.covers("auth.authority.upstream-state")
async def test_it_does_not_help_that_the_victim_has_cookies_of_their_own(
    authority, remote, attacker, victim
):
    """Ours: the cookie is of one journey, not of a browser that once made one."""
    await victim.log_in_upstream(request_url(ISSUER))
    await victim.consent(request_url(ISSUER, state="s2"))
    before = await granted(authority)
    sent = await attacker.consent(request_url(ISSUER))
    back = await victim.abroad(sent.header("location"))

    landed = await victim.get(back)

    assert (410, None, before) == (
        landed.status,
        landed.header("location"),
        await granted(authority),
    )


@pytest.mark.covers("auth.authority.upstream-state")
async def test_what_the_victim_brought_back_is_of_no_use_to_the_attacker(
    authority, remote, attacker, victim
):
    """Spec: the state is single-use: the victim's visit has used it up."""
    sent = await attacker.consent(request_url(ISSUER))
    back = await victim.abroad(sent.header("location"))
    await victim.get(back)

    stolen = await attacker.get(back)

    assert (410, 0) == (stolen.status, await granted(authority))


@pytest.mark.covers("auth.authority.upstream-state")
async def test_an_attackers_login_is_not_put_into_a_victims_browser(
    authority, remote, attacker, victim
):
    """Ours: the callback's URL of somebody else's login (login CSRF) does nothing."""
    remote.user = "mallory"
    sent = await attacker.consent(request_url(ISSUER))
    back = await attacker.abroad(sent.header("location"))

    landed = await victim.get(back, site="cross-site")

    assert (410, 0) == (landed.status, await granted(authority))


async def test_a_code_of_one_journey_is_not_taken_in_another(authority, remote, attacker, victim):
    """Ours: PKCE upstream: a stolen code fits no other journey's verifier."""
    theirs = await victim.abroad((await victim.consent(request_url(ISSUER))).header("location"))
    mine = await attacker.abroad((await attacker.consent(request_url(ISSUER))).header("location"))
    code = theirs.split("code=")[1].split("&")[0]
    own = mine.split("code=")[1].split("&")[0]

    landed = await attacker.get(mine.replace(own, code))

    assert "error=access_denied" in landed.header("location")
    assert 0 == await granted(authority)


async def test_each_browser_gets_its_own_user(authority, remote, attacker, victim):
    """Ours: two that log in at the same time are not confused."""
    server = Server("s", auth=authority.resource_auth(f"{ISSUER}/mcp"))

    @server.tool
    async def whoami(ctx: Context) -> str:
        api = await ctx.upstream("acme")
        return f"{(await api.json('/user'))['login']} {ctx.authenticated.subject}"

    app, found = server.asgi(), []
    first, second = (
        await attacker.consent(request_url(ISSUER)),
        await victim.consent(request_url(ISSUER)),
    )
    remote.user = "mallory"
    mine = await attacker.abroad(first.header("location"))
    remote.user = "alice"
    theirs = await victim.abroad(second.header("location"))
    for browser, back in ((victim, theirs), (attacker, mine)):
        tokens = (await redeem_code(authority, ISSUER, await browser.get(back))).json
        head = modern_head(name="whoami", authorization=f"Bearer {tokens['access_token']}")
        body = modern_body(params={"name": "whoami", "arguments": {}})
        called = await fetch(app, headers=head, body=body)
        found.append(called.json["result"]["content"][0]["text"])

    assert [f"alice {remote.url}|id-of-alice", f"mallory {remote.url}|id-of-mallory"] == found
