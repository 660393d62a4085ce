"""``isthmus run --workers N``: one address, several processes, and nobody notices which."""

import asyncio
import os
import signal
import socket
import sys

import pytest

from isthmus.errors import ConnectFailed
from isthmus.server.serve.supervisor import bind_sockets
from support.cli.supervised import FILE, supervise

pytestmark = [
    pytest.mark.timeout(90),
    pytest.mark.skipif(sys.platform == "win32", reason="workers need a Unix system"),
]


async def wait_for_end(pid):
    """Wait until a process that is nobody's child here is gone."""
    loop = asyncio.get_running_loop()
    descriptor = os.pidfd_open(pid)
    gone = loop.create_future()
    loop.add_reader(descriptor, lambda: gone.done() or gone.set_result(None))
    try:
        await gone
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def test_a_session_is_served_by_all_workers(tmp_path):
    """Ours: with nothing but the option; the store is a file that the workers share."""
    async with supervise(tmp_path) as running:
        assert running.lines[-1].endswith("/mcp with 2 workers (Ctrl-C to stop)")
        session = await running.open_session()
        answers = [await running.call("pid", session) for _ in range(30)]
        ready = await running.send({"path": "/ready", "host": "10.0.0.7"}, None, "GET")

    assert {200} == {one.status for one in answers}
    assert 2 == len({one.text for one in answers})
    assert 200 == ready.status


async def test_what_a_worker_says_is_told_with_its_number(tmp_path):
    """Ours: whoever reads the log of a service knows which process it was."""
    async with supervise(tmp_path) as running:
        await running.call("rest")
        assert (await running.read_until("resting")).startswith("[worker ")


async def test_a_worker_that_was_killed_is_started_again(tmp_path):
    """Ours: and those who call meanwhile are served."""
    async with supervise(tmp_path) as running:
        session = await running.open_session()
        before = await running.find_pids(2)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        answers = [await running.call("pid", session) for _ in range(20)]
        assert "SIGKILL" in await running.read_until("is started again")
        after = await running.find_pids(2)

    assert {200} == {one.status for one in answers}
    assert 1 == len(after & before)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_no_call_fails_while_new_workers_take_over(tmp_path, era):
    """Ours: SIGHUP; eight clients call all the time, each call on a new connection."""
    async with supervise(tmp_path) as running:
        before = await running.find_pids(2)
        over, statuses = asyncio.Event(), []

        async def go_on_calling():
            session = await running.open_session() if era == "legacy" else None
            while not over.is_set():
                statuses.append((await running.call("rest", session)).status)

        clients = [asyncio.create_task(go_on_calling()) for _ in range(8)]
        running.process.send_signal(signal.SIGHUP)
        await running.read_until("all workers are new")
        over.set()
        await asyncio.gather(*clients)
        after = await running.find_pids(2)

    assert {200} == set(statuses)
    assert set() == before & after


async def test_workers_go_on_where_new_ones_cannot_serve(tmp_path):
    """Ours: a file that is broken when it is deployed takes nothing down."""
    async with supervise(tmp_path) as running:
        before = await running.find_pids(2)
        (tmp_path / "crowd.py").write_text("import nothing_of_the_kind\n")
        running.process.send_signal(signal.SIGHUP)
        await running.read_until("those that are there go on")
        assert before == await running.find_pids(2)

    assert any("nothing_of_the_kind" in line for line in running.lines)


async def test_a_call_in_flight_finishes_after_sigterm(tmp_path):
    """Ours: then all processes are gone, and the exit code is 0."""
    async with supervise(tmp_path, "--http", "0", "--drain", "20") as running:
        call = asyncio.create_task(running.call("rest", seconds=1))
        await running.read_until("resting")
        running.process.send_signal(signal.SIGTERM)
        answer = await call
        assert 0 == await running.read_to_end()

    assert (200, "rested") == (answer.status, answer.text)


