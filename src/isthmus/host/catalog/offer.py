"""Tool offer: the definitions that a model is given, within a budget of tokens."""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from math import ceil
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.core.text import clean_text
from isthmus.host.model.tokens import BYTES_PER_TOKEN, estimate_tokens
from isthmus.wire import Tool

if TYPE_CHECKING:
    from isthmus.host.catalog.metatools import SearchSettings

MAX_DESCRIPTION_CHARS = 8_192
MAX_DEFINITION_BYTES = 256 * 1024  # written as JSON; a larger one is not offered
MAX_NAMES_IN_NOTE = 20


class ToolCandidate(Struct, frozen=True):
    """A tool that might be offered.

    Attributes:
        name: what it is called here.
        server: whose it is.
        tool: its definition, whole.
        description: what the configuration says in place of its description; None for nothing.
        quarantined: whether it has changed since it was approved.
    """

    name: str
    server: str
    tool: Tool
    description: str | None = None
    quarantined: bool = False


class ToolLeftOut(Struct, frozen=True):
    """A tool that a model is not offered, and the reason."""

    name: str
    reason: str


class ToolOffer(Struct, frozen=True, kw_only=True):
    """The tools that a model is offered.

    Attributes:
        tools: their definitions, under our names, in an order that stays.
        left_out: those that it is not told of.
        absent: servers of which nothing is known, and why.
        tokens: what the definitions take, estimated.
        note: what is missing, in words for a model; empty where nothing is. Why a server is absent is
            not in it: the server itself may have written that.
        searching: whether ``tools`` are those that find all others.
        found: how many those find; 0 where they are not searched.
    """

    tools: tuple[Tool, ...]
    left_out: tuple[ToolLeftOut, ...] = ()
    absent: Mapping[str, str] = {}
    tokens: int = 0
    note: str = ""
    searching: bool = False
    found: int = 0

    @property
    def missing(self) -> str:
        """The missing tools and servers, and the reasons, in words for a person."""
        return describe_missing(self.left_out, self.absent, why=True)


def make_offer(
    candidates: Sequence[ToolCandidate], budget: int | None, absent: Mapping[str, str]
) -> ToolOffer:
    """Offer the tools that fit, taken from the servers in turn so that none takes it all.

    Args:
        candidates: in their order, which the offer keeps.
        budget: tokens that there are for them; None for any number.
        absent: servers of which nothing is known, and why.
    """
    reasons: dict[str, str] = {}
    shaped: dict[str, tuple[Tool, int]] = {}
    turns: dict[str, list[str]] = {}
    for one in candidates:
        if one.quarantined:
            reasons[one.name] = "it has changed since it was approved"
        elif not is_for_models(one.tool):
            reasons[one.name] = "it is for an app only"
        else:
            tool = make_definition(one)
            size = len(msgspec.json.encode(tool))
            if size > MAX_DEFINITION_BYTES:
                reasons[one.name] = f"its definition has {size} bytes"
                continue
            shaped[one.name] = tool, ceil(size / BYTES_PER_TOKEN)
            turns.setdefault(one.server, []).append(one.name)
    left = budget
    for name in filter(None, chain.from_iterable(zip_longest(*turns.values()))):
        cost = shaped[name][1]
        if left is None:
            continue
        if cost > left:
            reasons[name] = f"{cost} tokens, and {left} of {budget} were left"
        else:
            left -= cost
    given = [shaped[one.name] for one in candidates if one.name not in reasons]
    out = tuple(
        ToolLeftOut(one.name, reasons[one.name]) for one in candidates if one.name in reasons
    )
    return ToolOffer(
        tools=tuple(tool for tool, _ in given),
        left_out=out,
        absent=dict(absent),
        tokens=sum(cost for _, cost in given),
        note=describe_missing(out, absent),
    )


def offer_search(
    candidates: Sequence[ToolCandidate],
    offer: ToolOffer,
    search: "SearchSettings",
    *,
    window: int = 0,
) -> ToolOffer:
    """Offer the meta-tools where the definitions would take too many tokens.

    Args:
        candidates: all tools.
        offer: those that it would be told of.
        search: when tools are searched.
        window: tokens that the model reads at most; 0 where that is not known.
    """
    whole = make_offer(candidates, None, offer.absent) if offer.left_out else offer
    if not search.wants(whole.tokens, window):
        return offer
    from isthmus.search.metatools import META_TOOLS  # few hosts have so many tools

    budget = search.most(window) if search.mode == "auto" else None
    pinned = make_offer([one for one in candidates if search.pins(one.name)], budget, {})
    tools = (*META_TOOLS, *pinned.tools)
    return ToolOffer(
        tools=tools,
        left_out=pinned.left_out,
        absent=offer.absent,
        tokens=sum(estimate_tokens(tool) for tool in tools),
        note=describe_missing(pinned.left_out, offer.absent),
        searching=True,
        found=len(whole.tools),
    )


def renew_offer(before: ToolOffer, absent: Mapping[str, str]) -> ToolOffer:
    """Renew an offer of meta-tools: the same tools, and the servers that are missing now."""
    return structs.replace(before, absent=absent, note=describe_missing(before.left_out, absent))


def is_for_models(tool: Tool) -> bool:
    """Whether a tool is for models: a tool of an app can be for the app's page alone."""
    interface = (tool.meta or {}).get("ui")
    if not isinstance(interface, dict):
        return True
    visibility = interface.get("visibility")
    return not isinstance(visibility, list) or "model" in visibility


def make_definition(one: ToolCandidate) -> Tool:
    """Make the definition that a model needs of a tool, and nothing more."""
    text = one.tool.description if one.description is None else one.description
    return Tool(
        name=one.name,
        title=one.tool.title,
        description=UNSET if text is UNSET else truncate_description(text),
        input_schema=one.tool.input_schema,
    )


def truncate_description(text: str) -> str:
    """Truncate a description, and remove invisible characters that only a model would see."""
    text = clean_text(text)
    if len(text) <= MAX_DESCRIPTION_CHARS:
        return text
    return f"{text[:MAX_DESCRIPTION_CHARS]}\n[The description goes on for {len(text) - MAX_DESCRIPTION_CHARS} characters, left out here.]"


def describe_missing(
    left_out: Sequence[ToolLeftOut], absent: Mapping[str, str], *, why: bool = False
) -> str:
    """Describe the missing tools and servers in words."""
    lines = []
    if left_out:
        shown = ", ".join(f"{one.name} ({one.reason})" for one in left_out[:MAX_NAMES_IN_NOTE])
        more = (
            f" and {len(left_out) - MAX_NAMES_IN_NOTE} more"
            if len(left_out) > MAX_NAMES_IN_NOTE
            else ""
        )
        lines.append(f"Tools left out: {shown}{more}.")
    lines += [
        f"The server {name} has no tools now{f': {reason}' if why else ''}."
        for name, reason in absent.items()
    ]
    return "\n".join(lines)
