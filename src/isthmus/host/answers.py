"""How the host answers what servers ask, by each of the three routes."""

from typing import Any

from msgspec import Struct

from isthmus.host.attempt import Action, Attempt, Origin, new_id
from isthmus.host.config.entries import ServerEntry

__all__ = ["Asking"]


class Asking(Struct, frozen=True, kw_only=True):
    """Who asks us something, and in the course of what.

    Attributes:
        entry: the server.
        identity: what the server is bound to: its program, or its origin.
        isolation: whose connection to it the question came on.
        principal: ``server:NAME``.
        run: the run it belongs to; empty where that is not known.
        parent: the attempt in whose course it was asked; None where that is not known.
        origin: by which route.
        revision: the name of the revision spoken.
        labels: what the run has consumed; of all runs in flight there, where it is not known which.
        task: the task it belongs to, and ``key`` its name within task or result; else empty.
        depth: how many samplings it is within.
    """

    entry: ServerEntry
    identity: str = ""
    isolation: str = ""
    run: str = ""
    parent: Attempt | None = None
    origin: Origin = "request"
    revision: str = ""
    labels: frozenset[str] = frozenset()
    task: str = ""
    key: str = ""
    depth: int = 0

    @property
    def principal(self) -> str:
        """Who asks: the server."""
        return f"server:{self.entry.name}"

    def attempt(self, action: Action, object: str = "", arguments: Any = None) -> Attempt:
        """What the server wants, as an attempt in the course of its parent.

        Args:
            action: what is wanted.
            object: the model, or the page.
            arguments: with what, as plain data.
        """
        return Attempt(
            id=new_id(),
            action=action,
            principal=self.principal,
            server=self.entry.name,
            object=object,
            arguments=arguments or {},
            run=self.run,
            parent="" if self.parent is None else self.parent.id,
            origin=self.origin,
            isolation=self.isolation,
        )
