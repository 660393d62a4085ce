"""Redis fails in every way it can: whoever asks is told in time, and nothing is believed twice."""

import asyncio
import gc
import time

import pytest
import uvloop

from isthmus.store.kv import KVEntry, StoreFull
from isthmus.store.log import Forgotten, Overtaken
from isthmus.store.meter import Rate
from isthmus.store.redis import connection as redis_connection
from isthmus.store.redis.scripts import WRITE_STREAM
from isthmus.store.redis_store import RedisStore
from isthmus.store.store import StoreUnavailable
from support.store.redis_links import CutLink

pytestmark = pytest.mark.redis

LONGEST_S = 3.5  # that whoever asks waits: three seconds, and what a busy machine adds


async def wait_until_there(store):
    """Wait until a store can be reached; returns what is under the key ``a``."""
    while True:
        try:
            return await store.kv.get("a")
        except StoreUnavailable:
            await asyncio.sleep(0.01)


async def test_what_was_acknowledged_is_there_after_a_kill(start_redis, open_store):
    """Ours: scale.md B6: values, versions and streams outlive kill -9 of Redis.

    With `everysec` Redis itself puts off writing its file while the disk is busy.
    """
    redis = start_redis(appendfsync="always")
    store = await open_store(redis.url)
    version = await store.kv.put("a", b"1")
    await store.log.write("s", 1, [b"one", b"two"])
    redis.kill()
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"cannot be reached|not known"):
        await store.kv.get("a")
    assert time.monotonic() - began < LONGEST_S
    redis.start()

    assert KVEntry(b"1", version) == await store.kv.get("a")
    assert version < await store.kv.cas("a", b"2", version)
    assert [(1, b"one"), (2, b"two")] == await store.log.read("s", 0, 10)
    with pytest.raises(Overtaken):
        await store.log.write("s", 2, [b"late"])


async def test_listeners_hear_again_after_a_kill_and_are_told_of_the_gap(redis, open_store):
    """Ours: whoever missed something looks at what is stored."""
    store, other = await open_store(redis.url), await open_store(redis.url)
    heard, gaps = asyncio.Queue(), asyncio.Queue()
    await store.bus.subscribe("news", heard.put_nowait)
    store.bus.on_gap(lambda: gaps.put_nowait(1))
    redis.kill()
    redis.start()
    await gaps.get()

    assert await other.bus.publish("news", b"again")
    assert b"again" == await heard.get()
    assert gaps.empty()


async def test_a_cut_of_the_listening_connection_is_a_gap(redis, open_store):
    """Ours: CLIENT KILL, a proxy that times out, a reader that was too slow."""
    store = await open_store(redis.url)
    heard, gaps = asyncio.Queue(), asyncio.Queue()
    await store.bus.subscribe("news", heard.put_nowait)
    await store.bus.subscribe("other", heard.put_nowait)
    store.bus.on_gap(lambda: gaps.put_nowait(1))
    store.bus.on_gap(lambda: 1 / 0)
    store.bus.on_gap(lambda: gaps.put_nowait(2))
    assert 1 == redis.ask("CLIENT", "KILL", "TYPE", "pubsub")

    assert [1, 2] == [await gaps.get(), await gaps.get()]
    await store.bus.publish("news", b"a")
    await store.bus.publish("other", b"b")
    assert [b"a", b"b"] == [await heard.get(), await heard.get()]


async def test_a_subscription_to_what_is_down_fails_and_leaves_nothing(redis, open_store):
    """Ours: whoever could not listen is told, and is not heard of later."""
    store = await open_store(redis.url)
    redis.kill()
    heard = []
    with pytest.raises(StoreUnavailable):
        await store.bus.subscribe("news", heard.append)
    redis.start()
    await wait_until_there(store)

    assert not await store.bus.publish("news", b"a")
    assert [] == heard


async def test_a_server_that_stands_still_is_told_of_in_time(redis, open_store):
    """Ours: scale.md B6: what needs the store fails within three seconds, new calls as well."""
    store = await open_store(redis.url)
    heard, gaps = asyncio.Queue(), asyncio.Queue()
    await store.bus.subscribe("news", heard.put_nowait)
    store.bus.on_gap(lambda: gaps.put_nowait(1))
    await store.kv.put("a", b"1")
    redis.pause()
    began = time.monotonic()
    for work in (store.kv.get("a"), store.kv.put("a", b"2"), store.kv.get("a")):
        asked = time.monotonic()
        with pytest.raises(StoreUnavailable, match="within"):
            await work
        assert time.monotonic() - asked < LONGEST_S
    assert time.monotonic() - began > 2
    redis.resume()

    await wait_until_there(store)
    await gaps.get()
    await store.bus.publish("news", b"a")
    assert b"a" == await heard.get()


