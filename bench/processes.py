"""Child processes on a core of their own: start, wait until they listen, weigh, end."""

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

HERE = Path(__file__).resolve().parent

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
SERVER_CORE, LOAD_CORE = CORES[0], CORES[-1]

LISTEN_TIMEOUT_S = 60
END_TIMEOUT_S = 5
OPEN_FILES = 65_536


def pin_child(core: int) -> Callable[[], None] | None:
    """Make what a child runs first, so that server and load never share a core."""
    if len(CORES) < 2:
        return None
    return lambda: os.sched_setaffinity(0, {core})


def raise_file_limit() -> None:
    """Let this process and its children have as many sockets open as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def find_free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def run_child(
    argv: Sequence[str], core: int = SERVER_CORE, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process on ``core``, ended on the way out whatever happens."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
    options["preexec_fn"] = pin_child(core)
    with subprocess.Popen(argv, cwd=HERE, **options) as process:
        try:
            yield process
        finally:
            end_process(process)


def end_process(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill it when it does not."""
    process.terminate()
    try:
        process.wait(END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_TIMEOUT_S)


def wait_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when something accepts on ``port``; raise when the process ends instead."""
    end = time.monotonic() + LISTEN_TIMEOUT_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"did not listen within {LISTEN_TIMEOUT_S} s")


def read_memory(pid: int, line: str = "VmRSS") -> float:
    """Resident memory of a process in KiB; with ``VmHWM`` the most it ever had."""
    for found in Path(f"/proc/{pid}/status").read_text().splitlines():
        if found.startswith(f"{line}:"):
            return float(found.split()[1])
    raise RuntimeError(f"no {line} for {pid}")


def cpu_seconds(pid: int) -> float:
    """User and system time that a process and its children have used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    # The clock of another process: clock_getcpuclockid(3) makes it of its id. It counts nanoseconds
    # of all its threads, those that ended too, where /proc counts hundredths of a second.
    own = time.clock_gettime(~pid << 3 | 2)
    return own + ended + sum(map(cpu_seconds, find_children(pid)))


def find_children(pid: int) -> list[int]:
    """The ids of the processes that a process started and that still run."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:  # the thread has just ended, or this kernel does not tell
            continue
    return found


def read_output(argv: Sequence[str], core: int, seconds: float, given: str | None = None) -> str:
    """What a command prints, run on ``core``; raises with its last words when it fails."""
    done = subprocess.run(
        argv,
        cwd=HERE,
        preexec_fn=pin_child(core),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        input=given,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:3])}: {done.stderr.strip()[-600:]}")
    return done.stdout


@contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in whatever this thread waits for, so that nothing hangs for ever."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"not done within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def say(text: str) -> None:
    """Write a line for whoever watches the run."""
    print(text, file=sys.stderr, flush=True)
