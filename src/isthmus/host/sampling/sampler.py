"""Sampler: answers the sampling requests of servers, with the user in charge.

A request is validated and counted, gets the context that policy lets it have, and a model; then it
passes the pipeline, where policy decides and a person looks at it. What the model wrote is looked at
again before the server gets it.
"""

import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, structs

from isthmus.client.model.questions import BadQuestion
from isthmus.core.answers import Declined
from isthmus.errors import Refuse, Rejected
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments, Denied, Exhausted, HostError
from isthmus.host.model.events import HostNotice
from isthmus.host.model.facts import Facts
from isthmus.host.model.framing import frame_text
from isthmus.host.model.row import AuditRow
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.server_acts import ShareAct, SharedContext
from isthmus.host.pipeline.limits import ServerSlots
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.providers.provider import Provider, ProviderError
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.sampling.acts import SamplingRequestAct, make_facts
from isthmus.host.sampling.budgets import SamplingBudgets
from isthmus.host.sampling.completion import CompletionProgress, CompletionRunner, WrittenMessage
from isthmus.host.sampling.models import Model, Models
from isthmus.host.sampling.request import (
    BadEdit,
    count_rounds,
    estimate_need,
    find_fault,
    make_arguments,
)
from isthmus.host.sampling.selection import NoModel, Selection, select
from isthmus.host.sampling.usage import UsageStorage
from isthmus.host.state.database import HostState
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.wire import CreateMessageParams, CreateMessageResult, SamplingMessage, TextContent

if TYPE_CHECKING:
    from isthmus.client.features.sampling import Sampled

__all__ = ["ContextSource", "Sampler", "SharedContext", "make_sampler", "reload_models"]

INTERNAL_ERROR = -32603
INVALID_PARAMS = -32602
MINUTE_S = 60.0
MAX_COUNTED_LOOPS = 10_000
CONTEXT_DIVISOR = 4  # the added context may take one part of so many


class ContextSource(Protocol):
    """Gathers context of servers, where ``includeContext`` asks for it and policy allows it."""

    async def gather(
        self, asking: ServerQuestion, *, everybody: bool, budget: int
    ) -> Sequence[SharedContext]:
        """Gather context of the server that asks, or of everybody, in at most so many tokens."""
        ...


class RequestProgress:
    """Progress of a request.

    Attributes:
        passed: the pipeline has it, and writes down what becomes of it.
    """

    __slots__ = ("passed",)

    def __init__(self) -> None:
        self.passed = False


