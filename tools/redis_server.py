"""Runs the tests that need Redis, with Debian's redis-server unpacked first where that is possible.

Nothing is installed on the machine and no service is started: the packages are unpacked under
``.peers/redis``, which needs no root. Ends with 77, which counts as skipped, where there is no Redis
and none can be had. ``python tools/redis_server.py [pytest's arguments]``.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(os.environ.get("ISTHMUS_PEERS", ROOT / ".peers")) / "redis"
PACKAGE = "redis-server"
INSTALL_SECONDS = 300
SKIPPED = 77


def find() -> str | None:
    """Where redis-server is; ``REDIS_SERVER`` in the environment comes first."""
    named = os.environ.get("REDIS_SERVER")
    unpacked = FOLDER / "redis-server"
    installed = shutil.which("redis-server") or shutil.which("valkey-server")
    return named or installed or (str(unpacked) if unpacked.exists() else None)


def install() -> str | None:
    """The same, after an attempt to unpack Debian's where there is none."""
    there = find()
    if there is not None or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return there
    try:
        _unpack()
    except (OSError, subprocess.SubprocessError) as error:
        print(f"redis-server cannot be unpacked: {error}", file=sys.stderr)
        return None
    return find()


def _unpack() -> None:
    """Download the package and what it needs that is not installed here, and unpack all of it."""
    lists, archives = FOLDER / "lists", FOLDER / "archives"
    for folder in (lists / "partial", archives / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    # lists and archives of our own: those of the machine belong to root, and may be empty
    apt = [
        *("apt-get", "-q", "-o", f"Dir::State::lists={lists}", "-o", f"Dir::Cache={FOLDER}"),
        *("-o", f"Dir::Cache::archives={archives}", "-o", "APT::Sandbox::User=", "-o"),
        "Debug::NoLocking=1",
    ]
    _run([*apt, "update"])
    plan = _run([*apt, "install", "--simulate", "--no-install-recommends", PACKAGE])
    names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    _run([*apt, "download", *names], archives)
    for archive in sorted(archives.glob("*.deb")):
        _run(["dpkg-deb", "-x", str(archive), str(FOLDER / "root")])
    _write_starter(FOLDER / "redis-server")
    for folder in (lists, archives):  # a hundred megabytes that nobody needs any more
        shutil.rmtree(folder, ignore_errors=True)
    for cache in FOLDER.glob("*.bin"):
        cache.unlink(missing_ok=True)


def _write_starter(path: Path) -> None:
    """Write a program that starts what was unpacked, with the libraries unpacked beside it."""
    root = FOLDER / "root"
    libraries = ":".join(sorted({str(library.parent) for library in root.rglob("*.so*")}))
    program = root / "usr" / "bin" / "redis-server"
    path.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} "$@"\n')
    path.chmod(0o755)


def _run(command: list[str], folder: Path = ROOT) -> str:
    done = subprocess.run(  # noqa: S603 - the commands are the ones above
        command, cwd=folder, stdout=subprocess.PIPE, timeout=INSTALL_SECONDS, check=True, text=True
    )
    return done.stdout


def main() -> int:
    """Run them, or say why not."""
    server = None
    if not os.environ.get("ISTHMUS_TEST_REDIS"):
        server = install()
        if server is None:
            print("redis tests skipped: there is no redis-server, and none can be unpacked here")
            return SKIPPED
    environment = {**os.environ, "REDIS_SERVER": server} if server else os.environ
    command = [sys.executable, "-m", "pytest", "-q", "-m", "redis", "tests"]
    done = subprocess.run(  # noqa: S603 - our own tests
        [*command, *sys.argv[1:]], cwd=ROOT, env=environment, check=False
    )
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
