"""Invocation of a user's function, inline or in a thread, and errors for what it raises."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from isthmus.errors import CapabilityMissing, Refuse, ToolError, UsageError
from isthmus.runtime.failures import log_failure
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import is_cancellation
from isthmus.server.asking.context import Body, Context
from isthmus.server.schema.functions import UserFunction
from isthmus.server.schema.results import WrongReturn
from isthmus.server.serve.workers import Workers
from isthmus.server.settings import SharedSettings

if TYPE_CHECKING:
    from isthmus.server.schema.dependency_plan import DependencyPlan
    from isthmus.server.schema.injection import Inject

T = TypeVar("T")


Run: TypeAlias = Callable[
    [Any, Context | None], Awaitable[Any]
]  # the context is None where it takes none


def make_runner(
    function: UserFunction, settings: SharedSettings, timeout: float | None = None
) -> Run:
    """Make what runs a function with its arguments bound and its dependencies made.

    Raises:
        UsageError: the timeout is no time.
    """
    run = _make_plain_runner(function, settings.workers)
    if function.plan is not None:
        settings.injected.update(function.plan.dependencies)
        run = _inject(function, function.plan, run, settings)
    return run if timeout is None else _limit_time(run, timeout, function.name)


def plan_dependencies(
    injected: "Mapping[str, Inject]", arguments: Sequence[str], settings: SharedSettings
) -> "DependencyPlan | None":
    """Plan what is made before calls of a function; None where it takes no dependency.

    Args:
        injected: the parameters that dependencies give, by name.
        arguments: the names of the others.
        settings: those of the server.

    Raises:
        UsageError: they take one another in a circle, or something that nobody gives.
    """
    if not injected:
        return None
    from isthmus.server.schema.dependency_plan import make_plan  # few functions have any

    plan = make_plan([*injected.values()], arguments, Context)
    settings.injected.update(plan.dependencies)
    return plan


def _inject(
    function: UserFunction, plan: "DependencyPlan", run: Run, settings: SharedSettings
) -> Run:
    """Make what runs a function after its dependencies, and closes them."""
    from isthmus.server.features.dependency_scope import call_with_dependencies  # few have any

    fields = {parameter.name: f"p{i}" for i, parameter in enumerate(function.parameters)}

    async def run_injected(bound: Any, context: Context | None) -> Any:
        assert context is not None  # noqa: S101 - who takes dependencies is given one
        return await call_with_dependencies(
            plan,
            partial(run, bound),
            lambda name: getattr(bound, fields[name]),
            context,
            settings,
        )

    return run_injected


def _make_plain_runner(function: UserFunction, workers: Workers) -> Run:
    """Make what runs a function: inline, or in a thread."""
    call = function.call
    if function.is_async:
        return call
    if function.blocking:

        async def in_thread(bound: Any, context: Context | None) -> Any:
            leave = None if context is None else context.leave
            return await workers.run(partial(call, bound, context), leave)

        return in_thread

    async def inline(bound: Any, context: Context | None) -> Any:
        return call(bound, context)

    return inline


def _limit_time(run: Run, seconds: Any, name: str) -> Run:
    """Make what runs a tool's function for so many seconds at most; questions to its user do not count.

    Args:
        run: runs the function.
        seconds: how long.
        name: the tool.

    Raises:
        UsageError: that is no time.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise UsageError(f"tool {name!r}: timeout= is a number of seconds above 0, not {seconds!r}")
    from isthmus.server.asking.deadline import CALL_DEADLINE, CallDeadline  # few tools have one

    async def run_limited(bound: Any, context: Context | None) -> Any:
        timer = asyncio.timeout(seconds)
        try:
            async with timer:
                token = CALL_DEADLINE.set(CallDeadline(timer))
                try:
                    return await run(bound, context)
                finally:
                    CALL_DEADLINE.reset(token)
        except TimeoutError:
            if not timer.expired():
                raise
            raise ToolError(
                f"Tool {name!r} took longer than {seconds:g} s and was stopped"
            ) from None

    return run_limited


@cache
def load_run_rounds() -> Callable[[Body, Inbound, Any, str, SharedSettings], Awaitable[Any]]:
    """Import :func:`~isthmus.server.asking.rounds.run_rounds` when a call first has a context."""
    from isthmus.server.asking.rounds import run_rounds  # a server may have none that takes one

    return run_rounds


async def run_refusing(
    body: Body, inbound: Inbound, params: Any, target: str, settings: SharedSettings
) -> Any:
    """As :func:`load_run_rounds`, for methods whose failures are errors and not results.

    Raises:
        Refuse: whatever the body raised for its caller to read.
        Exception: whatever else it raised.
    """
    try:
        return await load_run_rounds()(body, inbound, params, target, settings)
    except CapabilityMissing as lack:
        raise Refuse(-32602, f"Invalid params: {lack}") from lack
    except ToolError as error:
        raise Refuse(-32603, str(error)) from error
    except SystemExit as error:
        raise RuntimeError("it called sys.exit, which would end the server") from error
    except asyncio.CancelledError as error:
        if is_cancellation(error):
            raise
        raise RuntimeError("something it waited for was cancelled") from error


def to_result(make: Callable[[], T], what: str, fn: Callable[..., Any]) -> T:
    """Make the result that a method has of what a function returned.

    Args:
        make: makes it.
        what: whose function it is.
        fn: the function.

    Raises:
        Refuse: it returned what cannot be one; its author is told in the log.
    """
    try:
        return make()
    except WrongReturn as wrong:
        report_failure(what, wrong, fn)
        raise Refuse(-32603, f"{what[:1].upper()}{what[1:]} failed: {wrong.told}") from wrong


def report_failure(what: str, error: BaseException, fn: Callable[..., Any] | None = None) -> None:
    """Log an exception nobody expected, with its traceback.

    Args:
        what: what failed.
        error: the exception.
        fn: the author's function, for a return value that is wrong: no traceback leads there.
    """
    why = f"{_locate_function(fn)}: {error}" if isinstance(error, WrongReturn) else ""
    log_failure(what, error, detail=why)


def _locate_function(function: Any) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
