"""Function of another library's server as a tool: its arguments, its schemas, and its result.

Signatures are read into pydantic models as ``mcp`` reads them, so that the schemas are the same to the letter,
and so are the errors about arguments. Where the libraries and their versions differ, :class:`Dialect` says so.
"""

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import Annotated, Any, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType
from pydantic import BaseModel, Field, WithJsonSchema, create_model

from isthmus.compat.dialect import MCP2, Dialect, FunctionArguments, InvalidSignature
from isthmus.compat.outputs import OutputPlan, plan_output, to_wire_result
from isthmus.wire import CallToolResult, InputRequiredResult

decode_arguments = msgspec.json.Decoder(dict[str, Any]).decode

# Runs a function in a worker thread.
RunInThread = Callable[[Callable[[], Any]], Awaitable[Any]]


class FunctionTool:
    """A function as its library's server declares it for a tool.

    Args:
        fn: the function.
        context_class: the class of the library's ``Context``: the parameter that has it gets the context.
        skip: parameters that are no arguments.
        structured_output: whether results are structured; None finds it out of the annotation.
        dialect: what libraries differ in.

    Attributes:
        fn: the function.
        context_name: the parameter that takes the context, or None.
        model: the pydantic model of the arguments.
        parameters: the JSON schema of the arguments.
        output: how what it returns becomes a result.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        context_class: type | None = None,
        skip: Collection[str] = (),
        structured_output: bool | None = None,
        dialect: Dialect = MCP2,
    ) -> None:
        self.fn = fn
        self.dialect = dialect
        self.is_async = is_async_callable(fn)
        self.context_name = None if context_class is None else find_context_name(fn, context_class)
        signature = read_signature(fn)
        skipped = {*skip, *(() if self.context_name is None else (self.context_name,))}
        self.model = make_arguments_model(fn, signature, skipped, dialect)
        self.parameters: dict[str, Any] = self.model.model_json_schema(by_alias=True)
        self.output: OutputPlan = plan_output(
            get_function_name(fn), signature.return_annotation, structured_output, dialect
        )
        fields = self.model.model_fields
        self._names = {name: field.alias or name for name, field in fields.items()}
        self._renamed = any(name != alias for name, alias in self._names.items())
        self._parsed = {
            key
            for name, field in fields.items()
            if field.annotation is not str
            for key in (name, field.alias or name)
        }
        self._validate: Callable[[Any], Any] = self.model.model_validate

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON schema of structured results; None where they are not structured."""
        return self.output.schema

    def bind(self, arguments: Raw | UnsetType | Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as the function takes them.

        Raises:
            pydantic.ValidationError: they do not fit.
            msgspec.DecodeError: they are no JSON object.
        """
        if arguments is UNSET:
            given: dict[str, Any] = {}
        elif type(arguments) is Raw:
            given = decode_arguments(arguments)
        else:
            given = dict(arguments)
        for key, value in given.items():
            if type(value) is str and key in self._parsed:
                given[key] = parse_json_text(value)
        bound = self._validate(given)
        if not isinstance(bound, BaseModel):  # of a model that a program put in place
            replaced: dict[str, Any] = bound.model_dump_one_level()
            return replaced
        if self._renamed:
            return {alias: getattr(bound, name) for name, alias in self._names.items()}
        return {name: getattr(bound, name) for name in self._names}

    @property
    def arg_model(self) -> Any:
        """The model of the arguments, as ``mcp`` calls it; a program may put another one in its place."""
        return self.model

    @arg_model.setter
    def arg_model(self, model: Any) -> None:
        self.model = model
        self._validate = model.model_validate

    async def call(self, bound: dict[str, Any], context: Any, run_in_thread: RunInThread) -> Any:
        """Call the function with bound arguments, and the context where it takes one."""
        if self.context_name is not None:
            bound = {**bound, self.context_name: context}
        if self.is_async:
            return await self.fn(**bound)
        if self.dialect.threads:
            return await run_in_thread(partial(self.fn, **bound))
        return self.fn(**bound)

    def convert(self, value: Any) -> CallToolResult | InputRequiredResult:
        """The result of a call of what the function returned.

        Raises:
            pydantic.ValidationError: it does not fit the output schema.
        """
        return to_wire_result(value, self.output)


def is_async_callable(fn: Any) -> bool:
    """Whether calling it gives an awaitable: also a partial, and an object with an async ``__call__``."""
    while isinstance(fn, partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or (
        callable(fn) and inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004 - of an object
    )


def get_function_name(fn: Any) -> str:
    """The name of a function; of an object that is called, its class's."""
    return getattr(fn, "__name__", None) or type(fn).__name__


def read_signature(fn: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function, with its annotations evaluated.

    Raises:
        InvalidSignature: an annotation names what is not there.
    """
    try:
        return inspect.signature(fn, eval_str=True)
    except NameError as error:
        raise InvalidSignature(
            f"Unable to evaluate type annotations for callable {get_function_name(fn)!r}"
        ) from error


def find_context_name(fn: Callable[..., Any], context_class: type) -> str | None:
    """The parameter whose annotation is a library's ``Context``, also one in a union; None without one."""
    try:
        hints = get_type_hints(fn)
    except Exception:  # noqa: BLE001 - an annotation may raise anything, and has no context then
        return None
    for name, hint in hints.items():
        if name != "return" and _has_class(hint, context_class):
            return name
    return None


def _has_class(hint: Any, wanted: type) -> bool:
    origin = get_origin(hint)
    if origin is None:
        return isinstance(hint, type) and issubclass(hint, wanted)
    if isinstance(origin, type) and issubclass(origin, wanted):
        return True
    return any(_has_class(argument, wanted) for argument in getattr(hint, "__args__", ()))


def make_arguments_model(
    fn: Callable[..., Any],
    signature: inspect.Signature,
    skipped: Collection[str],
    dialect: Dialect,
) -> type[BaseModel]:
    """The pydantic model of a function's arguments.

    Raises:
        InvalidSignature: a parameter cannot be an argument.
    """
    fields: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if name in skipped:
            continue
        if name.startswith("_") and not dialect.leading_underscores:
            raise InvalidSignature(
                f"Parameter {name} of {get_function_name(fn)} cannot start with '_'"
            )
        untyped = parameter.annotation is inspect.Parameter.empty
        kind: Any = Any if untyped else parameter.annotation
        extras: list[Any] = [WithJsonSchema({"title": name, "type": "string"})] if untyped else []
        key = name
        if callable(getattr(BaseModel, name, None)):  # pydantic has a method of this name
            key, field = f"field_{name}", Field(alias=name)
        else:
            field = Field()
        annotated = Annotated[(kind, *extras, field)]
        required = parameter.default is inspect.Parameter.empty
        fields[key] = annotated if required else (annotated, parameter.default)
    model: type[BaseModel] = create_model(
        f"{get_function_name(fn)}Arguments", __base__=FunctionArguments, **fields
    )
    return model


def parse_json_text(text: str) -> Any:
    """A string for an argument that is none, as some clients send objects and lists: parsed if it is JSON."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(parsed, str | int | float) else parsed
