"""Runs tests of the wheel under every other Python that is installed here and that isthmus supports.

``python tools/interpreters.py [3.13 ...]`` builds the wheel, installs it with its extras in an
environment of each version, imports every module, and runs the tests of FOLDERS. Ends with 77,
which counts as skipped, where there is no other Python. The classifiers of pyproject.toml name
no version that this has not run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import peers
from distributions import ROOT, build_distributions, export_commit

SKIPPED = 77
VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
FOLDERS = ("core", "wire", "revisions", "runtime", "server", "client", "tasks", "interaction")
MARKS = "not interop and not browser and not redis and not balancers and not hypothesis"
TEST_TIMEOUT_S = 900
# what their modules import; other tools of development have not every version's wheel
TEST_REQUIREMENTS = (
    *("pytest", "pytest-asyncio", "pytest-randomly", "pytest-timeout", "pytest-xdist"),
    *("hypothesis", "attrs", "starlette", "fastapi", "python-multipart"),
)
IMPORT_ALL = """
import importlib, pkgutil, isthmus
names = [m.name for m in pkgutil.walk_packages(isthmus.__path__, "isthmus.") if "__main__" not in m.name]
for name in names:
    importlib.import_module(name)
print(len(names), "modules can be imported")
"""


def find_interpreter(version: str) -> str | None:
    """The path of a Python of a version; None where it is not installed."""
    name = f"python{version}"
    found = [
        shutil.which(name),
        *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}")),
    ]
    for path in found:
        if path is None:
            continue
        try:
            done = subprocess.run(  # noqa: S603 - an interpreter
                [path, "-c", "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=30,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.stdout.strip() == version:
            return str(path)
    return None


def run(*words: str, timeout: float, **environment: str) -> bool:
    """Run a command in the project's folder; whether it went well."""
    done = subprocess.run(  # noqa: S603 - commands of ours
        words, cwd=ROOT, env={**os.environ, **environment}, timeout=timeout, check=False
    )
    return done.returncode == 0


def try_interpreter(interpreter: str, wheel: Path, folder: Path) -> bool:
    """Install the wheel for an interpreter, and run the tests; whether they pass."""
    python = str(folder / "bin" / "python")
    requirements = [
        "--constraint",
        str(ROOT / "constraints.txt"),
        f"{wheel}[all]",
        *TEST_REQUIREMENTS,
    ]
    try:
        peers.install_with_uv(folder, requirements, interpreter)
    except peers.Unavailable as why:
        print(why)
        return False
    if not run(python, "-c", IMPORT_ALL, timeout=TEST_TIMEOUT_S):
        return False
    tests = [f"tests/{name}" for name in FOLDERS]
    options = ("-q", "-n", "4", "-p", "no:cacheprovider", "-m", MARKS)
    return run(python, "-m", "pytest", *options, *tests, timeout=TEST_TIMEOUT_S)


def main() -> int:
    """Try each, and print a line for each."""
    here = "{}.{}".format(*sys.version_info[:2])
    wanted = sys.argv[1:] or [version for version in VERSIONS if version != here]
    found = {version: find_interpreter(version) for version in wanted}
    lines, failed = [], False
    with tempfile.TemporaryDirectory() as name:
        source, built = Path(name, "source"), Path(name, "built")
        source.mkdir()
        if any(found.values()):
            epoch = export_commit(source)
            wheel = build_distributions(source, built, epoch, isolated=False)[0]
        for version, interpreter in found.items():
            if interpreter is None:
                lines.append(f"Python {version}: not installed here, so not tried")
                continue
            began = time.monotonic()
            passed = try_interpreter(interpreter, wheel, Path(name, version))
            failed = failed or not passed
            word = "passed" if passed else "FAILED"
            lines.append(f"Python {version}: {word} in {time.monotonic() - began:.0f} s")
    print(*lines, sep="\n")
    if not any(found.values()):
        return SKIPPED
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