async def test_a_second_signal_waits_for_nothing(tmp_path):
    """Ours: the call gets an error, and the supervisor its end."""
    async with supervise(tmp_path, "--http", "0", "--drain", "60") as running:
        call = asyncio.create_task(running.call("rest", seconds=600))
        await running.read_until("resting")
        running.process.send_signal(signal.SIGTERM)
        while (await probe_ready(running)) == 200:
            pass
        running.process.send_signal(signal.SIGTERM)
        answer = await call
        assert 0 == await running.read_to_end()

    assert 503 == answer.status


async def probe_ready(running):
    """The status of readiness; 0 where nobody listens any more."""
    try:
        async with asyncio.timeout(0.2):
            return (await running.send({"path": "/ready", "host": "x"}, None, "GET")).status
    except (OSError, TimeoutError):
        return 0


async def test_workers_end_with_a_supervisor_that_was_killed(tmp_path):
    """Ours: no process is left behind, and the port is free."""
    async with supervise(tmp_path, "--http", "0", "--drain", "0") as running:
        pids = await running.find_pids(2)
        running.process.kill()
        for pid in pids:
            await wait_for_end(pid)
        with socket.create_server(("127.0.0.1", running.port)):
            pass


# What cannot be


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--unix", "s.sock"], "--workers goes with --http or --websocket"),
        (["--tcp", "0"], "--workers goes with --http or --websocket"),
        (["--http", "0", "--reload"], "--reload serves in one process"),
        (["--http", "0", "--drain", "soon"], "--drain soon: write a number of seconds"),
        (["--http", "0", "--store", "nowhere"], "is no store"),
    ],
)
async def test_a_command_line_that_makes_no_sense_is_refused(tmp_path, words, told):
    """Ours: exit code 2, and what is wrong."""
    async with supervise(tmp_path, *words, wait=False) as running:
        assert 2 == await running.read_to_end()

    assert any(told in line for line in running.lines), running.lines


@pytest.mark.parametrize("count", ["0", "513", "two"])
async def test_a_number_of_workers_is_a_number(tmp_path, count):
    """Ours: from 1 to 512."""
    async with supervise(tmp_path, count=count, wait=False) as running:
        assert 2 == await running.read_to_end()

    assert [f"isthmus: --workers {count}: write a number from 1 to 512"] == running.lines


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("import nothing_of_the_kind\n", 2, "nothing_of_the_kind"),
        (FILE + "app = server.asgi()\n", 2, "several processes need a store"),
        (
            "import os\nfrom isthmus import Server\nserver = Server('s')\nos._exit(7)\n",
            3,
            "the workers end again and again, the last one with exit code 7",
        ),
    ],
)
async def test_a_file_that_cannot_be_served_ends_the_supervisor(tmp_path, text, code, told):
    """Ours: with the words of the worker."""
    async with supervise(tmp_path, text=text, wait=False) as running:
        assert code == await running.read_to_end()

    assert any(told in line for line in running.lines[-25:]), running.lines


async def test_an_app_that_is_made_with_its_file_may_name_its_store(tmp_path):
    """Ours: the same file is for uvicorn, too."""
    text = FILE.replace('version="1"', 'version="1", store="sqlite:///crowd.db"')
    async with supervise(tmp_path, text=text + "app = server.asgi()\n") as running:
        session = await running.open_session()
        pids = {(await running.call("pid", session)).text for _ in range(30)}

    assert 2 == len(pids)


def test_a_port_that_is_taken_is_told():
    """Ours: also where another supervisor shares it among its workers."""
    slots = bind_sockets("127.0.0.1", 0, 2)
    port = slots[0][0].getsockname()[1]
    with pytest.raises(ConnectFailed, match=f"cannot listen on 127.0.0.1:{port}: Address already"):
        bind_sockets("127.0.0.1", port, 2)
    for (sock,) in slots:
        sock.close()


def test_each_worker_has_a_socket_of_its_own_on_every_address():
    """Ours: a name may be an IPv4 and an IPv6 address."""
    slots = bind_sockets("localhost", 0, 3)
    names = [[sock.getsockname()[:2] for sock in slot] for slot in slots]

    assert 1 == len({tuple(slot) for slot in names})
    assert 1 == len({port for slot in names for _, port in slot})
    assert 3 == len({slot[0].fileno() for slot in slots})
    for slot in slots:
        for sock in slot:
            sock.close()
