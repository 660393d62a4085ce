"""The process of a server that we launched: its start, its last words, and its whole end.

The server leads a session of its own, so that Ctrl-C in a terminal is the client's to handle, and
so that everything it starts in turn can be told to end together with it.

Nobody is left behind when the client is killed, either. The server sees its standard input end
then, but it may not care, and its children do not even see that. So a guard waits beside it: a
shell that reads from a pipe to which only the client holds the other end, and that ends the
server's group when the kernel closes it.

On Windows there are no process groups to signal: the server alone is terminated, what it started
is not, and there is no guard.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from isthmus.core.framing import LineSplitter, Oversize
from isthmus.transports.pipes import ByteSource, open_source

LineCallback = Callable[[str], None]
"""Is given each line the server writes to standard error, without its newline."""

IS_WINDOWS = sys.platform == "win32"

SIGTERM = signal.SIGTERM
SIGKILL = getattr(signal, "SIGKILL", SIGTERM)  # Windows knows but one way to end a process

# What is done to end a server whose input has ended, and seconds to wait for its exit after
SHUTDOWN_STEPS = ((None, 2.0), (SIGTERM, 2.0), (SIGKILL, 2.0))

# Seconds that what the server started may go on, asked to end, after the server has ended
LEFTOVERS_TIMEOUT_S = 0.5

LEFTOVERS_LOOK_S = 0.02  # seconds between looks at whether they have

# Bytes of standard error that are read at once; then there is a rest
MAX_STDERR_BURST_BYTES = 1024 * 1024

# Seconds of that rest: whoever writes without end waits, and the event loop does not
STDERR_REST_S = 0.1

# Seconds until the guard is started: while the server is still starting itself
GUARD_DELAY_S = 0.02

# The whole of the guard: a second to see the end of input, one to heed a signal, no more
GUARD_SCRIPT = 'read x; sleep 1; kill -s TERM -- "-$1"; sleep 1; kill -s KILL -- "-$1"'


class ServerProcess:
    """A running server, with its three standard streams.

    Attributes:
        pid: of the server, and of the group it leads.
        input: descriptor to write to its standard input; the taker's to close.
        output: descriptor to read its standard output; the taker's to close.
        tail: its last words on standard error.
        exited: done with its exit status when it has ended: negative is the signal's number.

    Args:
        argv: program and arguments.
        env: its whole environment.
        cwd: the directory it starts in; None for ours.
        on_stderr: is given each line it writes to standard error.
        inherited: further descriptors that it gets, under the same numbers.

    Raises:
        OSError: it could not be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        on_stderr: LineCallback | None = None,
        *,
        inherited: Sequence[int] = (),
    ) -> None:
        self._loop = asyncio.get_running_loop()
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(  # noqa: S603 - running the user's command is the purpose
            argv, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, env=env,
            start_new_session=True, pass_fds=inherited,
        )  # fmt: skip
        self.pid = self._popen.pid
        self._guard = ProcessGuard(self.pid)
        try:
            self.input, self.output, errors = map(
                _take_descriptor, (self._popen.stdin, self._popen.stdout, self._popen.stderr)
            )
        except OSError:  # too many open files
            self._popen.kill()
            self._popen.wait()
            self._guard.dismiss()
            raise
        self.tail = StderrTail(on_stderr)
        self._flow, self._flow_since = 0, self._loop.time()
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self._errors: ByteSource = open_source(errors, self._take_stderr)
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._watch = ExitWatch(self._popen, self._on_exit)

    async def wait_exit(self, patience: float) -> int | None:
        """Its exit status, or None if it has not ended within ``patience`` seconds."""
        if not self.exited.done():
            await asyncio.wait([self.exited], timeout=patience)
        return self.exited.result() if self.exited.done() else None

    async def end(self) -> None:
        """See it off, its standard input being closed, and all that it started."""
        # spec 2026-07-28 basic/transports/stdio: close its input, wait, terminate it forcibly
        try:
            for number, patience in SHUTDOWN_STEPS:
                if number is not None:
                    self._signal(number)
                if await self.wait_exit(patience) is not None:
                    await asyncio.wait([self._gone], timeout=2 * LEFTOVERS_TIMEOUT_S)
                    break
        finally:
            self.kill()

    def kill(self) -> None:
        """End it and all that it started at once, without asking; may be called twice."""
        if not self._gone.done():
            self._signal(SIGKILL)
        if not self.exited.done():
            self._watch.stop()
            with suppress(subprocess.TimeoutExpired):  # stuck in the kernel, where nothing helps
                self.exited.set_result(self._popen.wait(1))
        self._after_burial()

    def _take_stderr(self, data: bytes) -> None:
        if not data:
            self._errors.stop()
            self.tail.end()
            return
        self.tail.add(data)
        self._flow += len(data)
        if self._flow > MAX_STDERR_BURST_BYTES and not self.exited.done():
            now = self._loop.time()
            if now - self._flow_since < STDERR_REST_S:
                self._errors.pause()
                self._loop.call_later(STDERR_REST_S, self._errors.resume)
            self._flow, self._flow_since = 0, now

    def _on_exit(self) -> None:
        # Not reaped yet, so its number cannot be anybody else's by now.
        self._signal(SIGTERM)
        code = self._popen.wait()
        self._errors.empty()
        self.exited.set_result(code)
        self._bury(self._loop.time() + LEFTOVERS_TIMEOUT_S)

    def _bury(self, deadline: float) -> None:
        """Wait for the group to be empty, and empty it when time is up."""
        if self._signal(0) and self._loop.time() < deadline:
            self._timer = self._loop.call_later(LEFTOVERS_LOOK_S, self._bury, deadline)
            return
        self._signal(SIGKILL)
        self._after_burial()

    def _after_burial(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not self._gone.done():
            self._gone.set_result(None)
        self._guard.dismiss()
        self._take_stderr(b"")

    def _signal(self, number: int) -> bool:
        """Send a signal to all of the group; returns whether there was anybody."""
        try:
            if not IS_WINDOWS:
                os.killpg(self.pid, number)
            elif number:
                self._popen.terminate()
        except (ProcessLookupError, PermissionError):  # macOS says the latter of zombies
            return False
        return not IS_WINDOWS


class ExitWatch:
    """Tells the event loop that a child has ended.

    Where the kernel has descriptors for processes, the child is not reaped before ``ended`` does
    it; elsewhere a thread waits for it.
    """

    def __init__(self, popen: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._popen = popen
        self._ended = ended
        self._stopped = False
        self._fd = -1
        try:
            self._fd = os.pidfd_open(popen.pid)
        except (AttributeError, OSError):  # not Linux, or forbidden in a container
            threading.Thread(target=self._wait, name="isthmus-watch", daemon=True).start()
        else:
            self._loop.add_reader(self._fd, self._tell)

    def stop(self) -> None:
        """Tell nobody any more; may be called twice."""
        self._stopped = True
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._loop.remove_reader(fd)
            os.close(fd)

    def _wait(self) -> None:
        self._popen.wait()
        with suppress(RuntimeError):  # the event loop was closed without closing the channel
            self._loop.call_soon_threadsafe(self._tell)

    def _tell(self) -> None:
        if not self._stopped:
            self.stop()
            self._ended()


class ProcessGuard:
    """Ends a process group when this process ends without having dismissed the guard.

    It takes its post a moment after it was made, so as not to delay the first message.
    """

    def __init__(self, group: int) -> None:
        self._group = str(group)
        self._popen: subprocess.Popen[bytes] | None = None
        self._hold = -1
        loop = asyncio.get_running_loop()
        self._timer = None if IS_WINDOWS else loop.call_later(GUARD_DELAY_S, self._start)

    def _start(self) -> None:
        null = subprocess.DEVNULL
        read, self._hold = os.pipe()
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - a constant and a number
                ["/bin/sh", "-c", GUARD_SCRIPT, "isthmus-guard", self._group],
                stdin=read, stdout=null, stderr=null, cwd="/",
                env={"PATH": os.environ.get("PATH", os.defpath)}, start_new_session=True,
            )  # fmt: skip
        except OSError:  # no shell here, or no room for one: the end of its input has to do
            os.close(self._hold)
        finally:
            os.close(read)

    def dismiss(self) -> None:
        """Let the group live on; may be called twice."""
        if self._timer is not None:
            self._timer.cancel()
        popen, self._popen = self._popen, None
        if popen is not None:
            popen.kill()
            popen.wait()
            os.close(self._hold)


class StderrTail:
    """The last words of a stream that is read for nothing but them.

    Args:
        on_line: is given each line as it comes.
    """

    SIZE = 64 * 1024
    LINES = 200

    def __init__(self, on_line: LineCallback | None = None) -> None:
        self._kept = bytearray()
        self._on_line = on_line
        self._framing = LineSplitter(self.SIZE)

    def add(self, data: bytes) -> None:
        """Hear some more."""
        self._kept += data
        if len(self._kept) > 2 * self.SIZE:
            del self._kept[: -self.SIZE]
        if self._on_line is not None:
            for line in self._framing.feed(data):
                self._pass_on(line)

    def end(self) -> None:
        """Pass on the last line, if no newline ended it."""
        rest = self._framing.rest()
        if rest:
            self._pass_on(rest)

    def lines(self) -> list[str]:
        """The last lines, at most 200 of them and 64 KiB in all, fit to be shown."""
        text = self._kept[-self.SIZE :].decode(errors="replace")
        return [strip_controls(line) for line in text.splitlines()[-self.LINES :]]

    def _pass_on(self, line: bytes | Oversize) -> None:
        if self._on_line is None or isinstance(line, Oversize):
            return
        try:
            self._on_line(line.decode(errors="replace"))
        except Exception:
            import logging  # not needed until something fails

            logging.getLogger("isthmus").exception("the callback for standard error failed")


_CONTROL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours and cursor movements
    r"|[^\x20-\x7e\xa0-\U0010ffff\t]"
    r"|[\u200e\u200f\u202a-\u202e\u2066-\u2069]"  # the direction of writing
)


def strip_controls(text: str) -> str:
    """``text`` without what would let it look like something else in a terminal."""
    return _CONTROL.sub("", text)


def _take_descriptor(file: object) -> int:
    """The descriptor of a file, for keeps."""
    fd = os.dup(file.fileno())  # type: ignore[attr-defined]  # Popen gives pipes for PIPE
    file.close()  # type: ignore[attr-defined]
    return fd
