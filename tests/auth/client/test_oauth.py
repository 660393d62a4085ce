"""A user logs in: whole flows between a client of ours and a small town of OAuth."""

import asyncio
import gc
import ssl
import time
from urllib.parse import parse_qsl

import aiohttp
import pytest

from isthmus import Client, HttpSse, Server
from isthmus.auth import (
    ByHand,
    Compat,
    MemoryTokenStore,
    NetworkPolicy,
    OAuth,
    PrivateKey,
    ScopeRequest,
    Secret,
    Tokens,
)
from isthmus.auth.client.registration import StaticClient
from isthmus.auth.tokens.dpop import DpopKey
from isthmus.errors import (
    AuthRefused,
    AuthRequired,
    AuthUnsafe,
    ConnectFailed,
    HttpRefused,
    IssuerChanged,
    ScopeShortfall,
    UsageError,
)
from isthmus.testing.faults import until
from support.auth.oauth_town import TownBrowser, make_small_server, open_town

ERAS = pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])


def oauth(browser=None, **options):
    """A way to log in that keeps what it gets in memory."""
    options.setdefault("store", MemoryTokenStore())
    return OAuth("desk", open_browser=browser or TownBrowser(), **options)


def aged(auth, seconds):
    """Let a client's clock run ahead."""
    auth.login.clock = lambda: time.time() + seconds


def flight(auth):
    """What is under way to get tokens."""
    return next(iter(auth.sessions._shared.values())).session._flight


@ERAS
@pytest.mark.covers(
    "auth.client.starts-on-401", "auth.client.resource-metadata-leads", "auth.all.every-request",
    "auth.all.never-in-query", "auth.client.registers",
)  # fmt: skip
async def test_a_user_logs_in_once_and_every_request_carries_the_token(revision):
    """The spec: 401 starts it; the token is in each further request, in the header alone."""
    browser = TownBrowser()
    async with (
        open_town() as here,
        Client(here.url, auth=oauth(browser), revision=revision) as client,
    ):
        assert "hello" == (await client.call_tool("hello")).text
        assert "written" == (await client.call_tool("write")).text
        assert 1 == len(browser.visited)
        sent = [headers for _, path, headers in here.seen if path == "/mcp"]
    assert "authorization" not in sent[0]
    assert all(headers["authorization"].startswith("Bearer ") for headers in sent[1:])
    assert len(sent) > 2
    assert [(200, browser.answers[0][1])] == browser.answers


@pytest.mark.covers(
    "auth.client.pkce-s256", "auth.client.resource-always", "auth.client.resource-specific",
    "auth.client.redirect-registered", "auth.client.application-type", "auth.all.oauth-practice",
)  # fmt: skip
async def test_both_requests_carry_pkce_and_the_resource():
    """The spec: S256, one resource in both, and the redirect URI that was registered."""
    browser = TownBrowser()
    async with open_town() as here:
        async with Client(here.url, auth=oauth(browser)):
            pass
        asked, form = here.authority.asked[0], here.authority.forms[0]
        document = here.authority.registered[0]
    assert "S256" == asked["code_challenge_method"]
    assert here.url == asked["resource"] == form["resource"]
    assert [asked["redirect_uri"]] == document["redirect_uris"]
    assert asked["redirect_uri"] == form["redirect_uri"]
    assert "native" == document["application_type"]
    assert {"authorization_code", "refresh_token"} == set(document["grant_types"])
    assert {"desk", "none"} == {document["client_name"], document["token_endpoint_auth_method"]}


@ERAS
@pytest.mark.covers("auth.client.server-metadata", "auth.client.resource-metadata-leads")
async def test_endpoints_are_where_the_metadata_say_and_nowhere_else(revision):
    """The spec: neither at the usual paths nor below the issuer, where there are others to fall for."""
    async with open_town() as here:
        issuer, elsewhere = here.found("/issuer"), here.found("/deep/within")
        here.resource["authorization_servers"] = [issuer.issuer]
        names = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
        issuer.metadata.update({name: elsewhere.metadata[name] for name in names})
        elsewhere.response = lambda params: {**params, "iss": issuer.issuer}
        async with Client(here.url, auth=oauth(), revision=revision) as client:
            assert "hello" == (await client.call_tool("hello")).text
        used = [len(e.asked) + len(e.forms) + len(e.registered) for e in here.authorities.values()]
    assert [0, 0, 3] == used


