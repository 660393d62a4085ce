"""What a function's return annotation promises, and how its values keep the promise.

Text and content blocks are for the model and have no schema. Everything else is structured: an
object travels as it is, any other value as ``{"result": …}``, because structured content had to
be an object up to 2025-11-25. A value is checked against the annotation before it is sent.
"""

import collections.abc
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, Union, get_args, get_origin, is_typeddict

import msgspec

from isthmus import wire
from isthmus.errors import UsageError
from isthmus.server import pydantic_types
from isthmus.server.annotations import bare, is_union
from isthmus.server.custom_types import build, encode, expressible
from isthmus.server.defaults import completing
from isthmus.server.media import Audio, Image
from isthmus.server.schemas import Schema, SchemaBuilder
from isthmus.server.validation import Validator

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "CONTENT",
    "Returns",
    "WrongReturn",
    "name_unless_optional",
    "returned_none",
    "wrong_return",
]

Writer: TypeAlias = Callable[[Any], bytes]

CONTENT = (
    wire.TextContent,
    wire.ImageContent,
    wire.AudioContent,
    wire.ResourceLink,
    wire.EmbeddedResource,
    wire.UnknownContent,
    Image,
    Audio,
)
"""What is content for a model already, or nearly."""

UNKEPT = "it returned what its annotation does not allow"

