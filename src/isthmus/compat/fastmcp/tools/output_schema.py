"""Output schemas: which values of a function are structured content, and how they are described."""

from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from isthmus.compat.fastmcp.components.content import content_classes
from isthmus.compat.fastmcp.flavour import FLAVOUR
from isthmus.compat.fastmcp.tools.model import WRAP_KEY, ToolResult
from isthmus.compat.fastmcp.utilities.json_schema import compress_schema, is_object_schema
from isthmus.compat.fastmcp.utilities.types import MediaSource

T = TypeVar("T")

UNSTRUCTURED_NAMES = {"CallToolResult", "InputRequiredResult"}


@dataclass
class WrappedResult(Generic[T]):
    """Object around a value that is none."""

    result: T


class OutputSchemaGenerator(GenerateJsonSchema):
    """Schema generator that takes aliases where a class says that it is written with them."""

    def model_schema(self, schema: Any) -> Any:
        """Describe a model."""
        return self._describe(super().model_schema, schema, schema["cls"].model_config)

    def dataclass_schema(self, schema: Any) -> Any:
        """Describe a dataclass."""
        return self._describe(super().dataclass_schema, schema, schema.get("config") or {})

    def _describe(self, describe: Any, schema: Any, config: Any) -> Any:
        before, self.by_alias = self.by_alias, bool(config.get("serialize_by_alias"))
        try:
            return describe(schema)
        finally:
            self.by_alias = before


def make_output_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of what a function returns; None where it returns content, or nothing is said."""
    if (
        not FLAVOUR.has_outputs
        or annotation in (None, Any, ...)
        or isinstance(annotation, str)
        or not _is_data(annotation)
    ):
        return None
    try:
        schema = _describe_type(annotation)
        if not is_object_schema(schema):
            schema = {**_describe_type(WrappedResult[annotation]), WRAP_KEY: True}
            schema.pop("description", None)  # ours; not every pydantic tells it
            if FLAVOUR.wrapper_description:
                schema["description"] = FLAVOUR.wrapper_description
    except (PydanticSchemaGenerationError, PydanticUserError, PydanticInvalidForJsonSchema):
        return None
    return compress_schema(schema, prune_titles=True) or None


def _describe_type(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(annotation).json_schema(
        mode="serialization", by_alias=False, schema_generator=OutputSchemaGenerator
    )


def _is_data(annotation: Any) -> bool:
    """Whether all parts of an annotation are data, and none is content or bytes."""
    origin = get_origin(annotation)
    if annotation in (bytes, bytearray) or origin is type:
        return False
    if annotation in (list, tuple):
        return FLAVOUR.describes_lists
    if origin is Annotated:
        return _is_data(get_args(annotation)[0])
    if origin is not None:
        parts = [one for one in get_args(annotation) if isinstance(one, type) or get_origin(one)]
        return all(_is_data(one) for one in parts if one is not type(None))
    if not isinstance(annotation, type) or annotation.__name__ in UNSTRUCTURED_NAMES:
        return not isinstance(annotation, type)
    return not issubclass(annotation, (ToolResult, MediaSource, *content_classes()))
