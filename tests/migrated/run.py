"""Proof of ``isthmus migrate`` on others' repositories: their own tests pass before and after.

Each is a source distribution of PyPI. Its tests are run in an environment of its own; a copy is
migrated, and its tests are run in an environment that has isthmus and no ``mcp`` or ``fastmcp``.
Ends with 1 where fewer than four of five pass as before, with 77 where PyPI cannot be reached.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import peers  # noqa: E402 - tools/peers.py: found through the line above

SKIPPED = 77
MIN_SAME_SHARE = 0.8
TESTS_TIMEOUT_S = 300  # a machine that is busy is no fault
REPOSITORIES_AT_ONCE = 2
WORK = (peers.PEERS / "migrated").resolve()
CONFIG_FILES = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
TEST_LIBRARIES = ["pytest==9.1.1", "pytest-asyncio==1.4.0"]
BUILD_LIBRARIES = ["pip", "hatchling", "setuptools", "wheel", "poetry-core", "uv-build"]
FOREIGN = ["mcp", "mcp-types", "fastmcp", "fastmcp-slim"]
COLUMNS = "{:<30} {:<18} {:>6} {:>6} {:>6} {:>6}  {}"


@dataclass(frozen=True)
class Repository:
    """A public repository of a server, with its own tests."""

    name: str
    version: str
    library: str
    module: str
    with_: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The folder of its copies and results."""
        return WORK / f"{self.name}-{self.version}"


@dataclass
class Outcome:
    """The tests that pass before and after, and what the migration said."""

    before: set[str] = field(default_factory=set)
    after: set[str] = field(default_factory=set)
    notes: int = 0
    failure: str = ""
    seconds: float = 0.0

    @property
    def is_same(self) -> bool:
        """Whether all that passed before passes after."""
        return bool(self.before) and not self.failure and self.before <= self.after


def load_repositories() -> list[Repository]:
    """The recipes of ``repositories.toml``."""
    text = Path(__file__).with_name("repositories.toml").read_text(encoding="utf-8")
    return [
        Repository(one["name"], one["version"], one["library"], one["module"], tuple(one["with"]))
        for one in tomllib.loads(text)["repository"]
    ]


def list_own_requirements() -> list[str]:
    """What isthmus takes when it stands in for the libraries."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["compat"]]


def fetch_sources(repository: Repository) -> Path:
    """The folder of a repository's source distribution, fetched when it is not there yet.

    Raises:
        peers.Unavailable: it is not to be had.
    """
    place = repository.folder / "source"
    if place.is_dir():
        return place
    python = peers.environment("sources", BUILD_LIBRARIES)
    archives = repository.folder / "archive"
    archives.mkdir(parents=True, exist_ok=True)
    pinned = f"{repository.name}=={repository.version}"
    options = [
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        ":all:",
        "-q",
        "-d",
        str(archives),
    ]
    done = run_program([str(python), "-m", "pip", "download", *options, pinned], ROOT)
    found = sorted(archives.glob("*.tar.gz"))
    if done.returncode or not found:
        raise peers.Unavailable(f"{pinned}: {done.stdout[-400:]}")
    unpacked = repository.folder / "unpacked"
    with tarfile.open(found[0]) as archive:
        archive.extractall(unpacked, filter="data")
    (inner,) = unpacked.iterdir()
    inner.rename(place)
    return place


def run_program(command: list[str], folder: Path, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run a program to its end, its output in one."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **env},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=TESTS_TIMEOUT_S,
        check=False,
    )


def run_tests(repository: Repository, python: Path, folder: Path, *beside: Path) -> set[str]:
    """The tests of a repository that pass, by name."""
    paths = os.pathsep.join(map(str, [folder / "src", folder, *beside]))
    found = run_program(
        [str(python), "-c", f"import {repository.module} as m; print(m.__file__)"],
        folder,
        PYTHONPATH=paths,
    )
    if str(folder) not in found.stdout:
        raise RuntimeError(
            f"{repository.module} is not imported from {folder}: {found.stdout[-1500:]}"
        )
    report = folder.with_suffix(".xml")
    report.unlink(missing_ok=True)
    options = [
        *list_config_options(folder),
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-o",
        "addopts=",
        f"--junitxml={report}",
    ]
    done = run_program([str(python), "-m", "pytest", *options, "tests"], folder, PYTHONPATH=paths)
    folder.with_suffix(".log").write_text(done.stdout, encoding="utf-8")
    if not report.is_file():
        raise RuntimeError(done.stdout[-1500:])
    return {
        f"{case.get('classname')}::{case.get('name')}"
        for case in ET.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it a moment ago
        if not any(child.tag in {"failure", "error", "skipped"} for child in case)
    }


def list_config_options(folder: Path) -> list[str]:
    """Options of pytest for a repository's own configuration: by itself it finds ours, in a folder above."""
    found = [name for name in CONFIG_FILES if (folder / name).is_file()]
    return ["-c", found[0] if found else os.devnull, f"--rootdir={folder}"]


