"""Fingerprints of tools: each says whether a tool is still what it was when it was approved.

What is first seen is what counts: the user agreed to the server, and so to the tools that it had
then. What changes later was agreed to by nobody. A tool that is gone and comes back is compared with
what it was before, and one whose members come in another order has not changed.
"""

import hashlib
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from isthmus.host.approvals.differences import compare_definitions
from isthmus.host.approvals.fingerprint_storage import (
    FingerprintStorage,
    FingerprintTable,
    KnownDefinition,
    ToolKey,
)
from isthmus.host.model.errors import Exhausted
from isthmus.wire import UNSET, Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.host.state.database import HostState

MAX_TOOLS = 100_000  # a server that makes up names must not fill the memory
MAX_TOOLS_OF_SERVER = 10_000
MAX_DEFINITION_BYTES = 256 * 1024  # of a definition that is kept whole, to be shown beside another
MAX_CACHED_FINGERPRINTS = 4_096


def encode_definition(tool: Tool) -> bytes:
    """Encode a tool as canonical JSON: what a model reads of it, and what it says it does.

    Icons do not count, since nothing shows them, nor does what ``_meta`` says beyond the page of an
    app, which is for programs and may be another one each time. Whether it may run as a task is said in
    one revision only, so that it would be another tool once its server speaks a newer one.
    """
    said: dict[str, Any] = {"name": tool.name, "inputSchema": tool.input_schema}
    optional = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    said |= {name: value for name, value in optional.items() if value is not UNSET}
    if tool.meta is not UNSET and "ui" in tool.meta:
        said["_meta.ui"] = tool.meta["ui"]
    return msgspec.json.encode(said, order="sorted")


def compute_fingerprint(tool: Tool) -> str:
    """SHA-256 of what a tool is, in hex, whatever the order of its members."""
    return hashlib.sha256(encode_definition(tool)).hexdigest()


class ToolChange(Struct, frozen=True, kw_only=True):
    """A tool whose definition is not the one that is known.

    Attributes:
        server: the server's name, ``identity`` what it is bound to, ``tool`` the tool's name.
        before: the definition that is known, as canonical JSON, and ``known`` its fingerprint; of
            one larger than 256 KiB the beginning of its texts.
        after: the one the server gives now, and ``compute_fingerprint`` its own.
    """

    server: str
    identity: str
    tool: str
    before: bytes
    after: bytes
    known: str
    fingerprint: str

    def diff(self) -> tuple[str, ...]:
        """The lines in which they differ, ``-`` before and ``+`` after."""
        return compare_definitions(
            msgspec.json.decode(self.before), msgspec.json.decode(self.after)
        )


