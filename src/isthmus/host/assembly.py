"""What a host is made of, and how the parts hang together.

Policy and models follow their files: what is whole is used at once, what is not changes nothing.

Rows of the audit log about servers themselves: starts, ends, restarts, switching on and off.
"""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.errors import IsthmusError
from isthmus.host.approvals.broker import Broker
from isthmus.host.approvals.decisions import Decisions
from isthmus.host.approvals.fingerprints import Fingerprints, ToolChange
from isthmus.host.approvals.grants import Grants
from isthmus.host.audit.log import make_audit_log
from isthmus.host.catalog.catalog import HostCatalog
from isthmus.host.catalog.lists import ListCache
from isthmus.host.catalog.metatools import parse_search_settings
from isthmus.host.config.watch import watch_files
from isthmus.host.model.attempt import Attempt, new_id
from isthmus.host.model.entries import HostConfig, HostOptions, ServerEntry, ServerLimits
from isthmus.host.model.errors import ConfigError, Denied, Quarantined
from isthmus.host.model.events import HostEvent, HostEvents, HostNotice
from isthmus.host.model.row import AuditRow
from isthmus.host.model.tokens import TokenEstimators
from isthmus.host.pipeline.acts.server_acts import ToolChangeAct
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.pipeline.servers import KnownServers
from isthmus.host.pipeline.tasks import HostTasks, TaskHandle
from isthmus.host.policy.policy import Policy
from isthmus.host.questions.answers import ServerAnswers
from isthmus.host.state.database import HostState, find_user_folder
from isthmus.host.supervisor.identity import identify_server
from isthmus.host.supervisor.states import LIVE_STATES, ConnectionState
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.wire import Tool

if TYPE_CHECKING:
    from isthmus.client.client import Client
    from isthmus.client.model.results import ToolResult
    from isthmus.client.targets import ClientTarget
    from isthmus.host.catalog.finder import ToolFinder
    from isthmus.host.confinement.install import InstallConsents
    from isthmus.host.confinement.roots import RootGrants
    from isthmus.host.model.entries import ConfigDiff
    from isthmus.host.sampling.sampler import Sampler
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.transports.command import Command

__all__ = ["Kernel", "RuleReloader", "find_rule_files", "make_server_row", "replace_policy"]

NO_LIMITS = ServerLimits()


