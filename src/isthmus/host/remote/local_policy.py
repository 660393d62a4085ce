"""Policy of a host in this process, as its surfaces ask for it: layers, dry runs, replays, promotion."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from isthmus.host.audit.queries import AuditFilters, read_attempts
from isthmus.host.model.errors import ConfigError, PolicyError
from isthmus.host.model.row import AuditRow
from isthmus.host.model.trace import Obligations
from isthmus.host.model.view import (
    PolicyAnswer,
    PolicyLayerLine,
    PolicyRuleLine,
    PromotionOutcome,
    ReplayChange,
    ReplayReport,
)
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.replay import ReplayResult, replay_policy
from isthmus.host.policy.rule import PolicyLayer, format_rules
from isthmus.host.policy.rule_file import read_layers
from isthmus.host.remote.requests import AskLayers, AskPromote, AskReplay, AskTry

if TYPE_CHECKING:
    from isthmus.host.remote.viewed_host import ViewedHost

MAX_CHANGES = 500  # in one report
GIVEN_PASTE = (
    'Host(policy="…")  # or isthmus host --policy …, with the file or name of the shadow policy'
)
OWN_LAYERS = frozenset({"default", "user"})  # the others are not the user's to take away


class PolicyRequests:
    """Answers requests about policy.

    Args:
        host: whose policy it is.
    """

    def __init__(self, host: "ViewedHost") -> None:
        self._host = host
        self.answers: dict[type, Callable[[Any], Awaitable[object]]] = {
            AskLayers: self._list_layers,
            AskTry: self._try,
            AskReplay: self._replay,
            AskPromote: self._promote,
        }

    async def _list_layers(self, _request: AskLayers) -> Sequence[PolicyLayerLine]:
        pipeline, hits = self._host.calls.pipeline, self._host.traffic.count_hits()
        found = [make_layer_line(layer, layer.name, hits) for layer in pipeline.policy.layers]
        if pipeline.shadow is not None:
            found += [make_layer_line(layer, "shadow", {}) for layer in pipeline.shadow.layers]
        return found

    async def _try(self, request: AskTry) -> PolicyAnswer:
        draft = request.draft
        trace = await self._host.policy.explain(
            action=draft.action,
            server=draft.server,
            tool=draft.object,
            args=draft.arguments,
            principal=draft.principal or "user:local",
            origin=draft.origin,
            profile=draft.profile,
        )
        return PolicyAnswer(
            effect=trace.effect,
            rule=trace.rule,
            reason=trace.reason,
            matches=trace.matches,
            obligations=tuple(describe_obligations(trace.obligations)),
            grant=trace.grant,
            chain=trace.chain,
        )

    async def _replay(self, request: AskReplay) -> ReplayReport:
        policy, filters = read_policy_text(request.policy), AuditFilters(since=request.since)
        result = await self._host.audit.read(
            lambda db: replay_policy(policy, read_attempts(db, filters))
        )
        return make_report(result)

    async def _promote(self, request: AskPromote) -> PromotionOutcome | None:
        pipeline = self._host.calls.pipeline
        shadow, before = pipeline.shadow, pipeline.policy
        if shadow is None:
            return None
        if shadow.broken:
            raise PolicyError("; ".join(shadow.broken))
        kept = [layer for layer in before.layers if layer.name not in OWN_LAYERS]
        promoted = Policy([*(one for one in shadow.layers if one.name in OWN_LAYERS), *kept])
        detail = {"before": before.version, "after": promoted.version, "keep": request.keep}
        row = AuditRow(
            kind="policy", action="policy.promote", effect="allow", approver=request.by,
            policy=promoted.version, detail=detail,
        )  # fmt: skip
        await self._host.audit.write(row)
        pipeline.policy, pipeline.shadow = promoted, None
        return await self._keep(wanted=request.keep)

    async def _keep(self, *, wanted: bool) -> PromotionOutcome:
        """Write the policy into the configuration that names it as shadow, where that is wanted and can be."""
        from isthmus.host.config.write import ShadowMember  # few surfaces change a policy

        try:
            member = ShadowMember.find(self._host.config)
        except ConfigError as error:
            return PromotionOutcome(reason=str(error))
        if member is None:
            reason = (
                "no configuration file names a shadow policy: the program that made the host does"
            )
            return PromotionOutcome(reason=reason if wanted else "", paste=GIVEN_PASTE)
        if self._host.calls.pipeline.is_given:
            reason = (
                "whoever started the host gave a policy, which counts before the configuration's"
            )
            return PromotionOutcome(reason=reason if wanted else "", paste=GIVEN_PASTE)
        told = PromotionOutcome(paste=member.spell(), place=member.path)
        if not wanted:
            return told
        try:
            member.promote()
        except ConfigError as error:
            return structs.replace(told, reason=str(error))
        await self._host.reread()
        return structs.replace(told, file=member.path)


def make_layer_line(
    layer: PolicyLayer, name: str, hits: Mapping[tuple[str, str], int]
) -> PolicyLayerLine:
    """A layer of rules, as a person is shown it."""
    return PolicyLayerLine(
        layer=name,
        source=layer.source,
        broken=layer.broken,
        rules=tuple(
            PolicyRuleLine(
                name=rule.id,
                effect=rule.effect,
                text=format_rules([rule]).strip(),
                hits=hits.get((layer.name, rule.id), 0),
            )
            for rule in layer.rules
        ),
    )


def describe_obligations(demanded: Obligations) -> list[str]:
    """The obligations that are not the usual ones, in words."""
    usual = structs.asdict(Obligations())
    return [
        f"{name} = {', '.join(value) if isinstance(value, tuple) else value}"
        for name, value in structs.asdict(demanded).items()
        if value != usual[name]
    ]


def read_policy_text(text: str) -> Policy:
    """The policy of this name, or of these rules; no file is read for a surface.

    Raises:
        PolicyError: there is no such policy, or the rules cannot be read.
    """
    if "=" in text or "\n" in text.strip():
        return Policy(read_layers(text, "user", source="the text"))
    return Policy.named(text.strip())


def make_report(result: ReplayResult) -> ReplayReport:
    """The report of a replay."""
    changes = [
        ReplayChange(**structs.asdict(change), times=times) for change, times in result.differences
    ]
    return ReplayReport(
        attempts=result.rows,
        skipped=result.skipped,
        changed=sum(change.times for change in changes),
        changes=tuple(changes[:MAX_CHANGES]),
    )