class Fingerprints:
    """The definitions that are known, in the host's state.

    Args:
        state: where they are kept, unless ``storage`` says so.
        storage: keeps them elsewhere: in a store that hosts share.

    Attributes:
        watchers: called whenever :attr:`releases` counts on.
    """

    def __init__(self, state: "HostState", storage: "FingerprintStorage | None" = None) -> None:
        self._storage = storage or FingerprintTable(state)
        self._known: dict[ToolKey, KnownDefinition] = {}
        self._unsure: set[ToolKey] = set()  # another process may have been first
        self._counts: dict[tuple[str, str], int] = {}
        self._made: dict[int, tuple[Tool, str]] = {}
        self.watchers: list[Callable[[], None]] = []
        self._releases = 0

    @property
    def releases(self) -> int:
        """How often what is known has changed since this was made."""
        return self._releases

    @releases.setter
    def releases(self, number: int) -> None:
        self._releases = number
        for tell in self.watchers:
            tell()

    async def load(self) -> None:
        """Read what is known.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        self._known = await self._storage.load()
        self._unsure.clear()
        self._counts = {}
        for server, identity, _ in self._known:
            key = server, identity
            self._counts[key] = self._counts.get(key, 0) + 1

    async def refresh(self) -> None:
        """Read again where another process has released a tool since it was read.

        Raises:
            StoreUnavailable: it cannot be read.
        """
        if await self._storage.has_changed():
            await self.load()
            self.releases += 1

    def check(self, server: str, identity: str, tool: Tool) -> str | ToolChange | None:
        """Compare a tool with what is known.

        Args:
            server: the server's name in the configuration.
            identity: what it is bound to.
            tool: its definition now.

        Returns:
            Its fingerprint where it is what is known; a change where it is not; None where the
            tool was never seen, or just now: then :meth:`learn` it, or refuse it.
        """
        place = server, identity, tool.name
        known = self._known.get(place)
        if known is None or place in self._unsure:
            return None
        now = self._fingerprint(tool)
        return now if now == known[0] else self._change(server, identity, tool, known)

    def hides(self, server: str, identity: str, tool: Tool) -> bool:
        """Whether a tool is kept from models, since it is not what it was when they were told of it.

        One that was never seen is known from now on: what a model reads of a tool has its effect
        without any call of it. That is durable within milliseconds.
        """
        known = self._known.get((server, identity, tool.name))
        if known is not None:
            return self._fingerprint(tool) != known[0]
        if self._full(server, identity):
            return True
        self._post(server, identity, tool)
        return False

    def _post(self, server: str, identity: str, tool: Tool) -> None:
        place, now = (server, identity, tool.name), (self._fingerprint(tool), _make_kept_text(tool))
        self._remember(place, now)
        self._unsure.add(place)
        self._storage.post(place, now, lambda first: self._take_first(place, now, first))

    def _take_first(
        self, place: ToolKey, posted: KnownDefinition, first: KnownDefinition | None
    ) -> None:
        """What counts is what the first process saw; None where nobody knows what it was."""
        if first is None or place not in self._unsure:
            return
        self._remember(place, first)
        if first[0] != posted[0]:
            self.releases += 1  # lists that were made meanwhile are made again

    def _remember(self, place: ToolKey, known: KnownDefinition) -> None:
        if place not in self._known:
            of_server = place[0], place[1]
            self._counts[of_server] = self._counts.get(of_server, 0) + 1
        self._known[place] = known
        self._unsure.discard(place)

    def _full(self, server: str, identity: str) -> bool:
        of_server = self._counts.get((server, identity), 0)
        return of_server >= MAX_TOOLS_OF_SERVER or len(self._known) >= MAX_TOOLS

    async def learn(self, server: str, identity: str, tool: Tool) -> str | ToolChange:
        """Know a tool that was never seen, or see what other processes know of it.

        It is durable when this returns. Where another process was first, that one counts; where
        another one has released what this tool has become, it is no change any more.

        Raises:
            Exhausted: the server has made up more names than anybody needs.
            StoreUnavailable: it was not learned.
        """
        found = self.check(server, identity, tool)
        if isinstance(found, str):
            return found
        place, now = (server, identity, tool.name), self._fingerprint(tool)
        if place not in self._known and self._full(server, identity):
            raise Exhausted(
                f"server {server!r} has had more than {MAX_TOOLS_OF_SERVER} tools: nobody can know "
                f"them all, and {tool.name[:80]!r} is not used"
            )
        known = await self._storage.insert(place, (now, _make_kept_text(tool)))
        self._remember(place, known)
        return now if known[0] == now else self._change(server, identity, tool, known)

    async def release(self, change: ToolChange) -> str:
        """From now on the new definition is the known one: a person said yes to it.

        It is durable when this returns. What was granted for the old one stays suspended.

        Returns:
            Its fingerprint.

        Raises:
            StoreUnavailable: it was not released.
        """
        kept = zlib.compress(_truncate_definition(change.after), 1)
        place = change.server, change.identity, change.tool
        known = change.fingerprint, kept
        await self._storage.replace(place, known)
        self._remember(place, known)
        self.releases += 1
        return change.fingerprint

    def _fingerprint(self, tool: Tool) -> str:
        """As :func:`compute_fingerprint`, made once for each definition that was received."""
        made = self._made.get(id(tool))
        if made is not None and made[0] is tool:
            return made[1]
        now = compute_fingerprint(tool)
        if len(self._made) >= MAX_CACHED_FINGERPRINTS:
            self._made.clear()
        self._made[id(tool)] = (tool, now)
        return now

    def _change(self, server: str, identity: str, tool: Tool, known: KnownDefinition) -> ToolChange:
        return ToolChange(
            server=server,
            identity=identity,
            tool=tool.name,
            before=zlib.decompress(known[1]),
            after=encode_definition(tool),
            known=known[0],
            fingerprint=self._fingerprint(tool),
        )


def _make_kept_text(tool: Tool) -> bytes:
    return zlib.compress(_truncate_definition(encode_definition(tool)), 1)


def _truncate_definition(said: bytes) -> bytes:
    """A definition as it is kept: of a huge one the beginnings, which are what can be shown."""
    if len(said) <= MAX_DEFINITION_BYTES:
        return said
    members: dict[str, Any] = msgspec.json.decode(said)
    short = {name: _truncate_value(value) for name, value in members.items()}
    return msgspec.json.encode(short, order="sorted")


def _truncate_value(value: Any) -> Any:
    each = MAX_DEFINITION_BYTES // 8
    text = value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()
    if len(text) <= each:
        return value
    return f"{text[:each]}\n… ({len(text) - each:,} more characters)"
