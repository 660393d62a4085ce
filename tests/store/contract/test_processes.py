"""Contract of engines that processes share: with a second process, which is stopped and killed."""

import asyncio

import pytest

from isthmus.nodes.node import Node
from isthmus.store.kv import KVEntry
from isthmus.store.mailbox import Mailbox, MailUndelivered
from isthmus.store.meter import Rate
from support.store.processes import OtherFailed

TTL_S = 0.8


@pytest.fixture
async def store(open_store):
    """One store over the engine, in real time as that of the other process is."""
    return await open_store(real=True)


async def test_values_and_versions_are_the_same_in_all_processes(store, other_process):
    """Ours: who compares and sets does so against what any process wrote."""
    other = await other_process()
    version = await other.ask("kv.put", "a", b"1", 60.0)

    assert KVEntry(b"1", version) == await store.kv.get("a")
    assert await store.kv.cas("a", b"2", version) is not None
    assert await other.ask("kv.cas", "a", b"3", version) is None
    assert b"2" == (await other.ask("kv.get", "a"))["value"]


async def test_no_increment_of_many_processes_is_lost(store, other_process):
    """Ours: races between processes have one winner each."""
    others = [await other_process() for _ in range(2)]
    await asyncio.gather(*(other.ask("increment", "n", 60) for other in others * 2))

    assert b"240" == (await store.kv.get("n")).value


async def test_a_stream_has_one_writer_over_all_processes(store, other_process):
    """Ours: whoever was overtaken by another process is refused."""
    other = await other_process()
    await store.log.write("s", 1, [b"a"])
    await other.ask("log.write", "s", 2, [b"end"])

    with pytest.raises(OtherFailed, match="Overtaken"):
        await other.ask("log.write", "s", 1, [b"late"])
    assert [(1, b"a"), (2, b"end")] == await store.log.read("s", 0, 10)


async def test_a_limit_holds_for_all_processes_together(store, other_process):
    """Ours: two processes do not allow twice as much."""
    others = [await other_process() for _ in range(2)]
    taken = await asyncio.gather(
        *(other.ask("take_many", "calls", 30, 30_000, "a", 40) for other in others)
    )

    assert 30 == sum(taken)
    assert 0.0 < await store.meter("calls", Rate(30, 30_000)).take("a")


async def test_messages_pass_in_both_directions(store, other_process):
    """Ours: what one process publishes others hear, in its order, however large."""
    other, heard = await other_process(), asyncio.Queue()
    await store.bus.subscribe("here", heard.put_nowait)
    await other.ask("subscribe", "there")
    sent = [b"%d" % number for number in range(100)] + [b"x" * 4_000_000, b"end"]
    for message in sent:
        assert await store.bus.publish("there", message)
    await other.ask("publish_many", "here", b"m", 100)

    assert sent == await other.ask("wait_heard", "there", len(sent))
    assert [b"m%d" % number for number in range(100)] == [await heard.get() for _ in range(100)]


async def test_messages_of_several_publishers_keep_the_order_of_each(store, other_process):
    """Ours: none is lost or heard twice, whoever else publishes."""
    heard, others = asyncio.Queue(), [await other_process() for _ in range(2)]
    await store.bus.subscribe("news", heard.put_nowait)
    await asyncio.gather(
        *(o.ask("publish_many", "news", n, 150) for o, n in zip(others, (b"a", b"b"), strict=True))
    )
    messages = [await heard.get() for _ in range(300)]

    for name in (b"a", b"b"):
        assert [b"%s%d" % (name, n) for n in range(150)] == [m for m in messages if m[:1] == name]


async def test_letters_pass_between_processes(store, other_process):
    """Ours: many at once, each with its answer."""
    other, box = await other_process(), Mailbox(store.bus, "here")
    await other.ask("open_mailbox", "there")
    await box.open()
    bodies = [b"%d" % number for number in range(50)]

    assert bodies == await asyncio.gather(*(box.send("there", "echo", body) for body in bodies))
    await box.close()


