"""T14: nobody is redirected before client and redirect URI are known to be right."""

import pytest

from small_authority import ISSUER, SmallAuthority, sent

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
    async with SmallAuthority() as small:
        client_id = await small.public(redirect_uris=[REGISTERED])
        answer = await small.ask(client_id, redirect_uri=REGISTERED, scope="nothing")

        assert answer.header("location").startswith(REGISTERED + "&")
        assert {"x": "1", "error": "invalid_scope", "state": "s1", "iss": ISSUER} == sent(answer)
