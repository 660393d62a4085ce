"""The decision: every rule of every layer is looked at, and the answer says why."""

from collections.abc import Iterable
from typing import Protocol

from isthmus.host.attempt import Attempt
from isthmus.host.policy.facts import Facts
from isthmus.host.policy.trace import Assurance, Remember, Trace

__all__ = ["Granted", "Policy", "PolicyLayer"]


class HasId(Protocol):
    """A grant, as far as a decision needs to know it."""

    @property
    def id(self) -> str:
        """Its name."""
        ...


class Granted(Protocol):
    """What was granted before: :class:`isthmus.host.grants.Grants`, or nothing."""

    def find(
        self,
        attempt: Attempt,
        facts: Facts,
        *,
        remember: tuple[Remember, ...] | None = None,
        assurance: Assurance = "callback",
    ) -> HasId | None:
        """The grant that covers an attempt, if a rule accepts its scope and its assurance."""
        ...


class PolicyLayer:
    """The rules of one file."""


class Policy:
    """Rules in layers, compiled."""

    version: str = ""

    @classmethod
    def of(cls, layers: Iterable[PolicyLayer]) -> "Policy":
        """A policy of these layers."""
        raise NotImplementedError

    @classmethod
    def named(cls, name: str) -> "Policy":
        """One of the policies that come with isthmus."""
        raise NotImplementedError

    def decide(self, attempt: Attempt, facts: Facts, grants: Granted | None = None) -> Trace:
        """What is to happen to an attempt, and why."""
        raise NotImplementedError