class Sampler:
    """Answers sampling requests of servers.

    Args:
        pipeline: what every request passes.
        models: the models there are.
        providers: how they are reached, by name.
        state: where budgets are kept.
        context: gathers context; None adds none, until there is one.
        clock: gives seconds that never go back.
        usage: keeps what servers have used, where that is not the state.

    Attributes:
        models: the models there are now.
        budgets: what every server has used.
        pipeline: see above.
        state: see above.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        models: Models,
        providers: Mapping[str, Provider],
        state: HostState,
        *,
        context: ContextSource | None = None,
        clock: Callable[[], float] = time.monotonic,
        usage: UsageStorage | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.models = models
        self.state = state
        self.budgets = SamplingBudgets(state, usage)
        self._runner = CompletionRunner(providers, read_concurrency(models), clock)
        self.context = context
        self._clock = clock
        self._meters: dict[str, tuple[float, MemoryMeter]] = {}
        self._slots: dict[str, ServerSlots] = {}
        self._loops: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._loaded = False

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers by name."""
        return self._runner.providers

    async def answer(self, asking: ServerQuestion, params: CreateMessageParams) -> "Sampled":
        """Answer a request; ``Declined()`` where policy or a person says no.

        Raises:
            Refuse: the request cannot be answered, for a server that asked by a request of its own.
            HostError: likewise, for whoever made the call in whose course it was asked.
        """
        progress = RequestProgress()
        try:
            return await self._answer_counted(asking, params, progress)
        except (BadArguments, Denied, Exhausted, NoModel, ProviderError) as error:
            if not progress.passed:
                self._note_refusal(asking, error)
            if not isinstance(error, Denied):
                said = HostNotice(about="sampling", server=asking.entry.name, text=str(error))
                self.pipeline.events.tell(said)
            if isinstance(error, Denied):
                # spec 2025-11-25 client/sampling#error-handling: -1 where the user rejects it
                return Declined()
            raise make_answer_error(asking, error) from error

    async def write(
        self, asking: ServerQuestion, model: Model, params: CreateMessageParams
    ) -> tuple[WrittenMessage, int | None]:
        """Have a model write within the budgets of a server: the message, and its cost.

        Raises:
            Exhausted: the budget is used up.
            ProviderError: there is no answer.
        """
        limits = asking.entry.options.sampling
        tokens_in, progress = estimate_need(params).tokens, CompletionProgress()
        charge = await self.budgets.charge(
            asking.entry.name, limits, model, tokens_in, params.max_tokens
        )
        begun = structs.replace(params, max_tokens=charge.max_tokens)
        try:
            written = await self._runner.write(
                model, begun, tokens_in=tokens_in, seconds=limits.timeout, progress=progress
            )
        except BaseException:
            # what was written until then was read and paid for
            read = tokens_in if progress.written else 0
            self.budgets.settle_soon(
                charge, read + progress.tokens, model.cost(read, progress.tokens) or 0
            )
            raise
        cost = model.cost(written.tokens_in, written.tokens_out)
        await self.budgets.settle(charge, written.tokens_in + written.tokens_out, cost or 0)
        return written, cost

    def has_rule(self, attempt: Attempt, facts: Facts) -> bool:
        """Whether any rule of the policy is about an attempt."""
        return bool(self.pipeline.policy.decide(attempt, facts).matches)

    def is_granted(self, asking: ServerQuestion, attempt: Attempt, trace: Trace) -> bool:
        """Whether a person has said yes to this before, where policy allows it in any case.

        Without a grant they would be asked, since a review is the default.
        """
        grants = self.pipeline.grants
        if grants is None:
            return False
        wants = trace.obligations
        facts = structs.replace(make_facts(asking), now=self.state.clock())
        found = grants.find(attempt, facts, remember=wants.remember, assurance=wants.assurance)
        return found is not None and found.uses is None

    def by_hand(self, selection: Selection) -> bool:
        """Whether a person writes the answer, so that nobody has to review it."""
        model = selection.model
        provider = None if model is None else self._runner.providers.get(model.provider)
        return bool(getattr(provider, "by_hand", False))

    def replace(self, models: Models, providers: Mapping[str, Provider]) -> None:
        """Replace the models and providers; answers under progress come to their end."""
        self._runner.replace(providers, read_concurrency(models))
        self.models = models

    async def close(self) -> None:
        """Close all providers."""
        await self._runner.close()

    async def _answer_counted(
        self, asking: ServerQuestion, params: CreateMessageParams, progress: "RequestProgress"
    ) -> CreateMessageResult:
        if not self._loaded:
            await self.budgets.load()
            self._loaded = True
        wrong = find_fault(params)
        if wrong:
            raise BadArguments(f"the sampling request cannot be put to a model: {wrong}")
        self._count(asking, params)
        name, limits = asking.entry.name, asking.entry.options.sampling
        slots = self._slots.setdefault(name, ServerSlots(limits.concurrency))
        slots.most = limits.concurrency
        if not slots.take():
            await slots.wait(asking.principal)
        try:
            params = structs.replace(params, max_tokens=min(params.max_tokens, limits.max_tokens))
            return await self._run_pipeline(asking, params, progress)
        finally:
            slots.leave()

    async def _run_pipeline(
        self, asking: ServerQuestion, params: CreateMessageParams, progress: "RequestProgress"
    ) -> CreateMessageResult:
        params, context = await self._add_context(asking, params)
        models = self.models
        selection = self._select(asking, params, models)
        model = selection.chosen()
        attempt = asking.attempt("sampling.request", model.id, make_arguments(params, model.id))
        act = SamplingRequestAct(
            self, asking, params, models=models, selection=selection, context=context
        )
        progress.passed = True
        text = await self.pipeline.run(attempt, act)
        return text.written.result

    def _select(
        self, asking: ServerQuestion, params: CreateMessageParams, models: Models
    ) -> Selection:
        """Select the model for a request, of those that policy, the entry and the providers leave.

        Raises:
            Denied: policy leaves none.
        """
        forbidden = {model.id: why for model in models if (why := self._find_bar(asking, model))}
        enabled = [model.id for model in models if model.enabled]
        if enabled and all(id in forbidden for id in enabled):
            raise Denied(
                f"server {asking.entry.name!r} may use no model: {forbidden[enabled[0]]}",
                by="policy",
            )
        absent = {model.provider: why for model in models if (why := self._runner.missing(model))}
        return select(
            models,
            estimate_need(params),
            params.model_preferences or None,
            forbidden=forbidden,
            unhealthy={**self._runner.unhealthy(), **absent},
        )

    def _find_bar(self, asking: ServerQuestion, model: Model) -> str:
        """The reason why a server may not use a model; empty where it may."""
        globs = asking.entry.options.sampling.models
        if globs and not any(fnmatchcase(model.id, glob) for glob in globs):
            return "not among the models of this server's entry"
        trace = self.pipeline.policy.decide(
            asking.attempt("sampling.request", model.id), make_facts(asking)
        )
        if trace.effect == "deny" and trace.matches:
            return trace.reason or f"rule {trace.rule!r}"
        return ""

    def _count(self, asking: ServerQuestion, params: CreateMessageParams) -> None:
        """Count one more request.

        Raises:
            Exhausted: it comes too soon, too deep, or once too often.
        """
        name, limits = asking.entry.name, asking.entry.options.sampling
        if asking.depth:
            raise Exhausted(f"server {name!r} asks a model in the course of what a model asked for")
        # spec 2025-11-25 client/sampling#security-considerations: SHOULD implement rate limiting
        if limits.requests is not None:
            wait = self._meter(name, limits.requests).spend("")
            if wait:
                raise Exhausted(
                    f"server {name!r} asks models more than {limits.requests:g} times a minute",
                    retry_after=wait,
                )
        if not params.tools:
            return
        # spec 2025-11-25 client/sampling#security-considerations: SHOULD implement iteration
        # limits for tool loops
        turns = count_rounds(params)
        key = name, asking.run if asking.parent is None else asking.parent.id
        if key[1]:
            turns = max(turns, self._loops.pop(key, 0))
            self._loops[key] = turns + 1
            if len(self._loops) > MAX_COUNTED_LOOPS:
                self._loops.popitem(last=False)
        if turns >= limits.rounds:
            raise Exhausted(
                f"a model and the tools of server {name!r} have taken {turns} turns, and "
                f"{limits.rounds} are allowed (host.sampling.rounds of its entry)"
            )

    def _meter(self, name: str, amount: float) -> MemoryMeter:
        known = self._meters.get(name)
        if known is None or known[0] != amount:
            meter = MemoryMeter(Rate(amount, MINUTE_S), clock=self._clock)
            known = self._meters[name] = (amount, meter)
        return known[1]

    async def _add_context(
        self, asking: ServerQuestion, params: CreateMessageParams
    ) -> tuple[CreateMessageParams, tuple[str, ...]]:
        """Add the context that a request asks for, where policy has a rule that lets it.

        Who is refused gets none, and the request goes on without.
        """
        include = params.include_context
        plain = structs.replace(params, include_context=UNSET)
        if not include or include == "none" or self.context is None:
            return plain, ()
        attempt = asking.attempt("context.share", include, {"includeContext": include})
        facts = make_facts(asking)
        # spec 2026-07-28 client/sampling#context-inclusion: the client MAY ignore this field
        if not self.has_rule(attempt, facts):
            return plain, ()
        budget = max((model.context for model in self.models), default=0) // CONTEXT_DIVISOR
        found = await self.context.gather(asking, everybody=include == "allServers", budget=budget)
        if not found:
            return plain, ()
        what = tuple(f"{one.server}: {one.what}" for one in found)
        attempt = structs.replace(attempt, arguments={**attempt.arguments, "what": list(what)})
        try:
            await self.pipeline.run(attempt, ShareAct(facts, asking.principal, what))
        except Denied:
            return plain, ()
        added = "\n\n".join(frame_text(one.server, one.what, one.text) for one in found)
        first = SamplingMessage(role="user", content=TextContent(text=added))
        return structs.replace(plain, messages=[first, *plain.messages]), what

    def _note_refusal(self, asking: ServerQuestion, error: HostError) -> None:
        """Write a request down that never came to the pipeline, or came to nothing there."""
        detail: dict[str, Any] = {"reason": str(error)[:2000]}
        self.pipeline.audit.note(
            AuditRow(
                kind="sampling",
                principal=asking.principal,
                action="sampling.request",
                server=asking.entry.name,
                identity=asking.identity,
                run=asking.run,
                parent="" if asking.parent is None else asking.parent.id,
                origin=asking.origin,
                era=asking.revision,
                effect="deny",
                failed=True,
                error=type(error).__name__,
                detail=detail,
            )
        )


