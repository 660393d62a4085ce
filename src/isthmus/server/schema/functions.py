"""A user's function, ready to be called: arguments decoded, its input schema, the call itself.

Everything that can be known from the signature is worked out once, at registration: the struct
its arguments are decoded into, the schema that describes them, and the call itself. What is left
for each call is one decode, straight from the caller's bytes, and one Python call.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, UnsetType

from isthmus.errors import ToolError, UsageError
from isthmus.server.schema import pydantic_types
from isthmus.server.schema.custom_types import decode_custom, make_expressible, write_json
from isthmus.server.schema.defaults import make_default_factory, make_unsharer
from isthmus.server.schema.json_schema import Schema, SchemaBuilder, SchemaMember, admits_string
from isthmus.server.schema.results import ReturnPlan
from isthmus.server.schema.signatures import Parameter, Signature, read_signature

Fault = tuple[str, str]  # where, as a JSON path, and what


class ArgumentError(ToolError):
    """The caller's arguments do not fit the function; the text tells a model how to mend them.

    Attributes:
        problems: where and what, each as a JSON path such as ``$.items[0]`` and a sentence.
    """

    def __init__(self, function: str, problems: list[tuple[str, str]]) -> None:
        said = [what if path == "$" else f"{path[2:]}: {what}" for path, what in problems]
        listed = f" {said[0]}" if len(said) == 1 else "".join(f"\n- {one}" for one in said)
        super().__init__(f"Invalid arguments for {function}:{listed}")
        self.problems = problems

    @property
    def path(self) -> str:
        """The place of the first problem, as a JSON path."""
        return self.problems[0][0]


def is_json_object(arguments: Raw | bytes) -> bool:
    """Whether JSON is an object, or the null that stands for none (ADR 0017)."""
    return bytes(memoryview(arguments)[:1]) in (b"{", b"n")


class UserFunction:
    """A user's function, ready to be called with the bytes of its arguments.

    Made by `Function.of`. A call is two steps, so that bad arguments are known before anything
    is run::

        bound = function.bind(params.arguments)      # ArgumentError if they do not fit
        value = function.call(bound, context)        # an awaitable if function.is_async

    Attributes:
        fn: the function itself, untouched.
        name: what it is called on the wire.
        description: what it does, for a model; None if nobody said.
        signature: what was read from it.
        input_schema: JSON Schema of its arguments.
        is_async: `call` gives something to await.
        blocking: it may block, so it belongs in a worker thread.
        repairs: how many calls were understood only after a repair.
    """

    __slots__ = (
        "_arguments",
        "_decode",
        "_pydantic",
        "_repair",
        "_shared",
        "_stringy",
        "_unfinished",
        "blocking",
        "call",
        "description",
        "fn",
        "input_schema",
        "is_async",
        "name",
        "repairs",
        "signature",
    )

    call: Callable[[Any, Any], Any]
    """Calls the function with bound arguments and a context (None if it takes none)."""

    def __init__(
        self,
        fn: Callable[..., Any],
        signature: Signature,
        *,
        name: str,
        description: str | None,
        blocking: bool,
        repair: bool,
    ) -> None:
        self.fn = fn
        self.signature = signature
        self.name = name
        self.description = description
        self.is_async = signature.is_async
        self.blocking = blocking
        self.repairs = 0
        self._repair = repair
        self._pydantic: tuple[tuple[str, str, Any], ...] = ()
        self._shared: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
        self._arguments, self.input_schema = self._compile_arguments()
        definitions = self.input_schema.get("$defs")
        self._stringy = {
            wire
            for wire, schema in self.input_schema["properties"].items()
            if admits_string(schema, definitions)
        }
        self._decode = msgspec.json.Decoder(self._arguments, dec_hook=decode_custom).decode
        self.call = _compile_call(fn, signature)

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        *,
        context_type: type | str | None = None,
        name: str | None = None,
        description: str | None = None,
        blocking: bool | None = None,
        repair: bool = True,
        namespace: Mapping[str, Any] | None = None,
    ) -> "UserFunction":
        """A function made ready.

        Args:
            fn: plain, bound or partial, or an object with ``__call__``; sync or async.
            context_type: the class, or its name, whose parameter gets the context.
            name: what it is called on the wire; its own name by default.
            description: what it does; its docstring, without what is about parameters, by default.
            blocking: whether it may block; by default what is not async may.
            repair: whether ``"[1, 2]"`` is understood where a list is expected.
            namespace: names for annotations that are strings, beside the function's globals.

        Raises:
            UsageError: the function cannot be offered; the message says why and how to mend it.
        """
        try:
            signature = read_signature(fn, context_type, namespace)
            name = name or signature.name
            if not name:
                raise UsageError("it has no name: pass name=")  # noqa: TRY301 - prefixed below like the rest
            return cls(
                fn,
                signature,
                name=name,
                description=description if description is not None else signature.doc.text or None,
                blocking=not signature.is_async if blocking is None else blocking,
                repair=repair,
            )
        except UsageError as refusal:
            raise UsageError(f"{getattr(fn, '__qualname__', fn)}: {refusal}") from refusal

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters the caller fills, in order."""
        return self.signature.parameters

    def plan_returns(self, *, text: bool = True) -> ReturnPlan:
        """Plan how its return values become results: see `ReturnPlan`.

        Args:
            text: whether structured content also travels as text.

        Raises:
            UsageError: what it returns has no JSON form.
        """
        try:
            return ReturnPlan.of(
                self.signature.returns, text=text, about=self.signature.doc.returns
            )
        except UsageError as refusal:
            raise UsageError(f"{self.name}: its return type: {refusal}") from refusal

    def bind(self, arguments: Raw | bytes | UnsetType) -> Any:
        """The arguments as `call` wants them, decoded once.

        Args:
            arguments: JSON of an object; UNSET is an empty one.

        Raises:
            ArgumentError: they do not fit.
        """
        if arguments is UNSET:
            arguments = b"{}"
        try:
            bound = self._decode(arguments)
            if self._unfinished:
                self._finish(bound)
        except (ValueError, TypeError, RecursionError) as problem:
            said = _locate_fault(
                problem
            )  # and not the problem itself, whose frames hold the arguments
        else:
            return bound
        return self._mend(arguments, said)

    def bind_text(self, arguments: Mapping[str, str]) -> Any:
        """Arguments that are all text, as prompts and resource templates have them.

        Raises:
            ArgumentError: they do not fit.
        """
        return self.bind(msgspec.json.encode(arguments))

    def name_arguments(self, bound: Any) -> dict[str, Any]:
        """Bound arguments by the names of the parameters they are for."""
        return {p.name: getattr(bound, f"p{i}") for i, p in enumerate(self.parameters)}

    def _compile_arguments(self) -> tuple[type[msgspec.Struct], Schema]:
        """The struct its arguments decode into, and their schema."""
        builder = SchemaBuilder("input")
        members: list[SchemaMember] = []
        fields, pydantic, shared = [], [], []
        for i, parameter in enumerate(self.parameters):
            try:
                kind, validate, schema = _plan_parameter(parameter.annotation, builder)
            except UsageError as refusal:
                raise UsageError(f"parameter {parameter.name!r}: {refusal}") from refusal
            if any(parameter.wire == member.name for member in members):
                raise UsageError(f"two parameters are called {parameter.wire!r} on the wire")
            if validate is not None:
                pydantic.append((f"p{i}", parameter.wire, validate))
            unshare = make_unsharer(parameter.annotation)
            if unshare is not None:
                shared.append((f"p{i}", unshare))
            fields.append((f"p{i}", kind, _make_field(parameter)))
            members.append(_make_member(parameter, schema))
        self._pydantic, self._shared = tuple(pydantic), tuple(shared)
        self._unfinished = bool(pydantic or shared)
        # The fields are p0, p1, …: a parameter may have any name, one of Struct's own included.
        arguments = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False
        )
        return arguments, builder.finish(builder.record(members, closed=True))

    def _finish(self, bound: Any) -> None:
        """Let pydantic validate its parameters, which were kept as raw JSON until here.

        Then values that classes hand out as defaults become copies of their own.
        """
        for field, wire, validate in self._pydantic:
            raw = getattr(bound, field)
            if type(raw) is Raw:
                try:
                    setattr(bound, field, validate(bytes(raw)))
                except ValueError as problem:
                    raise PydanticProblem(wire, problem) from problem
        for field, unshare in self._shared:
            setattr(bound, field, unshare(getattr(bound, field)))

    def _mend(self, arguments: Raw | bytes, said: list[Fault]) -> Any:
        """The arguments, understood as they were meant.

        Raises:
            ArgumentError: they do not fit, however they are understood; it says all that is wrong.
        """
        given = _decode_arguments(arguments)
        if given is UNSET:
            raise ArgumentError(self.name, said)
        if not is_json_object(arguments):  # a client that sends no object is not a model that errs
            raise ArgumentError(self.name, self._list_faults(given, said))
        bound, said = self._try_decoding({} if given is None else given)
        if bound is not None:
            return bound
        if self._repair:
            meant = _to_integers(self._unquote(given))
            if meant != given:
                bound, said = self._try_decoding(meant)
                if bound is not None:
                    self.repairs += 1
                    return bound
                given = meant
        raise ArgumentError(self.name, self._list_faults({} if given is None else given, said))

    def _try_decoding(self, given: Any) -> tuple[Any, list[Fault]]:
        """Arguments decoded; where they do not fit, None and what was said of them first."""
        try:
            bound = self._decode(write_json(given))
            if self._unfinished:
                self._finish(bound)
        except (ValueError, TypeError, RecursionError) as problem:
            return None, _locate_fault(problem)
        return bound, []

    def _list_faults(self, given: Any, said: list[Fault]) -> list[Fault]:
        """Everything that is wrong with arguments: by their schema, by pydantic, and what was said."""
        from isthmus.server.schema.faults import MAX_FAULTS, find_faults

        faults = find_faults(self.input_schema, given, nulls=True)
        if isinstance(given, dict):
            for _, wire, validate in self._pydantic:
                if wire in given:
                    said = [*_list_pydantic_faults(wire, validate, write_json(given[wire])), *said]
        for path, what in said:
            # What contains a fault, or lies in one, was told in better words. msgspec does not say
            # which member of a mapping it means.
            within = path.partition("[...]")[0]
            if len(faults) < MAX_FAULTS and not any(_is_within(within, one) for one, _ in faults):
                faults.append((path, what))
        return faults

    def _unquote(self, given: Any) -> Any:
        """Arguments with the JSON that a model put into strings, where no string is expected."""
        if isinstance(given, str):
            return _parse_json(given)
        if not isinstance(given, dict):
            return given
        return {
            wire: _parse_json(value)
            if isinstance(value, str) and wire not in self._stringy
            else value
            for wire, value in given.items()
        }