@pytest.mark.covers("auth.client.pkce-s256", "auth.client.state-checked")
async def test_every_login_has_a_challenge_and_a_state_of_its_own():
    """The spec: what was seen of one login is worth nothing in the next."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        here.needs["write"] = {"admin"}
        await client.call_tool("write")
        verifiers = [form["code_verifier"] for form in here.authority.forms]
    first, second = browser.params(0), browser.params(1)
    assert [] == [name for name in ("state", "code_challenge") if first[name] == second[name]]
    assert 2 == len(set(verifiers))
    assert all(43 <= len(verifier) <= 128 for verifier in verifiers)
    assert all(len(one["state"]) >= 22 for one in (first, second))  # 128 bits


@pytest.mark.covers("auth.client.scope-selection", "auth.client.challenge-authoritative")
@pytest.mark.parametrize(
    ("challenged", "listed", "asked"),
    [("read", ["other"], "read"), ("", ["a", "b"], "a b"), ("", None, None)],
)
async def test_scopes_are_the_challenges_or_the_resources_or_none(challenged, listed, asked):
    """The spec: in that order, and no parameter where nobody names any."""
    browser = TownBrowser()
    async with open_town() as here:
        here.scope = challenged
        if listed is not None:
            here.resource["scopes_supported"] = listed
        async with Client(here.url, auth=oauth(browser)):
            assert asked == browser.params().get("scope")


@pytest.mark.covers("auth.client.refresh-tokens")
@pytest.mark.parametrize(("listed", "asked"), [(True, "offline_access read"), (False, "read")])
async def test_offline_access_is_asked_for_where_it_is_listed(listed, asked):
    """The spec: nowhere else."""
    browser = TownBrowser()
    async with open_town() as here:
        if listed:
            here.authority.metadata["scopes_supported"] = ["read", "offline_access"]
        async with Client(here.url, auth=oauth(browser)):
            assert asked == browser.params()["scope"]


@pytest.mark.covers("auth.client.step-up", "auth.client.step-up-union")
async def test_more_scopes_are_asked_for_together_with_those_of_before():
    """The spec: the union, once, and the call goes on."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        here.needs["write"] = {"admin"}
        assert "written" == (await client.call_tool("write")).text
        assert ["read", "admin read"] == [browser.params(n)["scope"] for n in range(2)]
        assert "written" == (await client.call_tool("write")).text
    assert 2 == len(browser.visited)


async def test_the_application_may_refuse_scopes():
    """Ours: before its user is asked for them."""
    heard, browser = [], TownBrowser()

    def careful(request: ScopeRequest):
        heard.append(request)
        return "admin" not in request.scopes

    auth = oauth(browser, approve_scopes=careful)
    async with open_town() as here, Client(here.url, auth=auth) as client:
        here.needs["write"] = {"admin"}
        with pytest.raises(ScopeShortfall, match="does not ask its user for admin") as caught:
            await client.call_tool("write")
    assert frozenset({"admin"}) == caught.value.missing
    assert ["", "tools/call write"] == [request.operation for request in heard]
    assert 1 == len(browser.visited)


async def test_some_scopes_may_be_left_out():
    """Ours: what a server lists is more than this program wants to have."""

    async def fewer(request):
        return request.scopes - {"b"}

    browser = TownBrowser()
    async with open_town() as here:
        here.scope, here.resource["scopes_supported"] = "", ["a", "b"]
        async with Client(here.url, auth=oauth(browser, approve_scopes=fewer)):
            assert "a" == browser.params()["scope"]


# --- refreshing -------------------------------------------------------------------------------


@pytest.mark.covers("auth.client.resource-always")
async def test_tokens_are_renewed_before_they_end_and_without_the_browser():
    """Ours: a minute before, or at 80 % of a short life."""
    browser, auth = TownBrowser(), None
    auth = oauth(browser)
    async with open_town() as here, Client(here.url, auth=auth) as client:
        aged(auth, 3600 - 61)
        await client.call_tool("hello")
        assert 0 == here.authority.counts["refresh_token"]
        aged(auth, 3600 - 59)
        await client.call_tool("hello")
        assert 1 == here.authority.counts["refresh_token"]
        assert here.url == here.authority.forms[-1]["resource"]
    assert 1 == len(browser.visited)


