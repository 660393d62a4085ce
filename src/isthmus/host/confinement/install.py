"""Consent to a server: before it is run or connected to, the user sees all of it and agrees.

Agreement is for the command to the letter, the file that it runs and the interpreter of a script,
the names of its variables, what those of them say that make it load other code, the folder in which
it runs, its pin and what confines it, or for the address and the names of its headers: when one of
them changes, it is asked again.
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.host.confinement.dangers import find_dangers, find_url_dangers
from isthmus.host.confinement.sandbox import SCRIPT_SUFFIXES, GrantedFolder, describe_sandbox
from isthmus.host.model.attempt import ASKER, Action, Attempt
from isthmus.host.model.entries import (
    ServerEntry,
    find_own_secrets,
    hide_secrets,
    mask_command,
)
from isthmus.host.model.errors import Denied
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import ConnectAsked, Decision, InstallAsked, Payload
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.supervisor.identity import (
    digest_file,
    find_executable,
    find_folder,
    find_interpreter,
    identify_server,
    loads_code,
)
from isthmus.runtime.sorted_ids import new_id
from isthmus.transports.http.client.address import redact_url

if TYPE_CHECKING:
    from isthmus.host.pipeline.pipeline import Pipeline
    from isthmus.host.state.database import HostState


class InstallConsents:
    """Consents of the user to servers; asks for those that are missing.

    Args:
        state: where agreements are kept; several processes may share it.
        pipeline: what everything goes through that is done.
        principal: who wants servers started.
        roots: the folders a server was granted, for the question.
        prepare: asked to do what comes between the agreement and the start, such as asking which
            folders a confined server may work in.
    """

    def __init__(
        self,
        state: "HostState",
        pipeline: "Pipeline | None" = None,
        *,
        principal: str = "user:local",
        roots: Callable[[ServerEntry], tuple[GrantedFolder, ...]] = lambda _entry: (),
        prepare: Callable[[ServerEntry], Awaitable[None]] | None = None,
    ) -> None:
        self._state = state
        self._pipeline = pipeline
        self._principal = principal
        self._roots = roots
        self._prepare = prepare
        self._known: set[str] = set()
        self._asking: dict[str, tuple[asyncio.Task[None], int]] = {}

    async def load(self) -> None:
        """Learn what is kept; again, to see what other processes have done."""
        rows = await self._state.read(
            lambda db: db.execute("SELECT digest FROM consent").fetchall()
        )
        self._known = {row[0] for row in rows}

    def is_agreed(self, entry: ServerEntry) -> bool:
        """Whether the user has agreed to this server as it is now."""
        return not (entry.command or entry.url) or compute_consent_digest(entry) in self._known

    async def ensure_consent(self, entry: ServerEntry) -> bool:
        """Whether a server may be started; the user is asked if they never were.

        Raises:
            Denied: it is not trusted, is not the program that is pinned, or the user said no.
        """
        if not entry.trusted:
            raise Denied(
                f"the server {entry.name!r} stands in a workspace that is not trusted "
                f"({entry.source}): look at it, then isthmus config trust",
                by="config",
            )
        problem = explain_unpinned(entry)
        if problem:
            raise Denied(problem, by="config")
        if not self.is_agreed(entry):
            await self._ask_once(entry)
        elif entry.url:
            await self._check_permitted(entry)
        if self._prepare is not None:
            await self._prepare(entry)
        return True

    async def give(self, entry: ServerEntry, by: str) -> None:
        """Write down that the user agreed.

        Args:
            entry: to what.
            by: where they did: on a surface, or by adding it themselves.
        """
        found, now = compute_consent_digest(entry), int(self._state.clock() * 1_000_000)
        await self._state.write(
            lambda db: db.execute(
                "INSERT OR REPLACE INTO consent (digest, server, given_by, given_us)"
                " VALUES (?, ?, ?, ?)",
                (found, entry.name, by, now),
            )
        )
        self._known.add(found)

    async def withdraw(self, server: str) -> bool:
        """Forget what was agreed for a server; False where nothing was."""
        gone = await self._state.write(
            lambda db: db.execute("DELETE FROM consent WHERE server = ?", (server,)).rowcount
        )
        await self.load()
        return gone > 0

    async def _ask_once(self, entry: ServerEntry) -> None:
        """Ask once for however many want it; the question goes when nobody wants it any more."""
        found = compute_consent_digest(entry)
        asking, waiting = self._asking.get(found, (None, 0))
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._ask(entry))
        self._asking[found] = asking, waiting + 1
        try:
            await asyncio.shield(asking)
        finally:
            _, waiting = self._asking[found]
            self._asking[found] = asking, waiting - 1
            if waiting == 1:
                del self._asking[found]
                asking.cancel()  # does nothing to one that is done

    async def _ask(self, entry: ServerEntry) -> None:
        """Ask, unless another process has meanwhile.

        Raises:
            Denied: the user said no, nobody was there, or policy forbids it.
        """
        await self.load()
        if self.is_agreed(entry):
            return
        if self._pipeline is None:
            raise Denied(
                f"nobody agreed that {entry.name!r} is run, and there is nobody to ask", by="nobody"
            )
        await self._pipeline.run(self._attempt(entry), self._act(entry))

    async def _check_permitted(self, entry: ServerEntry) -> None:
        """See that no rule forbids a connection that the user agreed to once.

        Raises:
            Denied: one does.
        """
        if self._pipeline is None:
            return
        trace = await self._pipeline.explain(self._attempt(entry), self._act(entry))
        rule = next((match.rule for match in trace.matches if match.effect == "deny"), "")
        if rule:
            why = f"a rule forbids that {entry.name!r} is connected to: {trace.reason or rule}"
            raise Denied(why, rule=rule, reason=trace.reason)

    def _act(self, entry: ServerEntry) -> "InstallAct":
        return (ConnectAct if entry.url else InstallAct)(entry, self.give, self._roots(entry))

    def _attempt(self, entry: ServerEntry) -> Attempt:
        action: Action = "server.connect" if entry.url else "server.install"
        return Attempt(
            id=new_id(),
            action=action,
            principal=self._principal,
            server=entry.name,
            object=entry.name,
            arguments=make_install_arguments(entry),
            origin=ASKER.get().origin,
            asker=ASKER.get().words,
        )


class InstallAct(Act[None]):
    """Agree that a server is run.

    Args:
        entry: which one.
        give: writes the agreement down.
        roots: the folders it would be confined to.
    """

    # SEP-1024: a client that runs a local server MUST have the user agree first, with the exact
    # command before them, uncut, said to be code that runs on their machine, and a way to say no.

    def __init__(
        self,
        entry: ServerEntry,
        give: Callable[[ServerEntry, str], Awaitable[None]],
        roots: tuple[GrantedFolder, ...] = (),
    ) -> None:
        self._entry = entry
        self._give = give
        self._roots = roots
        self._by = "policy"

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
        """Nothing: it is what the configuration says."""

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as above
        """Always: no rule runs a program that the user has not seen."""
        return True

    def coalesce(self, attempt: Attempt) -> str:  # noqa: ARG002 - as above
        """One answer is for all who want it started."""
        return f"server.install {compute_consent_digest(self._entry)}"

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as above
        """All that the user has to see."""
        return describe_install(self._entry, self._roots)

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt as it was: a command is changed in its file."""
        self._by = decision.by
        return attempt

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:  # noqa: ARG002 - as above
        """See that the program is still the one that is pinned.

        Raises:
            Denied: it is another one.
        """
        problem = explain_unpinned(self._entry)
        if problem:
            raise Denied(problem, by="config")

    async def dispatch(self, attempt: Attempt) -> None:  # noqa: ARG002 - as above
        """Write the agreement down."""
        await self._give(self._entry, self._by)

    def outcome(self, result: None) -> ActOutcome:  # noqa: ARG002 - as above
        """The digest that was agreed to."""
        return ActOutcome(detail={"consent": compute_consent_digest(self._entry)})


