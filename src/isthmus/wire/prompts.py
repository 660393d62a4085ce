"""Prompts: messages a user may start from."""

from isthmus.wire.content import ContentBlock
from isthmus.wire.identity import Icon, Role
from isthmus.wire.results import CacheableResult, InputResponses, Result
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class PromptArgument(Wire, frozen=True, kw_only=True):
    """One argument of a prompt; its value is always text.

    Attributes:
        name: for programs.
        title: a name for people.
        description: an explanation for people and models.
        required: the prompt cannot be had without it; False where absent.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Wire, frozen=True, kw_only=True):
    """A prompt: its name and its arguments.

    Attributes:
        name: for programs; ``prompts/get`` names it.
        title: a name for people.
        description: an explanation for people and models.
        arguments: the arguments that it takes.
        icons: pictures for user interfaces.
        meta: further members, in ``_meta``.
    """

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class PromptMessage(Wire, frozen=True, kw_only=True):
    """One message of a prompt.

    Attributes:
        role: ``"user"`` or ``"assistant"``.
        content: one block of content.
    """

    role: Role
    content: ContentBlock


class ListPromptsParams(Wire, frozen=True, kw_only=True):
    """``prompts/list``: one page of prompts.

    Attributes:
        cursor: ``next_cursor`` of the page before; absent for the first page.
        meta: further members, in ``_meta``.
    """

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListPromptsResult(CacheableResult, frozen=True, kw_only=True):
    """One page of prompts; ``next_cursor`` is present where there are more.

    Attributes:
        prompts: the prompts of this page.
        next_cursor: the cursor of the next page, where there is one.
    """

    prompts: list[Prompt]
    next_cursor: str | UnsetType = UNSET


class GetPromptParams(Wire, frozen=True, kw_only=True):
    """``prompts/get``: a prompt with its arguments filled in; for the rounds see ``CallToolParams``.

    Attributes:
        name: of the prompt.
        arguments: values by name.
        input_responses: answers to the questions of the round before (since 2026-07-28).
        request_state: the server's state of the round before, handed back (since 2026-07-28).
        meta: further members, in ``_meta``.
    """

    name: str
    arguments: dict[str, str] | UnsetType = UNSET
    input_responses: InputResponses | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class GetPromptResult(Result, frozen=True, kw_only=True):
    """``prompts/get``: the messages of a prompt, with its arguments filled in.

    Attributes:
        messages: the messages, in order.
        description: an explanation for people.
    """

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET
