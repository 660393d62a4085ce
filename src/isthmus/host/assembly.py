"""Assembly of a host: its parts are made here, each with what it needs, and nothing is assigned later.

What needs no server is made with the host (:func:`make_core`): state, audit log, approvals and the
pipeline. What needs the servers is made when it is opened (:class:`HostParts`).
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.host.approvals.approval_desk import ApprovalDesk
from isthmus.host.approvals.broker import Broker
from isthmus.host.approvals.decisions import Decisions
from isthmus.host.approvals.fingerprints import Fingerprints
from isthmus.host.approvals.grants import Grants
from isthmus.host.audit.log import AuditLog, make_audit_log
from isthmus.host.catalog.catalog import HostCatalog
from isthmus.host.catalog.lists import ListCache
from isthmus.host.catalog.metatools import parse_search_settings
from isthmus.host.lifecycle import BackgroundTasks, ServerLifecycle
from isthmus.host.model.calling_client import CallingClients
from isthmus.host.model.entries import EntrySettings, HostConfig, ServerEntry
from isthmus.host.model.events import HostEvents
from isthmus.host.model.tokens import TokenEstimators
from isthmus.host.pipeline.acts.server_acts import release_tool
from isthmus.host.pipeline.approved_calls import ApprovedCalls
from isthmus.host.pipeline.calls import HostCalls
from isthmus.host.pipeline.later_rounds import LaterRounds
from isthmus.host.pipeline.limits import CallLimits
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.pipeline.runs import Runs
from isthmus.host.pipeline.servers import KnownServers, ServerIdentities
from isthmus.host.pipeline.tasks import HostTasks
from isthmus.host.questions.answers import ServerAnswers
from isthmus.host.reloading import (
    ConfigReloader,
    RuleReloader,
    find_rule_files,
    load_policy,
    load_shadow_policy,
)
from isthmus.host.settings import HostSettings
from isthmus.host.sharing import (
    MakeAccounts,
    make_approvals,
    make_fingerprints,
    make_grants,
    make_questions,
    make_rules,
    make_shared_state,
    make_usage,
    name_node,
)
from isthmus.host.state.database import HostState, find_user_folder
from isthmus.host.supervisor.identity import identify_server
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.host.traffic.recorder import TrafficRecorder
from isthmus.host.visibility import ToolSearch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from isthmus.client.client import Client
    from isthmus.client.targets import ClientTarget
    from isthmus.host.accounts.accounts import Accounts
    from isthmus.host.confinement.install import InstallConsents
    from isthmus.host.confinement.roots import RootGrants
    from isthmus.host.context.builder import ContextBuilder
    from isthmus.host.sampling.sampler import Sampler
    from isthmus.host.state.shared_state import SharedState
    from isthmus.host.supervisor.connection import ServerConnection
    from isthmus.host.supervisor.states import ConnectionState
    from isthmus.wire import Tool


@dataclass(frozen=True, slots=True)
class HostCore:
    """The parts of a host that need no server: they are there before it is opened."""

    settings: HostSettings
    events: HostEvents
    background: BackgroundTasks
    estimators: TokenEstimators
    state: HostState
    audit: AuditLog
    decisions: Decisions
    grants: Grants
    fingerprints: Fingerprints
    broker: Broker
    clients: CallingClients
    approvals: ApprovalDesk
    runs: Runs
    limits: CallLimits
    pipeline: Pipeline
    accounts: "Accounts"
    traffic: TrafficRecorder
    shared: "SharedState | None" = None


def make_core(
    config: HostConfig, settings: HostSettings, entries: EntrySettings, make_accounts: MakeAccounts
) -> HostCore:
    """The parts that need no server.

    Args:
        config: servers and settings.
        settings: what the program gives besides.
        entries: the configuration in force, where the host is open.
        make_accounts: makes the accounts that its servers are shown.

    Raises:
        ConfigError, PolicyError: the configuration or the policy says what cannot be.
    """
    options, clock = config.options, settings.clock
    events, runs = HostEvents(), Runs(time.monotonic)
    state = HostState(settings.state or options.state, clock=clock)
    shared = make_shared_state(settings.store, settings.name, settings.secrets)
    audit = make_audit_log(state, options.audit, node=name_node(shared))
    decisions = Decisions(state, clock)
    grants, fingerprints = make_grants(state, shared), make_fingerprints(state, shared)
    broker = Broker(audit, decisions, clock=clock, events=events, shared=make_questions(shared))
    clients = CallingClients()
    rows = make_approvals(state, shared, audit.node)
    desk = ApprovalDesk(broker, rows, clients, options.gateway.approvals, clock)
    limits = CallLimits(
        entries.find_limits,
        get_client_calls=entries.get_client_calls,
        store=None if shared is None else shared.store,
    )
    pipeline = Pipeline(
        policy=load_policy(settings.policy, options), shadow=load_shadow_policy(options),
        mode=options.mode, broker=broker, audit=audit, runs=runs, limits=limits, grants=grants,
        patience=entries.find_patience, clock=clock,
        shared=make_rules(shared, fingerprints, events), consents=ApprovedCalls(desk),
        rounds=LaterRounds(shared, clock),
    )  # fmt: skip
    return HostCore(
        settings=settings, events=events, background=BackgroundTasks(), estimators=TokenEstimators(),
        state=state, audit=audit, decisions=decisions, grants=grants, fingerprints=fingerprints,
        shared=shared, accounts=make_accounts(state, shared), broker=broker, clients=clients,
        approvals=desk, runs=runs, limits=limits, pipeline=pipeline,
        traffic=TrafficRecorder(events, clients, pipeline.stopped, audit.redactor, clock),
    )  # fmt: skip


class HostParts:
    """The parts of a host that need its servers, each made by its constructor when it is first needed.

    Servers call back: what the supervisor is given asks for parts that need the supervisor
    themselves. Those are made by then, since :meth:`make_all` makes all before a server is started.

    Args:
        core: the parts that need no server.
        config: servers and settings.
        targets: servers that stand in no file, by name; they need no consent to run.
    """

    def __init__(
        self, core: HostCore, config: HostConfig, targets: "Mapping[str, ClientTarget]"
    ) -> None:
        self._core = core
        self._config = config
        self._targets = targets
        self._made = False

    def make_all(self) -> None:
        """Make every part.

        Raises:
            ConfigError: the configuration, or the file of models, says what cannot be.
        """
        _ = self.installs, self.clients, self.lifecycle, self.configs, self.calls
        self._made = True

    # Servers

    @cached_property
    def supervisor(self) -> Supervisor:
        """Keeps the connections to servers."""
        return Supervisor(
            self._config, self._make_client, consented=self._is_consented,
            on_event=self._core.events.tell, on_ready=self._on_ready, on_gone=self._on_gone,
            on_changed=self._on_changed, on_switched=self._on_switched, on_moved=self._on_moved,
        )  # fmt: skip

    @cached_property
    def identities(self) -> ServerIdentities:
        """Says what servers are bound to."""
        return ServerIdentities(self.supervisor)

    @cached_property
    def catalog(self) -> HostCatalog:
        """Knows what servers have."""
        clock = self._core.settings.clock
        return HostCatalog(
            self._config.servers,
            lambda name, isolation: self.supervisor.use(name, isolation, again=True),
            cache=ListCache(self._core.state, clock=clock),
            identity=identify_server,
            search=parse_search_settings(self._config.options.search),
            quarantined=self._is_quarantined,
            accounts=self._core.accounts,
            notice=self._core.events.tell,
            clock=clock,
        )

    @cached_property
    def tasks(self) -> HostTasks:
        """Keeps the calls that became tasks."""
        core = self._core
        return HostTasks(core.state, core.decisions, core.settings.clock, core.audit.node)

    @cached_property
    def servers(self) -> KnownServers:
        """Tells acts what they need to know of servers."""
        return KnownServers(
            self.supervisor,
            self.catalog,
            self._core.fingerprints,
            self.identities,
            tasks=self.tasks,
            release=release_tool(self._core.pipeline),
            workspace=self._core.settings.workspace,
            clients=self._core.clients,
            accounts=self._core.accounts,
        )

    @cached_property
    def lifecycle(self) -> ServerLifecycle:
        """Reacts to what happens to servers."""
        core = self._core
        return ServerLifecycle(
            self.supervisor, self.servers, self.catalog, core.audit, core.background, core.accounts
        )

    # Calls

    @cached_property
    def search(self) -> ToolSearch:
        """Finds tools."""
        return ToolSearch(self.servers, self._core.pipeline)

    @cached_property
    def calls(self) -> HostCalls:
        """Makes attempts, and gives them to the pipeline."""
        return HostCalls(self._core.pipeline, self.servers, self.search, self._core.events)

    @cached_property
    def context(self) -> "ContextBuilder":
        """Builds contexts for models; few hosts build any."""
        from isthmus.host.context.builder import ContextBuilder
        from isthmus.host.context.gatherer import ContextParts

        core, calls = self._core, self.calls
        parts = ContextParts(
            catalog=self.catalog,
            servers=self.servers,
            runs=core.runs,
            pipeline=core.pipeline,
            estimators=core.estimators,
            attempt=calls.attempt,
            read=calls.read,
            prompt=calls.prompt,
        )
        return ContextBuilder(parts)

    # What servers ask

    @cached_property
    def roots(self) -> "RootGrants":
        """Knows where servers may work."""
        from isthmus.host.confinement.roots import RootGrants

        return RootGrants(
            self._config.options.roots,
            self._core.state,
            self._core.pipeline,
            protected=self._find_protected_paths,
            on_change=self._on_roots_changed,
        )

    @cached_property
    def installs(self) -> "InstallConsents":
        """Knows which servers the user agreed to run."""
        from isthmus.host.confinement.install import InstallConsents

        core, roots = self._core, self.roots
        return InstallConsents(
            core.state, core.pipeline, roots=roots.list_granted, prepare=roots.prepare
        )

    @cached_property
    def sampler(self) -> "Sampler | None":
        """Has models write for servers; None where there are no models."""
        core = self._core
        models = core.settings.models or self._config.options.models
        if not models:
            return None
        from isthmus.host.sampling.sampler import make_sampler

        providers = core.settings.providers
        return make_sampler(
            core.pipeline,
            models,
            providers,
            core.state,
            context=self.context,
            usage=make_usage(core.shared),
        )

    @cached_property
    def clients(self) -> ServerAnswers:
        """Makes the clients of servers, and answers what comes in by them."""
        from isthmus.host.questions.elicitation import Elicitor

        core = self._core
        return ServerAnswers(
            core.pipeline, self.servers, self._targets, core.events, sampler=self.sampler,
            elicitor=Elicitor(core.pipeline, opener=core.settings.opener, events=core.events),
            roots=self.roots, confine=self.roots.confine, accounts=self._core.accounts,
        )  # fmt: skip

    # Another configuration

    @cached_property
    def rules(self) -> RuleReloader:
        """Reads policy and models again."""
        core = self._core
        return RuleReloader(
            core.pipeline,
            self.sampler,
            policy=core.settings.policy,
            models=core.settings.models,
            providers=core.settings.providers,
            events=core.events,
            background=core.background,
        )

    @cached_property
    def configs(self) -> ConfigReloader:
        """Has the host follow another configuration."""
        core = self._core
        return ConfigReloader(
            self.supervisor,
            self.catalog,
            self.roots,
            self.rules,
            audit=core.audit,
            events=core.events,
            background=core.background,
        )

    # What the parts want to know

    def _make_client(self, entry: ServerEntry, isolation: str) -> "Client":
        return self.clients.make_client(entry, isolation)

    async def _is_consented(self, entry: ServerEntry) -> bool:
        if entry.name in self._targets:
            await self.roots.prepare(entry)
            return True
        return await self.installs.ensure_consent(entry)

    def _is_quarantined(self, server: str, tool: "Tool") -> bool:
        return self._core.fingerprints.hides(server, self.identities.find(server), tool)

    def _find_protected_paths(self) -> list[str]:
        return find_protected_paths(self._core, self.supervisor.config)

    def _on_ready(self, server: str, client: "Client") -> None:
        self.lifecycle.on_ready(server, client)

    def _on_gone(self, server: str, isolation: str) -> None:
        self.lifecycle.on_gone(server, isolation)

    def _on_changed(self, server: str, kind: str, isolation: str) -> None:
        self.lifecycle.on_changed(server, kind, isolation)

    def _on_switched(self, server: str, on: bool) -> None:
        self.lifecycle.on_switched(server, on)

    def _on_moved(self, connection: "ServerConnection", before: "ConnectionState") -> None:
        if self._made:  # that one is switched off from the beginning is no news
            self.lifecycle.on_moved(connection, before)

    def _on_roots_changed(self, server: str) -> None:
        self.lifecycle.on_roots_changed(server)


def find_protected_paths(core: HostCore, config: HostConfig) -> list[str]:
    """The files and folders that the host goes by: nothing that it confines is to change them."""
    rules = find_rule_files(core.settings.policy, core.settings.models, config.options)
    folders = [] if core.state.folder is None else [core.state.folder]
    with suppress(IsthmusError):  # nobody says where the user's home is
        folders.append(find_user_folder().parent)  # logins of clients, and secrets
    return [*map(str, (*folders, *rules)), *config.sources]
