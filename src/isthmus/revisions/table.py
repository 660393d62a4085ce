"""A revision as a table of what may be said, derived from the table before it."""

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, TypeAlias

import msgspec

Sender: TypeAlias = Literal["client", "server"]
"""The side that sends a message."""

MemberNames: TypeAlias = Mapping[type, str]
"""Names of members by the struct they belong to, separated by blanks."""


class Era(Enum):
    """The two ways to hold a conversation: sessions with a handshake, or requests that stand alone."""

    LEGACY = "legacy"
    MODERN = "modern"


class Feature(Enum):
    """A feature of the wire of a revision; each is read in exactly one place."""

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is a Python function

    BATCHING = "JSON-RPC batches"
    STREAMABLE_HTTP = "one HTTP endpoint, answers as JSON or as an event stream"
    SESSION_HEADER = "the Mcp-Session-Id header"
    RESUMPTION = "event streams go on after Last-Event-ID"
    PRIMING = "event streams begin with an empty event, and may be polled"
    VERSION_HEADER = "the MCP-Protocol-Version header"
    ROUTING_HEADERS = "the Mcp-Method, Mcp-Name and Mcp-Param-* headers"
    STRUCTURED_OUTPUT = "tools have output schemas and structured content"
    ELICITATION_FORM = "servers ask the user by a form"
    ELICITATION_URL = "servers ask the user by a page elsewhere"
    URL_REQUIRED_ERROR = "an error tells the client to open a page first (-32042)"
    SAMPLING_TOOLS = "models asked by a server may use tools"
    TASKS = "requests may run as tasks"
    EXTENSIONS = "capabilities.extensions"
    RESULT_TYPE = "results say their type"
    CACHE_HINTS = "results say how long they may be cached"
    SERVER_STAMP = "results say who made them"
    DISCONNECT_CANCELS = "closing an HTTP response cancels its request"


class Revision(msgspec.Struct, frozen=True, eq=False, repr_omit_defaults=True):
    """One published revision of the protocol; compared and hashed by identity.

    Attributes:
        name: its date, as on the wire.
        era: how conversations are held in it.
        features: what its wire can do.
        methods: the methods each side may send, requests and notifications alike.
        members: the members of each struct that it knows; structs it lacks are not there.
        extended_methods: what the extensions of the protocol's own organisation add to ``methods``.
        extended_members: what they add to ``members``.
    """

    name: str
    era: Era
    features: frozenset[Feature]
    methods: Mapping[str, frozenset[str]]
    members: Mapping[type, frozenset[str]]
    extended_methods: Mapping[str, frozenset[str]] = msgspec.field(default_factory=dict)
    extended_members: Mapping[type, frozenset[str]] = msgspec.field(default_factory=dict)

    def has(self, feature: Feature) -> bool:
        """Whether its wire can do this.

        Args:
            feature: the feature.
        """
        return feature in self.features

    def allows(self, sender: Sender, method: str) -> bool:
        """Whether that side may send that method, request or notification.

        One of an extension's counts: whether both sides have the extension is for others to say.

        Args:
            sender: the side that sends: ``"client"`` or ``"server"``.
            method: the method's name.
        """
        return method in self.methods[sender] or method in self.extended_methods.get(sender, ())

    def knows(self, shape: type) -> bool:
        """Whether it has this struct of :mod:`isthmus.wire`.

        Args:
            shape: the struct's class.
        """
        return shape in self.members

    def visible_members(self, shape: type[msgspec.Struct]) -> Collection[str]:
        """The members of a struct that may travel: all of them where no table names it.

        Args:
            shape: the struct's class.
        """
        known = self.members.get(shape)
        if known is None:
            return shape.__struct_fields__
        return known | self.extended_members.get(shape, frozenset())

    def evolve(
        self,
        name: str,
        *,
        era: Era | None = None,
        features: Iterable[Feature] = (),
        without: Iterable[Feature] = (),
        methods: Mapping[str, str] | None = None,
        without_methods: Mapping[str, str] | None = None,
        fields: MemberNames | None = None,
        without_fields: MemberNames | None = None,
        without_types: Iterable[type] = (),
        extended_methods: Mapping[str, str] | None = None,
        extended_fields: MemberNames | None = None,
    ) -> "Revision":
        """The revision after this one.

        Args:
            name: its date.
            era: its era where it differs.
            features: features that came.
            without: features that went.
            methods: methods that came, by sender, separated by blanks.
            without_methods: methods that went.
            fields: members that came; a struct named for the first time came with them.
            without_fields: members that went.
            without_types: structs that went.
            extended_methods: methods that came with extensions.
            extended_fields: members that came with extensions.
        """
        return Revision(
            name,
            era or self.era,
            self.features.union(features).difference(without),
            _apply_changes(self.methods, methods or {}, without_methods or {}),
            _apply_changes(self.members, fields or {}, without_fields or {}, without_types),
            _apply_changes(self.extended_methods, extended_methods or {}, {}),
            _apply_changes(self.extended_members, extended_fields or {}, {}),
        )

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Revision {self.name}>"


def _apply_changes(
    before: Mapping[Any, frozenset[str]],
    came: Mapping[Any, str],
    went: Mapping[Any, str],
    gone: Iterable[Any] = (),
) -> Mapping[Any, frozenset[str]]:
    after = dict(before)
    for key, names in came.items():
        after[key] = after.get(key, frozenset()).union(names.split())
    for key, names in went.items():
        after[key] = after[key].difference(names.split())
    for key in gone:
        del after[key]
    return after
