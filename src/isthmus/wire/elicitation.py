"""Elicitation: a server asks the user, by a form or by a page elsewhere."""

from typing import Any, Literal, TypeAlias

from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire
from isthmus.wire.tasks import TaskMetadata


class ElicitParams(Wire, frozen=True, kw_only=True):
    """``elicitation/create``: ask the user.

    Attributes:
        message: the question.
        mode: ``"form"`` (also where absent) or ``"url"``.
        requested_schema: form mode: a flat object schema whose properties are the primitive
            schemas of this module.
        url: url mode: the page where the user answers.
        elicitation_id: url mode in 2025-11-25: what ``notifications/elicitation/complete`` names.
        task: run it as a task (2025-11-25).
        meta: anything else (up to 2025-11-25).
    """

    message: str
    mode: Literal["form", "url"] | UnsetType = UNSET
    requested_schema: dict[str, Any] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    elicitation_id: str | UnsetType = UNSET
    task: TaskMetadata | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


ElicitValue: TypeAlias = str | int | float | bool | list[str]
"""What a user may put into one blank of a form."""


class ElicitResult(Wire, frozen=True, kw_only=True):
    """The user's answer; ``content`` is there where a form was accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, ElicitValue] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class StringSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for text."""

    type: Literal["string"] = "string"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    format: Literal["email", "uri", "date", "date-time"] | UnsetType = UNSET
    default: str | UnsetType = UNSET


class NumberSchema(Wire, frozen=True, kw_only=True):
    """A blank for a number."""

    type: Literal["number", "integer"] = "number"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    minimum: int | float | UnsetType = UNSET
    maximum: int | float | UnsetType = UNSET
    default: int | float | UnsetType = UNSET


class BooleanSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for yes or no, as a box to tick."""

    type: Literal["boolean"] = "boolean"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: bool | UnsetType = UNSET


class EnumOption(Wire, frozen=True, kw_only=True):
    """One choice, with its title."""

    const: str
    title: str


class UntitledSingleSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for one of several values, which have no titles."""

    type: Literal["string"] = "string"
    enum: list[str]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: str | UnsetType = UNSET


class TitledSingleSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """One of several named choices."""

    type: Literal["string"] = "string"
    one_of: list[EnumOption]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: str | UnsetType = UNSET


class EnumItems(Wire, frozen=True, kw_only=True):
    """The values of a multiple choice."""

    type: Literal["string"] = "string"
    enum: list[str]


class TitledEnumItems(Wire, frozen=True, kw_only=True):
    """The named choices of a multiple choice."""

    any_of: list[EnumOption]


class UntitledMultiSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for any of several values, which have no titles."""

    type: Literal["array"] = "array"
    items: EnumItems
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    default: list[str] | UnsetType = UNSET


class TitledMultiSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Any of several named choices."""

    type: Literal["array"] = "array"
    items: TitledEnumItems
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    default: list[str] | UnsetType = UNSET


class LegacyTitledEnumSchema(Wire, frozen=True, kw_only=True):
    """One of several values, with names for them in a list beside: the form of 2025-06-18."""

    type: Literal["string"] = "string"
    enum: list[str]
    enum_names: list[str] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: str | UnsetType = UNSET


PrimitiveSchemaDefinition: TypeAlias = (
    StringSchema
    | NumberSchema
    | BooleanSchema
    | UntitledSingleSelectEnumSchema
    | TitledSingleSelectEnumSchema
    | UntitledMultiSelectEnumSchema
    | TitledMultiSelectEnumSchema
    | LegacyTitledEnumSchema
)
"""One blank of a form. For building schemas; JSON does not tell these apart by a tag."""
