"""Contract of logs: order, one writer, all or none, and bounds that are told of."""

import asyncio

import pytest

from isthmus.store.log import Forgotten, LogLimits, Overtaken


async def fill(log, stream, count, size=1):
    """Write that many entries, each by itself."""
    for place in range(1, count + 1):
        await log.write(stream, place, [b"x" * size])


async def read_places(log, stream, after, limit=100):
    """The places of the entries after one."""
    return [place for place, _ in await log.read(stream, after, limit)]


async def test_what_came_after_an_entry_is_given_in_order(store):
    """Ours: a stream goes on where it broke."""
    await store.log.write("s", 1, [b"0", b"1"])
    await store.log.write("s", 3, [b"2"])
    await store.log.write("s", 4, [b"3", b"4"])

    assert [(3, b"2"), (4, b"3"), (5, b"4")] == await store.log.read("s", 2, 10)
    assert [(1, b"0"), (2, b"1")] == await store.log.read("s", 0, 2)
    assert [] == await store.log.read("s", 5, 10)


async def test_what_one_writes_others_read(open_store):
    """Ours: a stream goes on at any node."""
    one, other = await open_store(), await open_store()
    await one.log.write("s", 1, [b"a"])

    assert [(1, b"a")] == await other.log.read("s", 0, 10)
    with pytest.raises(Overtaken):
        await other.log.write("s", 1, [b"b"])


async def test_a_stream_is_followed_by_reading_on(open_store):
    """Ours: a reader that asks again from its last place misses nothing and sees nothing twice."""
    writer, reader = await open_store(), await open_store()
    seen = []
    for place in range(1, 40, 2):
        await writer.log.write("s", place, [b"%d" % place, b"%d" % (place + 1)])
        seen += await reader.log.read("s", len(seen), 3)
    seen += await reader.log.read("s", len(seen), 100)

    assert [(n, b"%d" % n) for n in range(1, 41)] == seen


async def test_streams_are_apart(store):
    """Ours: each has places and entries of its own."""
    await store.log.write("a", 1, [b"a"])
    await store.log.write("b", 1, [b"b"])

    assert [(1, b"a")] == await store.log.read("a", 0, 10)
    assert [(1, b"b")] == await store.log.read("b", 0, 10)


@pytest.mark.parametrize("name", ["a b", "ä/☃", "a\0b", "*", "m-n1.2"])
async def test_any_text_names_a_stream(store, name):
    """Ours: a name means nothing to the engine."""
    await store.log.write(name, 1, [b"a"])

    assert [(1, b"a")] == await store.log.read(name, 0, 10)


@pytest.mark.parametrize("value", [b"", b"\0\r\n", b"x" * 900_000])
async def test_any_bytes_are_an_entry(store, value):
    """Ours: an entry comes back byte for byte."""
    await store.log.write("s", 1, [value])

    assert [(1, value)] == await store.log.read("s", 0, 10)


async def test_a_writer_that_was_overtaken_is_refused(open_store):
    """Ours: who was taken for dead adds nothing behind the end that another wrote."""
    first, second = await open_store(), await open_store()
    await first.log.write("s", 1, [b"a", b"b"])
    await second.log.write("s", 3, [b"end"])

    for place in (1, 2, 3):
        with pytest.raises(Overtaken, match="'s'"):
            await first.log.write("s", place, [b"late"])
    assert [b"a", b"b", b"end"] == [value for _, value in await first.log.read("s", 0, 10)]


async def test_a_write_that_is_refused_adds_nothing(store):
    """Ours: a batch is added as a whole, or not at all."""
    await store.log.write("s", 1, [b"a", b"b"])
    with pytest.raises(Overtaken):
        await store.log.write("s", 2, [b"x", b"y", b"z"])

    assert [1, 2] == await read_places(store.log, "s", 0)
    await store.log.write("s", 3, [b"c"])


async def test_one_of_many_writers_of_a_place_wins(open_store):
    """Ours: of those who take over from a dead writer at the same moment, one ends the stream."""
    stores = [await open_store() for _ in range(3)]
    await stores[0].log.write("s", 1, [b"a"])
    done = await asyncio.gather(
        *(stores[n % 3].log.write("s", 2, [b"%d" % n, b"end"]) for n in range(12)),
        return_exceptions=True,
    )
    [winner] = [n for n, error in enumerate(done) if error is None]

    assert {Overtaken} == {type(error) for error in done if error is not None}
    assert [(2, b"%d" % winner), (3, b"end")] == await stores[0].log.read("s", 1, 10)


