"""Folders that may be roots: resolved on the disk, and refused where they are too wide or private."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import Struct

from isthmus.host.model.entries import RootEntry
from isthmus.wire import Root

FolderState: TypeAlias = Literal["there", "gone", "refused"]

# folders of a home that hold keys, passwords and logins of programs
PRIVATE_NAMES = frozenset({
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".password-store", ".netrc",
    ".mozilla", ".thunderbird", ".pki", ".local", "Library", "AppData", ".var", "snap", ".cargo",
    ".m2", ".gradle", ".terraform.d", ".oci", ".minikube", ".android", ".bitcoin", ".electrum",
    ".claude", ".codex", ".cursor", ".gemini", ".vscode", ".ollama", ".cache",
})  # fmt: skip

# they are nobody's work
WIDE_FOLDERS = frozenset({
    "/", "/home", "/Users", "/root", "/etc", "/usr", "/var", "/opt", "/bin", "/sbin", "/lib",
    "/boot", "/dev", "/proc", "/sys", "/run", "/mnt", "/media", "/tmp", "/private", "/System",  # noqa: S108 - compared
})  # fmt: skip

SYSTEM_PREFIXES = (
    "/usr/", "/etc/", "/bin/", "/sbin/", "/boot/", "/dev/", "/proc/", "/sys/", "/run/", "/System/",
    "/Library/", "/private/etc/",
)  # fmt: skip

F_GETPATH = 50  # asks macOS for the name of an open file as the disk has it


class RootFolder(Struct, frozen=True):
    """A declared root as it is now.

    Attributes:
        entry: what the configuration says.
        path: where it really is: absolute, without links; where it would be, if it is gone.
        state: whether it can be told.
        why: why it cannot.
    """

    entry: RootEntry
    path: str
    state: FolderState
    why: str = ""

    @property
    def root(self) -> Root:
        """The root that a server is told of."""
        # spec 2026-07-28 client/roots#root: the uri MUST be a file:// URI, which as_uri encodes
        return Root(uri=Path(self.path).as_uri(), name=self.entry.name)


def resolve_folder(path: str) -> str:
    """Resolve a folder: absolute, without links and ``..``, as the disk spells it."""
    real = os.path.realpath(os.path.expanduser(path))  # noqa: PTH111 - a text
    if sys.platform == "darwin":  # whose disks take a name in either case
        return _read_spelling(real)
    return real


def _read_spelling(path: str) -> str:
    """A path in the case that the disk has it in; as it is where it cannot be opened."""
    try:
        import fcntl  # there is none on Windows

        handle = os.open(path, os.O_RDONLY)
        try:
            said = fcntl.fcntl(handle, F_GETPATH, bytes(1024))
        finally:
            os.close(handle)
    except (ImportError, OSError):
        return path
    return os.fsdecode(said.rstrip(b"\0"))


def explain_refusal(path: str, home: str) -> str:
    """Explain why a folder is not told to servers unless somebody insists; empty where it may be.

    Args:
        path: where it really is.
        home: the user's home, where it really is.
    """
    drive = os.path.splitdrive(path)[1]
    if path in WIDE_FOLDERS or drive in {"/", "\\", ""} or path.startswith(SYSTEM_PREFIXES):
        return "it is the whole system, or a part of it"
    if path == home or home.startswith(path.rstrip(os.sep) + os.sep):
        return "it is your whole home"
    place = Path(path)
    inside = place.relative_to(home).parts if place.is_relative_to(home) else ()
    looked_at = inside[:1] or [part for part in place.parts if part.startswith(".")]
    if PRIVATE_NAMES.intersection(looked_at):
        return "keys, passwords or the settings of programs are kept there"
    return ""


def resolve_roots(entries: Sequence[RootEntry]) -> list[RootFolder]:
    """Declared roots as they are now, each place once; looks at the disk.

    Args:
        entries: the roots of a configuration.
    """
    home = resolve_folder("~")
    found: dict[object, RootFolder] = {}
    for entry in entries:
        path = resolve_folder(entry.path)
        why = "" if entry.force else explain_refusal(path, home)
        state: FolderState = "refused" if why else "gone"
        same: object = path
        if not why:
            try:
                facts = os.stat(path)  # noqa: PTH116 - a text
            except OSError:
                why = "there is no such folder now"
            else:
                same = (facts.st_dev, facts.st_ino)  # whatever case it is written in
                there = os.path.isdir(path) and os.access(path, os.R_OK | os.X_OK)  # noqa: PTH112 - a text
                state, why = (
                    ("there", "") if there else ("gone", "it is no folder that can be read")
                )
        found.setdefault(same, RootFolder(entry, path, state, why))
    return list(found.values())
