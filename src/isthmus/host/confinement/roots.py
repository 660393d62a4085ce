"""Roots, the folders in which servers may work: declared in the configuration, granted, then told.

No server learns of a folder that the user did not grant it. What was granted is for the folder as
it really is: where a link leads elsewhere one day, it is another folder, and asked about again. A
confined server gets exactly its granted folders bound into its sandbox.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, structs

from isthmus.host.confinement.folders import RootFolder, resolve_folder, resolve_roots
from isthmus.host.confinement.sandbox import GrantedFolder, confine_command
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import RootEntry, ServerEntry
from isthmus.host.model.errors import BadArguments, Denied
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision, Payload, RootsAsked
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.policy.patterns import Globs
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.supervisor.identity import identify_server
from isthmus.transports.command import Command
from isthmus.wire import Root

if TYPE_CHECKING:
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.state.database import HostState

STAMP_FILE = "roots.changed"  # beside the state; touched when a grant has changed

# names under which no person said no
SILENT_DENIERS = frozenset({"", "deadline", "nobody", "dry-run", "edits", "roots"})


class RootGrants:
    """Knows which folders each server may be told of.

    Args:
        entries: the folders that the configuration declares.
        state: where grants are kept; several processes may share it.
        pipeline: what everything goes through that is done; None asks nobody.
        protected: says which files and folders no confined server may change.
        on_change: told of a server's name when what it may be told has changed.

    Attributes:
        folders: the declared folders as they are now.
    """

    def __init__(
        self,
        entries: Sequence[RootEntry],
        state: "HostState",
        pipeline: "Pipeline | None" = None,
        *,
        protected: Callable[[], Sequence[str]] = tuple,
        on_change: Callable[[str], None] = lambda _server: None,
    ) -> None:
        self.folders: list[RootFolder] = resolve_roots(entries)
        self.on_change = on_change
        self._protected = protected
        self._entries = tuple(entries)
        self._stamp = None if state.folder is None else state.folder / STAMP_FILE
        self._places = self._watched()
        self._state = state
        self._pipeline = pipeline
        self._granted: dict[tuple[str, str], bool] = {}
        self._passing: set[tuple[str, str]] = set()
        self._refused: set[tuple[str, str]] = set()
        self._watching = False
        self._asking: dict[str, asyncio.Lock] = {}
        self._told: dict[str, tuple[ServerEntry, tuple[GrantedFolder, ...]]] = {}

    async def load(self) -> None:
        """Learn what is kept; again, to see what other processes have done."""
        rows = await self._state.read(
            lambda db: db.execute("SELECT identity, path, granted FROM root_grant").fetchall()
        )
        self._granted = {(who, path): bool(yes) for who, path, yes in rows}
        self._tell()

    # What there is

    def list_declared(self, entry: ServerEntry) -> list[RootFolder]:
        """The folders that are meant for a server and can be told."""
        return [
            folder
            for folder in self.folders
            if folder.state == "there"
            and (not folder.entry.servers or Globs(folder.entry.servers).fits(entry.name))
        ]

    def list_granted(self, entry: ServerEntry) -> tuple[GrantedFolder, ...]:
        """The folders that a server may work in now."""
        who = identify_server(entry)
        return tuple(
            GrantedFolder(folder.path, folder.entry.writable)
            for folder in self.list_declared(entry)
            if self._may(who, folder)
        )

    def list_undecided(self, entry: ServerEntry) -> list[RootFolder]:
        """The folders of which nobody has said yet whether a server may know of them."""
        who = identify_server(entry)
        return [
            folder
            for folder in self.list_declared(entry)
            if not self._may(who, folder)
            and (who, folder.path) not in self._refused
            and self._granted.get((who, folder.path)) is None
        ]

    def _may(self, who: str, folder: RootFolder) -> bool:
        return self._granted.get((who, folder.path), False) or (who, folder.path) in self._passing

    # What servers are told

    async def answer(self, asking: ServerQuestion) -> list[Root]:
        """The folders that a server is told; the user is asked about those they never were.

        Raises:
            AuditUnavailable: what is done cannot be written down.
        """
        entry = asking.entry
        folders = self.list_declared(entry)
        if not folders:
            return []
        # one at a time, so that a second connection finds what was said to the first
        async with self._asking.setdefault(identify_server(entry), asyncio.Lock()):
            found = await self._expose(asking, folders)
        self._told[entry.name] = (entry, self.list_granted(entry))
        return [folder.root for folder in found]

    def confine(self, entry: ServerEntry) -> Callable[[Command], Command]:
        """Make the function that puts a server's command into its sandbox, with its granted folders.

        What it gives raises ``SandboxUnavailable`` where a sandbox is asked for and cannot be had.
        """
        sandbox = entry.options.sandbox
        if sandbox is None:
            return lambda command: command
        return lambda command: confine_command(
            command, sandbox, self.list_granted(entry), self._protected()
        )

    async def prepare(self, entry: ServerEntry) -> None:
        """Before a confined server starts: ask which folders it may work in, once."""
        if entry.options.sandbox is None:
            return
        if self.list_undecided(entry):
            await self.answer(ServerQuestion(entry=entry))
        self._told[entry.name] = (entry, self.list_granted(entry))

    async def _expose(self, asking: ServerQuestion, folders: list[RootFolder]) -> list[RootFolder]:
        who = identify_server(asking.entry)
        open = self.list_undecided(asking.entry)
        wanted = [f for f in folders if self._may(who, f) or f in open]
        if not wanted:
            return []
        if self._pipeline is None:
            return [f for f in wanted if self._may(who, f)]
        attempt = asking.attempt(
            "roots.expose", asking.entry.name, {"roots": [f.root.uri for f in wanted]}
        )
        try:
            return await self._pipeline.run(attempt, RootsAct(self, asking.entry, wanted, open))
        except Denied as no:
            if no.by == "policy":
                return []  # whatever was granted once
            if no.verdict == "deny" and no.by not in SILENT_DENIERS:
                self._refused |= {(who, folder.path) for folder in open}
            return [f for f in wanted if self._may(who, f)]

    # What the user says

    async def grant(self, entry: ServerEntry, paths: Sequence[str], by: str) -> None:
        """Let a server know of folders, and work there."""
        await self._write(entry, paths, by, granted=True)

    async def revoke(self, entry: ServerEntry, paths: Sequence[str], by: str) -> None:
        """Let a server know of folders no more, and ask no more whether it may."""
        await self._write(entry, paths, by, granted=False)

    async def _write(
        self, entry: ServerEntry, paths: Sequence[str], by: str, *, granted: bool
    ) -> None:
        who, now = identify_server(entry), int(self._state.clock() * 1_000_000)
        rows = [(who, path, entry.name, int(granted), by, now) for path in paths]
        await self._state.write(
            lambda db: db.executemany(
                "INSERT OR REPLACE INTO root_grant"
                " (identity, path, server, granted, given_by, given_us) VALUES (?, ?, ?, ?, ?, ?)",
                rows,
            )
        )
        for path in paths:
            self._granted[who, path] = granted
            self._passing.discard((who, path))
            self._refused.discard((who, path))
        self._tell()
        if self._stamp is not None:
            await asyncio.to_thread(self._stamp.touch, 0o600)  # for hosts that run elsewhere

    def let_pass(self, entry: ServerEntry, paths: Sequence[str]) -> None:
        """Policy lets a server know of folders, for as long as this host runs."""
        who = identify_server(entry)
        self._passing |= {(who, path) for path in paths}

    def remember_refused(self, entry: ServerEntry, paths: Sequence[str]) -> None:
        """The user left folders out: they are not asked again while this host runs."""
        who = identify_server(entry)
        self._refused |= {(who, path) for path in paths}

    # What changes

    def replace(self, entries: Sequence[RootEntry]) -> None:
        """The configuration declares other folders now."""
        self._entries = tuple(entries)
        self._places[:] = self._watched()  # the same list, which is looked at
        self.refresh()

    def _watched(self) -> list[Path]:
        """The declared paths of the folders, and the file that says that grants have changed."""
        found = [Path(entry.path).expanduser() for entry in self._entries]
        return found if self._stamp is None else [*found, self._stamp]

    def refresh(self) -> None:
        """See how the folders are now, and tell of what has changed."""
        self.folders = resolve_roots(self._entries)
        self._tell()

    def _tell(self) -> None:
        for name, (entry, before) in list(self._told.items()):
            now = self.list_granted(entry)
            if now != before:
                self._told[name] = (entry, now)
                self.on_change(name)

    async def watch(self) -> None:
        """Follow what becomes of the folders, until this is cancelled.

        Returns at once where none are declared, or they are followed already. Folders come, go, and are moved; so do the links that lead to them.

        Raises:
            ConfigError: watchfiles is not installed.
        """
        # spec 2025-11-25 client/roots#security-considerations: clients MUST monitor root
        # accessibility
        from isthmus.host.config.watch import watch_files

        if self._watching or not self._entries:
            return
        self._watching = True
        try:
            async for _ in watch_files(self._places):
                await self.load()
                seen = await asyncio.to_thread(resolve_roots, self._entries)
                if seen != self.folders:
                    self.folders = seen
                    self._tell()
        finally:
            self._watching = False


class RootsAct(Act[list[RootFolder]]):
    """Tell a server of folders.

    Args:
        roots: knows what was granted.
        entry: the server.
        wanted: the folders.
        open: those of them that the user was not asked about yet.
    """

    def __init__(
        self,
        roots: RootGrants,
        entry: ServerEntry,
        wanted: list[RootFolder],
        open: list[RootFolder],
    ) -> None:
        self._roots = roots
        self._entry = entry
        self._wanted = {folder.root.uri: folder for folder in wanted}
        self._open = open
        self._by = ""

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - the shape of acts
        """The facts of the server for policy."""
        entry = self._entry
        return Facts(
            identity=identify_server(entry),
            trust=entry.options.trust,
            target=entry.options.labels,
            transport=entry.kind,
            cwd=entry.cwd,
        )

    def check(self, attempt: Attempt) -> None:
        """See that there is nothing in it that was not there before.

        Raises:
            BadArguments: there is.
        """
        said = attempt.arguments.get("roots")
        if not isinstance(said, list) or any(uri not in self._wanted for uri in said):
            raise BadArguments("roots can be left out of a question, and no others put in")

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - the shape of acts
        """Where policy says so, and there are folders that the user was not asked about yet."""
        return trace.effect == "ask" and bool(self._open)

    def coalesce(self, attempt: Attempt) -> str:
        """One answer is for all connections of a server."""
        return f"roots.expose {attempt.server} {attempt.arguments['roots']}"

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - the shape of acts
        """The folders."""
        return RootsAsked(roots=tuple(self._wanted[uri].root for uri in attempt.arguments["roots"]))

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt with the folders that the user left in."""
        self._by = decision.by or "somebody"
        if decision.edited is UNSET:
            return attempt
        chosen = [find_root_uri(one) for one in decision.edited or ()]
        if chosen == attempt.arguments["roots"]:
            return attempt
        return structs.replace(attempt, arguments={"roots": chosen})

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:
        """See that the folders are still the ones that were shown: a link may have been put there.

        Raises:
            Denied: one is not.
        """
        for uri in attempt.arguments["roots"] if waited else ():
            folder = self._wanted[uri]
            if await asyncio.to_thread(resolve_folder, folder.entry.path) != folder.path:
                raise Denied(
                    f"the root {folder.entry.path} leads elsewhere than when it was shown",
                    by="roots",
                )

    async def dispatch(self, attempt: Attempt) -> list[RootFolder]:
        """Write down what the user said, and give the folders."""
        chosen = [self._wanted[uri] for uri in attempt.arguments["roots"]]
        news = [folder.path for folder in chosen if folder in self._open]
        if self._by:
            await self._roots.grant(self._entry, news, self._by)
            left = [folder.path for folder in self._open if folder not in chosen]
            self._roots.remember_refused(self._entry, left)
        else:
            self._roots.let_pass(self._entry, news)
        return chosen

    def outcome(self, result: list[RootFolder]) -> ActOutcome:
        """The folders that the server was told."""
        return ActOutcome(detail={"roots": [folder.path for folder in result]})


def find_root_uri(one: Any) -> str:
    """The URI of a root, however a surface gives it."""
    if isinstance(one, Root):
        return one.uri
    return str(one.get("uri", "")) if isinstance(one, dict) else str(one)
