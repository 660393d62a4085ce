"""Another process with a store: a test tells it what to do, stops it, and kills it."""

import asyncio
import signal
import sys
from pathlib import Path

import msgspec

__all__ = ["OtherFailed", "OtherProcess"]

PROGRAM = Path(__file__).with_name("other_process.py")

HEAD_BYTES = 4


class OtherFailed(Exception):
    """The other process could not do it.

    Attributes:
        kind: the name of the error's class there.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class OtherProcess:
    """A process that runs ``other_process.py``.

    Args:
        process: it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._number = 0
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._reading = asyncio.get_running_loop().create_task(self._read())

    @classmethod
    async def start(cls, url: str) -> "OtherProcess":
        """Start one, with a store that is open."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            url,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        other = cls(process)
        await other.ask("open")
        return other

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def begin(self, what: str, *args: object) -> "asyncio.Future[object]":
        """Tell it to do something, such as ``"kv.get"``; the future has what it returned."""
        self._number += 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[self._number] = future
        data = msgspec.msgpack.encode([self._number, what, args])
        assert self._process.stdin is not None
        self._process.stdin.write(len(data).to_bytes(HEAD_BYTES, "big") + data)
        return future

    async def ask(self, what: str, *args: object) -> object:
        """Tell it to do something, and wait for what it returned.

        Raises:
            OtherFailed: it could not.
        """
        return await self.begin(what, *args)

    def stop(self) -> None:
        """Have it stand still, as on a machine that sleeps."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """End it where it stands (kill -9); safe to call twice."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        await self._reading
        assert self._process.stdin is not None
        self._process.stdin.close()
        # Its pipes are closed once the loop has heard of the end of both.
        transport = self._process._transport
        transport.close()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        while True:
            try:
                head = await self._process.stdout.readexactly(HEAD_BYTES)
                data = await self._process.stdout.readexactly(int.from_bytes(head, "big"))
            except asyncio.IncompleteReadError:
                break
            number, done, result = msgspec.msgpack.decode(data)
            future = self._waiting.pop(number)
            if future.done():
                continue
            if done:
                future.set_result(result)
            else:
                future.set_exception(OtherFailed(*result))
        for future in self._waiting.values():
            future.cancel()
