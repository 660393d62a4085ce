"""Processes of the benchmarks: their CPU time is read, and no wait is for ever."""

import signal
import subprocess
import sys

import pytest
from processes import cpu_seconds, limit_time, run_child

SPEND = "import time\nwhile time.process_time() < 0.2: pass\n"


def test_the_time_of_threads_that_ended_counts():
    """Ours: work that a server gives to threads is its work."""
    work = """
import threading
def spend():
    import time
    began = time.thread_time()
    while time.thread_time() < began + 0.2: pass
thread = threading.Thread(target=spend)
thread.start()
thread.join()
print("done", flush=True)
input()
"""
    with run_child(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"done\n" == process.stdout.readline()

        assert cpu_seconds(process.pid) >= 0.2


def test_the_time_of_children_counts():
    """Ours: a server may have workers, running or ended."""
    work = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {SPEND!r}])
kept = subprocess.Popen([sys.executable, "-c", {SPEND!r} + "print('done', flush=True); input()"],
                        stdin=subprocess.PIPE)
input()
"""
    with run_child(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert b"done\n" == process.stdout.readline()
        spent = cpu_seconds(process.pid)
        process.communicate(b"\n")

    assert spent >= 0.4


def test_a_child_is_ended_on_the_way_out():
    """Ours: whatever happens to a measurement, its server does not stay."""
    with run_child([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.poll() is None

    assert process.returncode is not None


def test_a_wait_ends_with_its_limit():
    """Ours: no peer can make a run hang."""
    with (
        run_child([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        pytest.raises(TimeoutError, match=r"not done within 0\.05 s"),
        limit_time(0.05),
    ):
        process.wait()


def test_a_limit_ends_with_what_it_was_for():
    """Ours: what comes after a measurement is not cut off by it."""
    with limit_time(60):
        during = signal.getitimer(signal.ITIMER_REAL)[0]

    assert during > 0
    assert (0.0, 0.0) == signal.getitimer(signal.ITIMER_REAL)
