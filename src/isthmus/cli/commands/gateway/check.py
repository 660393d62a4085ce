"""``isthmus gateway check``: a gateway's configuration and the servers behind it, before it serves."""

import asyncio
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeAlias

from msgspec import Struct

from isthmus.cli.commands.policy import collect_labels
from isthmus.cli.exit_codes import Exit
from isthmus.cli.output import print_json, print_line
from isthmus.core.text import format_count
from isthmus.errors import CapabilityMissing, IsthmusError, UsageError
from isthmus.gateway.loops import GatewayMark, extend_trail, passing_on
from isthmus.host.catalog.names import Viewer, make_namespace
from isthmus.host.config.load import merge_documents, read_config_layers
from isthmus.host.host import Host
from isthmus.host.model.entries import HostConfig
from isthmus.host.model.errors import HostError, PolicyError, ServerUnavailable
from isthmus.host.model.gateway_options import GatewayProfile
from isthmus.host.policy.lint import lint_policy
from isthmus.host.policy.policy import Policy
from isthmus.host.reloading import load_policy

Verdict: TypeAlias = Literal["ok", "off", "warning", "failed"]

SERVER_TIMEOUT_S = 30.0  # for one server: to start, to agree on a revision, and to list its tools

# the step at which a server stopped, by the state that it is in; the others could not be reached
STEPS_BY_STATE = {
    "needs_auth": "login",
    "quarantined": "consent",
    "disabled": "trust",
}


class CheckRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at.

    Attributes:
        subject: ``server NAME``, ``profile NAME``, ``policy`` or ``configuration``.
        verdict: what came of it.
        text: that in words.
        step: the first step that failed: ``configuration``, ``trust``, ``consent``, ``connect``, ``login``
            or ``list``.
        place: where it stands, as ``file:line:column``.
        revision: the one that a server speaks.
        tools: how many tools it has.
    """

    subject: str
    verdict: Verdict
    text: str = ""
    step: str = ""
    place: str = ""
    revision: str = ""
    tools: int | None = None


class Places:
    """The places of parts of a configuration in its files.

    Args:
        paths: the files; the usual ones where there are none.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        layers, notes = read_config_layers(list(paths) or None)
        loaded = merge_documents(layers, notes)
        self._documents = [document for _, document in loaded.documents]
        self._origins = loaded.origins

    def find(self, *keys: str) -> str:
        """The place of a member; empty where it stands in none of the files."""
        for document in self._documents:
            place = document.place(*keys)
            if place != document.place(*keys[:-1]):
                return place
        return ""

    def find_server(self, name: str) -> str:
        """The place of a server's entry."""
        found = self._origins.get(name)
        return "" if found is None else found[0].place(*found[1])


async def check_gateway(
    paths: Sequence[str], *, policy: str | None, state: str | None, as_json: bool, strict: bool
) -> Exit:
    """Check a gateway, and print a line about each thing.

    Args:
        paths: files of the configuration; the usual ones where there are none.
        policy: the policy; the configuration's where there is none.
        state: the folder of what lasts.
        as_json: print JSON for a program.
        strict: warnings count as errors.

    Raises:
        ConfigError: the configuration cannot be read.
    """
    host = Host.from_config(*paths, policy=policy, state=state)
    config, places = host.config, Places(paths)
    rows = [*check_config(config, places)]
    with passing_on(extend_trail({}, GatewayMark().make(config))):
        async with host:
            rows += await asyncio.gather(
                *(check_server(host, name, places) for name in config.servers)
            )
            down = {row.subject for row in rows if row.verdict == "failed"}
            await host.catalog.load([n for n in config.servers if f"server {n}" not in down])
            tools = [(one.server, one.name) for one in host.catalog.tools(Viewer("user:local"))]
    for name, profile in config.options.gateway.profiles.items():
        place = places.find("host", "gateway", "profiles", name)
        rows += check_profile(name, profile, place, config, tools, complete=not down)
    rows += check_policy(policy, config)
    if as_json:
        print_json(rows)
    else:
        for row in rows:
            print_line(describe_row(row))
    wrong = {"failed", "warning"} if strict else {"failed"}
    return Exit.TOOL_FAILED if any(row.verdict in wrong for row in rows) else Exit.OK


def describe_row(row: CheckRow) -> str:
    """A row as a line."""
    parts = [row.revision, "" if row.tools is None else format_count(row.tools, "tool")]
    parts += [f"{row.step}: {row.text}" if row.step else row.text, row.place and f"({row.place})"]
    return f"{row.verdict:8} {row.subject}: {' '.join(part for part in parts if part)}".rstrip(": ")


