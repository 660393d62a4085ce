"""stdio, the client's end: launch a server, talk to it, and end it.

A :class:`Command` says what to run, a :class:`CommandChannel` runs it. Whatever becomes of the
server, the client learns it in one sentence: how it ended, and what it said before, on standard
error or in place of messages.
"""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial

from isthmus.core.framing import Oversize
from isthmus.core.redaction.lines import redact_command
from isthmus.errors import ConnectFailed, ConnectionLost
from isthmus.runtime.channel import Delivery, Outgoing
from isthmus.transports.pipes import (
    MAX_LINE_BYTES,
    SETTLE_TIMEOUT_S,
    STDIO_ORIGIN,
    LineReader,
    LineWriter,
)
from isthmus.transports.process import LineCallback, ServerProcess, strip_controls
from isthmus.wire.struct import Id

FLUSH_TIMEOUT_S = 1.0  # seconds that a server has, at the end, to read what was sent

MAX_QUOTED_LINES = 20
MAX_QUOTED_WIDTH = 300
MAX_NOISE_LINES = 5

# What a server gets of our environment: enough to run, none of the secrets
INHERITED_VARIABLES = frozenset({
    "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER",
    "LANG", "LANGUAGE", "TMPDIR", "TZ", "VIRTUAL_ENV",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS",
    # Windows
    "APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT",
    "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP",
    "TMP", "USERNAME", "USERPROFILE", "WINDIR",
})  # fmt: skip

REDACTED = "[redacted]"

# Where the usual programs come from
INSTALL_HINTS: Mapping[str, str] = {
    "npx": "it comes with Node.js, https://nodejs.org",
    "node": "it is Node.js, https://nodejs.org",
    "uvx": "it comes with uv, https://docs.astral.sh/uv",
    "uv": "https://docs.astral.sh/uv tells how",
    "docker": "https://docs.docker.com/get-started tells how",
    "python": "it may be called python3 here, or give the full path of one",
}


class Command:
    """A server to be launched.

    The server gets a small part of our environment (``HOME``, ``PATH``, the locale and the like,
    see ``INHERITED_VARIABLES``), so that secrets of ours do not reach it by accident.

    Example:
        >>> Command("uvx", "mcp-server-time", env={"TZ": "Europe/Berlin"})
        Command('uvx', 'mcp-server-time')

    Args:
        program: a path, or a name to look for along ``PATH``.
        arguments: what it is given, one by one; no shell is involved.
        env: further environment variables, or other values for those above.
        cwd: the directory it starts in; ours by default.
    """

    __slots__ = ("argv", "cwd", "env")

    def __init__(
        self,
        program: str | os.PathLike[str],
        *arguments: str | os.PathLike[str],
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> None:
        self.argv = tuple(os.fspath(part) for part in (program, *arguments))
        self.env = dict(env or {})
        self.cwd = None if cwd is None else os.fspath(cwd)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Command):
            return NotImplemented
        return (self.argv, self.env, self.cwd) == (other.argv, other.env, other.cwd)

    def __hash__(self) -> int:
        return hash((self.argv, self.cwd))

    def __repr__(self) -> str:
        # without the environment, which is where people put their keys
        return f"Command({', '.join(map(repr, redact_command(self.argv)))})"

    def __str__(self) -> str:
        """As one would type it, for messages: without passwords, tokens and the like."""
        parts = redact_command(self.argv)
        return " ".join(repr(part) if not part or " " in part else part for part in parts)

    def prepare_launch(self) -> tuple[list[str], list[int]]:
        """The arguments of one launch, and the descriptors that it inherits, which are then closed."""
        return list(self.argv), []

    def environment(self) -> dict[str, str]:
        """All the variables the server gets."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if (name.upper() in INHERITED_VARIABLES or name.startswith("LC_"))
            and not value.startswith("()")  # a function of an old shell, which would run
        }
        return inherited | self.env


class CommandChannel:
    """Carries messages to a server launched for it, and back.

    Make one inside a running event loop. The server is started at once, in a process group of
    its own; :meth:`close` ends it and all that it started, whether it wants to or not. So does
    the end of this process, within seconds, even by SIGKILL. (On Windows only the server itself
    is ended, and only by :meth:`close`.)

    Args:
        command: what to run.
        on_stderr: is given each line that the server writes to standard error. The last of
            them are in ``stderr`` in any case.
        limit: the longest message taken, in bytes.

    Raises:
        ConnectFailed: the command could not be run; the message says why.
    """

    def __init__(
        self,
        command: Command,
        *,
        on_stderr: LineCallback | None = None,
        limit: int = MAX_LINE_BYTES,
    ) -> None:
        self.command = command
        self._limit = limit
        self._closing: asyncio.Task[None] | None = None
        self._noise: deque[bytes] = deque(maxlen=MAX_NOISE_LINES)
        self._process = launch_command(command, on_stderr)
        self._inlet = LineReader(self._process.output, limit, patient=False)
        self._outlet = LineWriter(self._process.input, self._inlet.finish)
        self._process.exited.add_done_callback(self._on_exit)

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    @property
    def stderr(self) -> list[str]:
        """The last lines that the server wrote to standard error."""
        return self._process.tail.lines()

    def last_words(self) -> str:
        """The last lines of standard error as a paragraph; empty where there are none."""
        return "\n".join(
            _quote_lines("its last words on standard error", self.stderr[-MAX_QUOTED_LINES:])
        )

    @property
    def noise(self) -> list[bytes]:
        """The last lines on standard output that cannot be messages, cut short."""
        return list(self._noise)

    async def receive(self) -> Delivery | None:
        """The next message, or None once we have closed.

        Lines that cannot be JSON-RPC are passed over: servers print banners.

        Raises:
            ConnectionLost: the server ended, or closed its output, or sent too long a message.
        """
        inlet = self._inlet
        lines = inlet.lines
        while True:
            if lines:
                line = lines.popleft()
                if isinstance(line, Oversize):
                    raise self._explain_oversize(line)
                if line[0] in JSON_OPENERS or (line := self._clean_line(line)):
                    return Delivery(line, STDIO_ORIGIN)
            elif not inlet.over:
                await inlet.more()
                self._outlet.prompt = len(lines) == 1
            elif self._closing is not None:
                return None
            elif line := self._take_last_line():
                return Delivery(line, STDIO_ORIGIN)
            else:
                raise await self._explain_loss()

    def give_to(self, take: Callable[[Delivery], None]) -> None:
        """Give ``take`` what comes while :meth:`receive` waits, in the context that this is called in."""
        self._inlet.hand_over = partial(copy_context().run, self._hand_over, take)

    def _hand_over(self, take: Callable[[Delivery], None]) -> bool:
        """Give the lines that came to ``take``; False where :meth:`receive` has to look after some."""
        lines = self._inlet.lines
        self._outlet.prompt = len(lines) == 1
        while lines and not isinstance(line := lines[0], Oversize):
            del lines[0]
            if line[0] in JSON_OPENERS or (line := self._clean_line(line)):
                take(Delivery(line, STDIO_ORIGIN))
        return not lines

    async def send(self, out: Outgoing) -> None:
        """Write one message; waits only while the server reads more slowly than we write.

        Raises:
            ConnectionLost: the server ended or stopped reading, or the channel was closed.
        """
        outlet = self._outlet
        if self._closing is None and outlet.broken is None and outlet.write(out.data):
            await outlet.room()
        if outlet.broken is not None or self._closing is not None:
            raise await self._explain_loss()

    def abandon(self, id: Id) -> bool:  # noqa: ARG002 - the protocol of channels
        """False: both directions are shared by all calls, so a message has to say it."""
        # spec 2026-07-28 basic/transports/stdio: to cancel, the client MUST send
        # notifications/cancelled
        return False

    def rest(self, seconds: float) -> None:
        """Read nothing for a while, so that a server which says too much waits at its own end."""
        self._inlet.rest(seconds)

    async def close(self) -> None:
        """End the server: close its input, wait two seconds, SIGTERM, wait two more, SIGKILL.

        What was sent is written first. Returns when the server and all that it started are
        gone; being cancelled here does not keep that from happening.
        """
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._shut())
        await asyncio.shield(self._closing)

    async def _shut(self) -> None:
        self._inlet.ignore()
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT_S):
                await self._outlet.room(0)
        except TimeoutError:
            pass  # it does not read: so be it
        finally:
            self._outlet.close()
            try:
                await self._process.end()
            finally:
                self._inlet.stop()

    def _on_exit(self, _status: asyncio.Future[int]) -> None:
        # A grandchild may hold the pipes open, so their end is not waited for.
        self._inlet.finish()
        self._outlet.fail(BrokenPipeError())

    def _clean_line(self, line: bytes) -> bytes:
        """The message in a line that does not begin like one; empty, and kept, if it is none."""
        rest = line.removeprefix(BOM).lstrip()
        if rest[:1] in (b"{", b"["):
            return rest
        self._noise.append(line[:MAX_QUOTED_WIDTH])
        return b""

    def _take_last_line(self) -> bytes:
        """The last line, if the server closed its output without a newline but it is whole."""
        cut, self._inlet.cut = self._inlet.cut.strip(), b""
        if cut.endswith((b"}", b"]")):
            return self._clean_line(cut)
        if cut:
            self._noise.append(cut[:MAX_QUOTED_WIDTH])
        return b""

    async def _explain_loss(self) -> ConnectionLost:
        """Why there is nothing more to receive and nobody to send to."""
        if self._closing is not None:
            return ConnectionLost(f"the connection to the server {self.command} was closed")
        status = await self._process.wait_exit(SETTLE_TIMEOUT_S)
        self._outlet.fail(BrokenPipeError())
        parts = [f"the server {self.command} {_describe_exit(status)}"]
        parts += [words] if (words := self.last_words()) else []
        noise = [strip_controls(line.decode(errors="replace")) for line in self._noise]
        parts += _quote_lines("it wrote to standard output what is no JSON-RPC", noise)
        return ConnectionLost("\n".join(parts))

    def _explain_oversize(self, line: Oversize) -> ConnectionLost:
        return ConnectionLost(
            f"the server {self.command} sent a message of {line.size} bytes, and the limit is "
            f"{self._limit}; a CommandChannel takes another one as limit=…"
        )


CLEAN_EXIT = "ended with exit code 0"  # what is said of a server that ended as if all was well

JSON_OPENERS = b"{["
BOM = b"\xef\xbb\xbf"


def launch_command(command: Command, on_stderr: LineCallback | None = None) -> ServerProcess:
    """Start the server.

    Raises:
        ConnectFailed: it could not be started; the message says what to try.
    """
    env = command.environment()
    argv, inherited = command.prepare_launch()
    if sys.platform == "win32":
        import shutil  # only there: elsewhere the kernel is asked, with the right PATH

        argv[0] = shutil.which(argv[0], path=env.get("PATH")) or argv[0]
    try:
        return ServerProcess(argv, env, command.cwd, on_stderr, inherited=inherited)
    except (OSError, ValueError) as error:
        raise ConnectFailed(_explain_failure(command, env, error)) from error
    finally:
        for descriptor in inherited:
            os.close(descriptor)


def _explain_failure(command: Command, env: Mapping[str, str], error: OSError | ValueError) -> str:
    from pathlib import Path  # not needed until something fails

    program = command.argv[0]
    if command.cwd is not None and not Path(command.cwd).is_dir():
        return f"cannot run {command}: there is no directory {command.cwd!r} to run it in"
    if not isinstance(error, FileNotFoundError):
        return f"cannot run {command}: {error}"
    if os.sep in program:
        if Path(command.cwd or ".", program).exists():
            return f"cannot run {command}: the interpreter that its first line names is missing"
        return f"no such command: {program!r}: there is no such file"
    if " " in program:
        return (
            f"no such command: {program!r}; give the program and its arguments one by one, "
            f"like Command({', '.join(map(repr, program.split()))})"
        )
    hint = INSTALL_HINTS.get(program)
    return (
        f"no such command: {program!r}: is it installed?{f' ({hint})' if hint else ''} "
        f"Searched PATH: {env.get('PATH', os.defpath)}"
    )


def _describe_exit(status: int | None) -> str:
    if status is None:
        return "closed its end of the connection but is still running"
    if status >= 0:
        return CLEAN_EXIT if status == 0 else f"ended with exit code {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _quote_lines(title: str, lines: list[str]) -> list[str]:
    """A paragraph of lines, empty where there are none."""
    if not lines:
        return []
    return [f"{title}:", *(f"  | {line[:MAX_QUOTED_WIDTH]}" for line in lines)]
