"""Completion of the arguments of prompts and resource templates."""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET

from isthmus.core.principal import NO_SCOPES, Principal
from isthmus.errors import Refuse, UsageError
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.context import Context
from isthmus.server.features.invocation import plan_dependencies
from isthmus.server.features.listing import split_target
from isthmus.server.features.prompts import Prompts
from isthmus.server.features.resources import Resources
from isthmus.server.guard.scopes import find_required_scopes
from isthmus.server.schema.injection import Inject
from isthmus.server.schema.signatures import read_signature
from isthmus.server.settings import SharedSettings
from isthmus.wire import CompleteParams, CompleteResult, Completion, PromptReference, Reference
from isthmus.wire.jsonrpc import shorten

if TYPE_CHECKING:
    from isthmus.server.schema.dependency_plan import DependencyPlan

# spec 2026-07-28 server/utilities/completion#completion-results: at most 100 values
MAX_COMPLETIONS = 100

Completer: TypeAlias = Callable[..., Any]
"""``fn()``, ``fn(typed)`` or ``fn(typed, others)``, plain or async, giving strings."""


class Completions:
    """The completers of a server, by what they complete.

    Args:
        prompts: the server's prompts.
        resources: the server's resources.
        settings: those of the server, shared by all its parts.
    """

    def __init__(self, prompts: Prompts, resources: Resources, settings: SharedSettings) -> None:
        self._prompts = prompts
        self._resources = resources
        self._workers = settings.workers
        self._settings = settings
        self._limit = settings.limiters.completions
        self._settled = False
        self._completers: dict[tuple[str, str], tuple[Completer, int]] = {}
        self._injected: dict[Completer, tuple[DependencyPlan, tuple[str, ...]]] = {}

    @property
    def used(self) -> bool:
        """Whether anything is completed."""
        return bool(self._completers)

    def add(self, ref: str, argument: str, completer: Completer) -> None:
        """Complete an argument.

        Args:
            ref: a prompt's name (of one version: its ``target``), or a template's URI.
            argument: the argument's name on the wire.
            completer: gives what might go there. With a parameter it is given what was typed and
                may answer as it likes; with a second one also what the other blanks hold;
                without any, its values are filtered by what was typed.

        Raises:
            UsageError: the prompt or template has no such argument, or has a completer already.
        """
        if self._settled or self._arguments(ref, ref, hidden=True) is not None:
            self._check(ref, argument)
        if (ref, argument) in self._completers:
            raise UsageError(f"{argument!r} of {ref!r} is completed already")
        injected = _find_injected(completer)
        plan = plan_dependencies(injected, (), self._settings)
        if plan is not None:
            self._injected[completer] = plan, tuple(injected)
        self._completers[ref, argument] = completer, _count_parameters(completer, injected)

    def add_all(self, ref: str, completers: Mapping[str, Completer] | None) -> None:
        """Complete several arguments of one prompt or template.

        Raises:
            UsageError: as :meth:`add` has it.
        """
        for argument, completer in (completers or {}).items():
            self.add(ref, argument, completer)

    def settle(self) -> None:
        """The server begins to serve: what is completed must be there by now.

        Raises:
            UsageError: a completer is for something that does not exist.
        """
        for ref, argument in self._completers:
            self._check(ref, argument)
        self._limit = self._settings.limiters.completions
        self._settled = True

    def _check(self, ref: str, argument: str) -> None:
        known = self._arguments(ref, ref, hidden=True)
        if known is None:
            raise UsageError(
                f"{argument!r} of {ref!r} cannot be completed: there is no prompt of this name, "
                "and no resource template of this URI"
            )
        if argument not in known:
            raise UsageError(
                f"{ref!r} has no argument {argument!r}: it has {', '.join(known) or 'none'}"
            )

    async def complete(self, params: CompleteParams, inbound: Inbound) -> CompleteResult:
        """Handle ``completion/complete``.

        Raises:
            Refuse: there is no such prompt or template, it has no such argument, or the caller
                completes too often.
        """
        await self.check_rate(inbound)
        ref, known, own = self._resolve_reference(params.ref, params.meta)
        argument, typed = params.argument.name, params.argument.value
        if known is None:
            # spec 2026-07-28 server/utilities/completion#error-handling
            raise Refuse(-32602, f"Unknown prompt or resource template: {shorten(ref)}")
        if argument not in known:
            raise Refuse(-32602, f"Unknown argument of {shorten(ref)}: {shorten(argument)}")
        found = self._completers.get((own, argument)) or self._completers.get((ref, argument))
        if found is None:
            return _make_result([])
        completer, arity = found
        others = params.context.arguments or {} if params.context is not UNSET else {}
        call = partial(completer, *(typed, others)[:arity])
        if completer in self._injected:
            given = await self._run_injected(call, inbound)
        else:
            given = await self._run(call)
        if isinstance(given, Completion):
            return CompleteResult(completion=_cut_completion(given))
        return _make_result(rank_completions(given or (), typed, keep=arity > 0))

    async def check_rate(self, inbound: Inbound) -> None:
        """Count a completion as its caller's.

        Raises:
            Refuse: the caller completes too often.
        """
        limit = self._limit
        if limit is not None:
            limit.spare -= 1
            if limit.spare < 0:
                # spec 2026-07-28 server/utilities/completion#security: MUST limit the rate
                await limit.check(inbound)

    def knows(self, ref: str) -> bool:
        """Whether something of this name or URI has arguments that might be completed."""
        return self._arguments(ref, ref) is not None

    def needs(self, params: CompleteParams, principal: Principal | None) -> frozenset[str]:
        """The scopes that completing takes: those of what is completed, as far as it is filled in."""
        ref = params.ref
        found: Any
        if isinstance(ref, PromptReference):
            found = self._prompts.listing.seek(ref.name, params.meta)
        else:
            found = self._resources.templates.get(ref.uri) or self._resources.listing.get(ref.uri)
        if found is None or not found.scopes:
            return NO_SCOPES
        others = params.context.arguments or {} if params.context is not UNSET else {}
        filled = {**others, params.argument.name: params.argument.value}
        return find_required_scopes(found.scopes, principal, "what is completed", lambda: filled)

    async def _run(self, call: "partial[Any]") -> Any:
        if inspect.iscoroutinefunction(call.func):
            return await call()
        given = await self._workers.run(call)
        return await given if inspect.isawaitable(given) else given

    async def _run_injected(self, call: "partial[Any]", inbound: Inbound) -> Any:
        """Run a completer with its dependencies, which are passed by name."""
        from isthmus.server.asking.rounds import run_once
        from isthmus.server.features.dependency_scope import FilledContext, call_with_dependencies

        plan, names = self._injected[call.func]
        settings = self._settings

        def run(filled: FilledContext) -> Awaitable[Any]:
            return self._run(partial(call, **dict(zip(names, filled.values, strict=True))))

        def body(context: Context) -> Awaitable[Any]:
            return call_with_dependencies(plan, run, str, context, settings)

        return await run_once(body, inbound, settings)

    def _resolve_reference(
        self, ref: Reference, meta: Any
    ) -> tuple[str, tuple[str, ...] | None, str]:
        """The name or URI of what is completed, its arguments, and what its own completers are for.

        Raises:
            Refuse: the prompt is not there in the version that was asked for.
        """
        if not isinstance(ref, PromptReference):
            return ref.uri, self._arguments(None, ref.uri), ref.uri
        if self._prompts.listing.get(ref.name) is None:
            return ref.name, None, ref.name
        found = self._prompts.listing.find(ref.name, meta)
        known = tuple(parameter.wire for parameter in found.function.parameters)
        return ref.name, known, found.target

    def _arguments(
        self, prompt: str | None, uri: str | None, *, hidden: bool = False
    ) -> tuple[str, ...] | None:
        """The arguments of a prompt, of a template or of a plain resource; None for neither."""
        prompts, resources = self._prompts.listing, self._resources
        templates, listing = resources.templates, resources.listing
        found = None
        if prompt is not None:
            found = prompts.peek_version(*split_target(prompt)) if hidden else prompts.get(prompt)
        if found is not None:
            return tuple(parameter.wire for parameter in found.function.parameters)
        if uri is None:
            return None
        resource = (
            templates.peek(uri) or listing.peek(uri)
            if hidden
            else templates.get(uri) or listing.get(uri)
        )
        if resource is None:
            return None
        return resource.template.names if resource.template else ()


