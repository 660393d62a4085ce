"""Tests of users who log in at a provider: the way there, the way back, and what stands on it."""

import asyncio

import pytest

from isthmus import Context, Server
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.upstream.login import UpstreamLogin
from isthmus.errors import UsageError
from support.auth.authority import client_answer, make_authority, request_url
from support.auth.upstream_flow import Traveller, make_upstream, post_form, redeem_code
from support.auth.upstream_provider import NASTY, RUDE, UpstreamProvider
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

ISSUER = "http://127.0.0.1:8000"


class Rig:
    """An MCP server with users of a provider, the provider, and a browser."""

    def __init__(self, remote, provider, clock, **options):
        self.remote, self.provider, self.clock = remote, provider, clock
        login = UpstreamLogin(provider, allow=options.pop("allow", None))
        self.authority = make_authority(
            ISSUER, login, store=MemoryAuthStore(clock=clock), clock=clock, **options
        )
        self.server = Server("s", auth=self.authority.resource_auth(f"{ISSUER}/mcp"))
        self.runs = 0

        @self.server.tool
        async def whoami(ctx: Context) -> str:
            self.runs += 1
            api = await ctx.upstream(provider.name)
            return str((await api.json("/user"))["login"])

        self.app = self.server.asgi()
        self.browser = self.new_browser()

    def new_browser(self):
        """A browser that nobody has used."""
        return Traveller(self.authority, ISSUER)

    async def tokens(self):
        """Log in, and get what the client gets."""
        sent = await self.browser.log_in_upstream(request_url(ISSUER))
        return (await redeem_code(self.authority, ISSUER, sent)).json

    async def call(self, token, tool="whoami"):
        """Call a tool."""
        head = modern_head(name=tool, authorization=f"Bearer {token}")
        body = modern_body(params={"name": tool, "arguments": {}})
        return await fetch(self.app, headers=head, body=body)

    async def renewed(self, tokens):
        """The answer of our token endpoint to a refresh token."""
        fields = {
            "grant_type": "refresh_token",
            "refresh_token": tokens["refresh_token"],
            "client_id": "app",
        }
        return await post_form(self.authority, ISSUER, "/token", fields)

    async def close(self):
        """Let go of everything."""
        await self.authority.close()


@pytest.fixture
async def rig(remote, acme, clock):
    """The whole of it, with an OpenID provider."""
    made = Rig(remote, acme, clock)
    yield made
    await made.close()


def text(exchange):
    """What a tool answered."""
    return exchange.json["result"]["content"][0]["text"]


@pytest.mark.covers("auth.authority.third-party-bound")
@pytest.mark.covers("auth.resource.no-passthrough")
async def test_a_login_at_the_provider_becomes_tokens_of_ours(rig, remote):
    """Spec: our own code and tokens, bound to the third party's, which is used for its API only."""
    tokens = await rig.tokens()
    answered = await rig.call(tokens["access_token"])

    assert "alice" == text(answered)
    assert [tokens["access_token"]] != remote.bearers
    assert tokens["access_token"] not in remote.bearers
    assert set(remote.bearers) <= set(remote.access)


@pytest.mark.covers("auth.authority.third-party-kept")
async def test_the_providers_tokens_never_reach_the_client(rig, remote):
    """2025-11-25 client/elicitation: third-party credentials are not the client's to see."""
    tokens = await rig.tokens()
    answered = await rig.call(tokens["access_token"])
    seen = f"{tokens} {answered.headers} {answered.body!r}"

    assert remote.access
    assert [] == [token for token in remote.access if token in seen]


async def test_the_provider_sees_us_and_never_the_client(rig, remote):
    """Ours: our client id, our callback, our PKCE; nothing of the client's request goes on."""
    await rig.tokens()
    (asked,) = remote.authorizations

    assert remote.client_id == asked["client_id"]
    assert f"{ISSUER}/auth/upstream/acme" == asked["redirect_uri"]
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    assert not {"s1", "notes.example"} & set(asked.values())


async def test_consent_names_the_provider_and_what_is_asked_of_it(rig):
    """Spec: the consent page shows upstream scopes."""
    page = await rig.browser.follow(await rig.browser.get(request_url(ISSUER)))

    assert b"Acme" in page.body
    assert b"<code>files</code>" in page.body