async def test_places_that_were_passed_over_are_gone(store):
    """Ours: a writer that could not write for a while goes on, and readers are told of the hole."""
    await store.log.write("s", 1, [b"a"])
    await store.log.write("s", 5, [b"e", b"f"])

    assert [(5, b"e"), (6, b"f")] == await store.log.read("s", 4, 10)
    for after in (0, 1, 3):
        with pytest.raises(Forgotten):
            await store.log.read("s", after, 10)


async def test_a_stream_may_begin_late(store):
    """Ours: also with its first write."""
    await store.log.write("s", 3, [b"c"])

    assert [(3, b"c")] == await store.log.read("s", 2, 10)
    with pytest.raises(Forgotten):
        await store.log.read("s", 0, 10)


@pytest.mark.parametrize("after", [-1, 2, 99])
async def test_an_entry_that_never_was_is_an_error(store, after):
    """Ours: never an empty answer to a question that makes no sense."""
    await store.log.write("s", 1, [b"one"])

    with pytest.raises(Forgotten, match=f"after {after}"):
        await store.log.read("s", after, 10)


async def test_an_unknown_stream_is_an_error_and_so_is_a_forgotten_one(store):
    """Ours: whoever asks is told."""
    await store.log.write("s", 1, [b"one"])
    await store.log.forget("s")
    await store.log.forget("s")

    for stream in ("s", "other"):
        with pytest.raises(Forgotten, match=stream):
            await store.log.read(stream, 0, 10)


async def test_a_stream_is_a_ring_and_says_when_something_is_gone(open_store):
    """Ours: bounded by count, without holes."""
    store = await open_store(limits=LogLimits(entries=3))
    await fill(store.log, "one by one", 5)
    await store.log.write("together", 1, [b"x"] * 5)

    for stream in ("one by one", "together"):
        assert [3, 4, 5] == await read_places(store.log, stream, 2)
        for after in (0, 1):
            with pytest.raises(Forgotten):
                await store.log.read(stream, after, 10)


async def test_a_stream_is_bounded_by_bytes_and_keeps_its_newest_entry(open_store):
    """Ours: one large entry may be kept, many may not."""
    store = await open_store(limits=LogLimits(stream_size=10))
    await fill(store.log, "s", 4, size=4)
    assert [3, 4] == await read_places(store.log, "s", 2)
    with pytest.raises(Forgotten):
        await store.log.read("s", 1, 10)

    await store.log.write("s", 5, [b"x" * 50])
    assert [5] == await read_places(store.log, "s", 4)


async def test_entries_grow_old(engine, open_store):
    """Ours: what is older than the log keeps is gone, and the stream goes on."""
    store = await open_store(limits=LogLimits(age=engine.span))
    await store.log.write("s", 1, [b"old"])
    await engine.pass_time(engine.span)
    with pytest.raises(Forgotten):
        await store.log.read("s", 0, 10)
    await store.log.write("s", 2, [b"young"])

    assert [(2, b"young")] == await store.log.read("s", 1, 10)
    with pytest.raises(Forgotten):
        await store.log.read("s", 0, 10)


async def test_a_place_is_not_free_again_when_its_entry_is_old(engine, open_store):
    """Ours: a writer that was overtaken is refused, also where nothing is kept any more."""
    store = await open_store(limits=LogLimits(age=engine.span))
    await store.log.write("s", 1, [b"a", b"end"])
    await engine.pass_time(engine.span)
    await store.log.write("other", 1, [b"x"])

    with pytest.raises(Overtaken):
        await store.log.write("s", 2, [b"late"])


async def test_many_streams_are_written_at_once(open_store):
    """Ours: no entry gets into another stream, and none is lost."""
    stores = [await open_store() for _ in range(2)]

    async def write(number):
        log = stores[number % 2].log
        for place in range(1, 9):
            await log.write(f"s{number}", place, [b"%d.%d" % (number, place)])

    await asyncio.gather(*(write(number) for number in range(16)))

    for number in range(16):
        expected = [(place, b"%d.%d" % (number, place)) for place in range(1, 9)]
        assert expected == await stores[0].log.read(f"s{number}", 0, 100)
