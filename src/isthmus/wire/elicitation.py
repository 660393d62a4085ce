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
    """``elicitation/create``: the user's answer; ``content`` is there where a form was accepted.

    Attributes:
        action: ``"accept"``, ``"decline"`` or ``"cancel"`` (dismissed without a choice).
        content: the values by the names of the fields, where a form was accepted.
        meta: further members, in ``_meta``.
    """

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, ElicitValue] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class StringSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for text.

    Attributes:
        type: the JSON type.
        title: label of the field.
        description: help for the user.
        min_length: the least number of characters.
        max_length: the greatest number of characters.
        format: ``"email"``, ``"uri"``, ``"date"`` or ``"date-time"``.
        default: the value that the form shows at first.
    """

    type: Literal["string"] = "string"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_length: int | UnsetType = UNSET
    max_length: int | UnsetType = UNSET
    format: Literal["email", "uri", "date", "date-time"] | UnsetType = UNSET
    default: str | UnsetType = UNSET


class NumberSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for a number; ``type`` is ``"number"`` or ``"integer"``.

    Attributes:
        type: the JSON type: ``"number"``, or ``"integer"`` for whole ones.
        title: label of the field.
        description: help for the user.
        minimum: the least value.
        maximum: the greatest value.
        default: the value that the form shows at first.
    """

    type: Literal["number", "integer"] = "number"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    minimum: int | float | UnsetType = UNSET
    maximum: int | float | UnsetType = UNSET
    default: int | float | UnsetType = UNSET


class BooleanSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for yes or no, as a box to tick.

    Attributes:
        type: the JSON type.
        title: label of the field.
        description: help for the user.
        default: the value that the form shows at first.
    """

    type: Literal["boolean"] = "boolean"
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: bool | UnsetType = UNSET


class EnumOption(Wire, frozen=True, kw_only=True):
    """One choice, with its title.

    Attributes:
        const: the value.
        title: the title that the user sees.
    """

    const: str
    title: str


class UntitledSingleSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for one of several values, which have no titles.

    Attributes:
        type: the JSON type.
        enum: the values to choose from.
        title: label of the field.
        description: help for the user.
        default: the value that the form shows at first.
    """

    type: Literal["string"] = "string"
    enum: list[str]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: str | UnsetType = UNSET


class TitledSingleSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for one of several values that have titles.

    Attributes:
        type: the JSON type.
        one_of: the choices.
        title: label of the field.
        description: help for the user.
        default: the value that the form shows at first.
    """

    type: Literal["string"] = "string"
    one_of: list[EnumOption]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    default: str | UnsetType = UNSET


class EnumItems(Wire, frozen=True, kw_only=True):
    """The values of a multiple choice.

    Attributes:
        type: the JSON type.
        enum: the values to choose from.
    """

    type: Literal["string"] = "string"
    enum: list[str]


class TitledEnumItems(Wire, frozen=True, kw_only=True):
    """The choices of a multiple choice, with titles.

    Attributes:
        any_of: the choices.
    """

    any_of: list[EnumOption]


class UntitledMultiSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for any of several values, which have no titles.

    Attributes:
        type: the JSON type.
        items: the choices.
        title: label of the field.
        description: help for the user.
        min_items: the least number of choices.
        max_items: the greatest number of choices.
        default: the value that the form shows at first.
    """

    type: Literal["array"] = "array"
    items: EnumItems
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    default: list[str] | UnsetType = UNSET


class TitledMultiSelectEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for any of several values that have titles.

    Attributes:
        type: the JSON type.
        items: the choices.
        title: label of the field.
        description: help for the user.
        min_items: the least number of choices.
        max_items: the greatest number of choices.
        default: the value that the form shows at first.
    """

    type: Literal["array"] = "array"
    items: TitledEnumItems
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    min_items: int | UnsetType = UNSET
    max_items: int | UnsetType = UNSET
    default: list[str] | UnsetType = UNSET


class LegacyTitledEnumSchema(Wire, frozen=True, kw_only=True):
    """Schema of a form field for one of several values, with titles in a second list (2025-06-18).

    Attributes:
        type: the JSON type.
        enum: the values.
        enum_names: their titles, in the same order.
        title: label of the field.
        description: help for the user.
        default: the value that the form shows at first.
    """

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
