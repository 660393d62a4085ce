"""Hostile values under our keys and answers of a false Redis: they are bounded, and refused."""

import asyncio

import pytest

from isthmus.store.kv import StoreFull
from isthmus.store.log import Forgotten
from isthmus.store.meter import Rate
from isthmus.store.redis import connection as redis_connection
from isthmus.store.redis.primitives import MAX_VALUE_BYTES
from isthmus.store.store import StoreUnavailable
from support.store.redis_links import FalseRedis, format_bulk

pytestmark = pytest.mark.redis

FOREIGN = [b"1", b"x" * 16, b"000000000000000", b" 00000000000001v", b"-000000000000001"]


@pytest.mark.parametrize("value", FOREIGN)
async def test_a_value_that_is_not_ours_is_refused(redis, open_store, value):
    """Ours: never taken for an entry, also where it looks like one."""
    store = await open_store(redis.url)
    await store.kv.put("b", b"1")
    redis.ask("SET", "isthmus:k/a", value)
    with pytest.raises(StoreUnavailable, match="'a' that isthmus did not write"):
        await store.kv.get("a")
    assert await store.kv.cas("a", b"1", 0) is None
    assert await store.kv.put("a", b"1")

    assert b"1" == (await store.kv.get("a")).value


async def test_a_value_that_is_too_long_is_not_read(redis, open_store):
    """Ours: nobody makes a node hold half a gigabyte."""
    store = await open_store(redis.url)
    redis.ask("SETRANGE", "isthmus:k/a", 3 * MAX_VALUE_BYTES, "x")

    with pytest.raises(StoreUnavailable, match="did not write"):
        await store.kv.get("a")


async def test_what_is_too_long_to_be_read_is_not_written(redis, open_store):
    """Ours: nothing is stored, or said, that would cut off whoever reads or hears it."""
    store = await open_store(redis.url)
    most, more = b"x" * MAX_VALUE_BYTES, b"x" * (MAX_VALUE_BYTES + 1)
    with pytest.raises(StoreFull, match="bytes at most"):
        await store.kv.put("a", more)
    with pytest.raises(StoreUnavailable, match=r"an entry of a stream .* bytes at most"):
        await store.log.write("s", 1, [b"x", more])
    with pytest.raises(StoreUnavailable, match=r"a message .* bytes at most"):
        await store.bus.publish("news", more)
    with pytest.raises(Forgotten):
        await store.log.read("s", 0, 1)
    await asyncio.gather(store.kv.put("1", most), store.kv.put("b", b"1"))

    assert most == (await store.kv.get("1")).value


async def test_another_type_under_our_keys_is_refused(redis, open_store):
    """Ours: an error that says so, and other keys are as they were."""
    store = await open_store(redis.url)
    for key in ("isthmus:k/a", "isthmus:s/s", "isthmus:m/calls/a"):
        redis.ask("RPUSH", key, "x")
    for work in (
        store.kv.get("a"),
        store.kv.cas("a", b"1", 0),
        store.kv.delete("a", 1),
        store.log.read("s", 0, 1),
        store.log.write("s", 1, [b"x"]),
        store.meter("calls", Rate(1, 1)).take("a"),
    ):
        with pytest.raises(StoreUnavailable, match="WRONGTYPE"):
            await work
    await store.kv.put("b", b"1")

    assert ["b"] == [key for key, _ in await store.kv.scan("", "", 10)]


async def test_an_index_that_is_not_ours_is_refused(redis, open_store):
    """Ours: names that are no text, and names of nothing."""
    store = await open_store(redis.url)
    await store.kv.put("a", b"1")
    redis.ask("ZADD", "isthmus:i/", 0, "gone")
    assert ["a"] == [key for key, _ in await store.kv.scan("", "", 10)]
    assert ["a"] == redis.ask("ZRANGE", "isthmus:i/", 0, -1)
    redis.ask("ZADD", "isthmus:i/", 0, b"\x80")
    redis.ask("SET", b"isthmus:k/\x80", "0" * 16)

    with pytest.raises(StoreUnavailable, match="did not write"):
        await store.kv.scan("", "", 10)


async def test_a_stream_that_is_not_ours_is_refused(redis, open_store):
    """Ours: other fields and other ids are no entries of ours."""
    store = await open_store(redis.url)
    redis.ask("XADD", "isthmus:s/other", "7-7", "f", "g")
    redis.ask("XADD", "isthmus:s/fields", "0-1", "f", "g")
    with pytest.raises(Forgotten):
        await store.log.read("other", 0, 10)
    with pytest.raises(StoreUnavailable):
        await store.log.write("fields", 2, [b"x"])


