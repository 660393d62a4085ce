"""What scopes there are, what every request takes, and which of them stand for others."""

from collections.abc import Collection, Mapping

from isthmus.core.scopes import scope_set

__all__ = ["ScopeModel"]

REMEMBERED = 1024


class ScopeModel:
    """The scopes of one server.

    Example:
        >>> model = ScopeModel({"files:read"}, implies={"files:admin": {"files:read", "files:write"}})
        >>> model.satisfied(frozenset({"files:admin"}), frozenset({"files:write"}))
        True

    Args:
        base: what every request takes, whatever it asks for; the metadata lists these, so that
            clients begin with the least.
        implies: for a scope those that whoever has it has as well, also in several steps.

    Attributes:
        base: what every request takes.
        known: every scope that stands in here.

    Raises:
        UsageError: something is no scope, or is one that no resource takes.
    """

    def __init__(
        self,
        base: Collection[str] = (),
        implies: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self.base = scope_set(base, "base")
        self._implies = {one: scope_set(those, one) for one, those in (implies or {}).items()}
        self.known = self.base.union(
            scope_set(tuple(self._implies), "implies"), *self._implies.values()
        )
        self._reached: dict[frozenset[str], frozenset[str]] = {}

    def satisfied(self, granted: frozenset[str], required: frozenset[str]) -> bool:
        """Whether what was granted is enough, by itself or by what it implies."""
        # spec 2026-07-28 basic/authorization#step-up-authorization-flow: the hierarchy of scopes
        # is the server's to honour
        return required <= granted or required <= self.reached(granted)

    def reached(self, granted: frozenset[str]) -> frozenset[str]:
        """Scopes with all that they imply."""
        if not self._implies:
            return granted
        found = self._reached.get(granted)
        if found is None:
            every, pending = set(granted), list(granted)
            while pending:
                more = self._implies.get(pending.pop(), frozenset()) - every
                every |= more
                pending += more
            found = frozenset(every)
            if len(self._reached) < REMEMBERED:
                self._reached[granted] = found
        return found