async def test_a_restart_with_an_old_token_and_a_good_refresh_token_asks_nobody():
    """Ours: pain 1 of users: other clients go to the browser."""
    store, browser = MemoryTokenStore(), TownBrowser()
    async with open_town() as here:
        async with Client(here.url, auth=oauth(browser, store=store)):
            pass
        later = oauth(browser, store=store)
        aged(later, 7200)
        here.seen.clear()
        async with Client(here.url, auth=later) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert 1 == len(browser.visited)
        assert {"/token", "/mcp"} == {path for _, path, _ in here.seen}


async def test_a_token_that_the_server_forgot_is_renewed_without_the_browser():
    """Ours: 401 tries the refresh token first."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        here.revoked |= set(here.authority.tokens)
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == here.authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


async def test_twenty_calls_with_an_old_token_make_one_refresh():
    """Ours: single flight, so that a rotating server logs nobody out."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        here.revoked |= set(here.authority.tokens)
        await asyncio.gather(*(client.call_tool("hello") for _ in range(20)))
        assert 1 == here.authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


async def test_a_refused_refresh_token_leads_to_the_user():
    """Ours: after invalid_grant the tokens are dropped, and the flow begins anew."""
    browser, store = TownBrowser(), MemoryTokenStore()
    async with open_town() as here, Client(here.url, auth=oauth(browser, store=store)) as client:
        here.revoked |= set(here.authority.tokens)
        here.authority.refreshes.clear()
        assert "hello" == (await client.call_tool("hello")).text
    assert 2 == len(browser.visited)


