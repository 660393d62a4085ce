"""Prompts: messages a user may start from."""

from isthmus.wire.content import ContentBlock
from isthmus.wire.identity import Icon, Role
from isthmus.wire.results import CacheableResult, InputResponses, Result
from isthmus.wire.struct import UNSET, Meta, UnsetType, Wire


class PromptArgument(Wire, frozen=True, kw_only=True):
    """One argument of a prompt; its value is always text."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    required: bool | UnsetType = UNSET


class Prompt(Wire, frozen=True, kw_only=True):
    """A prompt: its name and its arguments."""

    name: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    arguments: list[PromptArgument] | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class PromptMessage(Wire, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Role
    content: ContentBlock


class ListPromptsParams(Wire, frozen=True, kw_only=True):
    """``prompts/list``: a page of the prompts there are."""

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListPromptsResult(CacheableResult, frozen=True, kw_only=True):
    """One page of prompts; ``next_cursor`` is present where there are more."""

    prompts: list[Prompt]
    next_cursor: str | UnsetType = UNSET


class GetPromptParams(Wire, frozen=True, kw_only=True):
    """``prompts/get``: a prompt with its blanks filled; for the rounds see ``CallToolParams``."""

    name: str
    arguments: dict[str, str] | UnsetType = UNSET
    input_responses: InputResponses | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class GetPromptResult(Result, frozen=True, kw_only=True):
    """Result of ``prompts/get``: the messages of a prompt, with its arguments filled in."""

    messages: list[PromptMessage]
    description: str | UnsetType = UNSET
