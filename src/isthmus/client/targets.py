"""Targets of a client: URLs, commands, scripts, entries of ``mcpServers``, servers and channels.

:func:`resolve_target` makes a :class:`Target` of each, which knows how to get a channel. In an entry
of ``mcpServers`` variables of the environment are filled in: ``${VAR}``, ``${VAR:-default}``,
``${env:VAR}``.
"""

import asyncio
import os
import re
import sys
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from isthmus.errors import UsageError
from isthmus.revisions import BY_NAME, LATEST, LEGACY, Revision
from isthmus.runtime.channel import Channel
from isthmus.runtime.peer import Peer
from isthmus.runtime.router import Router
from isthmus.transports.command import Command, CommandChannel
from isthmus.transports.http.client.address import Http, HttpSse, redact_url
from isthmus.transports.http.client.channel import HttpClientChannel
from isthmus.transports.http.client.pool import open_requests
from isthmus.transports.http.client.requests import Requests
from isthmus.transports.http.client.sse import HttpSseChannel
from isthmus.transports.memory import open_pair
from isthmus.transports.sockets import SOCKET_SCHEMES, parse_socket_url
from isthmus.transports.sockets import dial as dial_socket

if TYPE_CHECKING:
    from isthmus.transports.http.client.requests import Authorization


@runtime_checkable
class InMemoryServer(Protocol):
    """A server in this process, as far as a client needs to know it."""

    @property
    def router(self) -> Router:
        """The router of its requests."""
        ...


ClientTarget: TypeAlias = "str | os.PathLike[str] | Http | Command | Mapping[str, Any] | InMemoryServer | Channel | Target"
"""A URL, alone or with more in ``Http(…)`` or ``HttpSse(…)``, the path of a ``.py`` script, a
command, an entry of ``mcpServers``, a server, a channel."""


class Target(msgspec.Struct, frozen=True):
    """Somewhere to connect to.

    Attributes:
        name: as a person would call it.
        dial: makes a channel to it; may be called again, unless ``key`` is None.
        key: what to remember it by, or None for what cannot be met again.
        http: whether it is reached over HTTP.
        sse: makes a channel to it over HTTP+SSE, where it may turn out to speak that; or None.
        handshake: nothing but ``initialize`` opens a connection to it.
        servers: of several servers as one, why each cannot be reached, by name; None where it can.
        context: gives what stands for the authorization that requests to it carry just now; None
            for none, or one that never changes.
    """

    name: str
    dial: Callable[[], Awaitable[Channel]]
    key: Hashable = None
    http: bool = False
    sse: Callable[[], Awaitable[Channel]] | None = None
    handshake: bool = False
    context: Callable[[], object] = lambda: None
    servers: Mapping[str, str | None] = {}


def resolve_target(
    target: "ClientTarget",
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    auth: "Authorization | None" = None,
) -> Target:
    """A target of any kind, as somewhere to connect to.

    Args:
        target: any of the kinds there are.
        headers: for HTTP requests.
        connect_timeout: seconds until a TCP connection counts as failed.
        auth: gets the tokens a server wants.

    Raises:
        UsageError: it is none of the kinds, or one that takes no headers or tokens.
    """
    if auth is not None and not hasattr(auth, "over"):
        kind = type(auth).__name__  # and not itself, which may be a token
        raise UsageError(f"auth= takes OAuth(…), BearerToken('…') or one of their kind, not {kind}")
    if isinstance(target, Mapping) and len(target.get("mcpServers") or ()) > 1:
        return resolve_group(target["mcpServers"], headers, connect_timeout, auth)
    if isinstance(target, Mapping):
        target, headers = read_server_entry(target, headers)
    found = resolve_url(target, headers, connect_timeout, auth) if isinstance(target, str) else None
    if found is not None:
        return found
    if isinstance(target, Http):
        return http_target(target, headers, connect_timeout, auth)
    return (
        target
        if isinstance(target, Target) and auth is None
        else resolve_local(target, headers, auth)
    )


def resolve_group(
    servers: Mapping[str, Any],
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    auth: "Authorization | None",
) -> Target:
    """Several servers as one target.

    Raises:
        UsageError: there are headers or tokens, which go to one server only.
    """
    if headers or auth is not None:
        raise UsageError(
            f"headers= and auth= are for one server, and this configuration names {len(servers)}: "
            f"{', '.join(map(str, servers))}; write headers into the entries"
        )
    from isthmus.bridge.group import make_group_target  # most clients have one server

    return make_group_target(servers, connect_timeout)


Dial: TypeAlias = Callable[[], Awaitable[Channel]]


def tap_target(target: Target, tap: Callable[[Channel], Channel]) -> Target:
    """A target whose channels are each put through a function when they are dialled."""

    def through(dial: Dial) -> Dial:
        async def tapped() -> Channel:
            return tap(await dial())

        return tapped

    sse = None if target.sse is None else through(target.sse)
    return msgspec.structs.replace(target, dial=through(target.dial), sse=sse)


