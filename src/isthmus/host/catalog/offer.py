"""What a model is told of the tools, within a budget."""

from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.core.plain_text import clean
from isthmus.host.context.counting import BYTES_PER_TOKEN
from isthmus.wire import Tool

if TYPE_CHECKING:
    from isthmus.host.catalog.metatools import SearchSettings

__all__ = ["Candidate", "LeftOut", "Offer", "offer", "searched", "still", "tokens"]

DESCRIPTION = 8_192
"""Characters of a description that a model is given."""

MOST_BYTES = 256 * 1024
"""Bytes of one definition, written as JSON, beyond which no model is given it."""

NAMED = 20
"""Names of tools that the note of what is missing has."""


class Candidate(Struct, frozen=True):
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


class LeftOut(Struct, frozen=True):
    """A tool that the model is not told of, and why."""

    name: str
    reason: str


class Offer(Struct, frozen=True, kw_only=True):
    """What a model is told.

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
    left_out: tuple[LeftOut, ...] = ()
    absent: Mapping[str, str] = {}
    tokens: int = 0
    note: str = ""
    searching: bool = False
    found: int = 0

    @property
    def told(self) -> str:
        """What is missing, and why, in words for a person."""
        return noted(self.left_out, self.absent, why=True)


def tokens(value: Any) -> int:
    """Tokens that a text or plain data takes, estimated from its bytes."""
    data = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    return ceil(len(data) / BYTES_PER_TOKEN)


def offer(candidates: Sequence[Candidate], budget: int | None, absent: Mapping[str, str]) -> Offer:
    """The tools that fit, taken from the servers in turn so that none takes it all.

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
        elif not for_models(one.tool):
            reasons[one.name] = "it is for an app only"
        else:
            tool = plain(one)
            size = len(msgspec.json.encode(tool))
            if size > MOST_BYTES:
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
    out = tuple(LeftOut(one.name, reasons[one.name]) for one in candidates if one.name in reasons)
    return Offer(
        tools=tuple(tool for tool, _ in given),
        left_out=out,
        absent=dict(absent),
        tokens=sum(cost for _, cost in given),
        note=noted(out, absent),
    )


def searched(
    candidates: Sequence[Candidate],
    given: Offer,
    search: "SearchSettings",
    *,
    window: int = 0,
) -> Offer:
    """What a model is told; where that would be too much, the tools by which it finds all others.

    Args:
        candidates: all tools.
        given: those that it would be told of.
        search: when tools are searched.
        window: tokens that the model reads at most; 0 where that is not known.
    """
    whole = offer(candidates, None, given.absent) if given.left_out else given
    if not search.wants(whole.tokens, window):
        return given
    from isthmus.host.catalog.metatools import META_TOOLS  # few hosts have so many tools

    budget = search.most(window) if search.mode == "auto" else None
    pinned = offer([one for one in candidates if search.pins(one.name)], budget, {})
    tools = (*META_TOOLS, *pinned.tools)
    return Offer(
        tools=tools,
        left_out=pinned.left_out,
        absent=given.absent,
        tokens=sum(tokens(tool) for tool in tools),
        note=noted(pinned.left_out, given.absent),
        searching=True,
        found=len(whole.tools),
    )


def still(before: Offer, absent: Mapping[str, str]) -> Offer:
    """What a model is told that searched before: the same tools, and which servers are missing now."""
    return structs.replace(before, absent=absent, note=noted(before.left_out, absent))


def for_models(tool: Tool) -> bool:
    """Whether a tool is for models, too: a tool of an app can be for the app's page alone."""
    interface = (tool.meta or {}).get("ui")
    if not isinstance(interface, dict):
        return True
    visibility = interface.get("visibility")
    return not isinstance(visibility, list) or "model" in visibility


def plain(one: Candidate) -> Tool:
    """A definition with what a model needs, and nothing more."""
    text = one.tool.description if one.description is None else one.description
    return Tool(
        name=one.name,
        title=one.tool.title,
        description=UNSET if text is UNSET else shortened(text),
        input_schema=one.tool.input_schema,
    )


def shortened(text: str) -> str:
    """A description that is not too long to be read, without what only a model would see in it."""
    text = clean(text)
    if len(text) <= DESCRIPTION:
        return text
    return f"{text[:DESCRIPTION]}\n[The description goes on for {len(text) - DESCRIPTION} characters, left out here.]"


def noted(left_out: Sequence[LeftOut], absent: Mapping[str, str], *, why: bool = False) -> str:
    """What is missing, in words."""
    lines = []
    if left_out:
        shown = ", ".join(f"{one.name} ({one.reason})" for one in left_out[:NAMED])
        more = f" and {len(left_out) - NAMED} more" if len(left_out) > NAMED else ""
        lines.append(f"Tools left out: {shown}{more}.")
    lines += [
        f"The server {name} has no tools now{f': {reason}' if why else ''}."
        for name, reason in absent.items()
    ]
    return "\n".join(lines)
