"""Results: what a function returns, checked against its annotation, as content on the wire.

Text and content blocks are for the model and have no schema. Everything else is structured: an
object travels as it is, any other value as ``{"result": …}``, because structured content had to
be an object up to 2025-11-25. A value is checked against the annotation before it is sent.
"""

import base64
import collections.abc
import os
from collections.abc import Callable
from functools import cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    is_typeddict,
)

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.core.encoding import replace_surrogates
from isthmus.errors import UsageError
from isthmus.server.guard.sanitise import MAX_SHORT_CHARS, Sanitise, has_controls
from isthmus.server.schema import pydantic_types
from isthmus.server.schema.annotations import is_plain, is_union, unwrap_annotation
from isthmus.server.schema.custom_types import (
    decode_custom,
    encode_custom,
    make_expressible,
    write_json,
)
from isthmus.server.schema.defaults import complete_defaults
from isthmus.server.schema.json_schema import PLAIN_SCHEMAS, Schema, SchemaBuilder
from isthmus.server.schema.validation import Validator
from isthmus.wire import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    PromptMessage,
    ResourceContents,
    ResourceLink,
    Role,
    TextContent,
    TextResourceContents,
    UnknownContent,
)

if TYPE_CHECKING:
    from pydantic import TypeAdapter

# Images and sounds


class Media:
    """Bytes with a MIME type, made from bytes or from a file.

    Args:
        mime_type: the MIME type of the bytes.
        data: the bytes themselves.
        path: a file to read them from, now; its ending tells the format.
        format: the usual file ending (``png``, ``wav``) or a whole MIME type.

    Attributes:
        FORMATS: the MIME types by the usual file endings.

    Raises:
        UsageError: neither or both of ``data`` and ``path`` were given, or no format is known.
    """

    FORMATS: ClassVar[dict[str, str]] = {}

    def __init__(
        self,
        data: bytes | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        format: str | None = None,
    ) -> None:
        if (data is None) == (path is None):
            raise UsageError(f"{type(self).__name__} needs either data=bytes or path=file")
        if path is not None:
            format = format or os.path.splitext(path)[1].lstrip(".")  # noqa: PTH122 - pathlib costs start-up time
            with open(path, "rb") as file:  # noqa: PTH123 - same
                data = file.read()
        self.data = data or b""
        self.mime_type = self._mime_type(format)

    def _mime_type(self, ending: str | None) -> str:
        if ending and "/" in ending:
            return ending
        known = self.FORMATS.get((ending or "").lower())
        if known is None:
            raise UsageError(
                f"{type(self).__name__} does not know the format {ending!r}: pass format= with "
                f"one of {', '.join(self.FORMATS)} or a MIME type"
            )
        return known

    @property
    def base64(self) -> str:
        """The bytes as they travel."""
        return base64.b64encode(self.data).decode("ascii")


class Image(Media):
    """A picture that a tool or prompt returns.

    Example::

        @server.tool
        def plot(values: list[float]) -> Image:
            return Image(render(values), format="png")
    """

    FORMATS: ClassVar[dict[str, str]] = {
        "png": "image/png",
        "jpg": "image/jpeg",
        "jpeg": "image/jpeg",
        "gif": "image/gif",
        "webp": "image/webp",
        "bmp": "image/bmp",
        "svg": "image/svg+xml",
    }

    def to_content(self) -> ImageContent:
        """The content block that travels."""
        return ImageContent(data=self.base64, mime_type=self.mime_type)


class Audio(Media):
    """A sound that a tool or prompt returns: ``Audio(path="bell.wav")``."""

    FORMATS: ClassVar[dict[str, str]] = {
        "wav": "audio/wav",
        "mp3": "audio/mpeg",
        "ogg": "audio/ogg",
        "flac": "audio/flac",
        "m4a": "audio/mp4",
        "aac": "audio/aac",
        "webm": "audio/webm",
    }

    def to_content(self) -> AudioContent:
        """The content block that travels."""
        return AudioContent(data=self.base64, mime_type=self.mime_type)


# What an annotation promises

Writer: TypeAlias = Callable[[Any], bytes]

CONTENT_TYPES = (
    TextContent,
    ImageContent,
    AudioContent,
    ResourceLink,
    EmbeddedResource,
    UnknownContent,
    Image,
    Audio,
)

BROKEN_ANNOTATION = "it returned what its annotation does not allow"