async def test_an_outage_of_the_authorization_server_opens_no_browser():
    """Ours: a failure of the moment is no reason to log in again."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        here.revoked |= set(here.authority.tokens)
        here.authority.refusal["refresh_token"] = "temporarily_unavailable"
        with pytest.raises(AuthRefused, match="temporarily_unavailable"):
            await client.call_tool("hello")
        here.authority.refusal.clear()
        assert "hello" == (await client.call_tool("hello")).text
    assert 1 == len(browser.visited)


async def test_an_early_renewal_that_fails_leaves_the_token_in_use():
    """Ours: the token is good for a while; it is tried again later."""
    auth = oauth()
    async with open_town() as here, Client(here.url, auth=auth) as client:
        here.authority.refusal["refresh_token"] = "server_error"
        aged(auth, 3600 - 30)
        assert "hello" == (await client.call_tool("hello")).text
        assert "hello" == (await client.call_tool("hello")).text
        assert 1 == here.authority.counts["refresh_token"]


async def test_the_refresh_token_is_kept_where_no_new_one_is_issued():
    """RFC 6749 6: an answer without one leaves the old one good."""
    browser, auth = TownBrowser(), None
    auth = oauth(browser)
    async with open_town() as here:
        issued = here.authority.issued
        async with Client(here.url, auth=auth) as client:
            here.authority.rotates = False
            here.authority.issued = lambda s: {
                k: v for k, v in issued(s).items() if k != "refresh_token"
            }
            for turn in (1, 2):
                here.revoked |= set(here.authority.tokens)
                assert "hello" == (await client.call_tool("hello")).text
                assert turn == here.authority.counts["refresh_token"]
    assert 1 == len(browser.visited)


# --- one flight -------------------------------------------------------------------------------


async def test_many_first_calls_open_one_browser():
    """Ours: whoever needs a token waits for the same login."""
    browser, auth = TownBrowser(), None
    auth = oauth(browser)
    async with open_town() as here:
        clients = [Client(here.url, auth=auth) for _ in range(5)]
        await asyncio.gather(*(client.open() for client in clients))
        await asyncio.gather(*(client.close() for client in clients))
    assert 1 == len(browser.visited)


async def test_calls_run_beside_one_another():
    """Ours: pain 1 of users, by events: each of five calls ends only once all have begun."""
    server, began, all_here = Server("meeting"), [], asyncio.Event()

    @server.tool
    async def meet() -> str:
        began.append(None)
        if len(began) == 5:
            all_here.set()
        await all_here.wait()
        return "met"

    async with open_town(server) as here, Client(here.url, auth=oauth()) as client:
        answers = await asyncio.gather(*(client.call_tool("meet") for _ in range(5)))
    assert ["met"] * 5 == [answer.text for answer in answers]


async def test_a_cancelled_call_leaves_the_login_to_the_others():
    """Ours: the flow goes on as long as somebody waits for it."""
    browser = TownBrowser()
    auth = oauth(browser)
    async with open_town() as here, Client(here.url, auth=auth) as client:
        here.revoked |= set(here.authority.tokens)
        here.authority.refreshes.clear()
        browser.hold = asyncio.Event()
        browser.opened.clear()
        first = asyncio.create_task(client.call_tool("hello"))
        await browser.opened.wait()
        second = asyncio.create_task(client.call_tool("write"))
        await until(lambda: flight(auth)._waiters == 2)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        browser.hold.set()
        assert "written" == (await second).text
    assert 2 == len(browser.visited)


async def test_a_login_ends_with_the_last_who_waits_for_it():
    """Ours: nobody listens on the port any more."""
    browser = TownBrowser(hold=asyncio.Event())
    async with open_town() as here:
        opening = asyncio.create_task(Client(here.url, auth=oauth(browser)).open())
        await browser.opened.wait()
        uri = browser.params()["redirect_uri"]
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(uri)


@pytest.mark.parametrize("kind", [str, HttpSse, lambda url: url.replace("http", "ws")])
async def test_closing_a_client_ends_its_login(kind):
    """Ours: whoever opened it hears why, and nobody listens any more."""
    browser = TownBrowser(hold=asyncio.Event())
    async with open_town() as here:
        client = Client(kind(here.url), auth=oauth(browser))
        opening = asyncio.create_task(client.open())
        await browser.opened.wait()
        uri = browser.params()["redirect_uri"]
        await client.close()
        with pytest.raises(ConnectFailed, match="closed"):
            await opening
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError):
                await session.get(uri)


# --- who the client is ------------------------------------------------------------------------


@pytest.mark.covers("auth.client.registration-order", "auth.client.preregistered")
async def test_a_client_that_was_registered_beforehand_registers_no_more():
    """The spec: pre-registered first; its secret goes by Basic."""
    browser = TownBrowser()
    async with open_town() as here:
        client = StaticClient("known", secret=Secret("s:e c"))
        auth = oauth(browser, clients={here.authority.issuer: client})
        async with Client(here.url, auth=auth):
            pass
        assert [] == here.authority.registered
        assert "known" == browser.params()["client_id"]
        assert "Basic a25vd246cyUzQWUrYw==" == here.authority.forms[0]["Authorization"]


@pytest.mark.covers("auth.client.registration-order", "auth.client.metadata-document")
async def test_a_client_with_a_document_names_that_where_it_may():
    """The spec: before it registers; and the document has what it must have."""
    browser, document = TownBrowser(), "https://desk.example/client.json"
    auth = oauth(browser, client_metadata_url=document)
    async with open_town() as here:
        here.authority.metadata["client_id_metadata_document_supported"] = True
        async with Client(here.url, auth=auth):
            pass
        assert [] == here.authority.registered
    assert document == browser.params()["client_id"] == auth.document()["client_id"]
    assert {"client_name", "redirect_uris"} < set(auth.document())


async def test_a_document_may_come_with_a_key():
    """The spec: private_key_jwt is allowed; the assertion is for the issuer, once."""
    document, key = "https://desk.example/client.json", PrivateKey.generate("ES256")
    auth = oauth(client_metadata_url=document, client_key=key)
    async with open_town() as here:
        here.authority.metadata["client_id_metadata_document_supported"] = True
        async with Client(here.url, auth=auth):
            pass
        form = here.authority.forms[0]
    assert form["client_assertion_type"].endswith(":jwt-bearer")
    assert 3 == len(form["client_assertion"].split("."))
    assert [dict(key.jwk)] == auth.document()["jwks"]["keys"]


@pytest.mark.parametrize("url", ["http://desk.example/c", "https://desk.example", "desk", ""])
@pytest.mark.covers("auth.client.metadata-document")
def test_a_document_stands_at_https_with_a_path(url):
    """The spec: a client id that is a URL is that."""
    with pytest.raises(UsageError, match="https URL with a path"):
        OAuth(client_metadata_url=url)


@pytest.mark.covers("auth.client.registration-order")
async def test_a_client_that_cannot_register_is_told_to_give_a_client_id():
    """The spec: with the redirect URI and the issuer."""
    browser = TownBrowser()
    async with open_town() as here:
        del here.authority.metadata["registration_endpoint"]
        with pytest.raises(AuthRequired, match=r"registers no client by itself.*clients=") as error:
            await Client(here.url, auth=oauth(browser)).open()
    assert here.authority.issuer in str(error.value)
    assert [] == browser.visited


@pytest.mark.covers("auth.client.application-type")
async def test_a_refused_registration_says_why():
    """The spec: with the server's reason, and what to do."""
    async with open_town() as here:
        refusal = {"error": "invalid_redirect_uri", "error_description": "no loopback here"}
        here.authority.register = lambda _: (400, refusal)
        with pytest.raises(
            AuthRefused, match="invalid_redirect_uri: no loopback here; register it"
        ):
            await Client(here.url, auth=oauth()).open()


