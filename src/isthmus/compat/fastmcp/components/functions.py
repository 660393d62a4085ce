"""Functions as fastmcp offers them: pydantic checks the arguments, the rest is injected."""

import functools
import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from isthmus.compat.fastmcp.components.docstrings import DocstringParts, read_docstring
from isthmus.compat.fastmcp.components.injection import (
    CallDependencies,
    call_in_thread,
    find_injected,
    resolve_hints,
)
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.utilities.json_schema import compress_schema

if TYPE_CHECKING:
    from pydantic import TypeAdapter

EMPTY = inspect.Parameter.empty

# Attributes of a function that is to be offered: the options of its decorator, and as what
DECORATED, DECORATED_KIND = "__fastmcp_options__", "__fastmcp_kind__"


class BodyError(Exception):
    """Pydantic's complaint about something in a function, and not about its arguments."""


class OfferedFunction:
    """A function that is offered as a tool, a resource or a prompt.

    Args:
        fn: plain, bound or partial, or an object with ``__call__``; sync or async.
        what: the plural that refusals name: ``"tools"``.

    Attributes:
        fn: what is called.
        name: its name, or that of its class.
        doc: the parts of its docstring.
        hints: its annotations with names resolved.
        signature: its parameters without those that are injected.

    Raises:
        ValueError: no caller over a wire can fill its parameters.
    """

    def __init__(self, fn: Any, what: str) -> None:
        fn = fn.__func__ if isinstance(fn, staticmethod) else fn
        self.name = _find_name(fn)
        if not inspect.isroutine(fn) and not isinstance(fn, functools.partial):
            outer = read_docstring(fn)
            fn = fn.__call__
            inner = read_docstring(fn)
            self.doc = DocstringParts(outer.description or inner.description, inner.parameters)
        else:
            self.doc = read_docstring(fn.func if isinstance(fn, functools.partial) else fn)
        self.fn = fn
        whole = inspect.signature(fn)
        _check_parameters(whole, what)
        self.hints = resolve_hints(fn)
        self.injected = find_injected(fn, self.hints)
        self.signature = inspect.Signature(
            [one for name, one in whole.parameters.items() if name not in self.injected]
        )
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(fn)) or (
            isinstance(fn, functools.partial) and inspect.iscoroutinefunction(fn.func)
        )

    @functools.cached_property
    def adapter(self) -> "TypeAdapter[Any]":
        """Pydantic's adapter that checks arguments and gives ``(args, kwargs)``."""
        from pydantic import TypeAdapter

        def collect(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
            return args, kwargs

        collector: Any = collect
        collector.__signature__ = self.signature
        collector.__annotations__ = {
            name: describe_annotation(self.hints.get(name, one.annotation))
            for name, one in self.signature.parameters.items()
            if name in self.hints or one.annotation is not EMPTY
        }
        collector.__name__ = getattr(self.fn, "__name__", "wrapper")
        collector.__module__ = getattr(self.fn, "__module__", collect.__module__)
        collector.__qualname__ = getattr(self.fn, "__qualname__", "wrapper")
        return TypeAdapter(collector)

    def find_return(self) -> Any:
        """The annotation of what it returns; None where there is none."""
        returned = inspect.signature(self.fn).return_annotation
        if isinstance(returned, str):
            return self.hints.get("return", returned)
        return None if returned is EMPTY else returned

    def make_schema(self) -> dict[str, Any]:
        """Make the JSON Schema of its arguments, with what annotations and docstring say of them."""
        from pydantic.json_schema import GenerateJsonSchema

        raw = self.adapter.json_schema()
        schema = compress_schema(raw, prune_titles=True)
        properties = schema.get("properties", {})
        make_title = GenerateJsonSchema().get_title_from_name
        for name, told in raw.get("properties", {}).items():
            title = told.get("title") if isinstance(told, dict) else None
            if isinstance(title, str) and title != make_title(name):
                properties[name]["title"] = title
        if not FLAVOUR.closes_arguments and schema.get("additionalProperties") is False:
            del schema["additionalProperties"]
        for name, text in self.doc.parameters.items():
            if name in properties and "description" not in properties[name]:
                properties[name]["description"] = text
        return schema

    def bind(self, arguments: Mapping[str, Any], *, strict: bool = False) -> Any:
        """Check arguments.

        Raises:
            pydantic.ValidationError: they do not fit.
        """
        if strict:
            from pydantic_core import to_json

            return self.adapter.validate_json(to_json(dict(arguments)), strict=True)
        return self.adapter.validate_python(dict(arguments))

    async def call(self, bound: Any, *, threaded: bool = True) -> Any:
        """Call it with bound arguments, with what is injected; generators become lists.

        Raises:
            BodyError: something in it was refused by pydantic.
            Exception: whatever it raised.
        """
        from pydantic import ValidationError

        args, kwargs = bound
        try:
            if not self.injected:
                return await self._run(args, kwargs, threaded)
            async with CallDependencies() as dependencies:
                made = await dependencies.make_all(self.injected)
                return await self._run(
                    (), {**self._name_arguments(args), **kwargs, **made}, threaded
                )
        except ValidationError as error:
            raise BodyError(str(error)) from error

    def _name_arguments(self, args: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(self.signature.parameters, args, strict=False))

    async def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any], threaded: bool) -> Any:
        if self.is_async:
            made = await self.fn(*args, **kwargs)
        elif threaded and not inspect.isasyncgenfunction(self.fn):
            made = await call_in_thread(self._call_plain, args, kwargs)
        else:
            made = self._call_plain(args, kwargs)
            made = await made if inspect.isawaitable(made) else made
        return [one async for one in made] if inspect.isasyncgen(made) else made

    def _call_plain(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = self.fn(*args, **kwargs)
        return list(made) if inspect.isgenerator(made) else made


def describe_annotation(annotation: Any) -> Any:
    """``Annotated[T, "words"]`` as pydantic has it: with a ``Field`` of that description."""
    if get_origin(annotation) is Annotated:
        args = get_args(annotation)
        if len(args) == 2 and isinstance(args[1], str):
            from pydantic import Field

            return Annotated[args[0], Field(description=args[1])]
    return annotation


def _find_name(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _check_parameters(signature: inspect.Signature, what: str) -> None:
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ValueError(
                f"Functions with positional-only parameters are not supported as {what} because MCP passes "
                f"arguments by name. Replace them with standard parameters that can be passed as keywords."
            )
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise ValueError(f"Functions with *args are not supported as {what}")
        if parameter.kind is parameter.VAR_KEYWORD:
            raise ValueError(f"Functions with **kwargs are not supported as {what}")


def mark_function(fn: Any, kind: str, options: dict[str, Any]) -> None:
    """Let a function know that it is to be offered, without a server."""
    marked = getattr(fn, "__func__", fn)
    setattr(marked, DECORATED, options)
    setattr(marked, DECORATED_KIND, kind)


def check_decorated(fn: Any, decorator: str) -> None:
    """See that a decorator was given what it can decorate.

    Raises:
        TypeError: it was given a class method, or no function.
    """
    if isinstance(fn, classmethod):
        raise TypeError(f"To decorate a classmethod, use @classmethod above @{decorator}.")
    if not (callable(fn) or isinstance(fn, FunctionType)):
        raise TypeError(f"@{decorator} decorates a function, not {type(fn).__name__}")
