"""Targets on the command line: a URL, a Python file, a command, or a name in an ``mcp.json``."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.openapi_target import is_document_file
from isthmus.cli.output import print_note
from isthmus.core.text import show_invisible
from isthmus.errors import UsageError
from isthmus.transports.command import Command

if TYPE_CHECKING:
    from isthmus.host.config.files import ConfigDocument
    from isthmus.host.config.layouts import RawServer

CONFIG_FILES = ("mcp.json", ".mcp.json", ".vscode/mcp.json")
HTTP_SCHEMES = ("http://", "https://", "ws://", "wss://")
URL_SCHEMES = (*HTTP_SCHEMES, "unix://", "tcp://")
HEADER_PAIR = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)[=:]([^\x00-\x08\x0a-\x1f\x7f]*)", re.ASCII)
VARIABLE_PAIR = re.compile(r"([A-Za-z_]\w*)=([^\x00]*)", re.ASCII)
# an address of this machine, where http and /mcp go without saying
LOCAL_ADDRESS = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]):\d{1,5}(?:/\S*)?", re.ASCII)
TARGET_HELP = (
    "TARGET is a URL (http, ws, unix, tcp), an address such as localhost:8000, a .py file, an OpenAPI document, a name from ./mcp.json, ./.mcp.json or ./.vscode/mcp.json, or is "
    "omitted if a command follows after --, as in: isthmus {} -- uvx mcp-server-time"
)


@dataclass(frozen=True)
class CliTarget:
    """The target of a command: a server's label, and its URL or command.

    Attributes:
        label: as a person would name it.
        where: its URL, or the command that starts it.
        headers: to send with every HTTP request.
    """

    label: str
    where: str | Command
    headers: Mapping[str, str] = field(default_factory=dict)


def read_target(
    text: str, command: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> CliTarget:
    """The target a command line names.

    Args:
        text: the word given, or "" where a command was given after ``--``.
        command: that command.
        folder: where ``mcp.json`` is looked for.
        environ: where ``${VAR}`` is looked up. A command typed here gets all of it, as from any
            shell; a server named in a file gets what the file says.

    Raises:
        UsageError: it means nothing here; the message lists what was tried.
    """
    if command:
        typed = Command(*command, env=environ)
        return CliTarget(str(typed), typed)
    if text.startswith(URL_SCHEMES):
        return CliTarget(text, text)
    if LOCAL_ADDRESS.fullmatch(text):
        url = f"http://{text}" if "/" in text else f"http://{text}/mcp"
        return CliTarget(url, url)
    if is_document_file(folder / text):
        options = ("--search", "never", "--lenient")  # all that can be had is looked at
        start = ("-m", "isthmus", "run", str(folder / text), *options)
        return CliTarget(text, Command(sys.executable, *start, env=environ))
    path, _, name = text.partition(".py:")
    if text.endswith(".py") or name:
        return _resolve_file(text, Path(f"{path}.py" if name else text), environ)
    return _resolve_name(text, folder, environ)


def _resolve_file(text: str, path: Path, environ: Mapping[str, str]) -> CliTarget:
    """A Python file: ours is served by ``isthmus run``, anybody else's is run as a script."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    ours = "isthmus" in path.read_text(encoding="utf-8", errors="replace")
    start = ("-m", "isthmus", "run", text) if ours else (text,)
    return CliTarget(text, Command(sys.executable, *start, env=environ))


