"""Child processes on a core of their own: start, wait until they listen, weigh, end."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
SERVER_CORE, LOAD_CORE = CORES[0], CORES[-1]

SECONDS_TO_LISTEN = 30


def pinned(core: int) -> Callable[[], None] | None:
    """What a child runs first, so that server and load never share a core."""
    if len(CORES) < 2:
        return None
    return lambda: os.sched_setaffinity(0, {core})


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextmanager
def child(
    argv: Sequence[str], core: int = SERVER_CORE, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process on ``core``, ended on the way out whatever happens."""
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL} | options
    options["preexec_fn"] = pinned(core)
    with subprocess.Popen(argv, cwd=HERE, **options) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_listening(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return when something accepts on ``port``; raise when the process ends instead."""
    end = time.monotonic() + SECONDS_TO_LISTEN
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"ended with {process.returncode} before it listened")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError(f"did not listen within {SECONDS_TO_LISTEN} s")


def resident_kib(pid: int) -> float:
    """Resident memory of a process, KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise RuntimeError(f"no VmRSS for {pid}")


def cpu_seconds(pid: int) -> float:
    """User and system time a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def output_of(argv: Sequence[str], core: int, seconds: float) -> str:
    """What a command prints, run on ``core``; raises with its last words when it fails."""
    done = subprocess.run(
        argv,
        cwd=HERE,
        preexec_fn=pinned(core),
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:3])}: {done.stderr.strip()[-600:]}")
    return done.stdout


def say(text: str) -> None:
    """A line for whoever watches the run."""
    print(text, file=sys.stderr, flush=True)
