"""Transformation of a tool: another name, arguments that are hidden, renamed or described anew.

The schema loses what is hidden, and a call gets it back; what a client says of a hidden argument is refused.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.http.params import ANNOTATION
from isthmus.errors import UsageError
from isthmus.server.guard.tags import add_tags
from isthmus.server.schema.custom_types import write_json
from isthmus.wire import CallToolResult, TextContent, Tool
from isthmus.wire.struct import Meta


class IncludeOptions(TypedDict, total=False):
    """Options of ``Server.include``.

    Attributes:
        name: what it is called here; its own name by default.
        title: a name for people.
        description: what it does, for a model.
        hide: arguments that callers do not see, each with its value, or a plain function that gives it:
            ``fn()`` or ``fn(principal)``. It must give the same in all rounds of a call that asks.
        rename: arguments that get another name: ``{"q": "query"}`` calls ``q`` ``query``.
        describe: descriptions of arguments, by the names they have here.
        tags: words that ``enable`` and ``disable`` select it by, beside its own.
        meta: anything else, beside its own ``_meta``.
    """

    name: str | None
    title: str | None
    description: str | None
    hide: Mapping[str, Any]
    rename: Mapping[str, str]
    describe: Mapping[str, str]
    tags: Collection[str]
    meta: Meta | None


_decode_arguments = msgspec.json.Decoder(dict[str, Raw]).decode

_FAULTS = re.compile(r"Invalid arguments for [^:]*:")


class Transformation:
    """The changes of one tool.

    Args:
        name: what it is called here.
        options: the changes.

    Attributes:
        name: what it is called here.

    Raises:
        UsageError: they contradict each other.
    """

    def __init__(self, name: str, options: IncludeOptions) -> None:
        self.name = name
        self._options = options
        self._rename = dict(options.get("rename") or {})
        self._back = {outer: inner for inner, outer in self._rename.items()}
        self._hide = {
            argument: _make_filler(f"tool {name!r}", argument, value)
            for argument, value in (options.get("hide") or {}).items()
        }
        if len(self._back) < len(self._rename):
            raise UsageError(f"tool {name!r}: rename= gives one name to two arguments")
        both = self._hide.keys() & self._rename.keys()
        if both:
            raise UsageError(f"tool {name!r}: {min(both)!r} is hidden, and cannot be renamed")

    # The tool as it is listed

    def tool(self, tool: Tool) -> Tool:
        """The tool as it is listed here.

        Raises:
            UsageError: it has not the arguments that are hidden, renamed or described.
        """
        options = self._options
        given: dict[str, Any] = {
            member: options[member]
            for member in ("title", "description")
            if options.get(member) is not None
        }
        tags, meta = options.get("tags"), options.get("meta")
        if tags or meta:
            own = {} if tool.meta is UNSET else tool.meta
            given["meta"] = add_tags({**own, **(meta or {})}, tags or ())
        schema = self._transform_schema(tool)
        return structs.replace(tool, name=self.name, input_schema=schema, **given)

    def _transform_schema(self, tool: Tool) -> dict[str, Any]:
        schema = tool.input_schema
        properties: Mapping[str, Any] = schema.get("properties", {})
        described = dict(self._options.get("describe") or {})
        self._check_known(tool, [*self._hide, *self._rename], properties)
        made: dict[str, Any] = {}
        for argument, one in properties.items():
            if argument in self._hide:
                if isinstance(one, Mapping) and ANNOTATION in one:
                    # spec 2026-07-28 server/tools#x-mcp-header: the header of the request MUST match
                    raise UsageError(
                        f"tool {tool.name!r}: {argument!r} travels in a header, so it cannot be hidden"
                    )
                continue
            outer = self._rename.get(argument, argument)
            if outer in made or (outer != argument and outer in properties and
                                 outer not in self._rename and outer not in self._hide):  # fmt: skip
                raise UsageError(f"tool {tool.name!r} has an argument {outer!r} already")
            text = described.pop(outer, None)
            made[outer] = one if text is None else {**one, "description": text}
        self._check_known(tool, described, made)
        required = [
            self._rename.get(argument, argument)
            for argument in schema.get("required", ())
            if argument not in self._hide
        ]
        rest = {key: one for key, one in schema.items() if key not in {"properties", "required"}}
        return {**rest, "properties": made, **({"required": required} if required else {})}

    def _check_known(self, tool: Tool, arguments: Collection[str], known: Collection[str]) -> None:
        for argument in arguments:
            if argument not in known:
                raise UsageError(
                    f"tool {tool.name!r} has no argument {argument!r}: it has "
                    f"{', '.join(known) or 'none'}"
                )

    # A call

    def arguments(self, raw: Raw | UnsetType, principal: Any) -> Raw:
        """The arguments of a call as the tool itself takes them.

        Raises:
            ForeignArguments: an argument is hidden, or has another name here.
        """
        try:
            given = {} if raw is UNSET or bytes(raw) == b"null" else _decode_arguments(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return Raw(b"{}") if raw is UNSET else raw  # no object: the tool refuses it as ever
        found: dict[str, Any] = {}
        for argument, value in given.items():
            inner = self._back.get(argument, argument)
            if inner == argument and (argument in self._hide or argument in self._rename):
                raise ForeignArguments(f"Invalid arguments for {self.name}: {argument}: unknown")
            found[inner] = value
        for argument, fill in self._hide.items():
            found[argument] = Raw(write_json(fill(principal)))
        return Raw(msgspec.json.encode(found))

    def result(self, result: Any) -> Any:
        """A result, its words on arguments in the names that these have here."""
        if type(result) is not CallToolResult or result.is_error is not True:
            return result
        content = [
            structs.replace(one, text=self._translate_faults(one.text))
            if type(one) is TextContent
            else one
            for one in result.content
        ]
        return structs.replace(result, content=content)

    def _translate_faults(self, text: str) -> str:
        if not _FAULTS.match(text):
            return text
        lines = _FAULTS.sub(f"Invalid arguments for {self.name}:", text, count=1).split("\n")
        return "\n".join(self._translate_fault(line) for line in lines)

    def _translate_fault(self, line: str) -> str:
        start = re.match(r"(- |Invalid arguments for [^:]*: )([^:.\[]+)", line)
        if start is not None:
            outer = self._rename.get(start[2], start[2])
            line = f"{start[1]}{outer}{line[start.end() :]}"
        known = re.search(r"known are: (.+)$", line)
        if known is not None:
            names = [
                self._rename.get(name, name)
                for name in known[1].split(", ")
                if name not in self._hide
            ]
            line = f"{line[: known.start()]}known are: {', '.join(names)}"
        return line


class ForeignArguments(ValueError):
    """An argument is none that a client may give; the message says which."""


def _make_filler(what: str, argument: str, value: Any) -> Callable[[Any], Any]:
    """Make what gives the value of a hidden argument for a principal.

    Raises:
        UsageError: the value has no JSON form, or the function cannot be called so.
    """
    if not callable(value):
        try:
            write_json(value)
        except (TypeError, ValueError) as error:
            raise UsageError(
                f"{what}: the value of {argument!r} has no JSON form: {error}"
            ) from error
        return lambda _principal: value
    if inspect.iscoroutinefunction(value):
        raise UsageError(
            f"{what}: the value of {argument!r} must come from a plain function: async functions "
            "are not awaited before a call is permitted"
        )
    takes = len(inspect.signature(value).parameters)
    if takes > 1:
        raise UsageError(f"{what}: the function for {argument!r} takes the principal, or nothing")
    return value if takes else lambda _principal: value()
