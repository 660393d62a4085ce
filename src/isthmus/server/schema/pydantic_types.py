"""Pydantic's models, types and ``Field`` metadata, without importing pydantic until they appear.

Nobody can annotate with pydantic before importing it, so ``sys.modules`` answers the common
case. Whatever part of an annotation is pydantic's own is validated, written and described by
pydantic itself: its semantics are what its users expect. Its JSON Schemas are in our profile.
"""

import functools
import re
import sys
from typing import TYPE_CHECKING, Any, Literal, cast, get_origin

import msgspec

from isthmus.errors import UsageError
from isthmus.server.schema import patterns
from isthmus.server.schema.annotations import walk_annotation

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


class AnnotationSurvey(msgspec.Struct):
    """The parts of an annotation, however deep.

    Attributes:
        models: classes that only pydantic can build.
        metadata: constraints that only pydantic can check.
        natives: types or constraints that only msgspec can handle.
    """

    models: bool = False
    metadata: bool = False
    natives: bool = False


class FieldFacts(msgspec.Struct, frozen=True):
    """The facts of a ``Field(…)`` on a parameter; pydantic itself wants it on models only."""

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
    return type(metadata).__name__ == "FieldInfo" and _find_package(metadata) == "pydantic"


def _find_package(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def _is_metadata(metadata: Any) -> bool:
    return _find_package(metadata) in {"pydantic", "annotated_types"} or is_pydantic(metadata)


def survey_annotation(annotation: Any) -> AnnotationSurvey:
    """Look through an annotation for what only pydantic, or only msgspec, can handle."""
    found = AnnotationSurvey()
    if not sys.modules.keys() & {"pydantic", "annotated_types"}:
        return found
    for part in walk_annotation(annotation):
        for metadata in getattr(part, "__metadata__", ()):
            found.metadata |= _is_metadata(metadata)
            found.natives |= isinstance(metadata, msgspec.Meta)
        kind = get_origin(part) or part
        if isinstance(kind, type):
            found.models |= is_pydantic(kind)
            found.natives |= issubclass(kind, msgspec.Struct) or hasattr(kind, "__attrs_attrs__")
    return found


def read_field_facts(field: Any) -> FieldFacts:
    """Read the facts of a ``Field(…)`` on a parameter.

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
        constraints=(*field.metadata, *_list_discriminators(field)),
        examples=field.examples,
    )


def _list_discriminators(field: Any) -> list[Any]:
    from pydantic import Discriminator

    tells = field.discriminator
    return [Discriminator(tells) if isinstance(tells, str) else tells] if tells else []


MAX_LISTED_PROBLEMS = 1_000  # pydantic makes all into objects at once; more are only counted


@functools.lru_cache(maxsize=1024)
def _cached_adapter(annotation: Any) -> "TypeAdapter[Any]":
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        return TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError) as refusal:
        raise UsageError(f"pydantic cannot handle {annotation!r}: {refusal}") from refusal


def make_adapter(annotation: Any) -> "TypeAdapter[Any]":
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


def find_adapter(annotation: Any) -> "TypeAdapter[Any] | None":
    """Pydantic's adapter, where pydantic has to handle the whole annotation; else None.

    Raises:
        UsageError: only pydantic could, and it cannot.
    """
    found = survey_annotation(annotation)
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
        return make_adapter(annotation)
    except UsageError:
        if found.metadata:
            raise
        return None  # models inside what only msgspec knows: it hands them to pydantic one by one


def list_problems(error: "ValidationError") -> list[tuple[str, str]]:
    """List the problems of an error, each as a JSON path below ``$`` and a sentence."""
    if error.error_count() > MAX_LISTED_PROBLEMS:
        return [("$", f"{error.error_count()} faults")]
    from isthmus.server.schema.faults import show_value  # nothing is wrong with most arguments

    found = []
    for problem in error.errors(include_url=False, include_context=False):
        steps = (f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"])
        path = "$" + "".join(steps)
        what = re.sub("^(Value error|Assertion failed), ", "", problem["msg"])
        if problem["type"] != "missing":
            what += f", got {show_value(problem['input'], path)}"
        found.append((path, what))
    return found


def validate_json(kind: Any, data: bytes) -> Any:
    """A value of a pydantic type from JSON.

    Raises:
        ValueError: it does not fit; the text is one line.
    """
    from pydantic import ValidationError

    try:
        return make_adapter(kind).validate_json(data)
    except ValidationError as error:
        raise ValueError(join_problems(error)) from error


def join_problems(error: "ValidationError") -> str:
    """All problems in one line."""
    return "; ".join(
        what if path == "$" else f"{path[2:]}: {what}" for path, what in list_problems(error)
    )


# Schemas

NUMBER_KEY_PATTERNS = {"int": patterns.INTEGER_KEY, "float": patterns.FLOAT_KEY}
UNNAMEABLE_KINDS = {"bool", "decimal", "tuple", "none"}
KEYS_REFUSAL = (
    "a dictionary's keys must be strings, enumerations of strings, or numbers without bounds"
)
BOUND_NAMES = {"ge", "gt", "le", "lt", "multiple_of", "max_digits"}


class TruthfulForms:
    """Schemas that differ from those of pydantic's own generator, the next class in line."""

    mode: Literal["validation", "serialization"]

    @property
    def _writes(self) -> bool:
        return self.mode == "serialization"

    @property
    def _usual(self) -> Any:
        return cast("Any", super())

    def field_title_should_be_set(self, _: Any) -> bool:
        """Titles made up from names are noise."""
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        """A default is written too, so output always has it."""
        if not self._writes or field["type"] == "typed-dict-field":
            return bool(self._usual.field_is_required(field, total))
        return field.get("serialization_exclude_if") is None

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        """The format "date-time" demands a zone."""
        return self._make_zoned_form(schema, patterns.LOCAL_DATETIME) or self._make_form(
            "datetime", schema
        )

    def time_schema(self, schema: Any) -> dict[str, Any]:
        """The format "time" demands a zone."""
        return self._make_zoned_form(schema, patterns.TIMES_BY_ZONE[False]) or self._make_form(
            "time", schema
        )

    def timedelta_schema(self, schema: Any) -> dict[str, Any]:
        """The format "duration" has no sign, and a negative one may come out."""
        return {"type": "string"} if self._writes else self._make_form("timedelta", schema)

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """Text like "1E+5" may come out; going in, text could break the bounds of a number."""
        if self._writes:
            return {"type": "string"}
        number, *text = self._make_form("decimal", schema)["anyOf"]
        if schema.keys() & BOUND_NAMES:
            return cast("dict[str, Any]", number)
        return {"anyOf": [number, *({**form, "pattern": patterns.DECIMAL} for form in text)]}

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """Keys are strings in JSON, whatever they are in Python."""
        form = self._make_form("dict", schema)
        keys = schema.get("keys_schema", {"type": "any"})
        if "patternProperties" in form:
            form["additionalProperties"] = False
        if keys["type"] in UNNAMEABLE_KINDS or (
            keys["type"] in NUMBER_KEY_PATTERNS and keys.keys() & BOUND_NAMES
        ):
            raise UsageError(KEYS_REFUSAL)
        if any(not isinstance(v, str) for v in (*keys.get("expected", ()), *_list_members(keys))):
            raise UsageError(KEYS_REFUSAL)
        if keys["type"] in NUMBER_KEY_PATTERNS and not self._writes:
            form["propertyNames"] = {"pattern": NUMBER_KEY_PATTERNS[keys["type"]]}
        return form

    def _make_form(self, kind: str, schema: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", getattr(self._usual, f"{kind}_schema")(schema))

    def _make_zoned_form(self, schema: Any, local: str) -> dict[str, Any] | None:
        """The form of a time without a zone, or with or without one; None if it has one."""
        if schema.get("tz_constraint") == "naive":
            return {"type": "string", "pattern": local}
        return {"type": "string"} if self._writes and "tz_constraint" not in schema else None


def _list_members(keys: Any) -> list[Any]:
    """The values of a dictionary's keys, where they are an enumeration."""
    return [member.value for member in keys.get("members", ())]


@functools.cache
def _make_generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    return type("Generator", (TruthfulForms, GenerateJsonSchema), {})


def make_pydantic_schema(annotation: Any, mode: Literal["input", "output"]) -> dict[str, Any]:
    """Pydantic's schema: the validation form for input, the serialization form for output."""
    return make_adapter(annotation).json_schema(
        mode="validation" if mode == "input" else "serialization",
        schema_generator=_make_generator(),
    )


def find_model_members(model: Any) -> frozenset[str] | None:
    """The names under which a model reads its members; None if it is no object."""
    schema = make_pydantic_schema(model, "input")
    if "$ref" in schema:  # a recursive model
        schema = schema["$defs"][schema["$ref"].rpartition("/")[2]]
    names = schema.get("properties")
    return None if names is None else frozenset(names)
