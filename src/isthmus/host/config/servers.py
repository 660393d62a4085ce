"""Server entries: one server of a file, checked, with its variables and its ``envFile`` filled in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.forms import may_name_secret
from isthmus.host.config.forms import BadMember, convert_member
from isthmus.host.config.layouts import RawServer
from isthmus.host.config.syntax import MemberKey
from isthmus.host.config.translation import translate_entry
from isthmus.host.config.variables import VariableFiller, VariableScope, list_variables
from isthmus.host.model.entries import Layer, ServerEntry, ServerOptions

CONFIGURED_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)
HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
MAX_ENV_FILE_BYTES = 1024 * 1024

KINDS_BY_WORD = {
    "stdio": "stdio", "local": "stdio",
    "http": "http", "streamable-http": "http", "streamablehttp": "http", "streamable_http": "http",
    "sse": "sse",
    "ws": "ws", "websocket": "ws",
}  # fmt: skip

# the usual one first
KINDS_BY_SCHEME = {
    "http": ("http", "sse"), "https": ("http", "sse"),
    "ws": ("ws",), "wss": ("ws",),
    "unix": ("socket",), "tcp": ("socket",),
}  # fmt: skip

URL_MEMBERS = ("url", "serverUrl", "httpUrl")  # Windsurf and Gemini have words of their own

# members of host.auth that are taken as they stand
AUTH_NAME_MEMBERS = frozenset({"kind", "issuer", "scopes"})
PLAIN_MEMBERS = ("type", "transport")
# only what is never shown in an error has variables
FILLED_MEMBERS = ("command", "args", "env", "envFile", "cwd", "headers", *URL_MEMBERS)
ENV_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][\w.]*)\s*=\s*(.*)")
ENV_QUOTED = re.compile(r"""'([^']*)'\s*(?:#.*)?|"((?:[^"\\]|\\.)*)"\s*(?:#.*)?""")
ENV_ESCAPE = re.compile(r"\\(.)")
ENV_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


class ServerReading(Struct, kw_only=True):
    """Input and output of the reading of one server.

    Attributes:
        scope: where variables are looked up; None leaves them as they are.
        layer: where the file stands.
        source: the file.
        base: what relative folders are relative to.
        cwd: where it runs if it does not say.
        unknown: the ways to members of ``host`` that nobody knows.
        withheld: the ways to what the file says and may not say.
        used: the variables that were filled in.
        notes: what the user should know, each with the way to what it is about.
    """

    scope: VariableScope | None
    layer: Layer
    source: str
    base: Path
    cwd: str = ""
    unknown: list[tuple[MemberKey, ...]] = []
    withheld: list[tuple[MemberKey, ...]] = []
    used: dict[tuple[MemberKey, ...], list[str]] = {}
    notes: list[tuple[tuple[MemberKey, ...], str]] = []


def check_name(name: str) -> None:
    """Check that a server can be called this.

    Raises:
        ValueError: it cannot.
    """
    if CONFIGURED_NAME.fullmatch(name) is None or "__" in name:
        raise ValueError(
            f"{name!r} is no name for a server: up to 64 letters and digits, with . _ - between "
            "them, and no two _ beside each other"
        )


def read_server(raw: RawServer, reading: ServerReading) -> ServerEntry:
    """Read a server of a file.

    Raises:
        BadMember, UnresolvedVariable: it cannot be used; the message says why, ``keys`` where.
    """
    try:
        check_name(raw.name)
    except ValueError as error:
        raise BadMember(raw.keys, str(error)) from None
    translation = translate_entry(raw)
    reading.notes += translation.notes
    there = raw.value.keys()
    raw = msgspec.structs.replace(raw, value=translation.value)
    options = _read_options(raw, reading)
    reading.notes += (
        ((*raw.keys, "host", "ignore"), f"there is no member {name!r} that could be ignored")
        for name in options.ignore
        if name not in there
    )
    sent = _check_sent_variables(raw, reading)
    variables = _make_variables(raw, reading.scope) if reading.scope is not None else None
    value = _fill_members(raw, variables)
    auth = _fill_auth(raw, options, variables)
    options = msgspec.structs.replace(options, auth=auth)
    entry = _EntryReader(value, raw.keys)
    url = entry.url()
    command = () if url else entry.command()
    kind = entry.kind(url)
    env, headers = ({}, entry.headers()) if url else (_read_env(entry, reading), {})
    held = list(variables.secrets) if variables is not None else []
    texts = {k: v for k, v in auth.items() if isinstance(v, str)} | env | headers
    filled = {secret.reveal() for secret in held}
    written = [Secret(v) for k, v in texts.items() if v and may_name_secret(k) and v not in filled]
    if variables is not None:
        reading.used |= variables.used
    return ServerEntry(
        name=raw.name,
        command=command,
        env=env,
        cwd="" if url else _read_cwd(entry, reading),
        url=url,
        kind=kind,
        headers=headers,
        sent=sent,
        options=options,
        layer=reading.layer,
        source=reading.source,
        trusted=variables is not None,
        secrets=(*held, *written),
        written=tuple(written),
    )


