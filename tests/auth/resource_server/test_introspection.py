"""Asking the issuer what a token is (RFC 7662)."""

import asyncio
from urllib.parse import parse_qs

import pytest

from isthmus.auth.resource_server.introspection import MAX_PENDING_TOKENS, IntrospectionVerifier
from isthmus.auth.resource_server.verifier import Presented, VerifierUnavailable
from isthmus.auth.tokens.secret import Secret, name_token
from isthmus.errors import UsageError
from support.clock import ManualClock
from support.http.local_web import make_json_response, make_response, serve_responses

ISSUER, RESOURCE, NOW = "https://login.example", "https://mcp.example/mcp", 1_800_000_000.0
ACTIVE = {
    "active": True,
    "aud": RESOURCE,
    "sub": "ada",
    "client_id": "desk",
    "scope": "a b",
    "exp": NOW + 600,
}
TOKEN = Presented("bearer", Secret("an-opaque-token"))


class Issuer:
    """Answers what it is told to."""

    def __init__(self, **changes):
        self.said = {**ACTIVE, **changes}
        self.raw = None

    def __call__(self, asked):
        said = {name: value for name, value in self.said.items() if value is not ...}
        return self.raw or make_json_response(said)


def judge(web, clock=None, **options):
    """A verifier that asks there."""
    given = {"client_id": "a b", "client_secret": "s:e/c-ret-thing", "issuer": ISSUER, **options}
    return IntrospectionVerifier(f"{web.url}/introspect", clock=clock or ManualClock(NOW), **given)


async def test_an_active_token_has_its_user_as_principal():
    """RFC 7662 2.2: what the issuer says of it, and nothing of the token."""
    async with serve_responses(Issuer(cnf={"jkt": "print"}, username="Ada")) as web:
        principal = await judge(web).verify(TOKEN, RESOURCE)

    assert (ISSUER, "ada", "desk", {"a", "b"}, NOW + 600, "print", "Ada") == (
        principal.issuer,
        principal.subject,
        principal.client_id,
        principal.scopes,
        principal.expires_at,
        principal.jkt,
        principal.claims["username"],
    )
    assert {"token": ["an-opaque-token"], "token_type_hint": ["access_token"]} == parse_qs(
        web.requests[0].body.decode()
    )


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_introspection_requests_are_authenticated(method):
    """RFC 7662 2.1, RFC 6749 2.3.1: both halves are form-encoded before they are put together."""
    async with serve_responses(Issuer()) as web:
        await judge(web, method=method).verify(TOKEN, RESOURCE)

    asked = web.requests[0]
    fields = parse_qs(asked.body.decode())
    if method == "client_secret_post":
        assert (["a b"], ["s:e/c-ret-thing"]) == (fields["client_id"], fields["client_secret"])
    else:
        assert "Basic YStiOnMlM0FlJTJGYy1yZXQtdGhpbmc=" == asked.headers["authorization"]


@pytest.mark.covers("auth.resource.audience-checked")
@pytest.mark.parametrize(
    "changes",
    [
        {"active": False},
        {"active": "true"},
        {"active": 1},
        {"active": ...},
        {"aud": "https://other.example/mcp"},
        {"aud": ...},
        {"iss": "https://evil.example"},
        {"exp": NOW - 31},
        {"exp": "soon"},
        {"nbf": NOW + 31},
        {"sub": ..., "client_id": ...},
        {"cnf": {"x5t#S256": "abc"}},
    ],
)
async def test_a_token_that_is_not_active_here_is_refused(changes):
    """RFC 7662 4: the resource server holds the answer against itself."""
    async with serve_responses(Issuer(**changes)) as web:
        assert None is await judge(web).verify(TOKEN, RESOURCE)


@pytest.mark.parametrize(
    "raw",
    [
        make_response(status=401),
        make_response(status=500),
        make_json_response([]),
        make_response(b"x"),
        make_json_response({"active": True}, status=302),
    ],
)
async def test_an_issuer_that_cannot_be_asked_is_an_outage(raw):
    """Ours: a wrong secret of ours, or an outage of theirs, is 503 and not 401."""
    issuer = Issuer()
    issuer.raw = raw
    async with serve_responses(issuer) as web:
        with pytest.raises(VerifierUnavailable, match="introspection"):
            await judge(web).verify(TOKEN, RESOURCE)


async def test_requests_with_one_token_at_once_ask_once():
    """Ours: a client that opens with twenty requests makes one of its issuer."""
    async with serve_responses(Issuer()) as web:
        verifier = judge(web)
        principals = await asyncio.gather(*(verifier.verify(TOKEN, RESOURCE) for _ in range(20)))
        asked = len(web.requests)

    assert 1 == asked
    assert {"ada"} == {principal.subject for principal in principals}


