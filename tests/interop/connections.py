"""Starts a server and a client of two implementations, and has the client play every behaviour."""

import functools
import json
import os
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Any

import peers  # tools/peers.py, which conftest.py puts on the path

from interop.behaviours import Behaviour, select_behaviours
from interop.partners import PARTNERS, has_pages
from support.ports import find_free_port

START_SECONDS = 40
PLAY_SECONDS = 150

running: list[subprocess.Popen[bytes]] = []


class Broken(Exception):
    """No outcomes came; the message is what the programs said."""


def command(side: str, name: str) -> list[str]:
    """How one side of an implementation is started."""
    make = getattr(PARTNERS[name], side)
    argv: list[str] = make()
    return argv


@functools.cache
def start_listening(name: str, transport: str, revision: str | None = None) -> str:
    """The URL of a server that listens until the tests end; it serves every revision it has.

    Args:
        name: the implementation.
        transport: the transport.
        revision: the only one that it is to speak, where it is ours.
    """
    port = find_free_port()
    argv = [*command("server", name), transport, str(port)]
    pinned = {} if revision is None else {"COUNTERPART_REVISION": revision}
    process = subprocess.Popen(
        argv,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **pinned},
    )
    running.append(process)
    await_port(port, process, argv)
    return f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"


def start_program(argv: Sequence[str], *given: str) -> int:
    """Start a server that takes its port as the last argument; gives the port.

    Args:
        argv: the program.
        *given: its arguments before the port.
    """
    port = find_free_port()
    whole = [*argv, *given, str(port)]
    process = subprocess.Popen(whole, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running.append(process)
    await_port(port, process, whole)
    return port


def await_port(port: int, process: subprocess.Popen[bytes], argv: Sequence[object]) -> None:
    """Wait until a program listens.

    Raises:
        Broken: it ended, or took too long.
    """
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 0.5).close()
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise Broken(f"{' '.join(map(str, argv))} does not listen") from None
            time.sleep(0.05)  # another program's start: there is nothing to wait on
        else:
            return


def stop() -> None:
    """End every server that listens."""
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
    running.clear()
    start_listening.cache_clear()


def outcomes(client: str, server: str, transport: str, revision: str) -> dict[str, Any]:
    """What came of each behaviour, and under ``revision`` the one that was agreed on.

    Raises:
        Broken: the client ended without a word.
        peers.Unavailable: one of the two cannot be had here.
    """
    came = once(client, server, transport, revision)
    if isinstance(came, Exception):
        raise came
    return came


@functools.cache
def once(client: str, server: str, transport: str, revision: str) -> dict[str, Any] | Exception:
    """The outcomes, or what went wrong: found out once, whichever it is."""
    try:
        return visited(client, server, transport, revision)
    except (Broken, peers.Unavailable) as error:
        return error


def visited(client: str, server: str, transport: str, revision: str) -> dict[str, Any]:
    """Have a client visit a server."""
    target = (
        [*command("server", server), "stdio"]
        if transport == "stdio"
        else start_listening(server, transport)
    )
    key = f"{client} {server} {transport} {revision}"
    behaviours = select_behaviours(transport, revision, pages=has_pages(client, server))
    return visit(client, target, (transport, revision), behaviours, key)


def visit(
    client: str,
    target: str | list[str],
    spoken: tuple[str, str],
    behaviours: Mapping[str, Behaviour],
    key: str,
) -> dict[str, Any]:
    """Have a client play behaviours.

    Args:
        client: the implementation.
        target: a URL or a command.
        spoken: the transport and the revision.
        behaviours: by name.
        key: tells this visit from all others at the same server.

    Returns:
        The outcomes of each, and the revision that was agreed on.

    Raises:
        Broken: the client ended without a word.
        peers.Unavailable: it cannot be had here.
    """
    steps = [step for behaviour in behaviours.values() for step in behaviour.steps]
    plan = {
        "transport": spoken[0],
        "revision": spoken[1],
        "target": target,
        "steps": json.loads(json.dumps(steps).replace("KEY", key)),
    }
    said = played([*command("client", client), json.dumps(plan)])
    results = iter(said["outcomes"])
    return {
        "revision": said["revision"],
        **{name: [next(results) for _ in b.steps] for name, b in behaviours.items()},
    }


def played(argv: list[str]) -> dict[str, Any]:
    """Run a client to its end and read the object that it prints last."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=PLAY_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise Broken(f"no end after {PLAY_SECONDS} s: {str(late.stderr)[-1500:]}") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        raise Broken(f"ended with {done.returncode}: {done.stderr[-1500:]}{done.stdout[-500:]}")
    said: dict[str, Any] = json.loads(lines[-1])
    return said
