"""One run of the official suite, and what its reports say."""

import json
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

OUT = Path(__file__).resolve().parents[2] / ".conformance"
SUITE_SECONDS = 600
STAMP = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
TO_FOLLOW = re.compile(r"https?://\S+[?&]response_type=code\S*")
PREFIXES = {"server": "server-", "client": "", "authorization": "authorization-server-"}
LISTED = re.compile(r"\s*- (\S+)(?: \[(.*)\])?$")


@dataclass
class Outcome:
    """What one run said.

    Attributes:
        expected: the scenarios that the suite lists for such a run.
        scenarios: those that it reported on.
        tested: those of which a check of their own succeeded.
        finished: those whose client printed ``done`` last.
        problems: failures and warnings, by scenario.
        count: how many checks had which status.
        seconds: how long it took.
    """

    expected: list[str]
    scenarios: set[str] = field(default_factory=set)
    tested: set[str] = field(default_factory=set)
    finished: set[str] = field(default_factory=set)
    problems: dict[str, list[str]] = field(default_factory=dict)
    count: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def run(
    node: Path,
    modules: Path,
    side: str,
    arguments: tuple[str, ...],
    target: list[str],
    *,
    follow: Callable[[str], object] | None = None,
    label: str = "",
) -> Outcome:
    """Run the suite once and read its reports.

    Args:
        node: the Node that runs it.
        modules: where it is installed.
        side: what it tests: ``server``, ``client`` or ``authorization``.
        arguments: which of its scenarios.
        target: what it is pointed at.
        follow: is given each URL that the suite wants somebody to open in a browser.
        label: the beginning of the folder's name; the side by default.
    """
    folder = OUT / "-".join([label or side, *arguments[1::2]])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    suite = modules / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    began = time.monotonic()
    command = [str(node), str(suite), side, *target, *arguments, "-o", str(folder)]
    said = heard(command, follow)
    outcome = Outcome(listed([str(node), str(suite), "list"], side, arguments))
    outcome.seconds = time.monotonic() - began
    (folder / "output.txt").write_text(said)
    read(folder, side, outcome)
    if not outcome.scenarios:
        print(said[-4000:])
        raise SystemExit(f"the suite said nothing: {' '.join(command)}")
    return outcome


def heard(command: list[str], follow: Callable[[str], object] | None) -> str:
    """All that a command says; URLs for a browser are followed when they are said."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    late = threading.Timer(SUITE_SECONDS, process.kill)
    late.start()
    lines = []
    with process:
        for line in process.stdout or ():
            lines.append(line)
            if follow is not None and (url := TO_FOLLOW.search(line)) is not None:
                follow(url[0])
    late.cancel()
    return "".join(lines)


def read(folder: Path, side: str, outcome: Outcome) -> None:
    """Read every report below a folder."""
    for report in sorted(folder.rglob("checks.json")):
        name = STAMP.sub("", str(report.parent.relative_to(folder)))
        name = name.removeprefix(PREFIXES[side])
        outcome.scenarios.add(name)
        said = report.parent / "stdout.txt"
        if said.exists() and said.read_text().rstrip().endswith("done"):
            outcome.finished.add(name)
        for check in json.loads(report.read_text()):
            status = check["status"]
            outcome.count[status] += 1
            if status == "SUCCESS" and check["id"] != "wire-schema-valid":
                outcome.tested.add(name)
            if status in {"FAILURE", "WARNING"}:
                message = check.get("errorMessage") or check.get("description", "")
                outcome.problems.setdefault(name, []).append(f"{status} {check['id']}: {message}")


def listed(command: list[str], side: str, arguments: tuple[str, ...]) -> list[str]:
    """The scenarios of one side that a run has, as the suite lists them."""
    chosen = dict(zip(arguments[::2], arguments[1::2], strict=True))
    if "--requirements" in chosen:
        command = [*command, "--requirements", chosen["--requirements"]]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version = chosen.get("--spec-version")
    part, names = "", []
    for line in text.splitlines():
        found = LISTED.match(line)
        if found is None:
            part = line.strip() or part
            continue
        name, tags = found[1], (found[2] or "").split(",")
        of_side = part.startswith(side.title()) or tags == [side]
        if of_side and (version is None or version in tags):
            names.append(name)
    return names
