"""Files of a folder, opened so that no name leads out of it (path traversal).

A name comes from the other side, so it is taken apart before anything is opened: each part must be
the name of something in the folder before it, and nothing else. Then the folders on the way are
opened one by one, each relative to the one before and never through a link. What is opened stays
what it was, so no race can put a link in its place. Where a system cannot open that way, the file
is opened first, and then it is looked at where it is.

spec 2026-07-28 server/resources#security-considerations: servers MUST sanitise file paths to
prevent directory traversal.
"""

import heapq
import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from isthmus.errors import IsthmusError, UsageError

HAS_DIR_FD = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")

OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
FILE_FLAGS = (
    OPEN_FLAGS | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
)  # a pipe holds up nobody
FOLDER_FLAGS = OPEN_FLAGS | getattr(os, "O_DIRECTORY", 0)
NO_LINK_FLAG = getattr(os, "O_NOFOLLOW", 0)

MAX_ENTRIES_HELD = 10_000  # of one folder, at a time

MAX_NAME_BYTES, MAX_PATH_PARTS = 255, 64

FORBIDDEN_CHARS = re.compile(r"[\x00-\x1f\x7f/\\]")
WINDOWS_DEVICES = re.compile(
    r"(?:con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3]|conin\$|conout\$)"
    r"\s*(?:[.:].*)?",
    re.IGNORECASE | re.DOTALL,
)


class FileMissing(IsthmusError):
    """There is no such file, or none that may be read; nobody is told which of the two."""


class FileTooLarge(IsthmusError):
    """The file is larger than may be read."""