async def test_a_flood_of_made_up_tokens_opens_so_many_requests_and_no_more():
    """Ours: what is beyond that is told to come back, and is no bad token."""
    async with serve_responses(Issuer(active=False)) as web:
        verifier = judge(web)
        made_up = [
            Presented("bearer", Secret(f"made-up-{i}")) for i in range(MAX_PENDING_TOKENS + 20)
        ]
        told = await asyncio.gather(
            *(verifier.verify(one, RESOURCE) for one in made_up), return_exceptions=True
        )
        asked = len(web.requests)

    assert MAX_PENDING_TOKENS == asked
    assert [None] * MAX_PENDING_TOKENS == told[:MAX_PENDING_TOKENS]
    assert {VerifierUnavailable} == {type(one) for one in told[MAX_PENDING_TOKENS:]}


async def test_an_answer_is_believed_for_a_minute_at_most():
    """Ours: a revoked token is good for sixty seconds more, and never longer than it would have been."""
    clock, issuer = ManualClock(NOW), Issuer()
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        first = await verifier.verify(TOKEN, RESOURCE)
        issuer.said["active"] = False
        clock.now += 59.9
        assert first is await verifier.verify(TOKEN, RESOURCE)
        clock.now += 0.2
        assert None is await verifier.verify(TOKEN, RESOURCE)
        issuer.said |= {"active": True, "exp": clock.now + 10}
        assert await verifier.verify(TOKEN, RESOURCE)
        asked = len(web.requests)
        clock.now += 11
        assert await verifier.verify(TOKEN, RESOURCE), "within the leeway, after asking again"

    assert 1 == len(web.requests) - asked


async def test_nothing_is_remembered_across_resources_nor_with_fresh_0():
    """Ours: an answer is for one resource, and who wants to hear of each revocation at once can."""
    async with serve_responses(Issuer()) as web:
        verifier, careful = judge(web), judge(web, fresh=0)
        await verifier.verify(TOKEN, RESOURCE)
        assert None is await verifier.verify(TOKEN, "https://other.example/mcp")
        before = len(web.requests)
        await careful.verify(TOKEN, RESOURCE)
        await careful.verify(TOKEN, RESOURCE)

    assert 2 == len(web.requests) - before


@pytest.mark.covers("auth.threat.t39-revoked-on-stream")
async def test_a_stream_lasts_while_its_token_is_active():
    """Ours: a revoked token ends what it opened, an issuer's outage does not."""
    clock, issuer = ManualClock(NOW), Issuer()
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        first = await verifier.verify(TOKEN, RESOURCE)
        clock.now += 61
        assert await verifier.lasts(first)
        assert first is await verifier.verify(TOKEN, RESOURCE), "the same, so that it is known"
        clock.now += 61
        issuer.raw = make_response(status=500)
        assert await verifier.lasts(first)
        issuer.raw, issuer.said["active"] = None, False
        assert not await verifier.lasts(first)
        assert not await judge(web).lasts(first), "nobody else's is known here"


def test_a_mistake_in_the_settings_is_told_at_once():
    """Ours: an hour of grace for revoked tokens is not to be had."""
    options = {"client_id": "a", "client_secret": "b", "issuer": ISSUER}
    with pytest.raises(UsageError, match="60 s at most"):
        IntrospectionVerifier("https://h/", fresh=3600, **options)
    with pytest.raises(UsageError, match="URL"):
        IntrospectionVerifier("h", **options)


async def test_an_answer_is_recalled_while_it_is_believed():
    """Ours: a token that was revoked is good for as long as without that, and no longer."""
    clock, issuer, name = ManualClock(NOW), Issuer(), name_token(TOKEN.token)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock, fresh=10)
        assert None is verifier.recall(name, RESOURCE)
        principal = await verifier.verify(TOKEN, RESOURCE)
        assert principal is verifier.recall(name, RESOURCE)
        assert None is verifier.recall(name, "https://other.example/mcp")
        issuer.said["active"] = False
        clock.now = NOW + 10
        assert None is verifier.recall(name, RESOURCE)
        assert None is await verifier.verify(TOKEN, RESOURCE)
        clock.now = NOW
        assert None is verifier.recall(name, RESOURCE)


async def test_nothing_is_recalled_where_each_request_is_asked_about():
    """Ours: fresh=0."""
    async with serve_responses(Issuer()) as web:
        verifier = judge(web, fresh=0)
        assert await verifier.verify(TOKEN, RESOURCE)
        assert None is verifier.recall(name_token(TOKEN.token), RESOURCE)
