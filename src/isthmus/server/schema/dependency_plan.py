"""Plan of dependencies: what is made before a call, in which order, and of what.

It is worked out when a function is declared, so that a cycle or a parameter that nobody fills is told to its author at
once, and a call only goes through a list.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Literal, TypeAlias

import msgspec

from isthmus.errors import UsageError
from isthmus.server.schema.injection import Inject, find_inject
from isthmus.server.schema.signatures import find_source, resolve_hints

Kind: TypeAlias = Literal["plain", "thread", "async", "context", "thread context", "async context"]

Source: TypeAlias = tuple[Literal["context", "argument", "dependency"], Any]
"""Source of a value: an attribute of the context ("" is itself), an argument, or a step of the plan."""

MAX_DEPTH = 32  # of dependencies that take dependencies


class DependencyStep(msgspec.Struct, frozen=True):
    """One dependency of a plan.

    Attributes:
        make: called with its values; gives a value, something to await, or a context manager.
        kind: which of these, and whether it belongs in a thread.
        name: what it is called in messages.
        positional: where the values come from that are passed by position.
        named: the same of those passed by name.
    """

    make: Callable[..., Any]
    kind: Kind
    name: str
    positional: tuple[Source, ...]
    named: tuple[tuple[str, Source], ...]


class DependencyPlan(msgspec.Struct, frozen=True):
    """Plan of the dependencies that are made before a call of one function.

    Attributes:
        steps: the dependencies, in the order in which they are made.
        values: for each parameter of the function that is injected, the step that makes its value.
        has_contexts: some of them are closed after the call.
        dependencies: the functions that are depended on, as they were declared.
        wanted: what the parameters are marked with.
        arguments: the names of the call's own arguments.
        context_type: the class of the parameter that gets the context.
    """

    steps: tuple[DependencyStep, ...]
    values: tuple[int, ...]
    has_contexts: bool
    dependencies: tuple[Any, ...]
    wanted: tuple[Inject, ...]
    arguments: tuple[str, ...]
    context_type: Any

    def replace(self, overrides: Mapping[Any, Any]) -> "DependencyPlan":
        """The same plan, with other functions in place of some.

        Raises:
            UsageError: one of them takes what is not there.
        """
        return make_plan(self.wanted, self.arguments, self.context_type, overrides)


NO_OVERRIDES: Mapping[Any, Any] = {}


def make_plan(
    wanted: Sequence[Inject],
    arguments: Sequence[str],
    context_type: Any,
    overrides: Mapping[Any, Any] = NO_OVERRIDES,
) -> DependencyPlan:
    """Plan what is made before a call.

    Args:
        wanted: what the parameters of the function are marked with.
        arguments: the names of the call's own arguments.
        context_type: the class of the parameter that gets the context.
        overrides: functions that stand in place of others, as in tests.

    Raises:
        UsageError: dependencies take one another in a circle, or something that nobody gives.
    """
    planner = DependencyPlanner(frozenset(arguments), context_type, overrides)
    values = tuple(planner.add(inject, ()) for inject in wanted)
    has_contexts = any(step.kind.endswith("context") for step in planner.steps)
    return DependencyPlan(
        tuple(planner.steps),
        values,
        has_contexts,
        tuple(planner.met),
        tuple(wanted),
        tuple(arguments),
        context_type,
    )


class DependencyPlanner:
    """Puts dependencies in order.

    Args:
        arguments: the names of the call's own arguments.
        context_type: the class of the parameter that gets the context.
        overrides: functions that stand in place of others.

    Attributes:
        steps: those planned so far.
        met: the functions behind them, before anything stood in their place.
    """

    def __init__(
        self, arguments: frozenset[str], context_type: Any, overrides: Mapping[Any, Any]
    ) -> None:
        self.steps: list[DependencyStep] = []
        self.met: dict[Any, None] = {}
        self._arguments = arguments
        self._context_type = context_type
        self._overrides = overrides
        self._known: dict[Any, int] = {}

    def add(self, inject: Inject, above: tuple[Any, ...]) -> int:
        """Plan a dependency after those that it takes; the number of its step.

        Args:
            inject: the mark of the parameter.
            above: the functions that take it, the outermost first.

        Raises:
            UsageError: it takes itself, or something that nobody gives.
        """
        wanted = inject.dependency
        if wanted in above or len(above) > MAX_DEPTH:
            circle = " → ".join(map(name_dependency, (*above[-MAX_DEPTH:], wanted)))
            raise UsageError(f"these dependencies form a cycle: {circle}")
        if inject.cached and wanted in self._known:
            return self._known[wanted]
        self.met[wanted] = None
        function = self._overrides.get(wanted, wanted)
        try:
            positional, named = self._list_sources(function, (*above, wanted))
        except UsageError as refusal:
            if str(refusal).startswith(("dependency ", "these dependencies")):
                raise
            raise UsageError(f"dependency {name_dependency(function)}: {refusal}") from refusal
        make, kind = find_kind(function, inject.blocking)
        self.steps.append(
            DependencyStep(make, kind, name_dependency(function), tuple(positional), tuple(named))
        )
        number = len(self.steps) - 1
        if inject.cached:
            self._known[wanted] = number
        return number

    def _list_sources(
        self, function: Any, above: tuple[Any, ...]
    ) -> tuple[list[Source], list[tuple[str, Source]]]:
        positional: list[Source] = []
        named: list[tuple[str, Source]] = []
        hints = resolve_hints(find_annotated(function), self._context_type, {})
        skipped = False
        for parameter in list_parameters(function):
            source = self._find_source(parameter, hints.get(parameter.name, Any), above)
            if source is None:
                skipped = True  # its default stays, and what follows is passed by name
            elif skipped or parameter.kind is parameter.KEYWORD_ONLY:
                named.append((parameter.name, source))
            else:
                positional.append(source)
        return positional, named

    def _find_source(
        self, parameter: inspect.Parameter, annotation: Any, above: tuple[Any, ...]
    ) -> Source | None:
        inject = find_inject(annotation, parameter.default)
        if inject is not None:
            return "dependency", self.add(inject, above)
        attribute = find_source(annotation, self._context_type)
        if attribute is not None:
            return "context", attribute
        # One that has a default keeps it: what a caller sends must not reach a setting by chance.
        if parameter.default is not parameter.empty:
            return None
        if parameter.name in self._arguments:
            return "argument", parameter.name
        known = ", ".join(sorted(self._arguments)) or "none"
        raise UsageError(
            f"nothing provides {parameter.name!r}: it is no argument of the call (there is {known}), and neither "
            "Context, Principal nor another dependency; annotate it with one of them, or give it a default"
        )


def list_parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters of a dependency, but for ``*args`` and ``**kwargs``, which get nothing.

    Raises:
        UsageError: they cannot be read.
    """
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as unknown:
        raise UsageError(f"its parameters cannot be read: {unknown}") from unknown
    bound = function.keywords if isinstance(function, functools.partial) else {}
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one for one in listed if one.kind not in stars and one.name not in bound]


