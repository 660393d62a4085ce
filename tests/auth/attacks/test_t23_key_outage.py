"""T23: a flood of unknown keys, and an issuer that is out of reach."""

import asyncio

import pytest

from isthmus.auth.net.network import Network, desktop
from isthmus.auth.resource_server.jwt import JWTVerifier
from isthmus.auth.resource_server.verifier import ByIssuer, Presented, VerifierUnavailable
from isthmus.auth.tokens.jose import PrivateKey, sign_jwt
from isthmus.auth.tokens.jwks import Jwks
from isthmus.auth.tokens.secret import Secret
from support.clock import ManualClock
from support.http.local_web import make_json_response, make_response, serve_responses

RESOURCE, NOW = "https://mcp.example/mcp", 1_800_000_000.0
KEY = PrivateKey.generate("ES256", kid="first")
NEXT = PrivateKey.generate("ES256", kid="second")


def present_token(issuer, key=KEY, kid=None):
    """A good token, or one whose key has another name."""
    claims = {"iss": issuer, "aud": RESOURCE, "sub": "ada", "client_id": "c", "exp": NOW + 600}
    token = sign_jwt(claims, key, typ="at+jwt", headers={"kid": kid or key.kid})
    return Presented("bearer", Secret(token))


class Issuer:
    """An authorization server with metadata and keys, which may be broken."""

    def __init__(self):
        self.keys = [KEY.jwk]
        self.broken = False
        self.url = ""

    def __call__(self, asked):
        if self.broken:
            return make_response(b"down for maintenance", 503)
        if asked.target == "/jwks":
            return make_json_response({"keys": self.keys})
        return make_json_response({"issuer": self.url, "jwks_uri": f"{self.url}/jwks"})

    def fetches(self, web):
        return [asked.target for asked in web.requests].count("/jwks")


def judge(web, clock, **options):
    """A verifier whose keys are fetched, with a clock of its own."""
    verifier = JWTVerifier(web.url, clock=lambda: NOW, **options)
    network = Network(desktop(web.url), keep=False)
    verifier._keys = Jwks(f"{web.url}/jwks", network, clock=clock)
    return verifier


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_a_thousand_unknown_keys_are_one_request():
    """Ours: who invents names of keys does not have the issuer asked for each."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        clock.now += 31
        before = issuer.fetches(web)
        flood = [present_token(web.url, kid=f"k{number}") for number in range(1000)]
        got = await asyncio.gather(*(verifier.verify(one, RESOURCE) for one in flood))

    assert {None} == set(got)
    assert 1 == before
    assert 1 == issuer.fetches(web) - before


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_a_new_key_is_found():
    """Ours: an issuer changes its keys without telling, and a token with the new one is good."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        issuer.keys = [NEXT.jwk]
        clock.now += 31
        assert await verifier.verify(present_token(web.url, NEXT), RESOURCE)

        assert None is await verifier.verify(present_token(web.url), RESOURCE), (
            "the old key is gone"
        )


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_a_flood_of_unknown_keys_has_no_good_token_refused():
    """Ours: until the keys may be asked for again nobody can tell a new key, which is 503 and not 401."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        clock.now += 31
        assert None is await verifier.verify(present_token(web.url, kid="invented"), RESOURCE)
        issuer.keys = [KEY.jwk, NEXT.jwk]
        clock.now += 10
        for kid in ("more", "and-more"):
            with pytest.raises(VerifierUnavailable, match="may be newer"):
                await verifier.verify(present_token(web.url, kid=kid), RESOURCE)
        with pytest.raises(VerifierUnavailable) as raised:
            await verifier.verify(present_token(web.url, NEXT), RESOURCE)
        clock.now += raised.value.retry_after
        assert await verifier.verify(present_token(web.url, NEXT), RESOURCE)

    assert 20.0 == raised.value.retry_after
    assert 3 == issuer.fetches(web)


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_a_new_key_without_a_name_is_found_too():
    """Ours: an issuer whose keys have no kid changes them like others."""
    first, second = PrivateKey.generate("ES256"), PrivateKey.generate("ES256")
    issuer, clock = Issuer(), ManualClock(100.0)
    issuer.keys = [first.jwk]
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        assert await verifier.verify(present_token(web.url, first), RESOURCE)
        issuer.keys = [second.jwk]
        with pytest.raises(VerifierUnavailable):
            await verifier.verify(present_token(web.url, second), RESOURCE)
        clock.now += 31
        assert await verifier.verify(present_token(web.url, second), RESOURCE)


@pytest.mark.parametrize(
    "claims", [{"iss": "https://evil.example"}, {"aud": "https://other"}, {"exp": NOW - 600}]
)
async def test_what_is_not_for_here_is_refused_whatever_its_key_is(claims):
    """Ours: only a token that may be good has to come again."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        usual = {"iss": web.url, "aud": RESOURCE, "sub": "a", "client_id": "c", "exp": NOW + 600}
        token = sign_jwt({**usual, **claims}, NEXT, typ="at+jwt")

        assert None is await verifier.verify(Presented("bearer", Secret(token)), RESOURCE)


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_an_issuer_out_of_reach_is_no_bad_token():
    """Ours: 401 would have every client log in again, at the server that is down."""
    issuer, clock = Issuer(), ManualClock(100.0)
    issuer.broken = True
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        for _ in range(10):
            with pytest.raises(VerifierUnavailable, match="503") as raised:
                await verifier.verify(present_token(web.url), RESOURCE)
        asked = len(web.requests)
        issuer.broken = False
        clock.now += 6
        assert await verifier.verify(present_token(web.url), RESOURCE)

    assert 0 < raised.value.retry_after <= 30
    assert 1 == asked, "it is not asked again for each of them"