EraChoice: TypeAlias = Literal["auto", "modern", "legacy"]
"""Ways to open a connection: both, ``server/discover`` alone, or ``initialize`` alone."""


def force_era(era: EraChoice, target: Target) -> Target:
    """The target, opened by the handshake alone for the legacy era."""
    return msgspec.structs.replace(target, handshake=True) if era == "legacy" else target


def resolve_revision(revision: str | Revision | None, era: EraChoice = "auto") -> Revision | None:
    """The revision to insist on.

    Raises:
        UsageError: there is none of this name, or it is not of this era.
    """
    if era not in {"auto", "modern", "legacy"}:
        raise UsageError(f"era= is 'auto', 'modern' or 'legacy', not {era!r}")
    if isinstance(revision, str):
        if revision not in BY_NAME:
            raise UsageError(f"there is no revision {revision!r}: {', '.join(BY_NAME)}")
        revision = BY_NAME[revision]
    if revision is not None and era != "auto" and (revision in LEGACY) is not (era == "legacy"):
        raise UsageError(f"revision {revision.name} is not of the {era} era: leave out one of both")
    return LATEST if revision is None and era == "modern" else revision


def resolve_local(
    target: Any, headers: Mapping[str, str] | None, auth: "Authorization | None"
) -> Target:
    """A target that is reached without HTTP, and has neither headers nor tokens.

    Raises:
        UsageError: it is given some, or nobody knows what it is.
    """
    if headers and not isinstance(target, Target):
        raise UsageError("headers go with a URL of HTTP or a WebSocket, and this target is none")
    if auth is not None:
        # spec 2026-07-28 basic/authorization#protocol-requirements: stdio SHOULD NOT follow it
        raise UsageError(
            "auth= goes with a URL of HTTP or a WebSocket, and this target is none: a server that "
            "is launched takes its credentials from its environment, Command(…, env={…})"
        )
    if isinstance(target, str | os.PathLike):
        target = script_command(os.fspath(target))
    if isinstance(target, Command):
        return command_target(target)
    if isinstance(target, InMemoryServer):
        return memory_target(target)
    if not isinstance(target, Target) and hasattr(target, "receive") and hasattr(target, "send"):
        return Target(f"{type(target).__name__}", reuse_channel(target))
    raise UsageError(
        f"cannot connect to {target!r}: a target is a URL, Http(…), the path of a .py script, a "
        "Command(…), an entry of mcpServers, a Server, or a channel"
    )


def resolve_url(
    url: str,
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    auth: "Authorization | None" = None,
) -> Target | None:
    """The target that a URL leads to; None where it is none of those we know.

    Raises:
        UsageError: it is not written as it must be, or cannot have headers.
    """
    if url.startswith(("http://", "https://")):
        return http_target(Http(url), headers, connect_timeout, auth)
    if url.startswith(("ws://", "wss://")):
        return websocket_target(url, headers, connect_timeout, auth)
    if url.startswith(SOCKET_SCHEMES) and not headers and auth is None:
        return socket_target(url, connect_timeout)
    return None


def http_target(
    at: Http,
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    auth: "Authorization | None" = None,
) -> Target:
    """A server at a URL.

    Raises:
        UsageError: credentials come from two places.
    """
    sent = {**at.headers, **(headers or {})}
    check_single_credentials(sent, auth)
    url = at.url.partition("#")[0]
    # Whoever reaches a URL another way, or believes other certificates, may meet another server:
    # what that one lets everybody share must not be shared with those who would not believe it.
    key: Hashable = url if at.tls is None and at.proxy is True else (url, at.tls, at.proxy)

    async def requests() -> Requests:
        plain = open_requests(connect_timeout=connect_timeout, tls=at.tls, proxy=at.proxy)
        try:
            return plain if auth is None else auth.over(url, plain)
        except BaseException:
            await plain.close()
            raise

    async def dial() -> Channel:
        return HttpClientChannel(at.url, headers=sent, limit=at.limit, requests=await requests())

    async def dial_sse() -> Channel:
        channel = HttpSseChannel(at.url, headers=sent, limit=at.limit, requests=await requests())
        await channel.open()
        return channel

    context = make_context_getter(auth, url)
    if isinstance(at, HttpSse):
        older: Hashable = ("http+sse", key)
        return Target(
            redact_url(at.url), dial_sse, older, http=True, handshake=True, context=context
        )
    return Target(redact_url(at.url), dial, key, http=True, sse=dial_sse, context=context)


def make_context_getter(auth: "Authorization | None", url: str) -> Callable[[], object]:
    """A function that gives the authorization that requests to a URL carry just now."""
    found = getattr(auth, "context", None)
    return (lambda: None) if found is None else lambda: found(url)


def websocket_target(
    url: str,
    headers: Mapping[str, str] | None,
    connect_timeout: float,
    auth: "Authorization | None" = None,
) -> Target:
    """A WebSocket.

    Raises:
        UsageError: credentials come from two places.
    """
    check_single_credentials(headers or {}, auth)

    async def dial() -> Channel:
        from isthmus.transports.http.client.websocket import (
            connect_websocket,  # few servers have one
        )

        return await connect_websocket(
            url, headers=headers, connect_timeout=connect_timeout, auth=auth
        )

    return Target(redact_url(url), dial, url, context=make_context_getter(auth, f"http{url[2:]}"))


