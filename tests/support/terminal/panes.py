"""Terminals for tests: panes of a tmux server of our own, looked at until they show something."""

import os
import shlex
import subprocess
import time

__all__ = ["Tmux"]

WAIT_TIMEOUT_S = 30.0


class Tmux:
    """A tmux server with a socket of its own.

    Args:
        folder: where its socket is.
        environ: variables for what runs in it.
    """

    def __init__(self, folder, environ):
        self.socket = folder / "tmux"
        self.environ = {**os.environ, "TERM": "xterm-256color", **environ}
        # Who runs the tests may be in a terminal of another size, and says so to what it starts.
        for name in ("TMUX", "LINES", "COLUMNS"):
            self.environ.pop(name, None)

    def do(self, *words):
        """Run a tmux command; what it prints."""
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", str(self.socket), *words],  # noqa: S607 - Debian's
            env=self.environ,
            capture_output=True,
            text=True,
            check=True,
            timeout=WAIT_TIMEOUT_S,
        )
        return done.stdout

    def open(self, name, *argv, size=(80, 24)):
        """Start a command in a terminal; when it has ended, its exit code stands there."""
        command = f"{shlex.join(argv)}; echo EXIT $?; exec cat"
        width, height = map(str, size)
        self.do("new-session", "-d", "-s", name, "-x", width, "-y", height, command)
        return Pane(self, name)

    def close(self):
        """End it, and everything in it."""
        subprocess.run(
            ["tmux", "-S", str(self.socket), "kill-server"],  # noqa: S607 - Debian's
            check=False,
            capture_output=True,
        )


class Pane:
    """One terminal."""

    def __init__(self, tmux, name):
        self.tmux = tmux
        self.name = name

    def text(self):
        """The text of the pane."""
        return self.tmux.do("capture-pane", "-p", "-t", self.name)

    def until(self, text):
        """Look until something stands there."""
        end = time.monotonic() + WAIT_TIMEOUT_S
        while text not in (seen := self.text()):
            assert time.monotonic() < end, f"{text!r} does not come:\n{seen}"
            time.sleep(0.05)
        return seen

    def look_at(self, count, prompt):
        """Look until a prompt stands there so often, and then for as long as an answer needs.

        Answers to a prompt count after a silence, and it stands there no earlier than that begins.
        """
        end = time.monotonic() + WAIT_TIMEOUT_S
        while (seen := self.text()).count(prompt) < count:
            assert time.monotonic() < end, f"{prompt!r} does not come {count} times:\n{seen}"
            time.sleep(0.05)
        time.sleep(0.6)

    def type(self, *keys):
        """Press keys."""
        self.tmux.do("send-keys", "-t", self.name, *keys)

    def press(self, key, text):
        """Press a key until something stands there: right after a card has appeared it does nothing."""
        end = time.monotonic() + WAIT_TIMEOUT_S
        while text not in (seen := self.text()):
            assert time.monotonic() < end, f"{key} does not bring {text!r}:\n{seen}"
            self.type(key)
            time.sleep(0.5)
        return seen

    def resize(self, width, height):
        """Change its size."""
        self.tmux.do("resize-window", "-t", self.name, "-x", str(width), "-y", str(height))

    def hang_up(self):
        """Close the window."""
        self.tmux.do("kill-session", "-t", self.name)
