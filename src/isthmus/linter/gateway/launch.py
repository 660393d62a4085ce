"""Gateways under test: one that runs already, and one that is started by a command."""

import asyncio
import json
import os
import shlex
import signal
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isthmus.errors import ConnectFailed, ConnectionLost, UsageError
from isthmus.transports.http.client.pool import open_requests

START_TIMEOUT_S = 30.0
LOOK_S = 0.1  # between two looks whether it answers
END_TIMEOUT_S = 5.0  # that a gateway has to end when it is told to
MAX_OUTPUT_CHARS = 2000
DEFAULT_URL = "http://127.0.0.1:{port}/mcp"


class RunningGateway:
    """A gateway that somebody else has configured and started.

    Args:
        url: where it answers.
    """

    restarts = False

    def __init__(self, url: str) -> None:
        self.url = url

    @asynccontextmanager
    async def run(self, _config: Mapping[str, Any]) -> AsyncIterator[None]:
        """Wait until it answers.

        Raises:
            ConnectFailed: it does not.
        """
        await wait_answering(self.url)
        yield


class CommandGateway:
    """A gateway that is started by a command, once for each configuration.

    Args:
        command: the command, in which ``{config}`` is the configuration's file and ``{port}`` a free port.
        url: where it answers, with ``{port}``.

    Raises:
        UsageError: the command names no ``{config}``, or cannot be read.
    """

    restarts = True

    def __init__(self, command: str, url: str = DEFAULT_URL) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--gateway {command!r} cannot be read: {error}") from error
        if "{config}" not in command:
            raise UsageError(
                "the command of --gateway has {config} where the file of its servers goes, and {port} for its port"
            )
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.url = url.replace("{port}", str(self._port))

    @asynccontextmanager
    async def run(self, config: Mapping[str, Any]) -> AsyncIterator[None]:
        """Run it until the block is left.

        Raises:
            ConnectFailed: it does not start; the message has the end of its output.
        """
        with TemporaryDirectory(prefix="isthmus-check-") as folder:
            file, output = Path(folder, "mcp.json"), Path(folder, "output")
            write_config(file, config)
            filled = {"{config}": str(file), "{port}": str(self._port)}
            words = [fill_word(word, filled) for word in self._words]
            process = await self._start(words, output)
            try:
                await self._wait_started(process, output)
                yield
            finally:
                await end_process(process)

    async def _start(self, words: list[str], output: Path) -> asyncio.subprocess.Process:
        sink = os.open(output, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # its children end with it
            )
        except OSError as error:
            raise ConnectFailed(f"the gateway {words[0]!r} cannot be started: {error}") from error
        finally:
            os.close(sink)

    async def _wait_started(self, process: asyncio.subprocess.Process, output: Path) -> None:
        answering = asyncio.ensure_future(wait_answering(self.url))
        ended = asyncio.ensure_future(process.wait())
        try:
            await asyncio.wait({answering, ended}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done() and answering.exception() is None:
                return
            text = read_end(output)
            how = f"ended with {process.returncode}" if ended.done() else f"is not at {self.url}"
            raise ConnectFailed(f"the gateway {how}; it said: {text}")
        finally:
            answering.cancel()
            ended.cancel()


def write_config(file: Path, config: Mapping[str, Any]) -> None:
    """Write a configuration for the gateway."""
    file.write_text(json.dumps(config), encoding="utf-8")


def read_end(output: Path) -> str:
    """The end of what a gateway wrote."""
    return output.read_text(encoding="utf-8", errors="replace")[-MAX_OUTPUT_CHARS:].strip()


def fill_word(word: str, filled: Mapping[str, str]) -> str:
    """A word of a command with its blanks filled."""
    for blank, value in filled.items():
        word = word.replace(blank, value)
    return word


async def wait_answering(url: str, timeout: float = START_TIMEOUT_S) -> None:
    """Wait until something answers HTTP at an address, whatever it answers.

    Raises:
        ConnectFailed: nothing does.
    """
    requests = open_requests(connect_timeout=END_TIMEOUT_S)
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    response = await requests.send("OPTIONS", url, {})
                except ConnectionLost:
                    await asyncio.sleep(LOOK_S)
                else:
                    response.close()
                    return
    except TimeoutError:
        raise ConnectFailed(f"nothing answers at {url} within {timeout:g} seconds") from None
    finally:
        await requests.close()


async def end_process(process: asyncio.subprocess.Process) -> None:
    """End a process that leads a group of its own, and what it started."""
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if process.returncode is not None:
            break
        signal_group(process, number)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_TIMEOUT_S)


def signal_group(process: asyncio.subprocess.Process, number: int) -> None:
    """Send a signal to a process and its children."""
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, number)  # started as the leader of its group
        else:
            process.terminate()
