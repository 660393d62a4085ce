"""Capabilities that servers are told of: what a gateway's client or the host's own surfaces can answer."""

from typing import Any

from msgspec import UNSET

from isthmus.host.model.entries import Advertise
from isthmus.wire import (
    ClientCapabilities,
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
)

NO_CAPABILITIES = ClientCapabilities()


def make_full_capabilities(offered: Advertise) -> ClientCapabilities:
    """Everything that an entry lets its server use, whoever answers it."""
    ways = offered.elicitation
    modes = ElicitationCapability(
        form={} if "form" in ways else UNSET, url={} if "url" in ways else UNSET
    )
    return ClientCapabilities(
        elicitation=modes if ways else UNSET,
        sampling=UNSET
        if offered.sampling is False
        else SamplingCapability(
            tools=UNSET if offered.sampling_tools is False else {},
            context=UNSET if offered.sampling_context is False else {},
        ),
        roots=RootsCapability() if offered.roots else UNSET,
    )


def make_own_capabilities(
    offered: Advertise, *, elicits: bool, samples: bool, roots: bool
) -> ClientCapabilities:
    """What the surfaces of a host can answer a server.

    Args:
        offered: what the entry of the server lets it use.
        elicits: somebody is there to be asked.
        samples: there are models.
        roots: there are folders for the server.
    """
    full = make_full_capabilities(offered)
    return ClientCapabilities(
        elicitation=full.elicitation if elicits else UNSET,
        sampling=SamplingCapability(
            tools={} if offered.sampling_tools else UNSET,
            context={} if offered.sampling_context else UNSET,
        )
        if samples and offered.sampling
        else UNSET,
        roots=full.roots if roots else UNSET,
    )


def join_capabilities(one: ClientCapabilities, other: ClientCapabilities) -> ClientCapabilities:
    """What one or the other can be asked."""
    return ClientCapabilities(
        elicitation=join_members(spell_modes(one.elicitation), spell_modes(other.elicitation)),
        sampling=join_members(one.sampling, other.sampling),
        roots=RootsCapability() if one.roots is not UNSET or other.roots is not UNSET else UNSET,
    )


def limit_capabilities(able: ClientCapabilities, full: ClientCapabilities) -> ClientCapabilities:
    """What can be asked of what an entry lets its server use."""
    modes = limit_members(spell_modes(able.elicitation), full.elicitation)
    if modes is not UNSET and modes.form is UNSET and modes.url is UNSET:
        modes = UNSET
    return ClientCapabilities(
        elicitation=modes,
        sampling=limit_members(able.sampling, full.sampling),
        roots=UNSET if able.roots is UNSET else full.roots,
    )


def spell_modes(declared: Any) -> Any:
    """A capability of elicitation that names its modes."""
    # spec 2026-07-28 client/elicitation#capabilities: an empty object means forms
    if declared is not UNSET and declared.form is UNSET and declared.url is UNSET:
        return ElicitationCapability(form={})
    return declared


def join_members(one: Any, other: Any) -> Any:
    """A capability with the members of two."""
    if one is UNSET or other is UNSET:
        return other if one is UNSET else one
    names = type(one).__struct_fields__
    return type(one)(
        **{
            name: {}
            if getattr(one, name) is not UNSET or getattr(other, name) is not UNSET
            else UNSET
            for name in names
        }
    )


def limit_members(able: Any, full: Any) -> Any:
    """A capability with those of its members that another one has, too."""
    if able is UNSET or full is UNSET:
        return UNSET
    return type(able)(
        **{
            name: UNSET if getattr(full, name) is UNSET else getattr(able, name)
            for name in type(able).__struct_fields__
        }
    )
