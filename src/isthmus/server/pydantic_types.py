"""Pydantic's models, types and ``Field`` metadata, without importing pydantic until they appear.

Nobody can annotate with pydantic before importing it, so ``sys.modules`` answers the common
case. Whatever part of an annotation is pydantic's own is validated, written and described by
pydantic itself: its semantics are what its users expect.
"""

import functools
import re
import sys
from typing import TYPE_CHECKING, Any, get_origin

import msgspec

from isthmus.errors import UsageError
from isthmus.server.annotations import walk

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

__all__ = [
    "FieldFacts",
    "Survey",
    "adapter",
    "adapter_for",
    "explained",
    "field_facts",
    "is_field",
    "is_pydantic",
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
    return "pydantic" in sys.modules and (
        hasattr(kind, "__get_pydantic_core_schema__")
        or hasattr(kind, "__pydantic_core_schema__")  # its dataclasses
    )


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
    if not sys.modules.keys() & {"pydantic", "annotated_types"}:
        return found
    for part in walk(annotation):
        for metadata in getattr(part, "__metadata__", ()):
            found.metadata |= _is_metadata(metadata)
            found.natives |= isinstance(metadata, msgspec.Meta)
        kind = get_origin(part) or part
        if isinstance(kind, type):
            found.models |= is_pydantic(kind)
            found.natives |= issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__")
    return found


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


MAX_TOLD = 1_000
"""Pydantic makes all its problems into objects at once: from so many on they are only counted."""


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


def adapter_for(annotation: Any) -> "TypeAdapter[Any] | None":
    """Pydantic's adapter, where pydantic has to handle the whole annotation; else None.

    Raises:
        UsageError: only pydantic could, and it cannot.
    """
    found = survey(annotation)
    if not (found.models or found.metadata):
        return None
    if found.metadata and found.natives:
        raise UsageError(
            "msgspec types cannot carry pydantic's constraints: use msgspec.Meta with msgspec and "
            "attrs classes, or a pydantic model"
        )
    if found.natives:
        return None
    try:
        return adapter(annotation)
    except UsageError:
        if found.metadata:
            raise
        return None  # models inside what only msgspec knows: it hands them to pydantic one by one


def problems(error: "ValidationError") -> list[tuple[str, str]]:
    """Where and what: each problem as a JSON path below ``$`` and a sentence."""
    if error.error_count() > MAX_TOLD:
        return [("$", f"{error.error_count()} faults")]
    from isthmus.server.schema_faults import show_value  # nothing is wrong with most arguments

    found = []
    for problem in error.errors(include_url=False, include_context=False):
        steps = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"])
        path = "$" + "".join(steps)
        what = re.sub("^(Value error|Assertion failed), ", "", problem["msg"])
        if problem["type"] != "missing":
            what += f", got {show_value(problem['input'], path)}"
        found.append((path, what))
    return found


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
