"""Tools made of other tools, under the names of ``fastmcp.tools.tool_transform``."""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pydantic import PrivateAttr

from isthmus.compat.fastmcp.components.functions import OfferedFunction
from isthmus.compat.fastmcp.tools.model import Tool, ToolResult
from isthmus.compat.fastmcp.utilities.types import NotSet

FORWARDED: ContextVar["TransformedTool | None"] = ContextVar("fastmcp_forwarded", default=None)


@dataclass(kw_only=True)
class ArgTransform:
    """Change of an argument.

    Attributes:
        name, description, default, required, type, examples: what it has instead.
        default_factory: makes the default of a hidden argument.
        hide: it is not shown, and has its default.
    """

    name: Any = NotSet
    description: Any = NotSet
    default: Any = NotSet
    default_factory: Any = NotSet
    type: Any = NotSet
    hide: bool = False
    required: Any = NotSet
    examples: Any = NotSet

    def apply(self, shown: dict[str, Any]) -> dict[str, Any]:
        """The schema of the argument with its changes."""
        from pydantic import TypeAdapter

        changed = dict(shown)
        if self.type is not NotSet:
            kept = {key: one for key, one in shown.items() if key in ("description", "default")}
            changed = {**TypeAdapter(self.type).json_schema(), **kept}
        for name in ("description", "default", "examples"):
            value = getattr(self, name)
            if value is not NotSet:
                changed[name] = value
        return changed


async def forward(**arguments: Any) -> ToolResult:
    """Call the tool that this one was made of, with arguments under their new names."""
    tool = _find_forwarded()
    tool.check_names(arguments)
    return await tool.parent.run(tool.to_parent(arguments))


async def forward_raw(**arguments: Any) -> ToolResult:
    """Call the tool that this one was made of, with arguments under their old names."""
    return await _find_forwarded().parent.run(arguments)


def _find_forwarded() -> "TransformedTool":
    tool = FORWARDED.get()
    if tool is None:
        raise RuntimeError("forward() can only be called within a transformed tool")
    return tool


class TransformedTool(Tool):
    """Tool that calls another one.

    Attributes:
        parent: the other tool.
        transform_args: changes of its arguments by name.
    """

    parent: Tool
    transform_args: dict[str, ArgTransform]

    _function: OfferedFunction | None = PrivateAttr(default=None)

    @classmethod
    def from_tool(
        cls,
        tool: Tool,
        *,
        transform_fn: Callable[..., Any] | None = None,
        transform_args: dict[str, Any] | None = None,
        **options: Any,
    ) -> "TransformedTool":
        """Make a tool of another one.

        Raises:
            ValueError: an argument that is changed is not there.
        """
        changes = {
            name: ArgTransform(**one) if isinstance(one, dict) else one
            for name, one in (transform_args or {}).items()
        }
        unknown = changes.keys() - tool.parameters.get("properties", {}).keys()
        if unknown and transform_fn is None:
            raise ValueError(f"Unknown arguments in transform_args: {', '.join(sorted(unknown))}")
        given = {key: one for key, one in options.items() if one is not NotSet and one is not None}
        shared = ("name", "title", "description", "tags", "annotations", "output_schema", "meta")
        members = {name: given.get(name, getattr(tool, name)) for name in shared}
        if options.get("output_schema", NotSet) is False:
            members["output_schema"] = None
        made = cls(
            **members,
            auth=tool.auth,
            parameters=_transform_schema(tool.parameters, changes),
            parent=tool,
            transform_args=changes,
        )
        if transform_fn is not None:
            made._function = OfferedFunction(transform_fn, "tools")
            _add_function_schema(made.parameters, made._function)
        return made

    def to_parent(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the other tool."""
        names = {
            (key if one.name is NotSet or one.name is None else one.name): key
            for key, one in self.transform_args.items()
            if not one.hide
        }
        passed = {names.get(name, name): value for name, value in arguments.items()}
        for key, one in self.transform_args.items():
            if one.default_factory is not NotSet:
                passed.setdefault(key, one.default_factory())
            elif one.default is not NotSet:
                passed.setdefault(key, one.default)
        return passed

    def check_names(self, arguments: dict[str, Any]) -> None:
        """See that arguments have the names that the tool is listed with.

        Raises:
            TypeError: one is unknown, or one is missing.
        """
        properties = self.parameters.get("properties", {})
        unknown = sorted(arguments.keys() - properties.keys())
        if unknown:
            raise TypeError(f"Got unexpected keyword argument(s): {', '.join(unknown)}")
        missing = sorted({*self.parameters.get("required", ())} - arguments.keys())
        if missing:
            raise TypeError(f"Missing required argument(s): {', '.join(missing)}")

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Call the function around the other tool, or the other tool itself."""
        if self._function is None:
            self.check_names(arguments)
            return await self.parent.run(self.to_parent(arguments))
        token = FORWARDED.set(self)
        try:
            takes_all = any(
                one.kind is one.VAR_KEYWORD for one in self._function.signature.parameters.values()
            )
            bound = ((), arguments) if takes_all else self._function.bind(arguments)
            return self.convert_result(await self._function.call(bound, threaded=False))
        finally:
            FORWARDED.reset(token)


def _transform_schema(schema: dict[str, Any], changes: dict[str, ArgTransform]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    required: list[str] = []
    for key, shown in schema.get("properties", {}).items():
        change = changes.get(key, ArgTransform())
        if change.hide:
            continue
        name = key if change.name is NotSet or change.name is None else change.name
        properties[name] = change.apply(shown)
        needed = key in schema.get("required", ()) and change.default is NotSet
        if needed if change.required is NotSet else change.required:
            required.append(name)
    rest = {key: one for key, one in schema.items() if key not in ("properties", "required")}
    return {**rest, "properties": properties, **({"required": required} if required else {})}


def _add_function_schema(schema: dict[str, Any], function: OfferedFunction) -> None:
    """Let a function around a tool add arguments of its own."""
    own = function.make_schema()
    for name, shown in own.get("properties", {}).items():
        schema["properties"].setdefault(name, shown)
    needed = [name for name in own.get("required", ()) if name not in schema.get("required", ())]
    if needed:
        schema["required"] = [*schema.get("required", ()), *needed]


__all__ = ["ArgTransform", "TransformedTool", "forward", "forward_raw"]