@pytest.mark.covers("divergences.client.forgotten")
async def test_a_client_that_the_server_has_forgotten_registers_anew_once():
    """Ours: invalid_client is the server's word for it."""
    store, browser = MemoryTokenStore(), TownBrowser()
    async with open_town() as here:
        async with Client(here.url, auth=oauth(browser, store=store)):
            pass
        for key in await store.keys():
            if not key.redirect:
                await store.delete(key)
        token = here.authority.token

        def forgetful(form):
            known = form["client_id"] == f"client-{len(here.authority.registered)}"
            fresh = len(here.authority.registered) > 1
            return token(form) if known and fresh else (401, {"error": "invalid_client"})

        here.authority.token = forgetful
        async with Client(here.url, auth=oauth(browser, store=store)) as client:
            assert "hello" == (await client.call_tool("hello")).text
        assert 2 == len(here.authority.registered)


async def test_a_registration_is_used_again_on_the_port_it_was_made_for():
    """Ours: strict servers compare the port, too."""
    store, browser = MemoryTokenStore(), TownBrowser()
    async with open_town() as here:
        for _ in range(2):
            async with Client(here.url, auth=oauth(browser, store=store)):
                pass
            for key in await store.keys():
                if not key.redirect:
                    await store.delete(key)
        assert 1 == len(here.authority.registered)
    assert browser.params(0)["redirect_uri"] == browser.params(1)["redirect_uri"]


@pytest.mark.covers("auth.client.credentials-by-issuer", "auth.client.servers-kept-apart")
async def test_another_authorization_server_is_told_nothing_of_the_first():
    """The spec: the client registers anew there, and the first one's tokens are dropped."""
    browser = TownBrowser()
    async with open_town() as here, Client(here.url, auth=oauth(browser)) as client:
        second = here.found("/second")
        here.resource["authorization_servers"] = [second.issuer]
        here.revoked |= set(here.authority.tokens)
        second.register = lambda document: (201, {**document, "client_id": "other"})
        assert "hello" == (await client.call_tool("hello")).text
        assert 0 == here.authority.counts["refresh_token"]
        assert "other" == second.asked[0]["client_id"]
        shown = " ".join(map(str, [*second.asked, *second.forms]))
        assert "client-1" not in shown


@pytest.mark.covers("auth.client.credentials-by-issuer")
async def test_a_client_registered_by_hand_stays_with_its_server():
    """The spec: an error, rather than another's credentials."""
    async with open_town() as here:
        auth = oauth(clients={here.authority.issuer: StaticClient("known")})
        async with Client(here.url, auth=auth) as client:
            second = here.found("/second")
            here.resource["authorization_servers"] = [second.issuer]
            here.revoked |= set(here.authority.tokens)
            with pytest.raises(IssuerChanged, match="now names") as caught:
                await client.call_tool("hello")
            assert [] == second.asked
    assert (here.authority.issuer, second.issuer) == (caught.value.before, caught.value.now)


# --- the user ---------------------------------------------------------------------------------


async def test_a_user_who_says_no_is_an_error_that_says_so():
    """Ours: with the authorization server's code."""
    async with open_town() as here:
        here.authority.response = lambda p: {
            "error": "access_denied", "state": p["state"], "iss": p["iss"],
        }  # fmt: skip
        with pytest.raises(AuthRefused, match="did not authorize: access_denied") as caught:
            await Client(here.url, auth=oauth()).open()
    assert "access_denied" == caught.value.error


