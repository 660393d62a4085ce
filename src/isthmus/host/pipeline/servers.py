"""Servers as acts see them: resolved by name, with their tools, identities and facts for policy."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

from msgspec import UNSET, structs

from isthmus.client.client import Client
from isthmus.errors import ConnectionLost
from isthmus.host.accounts.ownership import LOCAL_PRINCIPAL
from isthmus.host.approvals.fingerprints import Fingerprints, ToolChange
from isthmus.host.catalog.catalog import HostCatalog
from isthmus.host.catalog.names import make_namespace
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.calling_client import CallingClients
from isthmus.host.model.entries import HostConfig, Labels, ServerEntry
from isthmus.host.model.errors import Denied, Quarantined, ServerUnavailable, Unknown
from isthmus.host.model.facts import Facts
from isthmus.host.pipeline.results import KeptResults
from isthmus.host.pipeline.runs import RunLinks
from isthmus.host.pipeline.tasks import HostTasks
from isthmus.host.pipeline.validation import ToolSchemas, is_app_only
from isthmus.host.supervisor.hosted_server import HostedServer
from isthmus.host.supervisor.identity import identify_server
from isthmus.host.supervisor.supervisor import Supervisor
from isthmus.wire import Tool

if TYPE_CHECKING:
    from isthmus.host.accounts.accounts import Accounts

MAX_KNOWN_TOOLS = 10_000

ReleaseTool: TypeAlias = "Callable[[KnownServers, Attempt, Tool, ToolChange], Awaitable[None]]"
"""Asks a person whether a tool that has changed may be used; raises ``Denied`` where it may not."""


class KnownTool:
    """A tool at one connection, with its facts.

    Attributes:
        entry: its server, as the configuration has it.
        tool: its definition, and ``client`` whom it was learned with.
        facts: what policy is to know of it.
        app_only: whether it is for the server's own pages, and for no model or program.
    """

    __slots__ = ("app_only", "client", "entry", "facts", "tool")

    def __init__(self, entry: ServerEntry, tool: Tool, client: Client, facts: Facts) -> None:
        self.entry = entry
        self.tool = tool
        self.client = client
        self.facts = facts
        self.app_only = is_app_only(tool)


class ResolvedServer:
    """A server as one act uses it: looked up once, and carried through the passage of its attempt.

    Attributes:
        hosted: the server, and ``isolation`` whose connection to it is used.
    """

    __slots__ = ("hosted", "isolation")

    def __init__(self, hosted: HostedServer, isolation: str) -> None:
        self.hosted = hosted
        self.isolation = isolation

    @property
    def client(self) -> Client | None:
        """The client that is open just now, if one is."""
        connection = self.hosted.connections.get(self.isolation)
        return None if connection is None else connection.client


class ServerIdentities:
    """Identities of servers: worked out once for each connection, since that runs the program.

    Args:
        supervisor: keeps the servers.
    """

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor
        self._found: dict[str, tuple[ServerEntry, Client | None, str]] = {}

    def find(self, server: str) -> str:
        """The identity of a server.

        Raises:
            Unknown: there is none of this name.
        """
        return self.identify(self._supervisor.server(server).entry)

    def identify(self, entry: ServerEntry, isolation: str = "") -> str:
        """The identity of an entry, also where the configuration has another one by now."""
        name, client = entry.name, find_client(self._supervisor, entry.name, isolation)
        known = self._found.get(name)
        if known is not None and client is not None and known[0] is entry and known[1] is client:
            return known[2]
        found = identify_server(entry)
        self._found[name] = entry, client, found
        return found


class KnownServers:
    """The servers of a host, as acts see them.

    Args:
        supervisor: keeps them.
        catalog: what they have.
        fingerprints: what their tools were when they were approved.
        identities: what they are bound to.
        tasks: keeps calls that became tasks.
        release: asks whether a changed tool may be used.
        workspace: the folder that is worked in.
        accounts: says who has connections of their own, for the accounts that they show.
        clients: the clients of a gateway that attempts are made for.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        catalog: HostCatalog,
        fingerprints: Fingerprints,
        identities: ServerIdentities,
        *,
        tasks: HostTasks,
        release: "ReleaseTool",
        workspace: str = "",
        clients: CallingClients | None = None,
        accounts: "Accounts | None" = None,
    ) -> None:
        self.supervisor = supervisor
        self.catalog = catalog
        self.fingerprints = fingerprints
        self.schemas = ToolSchemas()
        self.results = KeptResults()
        self.links = RunLinks()
        self.clients = clients or CallingClients()
        self.tasks = tasks
        self._identities = identities
        self._release = release
        self._workspace = workspace
        self._accounts = accounts
        self._known: dict[tuple[str, str, str], KnownTool] = {}
        self._owners_of: HostConfig | None = None
        self._owners: dict[str, str] = {}
        self._learning: dict[tuple[str, str], tuple[Client, asyncio.Task[None]]] = {}

    # Who is meant

    def entry(self, name: str) -> ServerEntry:
        """The entry of a server in the configuration.

        Raises:
            Unknown: there is none of this name.
        """
        return self.supervisor.server(name).entry

    def resolve(self, server: str, principal: str, run: str, isolation: str = "") -> ResolvedServer:
        """Look a server up, and whose connection to it somebody uses.

        Args:
            server: its name.
            principal: who uses it.
            run: in which run.
            isolation: the key of the connection that a gateway has chosen, where it has.

        Raises:
            Unknown: there is no such server, or it wants a run and there is none.
        """
        hosted = self.supervisor.server(server)
        entry, instance = hosted.entry, hosted.entry.options.instance
        if not isolation or instance == "shared":
            own = {"per-user": principal, "per-session": run}
            isolation = own.get(instance, "")
            if instance == "per-session" and not run:
                raise Unknown(
                    f"server {server!r} has a connection for each session: call it within a run, "
                    "run=host.run()"
                )
        accounts = self._accounts
        if accounts is not None and (accounts.has_guests or principal != LOCAL_PRINCIPAL):
            isolation = accounts.find_isolation(entry, principal, isolation)
        return ResolvedServer(hosted, isolation)

    def isolation(self, server: str, principal: str, run: str) -> str:
        """Whose connection somebody uses.

        Raises:
            Unknown: as :meth:`resolve`.
        """
        return self.resolve(server, principal, run).isolation

    def find_owner(self, namespace: str) -> str:
        """The server whose tools have names that begin so; empty where there is none."""
        config = self.supervisor.config
        if self._owners_of is not config:
            self._owners_of, self._owners = config, {}
            for name in self.supervisor.servers:
                self._owners.setdefault(make_namespace(name), name)
        return self._owners.get(namespace, "")

    def client(self, server: str, isolation: str) -> Client | None:
        """The client that is open just now, if one is."""
        return find_client(self.supervisor, server, isolation)

    def identity_of(self, entry: ServerEntry, isolation: str = "") -> str:
        """The identity of an entry, also where the configuration has another one by now."""
        return self._identities.identify(entry, isolation)

    def facts(self, server: str, isolation: str = "", object: str = "") -> Facts:
        """The facts of a server for policy, or of something of it that is no tool.

        Args:
            server: its name.
            isolation: whose connection.
            object: what of it, for labels.
        """
        entry, client = self.entry(server), self.client(server, isolation)
        return Facts(
            identity=self._identities.identify(entry, isolation),
            trust=entry.options.trust,
            target=find_labels(entry, object),
            era=client.revision.name if client is not None else "",
            transport=entry.kind if entry.command or entry.url else "memory",
            workspace=self._workspace,
            cwd=entry.cwd,
        )

    # Tools

    async def find_tool(
        self, attempt: Attempt, resolved: ResolvedServer | None = None
    ) -> KnownTool:
        """Find the tool that an attempt means, if it is what it was when it was approved.

        Its server is started for that: nobody is to be asked about what cannot be done, or about
        what it once was.

        Args:
            attempt: with the server, the tool and the isolation.
            resolved: the server, where it was looked up just now.

        Raises:
            Unknown: there is no such tool.
            ServerUnavailable: the server cannot be reached.
            Quarantined: it has changed, and nobody released it.
        """
        server, own, isolation = attempt.server, attempt.object, attempt.isolation
        client = self.client(server, isolation) if resolved is None else resolved.client
        if client is None:  # what it had in an earlier run may be something else by now
            async with self.supervisor.use(server, isolation, again=True) as client:
                await self.learn(server, client, isolation)
        elif not self._has_learned(server, client, isolation):
            await self.learn(server, client, isolation)
        try:
            tool = self.catalog.tool(server, own, isolation)
        except Unknown:
            if not await self.catalog.look_again(server, isolation):
                raise
            tool = self.catalog.tool(server, own, isolation)
        key = server, own, isolation
        known = self._known.get(key)
        if known is not None and known.tool is tool and known.client is client:
            return known
        return await self._judge_tool(key, attempt, tool, client)

    async def _judge_tool(
        self, key: tuple[str, str, str], attempt: Attempt, tool: Tool, client: Client
    ) -> KnownTool:
        server, own, isolation = key
        entry, facts = self.entry(server), self.facts(server, isolation, own)
        found = self.fingerprints.check(server, facts.identity, tool)
        if not isinstance(found, str):
            found = await self.fingerprints.learn(server, facts.identity, tool)
        if isinstance(found, ToolChange):
            await self._release(self, attempt, tool, found)
            found = found.fingerprint
        annotations = None if tool.annotations is UNSET else tool.annotations
        facts = structs.replace(facts, annotations=annotations, fingerprint=found)
        if len(self._known) >= MAX_KNOWN_TOOLS:
            self._known.clear()
        known = self._known[key] = KnownTool(entry, tool, client, facts)
        return known

    async def check_tool(self, attempt: Attempt, known: KnownTool, *, waited: bool) -> None:
        """See that a tool is still what it was a while ago.

        Where a person was asked meanwhile, what the server has told since then is waited for.

        Raises:
            Denied: its server is another one.
            Quarantined: it has changed.
            Unknown: it is gone.
        """
        server, isolation = attempt.server, attempt.isolation
        self.check_server(attempt, known.entry, known.facts.identity)
        if waited:
            async with self.supervisor.use(server, isolation, again=True) as client:
                if client is known.client:
                    with report_lost_listing(server):
                        # what is said over HTTP may be lost on the way
                        tells = not known.entry.url and announces_tools(client)
                        await self.catalog.settle(server, "tools", isolation, tells=tells)
                else:
                    await self.learn(server, client, isolation)
            self.check_server(attempt, known.entry, known.facts.identity)
        now = self.catalog.tool(server, attempt.object, isolation)
        if now is known.tool:
            return
        found = self.fingerprints.check(server, known.facts.identity, now)
        if found != known.facts.fingerprint:
            raise Quarantined(
                f"tool {attempt.object!r} of server {server!r} is not what it was when this call "
                "was decided on: it was not made. The next call shows what has changed",
                by="fingerprint",
            )

    def check_server(self, attempt: Attempt, entry: ServerEntry, bound: str) -> None:
        """See that a server is the one that somebody decided about.

        Args:
            attempt: what they decided about.
            entry: the server, as the configuration had it then.
            bound: what it was bound to.

        Raises:
            Denied: another one has its name.
        """
        name, now = attempt.server, self.supervisor.server(attempt.server).entry
        if now is not entry and now != entry:
            what = "its entry in the configuration is another one"
        elif self._identities.identify(now, attempt.isolation) != bound:
            what = "its program or its address is another one"
        else:
            return
        raise Denied(
            f"{attempt.action} {attempt.object!r} was decided on for server {name!r} as it was, and "
            f"{what} by now: nothing was done; ask again",
            by="config",
        )

    def _has_learned(self, server: str, client: Client, isolation: str) -> bool:
        """Whether this client has said what it has: what is known may be of an earlier run."""
        learning = self._learning.get((server, isolation))
        return learning is not None and learning[0] is client and has_succeeded(learning[1])

    async def learn(self, server: str, client: Client, isolation: str = "") -> None:
        """Have the catalog learn what this client's server has: once for each."""
        key = server, isolation
        learning = self._learning.get(key)
        broke = learning is not None and learning[1].done() and not has_succeeded(learning[1])
        if learning is None or learning[0] is not client or broke:
            task = asyncio.ensure_future(self.catalog.on_ready(server, client, isolation))
            learning = self._learning[key] = client, task
        with report_lost_listing(server):
            await asyncio.shield(learning[1])

    def forget_connection(self, server: str, isolation: str = "") -> None:
        """Forget a connection that is no more."""
        self._learning.pop((server, isolation), None)
        self.catalog.on_stopped(server, isolation)

    async def close(self) -> None:
        """Learn nothing more."""
        tasks = [task for _, task in self._learning.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def find_client(supervisor: Supervisor, server: str, isolation: str) -> Client | None:
    """The client of a connection that is open just now, if one is."""
    hosted = supervisor.servers.get(server)
    connection = None if hosted is None else hosted.connections.get(isolation)
    return None if connection is None else connection.client


def find_labels(entry: ServerEntry, object: str) -> Labels:
    """Find the labels of a server, or of a tool of it."""
    for glob, labels in entry.options.tools.labels.items():
        if object and fnmatchcase(object, glob):
            return labels
    return entry.options.labels


def announces_tools(client: Client) -> bool:
    """Whether a server says when its list of tools is another one."""
    tools = client.capabilities.tools
    return tools is not UNSET and tools.list_changed is True


def has_succeeded(task: "asyncio.Task[None]") -> bool:
    """Whether it is done, and nothing went wrong."""
    return task.done() and not task.cancelled() and task.exception() is None


@contextmanager
def report_lost_listing(server: str) -> Iterator[None]:
    """While a server is asked what it has: a connection that breaks has carried no call.

    Raises:
        ServerUnavailable: it broke.
    """
    try:
        yield
    except ConnectionLost as error:
        raise ServerUnavailable(
            f"{server} has not said what it has, so nothing was sent: {error}", server=server
        ) from error