class ConnectAct(InstallAct):
    """Agree that a server is connected to; nothing has been sent there yet.

    A rule may say so in the user's place: no code of the server's runs on their machine.
    """

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as above
        """Where policy says so."""
        return trace.effect == "ask"

    def coalesce(self, attempt: Attempt) -> str:  # noqa: ARG002 - as above
        """One answer is for all who want the connection."""
        return f"server.connect {compute_consent_digest(self._entry)}"

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as above
        """The address, and the dangers of the way there."""
        return describe_connection(self._entry)

    async def dispatch(self, attempt: Attempt) -> None:  # noqa: ARG002 - as above
        """Write down what the user agreed to; what a rule allows lasts as long as the rule."""
        if self._by != "policy":
            await self._give(self._entry, self._by)


def describe_connection(entry: ServerEntry) -> ConnectAsked:
    """Describe a connection to the user before it is made, without secrets."""
    return ConnectAsked(
        where=mask_address(entry),
        headers=tuple(sorted(entry.headers)),
        source=entry.source,
        warnings=(*find_url_dangers(entry.url), *_list_exposures(entry)),
    )


def _list_exposures(entry: ServerEntry) -> tuple[str, ...]:
    """List what of the user's own a server gets to know with each request, by name."""
    return tuple(f"it is sent {name}, with what that stands for" for name in entry.sent)