def _decode_arguments(arguments: Raw | bytes) -> Any:
    """Arguments as plain data; UNSET where they are no JSON."""
    try:
        return _to_integers(msgspec.json.decode(arguments))
    except (ValueError, RecursionError):
        return UNSET


def _locate_fault(problem: Exception) -> list[Fault]:
    """Read from an exception what is wrong: a JSON path and a sentence each."""
    if isinstance(problem, PydanticProblem):
        return problem.faults
    if isinstance(problem, RecursionError):
        return [("$", "nested too deeply")]
    found = re.fullmatch(LOCATED_FAULT_PATTERN, str(problem))
    return [(found["path"], found["what"]) if found else ("$", str(problem))]


def _list_pydantic_faults(wire: str, validate: Callable[[bytes], Any], data: bytes) -> list[Fault]:
    try:
        validate(data)
    except ValueError as error:
        return PydanticProblem(wire, error).faults
    return []


def _is_within(path: str, other: str) -> bool:
    """Whether one of two paths leads into what the other one leads to."""
    short, long = sorted((path, other), key=len)
    if short == "$":
        return True
    return long.startswith(short) and long[len(short) : len(short) + 1] in {"", ".", "["}


# msgspec's way of saying where a problem is
LOCATED_FAULT_PATTERN = r"(?s)(?P<what>.*) - at (?:`key` in )?`(?P<path>\$.*)`"


