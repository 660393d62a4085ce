"""Identity of a server, which grants are bound to: a grant for one program or origin is none for another.

A launched server is its exact command, the folder in which it runs, the program that is run, the
interpreter of a script, and the variables that make it load other code; one at a URL is its origin,
and who vouches for tokens there; one in this process is its name.
"""

import hashlib
import os
import re
import shutil
from collections import OrderedDict

from isthmus.host.model.entries import ServerEntry
from isthmus.transports.command import Command

MAX_CACHED_DIGESTS = 512
SHEBANG_BYTES = 256

FileStamp = tuple[int, int, int, int]

_DIGESTS: OrderedDict[str, tuple[FileStamp, str]] = OrderedDict()

# they make programs run or load something else, or fetch it elsewhere
LOADING_VARIABLES = re.compile(
    r"(?i:LD_\w+|DYLD_\w+|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)|PYTHON\w+|"
    r"PERL5?(?:OPT|LIB|DB)|PERL5(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|GEM_(?:HOME|PATH)|LUA_\w+|BASH_\w+|"
    r"ENV|ZDOTDIR|SHELLOPTS|BASHOPTS|PS4|IFS|PROMPT_COMMAND|PATH|PATHEXT|COMSPEC|SHELL|HOME|USERPROFILE|"
    r"XDG_CONFIG_\w+|GIT_\w+|SSH_ASKPASS|(?:JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS|CLASSPATH|DOTNET_\w+|"
    r"DENO_\w+|BUN_\w+|NPM_CONFIG_\w+|YARN_\w+|PIP_\w+|UV_\w+|PIPX_\w+|CARGO_\w+|RUSTC\w*|GOFLAGS|"
    r"GOPROXY|GCONV_PATH|OPENSSL_\w+|(?:HTTPS?|ALL)_PROXY|EDITOR|VISUAL|PAGER|BROWSER|DOCKER_HOST|"
    r"KUBECONFIG)"
)
# variables of such programs that say how they run, not what
HARMLESS_VARIABLES = re.compile(
    r"(?i:PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED|FAULTHANDLER|DEVMODE|NOUSERSITE|"
    r"SAFEPATH|OPTIMIZE|VERBOSE|ASYNCIODEBUG|TRACEMALLOC|MALLOC|MALLOCSTATS|COERCECLOCALE|INTMAXSTRDIGITS|"
    r"LEGACYWINDOWSSTDIO)|GIT_(?:TERMINAL_PROMPT|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|OPTIONAL_LOCKS|"
    r"PAGER_IN_USE)|PIP_(?:DISABLE_PIP_VERSION_CHECK|NO_COLOR|NO_INPUT|QUIET|PROGRESS_BAR|TIMEOUT)|"
    r"UV_(?:NO_PROGRESS|OFFLINE|FROZEN|LOCKED|HTTP_TIMEOUT|CONCURRENT_\w+|LINK_MODE)|"
    r"NPM_CONFIG_(?:LOGLEVEL|YES|FUND|AUDIT|UPDATE_NOTIFIER|PROGRESS|COLOR|OFFLINE)|"
    r"DOTNET_(?:NOLOGO|CLI_TELEMETRY_OPTOUT|SKIP_FIRST_TIME_EXPERIENCE|SYSTEM_GLOBALIZATION_INVARIANT)|"
    r"DENO_NO_(?:UPDATE_CHECK|PROMPT)|BUN_CONFIG_VERBOSE_FETCH|YARN_ENABLE_TELEMETRY)"
)


def identify_server(entry: ServerEntry) -> str:
    """The identity of a server, as a text; costs a look at one file.

    Args:
        entry: the server. Other variables and headers do not count: they hold secrets that are
            renewed, and it is the same program without them.
    """
    if entry.command:
        program = find_executable(entry)
        found = digest_file(program) if program else ""
        said = [f"{name}={value}" for name, value in sorted(entry.env.items()) if loads_code(name)]
        interpreter = find_interpreter(entry, program)
        parts = "\0".join((*entry.command, found, find_folder(entry), interpreter, *said))
        return f"command:{hashlib.sha256(parts.encode(errors='surrogateescape')).hexdigest()}"
    if entry.url:
        issuer = entry.options.auth.get("issuer", "")
        return f"url:{get_origin(entry.url)}" + (f" {issuer}" if issuer else "")
    return f"memory:{entry.name}"


def find_executable(entry: ServerEntry) -> str:
    """Find the file that an entry's command runs, links followed; empty where there is none."""
    if not entry.command:
        return ""
    return _find_program(entry, entry.command[0])


def find_folder(entry: ServerEntry) -> str:
    """Find the folder in which a launched server runs, links followed; by default the host's."""
    return os.path.realpath(entry.cwd or os.curdir)


def find_interpreter(entry: ServerEntry, program: str) -> str:
    """Find the file that runs a script, by its first line (``#!``); empty for other programs.

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
    """Find the file of a program where a server runs, links followed."""
    variables = Command(*entry.command, env=entry.env).environment()
    base = entry.cwd or os.getcwd()  # noqa: PTH109 - on the path of a call
    if os.sep in program and not os.path.isabs(program):  # noqa: PTH117 - as above
        program = os.path.join(base, program)  # noqa: PTH118 - as above
    # relative folders are looked for where it is run, not where we are
    along = variables.get("PATH", os.defpath).split(os.pathsep)
    places = (os.path.join(base, one) for one in along)  # noqa: PTH118 - as above
    found = shutil.which(program, path=os.pathsep.join(places))
    return os.path.realpath(found) if found else ""


def digest_file(path: str) -> str:
    """SHA-256 of a file in hex, cached until the file changes; empty without a file."""
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
    if len(_DIGESTS) > MAX_CACHED_DIGESTS:
        _DIGESTS.popitem(last=False)
    return said


def get_origin(url: str) -> str:
    """The origin of a URL: scheme, host and port, without the usual port."""
    from urllib.parse import urlsplit  # costs start-up time

    parts = urlsplit(url)
    usual = {"http": 80, "https": 443, "ws": 80, "wss": 443}.get(parts.scheme)
    port = parts.port
    host = parts.hostname or ""
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port and port != usual else "")


def loads_code(name: str) -> bool:
    """Whether a variable of this name can make a program run other code than its own."""
    return (
        LOADING_VARIABLES.fullmatch(name) is not None and HARMLESS_VARIABLES.fullmatch(name) is None
    )
