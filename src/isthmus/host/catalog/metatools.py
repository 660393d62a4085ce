"""Meta-tools: the few tools by which a model finds all others, the same word for word every time.

A model that is given thousands of definitions reads them all for every answer. These four take some
hundred tokens, and because they never change, what a provider keeps of a prompt holds.
"""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from isthmus.host.model.errors import BadArguments, ConfigError
from isthmus.wire import Tool

DEFAULT_WINDOW_TOKENS = 200_000  # where nobody says how many tokens the model's window has
READ_REST_TOOL = "read_rest"  # it is offered where a result was cut, with or without search
MIN_THRESHOLD_TOKENS = 800  # about the tokens of the meta-tools themselves
PER_CENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")


class SearchSettings(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The member ``host.search``: when tools are found by searching.

    Attributes:
        mode: ``auto`` where their definitions would take more than the threshold; or one of the two.
        threshold: so many tokens, or so much of the model's window: ``"2%"``.
        pinned: globs of names that a model is told of directly all the same.
    """

    mode: Literal["auto", "always", "never"] = "auto"
    threshold: str | Annotated[int, Meta(ge=0)] = "2%"
    pinned: tuple[str, ...] = ()

    def most(self, window: int) -> int:
        """The tokens that definitions may take before they are searched."""
        if isinstance(self.threshold, int):
            return self.threshold
        said = PER_CENT.fullmatch(self.threshold.strip())
        if said is None:
            return int(self.threshold)
        return max(
            MIN_THRESHOLD_TOKENS, int((window or DEFAULT_WINDOW_TOKENS) * float(said[1]) / 100)
        )

    def wants(self, tokens: int, window: int) -> bool:
        """Whether tools with so many tokens are searched."""
        return self.mode == "always" or (self.mode == "auto" and tokens > self.most(window))

    def pins(self, name: str) -> bool:
        """Whether a tool is offered beside the meta-tools."""
        return any(fnmatchcase(name, glob) for glob in self.pinned)


def parse_search_settings(member: Mapping[str, Any]) -> SearchSettings:
    """Parse the member ``host.search`` of a configuration.

    Raises:
        ConfigError: it says what cannot be.
    """
    try:
        settings = msgspec.convert(dict(member), SearchSettings)
        settings.most(0)
    except (msgspec.ValidationError, ValueError) as error:
        known = ", ".join(SearchSettings.__struct_encode_fields__)
        raise ConfigError(
            f'host.search: {error}; it knows {known}; a threshold is "2%" or a number of tokens'
        ) from None
    return settings


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


def parse_meta_arguments(name: str, arguments: Mapping[str, Any]) -> Any:
    """Parse the arguments of a meta-tool.

    Raises:
        BadArguments: the arguments are none of it.
    """
    try:
        return msgspec.convert(dict(arguments), META_TOOL_FORMS[name][0])
    except msgspec.ValidationError as error:
        raise BadArguments(f"the arguments of {name} do not fit: {error}") from None


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
