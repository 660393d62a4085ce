"""What a server is bound to: a grant for one program or origin is none for another.

A launched server is its exact command and the program that is run; one at a URL is its origin, and
who vouches for tokens there; one in this process is its name.
"""

import hashlib
import os
import shutil
from collections import OrderedDict

from isthmus.host.config.entries import ServerEntry
from isthmus.transports.command import Command

__all__ = ["digest", "executable", "identity"]

ROOM = 512
CHUNK = 1024 * 1024

Stamp = tuple[int, int, int, int]

_DIGESTS: OrderedDict[str, tuple[Stamp, str]] = OrderedDict()


def identity(entry: ServerEntry) -> str:
    """What a server is bound to, as a text that says so; costs a look at one file.

    Args:
        entry: the server. Its environment, working folder and headers do not count: they hold
            secrets that are renewed, and it is the same program without them.
    """
    if entry.command:
        program = executable(entry)
        found = digest(program) if program else ""
        parts = "\0".join((*entry.command, found))
        return f"command:{hashlib.sha256(parts.encode(errors='surrogateescape')).hexdigest()}"
    if entry.url:
        issuer = entry.options.auth.get("issuer", "")
        return f"url:{origin(entry.url)}" + (f" {issuer}" if issuer else "")
    return f"memory:{entry.name}"


def executable(entry: ServerEntry) -> str:
    """The file that an entry's command runs, links followed; empty where there is none."""
    if not entry.command:
        return ""
    variables = Command(*entry.command, env=entry.env).environment()
    program, base = entry.command[0], entry.cwd or os.getcwd()  # noqa: PTH109 - on the path of a call
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
