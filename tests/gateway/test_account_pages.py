"""Pages about accounts under attack: other users, other browsers, forged forms, races, frames and private addresses."""

import asyncio

import pytest

from isthmus.errors import UsageError
from isthmus.gateway.accounts.pages import AccountPages, LocalVisitors
from isthmus.host.accounts.accounts import LINK_LIFE_S
from isthmus.host.accounts.ownership import LOCAL_PRINCIPAL
from support.auth.authority import Visitor
from support.gateway.account_town import (
    ADA,
    BOB,
    PUBLIC_URL,
    Person,
    open_account_town,
    read_query,
    route_pages,
)


async def test_our_question_comes_before_the_login_of_the_issuer():
    """Spec 2025-11-25 basic/authorization: consent first, which says server, issuer, scopes and for whom."""
    async with open_account_town() as town:
        town.here.resource["scopes_supported"] = ["read"]
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        page = await person.get(url)
        shown = page.body.decode()
        for part in ("<bdi>crm</bdi>", town.here.origin, "<code>read</code>", ADA):
            assert part in shown
        assert [] == town.here.authority.asked
        assert page.header("location") is None
        answer = await person.decide(page)
        asked = read_query(answer.header("location"))
        assert ("S256", f"{PUBLIC_URL}/connect/back") == (
            asked["code_challenge_method"],
            asked["redirect_uri"],
        )
        assert town.here.url == asked["resource"]


async def test_the_pages_have_no_script_and_cannot_be_framed():
    """Ours: a strict policy, no referrer, no cache; nothing from elsewhere."""
    async with open_account_town() as town:
        page = await Person(town.pages, ADA).get(town.accounts.connect(ADA, "crm"))
        policy = page.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert ("DENY", "no-referrer", "no-store") == (
            page.header("x-frame-options"),
            page.header("referrer-policy"),
            page.header("cache-control"),
        )
        assert b"<script" not in page.body
        cookie = page.header("set-cookie")
        assert cookie.startswith("__Host-isthmus-browser=")
        assert "HttpOnly; SameSite=Lax; Secure" in cookie


@pytest.mark.parametrize("other", [BOB, None])
async def test_a_link_of_another_user_is_refused(other):
    """Spec 2025-11-25 client/elicitation#phishing: whoever opens it is the one who caused it."""
    async with open_account_town() as town:
        url = town.accounts.connect(ADA, "crm")
        page = await Person(town.pages, other).get(url)
        assert 403 == page.status
        assert b"Nothing was done" in page.body
        assert 200 == (await Person(town.pages, ADA).get(url)).status


async def test_a_link_is_good_once_and_for_a_while():
    """Ours: neither twice, nor later, nor changed."""
    async with open_account_town() as town:
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        page = await person.get(url)
        assert 303 == (await person.decide(page)).status
        assert 410 == (await person.decide(page)).status
        assert 410 == (await person.get(url[:-4] + "AAAA")).status
        late = town.accounts.connect(ADA, "crm")
        now = town.accounts.vault.clock()
        town.accounts.vault.clock = lambda: now + LINK_LIFE_S + 1
        assert 410 == (await person.get(late)).status


@pytest.mark.parametrize(
    "forged", [{"site": "cross-site"}, {"site": "same-site"}, {"origin": "https://evil.example"}]
)
async def test_a_form_of_another_page_is_refused(forged):
    """Ours: what the browser says of who sent it counts."""
    async with open_account_town() as town:
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        page = await person.get(url)
        fields = {"handle": read_query(url)["handle"], "decision": "allow"}
        token = page.body.decode().partition('name="token" value="')[2].partition('"')[0]
        answer = await person.post("/connect", {**fields, "token": token}, **forged)
        assert 403 == answer.status
        assert 403 == (await person.post("/connect", {**fields, "token": "0" * 64})).status
        assert 403 == (await person.post("/connect", fields)).status
        stranger = Person(town.pages, ADA)  # her own, in another browser
        assert 403 == (await stranger.post("/connect", {**fields, "token": token})).status
        assert [] == town.here.authority.asked


async def test_a_login_ends_in_the_browser_that_began_it():
    """Ours: another browser, or another user in it, gets nothing, and does not end the login either."""
    async with open_account_town() as town:
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        answer = await person.decide(await person.get(url))
        back = await person.log_in_at_issuer(answer.header("location"))
        elsewhere, bob = Person(town.pages, ADA), Person(town.pages, BOB)
        bob.cookies = dict(person.cookies)
        for one in (elsewhere, bob):
            assert 403 == (await one.get(back)).status
        assert "missing" == await town.state()
        assert 200 == (await person.get(back)).status
        assert ("connected", "missing") == (await town.state(), await town.state(BOB))


