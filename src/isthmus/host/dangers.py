"""What is dangerous about a command that somebody wants run: patterns, as data.

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

__all__ = ["PATTERNS", "Pattern", "dangers", "dangers_of_url"]


class Pattern(Struct, frozen=True):
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


def _of(name: str, where: Literal["program", "argument", "line"], sign: str, says: str) -> Pattern:
    return Pattern(name, where, re.compile(sign), says)


SHELLS = r"(?:(?:ba|da|z|k|fi|a)?sh|cmd|powershell|pwsh)(?:\.exe)?"
LANGUAGES = r"(?:python[\d.]*w?|node|nodejs|deno|bun|perl|ruby|php|lua|osascript)(?:\.exe)?"
KEYS = r"\.(?:ssh|gnupg|aws|azure|kube|docker|netrc|pgpass|password-store|config/gcloud|git-credentials)"

PATTERNS: tuple[Pattern, ...] = (
    _of("rights", "line", r"(?<![\w./-])(?:\S{0,200}/)?(?:sudo|doas|pkexec|su|runas|gsudo)(?:\.exe)?(?![\w.-])",
        "it runs something with the rights of another user"),
    _of("deletes", "line", r"(?i)(?<![\w./-])(?:\S{0,200}/)?(?:rm|rmdir|shred|unlink|mkfs\S*|dd|del|rd|format|"
        r"remove-item)(?![\w./-])", "it may delete or overwrite files"),
    _of("shell", "program", rf"(?i)^{SHELLS}$",
        "a shell is run: what it does is not what the program's name says"),
    _of("signs", "argument", r"[;&|<>`\n]|\$\(|\$\{",
        "an argument has signs that a shell obeys: ; & | < > ` $("),
    _of("download", "line", r"(?i)\b(?:curl|wget|fetch|iwr|irm|invoke-webrequest|invoke-restmethod)\b.{0,2000}"
        r"(?:\|\s*(?:sudo\s+)?(?:\S{0,200}/)?(?:(?:ba|da|z|k)?sh|python\S*|node|perl|ruby|iex)\b|-o\s*\S+\s*(?:&&|;))",
        "it downloads something and runs it unseen"),
    _of("network", "line", r"(?i)(?<![\w./-])(?:\S{0,200}/)?(?:curl|wget|nc|ncat|netcat|socat|ssh|scp|sftp|"
        r"rsync|telnet|ftp)(?:\.exe)?(?![\w./-])|/dev/(?:tcp|udp)/",
        "it sends or fetches something over the network"),
    _of("inline", "line", rf"(?i)^(?:\S*[/\\])?(?:{LANGUAGES}|{SHELLS})(?:\s+-\S+)*\s+(?:-[a-z]*[ce]|-p|-r|--eval|"
        r"--print|--exec|-command|-encodedcommand|-enc|/c|/k|eval)(?:\s|=|$)",
        "the code that runs stands in the command itself: read it"),
    _of("keys", "argument", rf"(?i)(?:^|[/\\=:~\"'\s]){KEYS}(?:$|[/\\\"'\s:,])",
        "an argument names a place where keys and passwords are kept"),
    _of("home", "argument", r"(?i)^(?:[\w-]*=)?(?:~[/\\]?|\$HOME/?|%USERPROFILE%\\?|/home/[^/]+/?|/Users/[^/]+/?|"
        r"/root(?:/)?|[A-Z]:\\Users\\[^\\]+\\?)$", "it is given your whole home folder"),
    _of("everything", "argument", r"^(?:[\w-]*=)?(?:/|[A-Za-z]:[/\\]?)$",
        "it is given the whole file system"),
    _of("system", "argument", r"(?i)(?:^|[=:\s])(?:/etc(?:/(?:shadow|passwd|sudoers|ssh)\S*)?/?|/boot\S*|/sys\S*|/proc\S*|"
        r"[A-Z]:\\Windows\S*)(?:$|[\s:,])", "an argument names a folder of the system"),
    _of("privileged", "argument", r"^--(?:privileged|cap-add|pid=host|ipc=host|userns=host|net=host|network=host|"
        r"device|security-opt)(?:$|=)", "a container is given rights over the whole machine"),
    _of("socket", "argument", r"(?:docker|containerd|podman|crio)\.sock|docker_engine",
        "it is given the socket that containers are controlled by, which is as good as all rights"),
    _of("mount", "argument", r"^(?:(?:-v|--volume|--mount)=?)?(?:\S*(?:source|src)=)?(?:/|~|\$HOME|/home(?:/[^/:,]+)?|"
        r"/Users(?:/[^/:,]+)?|/root|/etc)(?::|,\S*(?:target|dst|destination)=)",
        "a container is given your home or the whole file system"),
    _of("encoded", "argument", r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{120,}={0,2}",
        "an argument is long and encoded: what it says cannot be read"),
    _of("decodes", "line", r"(?i)\bbase64\s+(?:-d|-D|--decode)|frombase64string|b64decode|\batob\(|-enc(?:odedcommand)?\s",
        "it decodes something that cannot be read here, probably to run it"),
)  # fmt: skip
"""What is warned of."""

LONGEST = 20_000
"""Characters of a command that are looked through."""

FETCHERS = {
    "npx": "npm", "bunx": "npm", "pnpx": "npm", "yarn": "npm", "pnpm": "npm", "npm": "npm",
    "uvx": "PyPI", "pipx": "PyPI", "uv": "PyPI", "dnx": "NuGet",
}  # fmt: skip
"""Programs that fetch a package and run it, and from where."""

FETCHING = {
    "npm": {"exec", "x"}, "yarn": {"dlx"}, "pnpm": {"dlx"}, "uv": {"tool"},
}  # fmt: skip
"""What those are told to do then that do other things as well."""

VERBS = frozenset({"exec", "dlx", "x", "run", "tool"})
VALUED = frozenset(
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
NAMING = frozenset({"--from", "--package", "-p", "--spec"})
EXACT = re.compile(r"(?:^|[^@])(?:@|==)v?\d+(?:\.\d+)*(?:[-+.\w]*)?$")

LOADERS = re.compile(
    r"(?i:LD_\w+|DYLD_\w+|NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED)|PYTHON\w+|"
    r"PERL5?(?:OPT|LIB|DB)|PERL5(?:OPT|LIB|DB)|RUBY(?:OPT|LIB)|GEM_(?:HOME|PATH)|LUA_\w+|BASH_\w+|"
    r"ENV|ZDOTDIR|SHELLOPTS|BASHOPTS|PS4|IFS|PROMPT_COMMAND|PATH|PATHEXT|COMSPEC|SHELL|HOME|USERPROFILE|"
    r"XDG_CONFIG_\w+|GIT_\w+|SSH_ASKPASS|(?:JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS|CLASSPATH|DOTNET_\w+|"
    r"DENO_\w+|BUN_\w+|NPM_CONFIG_\w+|YARN_\w+|PIP_\w+|UV_\w+|PIPX_\w+|CARGO_\w+|RUSTC\w*|GOFLAGS|"
    r"GOPROXY|GCONV_PATH|OPENSSL_\w+|(?:HTTPS?|ALL)_PROXY|EDITOR|VISUAL|PAGER|BROWSER|DOCKER_HOST|"
    r"KUBECONFIG)"
)
"""Names of variables that make programs run or load something else, or fetch it elsewhere."""

HARMLESS = re.compile(
    r"(?i:PYTHON(?:UNBUFFERED|DONTWRITEBYTECODE|IOENCODING|UTF8|HASHSEED|FAULTHANDLER|DEVMODE|NOUSERSITE|"
    r"SAFEPATH|OPTIMIZE|VERBOSE|ASYNCIODEBUG|TRACEMALLOC|MALLOC|MALLOCSTATS|COERCECLOCALE|INTMAXSTRDIGITS|"
    r"LEGACYWINDOWSSTDIO)|GIT_(?:TERMINAL_PROMPT|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE)|OPTIONAL_LOCKS|"
    r"PAGER_IN_USE)|PIP_(?:DISABLE_PIP_VERSION_CHECK|NO_COLOR|NO_INPUT|QUIET|PROGRESS_BAR|TIMEOUT)|"
    r"UV_(?:NO_PROGRESS|OFFLINE|FROZEN|LOCKED|HTTP_TIMEOUT|CONCURRENT_\w+|LINK_MODE)|"
    r"NPM_CONFIG_(?:LOGLEVEL|YES|FUND|AUDIT|UPDATE_NOTIFIER|PROGRESS|COLOR|OFFLINE)|"
    r"DOTNET_(?:NOLOGO|CLI_TELEMETRY_OPTOUT|SKIP_FIRST_TIME_EXPERIENCE|SYSTEM_GLOBALIZATION_INVARIANT)|"
    r"DENO_NO_(?:UPDATE_CHECK|PROMPT)|BUN_CONFIG_VERBOSE_FETCH|YARN_ENABLE_TELEMETRY)"
)
"""Names of variables of such programs that say how they run, not what."""

LOOPBACK = re.compile(
    r"^(?:http|ws)://(?:[^/@]*@)?(?:localhost|127(?:\.\d+){3}|\[::1\])(?=[:/?]|$)", re.IGNORECASE
)


NONE: Mapping[str, str] = {}


def loads(name: str) -> bool:
    """Whether a variable of this name can make a program run other code than its own."""
    return LOADERS.fullmatch(name) is not None and HARMLESS.fullmatch(name) is None


def dangers(
    argv: Sequence[str], env: Mapping[str, str] = NONE, resolved: str = ""
) -> tuple[str, ...]:
    """What to warn of in a command, a sentence each; nothing where none of the patterns fits.

    Args:
        argv: the command.
        env: the variables it gets; shown of those that load code, which have no secrets.
        resolved: the file that the program is, as far as that is known.
    """
    return tuple(dict.fromkeys(_dangers(argv, env, resolved)))


def _dangers(argv: Sequence[str], env: Mapping[str, str], resolved: str) -> Iterator[str]:
    whole = " ".join(argv)
    if len(whole) > LONGEST:
        yield "it is too long to be looked through: read it, or do not run it"
    whole = whole[:LONGEST]
    if any(unicodedata.category(c) in {"Cf", "Cc", "Co", "Cs", "Zl", "Zp"} for c in whole):
        yield "it holds characters that are not seen, or that turn the reading direction round"
    elif not whole.isascii():
        yield "it holds letters beyond ASCII, which may look like others"
    looked_at = {
        "program": [program(argv)],
        "argument": [one[:LONGEST] for one in argv[1:]],
        "line": [whole],
    }
    for pattern in PATTERNS:
        if any(pattern.sign.search(text) for text in looked_at[pattern.where]):
            yield pattern.says
    yield from _unpinned(argv)
    for name, value in env.items():
        if loads(name):
            said = f": it is {value}" if value else ""
            yield f"the variable {name} can make it run other code than its own{said}"
    if resolved and _open_to_all(resolved):
        yield "the program stands where others may replace it"


def dangers_of_url(url: str) -> tuple[str, ...]:
    """What to warn of in the address of a server."""
    found = []
    if re.match(r"(?i)(?:http|ws|tcp)://", url) and not LOOPBACK.match(url):
        found.append("it is reached without encryption: others can read and change what is said")
    if "@" in url.partition("://")[2].partition("/")[0]:
        found.append("its address has a user or a password in it")
    if not url.isascii():
        found.append("its address holds letters beyond ASCII, which may look like others")
    return tuple(found)


def program(argv: Sequence[str]) -> str:
    """The name of the program that a command runs, without its folder."""
    return re.split(r"[/\\]", argv[0])[-1] if argv else ""


def _unpinned(argv: Sequence[str]) -> Iterator[str]:
    """Whether a package is fetched whose version nobody has fixed."""
    name = program(argv).removesuffix(".cmd").removesuffix(".exe")
    index, verbs, words = FETCHERS.get(name), FETCHING.get(name), argv[1:]
    if verbs is not None:  # wherever it stands: flags, and what is theirs, may come first
        at = next((number for number, word in enumerate(words, 1) if word in verbs), None)
        words = [] if at is None else words[at:]
    if index is None or not words:
        return
    package = _package(words)
    if package and not EXACT.search(package) and not package.startswith((".", "/", "file:")):
        yield f"{name} fetches {package} from {index} in whatever version there is: fix one to have the same each time"


def _package(arguments: Sequence[str]) -> str:
    """The package that a fetcher is to fetch."""
    found = ""
    words = iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag in VALUED:
            said = value if equals else next(words, "")
            if flag in NAMING:
                return said
        elif not word.startswith("-") and word not in VERBS:
            found = word
            break
    return found


def _open_to_all(path: str) -> bool:
    """Whether anybody may write to a program, or put another into its place."""
    if os.name == "nt":
        return False  # permissions are something else there
    try:
        file, folder = Path(path).stat().st_mode, Path(path).parent.stat().st_mode
    except OSError:
        return False
    sticky = folder & stat.S_ISVTX
    return bool(file & stat.S_IWOTH or (folder & stat.S_IWOTH and not sticky))