def _resolve_name(name: str, folder: Path, environ: Mapping[str, str]) -> CliTarget:
    from isthmus.host.config.files import read_document  # most targets stand in no file
    from isthmus.host.config.layouts import find_servers
    from isthmus.host.model.errors import ConfigError

    known: list[str] = []
    for config in CONFIG_FILES:
        path = folder / config
        if path.is_file():
            try:
                document = read_document(path)
            except ConfigError as error:
                raise UsageError(str(error)) from None
            servers = {raw.name: raw for raw in reversed([*find_servers(document, str(folder))])}
            known_as = "-".join(name.split())
            if known_as in servers:
                return _resolve_entry(document, servers[known_as], folder, environ)
            known += reversed(servers)
    has = f"; the mcp.json here knows: {', '.join(known)}" if known else ""
    raise UsageError(
        f"{name!r} is no URL, no .py file, no OpenAPI document, and no server in {', '.join(CONFIG_FILES)}{has}; "
        "a command goes after -- as in: isthmus list -- uvx mcp-server-time"
    )


def _resolve_entry(
    document: "ConfigDocument", raw: "RawServer", folder: Path, environ: Mapping[str, str]
) -> CliTarget:
    """The target of a server's entry, read as a host reads it."""
    from isthmus.host.config.forms import BadMember
    from isthmus.host.config.layouts import read_inputs
    from isthmus.host.config.load import describe_fault
    from isthmus.host.config.servers import ServerReading, list_exposures, read_server
    from isthmus.host.config.variables import UnresolvedVariable, VariableScope
    from isthmus.host.state.secrets import UserSecrets

    scope = VariableScope(
        environ=environ,
        secrets=UserSecrets(environ),
        inputs=read_inputs(document),
        folder=str(folder.absolute()),
    )
    source = str(document.path)
    reading = ServerReading(scope=scope, layer="workspace", source=source, base=folder)
    try:
        entry = read_server(raw, reading)
    except (BadMember, UnresolvedVariable) as error:
        raise UsageError(describe_fault(document, error.keys, str(error))) from None
    for line in list_exposures(raw):  # nobody was asked whether this file is trusted
        print_note(f"note: {show_invisible(line, line=True)}")
    if entry.url:
        return CliTarget(raw.name, entry.url, entry.headers)
    return CliTarget(raw.name, Command(*entry.command, env=entry.env, cwd=entry.cwd or None))


def find_http_url(target: CliTarget) -> str | None:
    """The URL of a target that is reached over HTTP; None for the others."""
    where = target.where
    return where if isinstance(where, str) and where.startswith(HTTP_SCHEMES) else None


def extend_target(target: CliTarget, headers: Sequence[str], env: Sequence[str]) -> CliTarget:
    """A target with headers or variables that a command line adds.

    Args:
        target: the server.
        headers: ``NAME=VALUE`` each, or ``NAME: VALUE`` as other programs have it.
        env: ``NAME=VALUE`` each.

    Raises:
        UsageError: one is neither, or the target takes none of them.
    """
    if headers and find_http_url(target) is None:
        raise UsageError(
            f"--header goes with a URL of HTTP, and {target.label} is none; --env gives variables"
        )
    if env and not isinstance(target.where, Command):
        raise UsageError(
            f"--env goes with a server that is launched, and {target.label} is none; --header sends headers"
        )
    if headers:
        found = dict(_read_pair("--header", word, HEADER_PAIR) for word in headers)
        return replace(target, headers={**target.headers, **found})
    if env and isinstance(target.where, Command):
        where = target.where
        extended = Command(*where.argv, env={**where.env, **read_variables(env)}, cwd=where.cwd)
        return replace(target, where=extended)
    return target


def read_variables(words: Sequence[str]) -> dict[str, str]:
    """The variables that words of ``--env`` give.

    Raises:
        UsageError: one is not written ``NAME=VALUE``.
    """
    return dict(_read_pair("--env", word, VARIABLE_PAIR) for word in words)


def _read_pair(option: str, word: str, pattern: re.Pattern[str]) -> tuple[str, str]:
    found = pattern.fullmatch(word)
    if found is None:
        name = re.split("[=:]", word, maxsplit=1)[0]  # what follows may be a secret
        raise UsageError(f"{option} {name!r}: write NAME=VALUE")
    return found[1], found[2].strip() if option == "--header" else found[2]
