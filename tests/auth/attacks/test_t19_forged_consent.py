"""T19: a consent cannot be posted by another page, nor framed."""

import pytest

from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from support.auth.authority import (
    Visitor,
    client_answer,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)

ISSUER = "https://login.example"
OTHER = RegisteredClient(
    client_id="evil", name="Evil", redirect_uris=("https://evil.example/cb",), auth_method="none"
)
PROVES = pytest.mark.covers("auth.threat.t19-forged-consent", "auth.authority.consent-page")


@pytest.fixture
async def authority(tmp_path):
    made = make_authority(ISSUER, make_users(tmp_path, "alice", "mallory"), OTHER)
    yield made
    await made.close()


@pytest.fixture
async def alice(authority):
    return Visitor(authority, ISSUER)


async def still_open(visitor, page):
    """The question on a page can still be answered: nobody has."""
    sent = await visitor.decide(page)
    return client_answer(sent).keys() >= {"code", "state", "iss"}


@PROVES
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_form_from_another_site_is_refused_even_with_the_right_token(alice, site):
    """The security best practices demand protection against forged consent."""
    page = await alice.log_in(request_url(ISSUER))
    refused = await alice.post(
        form_action(page), {**hidden_fields(page), "decision": "allow"}, site
    )
    assert (403, None) == (refused.status, refused.header("location"))
    assert await still_open(alice, page)


@PROVES
@pytest.mark.parametrize("origin", ["https://evil.example", "http://login.example"])
async def test_a_form_from_another_origin_is_refused_by_browsers_that_say_only_that(alice, origin):
    """We demand the same of browsers without ``Sec-Fetch-Site``."""
    page = await alice.log_in(request_url(ISSUER))
    fields = {**hidden_fields(page), "decision": "allow"}
    refused = await alice.post(form_action(page), fields, None, origin=origin)
    assert 403 == refused.status
    assert await still_open(alice, page)


@PROVES
@pytest.mark.parametrize("token", ["", "0" * 64, "é"])
async def test_a_form_without_its_token_is_refused(alice, token):
    """The security best practices demand a CSRF token."""
    page = await alice.log_in(request_url(ISSUER))
    refused = await alice.post(
        form_action(page), {**hidden_fields(page), "token": token, "decision": "allow"}
    )
    assert 403 == refused.status
    assert await still_open(alice, page)


@PROVES
async def test_the_token_of_another_request_of_another_client_or_of_another_form_is_refused(alice):
    """We demand that a token is good for one form of one request of one client."""
    mine = await alice.log_in(request_url(ISSUER))
    evil = await alice.follow(
        await alice.get(
            request_url(ISSUER, client_id="evil", redirect_uri="https://evil.example/cb")
        )
    )
    same = await alice.follow(await alice.get(request_url(ISSUER)))
    for page in (evil, same):
        fields = {**hidden_fields(page), "token": hidden_fields(mine)["token"], "decision": "allow"}
        assert 403 == (await alice.post(form_action(page), fields)).status
    logout = mine.body.decode().rpartition('name="token" value="')[2].partition('"')[0]
    fields = {**hidden_fields(mine), "token": logout, "decision": "allow"}
    assert 403 == (await alice.post(form_action(mine), fields)).status
    assert await still_open(alice, mine)


@PROVES
async def test_the_token_of_another_user_is_refused(alice, authority):
    """We demand that who was asked is who answers, also in one browser."""
    page = await alice.log_in(request_url(ISSUER))
    kept = dict(alice.cookies)
    await alice.log_in(request_url(ISSUER))  # the same browser, asked as alice
    del alice.cookies["__Host-isthmus-session"]
    other = await alice.log_in(request_url(ISSUER), account="mallory")
    assert b"mallory" in other.body
    assert 403 == (await alice.decide(page)).status
    alice.cookies = kept
    assert await still_open(alice, page)


