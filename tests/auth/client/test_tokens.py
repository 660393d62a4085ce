"""Records of a token store, and the store in memory."""

import asyncio

import msgspec
import pytest

from isthmus.auth import Key, MemoryTokenStore, Registration, Secret, Tokens
from isthmus.auth.client.store.records import pack_record, unpack_record

TOKENS = Tokens(
    access=Secret("access-1"), refresh=Secret("refresh-1"), issuer="https://i", client_id="c",
    resource="https://r", expires_at=5.0, scopes=frozenset({"a", "b"}), account="ada",
)  # fmt: skip
REGISTRATION = Registration(issuer="https://i", client_id="c", redirect="r", secret=Secret("sec-1"))


@pytest.mark.parametrize("record", [TOKENS, REGISTRATION])
def test_records_come_out_as_they_went_in(record):
    """Ours: secrets included, which nothing else shows."""
    assert record == unpack_record(pack_record(record))
    assert "-1" not in f"{record} {record!r}"


@pytest.mark.parametrize("data", [b"{}", b"[]", b'{"type":"other"}', b'{"type":"tokens"}'])
def test_what_is_no_record_is_refused(data):
    """Ours: a store may have been written by something else."""
    with pytest.raises(msgspec.ValidationError):
        unpack_record(data)


def test_each_key_is_another_text():
    """Ours: no part of a key can be taken for another."""
    keys = [Key("a", "b"), Key("a", "", "b"), Key("ab"), Key("a", redirect="b"), Key('a","b')]

    assert len(keys) == len({key.text for key in keys})
    assert TOKENS.key == Key("https://i", "c", "https://r", "ada")
    assert REGISTRATION.key == Key("https://i", "c", redirect="r")


async def test_a_store_in_memory_keeps_the_newest():
    """Ours: it is bounded; the last one put is the last of the keys."""
    store = MemoryTokenStore(most=2)
    records = [msgspec.structs.replace(TOKENS, resource=f"https://r{n}") for n in range(3)]
    for record in (*records, records[1]):
        await store.put(record.key, record)

    assert [records[2].key, records[1].key] == await store.keys()
    assert await store.get(records[0].key) is None
    await store.delete(records[1].key)
    await store.delete(records[1].key)
    assert [records[2].key] == await store.keys()


async def test_renewals_under_one_key_take_turns():
    """Ours: under another one they do not wait."""
    store, said = MemoryTokenStore(), []

    async def renew(name, key):
        async with store.lock(key):
            said.append(f"{name} begins")
            await asyncio.sleep(0)
            said.append(f"{name} ends")

    await asyncio.gather(*(renew(n, TOKENS.key) for n in "abc"), renew("other", REGISTRATION.key))

    mine = [word for word in said if "other" not in word]
    assert [f"{n} {what}" for n in "abc" for what in ("begins", "ends")] == mine
    assert said.index("other begins") < said.index("b begins")
    assert 0 == len(store._locks)