@pytest.mark.covers("auth.threat.t23-key-outage")
async def test_known_keys_stay_good_while_the_issuer_is_away():
    """Ours: an outage of the issuer is none of ours; only what is new waits for it."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock, remember=0)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        issuer.broken = True
        clock.now += 3600
        assert await verifier.verify(present_token(web.url), RESOURCE)
        with pytest.raises(VerifierUnavailable):
            await verifier.verify(present_token(web.url, NEXT), RESOURCE)
        clock.now += 24 * 3600
        with pytest.raises(VerifierUnavailable):
            await verifier.verify(present_token(web.url), RESOURCE)


async def test_nobody_waits_for_an_issuer_that_hangs_while_keys_are_known():
    """Ours: a server that answers in ten seconds because somebody else does is down, too."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(lambda asked: None if issuer.broken else issuer(asked)) as web:
        verifier = judge(web, clock, remember=0)
        assert await verifier.verify(present_token(web.url), RESOURCE)
        issuer.broken = True
        clock.now += 601
        async with asyncio.timeout(10):
            for _ in range(3):
                assert await verifier.verify(present_token(web.url), RESOURCE)
                await asyncio.sleep(0.01)
        assert 2 == len(web.requests)
        verifier._keys._fetching.cancel()


async def test_everybody_waits_for_one_request_and_nobody_takes_it_away():
    """Ours: a hundred calls at start-up are one fetch, and one that gives up ends only its own."""
    issuer, clock = Issuer(), ManualClock(100.0)
    async with serve_responses(issuer) as web:
        verifier = judge(web, clock)
        waiting = [
            asyncio.create_task(verifier.verify(present_token(web.url), RESOURCE))
            for _ in range(100)
        ]
        await asyncio.sleep(0)
        waiting[0].cancel()
        got = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(got[0], asyncio.CancelledError)
    assert ["ada"] * 99 == [principal.subject for principal in got[1:]]
    assert 1 == issuer.fetches(web)


async def test_keys_are_found_by_the_issuers_metadata():
    """RFC 8414: an issuer's URL is all that has to be configured."""
    issuer = Issuer()
    async with serve_responses(issuer) as web:
        issuer.url = web.url
        verifier = JWTVerifier(web.url, clock=lambda: NOW)
        assert await ByIssuer({web.url: verifier}).verify(present_token(web.url), RESOURCE)

    assert ["/.well-known/oauth-authorization-server", "/jwks"] == [a.target for a in web.requests]


async def test_metadata_of_another_issuer_is_not_believed():
    """RFC 8414 3.3: what names another issuer says nothing about this one's keys."""
    issuer = Issuer()
    async with serve_responses(issuer) as web:
        issuer.url = "https://login.example"
        with pytest.raises(VerifierUnavailable, match="another issuer"):
            await JWTVerifier(web.url).verify(present_token(web.url), RESOURCE)

    assert "/jwks" not in [asked.target for asked in web.requests]