class Kernel:
    """Everything that a host is made of.

    Args:
        config: servers and settings.
        targets: servers that stand in no file, by name; they need no consent to run.
        policy, models, providers, state, workspace, clock, opener: as for ``Host``.

    Attributes:
        events, state, audit, broker, grants, runs, limits, pipeline: there from the beginning.
        supervisor, catalog, servers, tasks, answers, roots, installs, sampler: there once it is
            open.
    """

    supervisor: Supervisor
    catalog: HostCatalog
    servers: KnownServers
    tasks: HostTasks
    answers: ServerAnswers
    roots: "RootGrants"
    installs: "InstallConsents"
    sampler: "Sampler | None" = None

    def __init__(
        self,
        config: HostConfig,
        targets: "Mapping[str, ClientTarget]",
        *,
        policy: Any = None,
        models: Any = None,
        providers: Any = None,
        state: Any = None,
        workspace: str = "",
        clock: Callable[[], float] | None = None,
        opener: Any = None,
    ) -> None:
        options = config.options
        self.events = HostEvents()
        self.clock = clock or time.time
        self.estimators = TokenEstimators()
        self.state = HostState(state or options.state, clock=self.clock)
        self.audit = make_audit_log(self.state, options.audit)
        self.decisions = Decisions(self.state, self.clock)
        self.grants = Grants(self.state)
        self.fingerprints = Fingerprints(self.state)
        self.broker = Broker(self.audit, self.decisions, clock=self.clock, events=self.events)
        self.runs = Runs(time.monotonic)
        self.limits = CallLimits(self._limits)
        self.pipeline = Pipeline(
            policy=load_policy(policy, options),
            broker=self.broker,
            audit=self.audit,
            runs=self.runs,
            limits=self.limits,
            grants=self.grants,
            patience=self._patience,
            clock=self.clock,
        )
        self.pipeline.mode = options.mode
        self.pipeline.shadow = load_shadow_policy(options)
        self._policy = policy
        self._targets = targets
        self._workspace = workspace
        self._opener = opener
        self._models, self._providers, self._given = models or options.models, providers, models
        self._beside: set[asyncio.Task[None]] = set()
        self._rereading: RuleReloader | None = None
        self._finder: ToolFinder | None = None
        self._ready = False
        self._closed = False

    # Opening and closing

    async def open(
        self, config: HostConfig, resume: "Callable[[TaskHandle], asyncio.Future[ToolResult]]"
    ) -> None:
        """Put together what needs the servers, and read what lasts."""
        self._assemble(config, resume)
        await self.audit.open()
        await self.grants.load()
        await self.fingerprints.load()
        await self.tasks.load()  # before what was decided on them: some of that is over, too
        await self.decisions.load()
        await self.installs.load()
        await self.roots.load()
        self._ready = True
        await self.supervisor.open()
        self.beside(self._watch_roots())
        self.tasks.resume()

    def _assemble(
        self, config: HostConfig, resume: "Callable[[TaskHandle], asyncio.Future[ToolResult]]"
    ) -> None:
        from isthmus.host.confinement.install import InstallConsents
        from isthmus.host.confinement.roots import RootGrants
        from isthmus.host.questions.elicitation import Elicitor

        self.roots = RootGrants(config.options.roots, self.state, self.pipeline)
        self.roots.on_change = self._roots_changed
        self.installs = InstallConsents(
            self.state, self.pipeline, roots=self.roots.granted, prepare=self.roots.prepare
        )
        supervisor = self.supervisor = Supervisor(
            config, self._client_for, consented=self._consented, on_event=self.events.tell
        )
        supervisor.on_ready = self._on_ready
        supervisor.on_gone = self._on_gone
        supervisor.on_changed = self._on_changed
        supervisor.on_switched = self._on_switched
        supervisor.on_moved = self._note_move
        self.catalog = HostCatalog(
            config.servers,
            lambda name, isolation: supervisor.use(name, isolation, again=True),
            kept=ListCache(self.state, clock=self.clock),
            identity=identify_server,
            search=parse_search_settings(config.options.search),
            quarantined=self._quarantined,
            notice=self.events.tell,
            clock=self.clock,
        )
        self.servers = KnownServers(
            supervisor, self.catalog, self.fingerprints, workspace=self._workspace
        )
        self.servers.release = self._release
        self.tasks = self.servers.tasks = HostTasks(
            self.state, self.decisions, resume, self.clock, self.audit.node
        )
        self.answers = ServerAnswers(self.pipeline, self.servers, self._targets, self.events)
        self.answers.elicitor = Elicitor(self.pipeline, opener=self._opener, events=self.events)
        self.answers.roots = self.roots
        self.answers.confine = self._confine
        if self._models:
            self.sampler = self.answers.sampler = self._sampler()

    def _sampler(self) -> "Sampler":
        from isthmus.host.sampling.sampler import make_sampler

        return make_sampler(self.pipeline, self._models, self._providers, self.state)

    async def close(self) -> None:
        """Deny what waits, end every connection, and write what is to be written."""
        if self._closed:
            return
        self._closed = True
        for task in self._beside:
            task.cancel()
        await asyncio.gather(*self._beside, return_exceptions=True)
        if self._ready:
            await self.tasks.close()
            await self.servers.close()
            await self.catalog.close()
            # Before anything is denied: to what a task asks, silence is no answer.
            await self.supervisor.close()
        self.broker.close()
        if self._finder is not None:
            self._finder.close()
        if self.sampler is not None:
            await self.sampler.close()
        await self.grants.close()
        with suppress(IsthmusError):  # what cannot be written has kept everything from being done
            await self.audit.close()
        self.events.close()
        await self.state.close()

    def beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do something beside, until the end."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    def _note_move(self, line: "ServerConnection", before: "ConnectionState") -> None:
        row = make_server_row(line, before)
        if row is not None:
            self.audit.note(row)

    async def reload(self, config: HostConfig) -> "ConfigDiff":
        """Follow another configuration."""
        diff = await self.supervisor.reload(config)
        if diff:
            told = {name: list(getattr(diff, name)) for name in ("added", "removed", "changed")}
            self.audit.note(AuditRow(kind="config", action="config.reload", detail=told))
        self.catalog.configure(self.supervisor.config.servers)
        self._search_anew(config)
        self.roots.replace(config.options.roots)
        self.beside(self._watch_roots())
        self.reread()
        if self._rereading is not None:
            self._rereading.follow(self.supervisor.config)
        return diff

    def reread(self) -> None:
        """Take policy and models from their files as they are now; a bad one changes nothing."""
        config = self.supervisor.config
        replace_policy(self.pipeline, load_policy(self._policy, config.options), self.events.tell)
        self.pipeline.mode = config.options.mode
        self.pipeline.shadow = load_shadow_policy(config.options)
        if self.sampler is not None:
            self._reread(self.sampler, config)

    def follow_rules(self) -> None:
        """Read policy and models again whenever their files change, until the end."""
        self._rereading = RuleReloader(
            self.beside,
            lambda config: find_rule_files(self._policy, self._given, config.options),
            self.reread,
            self.events.tell,
        )
        self._rereading.follow(self.supervisor.config)

    def _reread(self, sampler: "Sampler", config: HostConfig) -> None:
        """Read the file of models again; one that cannot be leaves the models of before."""
        from isthmus.host.sampling.sampler import reload_models

        path = self._given or config.options.models
        if isinstance(path, str | os.PathLike) and path:
            try:
                reload_models(sampler, path, self._providers)
            except ConfigError as error:
                self.events.tell(HostNotice(about="config", text=str(error)))

    def _search_anew(self, config: HostConfig) -> None:
        """Search as a configuration says; one that cannot be leaves it as it was."""
        try:
            self.catalog.search = parse_search_settings(config.options.search)
        except ConfigError as error:
            self.events.tell(HostNotice(about="config", text=str(error)))

    @property
    def finder(self) -> "ToolFinder":
        """Finds tools; made for the first who searches."""
        if self._finder is None:
            from isthmus.host.catalog.finder import ToolFinder
            from isthmus.host.visibility import Visibility

            seen = Visibility(self.servers, self.pipeline)
            self._finder = ToolFinder(self.catalog, hidden=seen.hidden, marks=seen.marks)
        return self._finder

    # What the parts want to know

    def _entry(self, server: str) -> ServerEntry | None:
        hosted = self.supervisor.servers.get(server) if self._ready else None
        return None if hosted is None else hosted.entry

    def _limits(self, server: str) -> ServerLimits:
        entry = self._entry(server)
        return NO_LIMITS if entry is None else entry.options.limits

    def _patience(self, server: str) -> float:
        entry = self._entry(server)
        return 600.0 if entry is None else entry.options.timeouts.interaction

    def _client_for(self, entry: ServerEntry, isolation: str) -> "Client":
        return self.answers.client_for(entry, isolation)

    async def _consented(self, entry: ServerEntry) -> bool:
        if entry.name in self._targets:
            await self.roots.prepare(entry)
            return True
        return await self.installs.consented(entry)

    def _confine(self, entry: ServerEntry) -> "Callable[[Command], Command]":
        sandbox = entry.options.sandbox
        if sandbox is None:
            return lambda command: command
        from isthmus.host.confinement.sandbox import confine_command

        return lambda command: confine_command(
            command, sandbox, self.roots.granted(entry), self._own()
        )

    def _own(self) -> list[str]:
        """Where what the host goes by stands: nothing that it confines is to change that."""
        config = self.supervisor.config
        rules = find_rule_files(self._policy, self._given, config.options)
        folder = [] if self.state.folder is None else [self.state.folder]
        with suppress(IsthmusError):  # nobody says where the user's home is
            folder.append(
                find_user_folder().parent
            )  # what clients were logged in with, and secrets
        return [*map(str, (*folder, *rules)), *config.sources]

    def _quarantined(self, server: str, tool: Tool) -> bool:
        bound = self.servers.identity(server)
        return self.fingerprints.hides(server, bound, tool)

    # What servers do

    def _on_ready(self, server: str, client: "Client") -> None:
        self.beside(self._learn(server, client))

    async def _learn(self, server: str, client: "Client") -> None:
        with suppress(IsthmusError):  # what is wrong with a list stands in the catalog
            await self.servers.learned(server, client)

    def _on_gone(self, server: str, isolation: str = "") -> None:
        self.servers.gone(server, isolation)

    def _on_changed(self, server: str, kind: str, isolation: str = "") -> None:
        self.catalog.changed(server, kind, isolation)

    def _on_switched(self, server: str, on: bool) -> None:
        self.catalog.switch(server, on=on)

    async def _watch_roots(self) -> None:
        with suppress(ConfigError):  # without watchfiles, roots are as they were when it began
            await self.roots.watch()

    def _roots_changed(self, server: str) -> None:
        hosted = self.supervisor.servers.get(server) if self._ready else None
        if hosted is None:
            return
        if hosted.entry.options.sandbox is not None:
            self.beside(self._restarted(server))  # its folders are bound when it is started
            return
        for connection in hosted.connections.values():
            if connection.client is not None:
                self.beside(self._told(connection.client))

    async def _told(self, client: "Client") -> None:
        with suppress(IsthmusError):
            await client.roots_changed()

    async def _restarted(self, server: str) -> None:
        with suppress(IsthmusError):
            await self.supervisor.server(server).restart()

    async def _release(self, attempt: Attempt, tool: Tool, change: ToolChange) -> None:
        """Ask whether a changed tool may be used.

        Raises:
            Quarantined: it may not.
        """
        if attempt.origin == "search":  # a model that searches is not told of it, either
            raise Quarantined(
                f"tool {tool.name!r} of server {attempt.server!r} has changed since it was "
                "approved; a person has to look at it before it can be called",
                by="fingerprint",
            )
        wanted = structs.replace(
            attempt, id=new_id(), action="tool.change", arguments={}, parent=attempt.id
        )
        try:
            await self.pipeline.run(wanted, ToolChangeAct(self.servers, change))
        except Denied as error:
            raise Quarantined(
                f"tool {tool.name!r} of server {attempt.server!r} has changed since it was "
                f"approved, and nobody has released it as it is now: {error.reason}",
                rule=error.rule,
                by=error.by,
            ) from error


