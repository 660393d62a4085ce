"""The controlling terminal of a process, whatever its standard streams are used for."""

import asyncio
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from isthmus.core.text import clean_text

TTY_PATH = "/dev/tty"
POLL_INTERVAL_S = 0.2  # between looks whether somebody still sits there

MAX_KEYS_BYTES = 4_096

MAX_LINE_BYTES = 65_536  # the rest is another line


class NoTerminal(Exception):
    """There is no terminal, or nobody in front of it whom one could ask."""


class Tty:
    """Asks, and hears a line at a time, and never on standard input or output.

    A process in the background asks nothing: to read would stop it.

    Args:
        path: the terminal.

    Raises:
        NoTerminal: there is none.
    """

    def __init__(self, path: str = TTY_PATH) -> None:
        try:
            import termios  # noqa: F401 - looks whether this system has such terminals

            self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except (ImportError, AttributeError, OSError) as error:
            raise NoTerminal(f"there is no terminal to ask at ({path}: {error})") from None
        self._stop = threading.Event()

    def close(self) -> None:
        """Leave it as it was."""
        os.close(self.fd)

    def foreground(self, fd: int | None = None) -> bool:
        """Whether what is typed there is meant for this process.

        Args:
            fd: another descriptor of the same terminal.
        """
        try:
            return os.tcgetpgrp(self.fd if fd is None else fd) == os.getpgrp()
        except OSError:  # it was hung up
            return False

    def say(self, text: str, end: str = "\n") -> None:
        """Show a text, without what the terminal would obey.

        Raises:
            NoTerminal: it was hung up.
        """
        rest = (clean_text(text) + end).encode(errors="replace")
        try:
            while rest:
                rest = rest[os.write(self.fd, rest) :]
        except OSError as error:
            raise NoTerminal(f"the terminal is gone: {error}") from None

    def forget(self) -> None:
        """Drop what was typed before: it is no answer to what is asked now."""
        import termios  # where a terminal could be opened, it is there

        try:
            termios.tcflush(self.fd, termios.TCIFLUSH)
        except termios.error as error:
            raise NoTerminal(f"the terminal is gone: {error}") from None

    def interrupt(self) -> None:
        """Wait for no line any more."""
        self._stop.set()

    async def line(self) -> str | None:
        """The next line; None at the end of input, or where one waits no more.

        Raises:
            NoTerminal: it was hung up, or the process is in the background.
        """
        return await self._hear(self._wait)

    async def wait_silent(self, seconds: float) -> bool:
        """Wait until nobody has typed for so long; what was typed until then is forgotten.

        Returns:
            False where one waits no more.

        Raises:
            NoTerminal: it was hung up, or the process is in the background.
        """

        def wait(terminal: int, stop: threading.Event) -> str | None:
            return "" if discard_typing(terminal, stop, seconds) else None

        with self._each_key_at_once():
            silent = await self._hear(wait) is not None
        self.forget()
        return silent

    @contextmanager
    def _each_key_at_once(self) -> Iterator[None]:
        """Have the terminal tell of the keys of an unfinished line, too, and show none of them."""
        import termios  # where a terminal could be opened, it is there

        if not self.foreground():
            raise NoTerminal("this process is in the background, or its terminal is gone")
        try:
            before = termios.tcgetattr(self.fd)
            by_key = [*before]
            by_key[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(self.fd, termios.TCSANOW, by_key)
        except termios.error as error:
            raise NoTerminal(f"the terminal is gone: {error}") from None
        try:
            yield
        finally:  # here, and not in the thread: a process that ends does not wait for that
            if self.foreground():
                with suppress(termios.error):
                    termios.tcsetattr(self.fd, termios.TCSANOW, before)

    def has_more(self) -> bool:
        """Whether another line is there already: nobody types two at once."""
        return bool(select.select([self.fd], [], [], 0)[0])

    def mark_pastes(self, *, on: bool) -> None:
        """Have the terminal say what of its input was pasted: marks stand around that."""
        with suppress(OSError):
            os.write(self.fd, b"\x1b[?2004h" if on else b"\x1b[?2004l")

    async def _hear(self, listen: Callable[[int, threading.Event], str | None]) -> str | None:
        """Listen to the terminal beside the event loop."""
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[str | None] = loop.create_future()
        stop = self._stop = threading.Event()
        # The thread's own, since it may still look at it when ours is closed already.
        terminal = os.dup(self.fd)

        def settle(text: str | None, gone: NoTerminal | None = None) -> None:
            if heard.done():
                return
            if gone is None:
                heard.set_result(text)
            else:
                heard.set_exception(gone)

        def hear() -> None:
            try:
                answer: tuple[str | None, NoTerminal | None] = (listen(terminal, stop), None)
            except (OSError, ValueError, NoTerminal) as error:
                answer = (None, NoTerminal(f"nobody can be asked at the terminal: {error}"))
            finally:
                os.close(terminal)
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                loop.call_soon_threadsafe(settle, *answer)

        # A thread, since not every system can wait for a terminal in its event loop.
        thread = threading.Thread(target=hear, name="terminal", daemon=True)
        thread.start()
        try:
            return await heard
        finally:
            stop.set()

    def _wait(self, terminal: int, stop: threading.Event) -> str | None:
        while True:
            if not self.foreground(terminal):
                raise NoTerminal("this process is in the background, or its terminal is gone")
            ready, _, _ = select.select([terminal], [], [], POLL_INTERVAL_S)
            if stop.is_set():
                return None
            if ready and self.foreground(terminal):
                found = os.read(terminal, MAX_LINE_BYTES)
                return found.decode(errors="replace").rstrip("\r\n") if found else None


def discard_typing(terminal: int, stop: threading.Event, seconds: float) -> bool:
    """Read what is typed and drop it, until nothing was typed for so long; False where stopped."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([terminal], [], [], min(left, POLL_INTERVAL_S))
        if stop.is_set():
            return False
        if ready and not os.read(terminal, MAX_KEYS_BYTES):
            return False  # it was hung up
        if ready:
            until = time.monotonic() + seconds
    return True
