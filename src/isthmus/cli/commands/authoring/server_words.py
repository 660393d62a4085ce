"""A server as a command line names it: a file, a URL or a command, its name and its variables."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from isthmus.cli.commands.run import split_server_path
from isthmus.errors import UsageError
from isthmus.host.config.clients import NewServer
from isthmus.host.config.servers import HEADER_NAME, check_name

GENERIC_STEMS = frozenset({"app", "server", "main", "mcp", "__main__", "__init__"})
CLIENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*", re.ASCII)
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f]")
HTTP_URL = re.compile(r"https?://[^\s/?#@]+(?:[/?#]\S*)?", re.ASCII)
UV_CACHE_FOLDER = "archive-v0"  # where uvx puts the environments that it throws away
READABLE_SUFFIXES = frozenset({".py", ".json", ".yaml", ".yml"})


class ServerWords(Struct, frozen=True, kw_only=True):
    """What a command line says of a server.

    Attributes:
        server: a file, with ``:OBJECT`` or without, or a URL; empty where another member says it.
        command: what stands after ``--``.
        name: what it is to be called; None for a name made of the file's or the URL's.
        url: where it listens.
        env: ``NAME=VALUE``, or ``NAME`` for a variable that the client has.
        headers: ``NAME=VALUE``.
        token_env: the client's variable that holds a token.
        uv: have uv start it.
        packages: what uv is to bring, besides isthmus.
    """

    server: str = ""
    command: tuple[str, ...] = ()
    name: str | None = None
    url: str | None = None
    env: Sequence[str] = ()
    headers: Sequence[str] = ()
    token_env: str | None = None
    uv: bool = False
    packages: Sequence[str] = ()

    def is_named(self) -> bool:
        """Whether there is a server at all, and not only the name of one."""
        return bool(self.server or self.command or self.url)


def read_new_server(words: ServerWords, environ: Mapping[str, str]) -> NewServer:
    """Read the server that a command line names.

    Raises:
        UsageError: there is none, more than one, or something that no client could start.
    """
    url = words.url or (words.server if words.server.startswith(("http://", "https://")) else "")
    given = [bool(url), bool(words.server and words.server != url), bool(words.command)]
    if sum(given) != 1:
        raise UsageError(
            "name one server: a FILE.py, --url URL, or a command after --, as in: "
            "isthmus install app.py --into cursor"
        )
    env, wanted = _read_variables(words.env)
    if url:
        return _read_remote(words, url, bool(env or wanted))
    if words.headers or words.token_env:
        raise UsageError("--header and --token-env go with a URL; a program takes --env")
    command = _find_command(words.command) if words.command else _make_command(words, environ)
    for text in (*command, *env.values()):
        _check_text(text)
    return NewServer(name=_read_name(words, ""), command=command, env=env, wanted=wanted)


def _read_remote(words: ServerWords, url: str, has_env: bool) -> NewServer:
    """A server that listens at a URL.

    Raises:
        UsageError: the URL is none of HTTP or has a password in it, or there are variables.
    """
    if has_env or words.uv or words.packages:
        raise UsageError(
            "--env, --uv and --with go with a program; a URL takes --header, --token-env"
        )
    if HTTP_URL.fullmatch(url) is None:
        raise UsageError(
            f"{url!r} is no URL that clients connect to: write https://HOST/PATH, without a user or "
            "a password in it"
        )
    if words.token_env and VARIABLE_NAME.fullmatch(words.token_env) is None:
        raise UsageError(
            f"--token-env {words.token_env!r} is no name of a variable, as in API_TOKEN"
        )
    headers: dict[str, str] = {}
    for word in words.headers:
        name, equals, value = word.partition("=")
        if not equals or HEADER_NAME.fullmatch(name) is None:
            raise UsageError(f"--header {name!r}: write NAME=VALUE")
        _check_text(value)
        headers[name] = value
    return NewServer(
        name=_read_name(words, url), url=url, headers=headers, token_env=words.token_env or ""
    )


def _read_variables(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Variables with a value, and those that the client is to take from elsewhere.

    Raises:
        UsageError: one has no name, or is named twice.
    """
    env: dict[str, str] = {}
    wanted: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if VARIABLE_NAME.fullmatch(name) is None:
            raise UsageError(f"--env {name!r} is no name of a variable: write NAME=VALUE, or NAME")
        if name in env or name in wanted:
            raise UsageError(f"--env {name} is given twice")
        if equals:
            env[name] = value
        else:
            wanted.append(name)
    return env, tuple(wanted)


