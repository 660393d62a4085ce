"""Validation of arguments against the schemas and prompts that their server has."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from isthmus.client.model.schema_validation import SchemaValidator
from isthmus.errors import Misbehaved
from isthmus.host.model.errors import BadArguments
from isthmus.wire import Prompt, Tool

MAX_SCHEMAS = 10_000


class ToolSchemas:
    """The schemas of tools, compiled when they are first needed."""

    def __init__(self) -> None:
        self._checkers: dict[tuple[str, str], tuple[Tool, SchemaValidator | None]] = {}

    def check(self, server: str, tool: Tool, arguments: Mapping[str, Any]) -> None:
        """Hold arguments against a tool's input schema.

        A schema that cannot be used checks nothing: its server has to look for itself.

        Raises:
            BadArguments: they do not fit.
        """
        key = server, tool.name
        known = self._checkers.get(key)
        if known is None or known[0] is not tool:
            known = self._learn(key, tool)
        checker = known[1]
        if checker is None:
            return
        wrong = checker.complaint(arguments)
        if wrong is not None:
            raise BadArguments(
                f"the arguments of {tool.name!r} of server {server!r} do not fit its input schema: "
                f"{wrong}"
            )

    def _learn(self, key: tuple[str, str], tool: Tool) -> tuple[Tool, SchemaValidator | None]:
        try:
            checker = SchemaValidator(tool.input_schema, f"the input schema of tool {tool.name!r}")
        except Misbehaved:
            checker = None
        if len(self._checkers) >= MAX_SCHEMAS:
            self._checkers.pop(next(iter(self._checkers)))
        found = self._checkers[key] = tool, checker
        return found


def is_app_only(tool: Tool) -> bool:
    """Whether a tool is for the server's own user interface, and for no model or program."""
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    return isinstance(visibility, list) and "model" not in visibility


def check_prompt(server: str, prompt: Prompt, arguments: Mapping[str, Any]) -> None:
    """Hold arguments against a prompt's blanks.

    Raises:
        BadArguments: one is missing, is no text, or is none of the prompt's.
    """
    blanks = {} if prompt.arguments is UNSET else {one.name: one for one in prompt.arguments}
    missing = [name for name, one in blanks.items() if one.required and name not in arguments]
    if missing:
        raise BadArguments(f"prompt {prompt.name!r} of server {server!r} needs {missing}")
    unknown = [name for name in arguments if name not in blanks]
    if unknown:
        raise BadArguments(
            f"prompt {prompt.name!r} of server {server!r} has no {unknown}; it has {list(blanks)}"
        )
    odd = [name for name, value in arguments.items() if not isinstance(value, str)]
    if odd:
        raise BadArguments(f"the arguments of prompts are texts, and {odd} are none")
