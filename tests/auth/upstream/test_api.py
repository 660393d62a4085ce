"""Tests of requests to a provider's API: which token goes where."""

import pytest

from isthmus.auth.authorization_server.upstream.api import (
    FixedToken,
    Upstream,
    UpstreamDenied,
    UpstreamFailed,
    UpstreamUnavailable,
)
from isthmus.auth.authorization_server.upstream.connections import StoredTokenSource
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import UsageError
from support.auth.upstream_flow import log_in_user, make_upstream
from support.auth.upstream_provider import RUDE, UpstreamProvider


@pytest.fixture
async def api(remote, acme, connections):
    """The API as Alice."""
    tokens, _, _ = await log_in_user(remote, acme)
    await connections.add("login-1", "alice", tokens)
    return Upstream(acme, StoredTokenSource(connections, "login-1"), "id-of-alice")


async def test_requests_carry_the_providers_own_token(remote, api):
    """Ours: reading, writing, and decoding what comes back."""
    assert "alice" == (await api.json("/user"))["login"]
    assert {"a": 1} == (await api.post("/notes", {"a": 1})).json()["sent"]
    assert 200 == (await api.get(f"{remote.url}/x", params={"q": "a b"})).status
    assert all(token in remote.access for token in remote.bearers)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/x",
        "//evil.example/x",
        "/\\evil.example/x",
        "http://127.0.0.1.evil.example/",
        "http://127.0.0.1:9/x",
        "user",
        "file:///etc/passwd",
        "http://user:pw@127.0.0.1/x",
    ],
)
@pytest.mark.covers("auth.resource.no-passthrough")
async def test_a_token_goes_to_the_origins_of_its_api_only(remote, api, url):
    """Ours: a URL from anywhere else is refused before anything is sent."""
    with pytest.raises(UsageError):
        await api.get(url)

    assert [] == remote.bearers


async def test_a_redirect_is_not_followed(remote, api):
    """Ours: the token does not go where the API points to."""
    async with UpstreamProvider() as other:
        remote.redirect_to = f"{other.url}/collect"

        answer = await api.get("/user")

        assert (302, []) == (answer.status, other.bearers)


@pytest.mark.parametrize(
    "name",
    ["Authorization", "HOST", "Cookie", "Connection", "Proxy-Authorization", "authorization ",
     "Transfer-Encoding\t", " host", "a b", "a:b", "", "a\r\nb", "hôst"],
)  # fmt: skip
async def test_credentials_are_not_a_callers_to_set(api, name):
    """Ours: nobody sends another token by mistake."""
    with pytest.raises(UsageError):
        await api.get("/user", headers={name: "x"})


async def test_a_token_that_the_api_refuses_is_renewed_once(remote, api):
    """Ours: 401, one refresh, the same request again."""
    remote.access.clear()

    assert "alice" == (await api.json("/user"))["login"]
    assert 2 == remote.count("POST /token")
    assert 2 == len(remote.bearers)


async def test_an_api_that_refuses_every_token_is_asked_twice_and_no_more(remote, api):
    """Ours: a second 401 is the answer."""
    remote.api_status = 401

    with pytest.raises(UpstreamFailed) as failed:
        await api.json("/user")

    assert (401, 2, 2) == (failed.value.status, len(remote.bearers), remote.count("POST /token"))


async def test_an_error_of_the_api_is_not_quoted(remote, api):
    """Ours: json() raises a sentence of ours; who wants the body uses request()."""
    remote.api_status = 422

    with pytest.raises(UpstreamFailed) as failed:
        await api.json("/user")

    assert RUDE not in str(failed.value)


async def test_an_api_that_is_gone_is_unavailable(remote, api):
    """Ours: no answer is no refusal."""
    await remote.stop()

    with pytest.raises(UpstreamUnavailable):
        await api.get("/user")


async def test_a_login_that_is_over_says_so(remote, api):
    """Ours: refused and not renewed: the user has to log in there again."""
    remote.revoke_all()

    with pytest.raises(UpstreamDenied):
        await api.get("/user")


async def test_a_provider_without_an_api_names_the_missing_argument(remote, clock):
    """Ours: the error names the setting."""
    provider = make_upstream(remote, clock, api=[])

    with pytest.raises(UsageError, match="api="):
        await Upstream(provider, FixedToken(Secret("x"))).get("/user")
