"""T12: a refresh token that comes back late ends its grant."""

import pytest

from isthmus.auth.tokens.dpop import DpopKey
from support.auth.small_authority import ISSUER, SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t12-refresh-theft", "auth.authority.refresh-rotates")


async def test_the_one_before_gives_the_same_successor_for_half_a_minute():
    """Ours: whoever lost an answer, or asked twice, ends up with the token that everybody has."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        first = (await small.tokens(client_id))["refresh_token"]
        second = (await small.refresh(first, client_id)).json["refresh_token"]
        small.clock.now += 30
        again = (await small.refresh(first, client_id)).json["refresh_token"]

        assert second == again


async def test_after_that_it_is_a_theft_and_ends_the_grant():
    """2026-07-28: rotation is there to notice this."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        first = await small.tokens(client_id)
        second = (await small.refresh(first["refresh_token"], client_id)).json
        small.clock.now += 31
        reused = await small.refresh(first["refresh_token"], client_id)
        small.app.forget()

        assert "invalid_grant" == reused.json["error"]
        assert 400 == (await small.refresh(second["refresh_token"], client_id)).status
        assert await small.verified(second["access_token"]) is None
        assert "refresh_reuse" in await small.audited()


async def test_the_one_before_the_one_before_is_a_theft_at_once():
    """Ours: the grace is for one generation."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        first = (await small.tokens(client_id))["refresh_token"]
        second = (await small.refresh(first, client_id)).json["refresh_token"]
        third = (await small.refresh(second, client_id)).json["refresh_token"]
        await small.refresh(first, client_id)

        assert 400 == (await small.refresh(third, client_id)).status


async def test_without_a_grace_the_second_use_ends_the_grant():
    """Ours: ``rotation_grace=0`` is the strict mode, at the same moment too."""
    async with SmallAuthority(rotation_grace=0) as small:
        client_id = await small.public()
        first = (await small.tokens(client_id))["refresh_token"]
        second = (await small.refresh(first, client_id)).json["refresh_token"]
        reused = await small.refresh(first, client_id)

        assert 400 == reused.status
        assert 400 == (await small.refresh(second, client_id)).status


@pytest.mark.parametrize("part", [1, 2, 3])
async def test_a_refresh_token_cannot_be_made_up(part):
    """Ours: neither another grant, nor another generation, nor another MAC; and nothing ends by it."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        token = (await small.tokens(client_id))["refresh_token"]
        parts = token.split(".")
        parts[part] = "7" if part == 2 else "A" * len(parts[part])

        assert 400 == (await small.refresh(".".join(parts), client_id)).status
        assert 200 == (await small.refresh(token, client_id)).status


async def test_another_client_can_neither_use_nor_end_it():
    """RFC 6749 6: it is bound to its client."""
    async with SmallAuthority() as small:
        client_id, other = await small.public(), await small.public()
        token = (await small.tokens(client_id))["refresh_token"]

        assert 400 == (await small.refresh(token, other)).status
        assert 200 == (await small.refresh(token, client_id)).status


async def test_a_public_clients_refresh_token_is_worth_nothing_without_its_key():
    """RFC 9449 5: it is bound to the key of the first proof."""
    async with SmallAuthority() as small:
        client_id, key, thief = await small.public(), DpopKey.generate(), DpopKey.generate()

        def proof(by):
            return {"dpop": by.proof("POST", f"{ISSUER}/token", now=small.clock.now)}

        code = await small.code(client_id)
        tokens = (await small.redeem(code, client_id, proof(key))).json
        bare = await small.refresh(tokens["refresh_token"], client_id)
        stolen = await small.refresh(tokens["refresh_token"], client_id, proof(thief))
        own = await small.refresh(tokens["refresh_token"], client_id, proof(key))

        assert "DPoP" == tokens["token_type"]
        assert [400, 400, 200] == [bare.status, stolen.status, own.status]
        assert key.jkt == (await small.verified(own.json["access_token"])).jkt
