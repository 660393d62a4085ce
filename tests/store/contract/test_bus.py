"""Contract of buses: who listens hears, in order, until it ends."""

import asyncio

import pytest


class Ear:
    """Keeps what is heard, and waits for it."""

    def __init__(self):
        self.heard = []
        self._changed = asyncio.Event()

    def __call__(self, message):
        self.heard.append(message)
        self._changed.set()

    async def wait(self, count):
        """All that was heard, once it is so much."""
        while len(self.heard) < count:
            self._changed.clear()
            await self._changed.wait()
        return self.heard


async def test_all_who_listen_hear_and_so_does_the_sender(open_store):
    """Ours: a channel reaches every store over the engine."""
    one, other = await open_store(), await open_store()
    ears = [Ear(), Ear(), Ear()]
    for bus, ear in zip((one.bus, one.bus, other.bus), ears, strict=True):
        await bus.subscribe("news", ear)

    assert await one.bus.publish("news", b"a")
    assert [[b"a"]] * 3 == [await ear.wait(1) for ear in ears]


async def test_nobody_hears_what_was_published_before(open_store):
    """Ours: a bus keeps nothing for those who come later."""
    one, other = await open_store(), await open_store()
    first, late = Ear(), Ear()
    await one.bus.subscribe("news", first)
    await one.bus.publish("news", b"early")
    await first.wait(1)
    await other.bus.subscribe("news", late)
    await one.bus.publish("news", b"a")

    assert [b"a"] == await late.wait(1)


async def test_channels_are_apart(open_store):
    """Ours: who listens to one hears nothing of another, whatever their names have in common."""
    one, other = await open_store(), await open_store()
    names = ["a", "a/b", "a*", "ä", "a\0b"]
    ears = {name: Ear() for name in names}
    for name, ear in ears.items():
        await other.bus.subscribe(name, ear)
    for name in names:
        await one.bus.publish(name, name.encode())

    for name, ear in ears.items():
        assert [name.encode()] == await ear.wait(1)


async def test_what_one_publishes_is_heard_in_its_order(open_store):
    """Ours: the messages of each publisher come as they were sent, none twice."""
    stores = [await open_store() for _ in range(3)]
    ear = Ear()
    await stores[0].bus.subscribe("news", ear)

    async def publish(bus, name):
        for number in range(50):
            await bus.publish("news", b"%s%d" % (name, number))

    await asyncio.gather(
        *(publish(s.bus, n) for s, n in zip(stores, (b"a", b"b", b"c"), strict=True))
    )
    heard = await ear.wait(150)

    for name in (b"a", b"b", b"c"):
        assert [b"%s%d" % (name, n) for n in range(50)] == [m for m in heard if m[:1] == name]


async def test_who_unsubscribed_hears_nothing_more(open_store):
    """Ours: also where others of the same process go on listening."""
    one, other = await open_store(), await open_store()
    gone, stays = Ear(), Ear()
    unsubscribe = await other.bus.subscribe("news", gone)
    await other.bus.subscribe("news", stays)
    await one.bus.publish("news", b"a")
    await gone.wait(1)
    unsubscribe()
    unsubscribe()
    await one.bus.publish("news", b"b")

    assert [b"a", b"b"] == await stays.wait(2)
    assert [b"a"] == gone.heard


async def test_who_comes_back_hears_again(open_store):
    """Ours: a channel that was left can be listened to again."""
    one, other = await open_store(), await open_store()
    ear = Ear()
    for count, message in enumerate((b"a", b"b", b"c"), 1):
        unsubscribe = await other.bus.subscribe("news", ear)
        await one.bus.publish("news", message)
        await ear.wait(count)
        unsubscribe()

    assert [b"a", b"b", b"c"] == ear.heard


async def test_a_message_to_nobody_is_no_error(store):
    """Ours: what nobody hears is lost, and may be known to be."""
    assert await store.bus.publish("news", b"a") in {True, False}


async def test_a_message_that_was_heard_was_not_said_to_be_lost(open_store):
    """Ours: False is told only where it is certain."""
    one, other = await open_store(), await open_store()
    await other.bus.subscribe("news", Ear())

    assert await one.bus.publish("news", b"a")


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
async def test_messages_of_any_size_pass(open_store, size):
    """Ours: a letter may hold a whole answer."""
    one, other = await open_store(), await open_store()
    ear = Ear()
    await other.bus.subscribe("news", ear)
    await one.bus.publish("news", b"\xff" * size)

    assert [b"\xff" * size] == await ear.wait(1)


async def test_a_listener_that_fails_is_not_the_others_trouble(open_store, caplog):
    """Ours: it is logged, and everyone else hears on."""
    one, other = await open_store(), await open_store()
    ear = Ear()

    def fail(message):
        raise ValueError("no")

    await other.bus.subscribe("news", fail)
    await other.bus.subscribe("news", ear)
    await one.bus.publish("news", b"a")
    await one.bus.publish("news", b"b")

    assert [b"a", b"b"] == await ear.wait(2)
    assert "listener" in caplog.text


async def test_a_listener_may_publish(open_store):
    """Ours: whoever hears something may answer at once."""
    one, other = await open_store(), await open_store()
    ear, tasks = Ear(), []
    await one.bus.subscribe("answers", ear)
    await other.bus.subscribe(
        "news", lambda m: tasks.append(asyncio.create_task(other.bus.publish("answers", m + b"!")))
    )
    await one.bus.publish("news", b"a")

    assert [b"a!"] == await ear.wait(1)
    await asyncio.gather(*tasks)


async def test_nothing_is_lost_between_stores_that_live(open_store):
    """Ours: no gap is reported where there is none."""
    one, other = await open_store(), await open_store()
    gaps, ear = [], Ear()
    other.bus.on_gap(lambda: gaps.append(1))()
    other.bus.on_gap(lambda: gaps.append(2))
    await other.bus.subscribe("news", ear)
    await asyncio.gather(*(one.bus.publish("news", b"%d" % n) for n in range(200)))

    assert [b"%d" % n for n in range(200)] == await ear.wait(200)
    assert [] == gaps
