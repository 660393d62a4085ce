"""A server of 2025-06-18 in a process of its own, of few imports: it starts in milliseconds.

It notes in a file how many processes of it there were when it began.
"""

import sys
from pathlib import Path

from isthmus import Command

PROGRAM = Path(__file__).with_name("line_server_program.py")


def make_command(log: Path, *modes: str) -> Command:
    """The command of the server.

    Args:
        log: where each process notes how many there are.
        modes: with ``early`` it asks for folders before it gives its tools, and notes the answer in the file.
    """
    return Command(sys.executable, "-S", "-E", str(PROGRAM), str(log), *modes)


def read_counts(log: Path) -> list[int]:
    """The numbers of processes that there were at each start."""
    return [int(line) for line in log.read_text(encoding="ascii").split()]


def find_processes(log: Path) -> list[int]:
    """The processes of the server that there are now, those included that nobody has waited for."""
    children = Path("/proc/self/task")
    found = [
        int(pid)
        for task in children.iterdir()
        for pid in (task / "children").read_text(encoding="ascii").split()
    ]
    return [pid for pid in found if is_server(pid, log)]


def is_server(pid: int, log: Path) -> bool:
    """Whether a process is such a server, or was one."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return str(log).encode() in words or words == [b""]