def find_annotated(function: Any) -> Any:
    """The function whose annotations are those of a dependency: behind partials, objects and classes."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, type):
        return function.__init__  # type: ignore[misc]  # of this very class
    return function if inspect.isroutine(function) else type(function).__call__


def find_kind(function: Any, blocking: bool | None) -> tuple[Callable[..., Any], Kind]:
    """What to call to have a dependency made, and what that gives.

    Args:
        function: the dependency.
        blocking: whether a plain function may block; None for what is usual.
    """
    code = find_annotated(function)
    inner = inspect.unwrap(code)
    # A function under @asynccontextmanager or @contextmanager is one without it.
    if inspect.isasyncgenfunction(inner):
        is_bare = inspect.isasyncgenfunction(code)
        return (asynccontextmanager(function) if is_bare else function), "async context"
    if inspect.isgeneratorfunction(inner):
        make = contextmanager(function) if inspect.isgeneratorfunction(code) else function
        return make, "context" if blocking is False else "thread context"
    if inspect.iscoroutinefunction(code):
        return function, "async"
    is_class = isinstance(function, type)  # which does not block, where nobody says so
    return function, "thread" if blocking or (blocking is None and not is_class) else "plain"


def name_dependency(function: Any) -> str:
    """What a dependency is called in messages."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__qualname__", None) or type(function).__qualname__)