class PydanticProblem(ValueError):
    """The faults that pydantic found in one parameter."""

    def __init__(self, wire: str, error: Any) -> None:
        super().__init__(wire)
        self.faults = [
            (f"$.{wire}{path[1:]}", what) for path, what in pydantic_types.list_problems(error)
        ]


def _plan_parameter(
    annotation: Any, builder: SchemaBuilder
) -> tuple[Any, Callable[[bytes], Any] | None, Schema]:
    """The type of a parameter's field, pydantic's part in reading it, and its schema."""
    adapter = pydantic_types.find_adapter(annotation)
    if adapter is not None:
        return Raw, adapter.validate_json, builder.of_pydantic(annotation)
    kind = make_expressible(annotation)
    return kind, None, builder.of(kind)


def _make_field(parameter: Parameter) -> Any:
    """The field of a parameter; each call gets a copy of a default that it could change."""
    if parameter.default_factory is not NODEFAULT:
        return msgspec.field(name=parameter.wire, default_factory=parameter.default_factory)
    default = parameter.default
    factory = None if default is NODEFAULT else make_default_factory(default)
    if factory is None:
        return msgspec.field(name=parameter.wire, default=default)
    return msgspec.field(name=parameter.wire, default_factory=factory)


def _make_member(parameter: Parameter, schema: Schema) -> SchemaMember:
    said = {"description": parameter.description, "examples": parameter.examples}
    default = parameter.default
    if parameter.default_factory in PLAIN_FACTORIES:
        default = parameter.default_factory()
    schema = {key: value for key, value in schema.items() if key != "default"}
    return SchemaMember(
        name=parameter.wire,
        schema={**schema, **{key: value for key, value in said.items() if value}},
        required=parameter.required,
        default=default,
    )


PLAIN_FACTORIES = (list, dict, set, frozenset)


def _to_integers(value: Any) -> Any:
    """The value with 2 for 2.0: to JSON Schema both are integers, to msgspec only one is."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list):
        return [_to_integers(item) for item in value]
    if isinstance(value, dict):
        return {key: _to_integers(item) for key, item in value.items()}
    return value


def _parse_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except ValueError:
        return text


def _compile_call(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    """The call itself, compiled: ``lambda s, c: f(s.p0, c, limit=s.p1)``."""
    fields = {parameter.name: f"s.p{i}" for i, parameter in enumerate(signature.parameters)}
    for name, source in signature.filled.items():
        fields[name] = f"c.{source}" if source else "c"
    named = {parameter.name for parameter in signature.parameters if parameter.by_name}
    passed = [f"{n}={fields[n]}" if n in named else fields[n] for n in signature.order]
    source = f"lambda f: lambda s, c: f({', '.join(passed)})"
    return eval(source, {})(fn)  # type: ignore[no-any-return]  # noqa: S307 - made of identifiers only
