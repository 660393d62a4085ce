"""Processes of others' servers: environments, folders, commands, and the pace of their calls."""

import json
import os
import shutil
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import peers  # tools/peers.py, which the caller puts on the path

from isthmus import Command
from isthmus.transports.command import INHERITED_VARIABLES
from support.compat.recipes import Recipe

ROOT = Path(__file__).resolve().parents[3]
CONSOLE_SCRIPT = (
    "import sys, importlib; module, _, name = sys.argv.pop(1).partition(':'); "
    "sys.argv[0] = module; sys.exit(getattr(importlib.import_module(module), name)())"
)
OLDEST_HANDSHAKE = "2025-06-18"
WARM_CALLS = 20
CALLS_PER_BLOCK = 60
BLOCKS = 4


def install_server(recipe: Recipe) -> Path:
    """The interpreter of a server's own environment, from which isthmus can be imported as well.

    Raises:
        Unavailable: of tools/peers.py: it could not be made.
    """
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = [*recipe.packages, *ours["dependencies"]]
    return peers.environment(recipe.name, requirements, [ROOT / "src"])


def prepare_folder(recipe: Recipe, work: Path) -> None:
    """Make the folder of one run of a server afresh: at the same path, so that answers are equal."""
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name, text in recipe.files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text, encoding="utf-8")
    for command in recipe.prepare:
        subprocess.run(command, cwd=work, check=True, capture_output=True)


def make_command(recipe: Recipe, python: Path, work: Path, *, compat: bool) -> Command:
    """The command of a server: under its own library, or under ``isthmus run --compat``."""
    arguments = [one.replace("{work}", str(work)) for one in recipe.arguments]
    # sets are printed in one order on both sides
    env = {"PYTHONHASHSEED": "0", **recipe.env}
    env = {key: value.replace("{work}", str(work)) for key, value in env.items()}
    if compat:
        head = ["-m", "isthmus", "run", "--compat", recipe.start, "--"]
    elif ":" in recipe.start:
        head = ["-c", CONSOLE_SCRIPT, recipe.start]
    else:
        head = ["-m", recipe.start]
    return Command(str(python), *head, *arguments, env=env, cwd=work)


class RawServer:
    """A server on bare pipes: a client so cheap that the server's own time is what is measured."""

    def __init__(self, command: Command) -> None:
        kept = {key: os.environ[key] for key in INHERITED_VARIABLES if key in os.environ}
        self._process = subprocess.Popen(
            command.argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**kept, **command.env},
            cwd=command.cwd,
        )
        self._number = 0
        info = {"name": "pace", "version": "1"}
        self.ask(
            "initialize",
            {"protocolVersion": OLDEST_HANDSHAKE, "capabilities": {}, "clientInfo": info},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> None:
        """Send a request and wait for the line that answers it."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        needle = f'"id":{self._number}'.encode()
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if needle in line.replace(b" ", b"")[:60] or needle in line.replace(b" ", b""):
                return
        raise EOFError(f"the server ended before it answered {method}")

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()


def measure_rates(recipe: Recipe, python: Path, work: Path) -> tuple[float, float]:
    """Calls per second under the own library and under isthmus: the best of blocks in turn."""
    tool, arguments = recipe.timed or ("no_such_tool", {})
    prepare_folder(recipe, work)
    params = {
        "name": tool,
        "arguments": json.loads(json.dumps(arguments).replace("{work}", str(work))),
    }
    servers: list[RawServer] = []
    best = [0.0, 0.0]
    try:
        for compat in (False, True):
            servers.append(RawServer(make_command(recipe, python, work, compat=compat)))
            for _ in range(WARM_CALLS):
                servers[-1].ask("tools/call", params)
        for _ in range(BLOCKS):
            for side, server in enumerate(servers):
                began = time.perf_counter()
                for _ in range(CALLS_PER_BLOCK):
                    server.ask("tools/call", params)
                best[side] = max(best[side], CALLS_PER_BLOCK / (time.perf_counter() - began))
    finally:
        for server in servers:
            server.close()
    return best[0], best[1]