@pytest.mark.covers("auth.authority.upstream-state")
async def test_nothing_of_the_provider_is_touched_before_approval(rig, remote):
    """Spec: no state, no cookie and no redirect to the provider before consent."""
    page = await rig.browser.follow(await rig.browser.get(request_url(ISSUER)))

    assert 200 == page.status
    assert not [name for name in rig.browser.cookies if "upstream" in name]
    denied = await rig.browser.decide(page, "deny")
    assert "access_denied" == client_answer(denied)["error"]
    assert [] == remote.authorizations


@pytest.mark.covers("auth.authority.upstream-state")
async def test_a_state_is_good_once(rig):
    """Spec: state is single-use: the same URL again gives nothing."""
    sent = await rig.browser.consent(request_url(ISSUER))
    cookies = dict(rig.browser.cookies)
    back = await rig.browser.abroad(sent.header("location"))
    first = await rig.browser.get(back)
    rig.browser.cookies.update(cookies)
    second = await rig.browser.get(back)

    assert (303, 410) == (first.status, second.status)
    assert second.header("location") is None


@pytest.mark.covers("auth.authority.upstream-state")
async def test_a_state_is_good_for_ten_minutes(rig, clock):
    """Spec: state expires within ten minutes."""
    sent = await rig.browser.consent(request_url(ISSUER))
    back = await rig.browser.abroad(sent.header("location"))
    clock.now += 601

    late = await rig.browser.get(back)

    assert (410, 0) == (late.status, rig.remote.count("POST /token"))


@pytest.mark.covers("auth.authority.upstream-state")
async def test_a_callback_without_the_cookie_is_refused(rig, remote):
    """Spec: state is matched against the cookie of the browser that approved."""
    sent = await rig.browser.consent(request_url(ISSUER))
    back = await rig.browser.abroad(sent.header("location"))
    rig.browser.cookies = {k: v for k, v in rig.browser.cookies.items() if "upstream" not in k}

    lost = await rig.browser.get(back)

    assert (410, None, 0) == (lost.status, lost.header("location"), remote.count("POST /token"))


@pytest.mark.parametrize("query", ["", "?state=x", "?code=y", "?state=a&state=b&code=c"])
async def test_a_callback_without_a_request_is_a_page(rig, query):
    """Ours: whatever is put into the URL."""
    page = await rig.browser.get(f"{ISSUER}/auth/upstream/acme{query}")

    assert page.status in {400, 410}
    assert page.header("location") is None


@pytest.mark.parametrize("iss", ["https://evil.example", "https://acme.example/"])
@pytest.mark.covers("auth.threat.t06-mix-up")
async def test_an_answer_of_another_provider_is_thrown_away(rig, remote, iss):
    """Ours: RFC 9207 upstream: no token request, and nothing of its error is believed."""
    remote.iss, remote.deny = iss, "access_denied"

    sent = await rig.browser.log_in_upstream(request_url(ISSUER))

    assert ("server_error", 0) == (client_answer(sent)["error"], remote.count("POST /token"))


async def test_a_response_without_a_promised_issuer_is_refused(rig, remote):
    """Ours: RFC 9207 2.4: advertised and absent."""
    remote.iss = remote.url  # advertised
    await rig.provider.endpoints()
    remote.iss = ""

    sent = await rig.browser.log_in_upstream(request_url(ISSUER))

    assert ("server_error", 0) == (client_answer(sent)["error"], remote.count("POST /token"))


async def test_the_answer_of_one_provider_is_none_of_another(remote, acme, clock):
    """Ours: each provider has a callback of its own."""
    other = make_upstream(remote, clock, name="other")
    rig = Rig(remote, acme, clock, providers=[other])
    sent = await rig.browser.consent(request_url(ISSUER))
    back = await rig.browser.abroad(sent.header("location"))

    page = await rig.browser.get(back.replace("/upstream/acme", "/upstream/other"))

    assert (410, 0) == (page.status, remote.count("POST /token"))
    await rig.close()


