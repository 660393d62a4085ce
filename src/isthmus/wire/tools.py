"""Tools: functions a model may call."""

from typing import Any, Literal

from msgspec import Raw

from isthmus.wire.content import ContentBlock
from isthmus.wire.identity import Icon
from isthmus.wire.results import CacheableResult, InputResponses, Result
from isthmus.wire.struct import UNSET, Meta, UnreadMeta, UnsetType, Wire
from isthmus.wire.tasks import TaskMetadata


class ToolAnnotations(Wire, frozen=True, kw_only=True):
    """Hints on what a tool does; from an untrusted server they decide nothing.

    Attributes:
        title: a name for people.
        read_only_hint: it changes nothing; taken as False where absent.
        destructive_hint: it may destroy; taken as True where absent.
        idempotent_hint: calling it twice with the same arguments is as calling it once; False.
        open_world_hint: it deals with the world outside; True.
    """

    title: str | UnsetType = UNSET
    read_only_hint: bool | UnsetType = UNSET
    destructive_hint: bool | UnsetType = UNSET
    idempotent_hint: bool | UnsetType = UNSET
    open_world_hint: bool | UnsetType = UNSET


class ToolExecution(Wire, frozen=True, kw_only=True):
    """Whether a tool may, must or must not run as a task (2025-11-25).

    Attributes:
        task_support: ``"forbidden"`` (also where absent), ``"optional"`` or ``"required"``.
    """

    task_support: Literal["forbidden", "optional", "required"] | UnsetType = UNSET


class Tool(Wire, frozen=True, kw_only=True):
    """A tool: its name and its schemas.

    Attributes:
        name: its name on this server.
        input_schema: JSON Schema of its arguments, of ``type: object``.
        title: a name for people.
        description: what it does, for a model to read.
        output_schema: JSON Schema of its structured content; of ``type: object`` up to
            2025-11-25, any since.
        annotations: hints on what it does.
        execution: whether it runs as a task (2025-11-25).
        icons: pictures for it.
        meta: anything else.
    """

    name: str
    input_schema: dict[str, Any]
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    output_schema: dict[str, Any] | UnsetType = UNSET
    annotations: ToolAnnotations | UnsetType = UNSET
    execution: ToolExecution | UnsetType = UNSET
    icons: list[Icon] | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListToolsParams(Wire, frozen=True, kw_only=True):
    """``tools/list``: one page of tools.

    Attributes:
        cursor: ``next_cursor`` of the page before; absent for the first page.
        meta: further members, in ``_meta``.
    """

    cursor: str | UnsetType = UNSET
    meta: Meta | UnsetType = UNSET


class ListToolsResult(CacheableResult, frozen=True, kw_only=True):
    """One page of tools; ``next_cursor`` is present where there are more.

    Attributes:
        tools: the tools of this page.
        next_cursor: the cursor of the next page, where there is one.
    """

    tools: list[Tool]
    next_cursor: str | UnsetType = UNSET


class CallToolParams(Wire, frozen=True, kw_only=True):
    """``tools/call``: run a tool.

    Attributes:
        name: which.
        arguments: with what, as raw JSON of an object.
        input_responses: answers to the questions of the round before (since 2026-07-28).
        request_state: the server's state of the round before, handed back (since 2026-07-28).
        task: run it as a task (2025-11-25).
        meta: anything else; it stays JSON where it came in, for few calls ever look at it.
    """

    name: str
    arguments: Raw | UnsetType = UNSET
    input_responses: InputResponses | UnsetType = UNSET
    request_state: str | UnsetType = UNSET
    task: TaskMetadata | UnsetType = UNSET
    meta: UnreadMeta | UnsetType = UNSET


class CallToolResult(Result, frozen=True, kw_only=True):
    """The result of a tool.

    Attributes:
        content: for a model to read.
        structured_content: for a program: an object up to 2025-11-25, any JSON since.
        is_error: the tool failed, and ``content`` says how.
    """

    content: list[ContentBlock]
    structured_content: Any = UNSET
    is_error: bool | UnsetType = UNSET
