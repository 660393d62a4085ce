"""Command line of a call: ``isthmus call …``, quoted so that a shell does with it what was done."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec


def write_call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """The command that makes a call once more, by the host that runs.

    Arguments are one JSON object, since ``key=value`` is read by the tool's schema, which may change.
    Whatever a terminal would obey, or a person would not see, stands there as a JSON escape.

    Args:
        tool: its name here, ``server__tool``.
        arguments: what it was called with.
    """
    words = ["isthmus", "call", "--host", tool]
    if arguments:
        words += ["--json-args", json.dumps(msgspec.to_builtins(arguments), ensure_ascii=True)]
    return shlex.join(words)
