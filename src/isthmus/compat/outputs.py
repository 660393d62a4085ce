"""Results of another library's tools: the output schema of an annotation, and a value as a result."""

import types as python_types
from collections.abc import Mapping, Sequence
from inspect import Signature
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, RootModel, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from typing_extensions import get_type_hints, is_typeddict

from isthmus.compat import types
from isthmus.compat.dialect import Dialect, InvalidSignature
from isthmus.compat.media import Audio, Image
from isthmus.compat.older_schemas import spell_older_schema
from isthmus.wire import CallToolResult, ContentBlock, InputRequiredResult, TextContent

PLAIN_TYPES = (str, int, float, bool, bytes, type(None))
UNION_ORIGINS = (Union, python_types.UnionType)
SEQUENCE_ORIGINS = (list, tuple, Sequence)
# members by which an answer is told, and its model
RESPONSE_MODELS = (
    ("action", "ElicitResult"), ("roots", "ListRootsResult"), ("role", "CreateMessageResult"),
)  # fmt: skip

decode_content = msgspec.json.Decoder(ContentBlock).decode
decode_result = msgspec.json.Decoder(CallToolResult).decode
decode_questions = msgspec.json.Decoder(InputRequiredResult).decode


class OutputPlan(NamedTuple):
    """How what a function returns becomes a result.

    Attributes:
        schema: the output schema, or None where results are not structured.
        adapter: checks and dumps the structured value.
        wrapped: the value is put into ``{"result": …}``.
    """

    schema: dict[str, Any] | None = None
    adapter: TypeAdapter[Any] | None = None
    wrapped: bool = False


NO_OUTPUT = OutputPlan()


class StrictSchema(GenerateJsonSchema):
    """Generator of schemas for which a warning is an error: what it warns of is no output schema."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Refuse what cannot be told in a schema.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"JSON schema warning: {kind} - {detail}")


def plan_output(
    name: str, annotation: Any, structured: bool | None, dialect: Dialect
) -> OutputPlan:
    """Plan the results of a function by its annotation.

    Args:
        name: of the function, for titles.
        annotation: of what it returns.
        structured: True demands an output schema, False wants none, None takes one if there can be one.
        dialect: what libraries differ in.

    Raises:
        InvalidSignature: an output schema is demanded, and there can be none.
    """
    if structured is False:
        return NO_OUTPUT
    if annotation is Signature.empty:
        if structured:
            raise InvalidSignature(
                f"Function {name}: return annotation required for structured output"
            )
        return NO_OUTPUT
    annotation = _drop_questions(name, annotation)
    bare, extras = _split_annotated(annotation)
    if _is_class(bare, types.CallToolResult):
        if not extras:
            return NO_OUTPUT
        bare, *rest = extras
        annotation = Annotated[(bare, *rest)] if rest else bare
    elif _is_class(bare, types.InputRequiredResult) or (
        structured is None and dialect.content_unstructured and returns_content(bare)
    ):
        return NO_OUTPUT
    made = _make_plan(name, annotation, bare, dialect)
    if made is None and structured:
        raise InvalidSignature(
            f"Function {name}: return type {bare} is not serializable for structured output"
        )
    return made or NO_OUTPUT


def _drop_questions(name: str, annotation: Any) -> Any:
    """An annotation without ``InputRequiredResult``, which is no data but a way to ask.

    Raises:
        InvalidSignature: a whole result is one of several things that are returned.
    """
    bare, _ = _split_annotated(annotation)
    if get_origin(bare) not in UNION_ORIGINS:
        return annotation
    arms = get_args(bare)
    kept = tuple(arm for arm in arms if not _is_class(arm, types.InputRequiredResult))
    if len(kept) > 1 and any(_is_class(arm, types.CallToolResult) for arm in kept):
        raise InvalidSignature(
            f"Function {name}: CallToolResult cannot be used in Union or Optional types. "
            "To return empty results, use: CallToolResult(content=[])"
        )
    if not kept:
        return types.InputRequiredResult
    return annotation if len(kept) == len(arms) else Union[kept]  # noqa: UP007 - of a tuple


def _split_annotated(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    if get_origin(annotation) is Annotated:
        bare, *extras = get_args(annotation)
        return bare, tuple(extras)
    return annotation, ()


def _is_class(kind: Any, wanted: Any) -> bool:
    return isinstance(kind, type) and not get_origin(kind) and issubclass(kind, wanted)


def returns_content(annotation: Any) -> bool:
    """Whether an annotation is of content blocks, pictures or sounds, or of lists or unions of them."""
    origin = get_origin(annotation)
    if origin is None:
        blocks = (*get_args(types.ContentBlock), Image, Audio)
        return isinstance(annotation, type) and issubclass(annotation, blocks)
    if origin is Annotated:
        return returns_content(get_args(annotation)[0])
    if origin in UNION_ORIGINS or origin in SEQUENCE_ORIGINS:
        return any(returns_content(one) for one in get_args(annotation))
    return False


def _make_plan(name: str, annotation: Any, bare: Any, dialect: Dialect) -> OutputPlan | None:
    """The plan for an annotation; None where pydantic knows no schema for it."""
    try:
        model, wrapped = _make_output_model(name, annotation, bare, dialect)
        if model is None:
            return None
        adapter = TypeAdapter(model)
        schema = adapter.json_schema(schema_generator=StrictSchema)
    except (PydanticUserError, NameError, TypeError, ValueError, pydantic_core.SchemaError):
        return None
    made = inline_root(schema)
    if not dialect.content_unstructured:
        made = spell_older_schema(made)
    return OutputPlan(made, adapter, wrapped)


def _make_output_model(name: str, annotation: Any, bare: Any, dialect: Dialect) -> tuple[Any, bool]:
    """The type that structured results are checked by, and whether they are wrapped."""
    origin = get_origin(bare)
    if origin is dict and not isinstance(bare, type(Union[int, str])):  # noqa: UP007 - its class
        arguments = get_args(bare)
        if len(arguments) == 2 and arguments[0] is str and _is_builtin_alias(bare):
            title = f"{name}DictOutput"
            if dialect.typed_dict_models:
                root = RootModel[bare]
                return type(title, (root,), {"__module__": __name__}), False
            return Annotated[bare, Field(title=title)], False
    if origin is None and isinstance(bare, type):
        if issubclass(bare, BaseModel):
            return bare, False
        if is_typeddict(bare):
            return (_make_typed_dict_model(bare) if dialect.typed_dict_models else bare), False
        if bare not in PLAIN_TYPES:
            hints = get_type_hints(bare)
            return (_make_class_model(bare, hints) if hints else None), False
    return create_model(f"{name}Output", result=annotation), True


def _is_builtin_alias(kind: Any) -> bool:
    return isinstance(kind, python_types.GenericAlias)


def _make_class_model(kind: type, hints: dict[str, Any]) -> type[BaseModel]:
    """The model of a dataclass or another class with annotations."""
    fields: dict[str, Any] = {}
    for key, hint in hints.items():
        if not key.startswith("_"):
            fields[key] = (hint, getattr(kind, key)) if hasattr(kind, key) else hint
    model: type[BaseModel] = create_model(
        kind.__name__, __config__=ConfigDict(from_attributes=True), **fields
    )
    return model


def _make_typed_dict_model(kind: Any) -> type[BaseModel]:
    """The model of a ``TypedDict``, as ``mcp`` 1.x makes one."""
    hints, required = get_type_hints(kind), kind.__required_keys__
    fields: dict[str, Any] = {
        key: hint if key in required else (hint, None) for key, hint in hints.items()
    }
    model: type[BaseModel] = create_model(kind.__name__, **fields)
    return model


def inline_root(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema whose root is a reference into its definitions, with the definition at its root."""
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/$defs/"):
        return schema
    root = schema["$defs"][ref.removeprefix("#/$defs/")]
    return {**root, **{key: value for key, value in schema.items() if key != "$ref"}}


