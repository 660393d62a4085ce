"""Tests of accounts that are connected in the middle of a call: by whom, for whom, and in both eras."""

import asyncio
import re

import pytest

from isthmus import Accepted, Cancelled, Client, Context, Declined, Principal, Server
from isthmus.auth import LoginPolicy, StaticTokens
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.upstream.api import UpstreamDenied
from isthmus.auth.authorization_server.upstream.login import UpstreamLogin
from isthmus.auth.client.grants.bearer_token import BearerToken
from isthmus.errors import ToolFailed, UpstreamRequired, UsageError
from support.auth.authority import (
    PASSWORD,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)
from support.auth.upstream_flow import Traveller, make_upstream, redeem_code
from support.auth.upstream_provider import RUDE
from support.browser.chromium import serve_in_browser

REVISIONS = ("2025-11-25", "2026-07-28")
LINK = re.compile(r"http://[^ ]+/auth/connect\?ticket=[\w-]+")


class Rig:
    """A running MCP server whose users may connect an account, and a provider for that."""

    def __init__(self, url, users, provider, clock):
        self.issuer, self.provider = url, provider
        store = MemoryAuthStore(clock=clock)
        self.authority = make_authority(url, users, providers=[provider], store=store, clock=clock)
        self.server = server = Server("s", auth=self.authority.resource_auth(f"{url}/mcp"))
        self.questions = []

        @server.tool
        async def whoami(ctx: Context) -> str:
            api = await ctx.upstream("acme")
            return str((await api.json("/user"))["login"])

        self.app = server.asgi()

    def browser(self):
        """A browser that nobody has used."""
        return Traveller(self.authority, self.issuer)

    async def token(self, browser, account="alice"):
        """Log in with a password, consent, and get an access token of ours."""
        page = await browser.log_in(request_url(self.issuer), account=account)
        sent = await browser.decide(page)
        return (await redeem_code(self.authority, self.issuer, sent)).json["access_token"]

    async def call(self, token, revision, visit=None):
        """Call the tool as a client; ``visit`` is what its user does about a link."""

        async def asked(question):
            self.questions.append(question)
            return await visit(question.url)

        elicit = None if visit is None else asked
        auth = BearerToken(token)
        async with Client(
            f"{self.issuer}/mcp", auth=auth, elicit=elicit, revision=revision
        ) as client:
            result = await client.call_tool("whoami")
        if result.is_error:
            raise ToolFailed("whoami", result.text, result)
        return result.text

    async def connected(self, user="alice"):
        """What somebody has connected."""
        return await self.authority.services.connected(user)


async def connect(browser, url):
    """Open a link, agree, and go through the provider; our last page."""
    page = await browser.follow(await browser.get(url))
    assert page.status == 200, page.body
    sent = await browser.post(form_action(page), {**hidden_fields(page), "decision": "allow"})
    return await browser.get(await browser.abroad(sent.header("location")))


async def accepting(browser, url):
    """What a user does who is willing: the client says so at once, the browser takes its time."""
    browser.task = asyncio.ensure_future(connect(browser, url))
    return Accepted(None)


@pytest.fixture
async def rig(tmp_path, acme, clock):
    """The whole of it, with users who have passwords."""
    holder = []

    def make(url):
        holder.append(Rig(url, make_users(tmp_path, "alice", "mallory"), acme, clock))
        return holder[0].app

    async with serve_in_browser(make):
        yield holder[0]
        await holder[0].authority.close()


async def test_the_page_prolongs_a_login_as_the_policy_says(tmp_path, acme, clock):
    """Ours: ``LoginPolicy.idle`` counts on every page."""
    issuer, store = "https://mcp.example", MemoryAuthStore(clock=clock)
    authority = make_authority(
        issuer,
        make_users(tmp_path, "alice"),
        providers=[acme],
        store=store,
        clock=clock,
        login=LoginPolicy(idle=60),
    )
    alice = Traveller(authority, issuer)
    await alice.log_in(request_url(issuer))
    caller = Principal(issuer=issuer, subject="alice", client_id="c", claims={"gid": "g"})
    with pytest.raises(UpstreamRequired) as required:
        await authority.services.upstream(caller, "acme")
    page = await alice.get(await required.value.page())
    ends = "SELECT expires_at FROM login_session"
    found = await store.read(lambda records: records.db.execute(ends).fetchall())
    await authority.close()

    assert 200 == page.status
    assert [True] == [end <= clock() + 60 for (end,) in found]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.covers("auth.resource.same-user-in-browser")
