"""Redis client: one connection of this process, opened when it is needed and after it was lost.

All calls share it. Nothing is sent twice unless its caller says that it may be: whoever wrote and
got no answer is told that it is not known whether it was done.
"""

import asyncio
from typing import TYPE_CHECKING

from isthmus.store.redis.connection import (
    COMMAND_TIMEOUT_S,
    CONNECT_TIMEOUT_S,
    MAX_SHOWN_CHARS,
    RedisConnection,
    RedisCut,
    RedisMisconfigured,
    RedisReplyError,
    Reply,
    Word,
    connect,
)
from isthmus.store.redis.scripts import SCRIPTS, RedisScript
from isthmus.store.store import StoreUnavailable

if TYPE_CHECKING:
    from isthmus.store.redis.address import RedisAddress

MAX_VALUE_BYTES = 16 * 1024 * 1024  # of one value or message

TOTAL_TIMEOUT_S = CONNECT_TIMEOUT_S + COMMAND_TIMEOUT_S  # of a call that may be made twice


class RedisFull(StoreUnavailable):
    """The server has no memory left for what was to be stored."""


class RedisScriptMissing(StoreUnavailable):
    """The server has forgotten a script, and ran nothing."""


class RedisClient:
    """A server, as this process talks to it.

    Args:
        address: where it is.
    """

    def __init__(self, address: "RedisAddress") -> None:
        self.name = address.name
        self.address = address
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: RedisConnection | None = None
        self._opening: asyncio.Task[StoreUnavailable | None] | None = None

    async def open(self) -> None:
        """Connect, where that is not done yet.

        Raises:
            StoreUnavailable: it cannot be reached now.
            RedisMisconfigured: it does not let us in.
        """
        self._begin()
        if self._connection is None:
            await self._connect()

    async def close(self) -> None:
        """End the connection."""
        self._begin()
        opening, self._opening = self._opening, None
        if opening is not None:
            opening.cancel()
            await asyncio.wait((opening,))
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.end("it was closed here")

    def check_size(self, what: str, value: bytes) -> None:
        """See that a value is no longer than what is read of one.

        Raises:
            StoreUnavailable: it is.
        """
        if len(value) > MAX_VALUE_BYTES:
            raise StoreUnavailable(
                f"{what} in {self.name} has {MAX_VALUE_BYTES} bytes at most, not {len(value)}"
            )

    async def call(self, *words: Word, repeat: bool = False) -> Reply:
        """Send a command, and wait for its answer.

        Args:
            words: the command and its arguments.
            repeat: whether it may be done twice; then it is sent again where the connection ended
                before an answer came.

        Raises:
            StoreUnavailable: there is none, or it is an error.
        """
        return await self._ask(words, words if repeat else None)

    async def run(
        self,
        script: RedisScript,
        keys: tuple[Word, ...],
        arguments: tuple[Word, ...],
        *,
        again: tuple[Word, ...] | None = None,
    ) -> Reply:
        """Run a script, which Redis knows by its name.

        Args:
            script: which one.
            keys: what it reads and writes.
            arguments: the rest.
            again: the arguments for a second time, where the connection ended before an answer
                came; None where it must not run twice.

        Raises:
            StoreUnavailable: it did not run, or failed, or there was no answer.
        """
        start = ("EVALSHA", script.sha, len(keys), *keys)
        try:
            return await self._ask(
                (*start, *arguments), None if again is None else (*start, *again)
            )
        except RedisScriptMissing:  # somebody said SCRIPT FLUSH: nothing was done
            return await self.call("EVAL", script.text, len(keys), *keys, *arguments)

    # Inside

    def _begin(self) -> asyncio.AbstractEventLoop:
        """Forget the connection of a loop that has ended, where another one runs now."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._connection, self._opening = loop, None, None
        return loop

    async def _ask(self, words: tuple[Word, ...], again: tuple[Word, ...] | None) -> Reply:
        """Send a command, and another one where the connection ended before its answer came."""
        until = self._begin().time() + TOTAL_TIMEOUT_S
        try:
            return await self._send(words)
        except RedisReplyError as error:
            raise self._translate(str(error)) from None
        except RedisCut:
            if again is None:
                raise
        try:
            async with asyncio.timeout_at(until):
                return await self._send(again)
        except RedisReplyError as error:
            raise self._translate(str(error)) from None
        except TimeoutError:
            raise StoreUnavailable(
                f"{self.name}: no answer within {TOTAL_TIMEOUT_S:g} s; whether it was done is not "
                "known"
            ) from None

    async def _send(self, words: tuple[Word, ...]) -> Reply:
        connection = self._connection or await self._connect()
        return await connection.send(words)

    async def _connect(self) -> RedisConnection:
        """The connection; all who wait for it wait for one attempt."""
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_task(self._open())
        opening = self._opening
        await asyncio.wait((opening,))
        failure = StoreUnavailable(f"{self.name} cannot be reached: it was closed here")
        if not opening.cancelled() and (result := opening.result()) is not None:
            failure = result
        if self._connection is None:
            raise type(failure)(*failure.args)
        return self._connection

    async def _open(self) -> StoreUnavailable | None:
        """Open a connection; what keeps from it is returned, as more than one waits for it."""
        made: RedisConnection | None = None
        try:
            made = await connect(self.address, self._forget)
            await self._load_scripts(made)
        except (StoreUnavailable, RedisReplyError) as error:
            if made is not None:
                made.end("it was not opened")
            if isinstance(error, StoreUnavailable):
                return type(error)(*error.args)
            return self._judge_script_error(str(error))
        finally:
            self._opening = None
        self._connection = made
        return None

    def _forget(self, lost: RedisConnection, _reason: str) -> None:
        if self._connection is lost:
            self._connection = None

    async def _load_scripts(self, made: RedisConnection) -> None:
        await asyncio.gather(*(made.send(("SCRIPT", "LOAD", each.text)) for each in SCRIPTS))

    def _judge_script_error(self, message: str) -> StoreUnavailable:
        if message.startswith("NOPERM"):
            return RedisMisconfigured(
                f"{self.name} lets this user run no scripts ({message[:MAX_SHOWN_CHARS]}): "
                "redis-cli ACL SETUSER NAME +@scripting"
            )
        return self._translate(message)

    def _translate(self, message: str) -> StoreUnavailable:
        """The exception for an error of Redis's."""
        code = message.partition(" ")[0]
        if code == "OOM" or "OOM command" in message:
            return RedisFull(f"{self.name} has no memory left: raise maxmemory, or free some")
        if code == "READONLY" and self._connection is not None:
            # it is a replica since a failover: the name may lead to another server by now
            self._connection.end("it has become a replica")
        if code == "NOSCRIPT":
            return RedisScriptMissing(f"{self.name} does not know a script of ours")
        if code == "LOADING":
            return StoreUnavailable(f"{self.name} is not ready: it loads its data")
        return StoreUnavailable(f"{self.name} refuses a command: {message[:MAX_SHOWN_CHARS]}")
