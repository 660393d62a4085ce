"""Sampling request: a server's request as plain data, which policy, people and the audit log look at.

A person may make it less in every way, and never more: fewer tokens, fewer tools, other words.
"""

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.core.sampling import find_request_flaw, list_blocks
from isthmus.host.model.errors import BadArguments
from isthmus.host.model.interaction import SamplingAsked
from isthmus.host.model.tokens import BYTES_PER_TOKEN
from isthmus.host.sampling.selection import Need
from isthmus.wire import (
    AudioContent,
    CreateMessageParams,
    ImageContent,
    TextContent,
    ToolResultContent,
)

if TYPE_CHECKING:
    from isthmus.host.sampling.models import Modality

TOKENS_PER_MESSAGE = 4
TOKENS_PER_IMAGE = 1_000
BYTES_PER_SOUND_TOKEN = 1_500
MAX_REQUEST_BYTES = 32 * 1024 * 1024
MAX_TOOLS = 128
MAX_STOP_SEQUENCES = 64
REQUIRED_MEMBERS = ("model", "messages", "maxTokens")
# what an edit leaves out is dropped, but for the first three
EDITABLE_MEMBERS = (*REQUIRED_MEMBERS, "systemPrompt", "temperature", "stopSequences", "tools")


class BadEdit(BadArguments):
    """A person's edit of a request or an answer is wrong: the server is not to blame."""


