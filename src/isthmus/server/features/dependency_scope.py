"""Dependencies of a call: made before its function, closed after it in the reverse order."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import Any, TypeAlias

from isthmus.errors import UsageError
from isthmus.server.asking.context import Context
from isthmus.server.schema.dependency_plan import (
    DependencyPlan,
    DependencyStep,
    Source,
    name_dependency,
)
from isthmus.server.serve.workers import CallCancellation, Workers
from isthmus.server.settings import SharedSettings

FindArgument: TypeAlias = Callable[[str], Any]  # the value of an argument of the call


class FilledContext:
    """The context of a call, with the values of its dependencies.

    Args:
        context: the context.
        values: of the parameters that are injected, in their order.
    """

    __slots__ = ("context", "values")

    def __init__(self, context: Context, values: tuple[Any, ...]) -> None:
        self.context = context
        self.values = values

    @property
    def leave(self) -> CallCancellation:
        """How a function in a thread hears that its call is over."""
        return self.context.leave


async def call_with_dependencies(
    plan: DependencyPlan,
    call: Callable[[FilledContext], Awaitable[Any]],
    find_argument: FindArgument,
    context: Context,
    settings: SharedSettings,
) -> Any:
    """Call a function with its dependencies.

    An exception of the call is thrown into generators where they wait, and goes on whatever they do with it, unless
    they raise another one.

    Args:
        plan: what is made, and of what.
        call: calls the function.
        find_argument: gives an argument of the call by its name.
        context: the call's.
        settings: those of the server, with what stands in the place of dependencies.

    Raises:
        Exception: whatever the function or a dependency raised.
    """
    if settings.overrides:
        plan = plan.replace(settings.overrides)
    maker = DependencyMaker(context, find_argument, settings.workers)
    if not plan.has_contexts:
        for step in plan.steps:
            maker.values.append(await maker.make(step, None))
        return await call(FilledContext(context, maker.select(plan)))
    failed: BaseException | None = None
    try:
        async with AsyncExitStack() as stack:
            try:
                for step in plan.steps:
                    maker.values.append(await maker.make(step, stack))
                result = await call(FilledContext(context, maker.select(plan)))
            except BaseException as error:
                failed = error
                raise
        if failed is not None:  # a generator has swallowed it, and there is no result
            raise failed
        return result
    finally:
        del failed, maker  # which keep what is raised, and so would this frame


class DependencyMaker:
    """Makes the values of one call.

    Args:
        context: the call's.
        find_argument: gives an argument of the call by its name.
        workers: the threads for plain functions.

    Attributes:
        values: those made so far, by the numbers of their steps.
    """

    __slots__ = ("_context", "_find_argument", "_workers", "values")

    def __init__(self, context: Context, find_argument: FindArgument, workers: Workers) -> None:
        self.values: list[Any] = []
        self._context = context
        self._find_argument = find_argument
        self._workers = workers

    def select(self, plan: DependencyPlan) -> tuple[Any, ...]:
        """The values of the function's parameters."""
        return tuple(self.values[number] for number in plan.values)

    async def make(self, step: DependencyStep, stack: AsyncExitStack | None) -> Any:
        """Make the value of a step; what is to be closed goes onto the stack."""
        positional = [self._find(source) for source in step.positional]
        named = {name: self._find(source) for name, source in step.named}
        kind = step.kind
        if kind == "async":
            return await step.make(*positional, **named)
        if kind in {"plain", "thread"}:
            if kind == "plain":
                value = step.make(*positional, **named)
            else:
                made = partial(step.make, *positional, **named)
                value = await self._workers.run(made, self._context.leave)
            return await value if inspect.isawaitable(value) else value
        manager = step.make(*positional, **named)
        assert stack is not None  # noqa: S101 - the plan has contexts
        if kind == "async context":
            return await stack.enter_async_context(manager)
        if kind == "context":
            return stack.enter_context(manager)
        return await stack.enter_async_context(ThreadedContext(manager, self._workers))

    def _find(self, source: Source) -> Any:
        kind, what = source
        if kind == "dependency":
            return self.values[what]
        if kind == "argument":
            return self._find_argument(what)
        return getattr(self._context, what) if what else self._context


class ThreadedContext:
    """A context manager that may block: entered and left in threads.

    Args:
        manager: the context manager.
        workers: the threads.
    """

    def __init__(self, manager: Any, workers: Workers) -> None:
        self._manager = manager
        self._workers = workers

    async def __aenter__(self) -> Any:
        entering = asyncio.ensure_future(self._workers.run(self._manager.__enter__))
        try:
            return await asyncio.shield(entering)
        except asyncio.CancelledError as cancelled:
            # A thread cannot be stopped: what it opens meanwhile is closed all the same.
            await asyncio.wait((entering,))
            if not entering.cancelled() and entering.exception() is None:
                await self.__aexit__(type(cancelled), cancelled, cancelled.__traceback__)
            raise
        finally:
            del entering

    async def __aexit__(self, *raised: object) -> bool:
        return bool(await self._workers.run(partial(self._manager.__exit__, *raised)))


@contextmanager
def override_dependencies(settings: SharedSettings, functions: Mapping[Any, Any]) -> Iterator[None]:
    """Put functions in the place of dependencies until the block is left.

    Raises:
        UsageError: nothing depends on one of them, or what stands in its place is no function.
    """
    for wanted, instead in functions.items():
        if wanted not in settings.injected:
            raise UsageError(f"override: nothing here depends on {name_dependency(wanted)}")
        if not callable(instead):
            raise UsageError(
                f"override: replace {name_dependency(wanted)} by a function, such as lambda: {instead!r}"
            )
    layer = dict(functions)
    settings.override_layers.append(layer)
    settings.overrides = {**settings.overrides, **layer}
    try:
        yield
    finally:
        # Blocks that overlap, as of two tasks, end in any order: each takes out its own.
        layers = settings.override_layers = [
            one for one in settings.override_layers if one is not layer
        ]
        settings.overrides = {wanted: fn for one in layers for wanted, fn in one.items()}
