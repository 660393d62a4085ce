"""The official conformance suite against ``examples/everything.py``: ``make conformance``.

Runs the required server scenarios of both requirement sets, prints what failed, and ends with 0
only when nothing failed that is not listed in ``OPEN`` below, with 77 when the suite or its Node
cannot be had. A scenario listed there that passes is an error, too: the list must shrink.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import peers  # noqa: E402 - tools/peers.py: found through the line above

OUT = ROOT / ".conformance"
REQUIREMENTS = ("2025-11-25", "2026-07-28")
START_SECONDS = 20
SUITE_SECONDS = 300
SKIPPED = 77

OPEN: dict[str, dict[str, str]] = {requirements: {} for requirements in REQUIREMENTS}
"""Scenarios that may still fail, by requirement set, each with what it waits for."""


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def fixture() -> Iterator[str]:
    """The everything server, listening; its URL."""
    port = free_port()
    command = [sys.executable, "-m", "isthmus", "run", str(ROOT / "examples/everything.py")]
    process = subprocess.Popen([*command, "--http", f"127.0.0.1:{port}"])
    try:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 0.5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the everything server did not start") from None
                time.sleep(0.05)
        yield f"http://localhost:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def run(url: str, requirements: str, *more: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    """One run of the suite: what failed by scenario, and how many checks had which status."""
    folder = OUT / requirements
    shutil.rmtree(folder, ignore_errors=True)
    suite = peers.modules("conformance") / "node_modules/@modelcontextprotocol/conformance"
    command = [str(peers.node()), str(suite / "dist/index.js"), "server", "--url", url]
    command += ["--requirements", requirements, "-o", str(folder), *more]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SUITE_SECONDS, check=False, cwd=ROOT
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    failed: dict[str, list[str]] = {}
    count: dict[str, int] = {}
    for report in sorted(folder.rglob("checks.json")):
        scenario = report.parent.name
        for check in json.loads(report.read_text()):
            status = check["status"]
            count[status] = count.get(status, 0) + 1
            if status in {"FAILURE", "WARNING"}:
                message = check.get("errorMessage") or check.get("description", "")
                failed.setdefault(scenario, []).append(f"{status} {check['id']}: {message}")
    if not count:
        print(done.stdout[-2000:], done.stderr[-2000:])
        raise SystemExit(f"the suite said nothing for {requirements}")
    return failed, count


def required(requirements: str) -> list[str]:
    """The server scenarios that a requirement set scores."""
    suite = peers.modules("conformance") / "node_modules/@modelcontextprotocol/conformance"
    command = [str(peers.node()), str(suite / "dist/index.js"), "list"]
    listed = subprocess.run(
        [*command, "--requirements", requirements], capture_output=True, text=True, check=True
    ).stdout
    part = listed.split("Server scenarios", 1)[1].split("Client scenarios", 1)[0]
    return [line.strip()[2:] for line in part.splitlines() if line.strip().startswith("- ")]


def judged(requirements: str, failed: dict[str, list[str]], count: dict[str, int]) -> bool:
    """Print one run's outcome; True when nothing failed that should not."""
    scored = required(requirements)
    wrong = {name for name in scored if any(name in scenario for scenario in failed)}
    known = set(OPEN[requirements])
    print(f"\n{requirements}: {len(scored) - len(wrong)} of {len(scored)} required scenarios pass")
    print("   checks: " + ", ".join(f"{n} {status}" for status, n in sorted(count.items())))
    for scenario, problems in failed.items():
        name = next((name for name in scored if name in scenario), None)
        word = "required" if name else "not scored"
        print(f"   {scenario} ({word})")
        for problem in problems:
            print(f"      {problem[:300]}")
    for name in sorted(known - wrong):
        print(f"   {name} passes now: take it out of OPEN")
    return wrong == known


def main() -> int:
    """Run both requirement sets against one server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="the same; for CI's vocabulary")
    parser.add_argument("--url", help="a server that runs already")
    options = parser.parse_args()
    try:
        peers.node()
        peers.modules("conformance")
    except peers.Unavailable as why:
        print(f"conformance skipped: {why}")
        return SKIPPED
    os.environ.setdefault("NO_COLOR", "1")
    if options.url:
        outcomes = [judged(r, *run(options.url, r)) for r in REQUIREMENTS]
    else:
        with fixture() as url:
            outcomes = [judged(r, *run(url, r)) for r in REQUIREMENTS]
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
