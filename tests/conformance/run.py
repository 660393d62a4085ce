"""The official conformance suite against all that isthmus can be: ``make conformance``.

Every run of ``RUNS`` is made for ``examples/everything.py`` and for ``tests/conformance/client.py``:
both requirement sets, everything the suite has, and the two older revisions it knows. ``GATEWAY_RUNS``
are made for ``isthmus gateway`` in front of the same server, once as it is and once held to 2025-11-25
(``gateway.json``). The mode for
authorization servers visits ``tests/conformance/authority.py``; somebody without a browser goes where
the suite wants a browser to go (``isthmus.testing.person``). Prints a line for each run and what went wrong
below it. Ends with 0 only when nothing failed and nothing was warned of that ``OPEN`` does not list,
with 77 when the suite or its Node cannot be had. A pattern of ``OPEN`` under which everything passes is
an error, too: the list must shrink.
"""

import argparse
import functools
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests"), str(Path(__file__).parent)]

import peers  # noqa: E402 - tools/peers.py: found through the line above
import reports  # noqa: E402 - the file beside this one

from isthmus.testing.person import Person  # noqa: E402 - comes after them, as the formatter says
from support.ports import find_free_port  # noqa: E402 - found through the line above

START_SECONDS = 20
SKIPPED = 77

RUNS = (
    ("--requirements", "2025-11-25"),
    ("--requirements", "2026-07-28"),
    ("--suite", "all"),
    ("--suite", "all", "--spec-version", "2025-06-18"),
    ("--suite", "all", "--spec-version", "2025-03-26"),
)
GATEWAY_RUNS = {"modern": RUNS, "legacy": tuple(run for run in RUNS if run != ("--suite", "all"))}
"""The runs by the server behind, as ``gateway.json`` calls it; ``all`` adds extensions alone, which end there."""
AUTHORIZATION_RUNS: tuple[tuple[str, ...], ...] = ((), ("--spec-version", "2025-03-26"))
SIDES = ("server", "client", "authorization", "gateway")

OPEN: dict[str, dict[str, str]] = {
    "server": {},
    "client": {},
    "authorization": {},
    "gateway": {
        "*/server-sse-polling": (
            "whether a stream is closed and polled is settled for each hop: the gateway polls the server "
            "behind, and its own stream to the client stays open"
        ),
        "*/tasks-required-task-error": (
            "the gateway follows the tasks behind it, so that none of its tools needs a client that has them"
        ),
        "modern/sep-2640-*": "extensions end at the gateway, and skills are one",
        "legacy/input-required-result-basic-elicitation": (
            "the suite looks for the key of a question, and a request of up to 2025-11-25 has none"
        ),
        "legacy/input-required-result-ignore-extra-params": (
            "the suite answers by such a key before it is asked"
        ),
        "legacy/server-stateless": (
            "a server of up to 2025-11-25 does not ask what its client lacks, and says so in the words of "
            "its tool: -32021 is of 2026-07-28"
        ),
        "legacy/tasks-mrtr-composition": (
            "a server of 2025-11-25 answers with a task before the tool begins, so that the tool can ask in "
            "its task alone"
        ),
    },
}
"""Scenarios that may still fail, by side: a pattern of names, and what it waits for; of a gateway, why it stays."""

UNTESTED = ("tasks-status-notifications",)
"""Scenarios that test nothing here: notifications of tasks, whose checks this version of the suite always skips."""


@contextmanager
def serve(name: str, *command: str, **environment: str) -> Iterator[str]:
    """A command of ``isthmus`` that serves HTTP, listening; the URL of its host and port.

    Args:
        name: of it, for messages and its log.
        *command: what follows ``isthmus``.
        **environment: further variables.
    """
    port = find_free_port()
    arguments = [sys.executable, "-m", "isthmus", *command, "--http", f"127.0.0.1:{port}"]
    reports.OUT.mkdir(exist_ok=True)
    with (reports.OUT / f"{name}.log").open("w") as log:
        process = subprocess.Popen(arguments, stderr=log, env={**os.environ, **environment})
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"the {name} did not start: see {name}.log") from None
                time.sleep(0.05)
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        process.wait(10)


@contextmanager
def fixture() -> Iterator[str]:
    """The everything server, listening; its URL."""
    with serve("server", "run", str(ROOT / "examples/everything.py")) as origin:
        yield f"{origin}/mcp"


@contextmanager
def gateway(url: str) -> Iterator[str]:
    """A gateway in front of a server, listening; the beginning of the URLs of its servers."""
    config = str(Path(__file__).with_name("gateway.json"))
    with tempfile.TemporaryDirectory() as state:
        command = ["gateway", "--config", config, "--state", state]
        with serve("gateway", *command, EVERYTHING_URL=url) as origin:
            yield f"{origin}/mcp"


