"""``call``, ``read`` and ``prompt``: one thing asked of a server, its answer on stdout."""

import base64
import sys
from collections.abc import Sequence

from isthmus.cli.arguments import json_object, pairs, typed
from isthmus.cli.exits import Exit
from isthmus.cli.output import blocks, contents, note, print_json, print_text
from isthmus.cli.talk import Talk
from isthmus.client.client import Client
from isthmus.client.results import ToolResult
from isthmus.errors import UsageError, quote_text
from isthmus.wire import ReadResourceResult, Tool

__all__ = ["call", "prompt", "read", "show_result"]

SHOWN = 10
"""How many names of tools a message holds."""

LONGEST_NAME = 100
"""Characters of each of them."""


async def call(talk: Talk, name: str, words: Sequence[str], json_args: str | None) -> Exit:
    """Call a tool.

    Args:
        talk: the conversation.
        name: the tool.
        words: ``key=value`` each.
        json_args: a JSON object of arguments; the words win over it.

    Raises:
        UsageError: there is no such tool, or it does not take these arguments.
    """
    given = pairs(words)
    whole = json_object(json_args) if json_args else {}
    async with talk.client() as client:
        tool = await _tool(client, name)
        arguments = whole | typed(given, tool.input_schema)
        _complete(tool, arguments)
        talk.heard.clear()  # what it said when it started is about something else
        try:
            result = await client.call_tool(name, arguments, on_progress=talk.progress)
        finally:
            talk.settle()
    return show_result(result, as_json=talk.options.as_json)


async def _tool(client: Client, name: str) -> Tool:
    """The tool of that name, or a message with the names there are, the nearest first."""
    tools = {tool.name: tool for tool in await client.list_tools()}
    if name in tools:
        return tools[name]
    import difflib

    near = difflib.get_close_matches(name, tools, 3, 0.4)
    shown = [one[:LONGEST_NAME] for one in [*near, *sorted(tools.keys() - near)][:SHOWN]]
    more = f" and {len(tools) - SHOWN} more" if len(tools) > SHOWN else ""
    raise UsageError(f"the server has no tool {name!r}; it has: {', '.join(shown) or 'none'}{more}")


def _complete(tool: Tool, arguments: dict[str, object]) -> None:
    missing = [key for key in tool.input_schema.get("required", ()) if key not in arguments]
    if missing:
        raise UsageError(f"{tool.name} also needs: {', '.join(f'{key}=…' for key in missing)}")


def show_result(result: ToolResult, *, as_json: bool) -> Exit:
    """Print a tool's result; what it says of its own failure goes to stderr."""
    text = blocks(result.content)
    if as_json:
        print_json(result.wire)
    elif result.is_error:
        note(f"the tool failed: {quote_text(text)}")
    elif text or result.structured is None:
        print_text(text)
    else:
        print_json(result.structured)
    return Exit.TOOL_FAILED if result.is_error else Exit.OK


async def read(talk: Talk, uri: str) -> Exit:
    """Read a resource; a single binary one goes to a pipe or file as it is."""
    async with talk.client() as client:
        result = await client.read_resource(uri)
    if talk.options.as_json:
        print_json(result)
    elif (data := _binary(result)) is not None and not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
    else:
        print_text(contents(result.contents))
    return Exit.OK


def _binary(result: ReadResourceResult) -> bytes | None:
    """The bytes of a resource that is one blob, or None."""
    parts = result.contents
    if len(parts) != 1 or not isinstance(parts[0].blob, str):
        return None
    return base64.b64decode(parts[0].blob)


async def prompt(talk: Talk, name: str, words: Sequence[str]) -> Exit:
    """Get a prompt with its blanks filled."""
    arguments = {key: values[-1] for key, values in pairs(words).items()}
    async with talk.client() as client:
        result = await client.get_prompt(name, arguments)
    if talk.options.as_json:
        print_json(result)
    else:
        for message in result.messages:
            print_text(f"{message.role}: {blocks([message.content])}")
    return Exit.OK