def describe_install(entry: ServerEntry, roots: tuple[GrantedFolder, ...] = ()) -> InstallAsked:
    """Describe a server to the user before it is run: all of it, uncut, and without secrets."""
    resolved = find_executable(entry)
    argv = mask_command(entry)
    return InstallAsked(
        argv=argv,
        resolved=resolved,
        cwd=find_folder(entry),
        env=tuple(sorted(entry.env)),
        source=entry.source,
        warnings=find_dangers(
            argv, dict.fromkeys(entry.env, "") | find_loading_variables(entry), resolved
        ),
        sandbox=describe_sandbox(entry.options.sandbox, roots),
    )


def mask_address(entry: ServerEntry) -> str:
    """The address of a server with the user's own secrets hidden."""
    return hide_secrets(redact_url(entry.url), find_own_secrets(entry)) if entry.url else ""


def find_loading_variables(entry: ServerEntry) -> dict[str, str]:
    """The variables that make it run other code than its own, with what they say."""
    held = find_own_secrets(entry)
    return {k: hide_secrets(v, held) for k, v in sorted(entry.env.items()) if loads_code(k)}


def make_install_arguments(entry: ServerEntry) -> dict[str, Any]:
    """Make the arguments of an attempt to install a server, for rules to look at."""
    if entry.url:
        return {"url": mask_address(entry)}
    return {
        "command": list(mask_command(entry)),
        "cwd": find_folder(entry),
        "env": sorted(entry.env),
    }


def compute_consent_digest(entry: ServerEntry) -> str:
    """Digest what the user agrees to: whatever of it changes, they are asked again.

    A secret that is renewed changes nothing; a sandbox that opens does, and so does the value of a
    variable that makes programs load other code.
    """
    options = entry.options
    box = None if options.sandbox is None else msgspec.to_builtins(options.sandbox)
    program = find_executable(entry)
    said = [
        mask_command(entry),
        sorted(entry.env),
        find_loading_variables(entry),
        [find_folder(entry), program, find_interpreter(entry, program)] if entry.command else None,
        options.pin,
        mask_address(entry),
        sorted(name.lower() for name in entry.headers),
        box if entry.command else None,
        *([sorted(entry.sent)] if entry.sent else []),
    ]
    return hashlib.sha256(msgspec.json.encode(said, order="deterministic")).hexdigest()


def explain_unpinned(entry: ServerEntry) -> str:
    """Explain why a server is not the program that is pinned; empty where it is, or none is pinned.

    The pin is for the program's file, or for the script that an interpreter is given.
    """
    pin = entry.options.pin
    if not pin:
        return ""
    if not entry.command:
        return f"{entry.source}: server {entry.name!r}: a pin is for a program, and this one is reached by its URL"
    base = entry.cwd or os.getcwd()  # noqa: PTH109 - a text
    paths = [find_executable(entry)]
    paths += [
        str(Path(base, one)) for one in entry.command[1:] if Path(one).suffix in SCRIPT_SUFFIXES
    ]
    found = {path: digest_file(path) for path in paths if path}
    if pin in found.values():
        return ""
    have = (
        ", ".join(f"{path} is {said or 'not there'}" for path, said in found.items()) or "no file"
    )
    return (
        f"{entry.source}: server {entry.name!r} is not the program that is pinned: the pin is "
        f"{pin}, and {have}; if you changed it yourself, write the new one into host.pin"
    )
