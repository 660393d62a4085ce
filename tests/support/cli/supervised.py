"""A supervisor with its workers, as a user starts them, and calls to them on connections of their own."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from support.http.messages import (
    INITIALIZE,
    INITIALIZED,
    legacy_call_body,
    legacy_head,
    modern_body,
    modern_head,
)

FILE = '''
import asyncio, os, sys
from isthmus import Server

server = Server("crowd", version="1")

@server.tool
def pid() -> int:
    """The process that serves this."""
    return os.getpid()

@server.tool
async def rest(seconds: float = 0.01) -> str:
    """Take a while."""
    print("resting", file=sys.stderr, flush=True)
    await asyncio.sleep(seconds)
    return "rested"
'''


class Supervised:
    """A supervisor that runs.

    Args:
        process: the supervisor.

    Attributes:
        process: as given.
        port: where clients connect.
        lines: what was said on standard error, so far.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0
        self.lines: list[str] = []

    async def read_until(self, words: str) -> str:
        """The next line with these words."""
        assert self.process.stderr is not None
        while line := (await self.process.stderr.readline()).decode():
            self.lines.append(line.rstrip())
            if words in line:
                return line.rstrip()
        raise AssertionError(f"it ended, and said: {self.lines}")

    async def read_to_end(self) -> int:
        """The exit code, once all was said."""
        assert self.process.stderr is not None
        self.lines += (await self.process.stderr.read()).decode().splitlines()
        return await self.process.wait()

    async def send(self, head: dict[str, str], body: Any, verb: str = "POST") -> "Answer":
        """One request on a connection of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        path = "/mcp" if body is not None else head.pop("path")
        lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in head.items())]
        lines += ["connection: close", f"content-length: {len(data)}", "", ""]
        writer.write("\r\n".join(lines).encode() + data)
        whole = await reader.read()
        writer.close()
        return Answer(whole)

    async def call(
        self, tool: str = "pid", session: str | None = None, **arguments: Any
    ) -> "Answer":
        """Call a tool, in a legacy session or without one."""
        if session is not None:
            body = legacy_call_body(tool)
            body["params"]["arguments"] = arguments
            return await self.send({**legacy_head(session), "accept": "application/json"}, body)
        head = {**modern_head(name=tool), "accept": "application/json"}
        return await self.send(head, modern_body(params={"name": tool, "arguments": arguments}))

    async def open_session(self) -> str:
        """Open a legacy session; its id."""
        opened = await self.send(legacy_head(), INITIALIZE)
        session = opened.headers["mcp-session-id"]
        await self.send(legacy_head(session), INITIALIZED)
        return session

    async def find_pids(self, count: int) -> set[int]:
        """The processes that serve; as many as said are waited for."""
        found: set[int] = set()
        while len(found) < count:
            found.add(int((await self.call()).text))
        return found


class Answer:
    """A response.

    Args:
        whole: its bytes.
    """

    def __init__(self, whole: bytes) -> None:
        head, _, self.body = whole.partition(b"\r\n\r\n")
        first, *fields = head.decode().split("\r\n")
        self.status = int(first.split()[1]) if first else 0
        pairs = (line.split(": ", 1) for line in fields)
        self.headers = {name.lower(): value for name, value in pairs}
        if b"chunked" in head:
            self.body = self.body.split(b"\r\n")[1]

    @property
    def text(self) -> str:
        """What the tool answered with."""
        return str(json.loads(self.body)["result"]["content"][0]["text"])


@contextlib.asynccontextmanager
async def supervise(
    folder: Path, *words: str, text: str = FILE, count: int = 2, wait: bool = True
) -> AsyncIterator[Supervised]:
    """``isthmus run --workers`` in a folder, with a state folder of its own."""
    (folder / "crowd.py").write_text(text, "utf-8")
    command = ["run", "crowd.py", *(words or ("--http", "0")), "--workers", str(count)]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "isthmus", *command),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
    )
    running = Supervised(process)
    try:
        if wait:
            line = await running.read_until("isthmus serves on")
            running.port = int(line.partition("127.0.0.1:")[2].partition("/")[0])
        yield running
    finally:
        for number in (signal.SIGTERM, signal.SIGTERM):
            with contextlib.suppress(ProcessLookupError):
                if process.returncode is None:
                    process.send_signal(number)
        await process.communicate()
