"""``call_tool``, ``read_resource`` and ``get_prompt``: one thing asked of a server, its answer on stdout."""

import base64
import sys
from collections.abc import Sequence

from isthmus.cli.arguments import parse_arguments, parse_json_object, split_pairs
from isthmus.cli.exits import Exit
from isthmus.cli.output import print_json, print_note, print_text, render_blocks, render_contents
from isthmus.cli.terminal_client import TerminalClient
from isthmus.client.client import Client
from isthmus.client.model.results import ToolResult
from isthmus.errors import UsageError, quote_text
from isthmus.wire import ReadResourceResult, Tool

__all__ = ["call_tool", "get_prompt", "print_result", "read_resource"]

MAX_TOOL_NAMES = 10
"""How many names of tools a message holds."""

MAX_TOOL_NAME_CHARS = 100
"""Characters of each of them."""


async def call_tool(
    talk: TerminalClient, name: str, words: Sequence[str], json_args: str | None
) -> Exit:
    """Call a tool.

    Args:
        talk: the conversation.
        name: the tool.
        words: ``key=value`` each.
        json_args: a JSON object of arguments; the words win over it.

    Raises:
        UsageError: there is no such tool, or it does not take these arguments.
    """
    given = split_pairs(words)
    whole = parse_json_object(json_args) if json_args else {}
    async with talk.client() as client:
        tool = await _find_tool(client, name)
        arguments = whole | parse_arguments(given, tool.input_schema)
        _check_required(tool, arguments)
        talk.heard.clear()  # what it said when it started is about something else
        try:
            result = await client.call_tool(name, arguments, on_progress=talk.progress)
        finally:
            talk.settle()
    return print_result(result, as_json=talk.options.as_json)


async def _find_tool(client: Client, name: str) -> Tool:
    """The tool of that name, or a message with the names there are, the nearest first."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    if name in tools:
        return tools[name]
    import difflib

    near = difflib.get_close_matches(name, tools, 3, 0.4)
    shown = [
        one[:MAX_TOOL_NAME_CHARS] for one in [*near, *sorted(tools.keys() - near)][:MAX_TOOL_NAMES]
    ]
    more = f" and {len(tools) - MAX_TOOL_NAMES} more" if len(tools) > MAX_TOOL_NAMES else ""
    raise UsageError(f"the server has no tool {name!r}; it has: {', '.join(shown) or 'none'}{more}")


def _check_required(tool: Tool, arguments: dict[str, object]) -> None:
    missing = [key for key in tool.input_schema.get("required", ()) if key not in arguments]
    if missing:
        raise UsageError(f"{tool.name} also needs: {', '.join(f'{key}=…' for key in missing)}")


def print_result(result: ToolResult, *, as_json: bool) -> Exit:
    """Print a tool's result; what it says of its own failure goes to stderr."""
    text = render_blocks(result.content)
    if as_json:
        print_json(result.wire)
    elif result.is_error:
        print_note(f"the tool failed: {quote_text(text)}")
    elif text or result.structured is None:
        print_text(text)
    else:
        print_json(result.structured)
    return Exit.TOOL_FAILED if result.is_error else Exit.OK


async def read_resource(talk: TerminalClient, uri: str) -> Exit:
    """Read a resource; a single binary one goes to a pipe or file as it is."""
    async with talk.client() as client:
        result = await client.read_resource(uri)
    if talk.options.as_json:
        print_json(result)
    elif (data := _find_single_blob(result)) is not None and not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
    else:
        print_text(render_contents(result.contents))
    return Exit.OK


def _find_single_blob(result: ReadResourceResult) -> bytes | None:
    """The bytes of a resource that is one blob, or None."""
    parts = result.contents
    if len(parts) != 1 or not isinstance(parts[0].blob, str):
        return None
    return base64.b64decode(parts[0].blob)


async def get_prompt(talk: TerminalClient, name: str, words: Sequence[str]) -> Exit:
    """Get a prompt with its blanks filled."""
    arguments = {key: values[-1] for key, values in split_pairs(words).items()}
    async with talk.client() as client:
        result = await client.get_prompt(name, arguments)
    if talk.options.as_json:
        print_json(result)
    else:
        for message in result.messages:
            print_text(f"{message.role}: {render_blocks([message.content])}")
    return Exit.OK