async def test_a_program_without_a_browser_brings_back_the_address_by_hand():
    """Ours: for terminals, and for applications that have a callback of their own."""
    shown = []

    async def visit(url):
        shown.append(url)
        async with (
            aiohttp.ClientSession() as session,
            session.get(url, allow_redirects=False) as page,
        ):
            return page.headers["Location"]

    auth = oauth(redirect=ByHand("https://app.example/callback", visit))
    async with open_town() as here, Client(here.url, auth=auth) as client:
        assert "hello" == (await client.call_tool("hello")).text
        assert "web" == here.authority.registered[0]["application_type"]
    assert 1 == len(shown)


async def test_on_status_is_told_of_each_step():
    """Ours: so that they can say what they wait for."""
    steps = []
    auth = oauth(on_status=steps.append)
    async with open_town() as here, Client(here.url, auth=auth):
        pass
    assert ["discovering", "registering", "authorizing", "exchanging", "ready"] == [
        status.step for status in steps
    ]
    assert steps[2].page.startswith(here.authority.metadata["authorization_endpoint"])


async def test_a_logout_leaves_nothing():
    """Ours: neither here nor, where it takes that, with the authorization server."""
    store = MemoryTokenStore()
    auth = oauth(store=store)
    async with open_town() as here:
        async with Client(here.url, auth=auth):
            pass
        assert 1 == await auth.logout(here.url)
        assert ["redirect"] == ["redirect" for key in await store.keys() if key.redirect]
        assert 0 == await auth.logout(here.url)
        assert 1 == await auth.logout(registrations=True)
        assert [] == await store.keys()


# --- other servers ----------------------------------------------------------------------------


@pytest.mark.covers("auth.client.default-endpoints", "auth.client.base-url-is-origin")
@pytest.mark.parametrize("metadata", [True, False])
async def test_a_server_without_metadata_has_its_endpoints_at_its_origin(metadata):
    """2025-03-26: metadata first, at the origin, and then the three default paths."""
    async with open_town() as here:
        here.resource = None
        here.announces = False
        if not metadata:
            here.authority.metadata = None
            here.authority.response = lambda p: {"code": p["code"], "state": p["state"]}
        async with Client(here.url, auth=oauth(), revision="2025-03-26") as client:
            assert "hello" == (await client.call_tool("hello")).text
        paths = [path for _, path, _ in here.seen]
    assert "/.well-known/oauth-authorization-server" in paths
    assert ["/register", "/authorize", "/token"] == [
        p for p in paths if p in {"/register", "/authorize", "/token"}
    ]


async def test_the_rules_of_2025_03_26_may_be_switched_off():
    """Ours: then the user is told what to name."""
    async with open_town() as here:
        here.resource, here.announces = None, False
        auth = oauth(compat=Compat(legacy=False))
        with pytest.raises(Exception, match="authorization_server="):
            await Client(here.url, auth=auth).open()


async def test_the_application_may_name_the_authorization_server():
    """Ours: then the MCP server is not asked."""
    browser = TownBrowser()
    async with open_town() as here:
        here.resource = None
        auth = oauth(browser, authorization_server=here.authority.issuer)
        async with Client(here.url, auth=auth):
            pass
        paths = [path for _, path, _ in here.seen]
    assert not any("protected-resource" in path for path in paths)
    assert here.url == browser.params()["resource"]


async def test_a_token_that_nobody_accepts_is_not_asked_for_for_ever():
    """Ours: the browser opens once."""
    browser = TownBrowser()
    async with open_town() as here:
        here.authority.tokens = NoTokens()
        with pytest.raises(AuthRefused, match="does not let in a token that"):
            await Client(here.url, auth=oauth(browser)).open()
    assert 1 == len(browser.visited)


class NoTokens(dict):
    """Tokens that are issued and then unknown."""

    def __contains__(self, key):
        return False


async def test_a_refusal_that_asks_for_no_token_opens_no_browser():
    """Ours: a gateway in between may want something else."""
    browser = TownBrowser()

    async def guarded(scope, receive, send):
        start = {"type": "http.response.start", "status": 401}
        await send({**start, "headers": [(b"www-authenticate", b'Basic realm="gate"')]})
        await send({"type": "http.response.body", "body": b""})

    async with open_town() as here:
        here.gate = lambda scope, receive, send, _headers: guarded(scope, receive, send)
        with pytest.raises(Exception, match="401"):
            await Client(here.url, auth=oauth(browser)).open()
    assert [] == browser.visited


