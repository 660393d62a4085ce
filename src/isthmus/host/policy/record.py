"""What the audit log keeps of an attempt's circumstances, so that it can be decided anew."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Literal

import msgspec
from msgspec import Struct

from isthmus.host.config.entries import Labels
from isthmus.host.policy.facts import Facts
from isthmus.host.view import AuditLine
from isthmus.wire import ToolAnnotations

__all__ = ["facts_of", "kept"]

HINTS = ("read_only_hint", "destructive_hint", "idempotent_hint", "open_world_hint")


class Kept(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a row does not hold anyway, and only what is not as for a stranger."""

    trust: Literal["untrusted", "annotations", "full"] = "untrusted"
    hints: dict[str, bool] | None = None
    egress: bool = False
    reads: tuple[str, ...] = ()
    workspace: str = ""
    cwd: str = ""
    attended: bool = True


STRANGER = Kept()

revision_of = attrgetter("era")


def kept(facts: Facts) -> dict[str, Any]:
    """The circumstances that a row does not hold anyway, as plain data; empty for a stranger's."""
    target, said = facts.target, facts.annotations
    hints = None
    if said is not None and facts.trust != "untrusted":
        found = {name: getattr(said, name) for name in HINTS}
        hints = {name: value for name, value in found.items() if isinstance(value, bool)}
    kept: dict[str, Any] = msgspec.to_builtins(
        Kept(
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


def facts_of(line: AuditLine) -> Facts:
    """The circumstances again; what a row does not tell is as for a stranger.

    Whoever was asked then is taken for somebody whose yes is sure.
    """
    detail = line.detail if isinstance(line.detail, Mapping) else {}
    try:
        known = msgspec.convert(detail.get("facts") or {}, Kept)
    except msgspec.ValidationError:
        known = STRANGER
    hints: dict[str, Any] = known.hints or {}
    return Facts(
        era=revision_of(line),
        identity=line.identity,
        trust=known.trust,
        annotations=ToolAnnotations(**{name: hints[name] for name in HINTS if name in hints}),
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
