"""Several processes under somebody else's server: a store in the file is all it takes."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest

from isthmus.lazy import is_installed
from support.cli.supervised import FILE, Supervised
from support.ports import find_free_port

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(sys.platform == "win32", reason="workers need a Unix system"),
]
COMMANDS = {
    "uvicorn": "uvicorn --workers 2 --port {port} crowd:app",
    "gunicorn": "gunicorn -w 2 -k uvicorn_worker.UvicornWorker -b 127.0.0.1:{port} crowd:app",
}


@contextlib.asynccontextmanager
async def serve_elsewhere(folder, name):
    """The same server under another supervisor than ours."""
    text = FILE.replace('version="1"', 'version="1", store="sqlite:///crowd.db"')
    (folder / "crowd.py").write_text(text + "app = server.asgi()\n", "utf-8")
    port = find_free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", *COMMANDS[name].format(port=port).split()),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    running = Supervised(process)
    running.port = port
    try:
        for _ in range(2):
            await running.read_until("Application startup complete")
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.communicate()


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_session_is_served_by_all_processes(tmp_path, name):
    """Ours: uvicorn --workers and gunicorn, with Server(store=…) and nothing else."""
    if name == "gunicorn" and not (is_installed("gunicorn") and is_installed("uvicorn_worker")):
        pytest.skip("gunicorn and uvicorn-worker are not installed")
    async with serve_elsewhere(tmp_path, name) as running:
        session = await running.open_session()
        await running.find_pids(2)
        answers = [await running.call("pid", session) for _ in range(30)]
        assert {200} == {one.status for one in answers}
        running.process.send_signal(signal.SIGTERM)
        started = asyncio.get_running_loop().time()
        await running.read_to_end()

    assert 5 > asyncio.get_running_loop().time() - started
