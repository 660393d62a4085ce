"""Tools of a server as last listed: the headers, output schema and task support a call needs."""

from collections.abc import Mapping
from typing import Any

import msgspec

from isthmus.client.model.schema_validation import OutputValidator
from isthmus.core.http.params import (
    BadAnnotation,
    HeaderParam,
    find_header_params,
    mirror_arguments,
)
from isthmus.runtime.failures import log_warning
from isthmus.wire import CallToolResult, Tool, ToolAnnotations

HeaderPairs = tuple[tuple[str, str], ...]


class ToolEntry(msgspec.Struct, frozen=True):
    """One tool, as calls need it.

    Attributes:
        params: its parameters that travel in headers, too.
        output: checks its structured results.
        task: whether it may or must run as a task (2025-11-25), or None.
        repeatable: whether its hints say that a second call does nothing more.
    """

    params: tuple[HeaderParam, ...]
    output: OutputValidator
    task: str | None = None
    repeatable: bool = False


class ToolCatalog:
    """The tools as last listed.

    Attributes:
        mirrored: whether arguments travel in headers on this connection.
    """

    def __init__(self) -> None:
        self.mirrored = False
        self._entries: dict[str, ToolEntry] = {}

    def learn(self, tools: list[Tool]) -> list[Tool]:
        """Keep what calls will need, and give back the tools that can be called."""
        entries: dict[str, ToolEntry] = {}
        usable: list[Tool] = []
        for tool in tools:
            try:
                params = find_header_params(tool.input_schema) if self.mirrored else ()
            except BadAnnotation as error:
                # spec 2026-07-28 basic/transports/streamable-http#schema-extension: clients MUST
                # exclude the tool, and SHOULD log why
                log_warning("tool %r is left out: %s", tool.name, error)
                continue
            task = tool.execution.task_support if tool.execution else None
            says = tool.annotations or ToolAnnotations()
            repeatable = True in {says.read_only_hint, says.idempotent_hint}
            entries[tool.name] = ToolEntry(params, OutputValidator(tool), task or None, repeatable)
            usable.append(tool)
        self._entries = entries
        return usable

    def forget(self) -> None:
        """The server's tools have changed: check no result against an old schema."""
        self._entries = {}

    def headers(self, name: str, arguments: Mapping[str, Any] | Any) -> HeaderPairs:
        """The headers that repeat some of a call's arguments; mostly none.

        Raises:
            UsageError: an integer is too large to travel in a header.
        """
        entry = self._entries.get(name)
        if entry is None or not entry.params:
            return ()
        plain = msgspec.to_builtins(arguments)
        return mirror_arguments(entry.params, plain if isinstance(plain, dict) else {})

    def knows(self, name: str) -> bool:
        """Whether a tool was listed."""
        return name in self._entries

    def is_repeatable(self, name: str) -> bool:
        """Whether a tool's hints say that it is read-only or idempotent; False where unknown."""
        entry = self._entries.get(name)
        return entry is not None and entry.repeatable

    def task(self, name: str) -> str | None:
        """Whether a tool may or must run as a task, as far as it says so."""
        entry = self._entries.get(name)
        return None if entry is None else entry.task

    def check(self, name: str, result: CallToolResult) -> None:
        """Hold a result against the tool's output schema, where one is known.

        Raises:
            Misbehaved: it does not fit.
        """
        entry = self._entries.get(name)
        if entry is not None:
            entry.output.check(result)