async def test_a_process_that_stood_still_reads_what_came_meanwhile(redis, open_store, monkeypatch):
    """Ours: after SIGCONT an answer that lies in the socket is an answer in time."""
    monkeypatch.setattr(redis_connection, "COMMAND_TIMEOUT_S", 0.2)
    store = await open_store(redis.url)
    await store.kv.put("a", b"1")
    asked = asyncio.create_task(store.kv.get("a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)  # it is sent
    time.sleep(0.5)  # noqa: ASYNC251 - the process stands still

    assert b"1" == (await asked).value


async def fill(kv, size):
    """Put values of a size until there is no room; returns how many there was room for."""
    for number in range(10_000):
        try:
            await kv.put(f"{size}/{number}", b"x" * size)
        except StoreFull as error:
            assert "maxmemory" in str(error)  # noqa: PT017 - it is in its place
            return number
    raise AssertionError("it is never full")


async def test_a_full_server_refuses_what_is_new_and_gives_what_it_has(start_redis, open_store):
    """Ours: scale.md B6: nothing is dropped to make room, and room is used again."""
    redis = start_redis(maxmemory="6mb", maxmemory_policy="noeviction")
    store = await open_store(redis.url)
    first = await store.kv.put("a", b"x")
    written = await fill(store.kv, 100_000)
    few = await fill(store.kv, 1_000)
    with pytest.raises(StoreFull):
        await store.kv.cas("a", b"y" * 100_000, first)
    with pytest.raises(StoreUnavailable, match="maxmemory"):
        await store.log.write("s", 1, [b"x" * 100_000])
    with pytest.raises(StoreUnavailable):
        await store.meter("calls", Rate(1, 1000)).take("a")

    assert KVEntry(b"x", first) == await store.kv.get("a")
    assert written > 3
    assert few
    with pytest.raises(Forgotten):
        await store.log.read("s", 0, 1)
    for number in range(written):
        assert await store.kv.delete(f"100000/{number}")
    assert await store.kv.put("b", b"x" * 100_000)
    await store.log.write("s", 1, [b"x"])


async def test_an_emptied_server_believes_no_old_version(redis, open_store):
    """Ours: scale.md B6: after FLUSHALL no holder of a version from before is let through."""
    store = await open_store(redis.url)
    versions = [await store.kv.put("a", b"1") for _ in range(50)]
    await store.log.write("s", 1, [b"one", b"two"])
    redis.ask("FLUSHALL")

    assert await store.kv.get("a") is None
    assert await store.kv.cas("a", b"2", versions[-1]) is None
    assert await store.kv.cas("a", b"2", 0) > versions[-1]
    assert [] != await store.kv.scan("", "", 10)
    with pytest.raises(Forgotten):
        await store.log.read("s", 1, 10)
    await store.log.write("s", 3, [b"three"])
    assert [(3, b"three")] == await store.log.read("s", 2, 10)


async def test_forgotten_scripts_are_sent_again(redis, open_store):
    """Ours: SCRIPT FLUSH, and a failover to a server that never had them."""
    store = await open_store(redis.url)
    redis.ask("SCRIPT", "FLUSH")

    version = await store.kv.put("a", b"1")
    assert await store.kv.delete("a", version)
    assert [] == await store.kv.scan("", "", 10)
    await store.log.write("s", 1, [b"one"])
    assert [(1, b"one")] == await store.log.read("s", 0, 10)
    assert 0.0 == await store.meter("calls", Rate(1, 1)).take("a")


async def test_an_answer_that_is_lost_is_asked_for_again_only_where_that_is_the_same(
    redis, open_store, folder
):
    """Ours: reads are, and so are entries of a stream; other writes are told to be unknown."""
    async with CutLink(folder / "link.sock", redis.path) as link:
        store = await open_store(f"unix://{link.path}")
        version = await store.kv.put("a", b"1")
        link.lose_next_answer()
        assert KVEntry(b"1", version) == await store.kv.get("a")
        link.lose_next_answer()
        assert ["a"] == [key for key, _ in await store.kv.scan("", "", 10)]
        link.lose_next_answer()
        await store.log.write("s", 1, [b"one", b"two"])
        link.lose_next_answer()
        assert [(1, b"one"), (2, b"two")] == await store.log.read("s", 0, 10)
        for work in (
            store.kv.put("b", b"1"),
            store.kv.cas("a", b"2", version),
            store.kv.delete("b"),
            store.meter("calls", Rate(1, 1000)).take("a"),
        ):
            await store.kv.get("a")  # the connection is open
            link.lose_next_answer()
            with pytest.raises(StoreUnavailable, match="whether it was done is not known"):
                await work

        assert b"2" == (await store.kv.get("a")).value
        assert await store.kv.get("b") is None
        await store.close()


async def test_a_writer_that_asks_again_is_still_refused_where_another_wrote(redis, open_store):
    """Ours: only the very same entries count as those that were added before."""
    store = await open_store(redis.url)
    client = store._client
    await store.log.write("s", 1, [b"one", b"two"])
    keys, bounds = store.log._make_keys("s"), store.log._bounds

    async def write_again(place, *values):
        return await client.run(WRITE_STREAM, keys, (place, *bounds, 1, *values))

    assert 0 == await write_again(1, b"one", b"two")
    assert 0 == await write_again(2, b"two")
    assert 2 == await write_again(1, b"one", b"other")
    assert 2 == await write_again(1, b"one")
    assert [(1, b"one"), (2, b"two")] == await store.log.read("s", 0, 10)


async def test_who_is_cancelled_leaves_the_others_their_own_answers(redis, open_store):
    """Ours: an answer that nobody waits for any more is not taken for another's."""
    store = await open_store(redis.url)
    for number in range(64):
        await store.kv.put(str(number), b"%d" % number)
    tasks = [asyncio.create_task(store.kv.get(str(number))) for number in range(64)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in tasks[::3]:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)

    for number, entry in enumerate(done):
        if number % 3:
            assert b"%d" % number == entry.value
        else:
            assert isinstance(entry, asyncio.CancelledError)


async def test_what_is_asked_for_at_once_leaves_in_one_write(redis, open_store):
    """Ours: 64 calls at once are not 64 round trips."""
    store = await open_store(redis.url)

    def count_reads():
        stats = redis.ask("INFO", "stats")
        return int(stats.split("total_reads_processed:")[1].split()[0])

    before = count_reads()
    await asyncio.gather(*(store.kv.put(str(number), b"x") for number in range(64)))

    assert count_reads() - before <= 3  # one of them is the count's own


async def test_a_connection_that_was_cut_while_idle_is_opened_again(redis, open_store):
    """Ours: `timeout` of Redis and idle timeouts of firewalls cost nobody a call."""
    store = await open_store(redis.url)
    version = await store.kv.put("a", b"1")
    for _ in range(3):
        redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert KVEntry(b"1", version) == await store.kv.get("a")


async def test_a_store_that_is_closed_while_it_connects_leaves_nothing(redis, open_store):
    """Ours: shutdown waits for no server that is silent."""
    store = await open_store(redis.url)
    redis.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    redis.pause()
    await asyncio.sleep(0.01)
    asked = asyncio.create_task(store.kv.get("a"))
    await asyncio.sleep(0)
    await store.close()
    with pytest.raises(StoreUnavailable):
        await asked
    redis.resume()
    await store.open()

    assert await store.kv.get("a") is None


async def test_a_server_that_became_a_replica_is_left_and_tried_anew(redis, open_store):
    """Ours: after a failover the name may lead to another server, which the next call finds."""
    store = await open_store(redis.url)
    version = await store.kv.put("a", b"1")
    redis.ask("REPLICAOF", "192.0.2.7", "6390")
    redis.ask("CONFIG", "SET", "replica-serve-stale-data", "yes")
    before = store._client._connection
    with pytest.raises(StoreUnavailable, match="READONLY"):
        await store.kv.put("a", b"2")
    assert before.lost
    redis.ask("REPLICAOF", "NO", "ONE")

    assert KVEntry(b"1", version) == await store.kv.get("a")
    assert version < await store.kv.put("a", b"2")


async def test_a_server_with_too_many_clients_is_told_of(start_redis, open_store):
    """Ours: whoever is not let in reads why."""
    server = start_redis(maxclients="2")
    await open_store(server.url)
    await open_store(server.url)

    with pytest.raises(StoreUnavailable, match="max number of clients"):
        await open_store(server.url)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # the first loop leaves its sockets open
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_store_is_used_in_one_loop_after_another(redis, run):
    """Ours: a server may be run twice, also where the first loop ended without a word."""
    store = RedisStore(redis.url)

    async def use(message, *, close):
        heard = asyncio.Queue()
        await store.open()
        await store.bus.subscribe("news", heard.put_nowait)
        await store.bus.publish("news", message)
        assert message == await heard.get()
        if close:
            await store.close()

    run(use(b"a", close=False))
    run(use(b"b", close=True))
    run(use(b"c", close=False))
    run(store.close())
    gc.collect()  # what the loops left behind, which no other test is to be told of
