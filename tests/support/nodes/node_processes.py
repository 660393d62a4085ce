"""Nodes as processes of their own: started, stopped, paused and killed by their ids."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

SHOP = Path(__file__).with_name("node_shop.py")
START_TIMEOUT_S = 30.0
END_TIMEOUT_S = 40.0


class NodeProcess:
    """One ``isthmus run`` of the shop.

    Args:
        port: of HTTP, on this machine.
        settings: environment variables of the shop, such as ``SHOP_STORE``.
        options: further words for ``isthmus run``.
    """

    def __init__(self, port, settings, options=()):
        self.port = port
        self._settings = settings
        self._options = options
        self._process = self._reader = None
        self._lines = []
        self._serves = threading.Event()

    @property
    def pid(self):
        """The id of the process."""
        return self._process.pid

    @property
    def output(self):
        """What it wrote to standard error."""
        return "".join(self._lines)

    def start(self):
        """Start it, and wait until it serves."""
        self._serves.clear()
        words = ["run", str(SHOP), "--http", f"127.0.0.1:{self.port}", *self._options]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "isthmus", *words],
            env={**os.environ, **self._settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, args=(self._process.stderr,))
        self._reader.start()
        if not self._serves.wait(START_TIMEOUT_S) or self._process.poll() is not None:
            raise AssertionError(f"the node does not serve:\n{self.output}")
        return self

    def _read(self, pipe):
        with pipe:
            for line in pipe:
                self._lines.append(line)
                if "serves on" in line:
                    self._serves.set()
        self._serves.set()  # it has ended: nobody need wait

    def kill(self):
        """End it at once (SIGKILL), and wait until it is gone."""
        self.pause(paused=False)
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def terminate(self):
        """Ask it to end (SIGTERM), wait for that, and give the seconds it took."""
        began = time.monotonic()
        self._process.terminate()
        self._process.wait(END_TIMEOUT_S)
        self._reader.join()
        return time.monotonic() - began

    def pause(self, *, paused=True):
        """Stop it for a while (SIGSTOP), or have it go on."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGSTOP if paused else signal.SIGCONT)

    def close(self):
        """End it if it has not ended."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def run_nodes(ports, settings, options=()):
    """Nodes of the shop on these ports; all of them serve."""
    nodes = [NodeProcess(port, settings, options) for port in ports]
    try:
        yield [node.start() for node in nodes]
    finally:
        for node in nodes:
            node.close()