def check_single_credentials(headers: Mapping[str, str], auth: "Authorization | None") -> None:
    """See to it that one side alone provides credentials.

    Raises:
        UsageError: both do.
    """
    if auth is not None and any(name.lower() == "authorization" for name in headers):
        raise UsageError(
            "there is an Authorization header in headers= and auth= besides: a request carries "
            "one of them, so leave out the other"
        )


def socket_target(url: str, connect_timeout: float) -> Target:
    """A Unix or TCP socket.

    Raises:
        UsageError: it is not written as it must be.
    """
    parse_socket_url(url)

    async def dial() -> Channel:
        return await dial_socket(url, connect_timeout=connect_timeout)

    return Target(url, dial, url)


def command_target(command: Command, on_stderr: Callable[[str], None] | None = None) -> Target:
    """A server to be started; each line of its standard error may be heard."""

    async def dial() -> Channel:
        return CommandChannel(command, on_stderr=on_stderr)

    key = (command.argv, command.cwd, tuple(sorted(command.env.items())))
    return Target(str(command), dial, key)


def memory_target(server: InMemoryServer) -> Target:
    """A server in this process: its peer lives as long as the channel to it."""

    async def dial() -> Channel:
        ours, theirs = open_pair()
        peer = Peer(theirs, server.router, side="server")
        task = asyncio.get_running_loop().create_task(peer.run())
        SERVING_TASKS.add(task)
        task.add_done_callback(SERVING_TASKS.discard)
        return ours

    return Target(type(server).__name__, dial)


SERVING_TASKS: set[asyncio.Task[None]] = set()


def reuse_channel(channel: Channel) -> Callable[[], Awaitable[Channel]]:
    """A channel that is there already."""

    async def dial() -> Channel:
        return channel

    return dial


def script_command(path: str) -> Command:
    """The command that runs a Python script with this interpreter.

    Raises:
        UsageError: it is no Python file, or is not there.
    """
    if not path.endswith(".py"):
        raise UsageError(
            f"cannot connect to {path!r}: it is neither a URL (http://…, ws://…, unix://…, "
            f"tcp://…) nor a .py script; a program is given as Command({path!r}, …)"
        )
    if not os.path.isfile(path):  # noqa: PTH113 - pathlib costs start-up time
        raise UsageError(f"there is no file {path}")
    return Command(sys.executable, path)


def read_server_entry(
    config: Mapping[str, Any], headers: Mapping[str, str] | None
) -> tuple["str | Http | Command", Mapping[str, str] | None]:
    """An entry of ``mcpServers``, or a configuration that has only one.

    Raises:
        UsageError: it has neither ``command`` nor ``url``, or there are several entries.
    """
    servers = config.get("mcpServers")
    if isinstance(servers, Mapping):
        if not servers:
            raise UsageError("this configuration names no server: mcpServers is empty")
        if len(servers) != 1:
            raise UsageError(
                f"this needs one server, and the configuration names {len(servers)}: "
                f"{', '.join(map(str, servers))}; pick one"
            )
        config = next(iter(servers.values()))
    config = expand_variables(dict(config), "mcpServers entry", os.environ)
    if "url" in config:
        url = str(config["url"])
        # What other clients' configurations say of a server that speaks HTTP+SSE only.
        older = "sse" in (config.get("type"), config.get("transport"))
        return HttpSse(url) if older else url, {**config.get("headers", {}), **(headers or {})}
    if "command" not in config:
        raise UsageError("an entry of mcpServers has a command or a url")
    words = (config["command"], *map(str, config.get("args", ())))
    return Command(*words, env=config.get("env"), cwd=config.get("cwd")), headers


_PLACEHOLDER = re.compile(r"\$\{([^}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_]\w*)(?::-(.*))?", re.DOTALL)


def expand_variables(value: Any, where: str, environ: Mapping[str, str]) -> Any:
    """A value with its variables filled in, at any depth.

    Args:
        value: decoded JSON.
        where: what the value is called, for messages.
        environ: where variables are looked up.

    Raises:
        UsageError: a variable is not set, or ``${…}`` names none; the message says where.
    """
    if isinstance(value, dict):
        return {k: expand_variables(v, f"{where}.{k}", environ) for k, v in value.items()}
    if isinstance(value, list):
        return [expand_variables(v, f"{where}[{i}]", environ) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def found(place: re.Match[str]) -> str:
        variable = _VARIABLE.fullmatch(place[1])
        if not variable:
            raise UsageError(f"{where}: {place[0]} is no variable of the environment")
        name, default = variable.groups()
        if name not in environ and default is None:
            raise UsageError(f"{where}: {place[0]} is not set; export {name}=…")
        return environ.get(name, default or "")

    return _PLACEHOLDER.sub(found, value)
