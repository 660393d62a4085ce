"""What a server is bound to: a grant for one program or origin is none for another.

A launched server is its exact command, the folder in which it runs, the program that is run, the
interpreter of a script, and the variables that make it load other code; one at a URL is its origin,
and who vouches for tokens there; one in this process is its name.
"""

import hashlib
import os
import shutil
from collections import OrderedDict

from isthmus.host.config.entries import ServerEntry
from isthmus.host.dangers import loads
from isthmus.transports.command import Command

__all__ = ["digest", "executable", "find_folder", "find_interpreter", "identity"]

ROOM = 512
SHEBANG_BYTES = 256

Stamp = tuple[int, int, int, int]

_DIGESTS: OrderedDict[str, tuple[Stamp, str]] = OrderedDict()


def identity(entry: ServerEntry) -> str:
    """What a server is bound to, as a text that says so; costs a look at one file.

    Args:
        entry: the server. Other variables and headers do not count: they hold secrets that are
            renewed, and it is the same program without them.
    """
    if entry.command:
        program = executable(entry)
        found = digest(program) if program else ""
        said = [f"{name}={value}" for name, value in sorted(entry.env.items()) if loads(name)]
        interpreter = find_interpreter(entry, program)
        parts = "\0".join((*entry.command, found, find_folder(entry), interpreter, *said))
        return f"command:{hashlib.sha256(parts.encode(errors='surrogateescape')).hexdigest()}"
    if entry.url:
        issuer = entry.options.auth.get("issuer", "")
        return f"url:{origin(entry.url)}" + (f" {issuer}" if issuer else "")
    return f"memory:{entry.name}"


def executable(entry: ServerEntry) -> str:
    """The file that an entry's command runs, links followed; empty where there is none."""
    if not entry.command:
        return ""
    return _find_program(entry, entry.command[0])


def find_folder(entry: ServerEntry) -> str:
    """The folder in which a launched server runs, links followed: the host's own by default."""
    return os.path.realpath(entry.cwd or os.curdir)


def find_interpreter(entry: ServerEntry, program: str) -> str:
    """The file that runs a script, as its first line (``#!``) says; empty for other programs.

    Args:
        entry: the server, for its ``PATH``: ``#!/usr/bin/env node`` is looked for along that.
        program: the script.
    """
    try:
        with open(program, "rb") as file:  # noqa: PTH123 - as elsewhere here
            first, _, _ = file.read(SHEBANG_BYTES).partition(b"\n")
    except OSError:
        return ""
    words = os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":  # noqa: PTH119 - a text
        words = [one for one in words[1:] if one[0] != "-" and "=" not in one]
    return _find_program(entry, words[0]) if words else ""


def _find_program(entry: ServerEntry, program: str) -> str:
    """The file that a name stands for where a server runs, links followed."""
    variables = Command(*entry.command, env=entry.env).environment()
    base = entry.cwd or os.getcwd()  # noqa: PTH109 - on the path of a call
    if os.sep in program and not os.path.isabs(program):  # noqa: PTH117 - as above
        program = os.path.join(base, program)  # noqa: PTH118 - as above
    # relative folders are looked for where it is run, not where we are
    along = variables.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(base, one) for one in along)  # noqa: PTH118 - as above
    found = shutil.which(program, path=os.pathsep.join(places))
    return os.path.realpath(found) if found else ""


def digest(path: str) -> str:
    """SHA-256 of a file in hex, worked out anew when the file is another one; empty without one."""
    try:
        found = os.stat(path)  # noqa: PTH116 - on the path of a call
    except OSError:
        return ""
    stamp = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    known = _DIGESTS.get(path)
    if known is not None and known[0] == stamp:
        return known[1]
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - on the path of a call
            said = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
    _DIGESTS[path] = stamp, said
    if len(_DIGESTS) > ROOM:
        _DIGESTS.popitem(last=False)
    return said


def origin(url: str) -> str:
    """Scheme, host and port of a URL, the port left out where it is the usual one."""
    from urllib.parse import urlsplit  # costs start-up time

    parts = urlsplit(url)
    usual = {"http": 80, "https": 443, "ws": 80, "wss": 443}.get(parts.scheme)
    port = parts.port
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port and port != usual else "")