@pytest.mark.covers("auth.client.own-tokens-only")
async def test_a_redirect_to_another_origin_gets_no_token():
    """The spec: tokens go to the server they were issued for."""
    async with open_town() as here, open_town() as other:
        async with Client(here.url, auth=oauth()) as client:
            moved = [(b"location", other.url.encode())]

            async def gate(scope, receive, send, headers):
                await send({"type": "http.response.start", "status": 307, "headers": moved})
                await send({"type": "http.response.body", "body": b""})

            here.gate = gate
            with pytest.raises(Exception, match="redirects to"):
                await client.call_tool("hello")
        assert [] == other.seen


async def test_dpop_may_be_demanded():
    """Ours: a token that is bound to nothing is not used then."""
    async with open_town() as here:
        with pytest.raises(AuthUnsafe, match="bound the token to no key"):
            await Client(here.url, auth=oauth(dpop="require")).open()
    with pytest.raises(UsageError, match="dpop='sometimes'"):
        OAuth(dpop="sometimes")


@pytest.mark.covers("auth.client.version-header")
async def test_discovery_says_which_revision_it_is_for():
    """2025-03-26: a server may answer by it."""
    async with open_town() as here, Client(here.url, auth=oauth()):
        pass
    asked = [headers for _, path, headers in here.seen if path.startswith("/.well-known/")]
    assert {"2026-07-28"} == {headers.get("mcp-protocol-version") for headers in asked}


def test_the_server_of_these_tests_needs_no_token_by_itself():
    """Ours: the gate is the town's."""
    assert isinstance(make_small_server(), Server)


@pytest.mark.covers("auth.all.other-transports")
async def test_the_handshake_of_a_websocket_has_the_token():
    """Ours: it is a request like others, and is made again once there is one."""
    browser = TownBrowser()
    async with open_town() as here:
        url = here.url.replace("http", "ws")
        here.announces = False
        async with Client(url, auth=oauth(browser)) as client:
            assert "hello" == (await client.call_tool("hello")).text
        sent = [
            headers.get("authorization", "")[:7] for way, _, headers in here.seen if way == "WS"
        ]
    assert ["", "Bearer "] == sent
    assert 1 == len(browser.visited)


@pytest.mark.covers("auth.all.other-transports")
async def test_both_halves_of_http_sse_have_the_token():
    """Ours: the stream that opens the session, and every message."""
    browser = TownBrowser()
    async with open_town() as here:
        here.resource["resource"] = f"{here.origin}/sse"
        here.place, here.announces = "/sse", False
        async with Client(HttpSse(f"{here.origin}/sse"), auth=oauth(browser)) as client:
            assert "hello" == (await client.call_tool("hello")).text
        sent = [(p, "authorization" in headers) for _, p, headers in here.seen if p[1] in "sm"]
    assert [("/sse", False), ("/sse", True)] == sent[:2]
    assert {("/messages", True)} == set(sent[2:])
    assert 1 == len(browser.visited)


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_closing_with_tokens_that_are_over_asks_nobody_and_raises_nothing(revision):
    """Ours: the end of a session, and what goes on by itself, is no reason to log in."""
    browser = TownBrowser()
    async with open_town() as here:
        client = Client(here.url, auth=oauth(browser), revision=revision)
        await client.open()
        here.revoked |= set(here.authority.tokens)
        here.authority.refreshes.clear()
        with pytest.raises(HttpRefused, match="401"):
            await client.ping()
        await client.close()
    assert 1 == len(browser.visited)


async def test_metadata_lead_to_no_address_that_nobody_has_named():
    """The spec: the guard stands at the connection; nobody is connected to."""
    browser, visitors = TownBrowser(), []
    elsewhere = await asyncio.start_server(lambda r, w: visitors.append(w), "127.0.0.1", 0)
    port = elsewhere.sockets[0].getsockname()[1]
    async with elsewhere, open_town() as here:
        policy = NetworkPolicy(origins=frozenset({here.origin}))
        for issuer in (
            f"http://127.0.0.1:{port}",
            f"https://localhost:{port}",
            "http://169.254.169.254",
            "https://[::ffff:10.0.0.1]",
            "https://10.0.0.1/tenant",
        ):
            here.resource["authorization_servers"] = [issuer]
            with pytest.raises(AuthUnsafe, match=r"NetworkPolicy|address|http"):
                await Client(here.url, auth=oauth(browser, network=policy)).open()
    assert [] == visitors == browser.visited