@pytest.mark.parametrize(
    ("error", "heard"),
    [
        ("access_denied", "access_denied"),
        ("temporarily_unavailable", "temporarily_unavailable"),
        ("invalid_scope", "server_error"),
        (RUDE, "server_error"),
    ],
)
@pytest.mark.covers("auth.authority.third-party-safe")
async def test_the_client_hears_that_it_failed_and_none_of_the_providers_words(
    rig, remote, caplog, error, heard
):
    """Spec: failures of the third party are handled: our error, our iss, the client's state."""
    remote.deny = error

    sent = await rig.browser.log_in_upstream(request_url(ISSUER))

    assert {"error": heard, "state": "s1", "iss": ISSUER} == client_answer(sent)
    assert RUDE not in f"{sent.headers}{caplog.text}"


@pytest.mark.parametrize(
    ("change", "heard"),
    [
        ({"fault": 500}, "temporarily_unavailable"),
        ({"claims": {"iss": "https://evil.example"}}, "access_denied"),
        ({"claims": {"sub": NASTY * 10}}, "access_denied"),
    ],
)
@pytest.mark.covers("auth.authority.third-party-safe")
async def test_a_failed_exchange_leaves_nothing(rig, remote, caplog, change, heard):
    """Spec: no code of ours without a login there."""
    for name, value in change.items():
        setattr(remote, name, value)

    sent = await rig.browser.log_in_upstream(request_url(ISSUER))

    assert heard == client_answer(sent)["error"]
    assert RUDE not in caplog.text
    assert 0 == await rows(rig, "upstream")
    assert 0 == await rows(rig, "grant_")


async def rows(rig, table):
    """How many rows a table has."""
    count = f"SELECT count(*) FROM {table}"  # noqa: S608 - a name of these tests
    return await rig.authority.store.read(lambda r: r.db.execute(count).fetchone()[0])


async def test_a_provider_that_is_down_is_temporarily_unavailable_to_the_client(rig, remote):
    """Ours: the browser is not left on a page of an error."""
    await remote.stop()

    sent = await rig.browser.consent(request_url(ISSUER))

    assert "temporarily_unavailable" == client_answer(sent)["error"]


async def test_a_user_who_is_not_allowed_is_refused(remote, acme, clock):
    """Ours: allow= decides about each user."""
    rig = Rig(remote, acme, clock, allow=lambda user: user.name == "Bob")

    sent = await rig.browser.log_in_upstream(request_url(ISSUER))
    assert "access_denied" == client_answer(sent)["error"]
    remote.user = "bob"
    sent = await rig.browser.log_in_upstream(request_url(ISSUER))
    assert "code" in client_answer(sent)
    await rig.close()


async def test_tokens_of_a_user_who_is_no_longer_allowed_end(remote, acme, clock):
    """Ours: allow= is asked again, with the same name, and a no ends tokens of both kinds."""
    ours = {"Bob"}
    rig = Rig(remote, acme, clock, allow=lambda user: user.name in ours)
    remote.user = "bob"
    tokens = await rig.tokens()
    assert 200 == (await rig.call(tokens["access_token"])).status
    remote.expire()
    clock.now += 500  # the provider's tokens were renewed meanwhile, and the name is still known
    tokens = (await rig.renewed(tokens)).json
    assert 200 == (await rig.call(tokens["access_token"])).status

    ours.clear()
    clock.now += 3
    assert 401 == (await rig.call(tokens["access_token"])).status
    assert "invalid_grant" == (await rig.renewed(tokens)).json["error"]
    await rig.close()


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_a_crash_after_the_exchange_leaves_nothing_usable(rig, remote, clock, monkeypatch):
    """Ours: the provider's tokens are there, no grant stands on them, and they are swept away."""

    async def crash(*_, **__):
        raise RuntimeError("killed here")

    monkeypatch.setattr(rig.authority, "approve", crash)
    sent = await rig.browser.log_in_upstream(request_url(ISSUER))

    assert (500, None) == (sent.status, sent.header("location"))
    assert (1, 0) == (await rows(rig, "upstream"), await rows(rig, "grant_"))
    clock.now += 601
    await rig.authority.sweep()
    await rig.authority.services.connections.settled()
    assert 0 == await rows(rig, "upstream")
    assert {} == remote.refresh


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_twenty_requests_with_an_expired_upstream_token_renew_it_once(rig, remote, clock):
    """Spec: status is validated and renewal handled; ours: once."""
    remote.lifetime = 300
    tokens = await rig.tokens()
    clock.now += 301

    answers = await asyncio.gather(*(rig.call(tokens["access_token"]) for _ in range(20)))

    assert {"alice"} == {text(one) for one in answers}
    assert 2 == remote.count("POST /token")


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_a_refused_refresh_is_401_for_all_and_ends_the_grant(rig, remote, clock):
    """Spec: a MCP token is not honoured whose third party's login is over."""
    remote.lifetime = 300
    tokens = await rig.tokens()
    clock.now += 301
    remote.refresh_error = "invalid_grant"

    answers = await asyncio.gather(*(rig.call(tokens["access_token"]) for _ in range(20)))

    assert {401} == {one.status for one in answers}
    assert (0, 2) == (rig.runs, remote.count("POST /token"))
    renewed = await rig.renewed(tokens)
    assert (400, "invalid_grant") == (renewed.status, renewed.json["error"])