BLOCKS = frozenset((*CONTENT, wire.CallToolResult))
TEXT = frozenset((str, type(None), wire.InputRequiredResult))
SEQUENCES = frozenset(
    (list, tuple, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
)


class WrongReturn(UsageError):
    """A function returned what cannot be its result.

    Args:
        told: what its caller may read: nothing of the value itself.
        detail: what only its author reads, in the log.
    """

    def __init__(self, told: str, detail: object = "") -> None:
        super().__init__(f"{told}: {detail}" if detail else told)
        self.told = told


def wrong_return(value: Any, detail: object = "", told: str = "") -> WrongReturn:
    """What to raise for a value that has no JSON form, or not the one that was promised.

    Args:
        value: what the function returned.
        detail: why it is no result.
        told: what to say where the value is nothing that is typically returned by mistake.
    """
    close = getattr(value, "close", None)
    if isinstance(value, collections.abc.Coroutine):
        close()  # type: ignore[misc]  # it never begins, and must not be warned about
        return WrongReturn("it returned a coroutine: was `await` forgotten?")
    if isinstance(value, collections.abc.Awaitable):
        return WrongReturn(f"it returned a {type(value).__name__}: was `await` forgotten?")
    if isinstance(value, collections.abc.AsyncGenerator):
        return WrongReturn("it returned an async generator: collect its items and return a list")
    if isinstance(value, collections.abc.Generator):
        return WrongReturn("it returned a generator: return a list")
    return WrongReturn(told or f"it returned a value of type {type(value).__name__}", detail)


def returned_none(promised: str) -> WrongReturn:
    """What to raise for a None that was not promised."""
    return WrongReturn(f"it returned None, and is annotated to return {promised}")


class Returns(msgspec.Struct, frozen=True):
    """How a function's return values become results.

    Attributes:
        schema: the output schema; None where there is nothing structured.
        write: a value as JSON; None where there is nothing structured.
        wrapped: ``schema`` is of an object with the value as its member ``result``, because
            structured content had to be an object up to 2025-11-25.
        text: structured content also travels as text (specification 2025-06-18, a SHOULD).
        never_none: the annotation, where it is content and None is none; else "".
    """

    schema: Schema | None = None
    write: Writer | None = None
    text: bool = True
    wrapped: bool = False
    never_none: str = ""

    @classmethod
    def of(cls, annotation: Any, *, text: bool = True, about: str = "") -> "Returns":
        """The plan for a return annotation.

        Args:
            annotation: a type; Any and nothing structured for a function without one.
            text: whether structured content also travels as text.
            about: a sentence about the result, for its schema.

        Raises:
            UsageError: the type has no JSON form.
        """
        annotation = _without_questions(annotation)
        if bare(annotation) in (bytes, bytearray, memoryview):
            raise UsageError(
                "bytes are no result by themselves: return Image(data) or Audio(data), "
                "an EmbeddedResource, or a class with a field of type bytes"
            )
        if _is_content(annotation):
            return cls(text=text, never_none=name_unless_optional(annotation))
        builder = SchemaBuilder("output")
        adapter = pydantic_types.adapter_for(annotation)
        if adapter is not None:
            schema, write = builder.of_pydantic(annotation), _pydantic_writer(adapter)
        else:
            kind = expressible(annotation)
            schema = builder.of(kind)
            models = pydantic_types.survey(annotation).models
            by_type = msgspec.json.Decoder(kind, dec_hook=build).decode
            check = _by_schema(builder.finish(schema)) if models else by_type
            write = completing(annotation, _writer(kind, check))
        complete = builder.finish(schema)
        wrapped = complete.get("type") != "object"
        if wrapped:
            complete = builder.finish(_wrapping(schema))
        if about:
            complete.setdefault("description", about)
        return cls(schema=complete, write=write, text=text, wrapped=wrapped)


def _without_questions(annotation: Any) -> Any:
    """The annotation without InputRequiredResult: a question is not what the function returns."""
    if not is_union(annotation):
        return annotation
    rest = tuple(b for b in get_args(annotation) if b is not wire.InputRequiredResult)
    return Union[rest] if rest else annotation  # noqa: UP007 - made at run time


def _is_content(annotation: Any) -> bool:
    """Whether values of the type are for the model alone: Any, text, blocks, lists with blocks."""
    if annotation is Any or annotation is object or annotation is None:
        return True
    leaves, nested = _leaves(annotation)
    if Any in leaves or not SEQUENCES.isdisjoint(leaves):
        return True  # a list of anything, so of blocks, too
    return not BLOCKS.isdisjoint(leaves) or (not nested and leaves <= TEXT)


def name_unless_optional(annotation: Any) -> str:
    """The name of a type of content that None is none of; "" where None is."""
    if annotation is Any or annotation is object:
        return ""
    leaves, nested = _leaves(annotation)
    if not nested and not leaves.isdisjoint({None, type(None), Any, object}):
        return ""
    return getattr(annotation, "__name__", "") or str(annotation)


def _leaves(annotation: Any) -> tuple[set[Any], bool]:
    """What the type is made of, through unions and lists, and whether there are lists."""
    annotation = bare(annotation)
    origin = get_origin(annotation)
    if origin not in SEQUENCES and not is_union(annotation):
        return {annotation}, False
    leaves: set[Any] = set()
    nested = origin in SEQUENCES
    for argument in get_args(annotation):
        below, deeper = _leaves(argument)
        leaves |= below
        nested |= deeper
    return leaves - {...}, nested


def _wrapping(schema: Schema) -> Schema:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _writer(kind: Any, check: Callable[[bytes], Any]) -> Writer:
    """A value of the type as JSON, once it has been checked to be of the type.

    msgspec does not look into objects when it writes them: reading back what was written is what
    finds a wrong member, a broken constraint, or a NaN, which JSON has no word for.

    spec 2026-07-28 server/tools#output-schema: structured results MUST conform to the schema.
    """
    plain_class = kind if isinstance(kind, type) and not is_typeddict(kind) else ()

    def write(value: Any) -> bytes:
        try:
            if not isinstance(value, plain_class):
                return _converted(value, kind, check)
            data = encode(value)
            check(data)
        except (ValueError, TypeError) as problem:
            raise wrong_return(value, problem, UNKEPT) from problem
        return data

    return _exactly(kind, write) if kind in (int, str, bool) else write


def _converted(value: Any, kind: Any, check: Callable[[bytes], Any]) -> bytes:
    """A value that is not plainly an instance: made one first, so that defaults are written."""
    try:
        data = encode(msgspec.convert(value, kind, dec_hook=build))
        check(data)
    except (ValueError, TypeError):
        # A list of subclasses, say, is not converted, but is as good as what it reads as.
        data = encode(value)
        read = check(data)
        data = data if read is None else encode(read)
    return data


def _by_schema(schema: Schema) -> Callable[[bytes], None]:
    """A check against the schema, for types with pydantic models among their parts.

    A model's names for reading and for writing may differ, so it cannot be read back.
    """
    validator = Validator(schema)

    def check(data: bytes) -> None:
        for path, what in validator.problems(msgspec.json.decode(data)):
            raise ValueError(f"{what} - at `{path}`")

    return check


def _exactly(kind: type, write: Writer) -> Writer:
    """A shorter way for a value that is exactly of a type which has nothing to check."""
    return lambda value: encode(value) if type(value) is kind else write(value)


def _pydantic_writer(adapter: "TypeAdapter[Any]") -> Writer:
    from pydantic import ValidationError

    def write(value: Any) -> bytes:
        try:
            checked = adapter.validate_python(value)
            return adapter.dump_json(checked, by_alias=True, warnings="error")
        except ValidationError as error:
            raise wrong_return(value, pydantic_types.explained(error), UNKEPT) from error
        except ValueError as problem:
            raise wrong_return(value, problem, UNKEPT) from problem

    return write