async def test_a_logout_is_told_where_the_server_takes_that():
    """RFC 7009: the refresh token is revoked, by the client it was issued to."""
    store, told = MemoryTokenStore(), []
    auth = oauth(store=store)
    async with open_town() as here:
        here.authority.metadata["revocation_endpoint"] = f"{here.authority.issuer}/revoke"
        page = here.page

        def revoking(method, path, query, body, headers):
            if path == "/revoke":
                told.append(dict(parse_qsl(body.decode())))
                return 200, {}, {}
            return page(method, path, query, body, headers)

        here.page = revoking
        async with Client(here.url, auth=auth) as client:
            await client.call_tool("hello")
            assert 1 == await auth.logout()
            refresh = next(iter(here.authority.refreshes))
            assert [(refresh, "client-1")] == [(form["token"], form["client_id"]) for form in told]
            assert "hello" == (await client.call_tool("hello")).text
        assert 2 == len(here.authority.asked)


def test_certificates_of_ones_own_are_believed_on_the_way_to_tokens_too():
    """Ours: the servers that are named on the way may be behind the same authority."""
    trusted = ssl.create_default_context()

    assert trusted is OAuth(tls=trusted).login.make_network("https://mcp.example")._tls


async def test_without_a_browser_a_client_does_not_register_again_and_again():
    """Ours: only who was shown a page and did not come back may have met a forgotten client."""

    def none(_url):
        raise AuthRequired("there is no browser here")

    auth = oauth(none)
    async with open_town() as here:
        for _ in range(3):
            with pytest.raises(AuthRequired, match="no browser"):
                await Client(here.url, auth=auth).open()
        assert 1 == len(here.authority.registered)


@pytest.mark.parametrize(
    ("kind", "dpop", "words"),
    [
        ("N_A", "auto", "nobody here can present"),
        ("DPoP", "off", "nobody here can present"),
        ("Bearer", "require", "bound the token to no key"),
    ],
)
async def test_a_renewed_token_is_of_a_kind_that_was_agreed_to(kind, dpop, words):
    """Ours: an answer to a renewal is held to what an answer to a login is."""
    auth = oauth(dpop=dpop)
    async with open_town() as here:
        authority, issued = here.authority, here.authority.issued
        if dpop == "require":
            authority.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
        authority.issued = lambda scopes: {
            **issued(scopes), "token_type": kind if "refresh_token" in authority.counts else
            "DPoP" if dpop == "require" else "Bearer",
        }  # fmt: skip
        tokens = Tokens(
            access=Secret("old"), issuer=authority.issuer, client_id="c", resource=here.url,
            refresh=Secret("r-1"), token_endpoint=f"{authority.issuer}/token", expires_at=1.0,
            kind="DPoP" if dpop == "require" else "Bearer",
            proof_key=DpopKey.generate().secret_jwk() if dpop == "require" else None,
        )  # fmt: skip
        authority.refreshes["r-1"] = frozenset({"read"})
        auth.login.profile.clients[authority.issuer] = StaticClient("c")
        await auth.login.store.put(tokens.key, tokens)
        with pytest.raises(AuthUnsafe, match=words):
            await Client(here.url, auth=auth).open()


@pytest.mark.parametrize(
    "url",
    [
        "https://user:word@127.0.0.1/mcp", "https://b\u00fccher.example/mcp", "https://h:99999/mcp",
        "wss://user:word@127.0.0.1/mcp",
    ],
)  # fmt: skip
async def test_a_url_that_is_no_resource_is_told_and_leaves_nothing_open(url, caplog):
    """Ours: as an AuthError, which shows no password that is in it."""
    with pytest.raises(AuthRequired, match="cannot be logged in to") as raised:
        await Client(url, auth=oauth()).open()
    gc.collect()

    assert "word" not in str(raised.value).replace("password", "")
    assert "Unclosed" not in caplog.text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"scopes": "files:read"}, "scopes= is a set"),
        ({"store": "tokens"}, r"MemoryTokenStore\(\) or FileTokenStore"),
        ({"redirect": "http://127.0.0.1:8976/callback"}, r"Loopback\(…\), or ByHand"),
        ({"clients": {"https://login.example": "desk"}}, r"give it a StaticClient\(client_id\)"),
    ],
)
def test_impossible_settings_are_refused_at_construction(given, says):
    """Ours: a text in place of a set would be asked for letter by letter."""
    with pytest.raises(UsageError, match=says):
        OAuth(**given)
