"""``isthmus run`` keeps a secret for each file, so that clients outlast the process that serves them."""

import asyncio
import os
import signal
import stat
import sys
from contextlib import asynccontextmanager

import pytest

from isthmus import Client, Server
from isthmus.cli.commands.run_secret import load_secret, make_secret_path, use_kept_secret
from isthmus.store import MemoryStore
from support.ports import find_free_port

SERVER = """
import os
from isthmus import Server

server = Server("kept", version="1")

@server.tool
def who() -> int:
    return os.getpid()
"""


async def wait_for_port(port):
    """Return when somebody listens on a port of this machine."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0)
        else:
            writer.close()
            return


@asynccontextmanager
async def serve(folder, port):
    """A process of ``isthmus run``, once it listens."""
    environ = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder / "state")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "isthmus", "run", str(folder / "kept.py")),
        *("--http", f"127.0.0.1:{port}"),
        env=environ,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert b"serves on" in await process.stderr.readline()
        await wait_for_port(port)
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_client_does_not_notice_that_its_server_was_killed_and_started_again(
    tmp_path, revision
):
    """Ours: one process, no store, kill -9."""
    (tmp_path / "kept.py").write_text(SERVER)
    port = find_free_port()
    async with serve(tmp_path, port) as first:
        client = Client(f"http://127.0.0.1:{port}/mcp", revision=revision)
        await client.__aenter__()
        before = (await client.call_tool("who")).text
        first.send_signal(signal.SIGKILL)
        await first.wait()
    async with serve(tmp_path, port):
        after = (await client.call_tool("who")).text
        await client.__aexit__(None, None, None)

    assert before != after


def test_the_secret_of_a_file_is_made_once_and_is_its_owners(tmp_path):
    """Ours: nobody else on this machine can make session ids."""
    path = make_secret_path(tmp_path / "servers", "a/b.py")

    secret = load_secret(path)

    assert 32 == len(secret)
    assert secret == load_secret(path)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert path == make_secret_path(tmp_path / "servers", "a/../a/b.py")
    assert path != make_secret_path(tmp_path / "servers", "a/b.py:other")


def test_of_two_that_make_a_secret_at_once_one_wins(tmp_path, monkeypatch):
    """Ours: two processes that start at the same moment have one secret."""
    path = make_secret_path(tmp_path, "b.py")
    secret = load_secret(path)
    monkeypatch.setattr(type(path), "exists", lambda _: False)  # as the other one saw it

    assert secret == load_secret(path)


def test_a_file_that_is_no_secret_is_not_used(tmp_path):
    """Ours: it is not overwritten, either."""
    path = make_secret_path(tmp_path, "b.py")
    path.write_bytes(b"short")

    with pytest.raises(OSError, match="delete it"):
        load_secret(path)


@pytest.mark.parametrize("given", [{"secret": b"s" * 32}, {"store": MemoryStore()}])
def test_what_the_author_gave_wins(tmp_path, monkeypatch, given):
    """Ours: ``secret=`` and ``store=`` say what processes have in common."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = Server("kept", **given)

    use_kept_secret(server, "b.py")

    assert [] == [*tmp_path.iterdir()]


def test_where_no_secret_can_be_kept_the_server_serves_all_the_same(tmp_path, monkeypatch, capsys):
    """Ours: a machine without a home folder can run servers."""
    (tmp_path / "isthmus").write_text("a file where the folder should be")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    server = Server("kept")

    use_kept_secret(server, "b.py")

    assert server.takes_secret
    assert "no secret can be kept" in capsys.readouterr().err
