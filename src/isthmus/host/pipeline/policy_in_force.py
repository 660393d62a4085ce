"""Policy in force: the rules that a host decides by now, and those that profiles lay over them."""

from typing import TYPE_CHECKING

from isthmus.host.model.attempt import Attempt
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.profiles import ProfilePolicies

if TYPE_CHECKING:
    from collections.abc import Callable


class PolicyInForce:
    """The policy that is in force, which may be another one at any time.

    Args:
        policy: decides.

    Attributes:
        profiles: the rules that profiles of a gateway lay over the policy.
        watchers: called when another policy is in force.
        is_given: a program has given the policy, whatever the configuration names.
    """

    def __init__(self, policy: Policy) -> None:
        self.profiles = ProfilePolicies()
        self.watchers: list[Callable[[], None]] = []
        self.is_given = False
        self._policy = policy

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = policy
        for tell in self.watchers:
            tell()

    def find_policy(self, attempt: Attempt) -> Policy:
        """The policy for an attempt: with the rules of the profile that it is made through."""
        return self.profiles.find(self._policy, attempt.profile)
