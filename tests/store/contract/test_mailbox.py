"""Contract of mailboxes: a letter to one node has one answer, or an error that says why not."""

import asyncio

import pytest

from isthmus.errors import UsageError
from isthmus.store.mailbox import Mailbox, MailRefused, MailUndelivered, ReplayWindow


@pytest.fixture
async def open_mailbox(open_store):
    """Opens mailboxes, each over a store of its own."""
    opened = []

    async def open_one(address, **handlers):
        box = Mailbox((await open_store()).bus, address)
        for topic, handler in handlers.items():
            box.handle(topic, handler)
        await box.open()
        await box.open()
        opened.append(box)
        return box

    yield open_one
    for box in opened:
        await box.close()


async def echo(body):
    """Give a letter back."""
    return body


async def test_a_letter_is_answered(open_mailbox):
    """Ours: the answer comes to who asked, and to nobody else."""
    one, other = await open_mailbox("n1"), await open_mailbox("n2", echo=echo)
    await open_mailbox("n3", echo=echo)

    assert b"hello" == await one.send("n2", "echo", b"hello")
    assert b"self" == await other.send("n2", "echo", b"self")


async def test_many_letters_are_under_way_at_once(open_mailbox):
    """Ours: each answer belongs to its letter, in whichever order they come."""
    sent, gate = [], asyncio.Event()

    async def wait_for_all(body):
        sent.append(body)
        if len(sent) == 80:
            gate.set()
        await gate.wait()
        return body

    one, two = await open_mailbox("n1"), await open_mailbox("n2")
    await open_mailbox("n3", wait=wait_for_all)
    bodies = [b"%d" % n for n in range(80)]
    answers = await asyncio.gather(
        *((one, two)[n % 2].send("n3", "wait", body, 10.0) for n, body in enumerate(bodies))
    )

    assert bodies == answers


@pytest.mark.parametrize("size", [0, 3_000_000])
async def test_letters_of_any_size_are_answered(open_mailbox, size):
    """Ours: what a node asks another for may be a whole result."""
    one = await open_mailbox("n1")
    await open_mailbox("n2", echo=echo)

    assert b"x" * size == await one.send("n2", "echo", b"x" * size, 10.0)


async def test_a_letter_to_nobody_is_undelivered(open_mailbox):
    """Ours: whoever waits for a node that is not there is told within the time it gave."""
    one = await open_mailbox("n1")

    with pytest.raises(MailUndelivered, match="gone"):
        await one.send("gone", "echo", b"", 0.05)


async def test_a_letter_that_nobody_answers_is_undelivered(open_mailbox):
    """Ours: a node that hangs does not hang others."""
    one = await open_mailbox("n1")
    await open_mailbox("n2", wait=lambda body: asyncio.Event().wait())

    with pytest.raises(MailUndelivered, match="does not answer"):
        await one.send("n2", "wait", b"", 0.05)


async def test_a_refusal_is_told_with_its_reason(open_mailbox, caplog):
    """Ours: errors of this package are told as they are, others without what they hold."""

    async def refuse(body):
        raise UsageError("not today")

    async def fail(body):
        raise ValueError("secret")

    one = await open_mailbox("n1")
    await open_mailbox("n2", refuse=refuse, fail=fail)

    with pytest.raises(MailRefused, match=r"^not today$"):
        await one.send("n2", "refuse", b"")
    with pytest.raises(MailRefused, match=r"^it failed: ValueError$"):
        await one.send("n2", "fail", b"")
    with pytest.raises(MailRefused, match="nobody takes in letters on 'other'"):
        await one.send("n2", "other", b"")
    assert "a letter on fail" in caplog.text


async def test_a_letter_without_an_answer_is_taken_in(open_mailbox):
    """Ours: what needs no answer is sent without waiting for one."""
    taken = asyncio.Queue()

    async def take(body):
        await taken.put(body)
        return b""

    one = await open_mailbox("n1")
    await open_mailbox("n2", take=take)

    assert await one.post("n2", "take", b"a")
    assert await one.post("n2", "take", b"b")
    assert [b"a", b"b"] == [await taken.get(), await taken.get()]


async def test_who_waits_is_told_when_its_mailbox_closes(open_mailbox):
    """Ours: a node that ends tells its own callers, and cancels nobody's task."""
    taken = asyncio.Event()

    async def take(body):
        taken.set()
        await asyncio.Event().wait()

    one = await open_mailbox("n1")
    await open_mailbox("n2", take=take)
    sending = asyncio.create_task(one.send("n2", "take", b"", 60.0))
    await taken.wait()
    await one.close()

    with pytest.raises(MailUndelivered, match="n1 ends"):
        await sending


async def test_a_mailbox_that_was_closed_takes_no_letters_in(open_mailbox):
    """Ours: and one that was opened again does."""
    one, other = await open_mailbox("n1"), await open_mailbox("n2", echo=echo)
    await other.close()
    with pytest.raises(MailUndelivered):
        await one.send("n2", "echo", b"", 0.05)
    await other.open()

    assert b"a" == await one.send("n2", "echo", b"a")


async def test_a_handler_may_close_its_mailbox(open_mailbox):
    """Ours: a letter can tell a node to end."""
    ended = asyncio.Event()

    async def end(body):
        await other.close()
        ended.set()
        return b"bye"

    one, other = await open_mailbox("n1"), await open_mailbox("n2", end=end)

    assert b"bye" == await one.send("n2", "end", b"")
    assert ended.is_set()


async def test_what_is_no_letter_is_passed_over(open_store, open_mailbox, caplog):
    """Ours: a store that others write to cannot end a node."""
    one = await open_mailbox("n1")
    await open_mailbox("n2", echo=echo)
    await (await open_store()).bus.publish("mail/n2", b"\xc1 no letter")

    assert b"a" == await one.send("n2", "echo", b"a")
    assert "a letter of another node" in caplog.text


async def test_a_letter_that_comes_again_is_not_taken_in_twice(open_mailbox, open_store):
    """Ours: whoever can write to the bus cannot have a letter act again."""
    taken, carried = [], []

    async def take(body):
        taken.append(body)
        return b""

    await open_mailbox("n2", take=take)
    one, bus = await open_mailbox("n1"), (await open_store()).bus
    await bus.subscribe("mail/n2", carried.append)
    await one.send("n2", "take", b"1")
    await one.send("n2", "take", b"2")
    for message in [*carried]:
        await bus.publish("mail/n2", message)
    await one.send("n2", "take", b"3")

    assert [b"1", b"2", b"3"] == taken


@pytest.mark.parametrize(
    ("numbers", "accepted"),
    [
        ([1, 2, 3], [1, 2, 3]),
        ([1, 1, 1], [1]),
        ([3, 1, 2, 1, 3], [3, 1, 2]),
        ([1, 10**15, 1, 10**15, 10**15 - 1], [1, 10**15, 10**15 - 1]),
        ([5000, 904, 905, 905], [5000, 905]),
    ],
)
def test_numbers_of_letters_are_accepted_once(numbers, accepted):
    """Ours: also where they come in another order; what is older than can be told is not."""
    window = ReplayWindow()

    assert accepted == [number for number in numbers if window.accept(number)]
