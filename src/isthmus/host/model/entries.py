"""Entries of a configuration, once it is read: servers, and the options of the host."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from isthmus.auth.tokens.secret import Secret
from isthmus.core.redaction.live_secrets import MIN_SECRET_CHARS
from isthmus.host.model.gateway_options import GatewayOptions
from isthmus.host.model.units import Rate, Seconds, Size

__all__ = [
    "Advertise",
    "ConfigDiff",
    "EntrySettings",
    "HostConfig",
    "HostOptions",
    "Labels",
    "Layer",
    "Rate",
    "RootEntry",
    "SamplingLimits",
    "Sandbox",
    "Seconds",
    "ServerEntry",
    "ServerLimits",
    "ServerOptions",
    "Size",
    "Timeouts",
    "ToolSelection",
    "diff_configs",
    "digest_entry",
]

# the place of a line of the configuration; the first named wins
Layer: TypeAlias = Literal["managed", "user", "workspace", "command_line"]


# they say where an entry stands and what of it is secret, and not what it is
IGNORED_FIELDS = frozenset({"layer", "source", "secrets", "written"})
HIDDEN_TEXT = "[secret]"

DEFAULT_CALLS_PER_MINUTE = 600.0  # to a server whose entry says no other number


class Advertise(Struct, frozen=True, kw_only=True, rename="camel"):
    """Capabilities that a server is told it may use.

    Attributes:
        sampling: the user's model; with ``sampling_tools`` also with tools, with
            ``sampling_context`` also with what servers have, as far as policy lets it be shared.
            None tells of those of a gateway's clients alone, False also keeps these back.
        sampling_tools: whether ``sampling`` includes tools; None as for ``sampling``.
        sampling_context: whether ``sampling`` includes the context of servers; None as for
            ``sampling``.
        elicitation: the ways to ask the user.
        roots: where it may work.
        tasks: answers as tasks.
    """

    sampling: bool | None = None
    sampling_tools: bool | None = None
    sampling_context: bool | None = None
    elicitation: tuple[Literal["form", "url"], ...] = ("form", "url")
    roots: bool = True
    tasks: bool = True


class Labels(Struct, frozen=True, kw_only=True, rename="camel"):
    """Labels of the data of a server or tool, for rules about the flow of data.

    Attributes:
        reads: what it has access to, such as ``private``.
        returns: what its results are, such as ``untrusted``.
        egress: whether what it is given leaves the machine.
    """

    reads: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    egress: bool = False


class ToolSelection(Struct, frozen=True, kw_only=True, rename="camel"):
    """The tools of a server that a model may have, and their names.

    Attributes:
        include: globs of names; none means all.
        exclude: globs of names that are left out whatever ``include`` says.
        rename: another name by the server's own.
        describe: another description by the server's own name.
        labels: labels by glob of the name, in place of the server's.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    rename: Mapping[str, str] = {}
    describe: Mapping[str, str] = {}
    labels: Mapping[str, Labels] = {}


class Timeouts(Struct, frozen=True, kw_only=True, rename="camel"):
    """Timeouts in seconds: to connect, of a silent call, of a whole call, for a person's answer."""

    connect: Seconds = 30.0
    call: Seconds = 60.0
    total: Seconds = 1800.0
    interaction: Seconds = 600.0


class ServerLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of the calls to a server.

    Attributes:
        calls: calls a minute, of everybody together; None for any number. Where an entry does not say
            it, it is :data:`DEFAULT_CALLS_PER_MINUTE` for what a host calls, and any number for the clients
            of a gateway, each of whom has a rate of their own.
        tool_calls: calls a minute of one tool by one principal; None for as many as there may be.
        concurrency: calls at once.
        result_bytes: bytes of a result that are passed on; the rest is kept behind a link.
    """

    calls: Rate | UnsetType | None = UNSET
    tool_calls: Rate | None = None
    concurrency: int = 8
    result_bytes: Size = 1024 * 1024


class SamplingLimits(Struct, frozen=True, kw_only=True, rename="camel"):
    """Limits of what a server may have models write.

    Attributes:
        models: globs of the models it may use; none means all that policy allows.
        requests: requests a minute; None for any number.
        concurrency: requests at once.
        max_tokens: the most tokens of one answer.
        tokens: tokens a day, read and written; None for any number.
        cost: dollars a day; None for any amount.
        rounds: how often a model and the server's tools may take turns in the course of one call.
        timeout: seconds that an answer may take in all.
    """

    models: tuple[str, ...] = ()
    requests: Rate | None = 30.0
    concurrency: int = 2
    max_tokens: int = 8192
    tokens: int | None = 500_000
    cost: float | None = 5.0
    rounds: int = 8
    timeout: Seconds = 300.0


class Sandbox(Struct, frozen=True, kw_only=True, rename="camel"):
    """Sandbox of a launched server; its roots are bound into it.

    Attributes:
        allow_write: folders that it may write in besides its roots.
        deny_read: folders that it does not see.
        network: whether it may reach the network.
    """

    allow_write: tuple[str, ...] = ()
    deny_read: tuple[str, ...] = ()
    network: bool = True


EraChoice: TypeAlias = Literal[
    "auto", "modern", "legacy", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
]  # fmt: skip


class ServerOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """The member ``host`` of a server's entry: the options that are isthmus's own.

    Attributes:
        enabled: whether it is there at all.
        start: when it is started: at its first use, at once, or when somebody says so.
        idle_stop: seconds without use after which it is stopped; None never stops it.
        era: which protocol it is opened with; the name of a revision allows that one only.
        instance: who shares a connection to it. ``auto`` is ``shared`` in a host; in a gateway each session of a
            client has its own where the server keeps state for it, which is up to 2025-11-25.
        trust: ``annotations`` and ``full`` let what it says about its tools count.
        advertise, labels, tools, timeouts, limits, sampling: see there.
        sandbox: None runs it with the user's own rights.
        pin: SHA-256 of the program, in hex; another program does not run.
        auth: how tokens are got, for a server over HTTP; those of ``isthmus login`` by default.
        ignore: members of other programs in the entry that are passed over, although they sound as
            if they restricted something.
    """

    enabled: bool = True
    start: Literal["lazy", "eager", "manual"] = "lazy"
    idle_stop: Seconds | None = 900.0
    era: EraChoice = "auto"
    instance: Literal["auto", "shared", "per-user", "per-session"] = "auto"
    trust: Literal["untrusted", "annotations", "full"] = "untrusted"
    advertise: Advertise = Advertise()
    labels: Labels = Labels()
    tools: ToolSelection = ToolSelection()
    timeouts: Timeouts = Timeouts()
    limits: ServerLimits = ServerLimits()
    sampling: SamplingLimits = SamplingLimits()
    sandbox: Annotated[Sandbox | None, Meta(extra={"form": "sandbox"})] = None
    pin: Annotated[str, Meta(extra={"form": "pin"})] = ""
    auth: Mapping[str, Any] = {}
    ignore: tuple[str, ...] = ()

    def __repr__(self) -> str:
        # without auth, which may have a token
        return f"ServerOptions(start={self.start!r}, trust={self.trust!r}, …)"


class ServerEntry(Struct, frozen=True, kw_only=True):
    """One server, its variables filled in.

    Attributes:
        name: what it is called here.
        command: the program and its arguments; empty for one that is reached by ``url``.
        env: variables it gets beyond the usual ones; with secrets.
        cwd: where it runs.
        url: where it is.
        kind: ``stdio``, ``http``, ``sse``, ``ws``, or ``socket`` for one of Unix or TCP.
        headers: for its HTTP requests; with secrets.
        sent: the variables that its address and headers name, ``${NAME}`` each: it gets to know them.
        options: what the host does with it.
        layer: where the entry stands, in ``source``.
        trusted: whether the file may start something: a workspace's may not until it is trusted,
            and has no variable filled in.
        secrets: what of ``env`` and ``headers`` nobody is to see; live as long as the entry is.
        written: those of them that stand in the file itself, or in one that it names; whoever wrote
            the file chose them, so that they hide nothing of the command.
    """

    name: str
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: str = ""
    url: str = ""
    kind: Literal["stdio", "http", "sse", "ws", "socket"] = "stdio"
    headers: Mapping[str, str] = {}
    sent: tuple[str, ...] = ()
    options: ServerOptions = ServerOptions()
    layer: Layer = "user"
    source: str = ""
    trusted: bool = True
    secrets: tuple[Secret, ...] = ()
    written: tuple[Secret, ...] = ()

    def __repr__(self) -> str:
        # without values of env and headers, which is where people put their keys
        return f"ServerEntry({self.name!r}, {self.kind}, {self.source!r})"


class RootEntry(Struct, frozen=True, kw_only=True, rename="camel"):
    """A folder that servers may be told of.

    Attributes:
        path: where it is.
        name: what it is called; the folder's name by default.
        servers: globs of the servers it is for; none means all that the user grants it to.
        writable: whether a confined server may write there.
        force: take it even if it is a whole home, or a place where keys are kept.
    """

    path: str
    name: str = ""
    servers: tuple[str, ...] = ()
    writable: bool = True
    force: bool = False


class HostOptions(Struct, frozen=True, kw_only=True, rename="camel"):
    """The member ``host`` of the file.

    Attributes:
        policy: a file of rules, or the name of one of the policies that come with isthmus.
        policies: the same of every layer that has one, by its name; those of a workspace can only
            tighten what the others allow.
        mode: whether policy is enforced, tried beside the one in force, or nothing is done at all.
        shadow: the policy tried beside it.
        models: the file of the models there are.
        roots: folders for servers.
        audit: the audit log's settings, as the log reads them.
        search: when tools are found by searching, as the catalog reads it.
        gateway: how a gateway in front of the host is to behave.
        state: the folder for what lasts; None for the user's own.
    """

    policy: str = ""
    policies: Mapping[Layer, str] = {}
    mode: Literal["enforce", "shadow", "dry-run"] = "enforce"
    shadow: str = ""
    models: str = ""
    roots: tuple[RootEntry, ...] = ()
    audit: Mapping[str, Any] = {}
    search: Mapping[str, Any] = {}
    gateway: GatewayOptions = GatewayOptions()
    state: str | None = None


class HostConfig(Struct, frozen=True, kw_only=True):
    """The whole configuration, as it was read.

    Attributes:
        servers: by name; those that can be used.
        broken: what is wrong with the others, by name: a sentence that says what, where and how to
            mend it.
        options: how the host is to behave.
        sources: the files that were read, first the one that wins.
        notes: what was passed over, and why, a sentence each: conflicts, keys nobody knows.
        folder: the workspace that variables and files were read for.
    """

    servers: Mapping[str, ServerEntry] = {}
    broken: Mapping[str, str] = {}
    options: HostOptions = HostOptions()
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folder: str = ""


class ConfigDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The difference of two configurations; false where there is none.

    Attributes:
        added: names of servers that were not there.
        removed: names of those that are not there any more.
        changed: names of those whose entries are different.
        broken: what is wrong with entries that were fine before, by name.
        options: names of the host's own settings that are different.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.broken or self.options)

    def __str__(self) -> str:
        """As a sentence for a person."""
        parts = [
            f"{word}: {', '.join(names)}"
            for word in ("added", "removed", "changed", "broken", "options")
            if (names := getattr(self, word))
        ]
        return "; ".join(parts) or "nothing is different"


def digest_entry(entry: ServerEntry) -> str:
    """SHA-256, in hex, of all that an entry says; the same wherever it stands."""
    said = {
        member: getattr(entry, member)
        for member in entry.__struct_fields__
        if member not in IGNORED_FIELDS
    }
    return hashlib.sha256(ENTRY_ENCODER.encode(said)).hexdigest()


def reveal_secret(value: object) -> str:
    """Reveal a secret, for a digest that cannot be turned back."""
    return value.reveal() if isinstance(value, Secret) else repr(value)


ENTRY_ENCODER = msgspec.json.Encoder(enc_hook=reveal_secret, order="sorted")


def diff_configs(before: HostConfig, now: HostConfig) -> ConfigDiff:
    """Compare two configurations; an entry that is only broken now counts as unchanged."""
    old, new = before.servers, now.servers
    options = [
        name
        for name in before.options.__struct_fields__
        if getattr(before.options, name) != getattr(now.options, name)
    ]
    return ConfigDiff(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new and name not in now.broken),
        changed=tuple(
            name
            for name in new
            if name in old and digest_entry(new[name]) != digest_entry(old[name])
        ),
        broken=tuple(name for name in now.broken if now.broken[name] != before.broken.get(name)),
        options=tuple(sorted(options)),
    )


def mask_command(entry: ServerEntry) -> tuple[str, ...]:
    """Mask the user's own secrets in the command of an entry.

    What the file itself calls a secret hides nothing: it would hide what its author likes.
    """
    held = find_own_secrets(entry)
    return tuple(hide_secrets(part, held) for part in entry.command)


def find_own_secrets(entry: ServerEntry) -> list[str]:
    """Find the secrets of an entry that are the user's, and stand in no file; the longest first."""
    found = {one.reveal() for one in entry.secrets} - {one.reveal() for one in entry.written}
    return sorted((one for one in found if len(one) >= MIN_SECRET_CHARS), key=len, reverse=True)


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    """Hide secrets in a text."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN_TEXT)
    return text


NO_LIMITS = ServerLimits()
DEFAULT_INTERACTION_TIMEOUT_S = 600.0


class EntrySettings:
    """What the configuration in force says of servers and their callers, where the host is open.

    Args:
        find: finds the entry of a server; None while the host is not open.
        get_options: gives the options of the host.
    """

    def __init__(
        self,
        find: Callable[[str], ServerEntry | None],
        get_options: Callable[[], HostOptions] = HostOptions,
    ) -> None:
        self._find = find
        self._get_options = get_options

    def get_client_calls(self) -> float | None:
        """Calls a minute that each principal of a gateway may make at each server."""
        return self._get_options().gateway.limits.calls

    def find_limits(self, server: str) -> ServerLimits:
        """The limits of a server."""
        entry = self._find(server)
        return NO_LIMITS if entry is None else entry.options.limits

    def find_patience(self, server: str) -> float:
        """Seconds that a person has to answer what concerns a server."""
        entry = self._find(server)
        if entry is None:
            return DEFAULT_INTERACTION_TIMEOUT_S
        return entry.options.timeouts.interaction
