"""Program of another process with a store: does what it reads on stdin, and writes what came of it.

Each message is four bytes of length, then MessagePack: ``[number, what, args]`` in, and
``[number, done, result]`` out. ``what`` is a method of the store such as ``"kv.get"``, or one of
:class:`Program`.
"""

import asyncio
import sys

import msgspec

from isthmus.nodes.node import Node
from isthmus.store.mailbox import Mailbox
from isthmus.store.meter import Rate
from isthmus.store.store import open_store

HEAD_BYTES = 4


class Program:
    """What the process can do besides the methods of its store."""

    def __init__(self, url):
        self.store = open_store(url)
        self.heard = {}
        self.changed = asyncio.Event()
        self.gaps = 0
        self.mailbox = None
        self.node = None

    async def open(self):
        """Open the store."""
        await self.store.open()

    async def subscribe(self, channel):
        """Keep what is heard on a channel."""
        kept = self.heard.setdefault(channel, [])

        def keep(message):
            kept.append(message)
            self.changed.set()

        await self.store.bus.subscribe(channel, keep)
        self.store.bus.on_gap(self.count_gap)

    def count_gap(self):
        """Keep that something may be lost."""
        self.gaps += 1
        self.changed.set()

    async def wait_until(self, holds):
        """Wait until something that was heard makes it true."""
        while not holds():
            self.changed.clear()
            await self.changed.wait()

    async def wait_heard(self, channel, count):
        """The first messages of a channel, once there are so many."""
        await self.wait_until(lambda: len(self.heard[channel]) >= count)
        return self.heard[channel][:count]

    async def wait_gap(self):
        """Wait until something may be lost."""
        await self.wait_until(lambda: self.gaps)

    async def publish_many(self, channel, prefix, count):
        """Publish numbered messages, one after the other."""
        for number in range(count):
            await self.store.bus.publish(channel, b"%s%d" % (prefix, number))

    async def increment(self, key, times):
        """Add to a number under a key, by compare and set."""
        for _ in range(times):
            while True:
                entry = await self.store.kv.get(key)
                number = 0 if entry is None else int(entry.value)
                version = 0 if entry is None else entry.version
                if await self.store.kv.cas(key, b"%d" % (number + 1), version) is not None:
                    break

    async def take_many(self, name, amount, seconds, key, times):
        """How many of so many takes a meter lets through."""
        meter = self.store.meter(name, Rate(amount, seconds))
        return sum([await meter.take(key) == 0.0 for _ in range(times)])

    async def write_until_killed(self, stream):
        """Write entries one after the other; what is acknowledged is told by a put of its place."""
        place = 1
        while True:
            await self.store.log.write(stream, place, [b"%d" % place])
            await self.store.kv.put(f"acknowledged/{stream}", b"%d" % place)
            place += 1

    async def open_mailbox(self, address):
        """Take letters in: ``echo`` gives them back, ``wait`` never answers."""
        self.mailbox = Mailbox(self.store.bus, address)
        self.mailbox.handle("echo", self.echo)
        self.mailbox.handle("wait", self.wait)
        await self.mailbox.open()

    async def echo(self, body):
        """Give a letter back."""
        return body

    async def wait(self, body):
        """Never end."""
        await asyncio.Event().wait()
        return body

    async def send(self, address, topic, body):
        """Send a letter."""
        return await self.mailbox.send(address, topic, body)

    async def join(self, name, ttl):
        """Be a node; returns its id and its secret."""
        self.node = Node(self.store, name=name, ttl=ttl)
        await self.node.join()
        return [self.node.id, self.node.secrets[0]]

    async def leave(self):
        """Be a node no longer."""
        await self.node.leave()


async def serve(url):
    """Do what stdin says, until it ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    program = Program(url)

    async def do(number, what, args):
        target = program.store if "." in what else program
        try:
            for name in what.split("."):
                target = getattr(target, name)
            result = [number, True, await target(*args)]
        except Exception as error:  # noqa: BLE001 - it is raised in the test
            result = [number, False, [type(error).__name__, str(error)]]
        data = msgspec.msgpack.encode(result)
        sys.stdout.buffer.write(len(data).to_bytes(HEAD_BYTES, "big") + data)
        sys.stdout.buffer.flush()

    tasks = set()
    while True:
        try:
            head = await reader.readexactly(HEAD_BYTES)
            data = await reader.readexactly(int.from_bytes(head, "big"))
        except asyncio.IncompleteReadError:
            break
        task = loop.create_task(do(*msgspec.msgpack.decode(data)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
