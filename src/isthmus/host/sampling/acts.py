"""Sampling acts: a server's request and a model's response, as the pipeline handles them."""

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.core.sampling import find_result_flaw
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision, SamplingAsked, SamplingWritten
from isthmus.host.model.trace import Review, Trace
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.sampling.budgets import SamplingAllowance
from isthmus.host.sampling.completion import WrittenMessage
from isthmus.host.sampling.models import Models
from isthmus.host.sampling.request import (
    AutomaticAmount,
    BadEdit,
    apply_edit,
    digest_changes,
    digest_value,
    estimate_need,
    parse_wanted,
)
from isthmus.host.sampling.selection import Selection
from isthmus.wire import CreateMessageParams, CreateMessageResult

if TYPE_CHECKING:
    from isthmus.host.sampling.sampler import Sampler

REVIEWS_BEFORE: frozenset[Review | None] = frozenset({"both", "before"})
REVIEWS_AFTER: frozenset[Review | None] = frozenset({None, "both", "after"})
MAX_REWRITES = 5


def make_facts(asking: ServerQuestion) -> Facts:
    """Make the facts of the server that asks, for policy."""
    options = asking.entry.options
    return Facts(
        identity=asking.identity,
        trust=options.trust,
        labels=asking.labels,
        target=options.labels,
        era=asking.revision,
        transport=asking.entry.kind,
    )


class SampledText(Struct, frozen=True, kw_only=True):
    """A written message with its cost, its request and details for the audit log.

    Attributes:
        written: the answer.
        cost: in micro-dollars; None where the price is not known.
        asked: the request as it was put to the model.
        detail: for the audit log.
    """

    written: WrittenMessage
    cost: int | None
    asked: CreateMessageParams
    detail: dict[str, Any]