BLOCK_TYPES = frozenset((*CONTENT_TYPES, CallToolResult))
# What is no result already, told at a glance
PLAIN_TYPES = frozenset((int, str, bool, float, list, dict, type(None)))
TEXT_TYPES = frozenset((str, type(None), InputRequiredResult))
SEQUENCE_TYPES = frozenset(
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


def make_wrong_return(value: Any, detail: object = "", told: str = "") -> WrongReturn:
    """Make the exception for a value that has no JSON form, or not the one that was promised.

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


def make_none_returned(promised: str) -> WrongReturn:
    """Make the exception for a None that was not promised."""
    return WrongReturn(f"it returned None, and is annotated to return {promised}")


class ReturnPlan(msgspec.Struct, frozen=True):
    """The plan by which a function's return values become results.

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
    def of(
        cls, annotation: Any, *, text: bool = True, structured: bool = False, about: str = ""
    ) -> "ReturnPlan":
        """The plan for a return annotation.

        Args:
            annotation: a type; Any and nothing structured for a function without one.
            text: whether structured content also travels as text.
            structured: whether a ``str`` is structured content, too.
            about: a sentence about the result, for its schema.

        Raises:
            UsageError: the type has no JSON form, or is content that cannot be structured.
        """
        annotation = _drop_questions(annotation)
        if unwrap_annotation(annotation) in (bytes, bytearray, memoryview):
            raise UsageError(
                "bytes are no result by themselves: return Image(data) or Audio(data), "
                "an EmbeddedResource, or a class with a field of type bytes"
            )
        if _is_content(annotation) and not (structured and unwrap_annotation(annotation) is str):
            if structured:
                raise UsageError("structured=True is for tools that are annotated with -> str")
            return cls(text=text, never_none=name_unless_optional(annotation))
        if is_plain(annotation):
            complete, wrapped = _wrap_schema({**PLAIN_SCHEMAS[annotation]}), True
            write = _make_plain_writer(annotation)
        else:
            complete, wrapped, write = _plan_structured(annotation)
        if about:
            complete.setdefault("description", about)
        return cls(schema=complete, write=write, text=text, wrapped=wrapped)


def _plan_structured(annotation: Any) -> tuple[Schema, bool, Writer]:
    """The output schema of a type, whether it is of an object around the value, and the writer.

    Raises:
        UsageError: the type has no JSON form.
    """
    builder = SchemaBuilder("output")
    adapter = pydantic_types.find_adapter(annotation)
    if adapter is not None:
        schema, write = builder.of_pydantic(annotation), _make_pydantic_writer(adapter)
    else:
        kind = make_expressible(annotation)
        schema = builder.of(kind)
        models = pydantic_types.survey_annotation(annotation).models
        by_type = msgspec.json.Decoder(kind, dec_hook=decode_custom).decode
        check = _make_schema_check(builder.finish(schema)) if models else by_type
        write = complete_defaults(annotation, _make_writer(kind, check))
    complete = builder.finish(schema)
    if complete.get("type") == "object":
        return complete, False, write
    return builder.finish(_wrap_schema(schema)), True, write


def _drop_questions(annotation: Any) -> Any:
    """The annotation without InputRequiredResult: a question is not what the function returns."""
    if not is_union(annotation):
        return annotation
    rest = tuple(b for b in get_args(annotation) if b is not InputRequiredResult)
    return Union[rest] if rest else annotation  # noqa: UP007 - made at run time


def _is_content(annotation: Any) -> bool:
    """Whether values of the type are for the model alone: Any, text, blocks, lists with blocks."""
    if annotation is Any or annotation is object or annotation is None:
        return True
    leaves, nested = _collect_leaves(annotation)
    if Any in leaves or not SEQUENCE_TYPES.isdisjoint(leaves):
        return True  # a list of anything, so of blocks, too
    return not BLOCK_TYPES.isdisjoint(leaves) or (not nested and leaves <= TEXT_TYPES)


def name_unless_optional(annotation: Any) -> str:
    """The name of a type of content that None is none of; "" where None is."""
    if annotation is Any or annotation is object:
        return ""
    leaves, nested = _collect_leaves(annotation)
    if not nested and not leaves.isdisjoint({None, type(None), Any, object}):
        return ""
    return getattr(annotation, "__name__", "") or str(annotation)


def _collect_leaves(annotation: Any) -> tuple[set[Any], bool]:
    """Collect what a type is made of, through unions and lists, and whether there are lists."""
    annotation = unwrap_annotation(annotation)
    origin = get_origin(annotation)
    if origin not in SEQUENCE_TYPES and not is_union(annotation):
        return {annotation}, False
    leaves: set[Any] = set()
    nested = origin in SEQUENCE_TYPES
    for argument in get_args(annotation):
        below, deeper = _collect_leaves(argument)
        leaves |= below
        nested |= deeper
    return leaves - {...}, nested


def _wrap_schema(schema: Schema) -> Schema:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _make_writer(kind: Any, check: Callable[[bytes], Any]) -> Writer:
    """A value of the type as JSON, once it has been checked to be of the type.

    msgspec does not look into objects when it writes them: reading back what was written is what
    finds a wrong member, a broken constraint, or a NaN, which JSON has no word for.

    spec 2026-07-28 server/tools#output-schema: structured results MUST conform to the schema.
    """
    plain_class = kind if isinstance(kind, type) and not is_typeddict(kind) else ()

    def write(value: Any) -> bytes:
        try:
            if not isinstance(value, plain_class):
                return _convert_and_write(value, kind, check)
            data = write_json(value)
            check(data)
        except (ValueError, TypeError) as problem:
            raise make_wrong_return(value, problem, BROKEN_ANNOTATION) from problem
        return data

    return _make_exact_writer(kind, write) if kind in (int, str, bool) else write


@cache
def _make_plain_writer(kind: Any) -> Writer:
    """The writer of a type that has nothing to check, which all functions of it share."""
    return _make_writer(kind, msgspec.json.Decoder(kind, dec_hook=decode_custom).decode)


def _convert_and_write(value: Any, kind: Any, check: Callable[[bytes], Any]) -> bytes:
    """A value that is not plainly an instance: made one first, so that defaults are written."""
    try:
        data = write_json(msgspec.convert(value, kind, dec_hook=decode_custom))
        check(data)
    except (ValueError, TypeError):
        # A list of subclasses, say, is not converted, but is as good as what it reads as.
        data = write_json(value)
        read = check(data)
        data = data if read is None else write_json(read)
    return data


def _make_schema_check(schema: Schema) -> Callable[[bytes], None]:
    """A check against the schema, for types with pydantic models among their parts.

    A model's names for reading and for writing may differ, so it cannot be read back.
    """
    validator = Validator(schema)

    def check(data: bytes) -> None:
        for path, what in validator.problems(msgspec.json.decode(data)):
            raise ValueError(f"{what} - at `{path}`")

    return check


def _make_exact_writer(kind: type, write: Writer) -> Writer:
    """A shorter way for a value that is exactly of a type which has nothing to check."""
    return lambda value: write_json(value) if type(value) is kind else write(value)


def _make_pydantic_writer(adapter: "TypeAdapter[Any]") -> Writer:
    from pydantic import ValidationError

    def write(value: Any) -> bytes:
        try:
            checked = adapter.validate_python(value)
            return adapter.dump_json(checked, by_alias=True, warnings="error")
        except ValidationError as error:
            raise make_wrong_return(
                value, pydantic_types.join_problems(error), BROKEN_ANNOTATION
            ) from error
        except ValueError as problem:
            raise make_wrong_return(value, problem, BROKEN_ANNOTATION) from problem

    return write


# Results and contents of each method


def to_call_result(
    value: Any, plan: ReturnPlan, clean: Sanitise | None = None
) -> CallToolResult | InputRequiredResult:
    """The result of a tool.

    Structured content is kept as the JSON it travels as (`msgspec.Raw`), written once for both
    its forms.

    Args:
        value: what the function returned.
        plan: what its annotation promised.
        clean: makes it safe to show, or None.

    Raises:
        UsageError: the value is not what was promised, or has no JSON form.
    """
    if type(value) not in PLAIN_TYPES and isinstance(value, CallToolResult | InputRequiredResult):
        return value if clean is None else clean.result(value)
    if plan.write is None:
        if value is None and plan.never_none:
            raise make_none_returned(plan.never_none)
        result = CallToolResult(content=to_content(value))
        return result if clean is None else clean.result(result)
    try:
        data = plan.write(value)
    except (UsageError, UnicodeEncodeError) as problem:
        if not _has_surrogates(problem):
            raise
        value = _to_encodable(value)
        data = plan.write(value)
    content: list[ContentBlock] = []
    harmless = True
    if plan.text:  # the value itself: a model has no use for the wrapping, nor for more quotes
        text = value if isinstance(value, str) else data.decode()
        content.append(TextContent(text=text))
        short = len(text) <= MAX_SHORT_CHARS
        harmless = text.isprintable() if short else clean is None or not has_controls(text)
    structured = b'{"result":%b}' % data if plan.wrapped else data
    result = CallToolResult(content=content, structured_content=Raw(structured))
    if clean is None or (harmless and (clean.most is None or 2 * len(structured) <= clean.most)):
        return result
    return clean.result(result)


def _has_surrogates(problem: Exception) -> bool:
    """Whether halves of surrogates are what kept a value from being written."""
    cause = problem if isinstance(problem, UnicodeEncodeError) else problem.__cause__
    return isinstance(cause, UnicodeEncodeError)


def _to_encodable(value: Any) -> Any:
    """The value without the halves of surrogates that kept it from being written."""
    return replace_surrogates(msgspec.to_builtins(value, str_keys=True, enc_hook=encode_custom))


def to_content(value: Any) -> list[ContentBlock]:
    """A value as content blocks for a model.

    None is no content, text is text, blocks are themselves, a list with blocks in it is each of
    its items; anything else is JSON.

    Raises:
        UsageError: the value has no such form.
    """
    if value is None:
        return []
    if isinstance(value, list | tuple) and any(isinstance(item, CONTENT_TYPES) for item in value):
        return [_make_block(item) for item in value]
    return [_make_block(value)]


def _make_block(value: Any) -> ContentBlock:
    if isinstance(value, str):
        return TextContent(text=value)
    if isinstance(value, Image | Audio):
        return value.to_content()
    if isinstance(value, CONTENT_TYPES):
        return value  # type: ignore[return-value]  # the two that are not blocks have gone
    return TextContent(text=_make_json_text(value))


def _make_json_text(value: Any) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        raise WrongReturn(
            "bytes are no content by themselves: return Image(data), Audio(data) or "
            "an EmbeddedResource"
        )
    try:
        return write_json(value).decode()
    except UnicodeEncodeError:
        return write_json(_to_encodable(value)).decode()
    except (TypeError, ValueError) as problem:
        told = f"it returned a value of type {type(value).__name__}, which has no JSON form"
        raise make_wrong_return(value, problem, told) from problem


def to_resource_contents(
    value: Any, uri: str, mime_type: str | None = None, *, readable: bool = True
) -> list[ResourceContents]:
    """Make the contents of a resource of what was read.

    Args:
        value: text, bytes, wire contents, a list with wire contents, or anything with a JSON form.
        uri: the resource's.
        mime_type: its declared type; otherwise ``text/plain``, ``application/octet-stream`` or
            ``application/json``, by what the value is.
        readable: somebody may look into them before they are sent. Where nobody does, ``blob`` stays
            the bytes themselves.

    Raises:
        UsageError: the value has no such form.
    """
    several = isinstance(value, list | tuple) and any(
        isinstance(item, ResourceContents) for item in value
    )
    contents = [_make_contents(item, uri, mime_type) for item in (value if several else (value,))]
    return [_encode_blob(one) for one in contents] if readable else contents


def _make_contents(value: Any, uri: str, mime_type: str | None) -> ResourceContents:
    if isinstance(value, ResourceContents):
        return value
    if isinstance(value, Image | Audio):
        return make_blob(value.data, uri, value.mime_type)
    if isinstance(value, bytes | bytearray | memoryview):
        return make_blob(value, uri, mime_type or "application/octet-stream")
    if isinstance(value, str):
        return TextResourceContents(uri=uri, mime_type=mime_type or "text/plain", text=value)
    return TextResourceContents(
        uri=uri, mime_type=mime_type or "application/json", text=_make_json_text(value)
    )


def make_blob(
    data: bytes | bytearray | memoryview, uri: str, mime_type: str
) -> BlobResourceContents:
    """Make contents of bytes that are not base64 yet.

    The encoder writes bytes as base64: there never is a text of it, beside the bytes and the answer.
    """
    return BlobResourceContents(uri=uri, mime_type=mime_type, blob=data)  # type: ignore[arg-type]  # until it is encoded


def _encode_blob(contents: ResourceContents) -> ResourceContents:
    """Contents whose bytes are base64, as whoever looks into them expects."""
    data: Any = contents.blob
    if data is UNSET or isinstance(data, str):
        return contents
    return structs.replace(contents, blob=base64.b64encode(data).decode("ascii"))


def to_prompt_messages(value: Any) -> list[PromptMessage]:
    """A prompt's messages.

    Args:
        value: text, a content block, a message, a ``(role, text or block)`` pair, or a list of
            these; who is not named speaks as the user.

    Raises:
        UsageError: the value has no such form.
    """
    if isinstance(value, list) or (isinstance(value, tuple) and not _is_pair(value)):
        return [message for item in value for message in to_prompt_messages(item)]
    if isinstance(value, PromptMessage):
        return [value]
    role: Role
    role, said = value if _is_pair(value) else ("user", value)
    return [PromptMessage(role=role, content=block) for block in to_content(said)]


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and value[0] in ("user", "assistant")
