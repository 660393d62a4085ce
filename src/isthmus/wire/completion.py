"""Completion: suggestions for an argument of a prompt or a resource template."""

from typing import TypeAlias

from isthmus.wire.results import Result
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class PromptReference(Wire, frozen=True, kw_only=True, tag_field="type", tag="ref/prompt"):
    """A prompt whose argument is to be completed.

    Attributes:
        name: of the prompt.
        title: a name for people.
    """

    name: str
    title: str | UnsetType = UNSET


class ResourceTemplateReference(
    Wire, frozen=True, kw_only=True, tag_field="type", tag="ref/resource"
):
    """A resource template whose variable is to be completed; ``uri`` is the template.

    Attributes:
        uri: the URI template, as it is listed.
    """

    uri: str


Reference: TypeAlias = PromptReference | ResourceTemplateReference
"""What has the blank."""


class CompletionArgument(Wire, frozen=True, kw_only=True):
    """The argument to complete, and what has been typed of it.

    Attributes:
        name: of the argument.
        value: what has been typed.
    """

    name: str
    value: str


class CompletionContext(Wire, frozen=True, kw_only=True):
    """The values that the other arguments have already (since 2025-06-18).

    Attributes:
        arguments: the values by the names of the arguments.
    """

    arguments: dict[str, str] | UnsetType = UNSET


class CompleteParams(Wire, frozen=True, kw_only=True):
    """``completion/complete``: suggest values for an argument.

    Attributes:
        ref: the prompt or template.
        argument: the argument to complete.
        context: values of the other arguments (since 2025-06-18).
        meta: further members, in ``_meta``.
    """

    ref: Reference
    argument: CompletionArgument
    context: CompletionContext | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class Completion(Wire, frozen=True, kw_only=True):
    """Suggestions, the best first.

    Attributes:
        values: at most 100 (server/utilities/completion: a MUST).
        total: how many there are in all.
        has_more: there are more than were sent.
    """

    values: list[str]
    total: int | UnsetType = UNSET
    has_more: bool | UnsetType = UNSET


class CompleteResult(Result, frozen=True, kw_only=True):
    """``completion/complete``: the suggested values.

    Attributes:
        completion: the values that fit.
    """

    completion: Completion
