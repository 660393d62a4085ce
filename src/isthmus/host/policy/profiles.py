"""Policies of profiles: rules that a gateway's profile lays over those of the host, to tighten them."""

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from isthmus.host.model.errors import PolicyError
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule import LayerName, PolicyLayer
from isthmus.host.policy.rule_file import load_layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# the layer that the rules of a profile stand in: it may demand more than the others, and never
# less
PROFILE_LAYER: LayerName = "workspace"

UNKNOWN_PROFILE = PolicyLayer(name=PROFILE_LAYER, broken="there is no such profile any more")


class ProfilePolicies:
    """The policies of attempts that are made through profiles.

    Attributes:
        layers: the rules of each profile that has its own.
    """

    def __init__(self) -> None:
        self.layers: Mapping[str, tuple[PolicyLayer, ...]] = {}
        self._made: dict[str, tuple[Policy, tuple[PolicyLayer, ...], Policy]] = {}

    def find(self, policy: Policy, profile: str) -> Policy:
        """The policy for attempts through a profile; where its rules cannot be read, it is locked down.

        Args:
            policy: that of the host.
            profile: the profile's name; empty for none.
        """
        if not profile:
            return policy
        layers = self.layers.get(profile, (UNKNOWN_PROFILE,))
        if not layers:
            return policy
        made = self._made.get(profile)
        if made is not None and made[0] is policy and made[1] is layers:
            return made[2]
        try:
            whole = Policy([*policy.layers, *layers])
        except PolicyError as error:  # a rule allows, say
            broken = PolicyLayer(name=PROFILE_LAYER, broken=f"profile {profile}: {error}")
            whole = Policy([*policy.layers, broken])
        self._made[profile] = policy, layers, whole
        return whole


def load_profile_layers(place: str) -> tuple[PolicyLayer, ...]:
    """The rules of a profile's file, or of a policy that comes with isthmus; none for an empty place."""
    return tuple(load_layers(place, PROFILE_LAYER)) if place else ()


# the profile that attempts of this context are made through; empty for none
PROFILE: ContextVar[str] = ContextVar("isthmus_profile", default="")


@contextmanager
def attempted_through(profile: str) -> "Iterator[None]":
    """Have everything that is attempted meanwhile be made through a profile of a gateway."""
    token = PROFILE.set(profile)
    try:
        yield
    finally:
        PROFILE.reset(token)