def load_shadow_policy(options: HostOptions) -> Policy | None:
    """The policy that is tried beside the one in force, where there is one."""
    return Policy.load(options.shadow) if options.shadow else None


def load_policy(given: Any, options: HostOptions) -> Policy:
    """The policy that somebody gave, or that the configuration names.

    What the machine's administrator set, and a workspace tightens, holds beside a named one.
    """
    if isinstance(given, Policy):
        return given
    if not given:
        return Policy.configured(options)
    layers = options.policies
    return Policy.load(
        str(given), managed=layers.get("managed", ""), workspace=layers.get("workspace", "")
    )


def replace_policy(pipeline: Pipeline, policy: Policy, tell: Callable[[HostEvent], None]) -> None:
    """Decide by another policy, unless it cannot be read: then the one before goes on.

    Args:
        pipeline: decides.
        policy: as its files are now.
        tell: told what became of it.
    """
    if policy.version == pipeline.policy.version:
        return
    if policy.broken and not pipeline.policy.broken:
        text = "; ".join(policy.broken)
        tell(HostNotice(about="policy", text=f"{text}; the policy stays as it was"))
        return
    pipeline.policy = policy
    tell(HostNotice(about="policy", text=f"another policy is in force: {policy.version}"))


def find_rule_files(policy: Any, models: Any, options: HostOptions) -> list[Path]:
    """The files that policy and models stand in; none for what a program has given.

    Args:
        policy: the policy that a program gave: a name, a file or a policy; None for none.
        models: the same of models.
        options: what the configuration says.
    """
    named: Mapping[Any, str] = options.policies or {"user": options.policy}
    rules = [policy] if policy else list(named.values())
    said = [*rules, options.shadow, models or options.models]
    paths = [
        Path(one).expanduser().absolute()
        for one in said
        if isinstance(one, str | os.PathLike) and one
    ]
    return sorted({path for path in paths if path.is_file()})


