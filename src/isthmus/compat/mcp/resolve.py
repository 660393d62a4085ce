"""``Resolve`` of ``mcp`` 2: parameters of a tool that functions fill, which may ask the client first."""

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from isthmus.compat.exceptions import ToolError
from isthmus.compat.functions import RunInThread, find_context_name, is_async_callable
from isthmus.compat.mcp.context import (
    AcceptedElicitation,
    CancelledElicitation,
    Context,
    DeclinedElicitation,
)

OUTCOMES = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)


class Resolve:
    """The mark of a parameter that a function fills: ``Annotated[T, Resolve(fn)]``."""

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn


class Elicit:
    """A question to the user, which a resolver returns."""

    def __init__(self, message: str, schema: Any) -> None:
        self.message = message
        self.schema = schema

    def __class_getitem__(cls, item: Any) -> Any:
        """The class itself: its parameters are for type checkers."""
        return cls


class Sample:
    """A request to the client's model, which a resolver returns."""

    def __init__(self, messages: Any, *, max_tokens: int, **options: Any) -> None:
        self.messages = messages
        self.max_tokens = max_tokens
        self.options = {key: value for key, value in options.items() if value is not None}


class ListRoots:
    """A question for the client's folders, which a resolver returns."""


class ResolvedParameter(NamedTuple):
    """A parameter that a function fills.

    Attributes:
        fn: the function.
        whole: the parameter takes the whole outcome of a question, and not what was answered alone.
    """

    fn: Callable[..., Any]
    whole: bool


def find_resolved(fn: Callable[..., Any]) -> dict[str, ResolvedParameter]:
    """The parameters of a function that others fill."""
    try:
        hints = get_type_hints(fn, include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation may raise anything; read_signature tells what
        return {}
    found: dict[str, ResolvedParameter] = {}
    for name, hint in hints.items():
        if name == "return" or get_origin(hint) is not Annotated:
            continue
        kind, *extras = get_args(hint)
        for mark in extras:
            if isinstance(mark, Resolve):
                found[name] = ResolvedParameter(mark.fn, _takes_outcome(kind))
    return found


def _takes_outcome(kind: Any) -> bool:
    arms = get_args(kind) if get_origin(kind) is not None else (kind,)
    return any(isinstance(arm, type) and issubclass(arm, OUTCOMES) for arm in arms)


class ResolverRun:
    """The functions of one call's parameters, each run once.

    Args:
        arguments: of the call.
        context: of the call.
        run_in_thread: runs what is not async.
    """

    def __init__(
        self, arguments: Mapping[str, Any], context: Context, run_in_thread: RunInThread
    ) -> None:
        self._arguments = arguments
        self._context = context
        self._run_in_thread = run_in_thread
        self._outcomes: dict[Any, Any] = {}

    async def fill(self, parameters: Mapping[str, ResolvedParameter]) -> dict[str, Any]:
        """The values of parameters.

        Raises:
            ToolError: a question was not answered, and its parameter takes the answer alone.
        """
        filled: dict[str, Any] = {}
        for name, parameter in parameters.items():
            outcome = await self._resolve(parameter.fn)
            if parameter.whole:
                filled[name] = outcome
            elif isinstance(outcome, AcceptedElicitation):
                filled[name] = outcome.data
            else:
                raise ToolError(
                    f"Resolver for parameter {name!r} could not resolve: elicitation was {outcome.action}"
                )
        return filled

    async def _resolve(self, fn: Callable[..., Any]) -> Any:
        if fn in self._outcomes:
            return self._outcomes[fn]
        nested = find_resolved(fn)
        given = await self.fill(nested)
        context_name = find_context_name(fn, Context)
        for name in inspect.signature(fn).parameters:
            if name == context_name:
                given[name] = self._context
            elif name not in nested and name in self._arguments:
                given[name] = self._arguments[name]
        call = partial(fn, **given)
        value = await call() if is_async_callable(fn) else await self._run_in_thread(call)
        outcome = self._outcomes[fn] = await self._fulfil(value)
        return outcome

    async def _fulfil(self, value: Any) -> Any:
        context = self._context
        if isinstance(value, Elicit):
            return await context.elicit(value.message, value.schema)
        if isinstance(value, Sample):
            value = await context.session.create_message(
                value.messages, max_tokens=value.max_tokens, **value.options
            )
        elif isinstance(value, ListRoots):
            value = await context.session.list_roots()
        return value if isinstance(value, OUTCOMES) else AcceptedElicitation(data=value)
