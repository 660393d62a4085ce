"""Pydantic's models, types and ``Field`` metadata, without importing pydantic until they appear.

Nobody can annotate with pydantic before importing it, so ``sys.modules`` answers the common
case. Whatever part of an annotation is pydantic's own is validated, written and described by
pydantic itself: its semantics are what its users expect.
"""

import functools
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from isthmus.errors import UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "FieldFacts",
    "Survey",
    "adapter",
    "explained",
    "field_facts",
    "is_field",
    "is_pydantic",
    "json_schema",
    "member_names",
    "problems",
    "survey",
    "validated",
]


class Survey(msgspec.Struct):
    """What an annotation is made of, however deep.

    Attributes:
        models: classes that only pydantic can build.
        metadata: constraints that only pydantic can check.
        natives: types or constraints that only msgspec can handle.
    """

    models: bool = False
    metadata: bool = False
    natives: bool = False

    @property
    def pydantic(self) -> bool:
        """Whether pydantic is needed at all."""
        return self.models or self.metadata


class FieldFacts(msgspec.Struct, frozen=True):
    """What a ``Field(…)`` on a parameter says, taken apart: pydantic wants it on models only."""

    alias: str | None
    description: str | None
    default: Any
    default_factory: Any
    constraints: tuple[Any, ...]
    examples: list[Any] | None


def is_pydantic(kind: Any) -> bool:
    """Whether only pydantic can build values of this class."""
    return "pydantic" in sys.modules and hasattr(kind, "__get_pydantic_core_schema__")


def is_field(metadata: Any) -> bool:
    """Whether a piece of ``Annotated`` metadata, or a default value, is pydantic's ``Field``."""
    return type(metadata).__name__ == "FieldInfo" and _module(metadata) == "pydantic"


def _module(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _is_metadata(metadata: Any) -> bool:
    return _module(metadata) in {"pydantic", "annotated_types"} or is_pydantic(metadata)


def survey(annotation: Any) -> Survey:
    """What the annotation is made of."""
    found = Survey()
    if sys.modules.keys() & {"pydantic", "annotated_types"}:
        for part in _parts(annotation, set()):
            if isinstance(part, type):
                found.models |= is_pydantic(part)
                found.natives |= issubclass(part, msgspec.Struct) or hasattr(
                    part, "__attrs_attrs__"
                )
            else:
                found.metadata |= _is_metadata(part)
                found.natives |= isinstance(part, msgspec.Meta)
    return found


def _parts(annotation: Any, seen: set[int]) -> Iterator[Any]:
    """Every class and every piece of metadata in the annotation, fields of classes included."""
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    if get_origin(annotation) is Annotated:
        yield from annotation.__metadata__
        annotation = annotation.__origin__
    annotation = getattr(annotation, "__value__", annotation)  # `type X = …`
    annotation = getattr(annotation, "__supertype__", annotation)  # NewType
    kind = get_origin(annotation) or annotation
    if isinstance(kind, type) and kind is not types.UnionType:
        yield kind
        if not is_pydantic(kind):
            for member in _member_types(kind):
                yield from _parts(member, seen)
    if kind is not Literal:
        for argument in get_args(annotation):
            yield from _parts(argument, seen)


def _member_types(kind: type) -> list[Any]:
    """The annotations of a class's members, for the classes that are records."""
    if kind.__module__ == "builtins" or not getattr(kind, "__annotations__", None):
        return []
    try:
        return list(get_type_hints(kind, include_extras=True).values())
    except (NameError, TypeError):
        return []  # msgspec or pydantic will say what is wrong with it


def field_facts(field: Any) -> FieldFacts:
    """What a ``Field(…)`` on a parameter says.

    Raises:
        UsageError: its alias is not one name.
    """
    from pydantic_core import PydanticUndefined

    alias = field.validation_alias or field.alias
    if alias is not None and not isinstance(alias, str):
        raise UsageError(f"a parameter has one name on the wire; {alias!r} offers several")
    unset = field.default is PydanticUndefined or field.default is ...
    return FieldFacts(
        alias=alias,
        description=field.description,
        default=msgspec.NODEFAULT if unset else field.default,
        default_factory=field.default_factory or msgspec.NODEFAULT,
        constraints=(*field.metadata, *_discriminator(field)),
        examples=field.examples,
    )


def _discriminator(field: Any) -> list[Any]:
    from pydantic import Discriminator

    tells = field.discriminator
    return [Discriminator(tells) if isinstance(tells, str) else tells] if tells else []


@functools.lru_cache(maxsize=1024)
def _cached_adapter(annotation: Any) -> "TypeAdapter[Any]":
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError) as refusal:
        raise UsageError(f"pydantic cannot handle {annotation!r}: {refusal}") from refusal


def adapter(annotation: Any) -> "TypeAdapter[Any]":
    """Pydantic's adapter for an annotation, made once where the annotation can be a key.

    Raises:
        UsageError: pydantic is missing or cannot handle the annotation.
    """
    try:
        hash(annotation)
    except TypeError:
        return _cached_adapter.__wrapped__(annotation)
    try:
        return _cached_adapter(annotation)
    except ImportError as missing:
        raise UsageError(
            f"{annotation!r} needs pydantic to be checked: pip install 'isthmus[pydantic]'"
        ) from missing


def json_schema(annotation: Any, mode: Literal["input", "output"]) -> dict[str, Any]:
    """Pydantic's own schema: the validation form for input, the serialization form for output."""
    return adapter(annotation).json_schema(
        mode="validation" if mode == "input" else "serialization",
        schema_generator=_generator(),
    )


@functools.cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Untitled(GenerateJsonSchema):
        """Pydantic's schemas without titles made up from names, truthful about defaults."""

        def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
            return False

        def field_is_required(self, field: Any, total: bool) -> bool:
            if self.mode == "validation" or field["type"] == "typed-dict-field":
                return super().field_is_required(field, total)
            return field.get("serialization_exclude_if") is None  # a default is written too

    return Untitled


def member_names(model: Any) -> frozenset[str] | None:
    """The names under which a model reads its members; None if it is no object."""
    names = json_schema(model, "input").get("properties")
    return None if names is None else frozenset(names)


def problems(error: "ValidationError") -> list[tuple[str, str]]:
    """Where and what: each problem as a JSON path below ``$`` and a sentence."""
    return [
        (
            "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"]),
            problem["msg"],
        )
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def validated(kind: Any, data: bytes) -> Any:
    """A value of a pydantic type from JSON.

    Raises:
        ValueError: it does not fit; the text is one line.
    """
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_json(data)
    except ValidationError as error:
        raise ValueError(explained(error)) from error


def explained(error: "ValidationError") -> str:
    """All problems in one line."""
    return "; ".join(
        what if path == "$" else f"{path[2:]}: {what}" for path, what in problems(error)
    )
