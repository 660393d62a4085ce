"""What a rule is: a closed vocabulary, so that a policy can be checked, compared and explained."""

from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from isthmus.host.attempt import Action, Origin
from isthmus.host.policy.predicates import Predicate
from isthmus.host.policy.trace import Effect, Obligations

__all__ = [
    "ACTIONS",
    "HINTS",
    "KINDS",
    "LAYERS",
    "OBJECTS",
    "ORIGINS",
    "TIGHTENING",
    "LayerName",
    "PolicyLayer",
    "Rule",
    "When",
]

LayerName: TypeAlias = Literal["default", "managed", "user", "workspace", "session"]

LAYERS: tuple[LayerName, ...] = get_args(LayerName)
"""Where rules can stand; between rules of the same weight the later layer counts."""

TIGHTENING = frozenset({"workspace", "session"})
"""Layers that may demand more than the others, and never less."""

ACTIONS: tuple[str, ...] = get_args(Action)
ORIGINS: tuple[str, ...] = get_args(Origin)

OBJECTS: dict[str, tuple[str, ...]] = {
    "tool": ("tool.call", "tool.change"),
    "uri": ("resource.read", "resource.subscribe", "elicit.url"),
    "prompt": ("prompt.get",),
    "object": ACTIONS,
}
"""The keys that name what is wanted, and the actions in which there is such a thing."""

HINTS = {
    "read_only": (True, False),
    "destructive": (False, True),
    "idempotent": (True, False),
    "open_world": (False, True),
}
"""What a tool can be said to be: the harmless value, and the one that is taken where nobody is
trusted to say anything else."""

Kind: TypeAlias = Literal["globs", "words", "flag", "hints"]

KINDS: dict[str, Kind] = {
    "action": "globs",
    "server": "globs",
    "tool": "globs",
    "uri": "globs",
    "prompt": "globs",
    "object": "globs",
    "principal": "globs",
    "origin": "words",
    "labels": "words",
    "reads": "words",
    "egress": "flag",
    "annotations": "hints",
    "era": "globs",
    "transport": "globs",
    "workspace": "globs",
    "unattended": "flag",
}
"""The keys of ``when`` and ``unless``, and what each of them takes."""


class When(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Circumstances; all that are named must hold.

    Attributes:
        action: what is wanted; one of them, also as a glob: ``"sampling.*"``.
        server: the server's name.
        tool: the tool's name, ``uri`` the resource or page, ``prompt`` the prompt, each as the
            server spells it, and only where the action is about such a thing; ``object`` is any.
        principal: who wants it: ``user:*``, ``agent:*``, ``server:NAME``.
        origin: by which way it came; one of them.
        labels: what the run has taken over from results; all of them.
        reads: what the server or tool has access to, by its configuration; all of them.
        egress: whether what it is given leaves the machine, by its configuration.
        annotations: what the tool is said to be, by a server that is trusted to say so.
        era: the revision spoken.
        transport: how the server is reached.
        workspace: the folder that is worked in.
        unattended: whether nobody is there who can be asked.
    """

    action: tuple[str, ...] = ()
    server: tuple[str, ...] = ()
    tool: tuple[str, ...] = ()
    uri: tuple[str, ...] = ()
    prompt: tuple[str, ...] = ()
    object: tuple[str, ...] = ()
    principal: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    egress: bool | None = None
    annotations: tuple[tuple[str, bool], ...] = ()
    era: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    workspace: tuple[str, ...] = ()
    unattended: bool | None = None

    def named(self) -> dict[str, Any]:
        """The circumstances that are named, by their keys."""
        return {
            key: value for key in KINDS if (value := getattr(self, key)) is not None and value != ()
        }


class Rule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One rule.

    Attributes:
        id: its name, shown in every trace.
        effect: what is to happen.
        when: the circumstances in which it counts.
        where: what the arguments must be like; all of them.
        unless: circumstances in which it is stricter by a step: ``allow`` asks, ``ask`` denies.
        reason: why, for the person who is asked.
        obligations: what else it demands.
        line: where it begins in its file; 0 where it comes from none.
    """

    id: str
    effect: Effect
    when: When = When()
    where: tuple[Predicate, ...] = ()
    unless: When | None = None
    reason: str = ""
    obligations: Obligations = Obligations()
    line: int = 0


class PolicyLayer(Struct, frozen=True, kw_only=True):
    """The rules of one file.

    Attributes:
        name: where it stands.
        rules: its rules.
        source: the file; empty for one that was made in a program.
        broken: why it cannot be read; empty where it can.
    """

    name: LayerName
    rules: tuple[Rule, ...] = ()
    source: str = ""
    broken: str = ""
