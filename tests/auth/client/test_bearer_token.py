"""Tokens that somebody else has got."""

import pytest

from isthmus import Client
from isthmus.auth import BearerToken, Secret
from isthmus.errors import AuthRefused, ConnectFailed, ScopeShortfall, UsageError
from support.auth.oauth_town import open_town, respond

TOKEN = "a-token-of-somebody-elses"


@pytest.fixture
async def place():
    """A town that knows the token."""
    async with open_town() as here:
        here.authority.tokens[TOKEN] = frozenset({"read"})
        yield here


async def test_the_token_goes_with_the_first_request(place):
    """Ours: nobody is asked for anything, and nothing is discovered."""
    async with Client(place.url, auth=BearerToken(TOKEN)) as client:
        await client.call_tool("hello")

    assert {"/mcp"} == {path for _, path, _ in place.seen}
    assert {f"Bearer {TOKEN}"} == {headers.get("authorization") for *_, headers in place.seen}


async def test_a_token_that_is_not_taken_is_told_at_once(place):
    """Ours: one request, one refusal, and what to do."""
    with pytest.raises(AuthRefused, match="does not take the token that was given"):
        async with Client(place.url, auth=BearerToken(Secret("a-token-that-is-over"))):
            pass

    assert 1 == len(place.seen)


async def test_a_function_gives_the_token_of_the_moment(place):
    """Ours: after a refusal it is asked again, and what is new is tried."""
    given = iter(["a-token-that-is-over", TOKEN, TOKEN])

    async def current():
        return next(given)

    async with Client(place.url, auth=BearerToken(current)) as client:
        await client.call_tool("hello")

    assert [TOKEN] == list(given)


async def test_a_function_that_knows_no_other_ends_it(place):
    """Ours: the same token is not tried twice."""

    async def current():
        return "a-token-that-is-over"

    with pytest.raises(AuthRefused):
        async with Client(place.url, auth=BearerToken(current)):
            pass

    assert 1 == len(place.seen)


async def test_more_than_the_token_has_is_a_shortfall(place):
    """Ours: the error names the scopes that another token would need."""
    place.needs = {"write": {"write"}}
    async with Client(place.url, auth=BearerToken(TOKEN)) as client:
        with pytest.raises(ScopeShortfall, match="write") as caught:
            await client.call_tool("write")

    assert frozenset({"write"}) == caught.value.missing


@pytest.mark.parametrize("token", ["", "Bearer abc", "abc\n", "abc\r\nX-Evil: 1", "ä"])
def test_what_can_be_no_token_is_refused(token):
    """Ours: a variable that is empty, or ends in a line end, is told where it is given."""
    with pytest.raises(UsageError, match=r"the token (is empty|has invalid characters)"):
        BearerToken(token)


def test_the_token_is_not_seen():
    """T29: neither the object nor what it holds shows it."""
    assert TOKEN not in repr(BearerToken(TOKEN))


@pytest.mark.covers("auth.threat.t29-secrets-shown")
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_refusal_that_repeats_the_token_shows_none(place, status):
    """Ours: some servers say what they were sent, and errors end in logs."""

    async def telling(_scope, _receive, send, headers):
        await respond(send, status, {"you sent": headers["authorization"]}, {})

    place.gate = telling
    with pytest.raises(ConnectFailed) as raised:
        async with Client(place.url, auth=BearerToken(TOKEN)):
            pass

    assert TOKEN not in f"{raised.value} {raised.value.__cause__!r}"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://mcp.example/mcp?key=k", True),
        ("https://mcp.example/mcp", False),
        ("http://127.0.0.1/mcp", False),
        ("http://localhost:80/mcp", False),
        ("https://b\u00fccher.example/mcp", False),
    ],
)
async def test_a_token_over_plain_http_is_warned_of(url, told, caplog):
    """OAuth 2.1 1.5: tokens go over TLS; on networks of one's own that is one's own to decide."""
    auth = BearerToken(TOKEN)
    for _ in range(2):
        auth.over(url, None)

    words = "http://mcp.example/mcp?\u2026 is reached by plain http"
    assert [told] == [words in line for line in caplog.messages or [""]]