class FolderEntry(NamedTuple):
    """An entry of a folder: a file or another folder.

    Attributes:
        path: its parts, from the folder that is offered.
        status: its status, of the file itself.
    """

    path: tuple[str, ...]
    status: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder."""
        return stat.S_ISDIR(self.status.st_mode)


class ServedFolder:
    """A folder that can be read from, and not walked out of.

    Args:
        root: the folder. Links on the way to it are followed now, and never again.
        pattern: what may be read of it: names with ``*``, ``?`` and ``[…]``, in folders at any
            depth where ``**`` stands for them. Several are alternatives.
        hidden: whether what begins with a dot may be read.
        windows: whether names must be those of Windows; by default where it runs on it.
        at: whether to open relative to open folders; by default where the system can.

    Raises:
        UsageError: there is no such folder, or a pattern is none.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        pattern: str | Sequence[str] = "**/*",
        hidden: bool = False,
        windows: bool = os.name == "nt",
        at: bool = HAS_DIR_FD,
    ) -> None:
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):  # noqa: PTH112 - pathlib costs start-up time
            raise UsageError(f"there is no folder {os.fspath(root)!r} to read files from")
        self._patterns = [
            _compile_pattern(p) for p in ([pattern] if isinstance(pattern, str) else pattern)
        ]
        self._hidden = hidden
        self._windows = windows
        self._at = at

    def parts(self, path: str) -> tuple[str, ...]:
        """The parts of a name, each of which can only be something in the folder before it.

        Raises:
            FileMissing: it is no such name.
        """
        parts = tuple(path.split("/")) if path else ()
        if len(parts) > MAX_PATH_PARTS or not all(map(self._is_name, parts)):
            raise FileMissing(path)
        return parts

    def _is_name(self, part: str) -> bool:
        if part in ("", ".", "..") or FORBIDDEN_CHARS.search(part):
            return False
        if part.startswith(".") and not self._hidden:
            return False
        if self._windows and (":" in part or part[-1] in ". " or WINDOWS_DEVICES.fullmatch(part)):
            return False
        try:
            return len(os.fsencode(part)) <= MAX_NAME_BYTES
        except UnicodeEncodeError:
            return False

    def allows(self, parts: tuple[str, ...]) -> bool:
        """Whether a file of this name may be read, by the patterns."""
        name = "/".join(parts)
        return any(pattern.fullmatch(name) for pattern in self._patterns)

    def read(self, parts: tuple[str, ...], most: int | None) -> bytes:
        """A file's bytes.

        Args:
            parts: its name, from :meth:`parts`.
            most: the most bytes it may have, or None for any number.

        Raises:
            FileMissing: there is no such file, or it must not be read.
            FileTooLarge: it has more.
        """
        if not parts or not self.allows(parts):
            raise FileMissing("/".join(parts))
        fd = self._open(parts, FILE_FLAGS)
        try:
            return _read_contents(fd, most)
        finally:
            os.close(fd)

    def page(self, parts: tuple[str, ...], after: str, most: int) -> tuple[list[FolderEntry], bool]:
        """List what lies in a folder and may be seen, in the order of its names.

        Args:
            parts: the folder's name.
            after: the name to go on after; the empty one for the beginning.
            most: how many entries to give.

        Returns:
            The entries, and whether there are more.

        Raises:
            FileMissing: there is no such folder.
        """
        fd = self._open(parts, FOLDER_FLAGS)
        try:
            found = (entry for entry in self._entries(fd, parts) if entry.path[-1] > after)
            entries = heapq.nsmallest(most + 1, found, key=lambda entry: entry.path)
        finally:
            os.close(fd)
        return entries[:most], len(entries) > most

    def walk(self, parts: tuple[str, ...] = ()) -> Iterator[FolderEntry]:
        """Every file that may be read, in the order of their names, folder by folder."""
        after, more = "", True
        while more:
            try:
                entries, more = self.page(parts, after, MAX_ENTRIES_HELD)
            except FileMissing:
                return
            for entry in entries:
                after = entry.path[-1]
                if entry.is_folder:
                    yield from self.walk(entry.path)
                else:
                    yield entry

    # Opening

    def _entries(self, fd: int, parts: tuple[str, ...]) -> Iterator[FolderEntry]:
        here = fd if self._at else os.path.join(self.root, *parts)  # noqa: PTH118 - as above
        with os.scandir(here) as found:
            for item in found:
                path = (*parts, item.name)
                if (
                    len(path) > MAX_PATH_PARTS
                    or not self._is_name(item.name)
                    or not _is_text(item.name)
                ):
                    continue
                try:
                    status = item.stat(follow_symlinks=False)
                except OSError:
                    continue  # it has gone meanwhile
                folder = stat.S_ISDIR(status.st_mode)
                if folder or (stat.S_ISREG(status.st_mode) and self.allows(path)):
                    yield FolderEntry(path, status)

    def _open(self, parts: tuple[str, ...], flags: int) -> int:
        try:
            return (self._open_step_by_step if self._at else self._open_and_verify)(parts, flags)
        except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError) as error:
            raise FileMissing("/".join(parts)) from error
        except OSError as error:
            if error.errno in UNUSABLE_NAME_ERRNOS:
                raise FileMissing("/".join(parts)) from error
            raise

    def _open_step_by_step(self, parts: tuple[str, ...], flags: int) -> int:
        fd = os.open(self.root, FOLDER_FLAGS | NO_LINK_FLAG)
        for index, part in enumerate(parts, 1):
            last = index == len(parts)
            try:
                inner = os.open(part, (flags if last else FOLDER_FLAGS) | NO_LINK_FLAG, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def _open_and_verify(self, parts: tuple[str, ...], flags: int) -> int:
        path = os.path.join(self.root, *parts)  # noqa: PTH118 - as above
        if os.name == "nt" and flags == FOLDER_FLAGS:
            flags = OPEN_FLAGS  # pragma: no cover - Windows opens no folders
        fd = os.open(path, flags | NO_LINK_FLAG)
        if not _is_at(path, fd):
            os.close(fd)
            raise FileNotFoundError(path)
        return fd


def _is_at(path: str, fd: int) -> bool:
    """Whether an open file is the one at a path, without a link anywhere on the way."""
    try:
        real = os.path.realpath(path)
        same = os.path.samestat(os.fstat(fd), os.lstat(real))
    except OSError:
        return False
    return same and os.path.normcase(real) == os.path.normcase(path)


def read_file(path: str, most: int | None) -> bytes:
    """The bytes of a file that the author named; links are followed.

    Raises:
        FileMissing: there is no file of this name.
        FileTooLarge: it has more bytes than ``most``.
    """
    try:
        fd = os.open(path, FILE_FLAGS)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise FileMissing(path) from error
    try:
        return _read_contents(fd, most)
    finally:
        os.close(fd)


def _read_contents(fd: int, most: int | None) -> bytes:
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise FileMissing("no file")
    if most is not None and status.st_size > most:
        raise FileTooLarge(f"it has {status.st_size} bytes, and at most {most} are sent")
    with open(fd, "rb", closefd=False) as file:
        data = file.read(-1 if most is None else most + 1)  # it may grow meanwhile
    if most is not None and len(data) > most:
        raise FileTooLarge(f"it has more than the {most} bytes that are sent")
    return data


def _is_text(name: str) -> bool:
    """Whether a name can be written in a URI: some systems have names that are no text."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_unusable_errnos() -> frozenset[int]:
    import errno

    names = ("ELOOP", "ENAMETOOLONG", "EINVAL", "EMLINK", "ENXIO", "EILSEQ")
    return frozenset(getattr(errno, name) for name in names if hasattr(errno, name))


# of links that must not be followed, and of names that nothing can have
UNUSABLE_NAME_ERRNOS = _list_unusable_errnos()


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of names: ``**`` is any number of folders, and no ``*`` matches a slash.

    Raises:
        UsageError: it leads out of the folder, or nowhere.
    """
    parts = pattern.split("/")
    if not pattern or any(part in ("", ".", "..") for part in parts):
        raise UsageError(f"{pattern!r} is no pattern of files in a folder: write '**/*.md'")
    pieces = []
    for index, part in enumerate(parts, 1):
        last = index == len(parts)
        if part == "**":
            pieces.append("(?:[^/]+/)*" if not last else ".+")
        else:
            pieces.append(_compile_part(part) + ("" if last else "/"))
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error as error:
        raise UsageError(f"{pattern!r} is no pattern of files: {error}") from error


def _compile_part(part: str) -> str:
    """Compile one part of a pattern, as ``fnmatch`` has it, for names without slashes."""
    text, at = "", 0
    while at < len(part):
        char = part[at]
        close = part.find("]", at + 2) if char == "[" else -1
        if char in "*?":
            text += "[^/]*" if char == "*" else "[^/]"
        elif close > 0:
            inside = part[at + 1 : close].replace("\\", r"\\").replace("[", r"\[")
            text += f"(?!/)[{'^' + inside[1:] if inside[0] == '!' else inside}]"
            at = close
        else:
            text += re.escape(char)
        at += 1
    return text