class SamplingRequestAct(Act[SampledText]):
    """A server's request, from the decision whether it may be put to a model to the answer.

    Args:
        sampler: has models write.
        asking: who asks.
        params: what they ask, with what context was added.
        models: the catalog.
        selection: how the model was chosen.
        context: what context was added, for the audit log.
    """

    def __init__(
        self,
        sampler: "Sampler",
        asking: ServerQuestion,
        params: CreateMessageParams,
        *,
        models: Models,
        selection: Selection,
        context: tuple[str, ...] = (),
    ) -> None:
        self._sampler = sampler
        self._asking = asking
        self._params = params
        self._models = models
        self._selection = selection
        self._context = context
        self._trace: Trace | None = None
        self._automatic: AutomaticAmount | None = (
            None  # how much a person allowed in advance, just now
        )
        self._remembered = False  # they said yes for longer than once
        self._was_edited = False  # they edited it
        self._is_covered = False  # an earlier yes for an amount covers it
        self._edit_digests: dict[str, list[str]] = {}

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as the pipeline calls it
        """The facts for policy."""
        return make_facts(self._asking)

    def check(self, attempt: Attempt) -> None:
        """Check the request, also an edited one: at most what the server asked for.

        Raises:
            BadArguments: it is not.
            BadEdit: a person made it so.
        """
        try:
            self._check_limits(attempt)
        except BadArguments as error:
            if self._was_edited:
                raise BadEdit(str(error)) from error
            raise

    def _check_limits(self, attempt: Attempt) -> None:
        now = parse_wanted(attempt.arguments)
        if now.model not in self._selection.possible:
            raise BadArguments(
                f"model {now.model!r} may not be used for this; "
                f"{', '.join(self._selection.possible)} may"
            )
        if attempt.object != now.model:
            raise BadArguments(f"the attempt is on {attempt.object!r}, and asks {now.model!r}")
        most = self._params.max_tokens
        if now.params.max_tokens > most:
            # spec 2026-07-28 client/sampling#sampling-parameters: MUST respect maxTokens
            raise BadArguments(f"maxTokens is {now.params.max_tokens}, and the server wants {most}")
        mine = [tool.name for tool in self._params.tools or ()]
        more = [tool.name for tool in now.params.tools or () if tool.name not in mine]
        if more:
            raise BadArguments(f"the server gave no tool {more[0]!r} to ask for")

    def asks(self, attempt: Attempt, trace: Trace) -> bool:
        """Whether a person reviews the request: unless a rule says otherwise, or an earlier yes."""
        # spec 2025-11-25 client/sampling#security-considerations: SHOULD implement user approval
        # controls; a human in the loop who may deny requests
        self._trace = trace
        review = trace.obligations.review
        if trace.effect == "ask":
            return review != "after"
        if not trace.grant and not self._sampler.is_granted(self._asking, attempt, trace):
            return review is None or review in REVIEWS_BEFORE
        allowance = self._sampler.budgets.allowance(attempt.run, attempt.server, attempt.object)
        if allowance is None:
            return False
        now = parse_wanted(attempt.arguments)
        about = estimate_need(now.params)
        cost = self._models[now.model].cost(about.tokens, about.max_tokens)
        self._is_covered = allowance.covers(about.tokens + about.max_tokens, cost)
        return not self._is_covered

    def payload(self, attempt: Attempt, trace: Trace) -> SamplingAsked:  # noqa: ARG002 - as called
        """The whole request, and how its model was chosen, for a person."""
        now = parse_wanted(attempt.arguments)
        about = estimate_need(now.params)
        return SamplingAsked(
            params=now.params,
            model=now.model,
            selection=self._selection.lines(),
            tokens=about.tokens,
            cost=self._models[now.model].cost(about.tokens, now.params.max_tokens),
            models=self._selection.possible,
        )

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """Apply a person's edit of the request, and the amount that they remember."""
        self._remembered, self._automatic = decision.remember != "once", None
        if decision.edited is UNSET:
            return attempt
        self._was_edited = True
        plain, self._automatic = apply_edit(attempt.arguments, decision.edited)
        self._edit_digests |= digest_changes(attempt.arguments, plain, self._sampler.state.key())
        if plain == attempt.arguments:
            return attempt
        return structs.replace(attempt, arguments=plain, object=str(plain["model"]))

    async def dispatch(self, attempt: Attempt) -> SampledText:
        """Have the model write."""
        if self._remembered:
            await self._allow(attempt)
        return await self._write(attempt)

    async def _allow(self, attempt: Attempt) -> None:
        """Keep the amount that a remembered yes is for; without one it is for any amount."""
        budgets, account = self._sampler.budgets, (attempt.run, attempt.server, attempt.object)
        if self._automatic is None:
            await budgets.forget(*account)
        elif attempt.run:
            allowed = SamplingAllowance(tokens=self._automatic.tokens, cost=self._automatic.cost)
            await budgets.allow(*account, allowed)

    async def review(self, attempt: Attempt, result: SampledText) -> SampledText:
        """Let a person look at what was written, unless a rule or an earlier yes says otherwise."""
        # spec 2025-11-25 client/sampling#user-interaction-model: SHOULD present generated
        # responses for review before delivery
        for _ in range(MAX_REWRITES):
            act = SamplingResponseAct(
                self._sampler,
                self._asking,
                result,
                wants=self._is_reviewed(),
                automatic=self._is_covered,
            )
            answer = self._asking.attempt("sampling.respond", attempt.object, act.described())
            answer = structs.replace(answer, parent=attempt.id, run=attempt.run)
            if not act.wants and not self._sampler.has_rule(answer, make_facts(self._asking)):
                return result
            seen = await self._sampler.pipeline.run(answer, act)
            if seen is not None:
                edits = {**result.detail.get("edited", {}), **act.edited_names}
                return structs.replace(
                    result,
                    written=structs.replace(result.written, result=seen),
                    detail={**result.detail, **({"edited": edits} if edits else {})},
                )
            result = await self._write(attempt)
        raise BadEdit(f"a model was to write anew more than {MAX_REWRITES} times")

    def outcome(self, result: SampledText) -> ActOutcome:
        """The outcome: tokens, cost, and which model it really was."""
        written = result.written
        return ActOutcome(
            result=msgspec.to_builtins(written.result),
            tokens_in=written.tokens_in,
            tokens_out=written.tokens_out,
            cost=result.cost,
            model=written.result.model,
            detail=result.detail,
        )

    def _is_reviewed(self) -> bool:
        trace = self._trace
        if trace is None or self._is_covered or self._sampler.by_hand(self._selection):
            return False
        return trace.obligations.review in REVIEWS_AFTER

    async def _write(self, attempt: Attempt) -> SampledText:
        now = parse_wanted(attempt.arguments)
        model = self._models[now.model]
        written, cost = await self._sampler.write(self._asking, model, now.params)
        await self._sampler.budgets.draw(
            attempt.run,
            attempt.server,
            attempt.object,
            written.tokens_in + written.tokens_out,
            cost or 0,
        )
        detail: dict[str, Any] = {
            "selection": list(self._selection.lines()),
            "stopReason": written.result.stop_reason or "",
        }
        if self._edit_digests:
            detail["edited"] = self._edit_digests
        if self._context:
            detail["context"] = list(self._context)
        if written.cut:
            detail["cut"] = True
        return SampledText(written=written, cost=cost, asked=now.params, detail=detail)