async def test_a_letter_to_a_killed_process_is_undelivered(store, other_process):
    """Ours: its sender is told, and everyone else's letters pass as before."""
    dead, alive, box = await other_process(), await other_process(), Mailbox(store.bus, "here")
    await dead.ask("open_mailbox", "dead")
    await alive.ask("open_mailbox", "alive")
    await box.open()
    waiting = asyncio.create_task(box.send("dead", "wait", b"", 0.3))
    assert b"a" == await box.send("dead", "echo", b"a")
    await dead.kill()

    with pytest.raises(MailUndelivered):
        await waiting
    with pytest.raises(MailUndelivered):
        await box.send("dead", "echo", b"", 0.3)
    assert b"a" == await box.send("alive", "echo", b"a")
    await box.close()


async def test_a_process_that_was_stopped_hears_what_was_said_meanwhile_or_of_a_gap(
    store, other_process
):
    """Ours: nothing is lost without a word."""
    other = await other_process()
    await other.ask("subscribe", "news")
    await store.bus.publish("news", b"before")
    await other.ask("wait_heard", "news", 1)
    other.stop()
    for number in range(50):
        await store.bus.publish("news", b"%d" % number)
    other.resume()
    heard = asyncio.ensure_future(other.ask("wait_heard", "news", 51))
    gap = asyncio.ensure_future(other.ask("wait_gap"))
    done, left = await asyncio.wait({heard, gap}, return_when=asyncio.FIRST_COMPLETED)

    assert done
    if heard in done:
        assert [b"before", *(b"%d" % number for number in range(50))] == heard.result()
    for future in left:
        future.cancel()


async def test_what_was_acknowledged_outlives_a_kill(store, other_process):
    """Ours: a process that is killed in the middle of a write loses nothing it was told is kept."""
    other = await other_process()
    writing = other.begin("write_until_killed", "s")
    while await store.kv.get("acknowledged/s") is None:  # noqa: ASYNC110 - a value tells nobody
        await asyncio.sleep(0.005)
    await other.kill()
    told = int((await store.kv.get("acknowledged/s")).value)
    entries = [(1, b"1"), *await store.log.read("s", told - 1, 10)]

    assert writing.cancelled()
    assert (told, b"%d" % told) in entries
    await store.log.write("s", entries[-1][0] + 1, [b"end"])


async def test_processes_that_start_together_agree(other_process):
    """Ours: each is a node of its own, and all have one secret."""
    others = [await other_process() for _ in range(3)]
    joined = await asyncio.gather(*(other.ask("join", "shop", 6.0) for other in others))

    assert 3 == len({id for id, _ in joined})
    assert 1 == len({secret for _, secret in joined})
    with pytest.raises(OtherFailed, match="belongs to the server 'shop'"):
        await (await other_process()).ask("join", "another", 6.0)


async def test_the_death_of_a_process_is_seen_by_the_others(store, other_process):
    """Ours: a process that is killed says nothing, and its lease does."""
    other, node, dead = await other_process(), Node(store, name="shop", ttl=TTL_S), asyncio.Queue()
    [id, _] = await other.ask("join", "shop", TTL_S)
    await node.join()
    node.on_death(dead.put)
    assert await node.is_alive(id)
    await other.kill()

    assert id == await dead.get()
    assert not await node.is_alive(id)
    await node.leave()


async def test_a_process_that_was_stopped_for_longer_than_its_lease_comes_back(
    store, other_process
):
    """Ours: it finds out by itself that it was taken for dead."""
    other, node, dead = await other_process(), Node(store, name="shop", ttl=TTL_S), asyncio.Queue()
    [id, _] = await other.ask("join", "shop", TTL_S)
    await node.join()
    node.on_death(dead.put)
    other.stop()
    assert id == await dead.get()
    other.resume()
    while id not in await node.list_living():  # noqa: ASYNC110 - a lease tells nobody
        await asyncio.sleep(0.01)

    await node.leave()