def _read_options(raw: RawServer, reading: ServerReading) -> ServerOptions:
    said = raw.value.get("host", {})
    options = convert_member(ServerOptions, said, (*raw.keys, "host"), reading.unknown)
    if reading.layer == "workspace" and options.trust != "untrusted":
        # to run a server is one thing, to take its word for what its tools do is another
        reading.withheld.append((*raw.keys, "host", "trust"))
        options = msgspec.structs.replace(options, trust="untrusted")
    return options


def list_exposures(raw: RawServer) -> list[str]:
    """List the variables of the user that the address of a server gets to know, a line for each.

    Nothing is filled in, so that it can be shown before anything is trusted.
    """
    try:
        value = translate_entry(raw).value
    except BadMember:
        return []  # such a server is broken, and nothing is sent
    there = next((key for key in URL_MEMBERS if value.get(key)), "")
    if not there or not isinstance(value[there], str):
        return []
    scheme, _, rest = value[there].partition("://")
    where = f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0].rpartition('@')[2]}"
    return [f"{raw.name}: {name} is sent to {where}" for name in _list_sent_variables(value, there)]


def _list_sent_variables(value: Mapping[str, Any], there: str) -> tuple[str, ...]:
    """List the variables that go to an address: in it, in headers, and in how tokens are got."""
    host = value.get("host")
    auth = host.get("auth", {}) if isinstance(host, dict) else {}
    return list_variables([value[there], value.get("headers", {}), auth])


def _check_sent_variables(raw: RawServer, reading: ServerReading) -> tuple[str, ...]:
    """List the variables that the server gets to know with each request.

    A workspace's file was written by somebody else: it may not put what is secret into the name of
    a machine, which everybody sees who is asked for its address.
    """
    there = next((key for key in URL_MEMBERS if raw.value.get(key)), "")
    if not there:
        return ()
    url = raw.value[there]
    if reading.layer == "workspace" and isinstance(url, str):
        authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
        for name in list_variables(authority):
            if may_name_secret(name) or name.startswith(("${secret:", "${input:")):
                raise BadMember(
                    (*raw.keys, there), f"{name} may not stand in the name of a workspace's server"
                )
    return _list_sent_variables(raw.value, there)


def _fill_auth(
    raw: RawServer, options: ServerOptions, variables: VariableFiller | None
) -> Mapping[str, Any]:
    """Fill variables into the members of ``host.auth`` that no error shows."""
    if variables is None:
        return options.auth
    return {
        key: one
        if key in AUTH_NAME_MEMBERS
        else variables.fill(one, *raw.keys, "host", "auth", key)
        for key, one in options.auth.items()
    }


def _make_variables(raw: RawServer, scope: VariableScope) -> VariableFiller:
    """Make the filler of variables, which knows those that the entry gives its program."""
    env = raw.value.get("env")
    said = env.items() if isinstance(env, dict) else ()
    own = {name: text for name, text in said if isinstance(text, str) and "${" not in text}
    return VariableFiller(msgspec.structs.replace(scope, own=own))


def _fill_members(raw: RawServer, variables: VariableFiller | None) -> dict[str, Any]:
    part = {key: raw.value[key] for key in (*PLAIN_MEMBERS, *FILLED_MEMBERS) if key in raw.value}
    if variables is None:
        return part
    return part | {
        key: variables.fill(part[key], *raw.keys, key) for key in FILLED_MEMBERS if key in part
    }


def _read_env(entry: "_EntryReader", reading: ServerReading) -> dict[str, str]:
    """Read the variables that a program gets, those of ``envFile`` first."""
    path = entry.text("envFile")
    found: dict[str, str] = {}
    if path and reading.scope is not None:
        place = reading.base / Path(path).expanduser()
        try:
            found = parse_env(read_env_file(place))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise BadMember((*entry.keys, "envFile"), f"the file cannot be read: {why}") from None
    return found | entry.texts("env")


def read_env_file(path: Path) -> str:
    """Read the text of a file of variables.

    Raises:
        OSError, ValueError: it is none, too large, or no text in UTF-8.
    """
    if path.exists() and not path.is_file():  # a pipe would keep the host waiting
        raise ValueError("it is no file")
    with path.open("rb") as file:
        data = file.read(MAX_ENV_FILE_BYTES + 1)
    if len(data) > MAX_ENV_FILE_BYTES:
        raise ValueError(f"it has more than {MAX_ENV_FILE_BYTES} bytes")
    return data.decode()


def _read_cwd(entry: "_EntryReader", reading: ServerReading) -> str:
    said = entry.text("cwd")
    if not said or reading.scope is None:
        return said or reading.cwd
    return str(reading.base / Path(said).expanduser())


