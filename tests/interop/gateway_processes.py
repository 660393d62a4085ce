"""Starts ``isthmus gateway``, a process for each program behind it, and says where a client finds a server."""

import functools
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interop.connections import await_port, running, start_listening
from interop.partners import ALL, OURS
from support.ports import find_free_port

RULES = """
[[rule]]
id = "everything"
effect = "allow"
"""

GATEWAY = [sys.executable, "-m", "isthmus", "gateway"]


@dataclass(frozen=True)
class GatewayProcess:
    """A gateway in front of a server, which it calls by each revision that it speaks to it.

    Attributes:
        url: its address, without a path.
        config: its configuration, with which others may be started.
    """

    url: str
    config: Path

    def find_target(self, transport: str, revision: str) -> str | list[str]:
        """The URL of the server under its own names, or the command of another gateway over stdio.

        Args:
            transport: the one that the client speaks.
            revision: the one that is spoken to the server.
        """
        if transport == "stdio":
            state = tempfile.mkdtemp(dir=self.config.parent)
            files = ["--config", str(self.config), "--state", state]
            return [*GATEWAY, "--stdio", "--server", revision, *files]
        return f"{self.url}/mcp/{revision}"


@functools.cache
def make_folder() -> Path:
    """The folder of all configurations and states, which the end of the tests removes."""
    return Path(tempfile.mkdtemp(prefix="isthmus-interop-"))


def write_config(name: str, servers: dict[str, Any]) -> Path:
    """Write the configuration of a gateway that allows everything, any number of times."""
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=make_folder()))
    rules, path = folder / "rules.toml", folder / "mcp.json"
    rules.write_text(RULES, encoding="utf-8")
    options = {"policy": str(rules), "gateway": {"limits": {"calls": None}}}
    path.write_text(json.dumps({"mcpServers": servers, "host": options}), encoding="utf-8")
    return path


def start_gateway(config: Path) -> GatewayProcess:
    """Start a gateway over HTTP, which ends with the servers that listen.

    Raises:
        Broken: it does not listen.
    """
    port = find_free_port()
    state = str(config.parent / "state")
    words = ["--config", str(config), "--http", f"127.0.0.1:{port}", "--state", state]
    with (config.parent / "stderr").open("wb") as said:
        process = subprocess.Popen([*GATEWAY, *words], stdout=subprocess.DEVNULL, stderr=said)
    running.append(process)
    await_port(port, process, GATEWAY)
    return GatewayProcess(f"http://127.0.0.1:{port}", config)


def make_entry(server: str, revision: str) -> dict[str, Any]:
    """The entry of a counterpart's server, which begins to listen, and to which one revision is spoken."""
    transport = "sse" if revision == ALL[0] else "http"
    pinned = revision if server == OURS else None
    url = start_listening(server, transport, pinned)
    return {"type": transport, "url": url, "host": {"era": revision}}


@functools.cache
def gateway_to(server: str, revisions: tuple[str, ...]) -> GatewayProcess:
    """The gateway in front of a counterpart's server, with an entry for each revision, named by that."""
    entries = {revision: make_entry(server, revision) for revision in revisions}
    return start_gateway(write_config(server, entries))


def forget_gateways() -> None:
    """Remove what was written for gateways that have ended."""
    gateway_to.cache_clear()
    if make_folder.cache_info().currsize:
        shutil.rmtree(make_folder(), ignore_errors=True)
        make_folder.cache_clear()