def _find_injected(completer: Completer) -> Mapping[str, Inject]:
    """The parameters of a completer that dependencies give, by name."""
    taken = inspect.signature(completer).parameters.values()
    if all(one.annotation is one.empty for one in taken):
        return {}
    with suppress(UsageError):  # its annotations mean nothing to us
        injected = read_signature(completer, Context).injected
        if injected:
            return injected
    return {}


def _count_parameters(completer: Completer, injected: Mapping[str, Inject]) -> int:
    """Count how many of (what was typed, what the others hold) a completer takes."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in inspect.signature(completer).parameters.values() if p.kind in kinds]
    own = [p for p in taken if p.name not in injected]
    if len(own) > 2 or own != taken[: len(own)]:
        raise UsageError(
            f"{getattr(completer, '__qualname__', completer)}: a completer takes the typed text, "
            "the values of the other arguments if it wants, and nothing else"
        )
    return len(own)


def rank_completions(values: Iterable[Any], typed: str, *, keep: bool) -> list[str]:
    """Values that fit what was typed, the best first, each of them once.

    The very value comes first, then the same in another case, what begins like it, what has a
    word that begins like it, what has it anywhere, and what has its letters in their order.

    Args:
        values: what there is; among equals their order stays.
        typed: what was typed; nothing fits everything.
        keep: whether to keep, at the end, values that do not fit at all.
    """
    wanted = typed.casefold()
    unique = dict.fromkeys(str(value) for value in values)
    order = sorted(
        (_measure_distance(value, typed, wanted), n, value) for n, value in enumerate(unique)
    )
    return [value for distance, _, value in order if keep or distance < NO_FIT_DISTANCE]


NO_FIT_DISTANCE = 6


def _measure_distance(value: str, typed: str, wanted: str) -> int:
    """Measure how well a value fits: 0 is best."""
    if not wanted:
        return 0
    folded = value.casefold()
    if folded == wanted:
        return 0 if value == typed else 1
    if folded.startswith(wanted):
        return 2
    if wanted in folded:
        return 3 if _begins_a_word(value, folded, wanted) else 4
    letters = iter(folded)
    return 5 if all(letter in letters for letter in wanted) else NO_FIT_DISTANCE


def _begins_a_word(value: str, folded: str, wanted: str) -> bool:
    """Whether a word in a value begins like what was typed; camelCase has words, too."""
    at = folded.find(wanted)
    while at >= 0:
        before = folded[at - 1 : at]
        if not before.isalnum() or (len(value) == len(folded) and value[at].isupper()):
            return True
        at = folded.find(wanted, at + 1)
    return False


def _cut_completion(completion: Completion) -> Completion:
    if len(completion.values) <= MAX_COMPLETIONS:
        return completion
    total = len(completion.values) if completion.total is UNSET else completion.total
    return Completion(values=completion.values[:MAX_COMPLETIONS], total=total, has_more=True)


def _make_result(values: list[str]) -> CompleteResult:
    return CompleteResult(
        completion=Completion(
            values=values[:MAX_COMPLETIONS],
            total=len(values),
            has_more=len(values) > MAX_COMPLETIONS,
        )
    )
