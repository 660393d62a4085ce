"""Signing keys: encrypted, changed in time, and believed until their last token has ended."""

import time

import pytest

from isthmus.auth.authorization_server.core.tokens import Keyring, load_keys
from isthmus.auth.authorization_server.storage.store import MemoryAuthStore
from support.clock import ManualClock


@pytest.mark.parametrize("alg", ["ES256", "RS256", "EdDSA"])
async def test_the_first_use_makes_the_current_and_the_next(alg):
    """Ours: any of the usual algorithms."""
    store, ring = MemoryAuthStore(), Keyring(alg, life=100, overlap=10)
    key = await store.write(ring.signing)
    states = {one.kid: one.state for one in await store.read(load_keys)}
    await store.close()

    assert alg == key.alg
    assert "current" == states[key.kid]
    assert {"current", "next"} == set(states.values())


async def test_the_next_becomes_current_and_the_former_is_published_for_a_while():
    """Ours: nobody meets a token under a key that was not published before."""
    clock = ManualClock(float(int(time.time())))
    store, ring = MemoryAuthStore(clock=clock), Keyring("ES256", life=100, overlap=10)
    first = await store.write(ring.signing)
    before = {key["kid"] for key in await store.read(ring.public)}
    clock.now += 101
    second = await store.write(ring.signing)
    after = {key["kid"] for key in await store.read(ring.public)}
    clock.now += 11
    await store.write(ring.retire)
    end = {key["kid"] for key in await store.read(ring.public)}
    await store.close()

    assert second.kid in before
    assert {first.kid, second.kid} < after
    assert after - {first.kid} == end


async def test_keys_that_change_in_a_hurry_are_all_believed_until_their_tokens_end():
    """Ours: two changes within the life of a token end no token; a third key is forgotten in time."""
    clock = ManualClock(float(int(time.time())))
    store, ring = MemoryAuthStore(clock=clock), Keyring("ES256", life=100, overlap=10)
    first = await store.write(ring.signing)
    for _ in range(3):
        clock.now += 2
        await store.write(ring.rotate)
    during = {key["kid"] for key in await store.read(ring.public)}
    signing = await store.write(ring.signing)
    clock.now += 11
    await store.write(ring.retire)
    end = {key["kid"] for key in await store.read(ring.public)}
    await store.close()

    assert first.kid in during
    assert 5 == len(during)
    assert 2 == len(end)
    assert signing.kid in end


async def test_public_keys_are_public():
    """Ours: not a private member among them."""
    store, ring = MemoryAuthStore(), Keyring("RS256", life=100, overlap=10)
    await store.write(ring.signing)
    keys = await store.read(ring.public)
    await store.close()

    assert [] == [name for key in keys for name in key if name in {"d", "p", "q", "dp", "dq", "qi"}]


async def test_the_key_behind_refresh_tokens_is_made_once():
    """Ours: also where the transaction that made it was undone."""
    store, ring = MemoryAuthStore(), Keyring("ES256", life=100, overlap=10)
    undone = await store.read(ring.mac)
    kept = await store.write(ring.mac)
    again = [await store.read(ring.mac), await store.read(Keyring("ES256", life=1, overlap=1).mac)]
    await store.close()

    assert undone != kept
    assert [kept, kept] == again