@contextmanager
def authority() -> Iterator[tuple[list[str], Person]]:
    """An authorization server with one client, listening; what points the suite at it, and its user.

    The fixture gets its port and that of the suite's callback, and says in one line of JSON, once it
    listens, what its issuer, its client and its user are.
    """
    ports = [str(find_free_port()), str(find_free_port())]
    command = [sys.executable, str(ROOT / "tests/conformance/authority.py"), *ports]
    with (reports.OUT / "authority.log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        line = process.stdout.readline() if process.stdout else ""
        if not line:
            raise SystemExit("the authorization server did not start: see authority.log")
        said = json.loads(line)
        client = ["--client-id", said["client_id"], "--client-secret", said["client_secret"]]
        target = ["--url", said["issuer"], *client, "--port", ports[1]]
        yield target, Person(said["name"], said["password"])
    finally:
        process.terminate()
        process.wait(10)
    logged = (reports.OUT / "authority.log").read_text()
    if said["password"] in logged or "eyJ" in logged:  # how every token begins that is a JWT
        raise SystemExit("there is a secret in authority.log")


def visit(user: Person, url: str) -> None:
    """What somebody does with a URL that the suite shows: log in, consent, go back."""
    user.request("GET", user.follow(url))


def targets(side: str, url: str) -> list[str]:
    """What the suite is pointed at."""
    if side == "server":
        return ["--url", url]
    command = [sys.executable, str(ROOT / "tests/conformance/client.py")]
    return ["--command", shlex.join(command), "--timeout", "60000"]


def wrongs(side: str, outcome: reports.Outcome) -> dict[str, list[str]]:
    """What went wrong in one run, by scenario, whether or not it is open."""
    found = {name: list(problems) for name, problems in outcome.problems.items()}
    for name in outcome.expected:
        if any(fnmatch(name, pattern) for pattern in UNTESTED):
            continue
        if name not in outcome.scenarios:
            found.setdefault(name, []).append("FAILURE it was not run")
        elif name not in outcome.tested:
            found.setdefault(name, []).append("FAILURE nothing was tested")
        if side == "client" and name not in outcome.finished:
            found.setdefault(name, []).append("FAILURE the client did not end well")
    return found


def judge_outcome(
    side: str, arguments: tuple[str, ...], outcome: reports.Outcome, behind: str = ""
) -> set[str]:
    """Print one run's line and what is wrong; the patterns of OPEN that were needed, or "!".

    Args:
        side: what was tested.
        arguments: of the run.
        outcome: what it said.
        behind: the server behind a gateway, with which the patterns begin.
    """
    found = wrongs(side, outcome)
    paths = {name: f"{behind}/{name}" if behind else name for name in found}
    used = {name: next((p for p in OPEN[side] if fnmatch(paths[name], p)), "!") for name in found}
    closed = [name for name, pattern in used.items() if pattern == "!"]
    count = outcome.count
    print(
        f"{f'{side} {behind}':14} {' '.join(arguments):39} {len(outcome.expected):9} "
        f"{len(outcome.expected) - len(found):6} {len(found) - len(closed):5} {len(closed):6}   "
        f"{count['SUCCESS']:6} {count['FAILURE']:8} {count['WARNING']:8} {count['SKIPPED']:7} "
        f"{outcome.seconds:5.0f} s",
        flush=True,
    )
    for name in closed:
        print(f"   {name}")
        for problem in found[name]:
            print(f"      {problem[:300]}")
    return set(used.values())


def run_gateway(node: Path, suite: Path, base: str) -> set[str]:
    """Every run through the gateway; the patterns of OPEN that were needed, or "!"."""
    used: set[str] = set()
    for behind, runs in GATEWAY_RUNS.items():
        for arguments in runs:
            target, label = ["--url", f"{base}/{behind}"], f"gateway-{behind}"
            outcome = reports.run(node, suite, "server", arguments, target, label=label)
            used |= judge_outcome("gateway", arguments, outcome, behind)
    return used


def run_all(sides: list[str]) -> bool:
    """Every run for the sides asked for; True when all is well."""
    node, suite = peers.node(), peers.modules("conformance")
    used: dict[str, set[str]] = {side: set() for side in sides}
    print(
        f"{'side':14} {'run':39} scenarios passed  open FAILED   checks: ok failures warnings skipped"
    )
    with fixture() as url:
        for side in (side for side in sides if side in {"server", "client"}):
            for arguments in RUNS:
                outcome = reports.run(node, suite, side, arguments, targets(side, url))
                used[side] |= judge_outcome(side, arguments, outcome)
        if "gateway" in sides:
            with gateway(url) as base:
                used["gateway"] = run_gateway(node, suite, base)
    for arguments in AUTHORIZATION_RUNS if "authorization" in sides else ():
        with authority() as (target, user):
            follow = functools.partial(visit, user)
            outcome = reports.run(node, suite, "authorization", arguments, target, follow=follow)
        used["authorization"] |= judge_outcome("authorization", arguments, outcome)
    stale = [(side, p) for side in sides for p in OPEN[side] if p not in used[side]]
    for side, pattern in stale:
        print(f"{side}: all of {pattern!r} passes now: take it out of OPEN")
    for side in sides:
        for pattern, why in OPEN[side].items():
            print(f"open: {side} {pattern}: {why}")
    return not stale and not any("!" in patterns for patterns in used.values())


def main() -> int:
    """Run the suite, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES, help="only one of the four")
    options = parser.parse_args()
    os.environ.setdefault("NO_COLOR", "1")
    try:
        peers.node()
        peers.modules("conformance")
    except peers.Unavailable as why:
        print(f"conformance skipped: {why}")
        return SKIPPED
    return 0 if run_all([options.side] if options.side else list(SIDES)) else 1


if __name__ == "__main__":
    sys.exit(main())
