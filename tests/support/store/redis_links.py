"""Links between a Redis client and its server that a test cuts, and a false server."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Self

import hiredis

__all__ = ["CutLink", "FalseRedis"]


class CutLink:
    """A socket that passes everything on to a server, until it is told to lose an answer.

    Args:
        path: of the socket that clients connect to.
        server: of the server's.
    """

    def __init__(self, path: Path, server: Path) -> None:
        self.path = path
        self._server = server
        self._answers_lost = 0
        self._listening: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._serve, str(self.path))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()
        for task in tuple(self._passing):
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    def lose_next_answer(self) -> None:
        """Pass the next command on, and end the connection when its answer comes."""
        self._answers_lost = 1

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        there, here = await asyncio.open_unix_connection(str(self._server))
        up = asyncio.create_task(self._pass(reader, here, answers=False))
        try:
            await self._pass(there, writer, answers=True)
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            up.cancel()
            here.close()
            writer.close()
            self._passing.discard(task)

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while data := await reader.read(65536):
            if answers and self._answers_lost:
                self._answers_lost -= 1
                return
            writer.write(data)


class FalseRedis:
    """A server that answers as a test says, and PONG, OK and 0 otherwise.

    Args:
        path: of its socket.
        answers: bytes by command, or a function of its words that makes them.
    """

    def __init__(
        self, path: Path, **answers: "bytes | Callable[[list[bytes]], bytes | None]"
    ) -> None:
        self.path = path
        self._answers = {"PING": b"+PONG\r\n", "TIME": _format_time(0.0), **answers}
        self._listening: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"unix://{self.path}"

    async def __aenter__(self) -> Self:
        self._listening = await asyncio.start_unix_server(self._serve, str(self.path))
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listening is not None
        self._listening.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        commands = hiredis.Reader()
        try:
            while data := await reader.read(65536):
                commands.feed(data)
                while (words := commands.gets()) is not False:
                    answer = self._answers.get(words[0].decode(), b"+OK\r\n")
                    writer.write((answer(words) if callable(answer) else answer) or b"")
        except ConnectionError:
            pass
        finally:
            writer.close()


def format_bulk(text: str) -> bytes:
    """Text as Redis sends it."""
    data = text.encode()
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _format_time(offset: float) -> Callable[[list[bytes]], bytes]:
    return lambda words: format_time(offset)


def format_time(offset: float) -> bytes:
    """The answer to TIME of a clock that is so many seconds ahead."""
    import time

    now = time.time() + offset
    seconds, micros = str(int(now)), str(int(now % 1 * 1e6))
    return b"*2\r\n" + format_bulk(seconds) + format_bulk(micros)