def _check_text(text: str) -> None:
    """Check that a text has no control characters, which no line of a file should have.

    Raises:
        UsageError: it has.
    """
    if CONTROL_CHARACTER.search(text):
        raise UsageError(f"{text!r} has control characters, which no client's file may have")


def _find_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command whose program is an absolute path: a client may not have the PATH of a shell.

    Raises:
        UsageError: there is no such program.
    """
    found = shutil.which(command[0])
    if found is None:
        raise UsageError(f"there is no program {command[0]!r} on PATH here")
    return (os.path.abspath(found), *command[1:])  # noqa: PTH100 - links stay links


def _make_command(words: ServerWords, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command that serves a file, whatever folder and PATH a client starts it in.

    Raises:
        UsageError: there is no such file, or no uv.
    """
    text, made = split_server_path(words.server)
    path = Path(os.path.abspath(text))  # noqa: PTH100 - links stay links
    if not path.is_file():
        raise UsageError(f"there is no file {text}")
    if path.suffix.lower() not in READABLE_SUFFIXES:
        raise UsageError(f"{text} is no Python file; a command goes after --")
    ours = path.suffix != ".py" or "isthmus" in path.read_text("utf-8", errors="replace")
    file = f"{path}:{made}" if made else str(path)
    if words.uv:
        return _make_uv_command(words, path, file if ours else "", environ)
    if words.packages:
        raise UsageError("--with goes with --uv")
    if UV_CACHE_FOLDER in Path(sys.prefix).parts:
        raise UsageError("isthmus runs from the cache of uv here, which may be emptied: give --uv")
    # -P: a module beside where the client happens to start it must not stand in for one of ours
    start = ("-P", "-m", "isthmus", "run", file) if ours else (str(path),)
    return (os.path.abspath(sys.executable), *start)  # noqa: PTH100 - a link is its environment


def _make_uv_command(
    words: ServerWords, path: Path, file: str, environ: Mapping[str, str]
) -> tuple[str, ...]:
    """The command by which uv brings all that a file needs, and serves it.

    Raises:
        UsageError: there is no uv here.
    """
    uv = shutil.which("uv", path=environ.get("PATH"))
    if uv is None:
        raise UsageError(
            "there is no uv on PATH here: install it (https://docs.astral.sh/uv), or leave --uv out"
        )
    has_project = (path.parent / "pyproject.toml").is_file()
    where = ("--project", str(path.parent)) if has_project else ("--no-project",)
    packages = [one for name in ("isthmus", *words.packages) for one in ("--with", name)]
    start = ("isthmus", "run", file) if file else ("python", str(path))
    return (os.path.abspath(uv), "run", *where, *packages, *start)  # noqa: PTH100 - as above


def _read_name(words: ServerWords, url: str) -> str:
    """The name of a server in a client's file.

    Raises:
        UsageError: no client takes this one.
    """
    name = words.name or _guess_name(words, url)
    try:
        check_name(name)
        is_fit = CLIENT_NAME.fullmatch(name) is not None
    except ValueError:
        is_fit = False
    if not is_fit:
        raise UsageError(
            f"{name!r} is no name that every client takes: up to 64 letters, digits, - and _, a letter "
            "first; give --name NAME"
        )
    return name


def _guess_name(words: ServerWords, url: str) -> str:
    """The name that a file, a command or a URL suggests: of the folder, where a file is called app.py."""
    if url:
        stem = url.partition("://")[2].partition("/")[0].partition(":")[0]
    elif words.command:
        stem = Path(words.command[-1]).stem
    else:
        path = Path(os.path.abspath(split_server_path(words.server)[0]))  # noqa: PTH100 - as above
        stem = path.parent.name if path.stem in GENERIC_STEMS else path.stem
    return re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:64] or "server"