def read_responses(responses: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answers to questions that a tool returned, as models of the library; None for none."""
    return {key: _read_response(one) for key, one in responses.items()} or None


def _read_response(response: Any) -> Any:
    if not isinstance(response, Mapping):
        return response
    known = (model for member, model in RESPONSE_MODELS if member in response)
    model = next(known, None)
    return response if model is None else getattr(types, model).model_validate(response)


def to_wire_result(value: Any, plan: OutputPlan) -> CallToolResult | InputRequiredResult:
    """What a function returned as the result of its call.

    Raises:
        pydantic.ValidationError: it does not fit the output schema.
    """
    adapter = plan.adapter
    if isinstance(value, BaseModel):
        if isinstance(value, types.InputRequiredResult):
            return decode_questions(dump_wire(value))
        if isinstance(value, types.CallToolResult):
            if adapter is not None and not value.is_error:
                adapter.validate_python(value.structured_content)
            return decode_result(dump_wire(value))
    content = to_wire_content(value)
    if adapter is None:
        return CallToolResult(content=content, is_error=False)
    checked = adapter.validate_python({"result": value} if plan.wrapped else value)
    structured = (
        checked.model_dump(mode="json", by_alias=True)
        if isinstance(checked, BaseModel)
        else adapter.dump_python(checked, mode="json", by_alias=True)
    )
    return CallToolResult(content=content, structured_content=structured, is_error=False)


def dump_wire(value: BaseModel) -> bytes:
    """A model of ``mcp.types`` as JSON, as it goes over the wire."""
    return value.model_dump_json(by_alias=True, exclude_none=True).encode()


def to_wire_content(value: Any) -> list[Any]:
    """Any value as content: text as it is, blocks, pictures and sounds, lists one by one, else JSON."""
    if type(value) is str:
        return [TextContent(text=value)]
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [block for item in value for block in to_wire_content(item)]
    if isinstance(value, Image):
        value = value.to_image_content()
    elif isinstance(value, Audio):
        value = value.to_audio_content()
    if isinstance(value, types.ContentBlock):
        return [decode_content(dump_wire(value))]
    if isinstance(value, str):
        return [TextContent(text=str(value))]
    return [TextContent(text=pydantic_core.to_json(value, fallback=str, indent=2).decode())]
