"""Facts of an attempt: the circumstances that policy may look at besides the attempt itself, and its risk.

The audit log records them with a row, so that the attempt can be decided anew.
"""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import Struct

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.entries import Labels
from isthmus.host.model.interaction import Risk
from isthmus.host.model.trace import Assurance
from isthmus.host.model.view import AuditLine
from isthmus.wire import ToolAnnotations

# they change nothing by themselves, whatever a server says
READ_ACTIONS = frozenset(
    {"resource.read", "resource.subscribe", "prompt.get", "completion", "task.cancel"}
)
GRAVE_ACTIONS = frozenset({"server.install", "tool.change", "context.share"})
HINT_FIELDS = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")


class Facts(Struct, frozen=True, kw_only=True):
    """The circumstances of an attempt. An unknown fact counts as a stranger's, the default of each.

    Attributes:
        identity: what the server's name is bound to: its command and program, or its address.
        trust: how far the configuration trusts the server.
        annotations: what the server says of the tool; counts only where ``trust`` says so.
        fingerprint: of the tool's definition, in hex; empty for what is no tool.
        labels: what the run has taken over from results so far.
        chain: where that came from, a line for a person each, the first first.
        target: what the configuration says of the data of the server, or of this tool.
        era: the revision spoken.
        transport: how the server is reached: ``stdio``, ``http``, ``memory`` and so on.
        workspace: the folder that is worked in; empty for none.
        cwd: the folder that the server runs in, for paths that are not absolute; empty where that
            is not known.
        now: seconds since the epoch.
        attended: whether somebody is there who can be asked.
        assurance: how sure one can be that it is a person who would be asked.
        calls: how many attempts of this run each rule let through so far, by the rule's id.
    """

    identity: str = ""
    trust: Literal["untrusted", "annotations", "full"] = "untrusted"
    annotations: ToolAnnotations | None = None
    fingerprint: str = ""
    labels: frozenset[str] = frozenset()
    chain: tuple[str, ...] = ()
    target: Labels = Labels()
    era: str = ""
    transport: str = ""
    workspace: str = ""
    cwd: str = ""
    now: float = 0.0
    attended: bool = True
    assurance: Assurance = "callback"
    calls: Mapping[str, int] = {}


class RecordedFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts that a row does not hold elsewhere, and only those that differ from a stranger's."""

    trust: Literal["untrusted", "annotations", "full"] = "untrusted"
    hints: dict[str, bool] | None = None
    egress: bool = False
    reads: tuple[str, ...] = ()
    workspace: str = ""
    cwd: str = ""
    attended: bool = True


NOTHING_RECORDED = RecordedFacts()

get_revision = attrgetter("era")


def record_facts(facts: Facts) -> dict[str, Any]:
    """Record facts that a row does not hold elsewhere, as plain data; empty for a stranger's."""
    target, said = facts.target, facts.annotations
    hints = None
    if said is not None and facts.trust != "untrusted":
        found = {name: getattr(said, name) for name in HINT_FIELDS}
        hints = {name: value for name, value in found.items() if isinstance(value, bool)}
    kept: dict[str, Any] = msgspec.to_builtins(
        RecordedFacts(
            trust=facts.trust,
            hints=hints,
            egress=target.egress,
            reads=target.reads,
            workspace=facts.workspace,
            cwd=facts.cwd,
            attended=facts.attended,
        )
    )
    return kept


def restore_facts(line: AuditLine) -> Facts:
    """Restore facts from a row; those that it does not tell are a stranger's.

    Whoever was asked then is taken for somebody whose yes is sure.
    """
    detail = line.detail if isinstance(line.detail, Mapping) else {}
    try:
        known = msgspec.convert(detail.get("facts") or {}, RecordedFacts)
    except msgspec.ValidationError:
        known = NOTHING_RECORDED
    hints: dict[str, Any] = known.hints or {}
    return Facts(
        era=get_revision(line),
        identity=line.identity,
        trust=known.trust,
        annotations=ToolAnnotations(**{name: hints[name] for name in HINT_FIELDS if name in hints}),
        fingerprint=line.fingerprint,
        labels=frozenset(line.labels),
        target=Labels(reads=known.reads, egress=known.egress),
        transport=line.transport,
        workspace=known.workspace,
        cwd=known.cwd,
        now=line.at,
        attended=known.attended,
        assurance="second_person",
    )


def rate_risk(attempt: Attempt, facts: Facts) -> Risk:
    """Rate the risk of an attempt; the claims of a server count where it is trusted."""
    if attempt.action in GRAVE_ACTIONS or (facts.chain and facts.target.egress):
        return "high"
    if attempt.action in READ_ACTIONS:
        return "low"
    hints = facts.annotations if facts.trust != "untrusted" else None
    if hints is not None and hints.read_only_hint is True:
        return "low"
    if attempt.action == "tool.call":
        harmless = hints is not None and hints.destructive_hint is False
        return "medium" if harmless or not facts.target.egress else "high"
    return "medium"