def remove_libraries(python: Path) -> None:
    """Take ``mcp`` and ``fastmcp`` out of an environment."""
    program = str(peers.python("uv").parent / "uv")
    run_program([program, "pip", "uninstall", "-q", "--python", str(python), *FOREIGN], ROOT)
    left = run_program([str(python), "-c", "import mcp"], ROOT)
    if "ModuleNotFoundError" not in left.stdout:
        raise RuntimeError(f"mcp can still be imported: {left.stdout}")


def migrate_copy(folder: Path, *, native: bool) -> None:
    """Run ``isthmus migrate --write`` on a copy; what it prints stands beside it."""
    options = ["--write", "--native"] if native else ["--write"]
    done = run_program([sys.executable, "-m", "isthmus", "migrate", str(folder), *options], ROOT)
    folder.with_suffix(".txt").write_text(done.stdout, encoding="utf-8")
    if done.returncode > 1:
        raise RuntimeError(done.stdout[-1500:])


def prove_repository(repository: Repository, *, native: bool = False) -> Outcome:
    """Run a repository's tests before and after its migration."""
    outcome, began = Outcome(), time.monotonic()
    source = fetch_sources(repository)
    pinned = [f"{repository.name}=={repository.version}", *repository.with_, *TEST_LIBRARIES]
    before, after = repository.folder / "before", repository.folder / "after"
    for copy in (before, after):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(source, copy)
    own = peers.environment(f"{repository.name}-own", pinned)
    ours = peers.environment(f"{repository.name}-ours", [*pinned, *list_own_requirements()])
    remove_libraries(ours)
    try:
        outcome.before = run_tests(repository, own, before)
        migrate_copy(after, native=native)
        outcome.notes = sum(
            path.read_text(encoding="utf-8", errors="replace").count("# isthmus:")
            for path in after.rglob("*.py")
        )
        outcome.after = run_tests(repository, ours, after, ROOT / "src")
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        outcome.failure = str(error)
    outcome.seconds = time.monotonic() - began
    return outcome


def print_row(repository: Repository, outcome: Outcome) -> None:
    """One line of the table, and below it what failed."""
    print(
        COLUMNS.format(
            repository.name,
            repository.library,
            len(outcome.before),
            len(outcome.after & outcome.before),
            outcome.notes,
            f"{outcome.seconds:.0f}",
            "same" if outcome.is_same else "differs",
        ),
        flush=True,
    )
    if outcome.failure:
        print("   ", outcome.failure)
    for name in sorted(outcome.before - outcome.after)[:8]:
        print("   ", name)


def main() -> int:
    """Prove the repositories named on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="repositories; all by default")
    parser.add_argument("--native", action="store_true", help="go on to native isthmus")
    given = parser.parse_args()
    chosen = [one for one in load_repositories() if not given.names or one.name in given.names]
    print(COLUMNS.format("repository", "written for", "before", "after", "marked", "s", "verdict"))
    began, same = time.monotonic(), 0
    with ThreadPoolExecutor(REPOSITORIES_AT_ONCE) as pool:
        jobs = [pool.submit(prove_repository, one, native=given.native) for one in chosen]
        try:
            for repository, job in zip(chosen, jobs, strict=True):
                outcome = job.result()
                same += outcome.is_same
                print_row(repository, outcome)
        except peers.Unavailable as why:
            pool.shutdown(cancel_futures=True)
            print(f"the repositories are not to be had: {why}")
            return SKIPPED
    print(f"the same tests pass: {same} of {len(chosen)}, floor {MIN_SAME_SHARE:.0%}")
    print(f"in {time.monotonic() - began:.0f} s")
    return int(same < MIN_SAME_SHARE * len(chosen))


if __name__ == "__main__":
    sys.exit(main())
