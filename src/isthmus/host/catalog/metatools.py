"""Settings of tool search in a host: when tools are found by searching, and which are pinned."""

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from isthmus.host.model.errors import BadArguments, ConfigError
from isthmus.search.metatools import META_TOOL_FORMS

DEFAULT_WINDOW_TOKENS = 200_000  # where nobody says how many tokens the model's window has
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


def parse_meta_arguments(name: str, arguments: Mapping[str, Any]) -> Any:
    """Parse the arguments of a meta-tool.

    Raises:
        BadArguments: the arguments are none of it.
    """
    try:
        return msgspec.convert(dict(arguments), META_TOOL_FORMS[name][0])
    except msgspec.ValidationError as error:
        raise BadArguments(f"the arguments of {name} do not fit: {error}") from None