def read_concurrency(models: Models) -> dict[str, int]:
    """The number of completions at once, by provider."""
    return {name: entry.concurrency for name, entry in models.providers.items()}


def make_answer_error(asking: ServerQuestion, error: HostError) -> Exception:
    """Make the error for whoever asked.

    A server that sent a request gets a JSON-RPC error that says no more than concerns it; where the
    question lay in the result of a call, whoever called hears everything.
    """
    if isinstance(error, BadArguments) and not isinstance(error, BadEdit):
        return BadQuestion(INVALID_PARAMS, f"Invalid params: {error}")
    if asking.origin != "request":
        return error
    if isinstance(error, Exhausted):
        wait = error.retry_after
        data = None if wait is None else {"retryAfter": math.ceil(wait)}
        return Refuse(LIMITED_CODE, f"This client's models are used up: {error}", data)
    if isinstance(error, BadEdit):
        return Rejected()
    if isinstance(error, NoModel):
        return Refuse(INTERNAL_ERROR, "No model of this client may be used for this request")
    return Refuse(INTERNAL_ERROR, "The model of this client gave no answer")


def make_sampler(
    pipeline: "Pipeline",
    models: "Models | str | os.PathLike[str]",
    providers: "Mapping[str, Provider] | None",
    state: "HostState",
    *,
    context: ContextSource | None = None,
    environ: Mapping[str, str] = os.environ,
    usage: UsageStorage | None = None,
) -> Sampler:
    """Make a sampler from the models file and the providers of a program.

    Args:
        pipeline: what every request passes.
        models: the models, or their file.
        providers: those that a program has; they go before the file's of the same name.
        state: where budgets are kept.
        context: gathers context; None adds none.
        environ: where the file's keys are looked up, if they are not in the keyring.
        usage: keeps what servers have used, where that is not the state.

    Raises:
        ConfigError: the file says what cannot be.
    """
    if not isinstance(models, Models):
        models = Models.read(models)
    found = collect_providers(pipeline, models, providers, environ)
    return Sampler(pipeline, models, found, state, context=context, usage=usage)


def reload_models(
    sampler: Sampler,
    path: "str | os.PathLike[str]",
    providers: "Mapping[str, Provider] | None",
    *,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Reload the models of a sampler from a file; answers under progress come to their end.

    Args:
        sampler: has the models of before, and keeps them where the file cannot be.
        path: the file.
        providers: those that a program has.
        environ: where the file's keys are looked up.

    Raises:
        ConfigError: the file says what cannot be.
    """
    models = Models.read(path)
    sampler.replace(models, collect_providers(sampler.pipeline, models, providers, environ))


def collect_providers(
    pipeline: "Pipeline",
    models: Models,
    providers: "Mapping[str, Provider] | None",
    environ: Mapping[str, str],
) -> dict[str, "Provider"]:
    """Collect the providers of a program, and those of the file."""
    given = dict(providers or {})
    entries = {name: one for name, one in models.providers.items() if name not in given}
    if not entries:
        return given
    from isthmus.host.providers.factory import make_providers
    from isthmus.host.state.secrets import UserSecrets

    found = make_providers(
        entries,
        environ=environ,
        secrets=UserSecrets(environ),
        ask=pipeline.broker.ask,
        source=models.source,
    )
    return {**found, **given}
