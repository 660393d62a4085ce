"""Redis, two nodes and a balancer; one node is killed while a client works: ``python examples/scale``.

Where there is no ``redis-server``, the nodes share an SQLite file; where there is no ``nginx``, a few
lines of Python stand before them. Everything is on this machine, and ends with this program.
"""

import asyncio
import itertools
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from isthmus import Accepted, Client
from isthmus.errors import IsthmusError

HERE = Path(__file__).parent

NGINX = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  upstream shop {{ {nodes} keepalive 16; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://shop;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_buffering off;
      proxy_read_timeout 1h;
      proxy_connect_timeout 1s;
    }}
  }}
}}
"""


def find_free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def wait_until_open(address: str | int) -> None:
    """Wait until somebody listens on a port of this machine, or on a Unix socket."""
    for _ in range(200):
        with suppress(OSError):
            if isinstance(address, int):
                _, writer = await asyncio.open_connection("127.0.0.1", address)
            else:
                _, writer = await asyncio.open_unix_connection(address)
            writer.close()
            return
        await asyncio.sleep(0.05)
    raise SystemExit(f"nobody listens on {address}")


@asynccontextmanager
async def run_program(*words: str, **settings: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program, ended in the end."""
    process = await asyncio.create_subprocess_exec(
        *words,
        env={**os.environ, **settings},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


@asynccontextmanager
async def open_store(folder: str) -> AsyncIterator[str]:
    """The URL of what the nodes share."""
    redis = shutil.which("redis-server")
    if redis is None:
        print("no redis-server here: the nodes share an SQLite file")
        yield f"sqlite:///{folder}/shop.db"
        return
    path = f"{folder}/redis.sock"
    settings = ("--appendonly", "yes", "--appendfsync", "everysec", "--save", "")
    listen = ("--port", "0", "--unixsocket", path, "--dir", folder)
    async with run_program(redis, *listen, *settings):
        await wait_until_open(path)
        yield f"unix://{path}"


@asynccontextmanager
async def run_balancer(folder: str, nodes: list[int]) -> AsyncIterator[int]:
    """The port of a balancer before the nodes, in round robin."""
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        print("no nginx here: a few lines of Python stand before the nodes")
        async with spread_connections(nodes) as port:
            yield port
        return
    port, config = find_free_port(), f"{folder}/nginx.conf"
    servers = " ".join(f"server 127.0.0.1:{node} max_fails=1 fail_timeout=2s;" for node in nodes)
    await asyncio.to_thread(
        Path(config).write_text, NGINX.format(folder=folder, port=port, nodes=servers)
    )
    async with run_program(nginx, "-e", f"{folder}/early.log", "-p", folder, "-c", config):
        await wait_until_open(port)
        yield port


@asynccontextmanager
async def spread_connections(nodes: list[int]) -> AsyncIterator[int]:
    """A balancer of connections, for a try only."""
    turn = itertools.cycle(nodes)

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in nodes:
            with suppress(OSError):
                inner = await asyncio.open_connection("127.0.0.1", next(turn))
                await asyncio.gather(copy(reader, inner[1]), copy(inner[0], writer))
                return
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def work(url: str, nodes: list[asyncio.subprocess.Process]) -> None:
    """Call, ask, and go on when a node dies."""

    async def answer(question: Any) -> Accepted[dict[str, str]]:
        print(f"  asked: {question.message}")
        return Accepted({"value": "rye"})

    # A client of 2025-11-25 has a session; no node keeps it, and both serve it.
    async with Client(url, revision="2025-11-25", elicit=answer) as client:
        print("four calls at once, which the balancer spreads over both nodes:")
        calls = [client.call_tool("add", {"a": number, "b": 1}) for number in range(4)]
        for done in await asyncio.gather(*calls):
            print(" ", done.text)
        print("a question, whose answer may arrive at the other node:")
        print(" ", (await client.call_tool("order")).text)
        print("a long call, and its node is killed:")
        await bake_until_killed(client, nodes)
        print("the next calls, in the same session:")
        for number in range(2):
            print(" ", (await client.call_tool("add", {"a": number, "b": 1})).text)


async def bake_until_killed(client: Client, nodes: list[asyncio.subprocess.Process]) -> None:
    """Begin a long call, and kill (SIGKILL) the process that works on it."""

    def progress(report: Any) -> None:
        print(f"  {report.message}")
        for node in nodes:
            if report.message == f"loaf 3 by process {node.pid}":
                print(f"  kill -9 {node.pid}")
                os.kill(node.pid, signal.SIGKILL)

    try:
        print(" ", (await client.call_tool("bake", {"loaves": 20}, on_progress=progress)).text)
    except IsthmusError as error:
        print(f"  the call ended: {error}")


async def main() -> None:
    """Start everything, work, and end everything."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        store = await stack.enter_async_context(open_store(folder))
        ports, nodes = [find_free_port(), find_free_port()], []
        for port in ports:
            run = ("-m", "isthmus", "run", str(HERE / "shop.py"), "--http", f"127.0.0.1:{port}")
            node = await stack.enter_async_context(run_program(sys.executable, *run, STORE=store))
            nodes.append(node)
            await wait_until_open(port)
        balancer = await stack.enter_async_context(run_balancer(folder, ports))
        print(f"nodes {nodes[0].pid} and {nodes[1].pid} share {store.split('://')[0]}")
        await work(f"http://127.0.0.1:{balancer}/mcp", nodes)


if __name__ == "__main__":
    asyncio.run(main())
