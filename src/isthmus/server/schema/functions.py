"""A user's function, ready to be called: arguments decoded, its input schema, the call itself.

Everything that can be known from the signature is worked out once: at registration the schema
that describes its arguments, and with it whatever is wrong with them; the struct that they are
decoded into when it is first called, as most of many tools never are. What is left for each call
is one decode, straight from the caller's bytes, and one Python call.
"""

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import NODEFAULT, UNSET, Raw, UnsetType

from isthmus.errors import Refuse, ToolError, UsageError
from isthmus.server.schema import pydantic_types
from isthmus.server.schema.annotations import is_plain, measure_depth
from isthmus.server.schema.custom_types import decode_custom, make_expressible, write_json
from isthmus.server.schema.defaults import make_default_factory, make_unsharer
from isthmus.server.schema.json_schema import (
    PLAIN_SCHEMAS,
    Schema,
    SchemaBuilder,
    SchemaMember,
    admits_string,
)
from isthmus.server.schema.results import ReturnPlan
from isthmus.server.schema.signatures import Parameter, Signature, read_signature
from isthmus.wire.jsonrpc import is_nested_deeper

if TYPE_CHECKING:
    from isthmus.server.schema.dependency_plan import DependencyPlan

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


def check_depth(arguments: Raw | bytes, depth: int | None) -> None:
    """See that arguments are not nested too deeply for code that walks over them.

    Args:
        arguments: their JSON.
        plan: what is made before a call, where parameters are injected; None where none is.
        depth: the most levels of arrays and objects in it, or None for any number.

    Raises:
        Refuse: they are nested more deeply.
    """
    if depth is None or len(memoryview(arguments)) <= 2 * depth:  # what is deeper is also longer
        return
    if is_nested_deeper(bytes(arguments), depth):
        # counted as the limit is told: with the object of parameters that the arguments stand in
        raise Refuse(-32602, f"Invalid params: nested more than {depth + 1} levels deep")


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
        depth: the most levels of arrays and objects that its types let arguments have; infinite
            where they may have any.
    """

    __slots__ = (
        "_decode",
        "_kinds",
        "_pydantic",
        "_repair",
        "_shared",
        "_unfinished",
        "blocking",
        "call",
        "depth",
        "description",
        "fn",
        "input_schema",
        "is_async",
        "name",
        "plan",
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
        context_type: type | str | None = None,
    ) -> None:
        self.fn = fn
        self.signature = signature
        self.name = name
        self.description = description
        self.is_async = signature.is_async
        self.blocking = blocking
        self.repairs = 0
        self.depth = 1 + max((measure_depth(p.annotation) for p in self.parameters), default=0)
        self._repair = repair
        self._pydantic: tuple[tuple[str, str, Any], ...] = ()
        self._shared: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
        self._kinds: tuple[Any, ...] = ()
        self.input_schema = self._plan_arguments()
        self._decode: Callable[[Raw | bytes], Any] = self._decode_first
        self.plan: DependencyPlan | None = None
        if signature.injected:
            self.plan = _plan_dependencies(signature, context_type)
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
                context_type=context_type,
            )
        except UsageError as refusal:
            raise UsageError(f"{getattr(fn, '__qualname__', fn)}: {refusal}") from refusal

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters the caller fills, in order."""
        return self.signature.parameters

    def plan_returns(self, *, text: bool = True, structured: bool = False) -> ReturnPlan:
        """Plan how its return values become results: see `ReturnPlan`.

        Args:
            text: whether structured content also travels as text.
            structured: whether a ``str`` is structured content, too.

        Raises:
            UsageError: what it returns has no JSON form.
        """
        try:
            return ReturnPlan.of(
                self.signature.returns,
                text=text,
                structured=structured,
                about=self.signature.doc.returns,
            )
        except UsageError as refusal:
            raise UsageError(f"{self.name}: its return type: {refusal}") from refusal

    def bind(self, arguments: Raw | bytes | UnsetType, depth: int | None = None) -> Any:
        """The arguments as `call` wants them, decoded once.

        Args:
            arguments: JSON of an object; UNSET is an empty one.
            depth: the most levels of arrays and objects in it, or None for any number. It costs
                nothing where the function's types allow no more.

        Raises:
            ArgumentError: they do not fit.
            Refuse: they are nested too deeply.
        """
        if arguments is UNSET:
            arguments = b"{}"
        if depth is not None and self.depth > depth:
            check_depth(arguments, depth)
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
        check_depth(arguments, depth)
        return self._mend(arguments, said, depth)

    def bind_text(self, arguments: Mapping[str, str]) -> Any:
        """Arguments that are all text, as prompts and resource templates have them.

        Raises:
            ArgumentError: they do not fit.
        """
        return self.bind(msgspec.json.encode(arguments))

    def name_arguments(self, bound: Any) -> dict[str, Any]:
        """Bound arguments by the names of the parameters they are for."""
        return {p.name: getattr(bound, f"p{i}") for i, p in enumerate(self.parameters)}

    def _plan_arguments(self) -> Schema:
        """The schema of its arguments; beside it what is decoded, and what is done afterwards.

        Raises:
            UsageError: the type of a parameter cannot be decoded, or has no JSON form.
        """
        builder = SchemaBuilder("input")
        members: list[SchemaMember] = []
        kinds, pydantic, shared = [], [], []
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
            kinds.append(kind)
            members.append(_make_member(parameter, schema))
        self._kinds, self._pydantic, self._shared = tuple(kinds), tuple(pydantic), tuple(shared)
        self._unfinished = bool(pydantic or shared)
        schema = builder.record(members, closed=True)
        return schema if all(map(is_plain, kinds)) else builder.finish(schema)

    def _decode_first(self, arguments: Raw | bytes) -> Any:
        """Decode the arguments of a first call, and keep what decodes those of the next ones."""
        # The fields are p0, p1, …: a parameter may have any name, one of Struct's own included.
        fields = [
            (f"p{i}", kind, _make_field(parameter))
            for i, (kind, parameter) in enumerate(zip(self._kinds, self.parameters, strict=True))
        ]
        struct = msgspec.defstruct(
            "Arguments", fields, kw_only=True, forbid_unknown_fields=True, gc=False
        )
        self._decode = msgspec.json.Decoder(struct, dec_hook=decode_custom).decode
        return self._decode(arguments)

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

    def _mend(self, arguments: Raw | bytes, said: list[Fault], depth: int | None) -> Any:
        """The arguments, understood as they were meant.

        What that costs beside decoding is bounded by `MAX_MENDED_BYTES`.

        Raises:
            ArgumentError: they do not fit, however they are understood; it says all that is wrong.
        """
        reader = PlainReader()
        given = _decode_arguments(arguments, self.input_schema["properties"], reader)
        if given is UNSET:
            raise ArgumentError(self.name, said)
        if not is_json_object(arguments):  # a client that sends no object is not a model that errs
            raise ArgumentError(self.name, self._list_faults(given, said))
        if reader.changed or given is None:
            bound, said = self._try_decoding({} if given is None else given)
            if bound is not None:
                return bound
        if self._repair:
            meant = self._unquote(given, depth)
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
                if wire in given and type(given[wire]) is not Raw:
                    said = [*_list_pydantic_faults(wire, validate, write_json(given[wire])), *said]
        for path, what in said:
            # What contains a fault, or lies in one, was told in better words. msgspec does not say
            # which member of a mapping it means.
            within = path.partition("[...]")[0]
            if len(faults) < MAX_FAULTS and not any(_is_within(within, one) for one, _ in faults):
                faults.append((path, what))
        return faults

    def _unquote(self, given: Any, depth: int | None) -> Any:
        """Arguments with the JSON that a model put into strings, where no string is expected."""
        if not isinstance(given, dict):
            return given
        inner = None if depth is None else depth - 1
        known, definitions = self.input_schema["properties"], self.input_schema.get("$defs")
        reader = PlainReader()
        meant = dict(given)
        for wire, schema in known.items():
            value = given.get(wire)
            if isinstance(value, str) and not admits_string(schema, definitions):
                meant[wire] = _parse_json(value, inner, reader)
        return meant


