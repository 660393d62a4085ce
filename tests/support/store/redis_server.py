"""A Redis server for tests: one of a test's own, or the one that a session of tests shares.

redis-server is on PATH, where ``REDIS_SERVER`` says, or unpacked under ``.peers`` by
``tools/redis_server.py``. ``ISTHMUS_TEST_REDIS=URL`` has the tests that share a server use another.
"""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import hiredis
import pytest

__all__ = ["RedisServer", "ask_redis", "make_test_url"]

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))

import debian

START_TIMEOUT_S = 10.0

_shared: "list[RedisServer]" = []


class RedisServer:
    """A server on a Unix socket in a folder; it keeps what it is given, as a real one should.

    Args:
        folder: for its socket and its files.
        settings: more of its settings, such as ``maxmemory="8mb"``.
    """

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.path = folder / "redis.sock"
        self._settings = {
            "port": "0",
            "unixsocket": str(self.path),
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "daemonize": "no",
            **{name.replace("_", "-"): value for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return f"unix://{self.path}"

    def start(self) -> None:
        """Start it, and wait until it has read what it kept."""
        program = debian.REDIS.find()
        if program is None:
            pytest.skip("there is no redis-server: run tools/redis_server.py")
        words = [word for name, value in self._settings.items() for word in (f"--{name}", value)]
        ending = shutil.which("setpriv")  # has it end with the tests, however they end
        before = [ending, "--pdeathsig", "KILL"] if ending else []
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                [*before, program, *words], stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        self._wait_until_ready()

    def ask(self, *words: str | bytes | int) -> object:
        """Have it do something, waiting for the answer."""
        return ask_redis(self.path, *words)

    def kill(self) -> None:
        """End it where it stands; safe to call twice."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self.path.unlink(missing_ok=True)

    def pause(self) -> None:
        """Have it stand still, and what it is sent wait."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Have it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            try:
                if self.ask("PING") == "PONG":
                    return
            except (OSError, hiredis.ReplyError):
                pass  # it reads what it kept
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "output").read_text()
            time.sleep(0.005)  # it tells nobody that it is ready
        raise AssertionError("redis-server does not start")


def ask_redis(path: Path, *words: str | bytes | int) -> object:
    """Have a server do something, over a connection for this alone; text in answers is text."""
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(str(path))
        link.sendall(hiredis.pack_command(words))
        reader = hiredis.Reader(encoding="utf-8", errors="replace")
        while (answer := reader.gets()) is False:
            data = link.recv(65536)
            if not data:
                raise ConnectionResetError("it ended")
            reader.feed(data)
    if isinstance(answer, Exception):
        raise answer
    return answer


def make_test_url() -> str:
    """The URL of a server that tests share, with a prefix that is new.

    What is left under a prefix of a server of somebody else's goes when the tests end.
    """
    prefix = f"test-{os.urandom(6).hex()}:"
    given = os.environ.get("ISTHMUS_TEST_REDIS")
    if given:
        atexit.register(_clean, given, prefix)
        return f"{given}{'&' if '?' in given else '?'}prefix={prefix}"
    if not _shared:
        folder = Path(tempfile.mkdtemp(prefix="isthmus-redis-"))
        server = RedisServer(folder)
        try:
            server.start()
        except BaseException:
            shutil.rmtree(folder)
            raise
        _shared.append(server)
        atexit.register(_end_shared)
    return f"{_shared[0].url}?prefix={prefix}"


def _end_shared() -> None:
    server = _shared.pop()
    server.kill()
    shutil.rmtree(server.folder, ignore_errors=True)


def _clean(url: str, prefix: str) -> None:
    """Delete all keys of a prefix."""
    import asyncio

    from isthmus.store.redis.address import parse_redis_url
    from isthmus.store.redis.client import RedisClient

    async def clean() -> None:
        client = RedisClient(parse_redis_url(url))
        cursor = b"0"
        while True:
            cursor, keys = await client.call("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", 1000)
            if keys:
                await client.call("UNLINK", *keys)
            if cursor == b"0":
                break
        await client.close()

    asyncio.run(clean())