@PROVES
async def test_another_browser_cannot_open_or_answer_a_request(alice, authority):
    """The security best practices demand that consent is bound to the browser."""
    page = await alice.log_in(request_url(ISSUER))
    mallory = Visitor(authority, ISSUER)
    await mallory.log_in(request_url(ISSUER), account="mallory")
    link = f"/auth/consent?request={hidden_fields(page)['request']}"
    assert 410 == (await mallory.get(link)).status
    assert 410 == (await mallory.decide(page)).status
    assert 410 == (await Visitor(authority, ISSUER).decide(page)).status
    assert await still_open(alice, page)


@PROVES
async def test_an_answer_is_given_once(alice):
    """We demand that a replayed form does nothing, and that the back button leads to a page."""
    page = await alice.log_in(request_url(ISSUER))
    assert "code" in client_answer(await alice.decide(page))
    again = await alice.decide(page)
    assert (410, None) == (again.status, again.header("location"))
    assert 410 == (await alice.decide(page, "deny")).status
    back = await alice.get(f"/auth/consent?request={hidden_fields(page)['request']}")
    assert 410 == back.status
    assert b"This request is over" in back.body


@PROVES
async def test_no_page_can_be_framed_cached_or_run_a_script(alice):
    """The security best practices demand that consent cannot be framed."""
    pages = [
        await alice.follow(await alice.get(request_url(ISSUER))),
        await alice.log_in(request_url(ISSUER)),
        await alice.get("/auth/logout"),
        await alice.get("/auth/consent?request=x"),
        await alice.get(request_url(ISSUER, client_id="unknown")),
    ]
    assert [200, 200, 200, 410, 400] == [page.status for page in pages]
    for page in pages:
        policy = page.header("content-security-policy")
        assert (
            "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'"
            == policy
        )
        assert "DENY" == page.header("x-frame-options")
        assert "no-store" == page.header("cache-control")
        assert "no-referrer" == page.header("referrer-policy")


@PROVES
async def test_cookies_are_host_bound_secure_and_out_of_reach_of_scripts(authority):
    """The security best practices demand __Host-, Secure, HttpOnly and SameSite=Lax."""
    alice = Visitor(authority, ISSUER)
    begun = await alice.get(request_url(ISSUER))
    page = await alice.follow(begun)
    sent = await alice.post(
        form_action(page),
        {**hidden_fields(page), "account": "alice", "password": "correct horse battery"},
    )
    cookies = [begun.header("set-cookie"), sent.header("set-cookie")]
    names = [cookie.partition("=")[0] for cookie in cookies]
    assert ["__Host-isthmus-browser", "__Host-isthmus-session"] == names
    for cookie in cookies:
        assert {"Path=/", "HttpOnly", "SameSite=Lax", "Secure"} == {*cookie.split("; ")[1:]}


@PROVES
async def test_a_login_gets_a_session_that_nobody_knew_before(alice):
    """We demand that a session that was put into the browser beforehand is worth nothing."""
    alice.cookies["__Host-isthmus-session"] = "f" * 43
    await alice.log_in(request_url(ISSUER))
    first = alice.cookies["__Host-isthmus-session"]
    assert first != "f" * 43
    page = await alice.get("/auth/logout")
    await alice.post("/auth/logout", hidden_fields(page))
    assert "__Host-isthmus-session" not in alice.cookies
    alice.cookies["__Host-isthmus-session"] = first
    login = await alice.follow(await alice.get(request_url(ISSUER)))
    assert b"Sign in</h1>" in login.body


@PROVES
async def test_a_forged_logout_or_login_is_refused(alice):
    """We demand that nobody is logged out, or in as somebody else, by another page."""
    login = await alice.follow(await alice.get(request_url(ISSUER)))
    fields = {**hidden_fields(login), "account": "mallory", "password": "correct horse battery"}
    assert 403 == (await alice.post("/auth/login", {**fields, "token": "x"})).status
    assert 403 == (await alice.post("/auth/login", fields, "cross-site")).status
    await alice.log_in(request_url(ISSUER))
    assert 403 == (await alice.post("/auth/logout", {"token": "x"})).status
    assert b"You are signed in as alice" in (await alice.get("/auth/logout")).body