class SamplingResponseAct(Act[CreateMessageResult | None]):
    """A model's response on its way to the server; None where it is to be written anew.

    Its text is no argument of the attempt: the audit log keeps a digest of it and no more.

    Args:
        sampler: has models write.
        asking: who asked.
        text: what was written.
        wants: whether a person looks at it whatever policy says of it.
        automatic: whether an earlier yes for an amount covers it.

    Attributes:
        edited_names: digests of what a person edited, before and after.
    """

    def __init__(
        self,
        sampler: "Sampler",
        asking: ServerQuestion,
        text: SampledText,
        *,
        wants: bool,
        automatic: bool = False,
    ) -> None:
        self.wants = wants
        self._automatic = automatic
        self.edited_names: dict[str, list[str]] = {}
        self._sampler = sampler
        self._asking = asking
        self._text = text
        self._key = sampler.state.key()
        self._message: CreateMessageResult | None = text.written.result

    def described(self) -> dict[str, Any]:
        """The message without its text, as policy and the audit log see it."""
        if self._message is None:
            return {"regenerate": True}
        plain = msgspec.to_builtins(self._message)
        return {
            "stopReason": plain.get("stopReason", ""),
            "bytes": len(msgspec.json.encode(self._message)),
            "digest": digest_value(plain["content"], self._key),
        }

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as the pipeline calls it
        """The facts for policy."""
        return make_facts(self._asking)

    def check(self, attempt: Attempt) -> None:  # noqa: ARG002 - as called
        """Check that an edited message is one that a model could have given.

        Raises:
            BadEdit: it is not.
        """
        wrong = self._message and find_result_flaw(self._text.asked, self._message)
        if wrong:
            raise BadEdit(f"the edited message cannot be sent: {wrong}")

    def asks(self, attempt: Attempt, trace: Trace) -> bool:
        """Whether a person looks at it: an earlier yes counts where the rule lets it be remembered."""
        if trace.effect == "ask":
            return not (self._automatic and "tool_run" in trace.obligations.remember)
        return (
            self.wants
            and not trace.grant
            and not self._sampler.is_granted(self._asking, attempt, trace)
        )

    def payload(self, attempt: Attempt, trace: Trace) -> SamplingWritten:  # noqa: ARG002 - as called
        """The whole message, what was asked and what it took."""
        written = self._text.written
        return SamplingWritten(
            params=self._text.asked,
            result=self._message or written.result,
            tokens_in=written.tokens_in,
            tokens_out=written.tokens_out,
            cost=self._text.cost,
        )

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The message as a person left it: a text, the message, or ``{"regenerate": true}``.

        Raises:
            BadEdit: it is none of them.
        """
        if decision.edited is UNSET:
            return attempt
        before = msgspec.to_builtins(self._text.written.result)
        after = apply_message_edit(before, decision.edited)
        self._message = None if after is None else parse_message(after)
        if after is not None:
            named = digest_changes(before, after, self._key).items()
            self.edited_names = {f"result.{name}": pair for name, pair in named}
        described = self.described()
        if described == attempt.arguments:
            return attempt
        return structs.replace(attempt, arguments=described)

    async def dispatch(self, attempt: Attempt) -> CreateMessageResult | None:  # noqa: ARG002 - as called
        """Return the message."""
        return self._message


def apply_message_edit(before: dict[str, Any], edited: Any) -> dict[str, Any] | None:
    """Apply a person's edit to a message of plain data; None where it is to be written anew.

    Raises:
        BadEdit: that is nothing one can make of it.
    """
    try:
        given: Any = msgspec.to_builtins(edited)
    except TypeError as error:
        raise BadEdit(f"the edited message is malformed: {error}") from error
    if isinstance(given, str):
        given = {"content": {"type": "text", "text": given}}
    if not isinstance(given, dict):
        raise BadEdit("an edited message is a text or an object")
    return None if given.get("regenerate") is True else {**before, **given}


def parse_message(plain: dict[str, Any]) -> CreateMessageResult:
    """Parse a message of plain data.

    Raises:
        BadEdit: it is none.
    """
    try:
        return msgspec.convert(plain, CreateMessageResult)
    except msgspec.ValidationError as error:
        raise BadEdit(f"the message is malformed: {error}") from error
