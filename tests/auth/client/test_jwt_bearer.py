"""Workload identity: a JWT of the platform's for a token, and nothing else."""

import pytest

from isthmus import Client
from isthmus.auth import JwtBearer, StaticClient
from isthmus.auth.client.grants.jwt_bearer import JWT_BEARER_GRANT
from isthmus.errors import AuthRefused, UsageError
from support.auth.oauth_town import open_machine_town


@pytest.fixture
async def place():
    """A town whose authorization server gives machines what they ask for."""
    async with open_machine_town() as here:
        yield here


class Platform:
    """Vouches for what runs on it."""

    def __init__(self, fixed=None):
        self.fixed = fixed
        self.asked = []

    async def __call__(self, issuer):
        self.asked.append(issuer)
        return self.fixed or f"workload-jwt-number-{len(self.asked)}"


@pytest.mark.covers("auth.extension.workload-client")
async def test_each_token_request_has_a_new_jwt(place):
    """1.4: the platform is asked for each token, and told who the JWT is for."""
    place.authority.life = 1e-6  # over before it is used, however fast the machine is
    platform = Platform()
    async with Client(place.url, auth=JwtBearer(platform, client="workload")) as client:
        await client.call_tool("hello")
    forms = place.authority.forms

    assert 1 < len(forms) == len({form["assertion"] for form in forms})
    assert {(JWT_BEARER_GRANT, "workload", place.url)} == {
        (form["grant_type"], form["client_id"], form["resource"]) for form in forms
    }
    assert {place.authority.issuer} == set(platform.asked)


@pytest.mark.covers("auth.extension.workload-client")
async def test_a_refused_jwt_is_never_presented_again(place):
    """1.4: the refusal is told, no other grant is tried, and trying again sends nothing."""
    place.authority.refusal = {JWT_BEARER_GRANT: "invalid_grant"}
    auth = JwtBearer(Platform("the-only-workload-jwt"), client="workload")
    for words in ("invalid_grant", "not presented again"):
        with pytest.raises(AuthRefused, match=words) as caught:
            async with Client(place.url, auth=auth):
                pass
        assert "invalid_grant" == caught.value.error

    assert {JWT_BEARER_GRANT: 1} == place.authority.counts


async def test_a_new_jwt_is_presented_after_a_refusal(place):
    """Ours: what runs for days is not shut out by one refusal, once its platform vouches anew."""
    place.authority.refusal = {JWT_BEARER_GRANT: "invalid_grant"}
    auth = JwtBearer(Platform())
    with pytest.raises(AuthRefused):
        async with Client(place.url, auth=auth):
            pass
    place.authority.refusal = {}
    async with Client(place.url, auth=auth) as client:
        await client.call_tool("hello")

    assert ["workload-jwt-number-1", "workload-jwt-number-2"] == [
        form["assertion"] for form in place.authority.forms
    ]


async def test_a_jwt_may_come_without_a_client_id(place):
    """RFC 7521 4.1: without a client no client_id is sent."""
    async with Client(place.url, auth=JwtBearer(Platform())):
        pass

    assert "client_id" not in place.authority.forms[0]


async def test_the_client_may_have_to_authenticate_too(place):
    """RFC 7521 4.1: client authentication goes beside the assertion."""
    client = StaticClient("workload", secret="secret-of-the-workload")
    async with Client(place.url, auth=JwtBearer(Platform(), client=client)):
        pass

    assert place.authority.forms[0]["Authorization"].startswith("Basic ")


def test_a_jwt_itself_is_no_way_to_the_next_one():
    """Ours: a text in place of the function would be a crash at the first login."""
    with pytest.raises(UsageError, match="async function that is given the issuer"):
        JwtBearer("header.claims.signature")