def check_config(config: HostConfig, places: Places) -> Iterator[CheckRow]:
    """What is wrong with the files, before any server is started."""
    for name, why in config.broken.items():
        yield CheckRow(
            subject=f"server {name}",
            verdict="failed",
            step="configuration",
            text=why,
            place=places.find_server(name),
        )
    for note in config.notes:  # members that nobody knows, and what was passed over
        yield CheckRow(subject="configuration", verdict="warning", text=note)
    if not (config.servers or config.broken):
        yield CheckRow(subject="configuration", verdict="failed", text="it has no server")
    by_namespace: dict[str, str] = {}
    for name in config.servers:
        first = by_namespace.setdefault(make_namespace(name), name)
        if first != name:
            text = f"its tools would have the names of those of {first!r}: rename one of them"
            yield CheckRow(
                subject=f"server {name}",
                verdict="failed",
                step="configuration",
                text=text,
                place=places.find_server(name),
            )


async def check_server(host: Host, name: str, places: Places) -> CheckRow:
    """Start a server as the gateway would, and list its tools."""
    hosted, subject = host.servers[name], f"server {name}"
    if not hosted.entry.options.enabled:
        return CheckRow(subject=subject, verdict="off", text="it is switched off")
    step = "connect"
    try:
        async with asyncio.timeout(SERVER_TIMEOUT_S):
            await hosted.start()
            step = "list"
            async with host.parts.supervisor.use(name, again=True) as client:
                tools = len(await client.list_tools())
                spoken = client.revision.name
    except CapabilityMissing:
        tools, spoken = 0, client.revision.name
    except ServerUnavailable as error:
        step = STEPS_BY_STATE.get(error.state, step)
        return make_failure(subject, step, str(error), places.find_server(name))
    except TimeoutError:
        text = f"it took longer than {SERVER_TIMEOUT_S:g} s"
        return make_failure(subject, step, text, places.find_server(name))
    except IsthmusError as error:
        return make_failure(subject, step, str(error), places.find_server(name))
    return CheckRow(subject=subject, verdict="ok", revision=spoken, tools=tools)


def make_failure(subject: str, step: str, text: str, place: str) -> CheckRow:
    """The row of something that cannot be used."""
    return CheckRow(subject=subject, verdict="failed", step=step, text=text, place=place)


def check_profile(
    name: str,
    profile: GatewayProfile,
    place: str,
    config: HostConfig,
    tools: Sequence[tuple[str, str]],
    *,
    complete: bool,
) -> list[CheckRow]:
    """What a profile names, and nobody has.

    Args:
        name: of the profile.
        profile: the profile.
        place: where it stands.
        config: has the servers.
        tools: server and name of all tools that are known.
        complete: whether all tools are known: else one may be of a server that is down.
    """
    known = (*config.servers, *config.broken)
    texts: list[tuple[Verdict, str]] = [
        ("warning", f"servers: {glob!r} names no server")
        for glob in profile.servers
        if not any(fnmatchcase(server, glob) for server in known)
    ]
    mine = [
        tool
        for server, tool in tools
        if not profile.servers or any(fnmatchcase(server, glob) for glob in profile.servers)
    ]
    for member, globs in (("include", profile.include), ("exclude", profile.exclude)):
        texts += [
            ("warning", f"{member}: {glob!r} names no tool")
            for glob in globs
            if complete and not any(fnmatchcase(tool, glob) for tool in mine)
        ]
    if profile.policy:
        try:
            broken = Policy.load(profile.policy).broken
        except (HostError, PolicyError, UsageError, OSError) as error:
            broken = (str(error),)
        texts += [("failed", f"policy: {why}") for why in broken]
    subject = f"profile {name}"
    rows = [CheckRow(subject=subject, verdict=v, text=text, place=place) for v, text in texts]
    return rows or [CheckRow(subject=subject, verdict="ok")]


def check_policy(policy: str | None, config: HostConfig) -> list[CheckRow]:
    """What is doubtful in the rules of the host."""
    found = load_policy(policy, config.options)
    rows = [CheckRow(subject="policy", verdict="failed", text=why) for why in found.broken]
    servers = dict.fromkeys((*config.servers, *config.broken), ())
    rows += [
        CheckRow(
            subject="policy",
            verdict="warning",
            text=f"{one.rule} ({one.layer}{f', line {one.line}' if one.line else ''}): {one.text}",
        )
        for one in lint_policy(found, servers, collect_labels(config))
    ]
    return rows or [CheckRow(subject="policy", verdict="ok", text=f"{len(found.rules)} rules")]