async def test_a_call_asks_for_the_account_and_goes_on_with_it(rig, remote, revision):
    """Spec: URL elicitation for third-party authorization, in both eras of questions."""
    browser = rig.browser()
    token = await rig.token(browser)

    first = await rig.call(token, revision, lambda url: accepting(browser, url))
    again = await rig.call(token, revision)

    assert ("alice", "alice", 1) == (first, again, len(rig.questions))
    assert ["acme"] == await rig.connected()
    assert token not in remote.bearers


async def test_the_link_says_nothing_of_the_user_and_opens_nothing_by_itself(rig):
    """Spec: no personal information in the URL, and not pre-authenticated."""
    token = await rig.token(rig.browser())
    seen = []

    async def decline(url):
        seen.append(await rig.browser().get(url))
        return Declined()

    with pytest.raises(ToolFailed):
        await rig.call(token, "2026-07-28", decline)

    assert 303 == seen[0].status
    assert "/auth/login" in seen[0].header("location")
    assert "alice" not in rig.questions[0].url


@pytest.mark.covers("auth.resource.same-user-in-browser")
async def test_a_link_opened_by_another_user_is_refused(rig, remote):
    """Spec: Alice's link does not connect Bob's account, however it got to Bob."""
    alice, victim = rig.browser(), rig.browser()
    token = await rig.token(alice)
    await rig.token(victim, "mallory")
    pages = []

    async def forwarded(url):
        pages.append(await victim.follow(await victim.get(url)))
        return Cancelled()

    with pytest.raises(ToolFailed):
        await rig.call(token, "2026-07-28", forwarded)

    assert (403, [], []) == (pages[0].status, remote.authorizations, await rig.connected())


@pytest.mark.covers("auth.resource.same-user-in-browser")
async def test_the_form_of_one_browser_is_worth_nothing_in_another(rig, remote):
    """Ours: the consent to connect is bound to user and browser."""
    alice, other = rig.browser(), rig.browser()
    url = await link_of(rig, await rig.token(alice))
    await rig.token(other)
    page = await alice.get(url)

    forged = await other.post(form_action(page), {**hidden_fields(page), "decision": "allow"})
    foreign = await alice.post(
        form_action(page), {**hidden_fields(page), "decision": "allow"}, site="cross-site"
    )

    assert (403, 403, []) == (forged.status, foreign.status, remote.authorizations)


async def link_of(rig, token):
    """The link that a client gets which opens no pages."""
    with pytest.raises(ToolFailed) as failed:
        await rig.call(token, "2025-11-25")
    found = LINK.search(failed.value.text)
    assert found is not None, failed.value.text
    return found[0]


@pytest.mark.parametrize("revision", ["2025-03-26", *REVISIONS])
async def test_a_client_that_opens_no_pages_gets_the_link_in_the_error(rig, revision):
    """Ours: it is good for this user only, so that it may stand there."""
    browser = rig.browser()
    token = await rig.token(browser)

    with pytest.raises(ToolFailed) as failed:
        await rig.call(token, revision)
    done = await connect(browser, LINK.search(failed.value.text)[0])

    assert b"is connected" in done.body
    assert "alice" == await rig.call(token, revision)


async def test_a_link_is_good_once_and_for_ten_minutes(rig, clock):
    """Ours: a ticket is used up by the consent, and expires."""
    browser = rig.browser()
    token = await rig.token(browser)
    first, second = await link_of(rig, token), await link_of(rig, token)
    await connect(browser, first)

    assert 410 == (await browser.get(first)).status
    clock.now += 601
    assert 410 == (await browser.get(second)).status
    assert 410 == (await browser.get(f"{rig.issuer}/auth/connect")).status
    assert 410 == (await browser.get(f"{rig.issuer}/auth/connect?ticket=guess")).status


