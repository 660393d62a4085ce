"""Dangers of a command that is to be run: patterns, as data.

They warn; they do not forbid. A command that none of them fits is not harmless for that.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from isthmus.host.supervisor.identity import loads_code


class DangerPattern(Struct, frozen=True):
    """One thing to warn of.

    Attributes:
        name: what it is called.
        where: what is looked at: the name of the program, each argument, or the whole command as
            one line.
        sign: what fits it.
        says: the warning.
    """

    name: str
    where: Literal["program", "argument", "line"]
    sign: re.Pattern[str]
    says: str


def _make_pattern(
    name: str, where: Literal["program", "argument", "line"], sign: str, says: str
) -> DangerPattern:
    return DangerPattern(name, where, re.compile(sign), says)


SHELLS = r"(?:(?:ba|da|z|k|fi|a)?sh|cmd|powershell|pwsh)(?:\.exe)?"
LANGUAGES = r"(?:python[\d.]*w?|node|nodejs|deno|bun|perl|ruby|php|lua|osascript)(?:\.exe)?"
KEY_FOLDERS = r"\.(?:ssh|gnupg|aws|azure|kube|docker|netrc|pgpass|password-store|config/gcloud|git-credentials)"

DANGER_PATTERNS: tuple[DangerPattern, ...] = (
    _make_pattern("rights", "line", r"(?<![\w./-])(?:\S{0,200}/)?(?:sudo|doas|pkexec|su|runas|gsudo)(?:\.exe)?(?![\w.-])",
        "it runs something with the rights of another user"),
    _make_pattern("deletes", "line", r"(?i)(?<![\w./-])(?:\S{0,200}/)?(?:rm|rmdir|shred|unlink|mkfs\S*|dd|del|rd|format|"
        r"remove-item)(?![\w./-])", "it may delete or overwrite files"),
    _make_pattern("shell", "program", rf"(?i)^{SHELLS}$",
        "a shell is run: what it does is not what the program's name says"),
    _make_pattern("signs", "argument", r"[;&|<>`\n]|\$\(|\$\{",
        "an argument has signs that a shell obeys: ; & | < > ` $("),
    _make_pattern("download", "line", r"(?i)\b(?:curl|wget|fetch|iwr|irm|invoke-webrequest|invoke-restmethod)\b.{0,2000}"
        r"(?:\|\s*(?:sudo\s+)?(?:\S{0,200}/)?(?:(?:ba|da|z|k)?sh|python\S*|node|perl|ruby|iex)\b|-o\s*\S+\s*(?:&&|;))",
        "it downloads something and runs it unseen"),
    _make_pattern("network", "line", r"(?i)(?<![\w./-])(?:\S{0,200}/)?(?:curl|wget|nc|ncat|netcat|socat|ssh|scp|sftp|"
        r"rsync|telnet|ftp)(?:\.exe)?(?![\w./-])|/dev/(?:tcp|udp)/",
        "it sends or fetches something over the network"),
    _make_pattern("inline", "line", rf"(?i)^(?:\S*[/\\])?(?:{LANGUAGES}|{SHELLS})(?:\s+-\S+)*\s+(?:-[a-z]*[ce]|-p|-r|--eval|"
        r"--print|--exec|-command|-encodedcommand|-enc|/c|/k|eval)(?:\s|=|$)",
        "the code that runs stands in the command itself: read it"),
    _make_pattern("keys", "argument", rf"(?i)(?:^|[/\\=:~\"'\s]){KEY_FOLDERS}(?:$|[/\\\"'\s:,])",
        "an argument names a place where keys and passwords are kept"),
    _make_pattern("home", "argument", r"(?i)^(?:[\w-]*=)?(?:~[/\\]?|\$HOME/?|%USERPROFILE%\\?|/home/[^/]+/?|/Users/[^/]+/?|"
        r"/root(?:/)?|[A-Z]:\\Users\\[^\\]+\\?)$", "it is given your whole home folder"),
    _make_pattern("everything", "argument", r"^(?:[\w-]*=)?(?:/|[A-Za-z]:[/\\]?)$",
        "it is given the whole file system"),
    _make_pattern("system", "argument", r"(?i)(?:^|[=:\s])(?:/etc(?:/(?:shadow|passwd|sudoers|ssh)\S*)?/?|/boot\S*|/sys\S*|/proc\S*|"
        r"[A-Z]:\\Windows\S*)(?:$|[\s:,])", "an argument names a folder of the system"),
    _make_pattern("privileged", "argument", r"^--(?:privileged|cap-add|pid=host|ipc=host|userns=host|net=host|network=host|"
        r"device|security-opt)(?:$|=)", "a container is given rights over the whole machine"),
    _make_pattern("socket", "argument", r"(?:docker|containerd|podman|crio)\.sock|docker_engine",
        "it is given the socket that containers are controlled by, which is as good as all rights"),
    _make_pattern("mount", "argument", r"^(?:(?:-v|--volume|--mount)=?)?(?:\S*(?:source|src)=)?(?:/|~|\$HOME|/home(?:/[^/:,]+)?|"
        r"/Users(?:/[^/:,]+)?|/root|/etc)(?::|,\S*(?:target|dst|destination)=)",
        "a container is given your home or the whole file system"),
    _make_pattern("encoded", "argument", r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{120,}={0,2}",
        "an argument is long and encoded: what it says cannot be read"),
    _make_pattern("decodes", "line", r"(?i)\bbase64\s+(?:-d|-D|--decode)|frombase64string|b64decode|\batob\(|-enc(?:odedcommand)?\s",
        "it decodes something that cannot be read here, probably to run it"),
)  # fmt: skip

MAX_COMMAND_CHARS = 20_000

# programs that fetch a package and run it, and from which registry
FETCHERS = {
    "npx": "npm", "bunx": "npm", "pnpx": "npm", "yarn": "npm", "pnpm": "npm", "npm": "npm",
    "uvx": "PyPI", "pipx": "PyPI", "uv": "PyPI", "dnx": "NuGet",
}  # fmt: skip

# of the fetchers that do other things as well
FETCHING_VERBS = {
    "npm": {"exec", "x"}, "yarn": {"dlx"}, "pnpm": {"dlx"}, "uv": {"tool"},
}  # fmt: skip

VERBS = frozenset({"exec", "dlx", "x", "run", "tool"})
VALUE_OPTIONS = frozenset(
    {
        "--from",
        "--with",
        "--package",
        "-p",
        "--python",
        "--spec",
        "--index",
        "--index-url",
        "--registry",
    }
)
PACKAGE_OPTIONS = frozenset({"--from", "--package", "-p", "--spec"})
EXACT_VERSION = re.compile(r"(?:^|[^@])(?:@|==)v?\d+(?:\.\d+)*(?:[-+.\w]*)?$")


LOOPBACK_URL = re.compile(
    r"^(?:http|ws)://(?:[^/@]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?=[:/?]|$)", re.IGNORECASE
)


NO_ENVIRONMENT: Mapping[str, str] = {}


def find_dangers(
    argv: Sequence[str], env: Mapping[str, str] = NO_ENVIRONMENT, resolved: str = ""
) -> tuple[str, ...]:
    """Find the dangers of a command, a sentence each; none where no pattern fits.

    Args:
        argv: the command.
        env: the variables it gets; shown of those that load code, which have no secrets.
        resolved: the file that the program is, as far as that is known.
    """
    return tuple(dict.fromkeys(_find_each_danger(argv, env, resolved)))


def _find_each_danger(argv: Sequence[str], env: Mapping[str, str], resolved: str) -> Iterator[str]:
    whole = " ".join(argv)
    if len(whole) > MAX_COMMAND_CHARS:
        yield "it is too long to be looked through: read it, or do not run it"
    whole = whole[:MAX_COMMAND_CHARS]
    if any(unicodedata.category(c) in {"Cf", "Cc", "Co", "Cs", "Zl", "Zp"} for c in whole):
        yield "it holds characters that are not seen, or that turn the reading direction round"
    elif not whole.isascii():
        yield "it holds letters beyond ASCII, which may look like others"
    looked_at = {
        "program": [find_program_name(argv)],
        "argument": [one[:MAX_COMMAND_CHARS] for one in argv[1:]],
        "line": [whole],
    }
    for pattern in DANGER_PATTERNS:
        if any(pattern.sign.search(text) for text in looked_at[pattern.where]):
            yield pattern.says
    yield from _fetches_unpinned(argv)
    for name, value in env.items():
        if loads_code(name):
            said = f": it is {value}" if value else ""
            yield f"the variable {name} can make it run other code than its own{said}"
    if resolved and _is_writable_by_all(resolved):
        yield "the program stands where others may replace it"


def find_url_dangers(url: str) -> tuple[str, ...]:
    """Find the dangers of the address of a server, a sentence each."""
    found = []
    if re.match(r"(?i)(?:http|ws|tcp)://", url) and not LOOPBACK_URL.match(url):
        found.append("it is reached without encryption: others can read and change what is said")
    if "@" in url.partition("://")[2].partition("/")[0]:
        found.append("its address has a user or a password in it")
    if not url.isascii():
        found.append("its address holds letters beyond ASCII, which may look like others")
    return tuple(found)


def find_program_name(argv: Sequence[str]) -> str:
    """The name of the program that a command runs, without its folder."""
    return re.split(r"[/\\]", argv[0])[-1] if argv else ""


def _fetches_unpinned(argv: Sequence[str]) -> Iterator[str]:
    """Whether a package is fetched whose version nobody has fixed."""
    name = find_program_name(argv).removesuffix(".cmd").removesuffix(".exe")
    index, verbs, words = FETCHERS.get(name), FETCHING_VERBS.get(name), argv[1:]
    if verbs is not None:  # wherever it stands: flags, and what is theirs, may come first
        at = next((number for number, word in enumerate(words, 1) if word in verbs), None)
        words = [] if at is None else words[at:]
    if index is None or not words:
        return
    package = _find_package(words)
    if (
        package
        and not EXACT_VERSION.search(package)
        and not package.startswith((".", "/", "file:"))
    ):
        yield f"{name} fetches {package} from {index} in whatever version there is: fix one to have the same each time"


def _find_package(arguments: Sequence[str]) -> str:
    """The package that a fetcher is to fetch."""
    found = ""
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in VALUE_OPTIONS:
            said = value if equals else next(words, "")
            if flag in PACKAGE_OPTIONS:
                return said
        elif not word.startswith("-") and word not in VERBS:
            found = word
            break
    return found


def _is_writable_by_all(path: str) -> bool:
    """Whether anybody may write to a program, or put another into its place."""
    if os.name == "nt":
        return False  # permissions are something else there
    try:
        file, folder = Path(path).stat().st_mode, Path(path).parent.stat().st_mode
    except OSError:
        return False
    sticky = folder & stat.S_ISVTX
    return bool(file & stat.S_IWOTH or (folder & stat.S_IWOTH and not sticky))
