"""The host: many servers, and one user who is in charge of them."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from msgspec import structs

from isthmus.client.model.limits import OnProgress
from isthmus.client.targets import ClientTarget, script_command
from isthmus.errors import IsthmusError, OutOfPhase, UsageError
from isthmus.host.assembly import HostCore, HostParts, make_core
from isthmus.host.lifecycle import watch_roots
from isthmus.host.model.attempt import Origin
from isthmus.host.model.entries import EntrySettings, HostConfig, ServerEntry, ServerOptions
from isthmus.host.model.errors import ConfigError
from isthmus.host.model.events import EventStream, HostNotice
from isthmus.host.model.interaction import Approver, Decision, FormAsked, Interaction
from isthmus.host.pipeline.acts.tool_call import TaskResumeAct
from isthmus.host.pipeline.runs import NO_BUDGET, Budget, Run
from isthmus.host.remote.local import LocalView
from isthmus.host.settings import HostSettings
from isthmus.host.sharing import check_secrets, make_accounts
from isthmus.host.visibility import HostPolicy
from isthmus.transports.command import Command

if TYPE_CHECKING:
    from isthmus.client.model.results import ToolResult
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.approvals.broker import Broker
    from isthmus.host.approvals.grants import Grants
    from isthmus.host.audit.log import AuditLog
    from isthmus.host.catalog.catalog import HostCatalog
    from isthmus.host.context.builder import ContextBuilder
    from isthmus.host.context.skills import HostSkills
    from isthmus.host.model.calling_client import Callers
    from isthmus.host.model.entries import ConfigDiff
    from isthmus.host.model.tokens import TokenEstimators
    from isthmus.host.pipeline.calls import HostCalls
    from isthmus.host.pipeline.tasks import HostTasks, TaskHandle
    from isthmus.host.policy.policy import Policy
    from isthmus.host.providers.provider import Provider
    from isthmus.host.questions.elicitation import Opener
    from isthmus.host.remote.attached import AttachedHost
    from isthmus.host.sampling.models import Models
    from isthmus.host.sampling.sampler import Sampler
    from isthmus.host.state.database import HostState
    from isthmus.host.supervisor.hosted_server import HostedServer
    from isthmus.host.traffic.recorder import TrafficRecorder
    from isthmus.store.store import Store
    from isthmus.wire import Completion, GetPromptResult, ReadResourceResult, Reference

ATTEND_TIMEOUT_S = 5.0  # tasks of an earlier run wait so long for somebody who can be asked

Ask: TypeAlias = Callable[[Interaction], Awaitable[Decision | bool] | Decision | bool]
"""A function that is asked: gets the question, gives a decision, or just yes or no."""


class Host:
    """Many servers, and one user who decides what they see and do.

    Example::

        host = Host(approver=ask_me, policy="developer")
        host.add("files", Command("uvx", "mcp-server-files", "."))
        async with host:
            result = await host.call("files__read", {"path": "notes.txt"})

    Args:
        config: the servers and settings; None for none.
        approver: who is asked: surfaces, or functions that get an ``Interaction``; one, or several. Without any, what
            has to be asked is denied.
        policy: the name of a policy that comes with isthmus, a file, or a policy; by default what the configuration
            says, or ``personal-read-only``.
        models: what models servers that sample may use: a file, or models.
        providers: how those are reached, by name.
        state: the folder for what lasts; None keeps it in memory, unless the configuration says.
        workspace: the folder that is worked in.
        clock: says the seconds since the epoch.
        opener: opens pages that servers ask for, once the user agreed; their browser by default.
        store: what the processes of this host share, as for ``Server``: questions, grants, known tools, the policy and
            rates then count over all of them; None for one process.
        name: of the host, where there is a store: all its processes have the same one.
        secret: what records in the store are encrypted with, 16 random bytes or more, or a list with the one to
            encrypt with first; by default the processes agree on one.

    Raises:
        UsageError: there is no such store, or a secret is too short.
        ConfigError: models or a policy cannot be read.
    """

    def __init__(
        self,
        config: HostConfig | None = None,
        *,
        approver: "Approver | Ask | Sequence[Approver | Ask] | None" = None,
        policy: "Policy | str | os.PathLike[str] | None" = None,
        models: "Models | str | os.PathLike[str] | None" = None,
        providers: "Mapping[str, Provider] | None" = None,
        state: str | os.PathLike[str] | None = None,
        workspace: str | os.PathLike[str] = "",
        clock: Callable[[], float] | None = None,
        opener: "Opener | None" = None,
        store: "str | Store | None" = None,
        name: str = "host",
        secret: bytes | Sequence[bytes] | None = None,
    ) -> None:
        self._config = config or HostConfig()
        self._targets: dict[str, ClientTarget] = {}
        self._opened = False
        self._loaded = False
        self._closed = False
        self._followed: dict[str, Any] | None = None
        self._read_again: Callable[[], HostConfig] | None = None
        self._config_files: tuple[str | os.PathLike[str], ...] = ()
        self.callers: Callers | None = None
        settings = HostSettings(
            policy=policy,
            models=models,
            providers=providers,
            state=state,
            workspace=os.fspath(workspace),
            clock=clock or time.time,
            opener=opener,
            store=store,
            name=name,
            secrets=check_secrets(secret),
        )
        in_force = EntrySettings(self._find_entry, lambda: self.config.options)
        self._core = make_core(
            self._config,
            settings,
            in_force,
            partial(make_accounts, self._list_entries, self._drop_account),
        )
        self._parts: HostParts | None = None
        self._serves_callers = False
        self.view = LocalView(self)
        for one in make_approvers(approver):
            self._core.broker.attach(one)

    @classmethod
    def from_config(
        cls,
        *paths: str | os.PathLike[str],
        folder: str | os.PathLike[str] | None = None,
        environ: Mapping[str, str] | None = None,
        state: str | os.PathLike[str] | None = None,
        watch: bool = False,
        **options: Any,
    ) -> Self:
        """A host with the servers of these files, or of the usual ones.

        What is wrong with one server is in ``host.config.broken``, and costs the others nothing.

        Args:
            paths: the files; the user's own and the workspace's by default.
            folder: the workspace; the current folder by default.
            environ: where ``${NAME}`` is looked up; the environment by default.
            state: the folder for what lasts; by default what the configuration says, or the user's own.
            watch: follow the files: what changes in them counts as soon as it is whole.
            **options: as for ``Host``.

        Raises:
            ConfigError: a file is not there, or is no configuration.
        """
        from isthmus.host.config.trust import TrustReader, load_trusted_config

        config, place = load_trusted_config(
            paths or None, folder=folder, environ=environ, state=state
        )
        work = os.path.abspath(folder or ".")  # noqa: PTH100 - as it is spelt
        host = cls(config, state=place, **{"workspace": work, **options})
        host._config_files = paths
        host._read_again = lambda: load_trusted_config(
            paths or None, folder=folder, environ=environ, state=state
        )[0]
        if watch:
            host._followed = {
                "paths": paths or None,
                "folder": folder,
                "environ": environ,
                "trusted": TrustReader(place),
                "since": config,
            }
        return host

    @staticmethod
    def attach_to(
        state: str | os.PathLike[str] | None = None, *, name: str = "program"
    ) -> "AttachedHost":
        """The host that runs on a state in another process, for a program that calls through it.

        Its calls pass the same policy, questions, limits and audit log as those of the host's own
        program. It answers no question, so that it cannot approve what it wants.

        Example::

            async with Host.attach_to(name="nightly") as host:
                result = await host.call("files__read", {"path": "notes.txt"})

        Args:
            state: the folder of the host's state; the user's own by default.
            name: what the program is called; it calls as ``agent:NAME`` unless it says otherwise.

        Raises:
            UsageError: the name cannot be one.
        """
        from isthmus.host.catalog.names import is_server_name
        from isthmus.host.remote.attached import AttachedHost
        from isthmus.host.state.database import find_user_folder

        if not is_server_name(name):
            raise UsageError(
                f"the name {name!r} of a program cannot be one: lower case, digits, . and -"
            )
        return AttachedHost(state or find_user_folder(), part="program", name=name)

    # Servers

    def add(
        self,
        name: str,
        target: ClientTarget,
        **options: Any,
    ) -> None:
        """Add a server that stands in no file, before the host is opened.

        The user is not asked whether it may be run: the program that adds it says so.

        Args:
            name: lower case, digits, ``.`` and ``-``; its tools are called ``name__tool``.
            target: a URL, ``Command(…)``, the path of a script, a server in this process.
            **options: those of :class:`~isthmus.host.model.entries.ServerOptions`: ``trust``, ``labels``,
                ``advertise``, ``limits``, ``timeouts`` and so on.

        Raises:
            UsageError: the name cannot be one or is taken, or the host is open.
        """
        from isthmus.host.catalog.names import is_server_name

        if self._opened:
            raise UsageError("add servers before the host is opened, or give it another config")
        if not is_server_name(name) or name in self._config.servers:
            why = "is taken" if name in self._config.servers else "cannot be one"
            raise UsageError(f"the name {name!r} of a server {why}: lower case, digits, . and -")
        entry = make_entry(name, target, ServerOptions(**options))
        self._targets[name] = target
        self._config = structs.replace(self._config, servers={**self._config.servers, name: entry})

    @property
    def config(self) -> HostConfig:
        """The configuration that is in force."""
        return self._config if self._parts is None else self._parts.supervisor.config

    @property
    def servers(self) -> "Mapping[str, HostedServer]":
        """The servers by name: ``.state``, ``.start()``, ``.stop()``, ``.restart()``.

        Raises:
            OutOfPhase: the host is not open.
        """
        return self.parts.supervisor.servers

    @property
    def strikes(self) -> Mapping[str, int]:
        """The strikes of each server: requests that it was not offered to make."""
        return {} if self._parts is None else self._parts.clients.strikes

    async def reload(self, config: HostConfig) -> "ConfigDiff":
        """Follow another ``config``; servers that :meth:`add` added stay.

        Returns:
            What is different.
        """
        added = {name: self._config.servers[name] for name in self._targets}
        whole = structs.replace(config, servers={**config.servers, **added})
        return await self.parts.configs.reload(whole)

    def find_config_file(self) -> str:
        """The file that a server is written into: the first that was named, or the user's own.

        Raises:
            ConfigError: the host was made of no files.
        """
        from isthmus.host.config.files import find_user_file

        if self._read_again is None:
            raise ConfigError(
                "this host was made by a program, without a configuration file: add the server there, with host.add()"
            )
        return os.fspath(
            self._config_files[0] if self._config_files else find_user_file(os.environ)
        )

    async def reread(self) -> None:
        """Read the files of the configuration again, and follow them as they are now.

        Raises:
            ConfigError: the host was made of no files, or one cannot be read.
        """
        if self._read_again is None:
            raise ConfigError("this host was made by a program, without a configuration file")
        await self.reload(await asyncio.to_thread(self._read_again))

    # Opening and closing

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Read what lasts, start what is to be started at once, and go on with open tasks.

        Raises:
            StoreUnavailable, AuditUnavailable: what lasts cannot be read or written.
        """
        if self._opened:
            return
        self._opened = True
        try:
            parts = HostParts(self._core, self._config, self._targets)
            parts.make_all()
            parts.clients.serves_callers = self._serves_callers
            self._parts = parts
            await self._load(parts)
            await parts.supervisor.open()
            self._core.background.start(watch_roots(parts.roots))
            if self._core.shared is not None:
                self._core.background.start(self._core.pipeline.keep_rules())
            parts.tasks.resume(self._resume)
            if self._followed is not None:
                self._core.background.start(self._watch(self._followed))
                parts.rules.follow(parts.supervisor.config)
        except BaseException:
            await self.close()
            raise

    def expect_callers(self) -> None:
        """Expect attempts for clients of a gateway, which may be asked what servers ask."""
        self._serves_callers = True
        if self._parts is not None:
            self._parts.clients.serves_callers = True

    async def _load(self, parts: HostParts) -> None:
        """Read what lasts."""
        core = self._core
        if core.shared is not None:
            await core.shared.node.join()
        await core.audit.open()
        await core.grants.load()
        await core.fingerprints.load()
        await core.pipeline.join_rules()
        await parts.tasks.load()  # before what was decided on them: some of that is over, too
        await core.decisions.load()
        await parts.installs.load()
        await parts.roots.load()
        await core.broker.open()
        self._loaded = True

    async def close(self) -> None:
        """Deny what waits, end every connection, and write what is to be written."""
        if self._closed:
            return
        self._closed = True
        core, parts = self._core, self._parts
        await core.background.close()
        if parts is not None and self._loaded:
            await parts.tasks.close()
            await parts.servers.close()
            await parts.catalog.close()
            # Before anything is denied: to what a task asks, silence is no answer.
            await parts.supervisor.close()
        await core.approvals.close()
        core.broker.close()
        await core.broker.leave()
        if parts is not None:
            parts.search.close()
            if parts.sampler is not None:
                await parts.sampler.close()
        await core.grants.close()
        with suppress(IsthmusError):  # what cannot be written has kept everything from being done
            await core.audit.close()
        core.events.close()
        await core.accounts.close()
        await core.state.close()
        if core.shared is not None:
            await core.shared.node.leave()

    def _list_entries(self) -> Mapping[str, ServerEntry]:
        """The servers of the configuration in force."""
        return self.config.servers

    def _drop_account(self, server: str, principal: str) -> None:
        """End the connections that show an account."""
        if self._parts is not None and not self._closed:
            self._parts.lifecycle.drop_account(server, principal)

    def _find_entry(self, server: str) -> ServerEntry | None:
        """The configuration in force says this of a server; None while the host is not open."""
        if self._parts is None or not self._loaded:
            return None
        hosted = self._parts.supervisor.servers.get(server)
        return None if hosted is None else hosted.entry

    def _resume(self, handle: "TaskHandle") -> "asyncio.Future[ToolResult]":
        """Go on with a call that became a task before this host started."""
        core = self._core
        core.runs.begin(handle.attempt.principal, id=handle.attempt.run)
        act = TaskResumeAct(self.parts.servers, handle.task, handle.answered)

        async def go_on() -> "ToolResult":
            # What it asks meets nobody where the surfaces are attached a moment after the host.
            await core.broker.wait_attended(ATTEND_TIMEOUT_S)
            return await core.pipeline.run(handle.attempt, act)

        return asyncio.ensure_future(go_on())

    # Calls

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        origin: Origin = "local",
    ) -> "ToolResult":
        """Call a tool.

        Args:
            name: its name in the catalog, ``server__tool``; with ``server``, its own; or one of the tools that find
                tools, such as ``search_tools``.
            arguments: what it takes.
            server: the server whose tool it is.
            principal: who calls.
            run: in which run.
            timeout: seconds without answer or progress; None for the server's.
            on_progress: told of progress, in order.
            origin: by which way the call came about.

        Returns:
            The result, also where the tool itself failed: look at ``is_error``.

        Raises:
            Unknown, BadArguments: it cannot be called.
            Denied, Quarantined: it may not be called.
            Exhausted: too much; see ``retry_after``.
            AuditUnavailable: it cannot be written down.
            ServerUnavailable: the server is not there; nothing was sent.
            OutcomeUnknown: it was sent, and nobody knows what became of it.
            UserDeclined: the user refused what the server asked in its course.
            IsthmusError: what the server answered, or how it broke the rules.
        """
        return await self.parts.calls.call(
            name,
            arguments,
            server=server,
            principal=principal,
            run=run,
            timeout=timeout,
            on_progress=on_progress,
            origin=origin,
        )

    async def read(
        self,
        uri: str,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
        fresh: bool = False,
    ) -> "ReadResourceResult":
        """Read a resource.

        Args:
            uri: ``SERVER+URI``, or a URI that one server lists; with ``server``, any URI of it.
            server: whose resource it is.
            principal: who reads.
            run: in which run.
            fresh: ask the server, whatever is kept.

        Raises:
            HostError, IsthmusError: as :meth:`call`.
        """
        return await self.parts.calls.read(
            uri, server=server, principal=principal, run=run, fresh=fresh
        )

    async def subscribe(
        self,
        server: str,
        uri: str,
        *,
        on: bool = True,
        principal: str = "user:local",
        run: Run | str | None = None,
    ) -> None:
        """Subscribe to changes of the resource ``uri`` of ``server``, or end that with ``on=False``.

        For revisions up to 2025-11-25; ``principal`` and ``run`` mean what they mean in :meth:`call`.
        """
        await self.parts.calls.subscribe(server, uri, on=on, principal=principal, run=run)

    async def prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        server: str = "",
        principal: str = "user:local",
        run: Run | str | None = None,
    ) -> "GetPromptResult":
        """Get a prompt by the ``name`` it has in the catalog; with ``server``, by its own.

        ``arguments`` are its values by name; ``principal`` and ``run`` mean what they mean in :meth:`call`.

        Raises:
            HostError, IsthmusError: as :meth:`call`.
        """
        return await self.parts.calls.prompt(
            name, arguments, server=server, principal=principal, run=run
        )

    async def complete(
        self,
        server: str,
        ref: "Reference",
        argument: str,
        value: str = "",
        *,
        context: Mapping[str, str] | None = None,
        principal: str = "user:local",
        run: Run | str | None = None,
    ) -> "Completion":
        """Completions for an argument of a prompt or a template.

        Args:
            server: whose prompt or template it is.
            ref: the prompt or the template.
            argument: the blank.
            value: what has been typed.
            context: what the other blanks hold.
            principal: who types.
            run: in which run.
        """
        return await self.parts.calls.complete(
            server, ref, argument, value, context=context, principal=principal, run=run
        )

    async def cancel_task(
        self, server: str, task: str, *, principal: str = "user:local", run: Run | str | None = None
    ) -> None:
        """Have ``server`` stop ``task``, an id of its own; ``principal`` and ``run`` as in :meth:`call`."""
        await self.parts.calls.cancel_task(server, task, principal=principal, run=run)

    # Parts

    @property
    def catalog(self) -> "HostCatalog":
        """The catalog: tools, resources and prompts of all servers."""
        return self.parts.catalog

    @property
    def context(self) -> "ContextBuilder":
        """Builds contexts for models from what servers have."""
        return self.parts.context

    @property
    def skills(self) -> "HostSkills":
        """The skills of the servers (SEP-2640): listed by server, and loaded through the pipeline."""
        from isthmus.host.context.skills import HostSkills  # few servers offer any

        core, parts = self._core, self.parts
        return HostSkills(parts.servers, core.pipeline, core.runs, parts.calls.attempt)

    @property
    def accounts(self) -> "Accounts":
        """The accounts at servers: ``list``, ``state``, ``connect`` and ``forget`` by principal."""
        return self._core.accounts

    @property
    def estimators(self) -> "TokenEstimators":
        """Estimators of tokens, by model: they learn from what providers report."""
        return self._core.estimators

    @property
    def traffic(self) -> "TrafficRecorder":
        """The recorder of traffic: it has the calls that were made while a surface watched."""
        return self._core.traffic

    @property
    def policy(self) -> HostPolicy:
        """The policy that is in force."""
        return HostPolicy(self._core.pipeline, self.parts.servers)

    @property
    def audit(self) -> "AuditLog":
        """The audit log of this host."""
        return self._core.audit

    @property
    def broker(self) -> "Broker":
        """The broker of questions; ``attach`` and ``detach`` surfaces here."""
        return self._core.broker

    @property
    def grants(self) -> "Grants":
        """The grants: each a yes of the user that lasts."""
        return self._core.grants

    @property
    def tasks(self) -> "HostTasks":
        """The calls that became tasks."""
        return self.parts.tasks

    @property
    def calls(self) -> "HostCalls":
        """The calls of the host: makes attempts of requests, and gives them to the pipeline."""
        return self.parts.calls

    @property
    def core(self) -> HostCore:
        """The parts that need no server."""
        return self._core

    @property
    def parts(self) -> HostParts:
        """The parts that need the servers.

        Raises:
            OutOfPhase: the host is not open.
        """
        if self._parts is None:
            raise OutOfPhase("the host is not open: use `async with host:`, or await host.open()")
        return self._parts

    @property
    def state(self) -> "HostState":
        """The state: database and folder of what lasts."""
        return self._core.state

    @property
    def sampler(self) -> "Sampler | None":
        """The sampler, whose models write for servers; None where there are no models."""
        return None if self._parts is None else self._parts.sampler

    @property
    def models(self) -> "Models":
        """The models there are; none where the host was given none."""
        from isthmus.host.sampling.models import Models

        return Models() if self.sampler is None else self.sampler.models

    @property
    def providers(self) -> "Mapping[str, Provider]":
        """The providers of models, by name."""
        return {} if self.sampler is None else self.sampler.providers

    def attach(self, approver: "Approver | Ask") -> Approver:
        """Add ``approver``, a surface or a function. Pending questions are put to it at once."""
        surface = make_approvers(approver)[0]
        self._core.broker.attach(surface)
        return surface

    def detach(self, approver: Approver) -> None:
        """Remove ``approver``, which :meth:`attach` returned: it is asked no more."""
        self._core.broker.detach(approver)

    def run(
        self, principal: str = "user:local", *, budget: Budget | None = None, id: str = ""
    ) -> Run:
        """A run: what belongs together, with labels and a budget of its own.

        Args:
            principal: for whom.
            budget: how much it may do.
            id: its name; the run of this name where there is one.
        """
        return self._core.runs.begin(principal, budget=budget or NO_BUDGET, id=id)

    def events(self) -> EventStream:
        """Events from now on: ``async for event in host.events()``."""
        return self._core.events.listen()

    # What goes on beside

    async def follow(self, configs: AsyncIterator[HostConfig]) -> None:
        """Follow a configuration that changes, until this is cancelled.

        Args:
            configs: gives each new one: ``isthmus.host.config.watch.watch_config(…)``.
        """
        async for config in configs:
            await self.reload(config)

    async def _watch(self, files: Mapping[str, Any]) -> None:
        from isthmus.host.config.watch import watch_config

        try:
            await self.follow(
                watch_config(report=lambda text: self.notice("config", text), **files)
            )
        except ConfigError as error:
            self.notice("config", str(error))

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work`` in the background until it ends or the host closes."""
        _ = self.parts  # while the host is not open, this says so
        self._core.background.start(work)

    def notice(self, about: str, text: str, server: str = "") -> None:
        """Send the notice ``text`` to every surface; ``about`` is its subject, ``server`` the server concerned."""
        self._core.events.tell(HostNotice(about=about, text=text, server=server))


KINDS_BY_SCHEME = {"http://": "http", "https://": "http", "ws://": "ws", "wss://": "ws"}


def make_entry(name: str, target: ClientTarget, options: ServerOptions) -> ServerEntry:
    """The entry of a server that a program has added: what it is bound to stands in it.

    Raises:
        UsageError: it is a path, and no script is there.
    """
    if isinstance(target, os.PathLike) or (isinstance(target, str) and "://" not in target):
        target = script_command(os.fspath(target))
    if isinstance(target, Command):
        return ServerEntry(
            name=name,
            command=target.argv,
            env=target.env,
            cwd=target.cwd or "",
            options=options,
            source="program",
        )
    url = target if isinstance(target, str) else getattr(target, "url", "")
    kind: Any = next(
        (kind for start, kind in KINDS_BY_SCHEME.items() if url.startswith(start)), "stdio"
    )
    url = "" if kind == "stdio" else url
    return ServerEntry(name=name, url=url, kind=kind, options=options, source="program")


class FunctionApprover:
    """A function, as a surface."""

    assurance: Any = "callback"

    def __init__(self, ask: Ask) -> None:
        self.name = getattr(ask, "__name__", "function")
        self._ask = ask

    async def offer(self, interaction: Interaction) -> Decision:
        """Call it."""
        said = self._ask(interaction)
        if not isinstance(said, Decision | bool):
            said = await said
        if said is True and isinstance(interaction.payload, FormAsked):
            needed = (interaction.payload.params.requested_schema or {}).get("required")
            if needed:
                raise UsageError(
                    f"{self.name} returned True for a form, which leaves its fields empty: return "
                    f"Decision(verdict='allow', edited={{...}}) with {', '.join(map(str, needed))}, "
                    "or False"
                )
        if isinstance(said, bool):
            return Decision(verdict="allow" if said else "deny", by=self.name)
        return said


def make_approvers(approver: Any) -> list[Approver]:
    """Those who are asked, as surfaces."""
    if approver is None:
        return []
    several = approver if isinstance(approver, Sequence) else [approver]
    return [one if hasattr(one, "offer") else FunctionApprover(one) for one in several]
