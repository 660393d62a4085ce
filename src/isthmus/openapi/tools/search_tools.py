"""Tool search within one API: the meta-tools of :mod:`isthmus.search` over its operations.

Groups are the tags of the document. A call through ``call_tool`` is the same as one by name: its
arguments are held against the same schema, and it carries the same credentials.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from isthmus.errors import ToolError
from isthmus.openapi.tools.api_tools import ApiTool, ApiTools
from isthmus.openapi.tools.schemas import shorten
from isthmus.search.brief import list_arguments, shorten_description
from isthmus.search.metatools import META_TOOLS, CallWanted, DetailsWanted, SearchWanted
from isthmus.search.tool_index import ToolIndex
from isthmus.wire import CallToolResult, Tool

if TYPE_CHECKING:
    from isthmus.server.server import Server

MAX_ANSWER_CHARS = 60_000
READING = ("search_tools", "get_tool_details", "list_servers")
NO_TAG = "api"
MAX_TAG_CHARS = 100


class ApiSearch:
    """Finds the tools of an API.

    Args:
        tools: the tools.
    """

    def __init__(self, tools: ApiTools) -> None:
        self._tools = tools.tools
        self._index = ToolIndex()
        self._groups: dict[str, list[tuple[str, Tool]]] = {}
        for tool in self._tools.values():
            self._groups.setdefault(find_group(tool), []).append((tool.name, make_definition(tool)))
        self._indexed = False

    def search(self, wanted: SearchWanted) -> str:
        """The tools that fit a query best, in words for a model.

        Raises:
            ToolError: there is no such group.
        """
        if wanted.server is not None and wanted.server not in self._groups:
            known = ", ".join(sorted(self._groups))
            raise ToolError(f"there is no server {wanted.server[:100]!r}; there are: {known}")
        if not self._indexed:  # when it is first asked: a start costs nothing
            for group, named in self._groups.items():
                self._index.replace(group, named)
            self._indexed = True
        found = self._index.search(wanted.query, server=wanted.server, limit=wanted.limit)
        lines = [f"{len(found.names)} of {len(self._tools)} tools"]
        if not found.names:
            lines = [
                f"None of {len(self._tools)} tools fits these words. Try others, or list_servers."
            ]
        lines += [f"({said!r} was taken for {meant!r})" for said, meant in found.instead.items()]
        lines += (f"- {format_tool(self._tools[name], wanted.detail)}" for name in found.names)
        return limit_lines(lines)

    def describe(self, names: Iterable[str]) -> str:
        """The whole definitions of tools."""
        lines = []
        for name in dict.fromkeys(names):
            tool = self._tools.get(name)
            if tool is None:
                lines.append(
                    f"There is no tool {name[:100]!r}: search_tools finds those that there are."
                )
            else:
                lines.append(format_tool(tool, "full"))
        return limit_lines(lines)

    def list_groups(self) -> str:
        """The groups of tools, and how many each has."""
        lines = [f"{len(self._tools)} tools in {len(self._groups)} groups"]
        lines += (f"- {name}: {len(named)} tools" for name, named in sorted(self._groups.items()))
        return limit_lines(lines)

    def find(self, name: str) -> ApiTool:
        """A tool.

        Raises:
            ToolError: there is none.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolError(
                f"there is no tool {name[:100]!r}: search_tools finds those that there are"
            )
        return tool


def find_group(tool: ApiTool) -> str:
    """The group of a tool: its first tag."""
    tag = tool.operation.tags[0] if tool.operation.tags else ""
    return shorten(" ".join(tag.split()), MAX_TAG_CHARS) or NO_TAG


def make_definition(tool: ApiTool) -> Tool:
    """The definition of a tool, as it is indexed."""
    return Tool(name=tool.name, description=tool.description, input_schema=tool.plan.schema)


def format_tool(tool: ApiTool, detail: str) -> str:
    """A tool in one line."""
    if detail == "name":
        return tool.name
    if detail == "full":
        return msgspec.json.encode(make_definition(tool)).decode()
    about = shorten_description(tool.description)
    return f"{tool.name}({list_arguments(tool.plan.schema)})" + (f": {about}" if about else "")


def limit_lines(lines: list[str]) -> str:
    """Lines as a text of bounded length: a line that is too long is told of instead."""
    room, kept = MAX_ANSWER_CHARS, []
    for at, line in enumerate(lines):
        said = (
            line
            if at == 0 or len(line) <= room
            else "- one more is too long here: ask for it alone"
        )
        room -= len(said)
        kept.append(said)
    return "\n".join(kept)


def offer_search_tools(server: "Server", tools: ApiTools) -> None:
    """Offer the meta-tools of an API instead of its operations."""
    from isthmus.server.asking.context import Context

    search = ApiSearch(tools)

    # of these names, which no argument has: they get all arguments
    async def search_tools(isthmus__arguments: dict[str, Any]) -> str:
        return search.search(msgspec.convert(isthmus__arguments, SearchWanted))

    async def get_tool_details(isthmus__arguments: dict[str, Any]) -> str:
        return search.describe(msgspec.convert(isthmus__arguments, DetailsWanted).names)

    async def list_servers(isthmus__arguments: dict[str, Any]) -> str:  # noqa: ARG001 - it takes none
        return search.list_groups()

    async def call_tool(ctx: Context, isthmus__arguments: dict[str, Any]) -> CallToolResult:
        wanted = msgspec.convert(isthmus__arguments, CallWanted)
        tool = search.find(wanted.name)
        tool.check_arguments(wanted.arguments)
        return await tool.call(ctx, wanted.arguments)

    functions: Mapping[str, Any] = {
        "search_tools": search_tools,
        "get_tool_details": get_tool_details,
        "call_tool": call_tool,
        "list_servers": list_servers,
    }
    for shown in META_TOOLS:
        if shown.name in functions:  # results are not cut here, so that nothing reads the rest
            server.add_tool(
                functions[shown.name],
                name=shown.name,
                description=shown.description or "",
                input_schema=shown.input_schema,
                read_only=shown.name in READING,
                open_world=shown.name not in READING,
            )