@pytest.mark.parametrize("full", ["nan", "inf", "-inf", "1e300", "-1e300", "x", ""])
async def test_a_meter_that_is_not_ours_lets_nobody_through_twice(redis, open_store, full):
    """Ours: whatever number is there, an answer is a time to wait."""
    store = await open_store(redis.url)
    meter = store.meter("calls", Rate(1, 1000))
    redis.ask("SET", "isthmus:m/calls/a", full)
    first, second = await meter.take("a"), await meter.take("a")

    assert 0.0 <= first <= 86400 + 1000
    assert 0.0 < second <= 86400 + 1000


async def test_tenants_on_one_server_do_not_see_each_other(redis, open_store):
    """Ours: scale.md B6: two prefixes, also where one begins as the other."""
    one = await open_store(f"{redis.url}?prefix=a:")
    others = [await open_store(f"{redis.url}?prefix={p}") for p in ("b:", "a:k", "a", "a:b:")]
    heard = []
    for store in others:
        await store.bus.subscribe("news", heard.append)
    version = await one.kv.put("k/x", b"1")
    await one.log.write("s", 1, [b"1"])
    assert 0.0 == await one.meter("calls", Rate(1, 1000)).take("a")

    assert not await one.bus.publish("news", b"1")
    for store in others:
        assert [] == await store.kv.scan("", "", 10)
        for key in ("k/x", "x", ":k/k/x", "k/k/x"):
            assert await store.kv.get(key) is None
            assert not await store.kv.delete(key, version)
        with pytest.raises(Forgotten):
            await store.log.read("s", 0, 10)
        assert 0.0 == await store.meter("calls", Rate(1, 1000)).take("a")
    assert [] == heard


async def test_names_whose_time_is_over_leave_the_index(redis, open_store):
    """Ours: an index holds no more than what is there, whatever was written for a while."""
    store = await open_store(redis.url)
    for number in range(30):
        await store.kv.put(f"n{number}", b"x", 0.001)
    redis.ask("ZADD", "isthmus:e/", "XX", *(w for n in range(30) for w in (1, f"n{n}")))
    for number in range(6):
        await store.kv.put(f"a{number}", b"x", 60.0)

    assert [f"a{number}" for number in range(6)] == redis.ask("ZRANGE", "isthmus:i/", 0, -1)
    assert 6 == redis.ask("ZCARD", "isthmus:e/")


# --- A server that is none ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"?what\r\n", "no answer of Redis"),
        (b"*-7\r\n", "no answer of Redis"),
        (b"-ERR go away\r\n", "ERR go away"),
        (b"-ERR " + b"x" * 5000 + b"\r\n", "ERR xxx"),
        (b"+text\r\n", "did not write"),
        (b":7\r\n", "did not write"),
        (b"*1\r\n:7\r\n", "did not write"),
    ],
)
async def test_an_answer_that_makes_no_sense_ends_in_an_error(open_store, folder, answer, words):
    """Ours: whoever waits is told, and not with a page of what the server sent."""
    async with FalseRedis(folder / "r.sock", INFO=format_bulk(""), GETRANGE=answer) as server:
        store = await open_store(server.url)
        with pytest.raises(StoreUnavailable, match=words) as refused:
            await store.kv.get("a")

        assert len(str(refused.value)) < 500


async def test_an_answer_too_many_ends_the_connection(open_store, folder):
    """Ours: what is out of step is given to nobody; the next call has a new connection."""
    entry = b"$20\r\n00000000000000017777\r\n"
    async with FalseRedis(folder / "r.sock", INFO=format_bulk(""), GETRANGE=2 * entry) as server:
        store = await open_store(server.url)
        before = store._client._connection
        assert b"7777" == (await store.kv.get("a")).value
        assert "nobody asked" in before.lost

        assert b"7777" == (await store.kv.get("a")).value


async def test_an_answer_without_end_is_cut_off(open_store, folder, monkeypatch):
    """Ours: no more than so many bytes are kept of one."""
    monkeypatch.setattr(redis_connection, "MAX_REPLY_BYTES", 1_000_000)
    endless = b"$900000000\r\n" + b"x" * 5_000_000
    async with FalseRedis(folder / "r.sock", INFO=format_bulk(""), GETRANGE=endless) as server:
        store = await open_store(server.url)

        with pytest.raises(StoreUnavailable, match="more than 1000000 bytes"):
            await store.kv.get("a")
