"""Meta-tools: the few tools by which a model finds all others, the same word for word every time.

A model that is given thousands of definitions reads them all for every answer. These take some
hundred tokens, and because they never change, what a provider keeps of a prompt holds.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from isthmus.wire import Tool

READ_REST_TOOL = "read_rest"  # it is offered where a result was cut, with or without search


class SearchWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``search_tools``."""

    query: Annotated[str, Meta(max_length=2000, description="What you want to do, in a few words.")]
    server: Annotated[str | None, Meta(description="Only tools of this server.")] = None
    limit: Annotated[int, Meta(ge=1, le=50, description="How many tools at most.")] = 5
    detail: Annotated[
        Literal["name", "brief", "full"],
        Meta(description="Only names; with what each is for; or with the schema of its input."),
    ] = "brief"


class DetailsWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``get_tool_details``."""

    names: Annotated[
        tuple[str, ...],
        Meta(min_length=1, max_length=20, description="Names as search_tools gives them."),
    ]


class CallWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``call_tool``."""

    name: Annotated[str, Meta(description="The tool's name, as search_tools gives it.")]
    arguments: Annotated[
        dict[str, Any], Meta(description="What the tool takes: see its input schema.")
    ] = {}


class ServersWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``list_servers``: none."""


class RestWanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of ``read_rest``."""

    uri: Annotated[str, Meta(description="The link, isthmus://results/…, as the result has it.")]


# the arguments of each, and its description for a model
META_TOOL_FORMS: Mapping[str, tuple[type[Struct], str]] = {
    "search_tools": (
        SearchWanted,
        """Find tools by what they do. There are many more tools than you are shown here: search before
you say that something cannot be done, and in other words where the first search finds nothing that
fits.""",
    ),
    "get_tool_details": (
        DetailsWanted,
        """The whole definitions of tools that search_tools has found, with the schema of their input.
Read it before you call a tool for the first time.""",
    ),
    "call_tool": (
        CallWanted,
        """Call a tool that search_tools has found, by its name and with the arguments that its input
schema asks for. The user may be asked before anything happens.""",
    ),
    "list_servers": (
        ServersWanted,
        """The servers whose tools search_tools finds: how many each has, and what it is for.""",
    ),
    READ_REST_TOOL: (
        RestWanted,
        """Read on where the result of a tool was cut: a page at a time, at the link that it ends with.""",
    ),
}


def is_meta(name: str) -> bool:
    """Whether a name is that of a meta-tool; no tool of a server has such a name."""
    return name in META_TOOL_FORMS


def make_form_schema(kind: type[Struct]) -> dict[str, Any]:
    """Make the schema of a form, in one piece."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="{name}")
    found: dict[str, Any] = parts[kind.__name__]
    found.pop("title", None)
    found.pop("description", None)
    return found


# in the order in which a model is given them
META_TOOLS: tuple[Tool, ...] = tuple(
    Tool(name=name, description=" ".join(about.split()), input_schema=make_form_schema(kind))
    for name, (kind, about) in META_TOOL_FORMS.items()
)