async def test_a_provider_that_is_down_is_503_and_no_login(rig, remote, clock):
    """Ours: 401 would send everybody into a login that cannot succeed."""
    remote.lifetime = 300
    tokens = await rig.tokens()
    clock.now += 301
    await remote.stop()

    down = await rig.call(tokens["access_token"])
    await remote.start()
    back = await rig.call(tokens["access_token"])

    assert (503, "5", None) == (
        down.status,
        down.header("retry-after"),
        down.header("www-authenticate"),
    )
    assert (200, "alice") == (back.status, text(back))


async def test_the_end_of_a_session_there_ends_the_grant_here(clock):
    """Ours: what cannot be renewed there is not renewed here."""
    async with UpstreamProvider(refreshes=False, lifetime=300) as remote:
        provider = make_upstream(remote, clock)
        rig = Rig(remote, provider, clock)
        tokens = await rig.tokens()

        assert 300 >= tokens["expires_in"]
        clock.now += 301
        assert 401 == (await rig.call(tokens["access_token"])).status
        assert 400 == (await rig.renewed(tokens)).status
        await rig.close()


@pytest.mark.covers("auth.authority.third-party-bound")
async def test_revoking_ours_revokes_the_providers(rig, remote):
    """Spec: one lifecycle: RFC 7009 at our endpoint ends in RFC 7009 at the provider's."""
    tokens = await rig.tokens()

    done = await post_form(
        rig.authority,
        ISSUER,
        "/revoke",
        {"token": tokens["refresh_token"], "client_id": "app"},
    )
    await rig.authority.services.connections.settled()

    assert (200, {}, {}) == (done.status, remote.access, remote.refresh)
    assert 401 == (await rig.call(tokens["access_token"])).status


@pytest.mark.covers("auth.threat.t21-wrong-audience")
@pytest.mark.covers("auth.resource.no-passthrough")
async def test_a_token_of_the_provider_is_nothing_at_our_endpoint(rig, remote):
    """Spec: tokens that were not issued for this server are refused."""
    await rig.tokens()

    for token in [*remote.access, *remote.refresh]:
        assert 401 == (await rig.call(token)).status
    assert 0 == rig.runs


async def test_two_logins_in_one_browser_do_not_disturb_each_other(rig):
    """Ours: each journey has a cookie of its own."""
    first = await rig.browser.consent(request_url(ISSUER, state="one"))
    second = await rig.browser.consent(request_url(ISSUER, state="two"))

    for sent, state in ((second, "two"), (first, "one")):
        back = await rig.browser.abroad(sent.header("location"))
        assert state == client_answer(await rig.browser.get(back))["state"]
    assert not [name for name in rig.browser.cookies if "upstream" in name]


def test_a_login_is_of_one_authorization_server(acme):
    """Ours: used twice, its tokens would lie in the wrong store."""
    login = UpstreamLogin(acme)
    make_authority(ISSUER, login)

    with pytest.raises(UsageError):
        make_authority(ISSUER, login)
