"""Injection of contexts and dependencies into functions, as fastmcp's ``Depends`` does it."""

import asyncio
import inspect
import types
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from typing import (
    Annotated,
    Any,
    Generic,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")

Injected = Mapping[str, "Dependency[Any]"]


class Dependency(Generic[T]):
    """Value that is made for a call and closed after it; a subclass enters and leaves it."""

    async def __aenter__(self) -> T:
        raise NotImplementedError

    async def __aexit__(self, *_: object) -> None:
        """Leave it: nothing to do."""


class FunctionDependency(Dependency[T]):
    """Value that a function makes, for each call once.

    Args:
        factory: plain or async, a generator, or a context manager; it may have dependencies itself.
    """

    def __init__(self, factory: Callable[..., Any]) -> None:
        self.factory = factory


class ContextDependency(Dependency[Any]):
    """The context of the request that is served."""

    async def __aenter__(self) -> Any:
        from isthmus.compat.fastmcp.server.context import get_context  # it stands above

        return get_context()


class OptionalContextDependency(ContextDependency):
    """The context of the request that is served, or None outside of one."""

    async def __aenter__(self) -> Any:
        from isthmus.compat.fastmcp.server.context import find_context  # it stands above

        return find_context()


def Depends(factory: Callable[..., Any]) -> Any:  # noqa: N802 - the foreign name
    """Mark a default as what a function makes for each call; fastmcp's ``Depends``."""
    return FunctionDependency(factory)


def Shared(factory: Callable[..., Any]) -> Any:  # noqa: N802 - the foreign name
    """Mark a default as what a function makes; it is made for each call here, as ``Depends``."""
    return FunctionDependency(factory)


def resolve_hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function with names resolved; as they are where that fails."""
    target: Any = fn
    while isinstance(target, partial):
        target = target.func
    try:
        return get_type_hints(target, include_extras=True)
    except Exception:  # noqa: BLE001 - an annotation may run any code, and is left as it is
        return dict(getattr(target, "__annotations__", {}))


def find_injected(fn: Callable[..., Any], hints: Mapping[str, Any]) -> dict[str, Dependency[Any]]:
    """The parameters of a function that no caller fills, with what fills them."""
    found: dict[str, Dependency[Any]] = {}
    for name, parameter in inspect.signature(fn).parameters.items():
        annotation = hints.get(name, parameter.annotation)
        if isinstance(parameter.default, Dependency):
            found[name] = parameter.default
        elif _names_context(annotation):
            optional = parameter.default is None
            found[name] = OptionalContextDependency() if optional else ContextDependency()
        elif get_origin(annotation) is Annotated:
            marked = [one for one in annotation.__metadata__ if isinstance(one, Dependency)]
            if marked:
                found[name] = marked[-1]
    return found


def _names_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _names_context(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return any(map(_names_context, get_args(annotation)))
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "Context"
    return isinstance(annotation, type) and getattr(annotation, "is_fastmcp_context", False)


class CallDependencies:
    """The dependencies of one call: each is made once, and closed when the call is over."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._made: dict[Any, Any] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    async def make_all(self, injected: Injected) -> dict[str, Any]:
        """Make the values of parameters, by name."""
        return {name: await self._make(one) for name, one in injected.items()}

    async def _make(self, dependency: Dependency[Any]) -> Any:
        if not isinstance(dependency, FunctionDependency):
            return await self._stack.enter_async_context(dependency)
        factory = dependency.factory
        if factory not in self._made:
            inner = await self.make_all(find_injected(factory, resolve_hints(factory)))
            self._made[factory] = await self._enter(_wrap_generator(factory)(**inner))
        return self._made[factory]

    async def _enter(self, made: Any) -> Any:
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            return await self._stack.enter_async_context(made)
        if hasattr(made, "__enter__") and hasattr(made, "__exit__"):
            return self._stack.enter_context(made)
        return made


def _wrap_generator(factory: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(factory):
        return asynccontextmanager(factory)
    if inspect.isgeneratorfunction(factory):
        return contextmanager(factory)
    return factory


async def call_in_thread(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a plain function in a thread, with the context variables of here; await what it gives."""
    made = await asyncio.to_thread(fn, *args, **kwargs)
    return await made if inspect.isawaitable(made) else made
