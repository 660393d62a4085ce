"""Canonical paths and hosts: None where programs may read a path or a URL in different ways."""

import os
import re
import sys
import unicodedata

MAX_PATH_CHARS = 4_096
MAX_URL_CHARS = 8_192

# names that differ in case may be one file here
CASE_INSENSITIVE = sys.platform in {"darwin", "win32"}
_URL = re.compile(r"(?:https?|wss?)://([^/?#]*)", re.IGNORECASE)
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::[0-9]{0,5})?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_VARIABLE = re.compile(r"\$\{|\$[A-Z_][A-Z0-9_]*(?:/|$)|%[A-Za-z_][A-Za-z0-9_]*%")
_PROCESS_PATH = re.compile(r"//?(?:proc/(?:self|thread-self|[0-9]+)|dev/(?:fd|std[a-z]+))(?:/|$)")
_INVISIBLE = re.compile(r"[\x00-\x20\x7f\\]")


def expand_path(path: str, workspace: str) -> str | None:
    """Fill ``~`` and ``${workspace}`` into the path of a rule; None where there is no such."""
    if "${workspace}" in path:
        if not workspace:
            return None
        path = path.replace("${workspace}", workspace)
    path = os.path.expanduser(path)  # noqa: PTH111 - Path raises where there is no such user
    return None if path.startswith("~") else path


def resolve_links(path: str) -> str:
    """Resolve links as ``os.path.realpath``; for existing paths on Linux in a third of the time.

    The kernel follows the links in one step, and says where it came to.
    """
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (OSError, AttributeError):  # it is not there, or this is another system
        return os.path.realpath(path)
    try:
        found = os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115 - see below
    except OSError:  # without /proc
        return os.path.realpath(path)
    finally:
        os.close(opened)
    doubtful = not found.startswith("/") or found.endswith(" (deleted)")
    return os.path.realpath(path) if doubtful else found


def canonicalize_path(text: str, cwd: str = "") -> str | None:
    """The canonical path of a path or a ``file:`` URI, with links followed and ``..`` resolved.

    Args:
        text: what somebody wrote.
        cwd: the folder that relative paths start from; empty where that is not known.

    Returns:
        None where it is not known: it is relative to nobody knows what, begins with ``~`` or a
        variable, or begins or ends with blanks, which some programs expand or take away and others
        do not, is another place for each process, or is no path at all.
    """
    path = None if _is_ambiguous(text) else _make_absolute(text, cwd)
    if path is None:
        return None
    if ("/proc" in path or "/dev" in path) and _PROCESS_PATH.match(os.path.normpath(path)):
        return None
    try:
        return os.path.normcase(resolve_links(path))
    except (OSError, ValueError):
        return None


def _is_ambiguous(text: str) -> bool:
    """Whether a text is no path, or one that some programs read otherwise."""
    if not text or len(text) > MAX_PATH_CHARS or "\0" in text:
        return True
    first = text[0]
    expanded = first == "~" or (first in "$%" and _VARIABLE.match(text) is not None)
    return expanded or first.isspace() or text[-1].isspace()


def _make_absolute(text: str, cwd: str) -> str | None:
    """Make a path absolute; None where that is not known."""
    # Texts and no Path objects: this is done within the microseconds of a decision.
    path: str | None = text
    if text[:5].lower() == "file:":
        path = _parse_file_uri(text)
    elif _SCHEME.match(text):
        path = None
    if path is None or os.path.isabs(path):  # noqa: PTH117 - see above
        return path
    return os.path.join(cwd, path) if os.path.isabs(cwd) else None  # noqa: PTH117, PTH118 - see above


def _parse_file_uri(uri: str) -> str | None:
    from urllib.parse import unquote_to_bytes  # only where a URI stands for a path

    rest = uri[5:]
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority.lower() not in {"", "localhost"} or not slash:
            return None
        rest = "/" + path
    if not rest.startswith("/") or "?" in rest or "#" in rest:
        return None
    try:
        path = unquote_to_bytes(rest).decode()
    except UnicodeDecodeError:
        return None
    if sys.platform == "win32":
        path = path.removeprefix("/")
    return None if "\0" in path else path


def is_under(path: str, folder: str, *, folding: bool = False) -> bool:
    """Whether a canonical path is a canonical folder, or lies in it.

    Args:
        path: the one.
        folder: the other.
        folding: whether names that differ in case only count as one, which is right for what
            forbids and wrong for what allows.
    """
    if folding:
        path, folder = _fold_case(path), _fold_case(folder)
    if path == folder:
        return True
    return path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _fold_case(path: str) -> str:
    return unicodedata.normalize("NFD", path).casefold()


def parse_host(url: str) -> str | None:
    """Parse the host of a web address, in small letters; None where readers may disagree on it.

    Programs differ in what they make of user names before the host, of backslashes, control
    characters, letters beyond ASCII and percent signs in it. So such an address has no host here.
    """
    if len(url) > MAX_URL_CHARS or _INVISIBLE.search(url):
        return None
    found = _URL.match(url)
    if found is None:
        return None
    host = _HOST.fullmatch(found[1].lower()) if found[1].isascii() else None
    return host[1] if host else None


def host_matches(host: str, pattern: str) -> bool:
    """Whether a host is the wanted one; ``*.example.com`` are those below, and not itself."""
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) > len(pattern) - 1
    return host == pattern