class RuleReloader:
    """Has a host read policy and models again when their files change.

    Args:
        beside: does something as long as the host is open.
        files: the files, by the configuration.
        reread: reads them again.
        tell: told why they are not followed.
    """

    def __init__(
        self,
        beside: "Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]",
        files: Callable[[HostConfig], list[Path]],
        reread: Callable[[], None],
        tell: Callable[[HostEvent], None],
    ) -> None:
        self._beside = beside
        self._files = files
        self._reread = reread
        self._tell = tell
        self._paths: list[Path] = []
        self._task: asyncio.Task[None] | None = None

    def follow(self, config: HostConfig) -> None:
        """Look at the files that a configuration names from now on."""
        paths = self._files(config)
        if paths == self._paths:
            return
        self._paths = paths
        if self._task is not None:
            self._task.cancel()
        self._task = self._beside(self._look(paths))

    async def _look(self, paths: list[Path]) -> None:
        try:
            async for _ in watch_files(paths):
                self._reread()
        except ConfigError as error:
            self._tell(HostNotice(about="config", text=str(error)))


FAILED_STATES: frozenset[ConnectionState] = frozenset(
    {"backoff", "failed", "needs_auth", "quarantined"}
)


def make_server_row(line: "ServerConnection", before: ConnectionState) -> AuditRow | None:
    """The row for a connection that came into another state; None where that is no news.

    Args:
        line: the connection, in its new state.
        before: the state that it was in.
    """
    action = _name_transition(line, before)
    if not action:
        return None
    entry, client, failed = line.entry, line.client, line.state in FAILED_STATES
    detail = {
        "state": line.state,
        "before": before,
        "starts": line.starts,
        "pid": line.pid,
        "isolation": line.isolation,
    }
    return AuditRow(
        kind="server",
        action=action,
        server=entry.name,
        object=entry.name,
        identity=identify_server(entry),
        era="" if client is None else client.revision.name,
        transport=entry.kind if entry.command or entry.url else "memory",
        failed=failed,
        error=line.error if failed else "",
        detail={name: value for name, value in detail.items() if value not in (None, "")},
    )


def _name_transition(line: "ServerConnection", before: ConnectionState) -> str:
    """What became of a server, as an action; empty where nothing did."""
    state = line.state
    if state == "ready" and before == "connecting":
        return "server.start" if line.starts <= 1 else "server.restart"
    if state in FAILED_STATES:
        return "server.lost" if before in LIVE_STATES else "server.fail"
    if state == "idle" and before == "draining":
        return "server.stop"
    if state == "disabled":
        return "server.disable"
    return "server.enable" if before == "disabled" else ""