async def test_of_two_who_come_back_with_one_state_one_fails():
    """Ours: a state is used up by the first."""
    async with open_account_town() as town:
        person, url = Person(town.pages, ADA), town.accounts.connect(ADA, "crm")
        answer = await person.decide(await person.get(url))
        back = await person.log_in_at_issuer(answer.header("location"))
        pages = await asyncio.gather(*(person.get(back) for _ in range(4)))
        assert [200, 403, 403, 403] == sorted(page.status for page in pages)
        assert 1 == town.here.authority.counts["authorization_code"]


async def test_an_answer_of_another_issuer_is_not_used():
    """Spec 2026-07-28 basic/authorization#authorization-response-validation: nothing of it."""
    async with open_account_town() as town:
        town.here.authority.response = lambda given: {**given, "iss": "https://evil.example"}
        page = await town.connect()
        assert 502 == page.status
        assert 0 == town.here.authority.counts["authorization_code"]
        assert "missing" == await town.state()


async def test_a_user_who_says_no_connects_nothing():
    """Ours: on our page, and at the issuer."""
    async with open_account_town() as town:
        page = await town.connect(decision="deny")
        assert b"was not connected" in page.body
        town.here.authority.response = lambda given: {
            "error": "access_denied", "state": given["state"], "iss": given["iss"],
        }  # fmt: skip
        assert b"Nothing was connected" in (await town.connect()).body
        assert "missing" == await town.state()


@pytest.mark.parametrize(
    "issuer",
    [
        "https://10.0.0.1",
        "https://169.254.169.254/latest",
        "https://[fd00::1]",
        "http://192.168.1.1",
    ],
)
async def test_metadata_that_name_a_private_address_are_refused(issuer):
    """Ours: the guard of the network judges what a server names, before anything is sent there."""
    async with open_account_town() as town:
        town.here.resource["authorization_servers"] = [issuer]
        page = await Person(town.pages, ADA).get(town.accounts.connect(ADA, "crm"))
        assert 502 == page.status
        assert b"Nothing was connected" in page.body


async def test_what_a_server_says_is_text_on_a_page():
    """Ours: markup and invisible marks in a scope or a message do not act."""
    async with open_account_town() as town:
        town.here.resource["scopes_supported"] = ["<b>x</b>", "read"]
        page = await Person(town.pages, ADA).get(town.accounts.connect(ADA, "crm"))
        assert b"<b>" not in page.body
        assert 200 == page.status


async def test_accounts_are_listed_connected_again_and_forgotten_on_a_page():
    """Ours: each form is bound to the browser, the user and the server."""
    async with open_account_town() as town:
        await town.connect()
        person, url = Person(town.pages, ADA), town.pages.make_list_url(ADA)
        page = await person.get(url)
        assert b">Connected<" in page.body
        assert 403 == (await Person(town.pages, BOB).get(url)).status
        again = await person.decide(page, "connect")
        assert again.header("location").startswith(f"{PUBLIC_URL}/connect?handle=")
        assert 403 == (await person.decide(page, "forget", server="other")).status
        page = await person.decide(page, "forget")
        assert b"Not connected" in page.body
        assert "missing" == await town.state()


async def test_without_a_sign_in_the_pages_are_for_the_user_of_this_machine():
    """Ours: on this machine the link is enough; from elsewhere, or for others, it is not."""
    async with open_account_town() as town:
        pages = AccountPages(town.accounts, "http://127.0.0.1:8080", visitors=LocalVisitors())
        url = town.accounts.connect(LOCAL_PRINCIPAL, "crm")
        here = Visitor(route_pages(pages), pages.origin, address="127.0.0.1")
        away = Visitor(route_pages(pages), pages.origin)
        assert 403 == (await away.get(url)).status
        assert 403 == (await here.get(town.accounts.connect(ADA, "crm"))).status
        answer = await here.decide(await here.get(url))
        assert (
            "http://127.0.0.1:8080/connect/back"
            == read_query(answer.header("location"))["redirect_uri"]
        )


@pytest.mark.parametrize("url", ["http://gateway.example", "https://gateway.example/below"])
async def test_pages_stand_at_an_origin_that_nobody_reads_along(url):
    """Ours: https, or this machine."""
    async with open_account_town() as town:
        with pytest.raises(UsageError, match="public_url="):
            AccountPages(town.accounts, url)
