"""T13: refreshing in parallel logs nobody out."""

import asyncio

import pytest

from isthmus.auth.authorization_server.storage.store import SQLiteAuthStore
from support.auth.small_authority import SmallAuthority

pytestmark = pytest.mark.covers("auth.threat.t13-refresh-race")

KEY = "k" * 43


async def test_twenty_refreshes_at_a_time_have_one_successor_and_all_get_it():
    """Ours: hosts do this, and strict rotation throws their users out."""
    async with SmallAuthority() as small:
        client_id = await small.public()
        token = (await small.tokens(client_id))["refresh_token"]
        done = await asyncio.gather(*(small.refresh(token, client_id) for _ in range(20)))

        assert {200} == {one.status for one in done}
        assert 1 == len({one.json["refresh_token"] for one in done})
        assert 20 == len({one.json["access_token"] for one in done})


async def test_the_same_holds_for_two_processes_on_one_file(tmp_path):
    """Ours: whichever of them is asked."""
    small = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    other = SmallAuthority(store=SQLiteAuthStore(tmp_path / "auth.db", key=KEY))
    async with small, other:
        client_id = await small.public()
        token = (await small.tokens(client_id))["refresh_token"]
        both = [one.refresh(token, client_id) for one in (small, other) for _ in range(10)]
        done = await asyncio.gather(*both)
        (successor,) = {one.json["refresh_token"] for one in done}

        assert {200} == {one.status for one in done}
        assert 200 == (await other.refresh(successor, client_id)).status
