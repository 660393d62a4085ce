"""Sealed bus: nodes hear each other, and nobody else."""

import pytest

from isthmus.nodes.sealed_bus import SealedBus
from isthmus.store import MemoryStore
from support.event_loop import run_turns


def make_bus(store, *secrets):
    bus = SealedBus(store.bus)
    bus.use_secrets(secrets)
    return bus


async def test_nodes_with_one_secret_hear_each_other():
    """Ours: what one says is what the other hears, and not what the store carries."""
    store, heard, carried = MemoryStore(), [], []
    one, other = make_bus(store, b"s" * 32), make_bus(store, b"s" * 32)
    await other.subscribe("c", heard.append)
    await store.bus.subscribe("c", carried.append)
    await one.publish("c", b"the answer")
    await run_turns()

    assert [b"the answer"] == heard
    assert b"the answer" not in carried[0]


async def test_a_secret_is_rotated_without_a_gap():
    """Ours: nodes that know the next secret hear those that use it already."""
    store, heard = MemoryStore(), []
    await make_bus(store, b"o" * 32, b"n" * 32).subscribe("c", heard.append)
    await make_bus(store, b"n" * 32, b"o" * 32).publish("c", b"new")
    await make_bus(store, b"o" * 32).publish("c", b"old")
    await run_turns()

    assert [b"new", b"old"] == heard


@pytest.mark.parametrize("forged", [b"", b"plain", b"\x31" * 60, bytes(200)])
async def test_what_the_nodes_did_not_seal_is_dropped(forged):
    """Ours: whoever can write to the store cannot speak for a node."""
    store, heard = MemoryStore(), []
    await make_bus(store, b"s" * 32).subscribe("c", heard.append)
    await store.bus.publish("c", forged)
    await make_bus(store, b"other secret" * 3).publish("c", b"other")
    await run_turns()

    assert [] == heard


async def test_a_message_of_another_channel_is_dropped():
    """Ours: a message that was kept cannot be said somewhere else."""
    store, heard, carried = MemoryStore(), [], []
    bus = make_bus(store, b"s" * 32)
    await bus.subscribe("mail/n2", heard.append)
    await store.bus.subscribe("mail/n1", carried.append)
    await bus.publish("mail/n1", b"for n1")
    await run_turns()
    await store.bus.publish("mail/n2", carried[0])
    await run_turns()

    assert [] == heard
