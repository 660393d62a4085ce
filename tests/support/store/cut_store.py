"""A store whose way to the engine a test cuts, and mends: as a network does between machines."""

from isthmus.store.store import StoreUnavailable

__all__ = ["CutStore"]


class CutStore:
    """A store that reaches the engine through something that can be cut.

    Args:
        store: it.

    Attributes:
        is_closed: it was closed, and not opened since.
    """

    def __init__(self, store):
        self._store = store
        self._is_cut = False
        self._last = None
        self._losing = None
        self.is_closed = True
        self.name = store.name
        self.kv = _CutPart(self, lambda: store.kv)
        self.log = _CutPart(self, lambda: store.log)
        self.bus = _CutPart(self, lambda: store.bus)

    def meter(self, name, rate):
        """A meter beyond the cut."""
        return _CutPart(self, lambda: self._store.meter(name, rate))

    async def open(self, *, durable=False):
        """Open the store."""
        self.check("open")
        self.is_closed = False
        await self._store.open(durable=durable)

    async def close(self):
        """Close the store, which is possible in any case."""
        self.is_closed = True
        await self._store.close()

    def cut(self):
        """Have all that is asked for fail from now on."""
        self._is_cut = True

    def cut_after(self, what):
        """Have all fail that is asked for after the next call of a method."""
        self._last = what

    def lose_answer(self, what):
        """Have the next call of a method be done, and fail all the same."""
        self._losing = what

    def mend(self):
        """Have everything work again."""
        self._is_cut, self._last, self._losing = False, None, None

    def check_answer(self, what):
        """See that the answer comes through.

        Raises:
            StoreUnavailable: it is lost.
        """
        if what == self._losing:
            self._losing = None
            raise StoreUnavailable("the answer of the store is lost")

    def check(self, what):
        """See that the way is there.

        Raises:
            StoreUnavailable: it is cut.
        """
        if self._is_cut:
            raise StoreUnavailable("the way to the store is cut")
        if what == self._last:
            self._is_cut = True


class _CutPart:
    """One part of the store, such as its bus."""

    def __init__(self, store, find):
        self._cut_store, self._find = store, find

    def __getattr__(self, name):
        method = getattr(self._find(), name)
        if name in {"on_gap", "report_gap"}:
            return method

        async def call(*args, **options):
            self._cut_store.check(name)
            result = await method(*args, **options)
            self._cut_store.check_answer(name)
            return result

        return call
