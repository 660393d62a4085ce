"""Tests of logging in and out."""

import pytest

from isthmus.auth import LoginPolicy
from isthmus.auth.authorization_server.pages.login import make_throttled_page
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from isthmus.auth.authorization_server.users.users import (
    HeaderUsers,
    LoginRedirect,
    LoginRefused,
    User,
)
from support.auth.authority import (
    PASSWORD,
    Visitor,
    form_action,
    hidden_fields,
    make_authority,
    make_users,
    request_url,
)
from support.clock import ManualClock

ISSUER = "https://login.example"


@pytest.fixture
async def hosting():
    """Makes authorization servers, and closes them."""
    made = []

    def make(users, **options):
        made.append(make_authority(ISSUER, users, **options))
        return made[-1]

    yield make
    for authority in made:
        await authority.close()


async def test_the_page_names_the_client_and_goes_on_after_a_mistake(hosting, tmp_path):
    """We demand a login page that says why one is there."""
    alice = Visitor(hosting(make_users(tmp_path)), ISSUER)
    page = await alice.follow(await alice.get(request_url(ISSUER)))
    assert b"<bdi>Notes</bdi> asks for access" in page.body
    fields = {**hidden_fields(page), "account": "alice", "password": "wrong horse battery"}
    wrong = await alice.post(form_action(page), fields)
    assert (403, hidden_fields(page)) == (wrong.status, hidden_fields(wrong))
    assert b'role="alert"' in wrong.body
    right = await alice.post(form_action(wrong), {**fields, "password": PASSWORD})
    assert 303 == right.status


async def test_a_logged_in_browser_is_not_asked_to_log_in_again(hosting, tmp_path):
    """We demand one login for several clients."""
    alice = Visitor(hosting(make_users(tmp_path)), ISSUER)
    await alice.log_in(request_url(ISSUER))
    assert b"Allow" in (await alice.follow(await alice.get(request_url(ISSUER)))).body
    page = await alice.follow(await alice.get(request_url(ISSUER)))
    link = f"/auth/login?request={hidden_fields(page)['request']}"
    assert b"Allow" in (await alice.follow(await alice.get(link))).body


async def test_a_login_ends_when_it_is_not_used_and_after_a_day_in_any_case(hosting, tmp_path):
    """The third-party flow's rules demand a session timeout; we have an idle one, too."""
    clock = ManualClock(1e9)
    login = LoginPolicy(idle=100, life=250)
    authority = hosting(
        make_users(tmp_path), store=MemoryAuthStore(clock=clock), clock=clock, login=login
    )
    alice = Visitor(authority, ISSUER)
    await alice.log_in(request_url(ISSUER))

    async def logged_in(after):
        clock.now += after
        page = await alice.follow(await alice.get(request_url(ISSUER)))
        return b"Allow" in page.body

    assert [True, True, True, False] == [await logged_in(wait) for wait in (90, 90, 60, 20)]
    await alice.log_in(request_url(ISSUER))
    assert [True, False] == [await logged_in(wait) for wait in (90, 101)]


async def test_logging_out_is_a_form_of_its_own(hosting, tmp_path):
    """We demand that a link or a picture cannot log anybody out."""
    alice = Visitor(hosting(make_users(tmp_path)), ISSUER)
    await alice.log_in(request_url(ISSUER))
    page = await alice.get("/auth/logout")
    assert b"You are signed in as alice" in page.body
    out = await alice.post(form_action(page), hidden_fields(page))
    assert b"You may close this page" in out.body
    assert "__Host-isthmus-session" not in alice.cookies
    assert b"You are not signed in" in (await alice.get("/auth/logout")).body


async def test_a_user_of_a_proxy_is_asked_at_once_and_each_page_believes_the_proxy(hosting):
    """We demand that another user of the proxy does not answer for the first."""
    users = HeaderUsers("X-User", trusted_proxies=["192.0.2.1"])
    alice = Visitor(hosting(users), ISSUER)
    begun = await alice.get(request_url(ISSUER), **{"x-user": "alice"})
    where = str(begun.header("location"))
    page = await alice.get(where, **{"x-user": "alice"})
    assert b"Signed in as <strong><bdi>alice</bdi></strong>" in page.body
    assert b"Sign out" not in page.body
    fields = {**hidden_fields(page), "decision": "allow"}
    assert 403 == (await alice.post(form_action(page), fields, **{"x-user": "bob"})).status
    sent = await alice.post(form_action(page), fields, **{"x-user": "alice"})
    assert "code=" in str(sent.header("location"))
    assert "__Host-isthmus-session" not in alice.cookies


async def test_a_browser_that_is_not_the_proxy_is_not_logged_in(hosting):
    """We demand that a header from elsewhere opens nothing."""
    users = HeaderUsers("X-User", trusted_proxies=["10.0.0.1"])
    mallory = Visitor(hosting(users), ISSUER)
    begun = await mallory.get(request_url(ISSUER), **{"x-user": "alice"})
    page = await mallory.get(str(begun.header("location")), **{"x-user": "alice"})
    assert (403, True) == (page.status, b"You cannot sign in" in page.body)


class Elsewhere:
    """Users who are sent on by the first page, or refused, or found disabled."""

    def __init__(self, outcome):
        self.outcome = outcome

    async def begin(self, request):
        assert request.binding
        return self.outcome

    async def submit(self, request, form):
        raise RuntimeError("the database is gone")

    async def get(self, user_id):
        return None


@pytest.mark.parametrize(
    ("outcome", "status", "said"),
    [
        (LoginRefused(text="Not on Sundays."), 403, "Not on Sundays."),
        (User(id="alice", disabled=True), 403, "This account is disabled."),
    ],
)
async def test_the_text_of_a_refused_login_is_shown(hosting, outcome, status, said):
    """We demand that backends of others can say what is wrong."""
    alice = Visitor(hosting(Elsewhere(outcome)), ISSUER)
    page = await alice.follow(await alice.get(request_url(ISSUER)))
    assert (status, True) == (page.status, said in page.body.decode())


async def test_a_backend_may_redirect_to_another_login(hosting):
    """We demand that a login page of one's own can be used."""
    away = LoginRedirect(url="https://sso.example/in", cookies=("a=b; Path=/",))
    alice = Visitor(hosting(Elsewhere(away)), ISSUER)
    sent = await alice.follow(await alice.get(request_url(ISSUER)))
    assert ("https://sso.example/in", "b") == (sent.header("location"), alice.cookies["a"])


@pytest.mark.parametrize(("wait", "span"), [(1, "a minute"), (60, "a minute"), (61, "2 minutes")])
def test_a_throttled_login_says_how_long_to_wait(wait, span):
    """We demand a time that people can read, rounded up."""
    assert span in make_throttled_page("alice", wait).notice
    assert wait == make_throttled_page("alice", wait).retry_after
