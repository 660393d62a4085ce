"""Questions to the user, under the names of ``fastmcp.server.elicitation``."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Literal, TypeVar, get_origin

from pydantic import BaseModel, TypeAdapter, create_model

from isthmus.compat.fastmcp.utilities.json_schema import compress_schema, dereference_refs

T = TypeVar("T")

SCALARS = (bool, int, float, str)


class AcceptedElicitation(BaseModel, Generic[T]):
    """Answer of a user who filled in the form.

    Attributes:
        data: what was filled in.
    """

    action: Literal["accept"] = "accept"
    data: T


class DeclinedElicitation(BaseModel):
    """Answer of a user who said no."""

    action: Literal["decline"] = "decline"


class CancelledElicitation(BaseModel):
    """Answer of a user who closed the form."""

    action: Literal["cancel"] = "cancel"


@dataclass
class ElicitationForm:
    """Form of a question.

    Attributes:
        schema: JSON Schema of the form.
        kind: the type of the answer.
        single: the form has the one blank ``value``, whose value is the answer.
    """

    schema: dict[str, Any]
    kind: Any
    single: bool

    def read(self, content: dict[str, Any]) -> Any:
        """Read what was filled in.

        Raises:
            ValueError: it does not fit.
        """
        if not self.single:
            return TypeAdapter(self.kind).validate_python(content)
        if "value" not in content:
            raise ValueError("Elicitation response missing required 'value' field.")
        return TypeAdapter(self.kind).validate_python(content["value"])


def make_form(
    response_type: Any, title: str | None = None, description: str | None = None
) -> ElicitationForm:
    """Make the form of a response type of fastmcp: a class, a scalar, or choices as a list or a dict.

    Raises:
        TypeError: a class was given with a title or a description.
        ValueError: the choices are none.
    """
    if response_type is None:
        return ElicitationForm({"type": "object", "properties": {}}, dict[str, Any], single=False)
    if isinstance(response_type, dict):
        form = _make_choices(response_type, several=False)
    elif isinstance(response_type, list):
        form = _make_listed_choices(response_type)
    elif _is_scalar(response_type):
        form = _make_single(response_type)
    elif title is None and description is None:
        return ElicitationForm(_describe_form(response_type), response_type, single=False)
    else:
        raise TypeError(
            "response_title and response_description are only supported when response_type is a scalar, Literal, "
            "Enum, or the dict/list shorthand forms. Use Field(title=..., description=...) on the fields."
        )
    blank = form.schema["properties"]["value"]
    blank |= {} if title is None else {"title": title}
    blank |= {} if description is None else {"description": description}
    return form


def _is_scalar(kind: Any) -> bool:
    if kind in SCALARS or get_origin(kind) in (Literal, list):
        return True
    return isinstance(kind, type) and issubclass(kind, Enum)


def _describe_form(kind: Any) -> dict[str, Any]:
    schema = compress_schema(dereference_refs(TypeAdapter(kind).json_schema()))
    return {key: one for key, one in schema.items() if key != "$defs"}


def _make_single(kind: Any) -> ElicitationForm:
    model: Any = create_model("ScalarElicitationType", value=(kind, ...))
    shown = _describe_form(model)
    shown.pop("title", None)  # the name of a class that the program does not know
    return ElicitationForm(shown, kind, single=True)


def _make_listed_choices(choices: list[Any]) -> ElicitationForm:
    first = choices[0] if choices else None
    if len(choices) == 1 and isinstance(first, dict) and first:
        return _make_choices(first, several=True)
    if len(choices) == 1 and isinstance(first, list) and first:
        blank = {"type": "array", "items": {"enum": first}}
        return _make_blank(blank, list[Literal[tuple(first)]])  # type: ignore[misc]  # made at run time
    if choices and all(isinstance(one, str) for one in choices):
        return _make_single(Literal[tuple(choices)])
    raise ValueError(f"Invalid list response_type format. Received: {choices}")


def _make_choices(choices: dict[str, Any], *, several: bool) -> ElicitationForm:
    if not choices:
        raise ValueError("Dict response_type cannot be empty.")
    options = [{"const": key, "title": told.get("title", key)} for key, told in choices.items()]
    one: Any = Literal[tuple(choices)]
    if several:
        return _make_blank({"type": "array", "items": {"anyOf": options}}, list[one])
    return _make_blank({"type": "string", "oneOf": options}, one)


def _make_blank(blank: dict[str, Any], kind: Any) -> ElicitationForm:
    schema = {"type": "object", "properties": {"value": blank}, "required": ["value"]}
    return ElicitationForm(schema, kind, single=True)
