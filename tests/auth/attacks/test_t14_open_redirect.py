"""T14: nobody is redirected before client and redirect URI are known to be right."""

import html
import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from isthmus.auth.authorization_server.core.settings import RegistrationPolicy
from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from support.auth.authority import Visitor, make_authority, make_users, request_url
from support.auth.small_authority import ISSUER, SmallAuthority, redirect_parameters

pytestmark = [
    pytest.mark.covers("auth.threat.t14-open-redirect", "auth.authority.redirect-exact"),
]

REGISTERED = "https://app.example/cb?x=1"


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/cb",
        "https://app.example/cb",
        "https://app.example/cb?x=1&y=2",
        "https://app.example/cb/?x=1",
        "https://app.example:444/cb?x=1",
        "https://app.example@evil.example/cb?x=1",
        "https://app.example.evil.example/cb?x=1",
        "HTTPS://app.example/cb?x=1",
        "https://app.example/a/../cb?x=1",
        "javascript:alert(1)",
        "//evil.example/cb",
        REGISTERED + "#f",
    ],
)
async def test_a_redirect_uri_that_is_not_registered_leads_nowhere(uri):
    """2026-07-28: exact match, and the page that says so repeats nothing."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[REGISTERED])
        answer = await small.ask(client_id, redirect_uri=uri)

        assert (400, None) == (answer.status, answer.header("location"))
        assert uri not in answer.body.decode()
        assert "an address that is not registered for it" in answer.body.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"response_type": "token"},
        {"response_type": None},
        {"scope": "nothing-of-the-kind"},
        {"code_challenge": None},
        {"resource": "https://nobody.example"},
    ],
)
async def test_other_faults_do_not_make_a_bad_redirect_uri_a_good_one(change):
    """Ours: an unknown response type used to be redirected before its URI was looked at."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[REGISTERED])
        answer = await small.ask(client_id, **{"redirect_uri": "https://evil.example", **change})

        assert (400, None) == (answer.status, answer.header("location"))


@pytest.mark.parametrize("client_id", ["nobody", "", "https://", "http://app.example/client.json"])
async def test_an_unknown_client_is_sent_nowhere(client_id):
    """2026-07-28: an untrusted URI is never redirected to."""
    async with SmallAuthority() as small:
        answer = await small.ask(client_id, redirect_uri="https://evil.example")

        assert (400, None) == (answer.status, answer.header("location"))


async def test_faults_beside_a_good_redirect_uri_go_back_to_the_client_with_iss():
    """RFC 9207 2: error responses name the issuer, too."""
    client = RegisteredClient(client_id="app", redirect_uris=(REGISTERED,))
    policy = RegistrationPolicy(static=[client])
    async with SmallAuthority(registration=policy) as small:
        answer = await small.ask("app", redirect_uri=REGISTERED, scope="nothing")

        assert answer.header("location").startswith(REGISTERED + "&")
        assert {
            "x": "1",
            "error": "invalid_scope",
            "state": "s1",
            "iss": ISSUER,
        } == redirect_parameters(answer)


FAULTS = [
    {"response_type": "token"},
    {"scope": "nothing-of-the-kind"},
    {"code_challenge": None},
    {"resource": "https://nobody.example"},
]
PAGE = "https://evil.example/cb"


@pytest.mark.parametrize("change", FAULTS)
async def test_a_link_to_this_server_is_no_link_to_whoever_registered(change):
    """2026-07-28, OAuth 2.1 7.12.2: only a trusted URI is redirected to with nobody asked."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[PAGE])
        answer = await small.ask(client_id, redirect_uri=PAGE, **change)

        assert (400, None) == (answer.status, answer.header("location"))
        back = dict(parse_qsl(urlsplit(answer.body.decode().removeprefix("back: ")).query))
        assert ("s1", ISSUER) == (back["state"], back["iss"])
        assert "error" in back


@pytest.mark.parametrize("change", FAULTS)
@pytest.mark.parametrize("uri", ["http://127.0.0.1:51000/callback", "com.example.app:/cb"])
async def test_a_program_on_the_computer_is_told_at_once(change, uri):
    """RFC 6749 4.1.2.1: it waits for an answer, and leads to nobody's page."""
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[uri])
        answer = await small.ask(client_id, redirect_uri=uri, **change)

        assert ISSUER == redirect_parameters(answer)["iss"]


@pytest.mark.parametrize("change", FAULTS)
async def test_a_client_of_the_operators_is_told_at_once(change):
    """RFC 6749 4.1.2.1: the operator of the server vouches for it."""
    policy = RegistrationPolicy(static=[RegisteredClient(client_id="app", redirect_uris=(PAGE,))])
    async with SmallAuthority(registration=policy) as small:
        assert (
            ISSUER
            == redirect_parameters(await small.ask("app", redirect_uri=PAGE, **change))["iss"]
        )


async def test_people_decide_themselves_whether_they_go_on_to_a_page_that_nobody_knows(tmp_path):
    """OAuth 2.1 7.12.2: the user is informed, and nothing of a request gets out of the link."""
    page = PAGE + "?a='%22%3E<b"
    other = RegisteredClient(client_id="evil", kind="dynamic", redirect_uris=(page,))
    authority = make_authority(ISSUER, make_users(tmp_path), other)
    url = request_url(ISSUER, client_id="evil", redirect_uri=page, response_type="x", state='"><b>')
    answer = await Visitor(authority, ISSUER).get(url)
    await authority.close()

    assert (400, None) == (answer.status, answer.header("location"))
    assert b"<strong>evil.example</strong>" in answer.body
    link = re.search(rb'<a href="([^"]*)" rel="noreferrer">', answer.body)
    assert html.unescape(link[1].decode()).startswith(PAGE)
    assert b"<b" not in answer.body.replace(b"<body>", b"")