class PlainReader:
    """Reads JSON as plain data, `MAX_MENDED_BYTES` of it, with 2 for 2.0.

    To JSON Schema both are integers, to msgspec only one is.

    Attributes:
        changed: a number was read differently from how it is written.
    """

    __slots__ = ("_left", "changed")

    def __init__(self) -> None:
        self._left = MAX_MENDED_BYTES
        self.changed = False

    def take(self, size: int) -> bool:
        """Whether JSON of a size in bytes may still be read; then it counts as read."""
        if size > self._left:
            return False
        self._left -= size
        return True

    def read(self, data: Raw | bytes | str) -> Any:
        """Read all of some JSON.

        Raises:
            ValueError: it is none.
            RecursionError: it is nested too deeply.
        """
        return msgspec.json.Decoder(float_hook=self._read_number).decode(data)

    def read_member(self, raw: Raw) -> Any:
        """Read a member of large arguments: a list or an object beyond the bound stays `Raw`.

        Raises:
            ValueError: it is no JSON.
            RecursionError: it is nested too deeply.
        """
        view = memoryview(raw)
        if bytes(view[:1]) == b'"':  # decoding costs no more than a string that fits does
            return msgspec.json.decode(raw)
        if self.take(len(view)):
            return self.read(raw)
        data = bytes(view)
        if b'"' not in data:  # lists of numbers: no string has such an end of a number in it
            data = data.replace(b".0,", b",").replace(b".0]", b"]")
            self.changed |= len(data) < len(view)
        return Raw(data)

    def _read_number(self, literal: str) -> float:
        value = float(literal)
        if not value.is_integer():
            if math.isinf(value):
                raise ValueError("Number out of range")
            return value
        self.changed = True
        return int(value)


