"""Builds the sdist and the wheel, and says what is wrong with them.

``python tools/distributions.py [--isolated]`` builds both twice from the committed files, compares
the two, and prints names, sizes and digests. ``--isolated`` has pip fetch the build tools anew, as
an installation from the sdist does; without it those of this environment build.
"""

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_TIMEOUT_S = 300
MAX_WHEEL_BYTES = 4 * 1024 * 1024
SDIST_ROOTS = (
    *("src/isthmus/", "README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md"),
    *("pyproject.toml", "PKG-INFO", ".gitignore"),
)
DATA_SUFFIXES = {".py", ".typed", ".toml", ".css", ".js", ".svg", ".json", ".md", ".lua", ".tcss"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def run_command(*words: str, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command, and give what it prints.

    Raises:
        SystemExit: it failed; with its words.
    """
    done = subprocess.run(  # noqa: S603 - commands of ours
        words,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout[-4000:]}")
    return done.stdout.strip()


def export_commit(target: Path, commit: str = "HEAD") -> str:
    """Write the files of a commit into a folder: what is not committed is in no release.

    Returns:
        The seconds since 1970 of the commit, which are the time of every file in what is built.
    """
    packed = target / "commit.tar"
    run_command("git", "archive", "--output", str(packed), commit)
    with tarfile.open(packed) as archive:
        archive.extractall(target, filter="data")
    packed.unlink()
    return run_command("git", "log", "-1", "--format=%ct", commit)


def build_distributions(source: Path, target: Path, epoch: str, *, isolated: bool) -> list[Path]:
    """Build the sdist, and the wheel from the sdist.

    Args:
        source: the folder with pyproject.toml.
        target: where they are written.
        epoch: the time of every file, in seconds since 1970.
        isolated: with build tools that pip fetches.
    """
    options = [] if isolated else ["--no-isolation"]
    words = (sys.executable, "-m", "build", "--outdir", str(target), *options, str(source))
    run_command(*words, SOURCE_DATE_EPOCH=epoch)
    return sorted(target.iterdir())


def digest_file(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def find_faults(distributions: Iterable[Path]) -> list[str]:
    """What is wrong with an sdist and a wheel: strays, lacking files, links that lead nowhere."""
    faults = []
    for path in distributions:
        if path.suffix == ".whl":
            faults += _find_wheel_faults(path)
        else:
            faults += _find_sdist_faults(path)
    return faults


def _find_wheel_faults(path: Path) -> list[str]:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
        page = message_from_bytes(wheel.read(metadata)).get_payload()
    strays = [
        name
        for name in names
        if not (name.startswith("isthmus/") and Path(name).suffix in DATA_SUFFIXES)
        and ".dist-info/" not in name
    ]
    faults = [f"{path.name} has {name}, which is no part of isthmus" for name in strays]
    faults += [f"{path.name} lacks {n}" for n in ("isthmus/py.typed",) if n not in names]
    relative = [link for link in LINK.findall(str(page)) if not link.startswith(("https://", "#"))]
    faults += [f"README.md leads to {link} on the page at PyPI" for link in relative]
    if (size := path.stat().st_size) > MAX_WHEEL_BYTES:
        faults.append(f"{path.name} has {size} bytes, more than {MAX_WHEEL_BYTES}")
    return faults


def _find_sdist_faults(path: Path) -> list[str]:
    with tarfile.open(path) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]
    strays = [name for name in names if not name.startswith(SDIST_ROOTS)]
    lacking = [root for root in SDIST_ROOTS[:6] if not any(n.startswith(root) for n in names)]
    return [
        *(f"{path.name} has {name}, which nobody needs to build isthmus" for name in strays),
        *(f"{path.name} lacks {name}" for name in lacking),
    ]


def build_twice(target: Path, *, isolated: bool) -> tuple[list[Path], list[str]]:
    """Build a commit twice, in two folders: the distributions, and what is wrong with them.

    Args:
        target: an empty folder, where the distributions are left.
        isolated: with build tools that pip fetches.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        epoch = export_commit(Path(first))
        export_commit(Path(second))
        again = Path(second, "built")
        again.mkdir()
        distributions = build_distributions(Path(first), target, epoch, isolated=isolated)
        others = build_distributions(Path(second), again, epoch, isolated=isolated)
        faults = [
            f"{one.name} differs when it is built again"
            for one, other in zip(distributions, others, strict=True)
            if digest_file(one) != digest_file(other)
        ]
    return distributions, faults + find_faults(distributions)


def main() -> int:
    """Build both, and print what is wrong with them."""
    with tempfile.TemporaryDirectory() as folder:
        distributions, faults = build_twice(Path(folder), isolated="--isolated" in sys.argv)
        for path in distributions:
            print(f"{path.name:36} {path.stat().st_size:>9} bytes  {digest_file(path)}")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
