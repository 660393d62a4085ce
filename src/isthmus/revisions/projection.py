"""Cut a newest-shape value down to a revision.

For each revision and struct the cutting function is compiled when it is first needed: it drops
the members the revision lacks, and looks into those members only whose types have something to
cut. For most structs there is nothing to do, and then a projection is two dictionary lookups.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, get_args

from msgspec import UNSET, Struct
from msgspec.structs import fields, replace

from isthmus.revisions.downgrade import INSTEAD, REWRITES, Rewrite
from isthmus.revisions.table import Revision

__all__ = ["accept", "project"]

T = TypeVar("T")
Cut: TypeAlias = Callable[[Any], Any]


def project(value: T, revision: Revision) -> T:
    """``value`` as it may be sent in ``revision``; the same object when nothing needs to change.

    What the revision cannot say is said differently where that is possible, see
    :mod:`isthmus.revisions.downgrade`. Raw JSON and plain data are left alone. Doing it twice is
    doing it once.
    """
    cut = _SENDING[revision][type(value)]
    return value if cut is None else cut(value)


def accept(value: T, revision: Revision) -> T:
    """``value`` without the members that ``revision`` does not have.

    For what comes in: nobody can use a member that their revision lacks.
    """
    cut = _RECEIVING[revision][type(value)]
    return value if cut is None else cut(value)


class _Cuts(dict[type, Cut | None]):
    """What cuts each struct to one revision, or None; compiled on first use."""

    def __init__(self, revision: Revision, *, sending: bool) -> None:
        super().__init__()
        self._revision = revision
        self._sending = sending
        self._compiling: set[type] = set()

    def __missing__(self, shape: type) -> Cut | None:
        cut = self[shape] = self._compile(shape) if issubclass(shape, Struct) else None
        return cut

    def _compile(self, shape: type[Struct]) -> Cut | None:
        if self._sending and shape in INSTEAD and not self._revision.knows(shape):
            return self._substitute(INSTEAD[shape])
        rewrite = self._rewrite(shape)
        known = self._revision.shown(shape)
        hidden = tuple(name for name in shape.__struct_fields__ if name not in known)
        self._compiling.add(shape)
        nested = tuple(
            field.name
            for field in fields(shape)
            if field.name in known and any(map(self._cuts, _structs(field.type)))
        )
        self._compiling.discard(shape)
        if not hidden and not nested:
            return rewrite
        return self._cutter(rewrite, hidden, nested)

    def _rewrite(self, shape: type) -> Rewrite | None:
        row = REWRITES.get(shape) if self._sending else None
        return None if row is None else row(self._revision)

    def _cuts(self, shape: type) -> bool:
        """Whether there may be something to cut; yes for a struct that holds its own kind."""
        return shape in self._compiling or self[shape] is not None

    def _substitute(self, instead: Rewrite) -> Cut:
        def cut(value: Any) -> Any:
            return self._walk(instead(value))

        return cut

    def _cutter(
        self, rewrite: Rewrite | None, hidden: tuple[str, ...], nested: tuple[str, ...]
    ) -> Cut:
        walk = self._walk
        # One call in C reads them all; two names at least, so that it answers with a tuple.
        read = attrgetter(*hidden, *hidden) if hidden else None
        nothing = (UNSET,) * (2 * len(hidden))

        def cut(value: Any) -> Any:
            if rewrite is not None:
                value = rewrite(value)
            changes: dict[str, Any] = {}
            if read is not None and read(value) != nothing:
                changes = dict.fromkeys(hidden, UNSET)
            for name in nested:
                before = getattr(value, name)
                after = walk(before)
                if after is not before:
                    changes[name] = after
            return replace(value, **changes) if changes else value

        return cut

    def _walk(self, value: Any) -> Any:
        if type(value) is not list:
            cut = self[type(value)]
            return value if cut is None else cut(value)
        items = value
        for i, item in enumerate(value):
            cut = self[type(item)]
            if cut is not None and (after := cut(item)) is not item:
                items = items.copy() if items is value else items
                items[i] = after
        return items


class _ByRevision(dict[Revision, _Cuts]):
    def __init__(self, *, sending: bool) -> None:
        super().__init__()
        self._sending = sending

    def __missing__(self, revision: Revision) -> _Cuts:
        cuts = self[revision] = _Cuts(revision, sending=self._sending)
        return cuts


_SENDING = _ByRevision(sending=True)
_RECEIVING = _ByRevision(sending=False)


def _structs(annotation: Any) -> Iterator[type]:
    """The structs that an annotation names, inside unions and lists too."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        yield annotation
    for argument in get_args(annotation):
        yield from _structs(argument)