MAX_MENDED_BYTES = 65_536  # of the arguments of a call, and of JSON in their strings


def _decode_arguments(arguments: Raw | bytes, known: Mapping[str, Any], reader: PlainReader) -> Any:
    """Arguments as plain data, with `Raw` for large members; UNSET where they are no JSON."""
    try:
        if reader.take(len(memoryview(arguments))):
            return reader.read(arguments)
        given: dict[str, Any] = msgspec.json.decode(arguments, type=dict[str, Raw])
        for name in known:
            if name in given:
                given[name] = reader.read_member(given[name])
    except (ValueError, RecursionError):
        return UNSET
    return given


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
    if is_plain(annotation):
        return annotation, None, PLAIN_SCHEMAS[annotation]
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


def _parse_json(text: str, depth: int | None, reader: PlainReader) -> Any:
    """The JSON in a text; the text itself where it is none, too long or nested too deeply."""
    if not reader.take(len(text)):
        return text
    if depth is not None and is_nested_deeper(text.encode(), depth):
        return text
    try:
        return reader.read(text)
    except (ValueError, RecursionError):
        return text


def _plan_dependencies(signature: Signature, context_type: Any) -> "DependencyPlan":
    from isthmus.server.schema.dependency_plan import make_plan  # few functions have any

    names = [parameter.name for parameter in signature.parameters]
    return make_plan([*signature.injected.values()], names, context_type)


def _compile_call(fn: Callable[..., Any], signature: Signature) -> Callable[[Any, Any], Any]:
    """The call itself, compiled: ``lambda s, c: f(s.p0, c, limit=s.p1)``."""
    fields = {parameter.name: f"s.p{i}" for i, parameter in enumerate(signature.parameters)}
    context = "c.context" if signature.injected else "c"
    for name, source in signature.filled.items():
        fields[name] = f"{context}.{source}" if source else context
    for i, name in enumerate(signature.injected):
        fields[name] = f"c.values[{i}]"
    named = signature.by_name
    passed = [f"{n}={fields[n]}" if n in named else fields[n] for n in signature.order]
    call: Callable[[Any, Any], Any] = _compile_caller(", ".join(passed))(fn)
    return call


@lru_cache(maxsize=256)  # many tools take as many parameters as others do
def _compile_caller(passed: str) -> Callable[[Callable[..., Any]], Callable[[Any, Any], Any]]:
    source = f"lambda f: lambda s, c: f({passed})"
    return eval(source, {})  # type: ignore[no-any-return]  # noqa: S307 - made of identifiers only