class _EntryReader:
    """Reads the members of an entry, and checks each."""

    def __init__(self, value: Mapping[str, Any], keys: tuple[MemberKey, ...]) -> None:
        self.value = value
        self.keys = keys

    def text(self, key: str) -> str:
        """A text; empty where there is none."""
        found = self.value.get(key)
        if found is not None and not isinstance(found, str):
            raise BadMember((*self.keys, key), f"{key} is a text in quotes")
        if found and "\0" in found:
            raise BadMember((*self.keys, key), f"{key} has a zero byte in it")
        return found or ""

    def texts(self, key: str) -> dict[str, str]:
        """An object of texts; numbers and truth values are taken as such, null leaves one out."""
        found = self.value.get(key)
        if found is not None and not isinstance(found, dict):
            raise BadMember(
                (*self.keys, key), f'{key} is an object of texts, as in {{"NAME": "value"}}'
            )
        taken: dict[str, str] = {}
        for name, value in (found or {}).items():
            if isinstance(value, dict | list) or "\0" in str(value) or "\0" in name or not name:
                raise BadMember((*self.keys, key, name), f"{name!r} is a text in quotes")
            if value is not None:
                taken[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return taken

    def url(self) -> str:
        """The URL; empty for a server that is launched."""
        there = [key for key in URL_MEMBERS if self.value.get(key)]
        if not there:
            return ""
        if len({self.text(key) for key in there}) > 1:
            raise BadMember((*self.keys, there[1]), f"there are both {there[0]} and {there[1]}")
        if self.value.get("command"):
            raise BadMember((*self.keys, there[0]), "there are both a command and a url: keep one")
        url = self.text(there[0])
        if url.partition("://")[0].lower() not in KINDS_BY_SCHEME or "://" not in url:
            # not the URL itself: it may have a key in it
            raise BadMember(
                (*self.keys, there[0]),
                "this is no URL of a server: http(s)://…, ws(s)://…, unix://… or tcp://…",
            )
        return url

    def command(self) -> tuple[str, ...]:
        """The program and its arguments."""
        program = self.text("command")
        if not program:
            raise BadMember(self.keys, 'this server needs "command" or "url"')
        if program.startswith("~/"):
            program = str(Path(program).expanduser())
        arguments = self.value.get("args", [])
        if not isinstance(arguments, list):
            raise BadMember((*self.keys, "args"), 'args is a list of texts, as in ["--port", "80"]')
        for i, one in enumerate(arguments):
            if isinstance(one, bool) or not isinstance(one, str | int | float) or "\0" in str(one):
                raise BadMember((*self.keys, "args", i), "an argument is a text in quotes")
        return (program, *map(str, arguments))

    def kind(self, url: str) -> Any:
        """The way to reach the server."""
        word = "type" if self.value.get("type") else "transport"
        said = self.text(word)
        kind = KINDS_BY_WORD.get(said.lower())
        if said and kind is None:
            raise BadMember(
                (*self.keys, word), f"unknown type {said!r}: write stdio, http, sse or ws"
            )
        possible = KINDS_BY_SCHEME[url.partition("://")[0].lower()] if url else ("stdio",)
        if kind is not None and kind not in possible:
            has = "a url" if url else "a command"
            raise BadMember(
                (*self.keys, word), f"the type {said!r} does not go with {has} like this"
            )
        return kind or possible[0]

    def headers(self) -> dict[str, str]:
        """Headers of its requests."""
        found = self.texts("headers")
        for name, value in found.items():
            if HEADER_NAME.fullmatch(name) is None or re.search(r"[\r\n]", value):
                raise BadMember((*self.keys, "headers", name), f"{name!r} is no header of HTTP")
        return found


def parse_env(text: str) -> dict[str, str]:
    r"""Parse a file of variables: ``NAME=value``, a line each.

    Values stand bare, in ``'…'`` as they are, or in ``"…"`` with ``\n``, ``\"`` and the like.
    Blank lines and what follows a ``#`` are passed over; nothing is filled in.

    Raises:
        ValueError: a line is none of these; the message has its number, and never what it says.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        match = ENV_LINE.fullmatch(bare)
        if match is None:
            raise ValueError(f"line {number} is no NAME=value")
        name, value = match.groups()
        if value[:1] in {"'", '"'}:
            quoted = ENV_QUOTED.fullmatch(value)
            if quoted is None:
                raise ValueError(f"line {number} has a quote that does not end")
            plain, escaped = quoted.groups()
            value = (
                plain
                if plain is not None
                else ENV_ESCAPE.sub(lambda m: ENV_ESCAPES.get(m[1], m[1]), escaped)
            )
        elif value.startswith("#"):
            value = ""
        else:
            value = value.partition(" #")[0].rstrip()
        found[name] = value
    return found
