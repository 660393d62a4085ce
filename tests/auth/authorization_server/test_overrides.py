"""Authlib's defaults that are not safe for MCP, one by one, and what is done instead."""

import asyncio
import logging

import pytest

from support.auth.small_authority import BACK, ISSUER, RESOURCE, SmallAuthority, redirect_parameters


async def test_no_code_is_issued_without_a_challenge():
    """Ours, 1: the stock endpoint issues codes without PKCE."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        answer = redirect_parameters(
            await small.ask(client_id, code_challenge=None, code_challenge_method=None)
        )

        assert "invalid_request" == answer["error"]


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
async def test_no_client_redeems_a_code_without_its_verifier(method):
    """Ours, 2: the stock extension wants a verifier of public clients alone."""
    async with SmallAuthority() as small:
        client = await small.register(token_endpoint_auth_method=method)
        code = await small.code(client["client_id"])
        secret = {"client_secret": client["client_secret"]} if method != "none" else {}
        answer = await small.redeem(code, client["client_id"], code_verifier=None, **secret)

        assert (400, "invalid_request") == (answer.status, answer.json["error"])


@pytest.mark.parametrize("method", [None, "plain", "s256", "S512"])
async def test_a_challenge_is_of_s256_and_says_so(method):
    """Ours, 3: a challenge that does not say how it was made is plain, and taken, by default."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        answer = redirect_parameters(await small.ask(client_id, code_challenge_method=method))

        assert "invalid_request" == answer["error"]


async def test_of_twenty_racers_for_one_code_one_wins():
    """Ours, 4: without a transaction around it, each of several threads redeems the code."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id)
        done = await asyncio.gather(*(small.redeem(code, client_id) for _ in range(20)))

        assert [200] + [400] * 19 == sorted(one.status for one in done)


async def test_a_replayed_code_revokes_its_grant():
    """Ours, 5: the stock grant deletes the code, and knows no replay."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id)
        first = (await small.redeem(code, client_id)).json
        again = await small.redeem(code, client_id)
        after = await small.refresh(first["refresh_token"], client_id)

        assert "invalid_grant" == again.json["error"]
        assert "invalid_grant" == after.json["error"]


async def test_a_refresh_token_is_a_new_one_after_each_use():
    """Ours, 6: the stock grant keeps the old one for ever."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        first = await small.tokens(client_id)
        second = (await small.refresh(first["refresh_token"], client_id)).json

        assert first["refresh_token"] != second["refresh_token"]


async def test_an_access_token_lives_for_ten_minutes():
    """Ours, 7: the stock generator makes those of codes live for ten days."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public())
        small.clock.now += 599
        before = await small.verified(tokens["access_token"])
        small.clock.now += 2

        assert 600 == tokens["expires_in"]
        assert before is not None
        assert await small.verified(tokens["access_token"]) is None


async def test_a_token_is_for_the_resource_and_not_for_its_client():
    """Ours, 8: the stock token has the client for its audience."""
    async with SmallAuthority() as small:
        tokens = await small.tokens(await small.public(), resource=RESOURCE)
        principal = await small.verified(tokens["access_token"])

        assert RESOURCE == principal.claims["aud"]


@pytest.mark.parametrize("uri", ["http://x/é", 'http://x/"', "http://x/\\", "\x00"])
async def test_characters_that_no_error_may_have_are_no_fault_of_the_server(uri):
    """Ours, 9: the stock errors raise ValueError on them, which would be a 500."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        answer = await small.ask(client_id, redirect_uri=uri)

        assert (400, None) == (answer.status, answer.header("location"))
        assert uri.encode() not in answer.body


async def test_the_same_at_the_token_endpoint():
    """Ours, 9: the error of an unknown grant type repeats it by default."""
    async with SmallAuthority() as small:
        answer = await small.post("/token", {"grant_type": 'é"\\'})

        assert 400 == answer.status
        assert {"error": "unsupported_grant_type"} == answer.json


@pytest.mark.parametrize(
    "body",
    [{"redirect_uris": [1]}, {"grant_types": 5}, ["x"], {"redirect_uris": ["javascript://x"]}],
)
async def test_a_registration_is_typed_before_it_is_read(body):
    """Ours, 10: the stock endpoint raises on some of these, and registers others."""
    async with SmallAuthority() as small:
        assert 400 == (await small.registering(body)).status


async def test_a_public_client_gets_no_secret_and_keeps_its_type():
    """Ours, 10: the stock endpoint gives everybody a secret, and drops application_type."""
    async with SmallAuthority() as small:
        client = await small.register(application_type="native")

        assert "client_secret" not in client
        assert "native" == client["application_type"]


async def test_no_token_is_logged_at_debug_level(caplog):
    """Ours, 11: the stock grants log the whole answer at DEBUG."""
    for name in ("authlib", "authlib.oauth2.rfc6749.grants.authorization_code", ""):
        caplog.set_level(logging.DEBUG, name)
    async with SmallAuthority() as small:
        client_id = await small.public()
        first = await small.tokens(client_id)
        second = (await small.refresh(first["refresh_token"], client_id)).json

        texts = [first["access_token"], first["refresh_token"], second["refresh_token"]]
        assert [] == [text for text in texts if text in caplog.text]


@pytest.mark.parametrize("name", ["code", "code_verifier", "client_id", "grant_type"])
async def test_no_parameter_comes_twice_at_any_endpoint(name):
    """Ours, 12: the stock server looks at five names of one endpoint."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        pairs = [("grant_type", "authorization_code"), ("client_id", client_id),
                 ("code", await small.code(client_id)), ("redirect_uri", BACK),
                 ("code_verifier", "v" * 43)]  # fmt: skip
        answer = await small.post("/token", [*pairs, (name, dict(pairs)[name])])

        assert (400, "invalid_request") == (answer.status, answer.json["error"])


async def test_every_endpoint_takes_the_ways_to_authenticate_that_it_lists():
    """Ours, 12: the stock endpoints take Basic alone."""
    async with SmallAuthority() as small:
        client = await small.register(token_endpoint_auth_method="client_secret_post")
        tokens = (
            await small.redeem(
                await small.code(client["client_id"]),
                client["client_id"],
                client_secret=client["client_secret"],
            )
        ).json
        body = {
            "token": tokens["access_token"],
            "client_id": client["client_id"],
            "client_secret": client["client_secret"],
        }
        told = await small.post("/introspect", body)

        assert (200, True) == (told.status, told.json["active"])
        assert ISSUER == told.json["iss"]
        assert 200 == (await small.post("/revoke", body)).status
        assert {"active": False} == (await small.post("/introspect", body)).json