async def test_a_browser_that_is_not_logged_in_logs_in_and_goes_on(rig):
    """Ours: the page of logins, and then the question, for the user of the link."""
    url = await link_of(rig, await rig.token(rig.browser()))
    browser = rig.browser()

    page = await browser.follow(await browser.get(url))
    fields = {**hidden_fields(page), "account": "alice", "password": PASSWORD}
    page = await browser.follow(await browser.post(form_action(page), fields))

    assert b"Let " in page.body
    assert b"your account at Acme" in page.body
    assert b"Notes" in page.body  # the client that asks


async def test_a_login_for_a_link_approves_no_client(rig):
    """Ours: the consent page has nothing to ask about it, so nothing can be allowed."""
    url = await link_of(rig, await rig.token(rig.browser()))
    browser = rig.browser()
    page = await browser.follow(await browser.get(url))
    fields = {**hidden_fields(page), "account": "alice", "password": PASSWORD}
    sent = await browser.post(form_action(page), fields)

    consent = await browser.get(sent.header("location"))

    assert consent.header("location").startswith(f"{rig.issuer}/auth/connect?")


async def test_cancelling_connects_nothing(rig, remote):
    """Ours: no is no, and the ticket is used up."""
    browser = rig.browser()
    url = await link_of(rig, await rig.token(browser))
    page = await browser.get(url)

    done = await browser.post(form_action(page), {**hidden_fields(page), "decision": "deny"})

    assert b"was not connected" in done.body
    assert (410, []) == ((await browser.get(url)).status, remote.authorizations)


@pytest.mark.parametrize(
    "bend", [{"deny": "access_denied"}, {"deny": RUDE}, {"fault": 500}, {"claims": {"iss": "x"}}]
)
async def test_a_provider_that_says_no_connects_nothing_and_is_not_quoted(rig, remote, bend):
    """Ours: a page of ours, in our words."""
    browser = rig.browser()
    url = await link_of(rig, await rig.token(browser))
    for name, value in bend.items():
        setattr(remote, name, value)

    done = await connect(browser, url)

    assert RUDE.encode() not in done.body
    assert b"is connected" not in done.body
    assert [] == await rig.connected()


async def test_an_unanswered_elicitation_fails_with_advice(rig, monkeypatch):
    """Ours: the user agreed to open the page, and did nothing there."""
    from isthmus.server.asking import context

    monkeypatch.setattr(context, "CONNECT_TIMEOUT_S", 0.05)
    token = await rig.token(rig.browser())

    async def agree(_url):
        return Accepted(None)

    for revision in REVISIONS:
        with pytest.raises(ToolFailed, match="finish it in the browser, then call again"):
            await rig.call(token, revision, agree)


async def test_disconnecting_ends_it_here_and_there(rig, remote):
    """Ours: the tokens are revoked at the provider, and the next call asks again."""
    browser = rig.browser()
    token = await rig.token(browser)
    await connect(browser, await link_of(rig, token))

    assert await rig.authority.services.disconnect("alice", "acme")
    await rig.authority.services.connections.settled()

    assert ([], {}) == (await rig.connected(), remote.refresh)
    assert not await rig.authority.services.disconnect("alice", "acme")
    await link_of(rig, token)


async def test_a_connection_that_the_provider_ended_is_asked_for_anew(rig, remote, clock):
    """Ours: it ends nothing of our own login."""
    browser = rig.browser()
    token = await rig.token(browser)
    await connect(browser, await link_of(rig, token))
    remote.revoke_all()

    with pytest.raises(ToolFailed):  # in the middle of this call
        await rig.call(token, "2026-07-28")
    assert "alice" == await rig.call(token, "2026-07-28", lambda url: accepting(browser, url))


