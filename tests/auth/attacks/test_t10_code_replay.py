"""T10: a code is good once, also for racers, and its replay revokes what it gave."""

import asyncio

import pytest

from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from support.auth.small_authority import SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t10-code-replay", "auth.authority.codes-once")

KEY = "k" * 43


async def test_a_replay_ends_the_access_token_and_the_refresh_token():
    """RFC 6749 4.1.2: what the code gave is revoked."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id)
        tokens = (await small.redeem(code, client_id)).json
        before = await small.verified(tokens["access_token"])
        await small.redeem(code, client_id)
        small.app.forget()

        assert before is not None
        assert await small.verified(tokens["access_token"]) is None
        assert 400 == (await small.refresh(tokens["refresh_token"], client_id)).status
        assert "code_replay" in await small.audited()


async def test_a_code_of_more_than_a_minute_ago_is_worth_nothing():
    """Ours: the shorter a code lives, the less it can be caught."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        code = await small.code(client_id)
        small.clock.now += 61

        assert "invalid_grant" == (await small.redeem(code, client_id)).json["error"]


async def test_racers_in_two_processes_on_one_file_have_one_winner(tmp_path):
    """Ours: two servers share a file, each with a connection of its own."""
    small = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    other = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    async with small, other:
        client_id = await small.public()
        code = await small.code(client_id)
        both = [one.redeem(code, client_id) for one in (small, other) for _ in range(10)]
        done = await asyncio.gather(*both)

        assert [200] + [400] * 19 == sorted(one.status for one in done)


async def test_another_clients_attempt_ends_nothing():
    """Ours: somebody who merely knows a used code cannot log its owner out by it."""
    async with SmallAuthority() as small:
        client_id, other = await small.public(), await small.public()
        code = await small.code(client_id)
        tokens = (await small.redeem(code, client_id)).json
        await small.redeem(code, other)

        assert 200 == (await small.refresh(tokens["refresh_token"], client_id)).status