class AutomaticAmount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The amount that a remembered yes is for; None for any amount.

    Attributes:
        tokens: tokens read and written, in all.
        cost: micro-dollars, in all.
    """

    tokens: int | None = None
    cost: int | None = None


class SamplingWanted(Struct, frozen=True, kw_only=True):
    """A request with the model that is to answer it.

    Attributes:
        model: the model's id.
        params: the request.
    """

    model: str
    params: CreateMessageParams


def make_arguments(params: CreateMessageParams, model: str) -> dict[str, Any]:
    """Make the plain data of a request, as the protocol spells it, and its model."""
    return {"model": model, **msgspec.to_builtins(structs.replace(params, meta=UNSET, task=UNSET))}


def parse_wanted(data: Mapping[str, Any]) -> SamplingWanted:
    """Parse a request of plain data.

    Raises:
        BadArguments: it is none, or one that may not be put to a model.
    """
    plain = dict(data)
    model = plain.pop("model", "")
    try:
        params = msgspec.convert(plain, CreateMessageParams)
    except msgspec.ValidationError as error:
        raise BadArguments(f"the sampling request is malformed: {error}") from error
    wrong = find_fault(params)
    if wrong:
        raise BadArguments(f"the sampling request cannot be put to a model: {wrong}")
    return SamplingWanted(model=str(model), params=params)


def find_fault(params: CreateMessageParams) -> str:
    """Find the reason why a request may not be put to a model; empty where it may."""
    if not params.messages:
        return "there is no message"
    # spec 2026-07-28 client/sampling#messages: a role of "user" or "assistant" MUST be there,
    # which its type is; what each may hold is asked here
    wrong = find_request_flaw(params)
    if wrong:
        return wrong
    if params.max_tokens < 1:
        return f"maxTokens is {params.max_tokens}, and a message has a token at least"
    temperature = params.temperature
    if temperature is not UNSET and not (math.isfinite(temperature) and temperature >= 0):
        return f"temperature is {temperature}"
    return find_excess(params)


def find_excess(params: CreateMessageParams) -> str:
    """Find the part of a request that is too large; empty where it may be put to a model."""
    for name, most in (("tools", MAX_TOOLS), ("stop_sequences", MAX_STOP_SEQUENCES)):
        given = getattr(params, name) or ()
        if len(given) > most:
            return f"{len(given)} of {name} are given, and at most {most} are taken"
    names = [tool.name for tool in params.tools or ()]
    if len(set(names)) != len(names):
        return "two tools have one name"
    size = len(msgspec.json.encode(params))
    return (
        f"it has {size} bytes, and at most {MAX_REQUEST_BYTES} are taken"
        if size > MAX_REQUEST_BYTES
        else ""
    )


def edits(payload: SamplingAsked, **changed: Any) -> dict[str, Any]:
    """The ``edited`` of a decision that changes some members and leaves the others as they are.

    Example::

        Decision(verdict="allow", edited=edits(payload, maxTokens=100, tools=None))

    Args:
        payload: what is asked.
        changed: what is changed, as the protocol spells it; None drops it. ``automatic`` says how
            much a yes that is remembered is for: ``{"tokens": 2000, "cost": 5000}``.
    """
    whole = {**make_arguments(payload.params, payload.model), **changed}
    allowed = (*EDITABLE_MEMBERS, "automatic")
    return {key: value for key, value in whole.items() if key in allowed and value is not None}


def apply_edit(
    before: Mapping[str, Any], edited: Any
) -> tuple[dict[str, Any], AutomaticAmount | None]:
    """Apply a person's edit to a request, and parse the amount that they allow.

    Args:
        before: the request as plain data.
        edited: what they left of it; see :data:`EDITABLE_MEMBERS`.

    Raises:
        BadEdit: that is nothing one can edit it to.
    """
    try:
        given = msgspec.convert(msgspec.to_builtins(edited), dict[str, Any])
        automatic = given.pop("automatic", None)
        allowed = None if automatic is None else msgspec.convert(automatic, AutomaticAmount)
    except (msgspec.ValidationError, TypeError) as error:
        raise BadEdit(f"the edited sampling request is malformed: {error}") from error
    unknown = sorted(set(given) - set(EDITABLE_MEMBERS))
    if unknown:
        raise BadEdit(
            f"of a sampling request, {unknown[0]} cannot be edited; {', '.join(EDITABLE_MEMBERS)} can"
        )
    after = {key: value for key, value in before.items() if key not in EDITABLE_MEMBERS}
    after |= {key: before[key] for key in REQUIRED_MEMBERS if key in before}
    after |= {key: value for key, value in given.items() if value is not None}
    if not after.get("tools"):
        after.pop("tools", None)
        after.pop("toolChoice", None)
    return after, allowed


def digest_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], key: bytes
) -> dict[str, list[str]]:
    """Digest what was edited, before and after, by name: for the audit log.

    Args:
        before: plain data.
        after: likewise.
        key: the digests are made with it, so that nobody can try texts until one fits.
    """
    found: dict[str, list[str]] = {}
    for name in sorted({*before, *after}):
        pair = [before.get(name), after.get(name)]
        if pair[0] != pair[1]:
            found[name] = [digest_value(value, key) for value in pair]
    return found


def digest_value(value: Any, key: bytes) -> str:
    """Digest plain data under a key; empty for what is not there.

    It is short, since the audit log takes longer ones for secrets.
    """
    if value is None:
        return ""
    text = msgspec.json.encode(value, order="deterministic")
    return blake2b(text, key=key, digest_size=8).hexdigest()


def estimate_need(params: CreateMessageParams) -> Need:
    """Estimate what a model needs to be able to do for a request."""
    inputs: set[Modality] = {"text"}
    for message in params.messages:
        for part in list_blocks(message.content):
            if isinstance(part, ImageContent):
                inputs.add("image")
            elif isinstance(part, AudioContent):
                inputs.add("audio")
    return Need(
        inputs=frozenset(inputs),
        tools=bool(params.tools),
        tokens=estimate_prompt_tokens(params),
        max_tokens=params.max_tokens,
    )


def estimate_prompt_tokens(params: CreateMessageParams) -> int:
    """Estimate the tokens that a model reads."""
    total = 0.0
    for message in params.messages:
        total += TOKENS_PER_MESSAGE
        for part in list_blocks(message.content):
            if isinstance(part, ImageContent):
                total += TOKENS_PER_IMAGE
            elif isinstance(part, AudioContent):
                total += len(part.data) / BYTES_PER_SOUND_TOKEN
            else:
                total += count_bytes(part) / BYTES_PER_TOKEN
    if params.system_prompt:
        total += TOKENS_PER_MESSAGE + len(params.system_prompt.encode()) / BYTES_PER_TOKEN
    if params.tools:
        total += len(msgspec.json.encode(params.tools)) / BYTES_PER_TOKEN
    return math.ceil(total)


def count_bytes(part: Any) -> int:
    """Count the bytes that a model reads of a block."""
    text = part.text.encode() if isinstance(part, TextContent) else msgspec.json.encode(part)
    return len(text)


def count_rounds(params: CreateMessageParams) -> int:
    """Count the turns that the model and the server's tools have taken in a conversation."""
    return sum(
        any(isinstance(part, ToolResultContent) for part in list_blocks(message.content))
        for message in params.messages
    )