async def test_one_users_connection_is_not_anothers(rig):
    """Ours: Mallory is asked for her own account."""
    browser = rig.browser()
    await connect(browser, await link_of(rig, await rig.token(browser)))

    await link_of(rig, await rig.token(rig.browser(), "mallory"))
    assert [] == await rig.connected("mallory")


async def test_an_unknown_provider_is_a_mistake_that_says_so(rig):
    """Ours: the error names those that there are."""
    with pytest.raises(UsageError, match="there are acme"):
        await rig.authority.services.upstream(await principal_of(rig), "github")


async def principal_of(rig):
    """Who Alice is to the server."""
    from isthmus.auth import Presented, Secret

    token = await rig.token(rig.browser())
    presented = Presented("bearer", Secret(token))
    return await rig.authority.verifier.verify(presented, f"{rig.issuer}/mcp")


async def test_a_program_that_is_called_like_a_user_has_no_account(rig):
    """Ours: a client's own token is nobody's, whatever the client is called."""
    browser = rig.browser()
    await connect(browser, await link_of(rig, await rig.token(browser)))
    program = Principal(issuer=rig.issuer, subject="alice", client_id="alice")

    with pytest.raises(UpstreamDenied, match="a program has no account"):
        await rig.authority.services.upstream(program, "acme")


async def test_users_of_another_issuer_are_not_ours(rig):
    """Ours: their ids may be the same as those of our users."""
    import msgspec

    stranger = msgspec.structs.replace(await principal_of(rig), issuer="https://other.example")

    with pytest.raises(UsageError, match=r"other\.example"):
        await rig.authority.services.upstream(stranger, "acme")


async def test_with_users_of_a_provider_the_other_account_is_connected_by_the_same_user(
    tmp_path, remote, clock
):
    """Ours: who is at the browser is asked of the provider of logins, and compared."""
    staff = make_upstream(remote, clock, name="staff", title="Staff")
    extra = make_upstream(remote, clock)
    holder = []

    def make(url):
        holder.append(Rig(url, UpstreamLogin(staff), extra, clock))
        return holder[0].app

    async with serve_in_browser(make):
        rig = holder[0]
        browser = rig.browser()
        sent = await browser.log_in_upstream(request_url(rig.issuer))
        token = (await redeem_code(rig.authority, rig.issuer, sent)).json["access_token"]
        url = await link_of(rig, token)

        remote.user = "mallory"
        other = rig.browser()
        page = await through(other, url)
        assert 403 == page.status

        remote.user = "alice"
        page = await through(browser, url)
        sent = await browser.post(form_action(page), {**hidden_fields(page), "decision": "allow"})
        done = await browser.get(await browser.abroad(sent.header("location")))
        assert b"is connected" in done.body
        assert "alice" == await rig.call(token, "2026-07-28")
        await rig.authority.close()


async def through(browser, url):
    """Open a link of ours; by way of the provider of logins, to our page."""
    sent = await browser.get(url)
    return await browser.follow(await browser.get(await browser.abroad(sent.header("location"))))


@pytest.mark.parametrize("auth", ["none", "other"])
async def test_a_client_without_elicitation_gets_an_error_that_says_so(auth, remote):
    """Ours: no authorization at all, and one that has no providers."""
    from isthmus.auth import ResourceAuth
    from support.http.asgi_driver import fetch
    from support.http.messages import modern_body, modern_head

    mallory = Principal(issuer="https://a.example", subject="m", client_id="c")
    guard = ResourceAuth(
        "http://localhost:8000/mcp",
        ["https://a.example"],
        StaticTokens({"token-of-m": mallory}),
    )
    server = Server("s", auth=guard if auth == "other" else None, debug=True)

    @server.tool
    async def whoami(ctx: Context) -> str:
        return repr(await ctx.upstream("acme"))

    head = modern_head(name="whoami", authorization="Bearer token-of-m")
    body = modern_body(params={"name": "whoami", "arguments": {}})
    answered = await fetch(server.asgi(), headers=head, body=body)

    words = "nobody has authenticated" if auth == "none" else "see upstream="
    assert words in answered.body.decode()
