"""Programs of Debian that tests run, unpacked under ``.peers/`` where they are not installed.

Nothing is installed on the machine, no service is started, and no root is needed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PEERS = Path(os.environ.get("ISTHMUS_PEERS", ROOT / ".peers"))
SBIN = "/usr/sbin:/usr/local/sbin"
INSTALL_SECONDS = 300


class DebianProgram(NamedTuple):
    """A program, and where it comes from.

    Attributes:
        name: of the program, and of its folder under ``.peers/``.
        package: that it is in.
        place: in the package.
        variable: of the environment, which names another one.
        others: programs that do the same.
    """

    name: str
    package: str
    place: str
    variable: str
    others: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where it is unpacked."""
        return PEERS / self.name

    def find(self) -> str | None:
        """Where the program is; the variable of the environment comes first."""
        named = os.environ.get(self.variable)
        if named:
            return named
        for name in (self.name, *self.others):
            installed = shutil.which(name) or shutil.which(name, path=SBIN)
            if installed is not None:
                return installed
        unpacked = self.folder / self.name
        return str(unpacked) if unpacked.exists() else None

    def install(self) -> str | None:
        """The same, after an attempt to unpack Debian's where there is none."""
        there = self.find()
        if there is not None or shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
            return there
        try:
            self._unpack()
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{self.name} cannot be unpacked: {error}", file=sys.stderr)
            return None
        return self.find()

    def _unpack(self) -> None:
        """Download the package and what it needs that is not installed here, and unpack all of it."""
        lists, archives = self.folder / "lists", self.folder / "archives"
        for folder in (lists / "partial", archives / "partial"):
            folder.mkdir(parents=True, exist_ok=True)
        # lists and archives of our own: those of the machine belong to root, and may be empty
        apt = [
            *("apt-get", "-q", "-o", f"Dir::State::lists={lists}"),
            *("-o", f"Dir::Cache={self.folder}", "-o", f"Dir::Cache::archives={archives}"),
            *("-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1"),
        ]
        _run([*apt, "update"])
        plan = _run([*apt, "install", "--simulate", "--no-install-recommends", self.package])
        names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
        _run([*apt, "download", *names], archives)
        for archive in sorted(archives.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(archive), str(self.folder / "root")])
        self._write_starter()
        for folder in (lists, archives):  # a hundred megabytes that nobody needs any more
            shutil.rmtree(folder, ignore_errors=True)
        for cache in self.folder.glob("*.bin"):
            cache.unlink(missing_ok=True)

    def _write_starter(self) -> None:
        """Write a program that starts what was unpacked, with the libraries unpacked beside it."""
        root, starter = self.folder / "root", self.folder / self.name
        libraries = ":".join(sorted({str(library.parent) for library in root.rglob("*.so*")}))
        starter.write_text(
            f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {root / self.place} "$@"\n'
        )
        starter.chmod(0o755)


def _run(command: list[str], folder: Path = ROOT) -> str:
    done = subprocess.run(  # noqa: S603 - the commands are the ones above
        command, cwd=folder, stdout=subprocess.PIPE, timeout=INSTALL_SECONDS, check=True, text=True
    )
    return done.stdout


REDIS = DebianProgram(
    "redis-server", "redis-server", "usr/bin/redis-server", "REDIS_SERVER", ("valkey-server",)
)
NGINX = DebianProgram("nginx", "nginx-light", "usr/sbin/nginx", "NGINX")
HAPROXY = DebianProgram("haproxy", "haproxy", "usr/sbin/haproxy", "HAPROXY")
