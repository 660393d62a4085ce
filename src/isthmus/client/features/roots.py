"""Roots: where a server may work; checked before they are told, and watched where one likes."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from os import PathLike
from typing import Protocol, TypeAlias

from isthmus.client.model.callbacks import maybe_await
from isthmus.errors import UsageError
from isthmus.runtime.failures import log_warning
from isthmus.wire import Root

Places: TypeAlias = Sequence[str | PathLike[str] | Root]

Roots: TypeAlias = Places | Callable[[], Awaitable[Places] | Places]
"""Where a server may work: paths, ``file://`` URIs or roots, or a function that gives them."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")
# What stands for itself in the path of a URI; blanks and letters beyond ASCII do not.
_SAFE = "/:@!$&'()*+,;=-._~%"


def make_root(place: str | PathLike[str] | Root) -> Root:
    """One place a server may work in; a path becomes a ``file://`` URI.

    Raises:
        UsageError: it is a URI of another kind, or one that leads out of itself.
    """
    if isinstance(place, Root):
        return Root(uri=check_root_uri(place.uri), name=place.name, meta=place.meta)
    if isinstance(place, str) and _SCHEME.match(place):
        return Root(uri=check_root_uri(place))
    from pathlib import Path  # not needed until there are roots

    if "\0" in os.fspath(place):
        raise UsageError(f"{place!r} is no path: it holds a zero byte")
    path = Path(os.path.abspath(Path(place).expanduser()))  # noqa: PTH100 - takes out the ..
    return Root(uri=path.as_uri(), name=path.name or str(path))


def check_root_uri(uri: str) -> str:
    """A URI as a root may have it, its path encoded.

    Raises:
        UsageError: it is no ``file://`` URI, or leads out of itself.
    """
    from urllib.parse import quote, unquote, urlsplit  # not needed until there are roots

    parts = urlsplit(uri)
    # spec 2026-07-28 client/roots#root: the uri MUST be a file:// URI in this specification
    if parts.scheme != "file" or not _SCHEME.match(uri):
        raise UsageError(f"{uri!r} is no root: a root is a path or a file:// URI")
    if "?" in uri or "#" in uri:
        raise UsageError(f"{uri!r} is no root: write %3F and %23 for ? and # in a name")
    path = unquote(parts.path)
    if _UNSAFE.search(uri) or _UNSAFE.search(path):
        raise UsageError(f"{uri!r} is no root: it holds a control character")
    # spec 2026-07-28 client/roots#security-considerations: clients MUST validate all root URIs
    # to prevent path traversal
    if ".." in re.split(r"[/\\]", path):
        raise UsageError(f"{uri!r} is no root: its path goes up (..)")
    if not path.startswith("/"):
        raise UsageError(f"{uri!r} is no root: its path is not absolute (file:///…)")
    return f"file://{parts.netloc}{quote(parts.path, safe=_SAFE)}"


def make_roots(places: Places) -> list[Root]:
    """Places as roots, each once.

    Raises:
        UsageError: one of them cannot be a root.
    """
    if isinstance(places, str | PathLike | Root):
        raise UsageError(f"roots is a list of places, or a function that gives one: [{places!r}]")
    found: dict[str, Root] = {}
    for place in places:
        one = make_root(place)
        found.setdefault(one.uri.rstrip("/") or one.uri, one)
    return list(found.values())


def to_local_path(uri: str) -> str | None:
    """The directory a root means on this machine; None where that is another machine's."""
    from urllib.parse import unquote, urlsplit  # not needed until there are roots

    parts = urlsplit(uri)
    return unquote(parts.path) if parts.netloc in {"", "localhost"} else None


def is_accessible(one: Root) -> bool:
    """Whether a root is a directory we can look into; believed where it is not on this machine."""
    path = to_local_path(one.uri)
    return path is None or (os.path.isdir(path) and os.access(path, os.R_OK))  # noqa: PTH112 - pathlib costs start-up time


class RootWatch:
    """Roots as they are now: checked, and looked at again when asked to.

    Args:
        places: where the server may work.
        watched: whether places that are not there are left out of what is told.

    Raises:
        UsageError: a place cannot be a root.
    """

    def __init__(self, places: Roots, *, watched: bool = False) -> None:
        self._places = places
        self._watched = watched
        self._warned: set[str] = set()
        self._last: tuple[str, ...] | None = None
        if not callable(places):
            make_roots(places)  # a mistake is found where it was made

    async def now(self) -> list[Root]:
        """The roots to tell.

        Raises:
            UsageError: the function gave something that cannot be a root.
        """
        roots = await self._look()
        self._last = tuple(one.uri for one in roots)
        return roots

    async def has_changed(self) -> bool:
        """Whether the roots are others than those that were known when this look at them ended."""
        roots = await self._look()
        # not those from before the look: meanwhile a server may have been told some
        before, self._last = self._last, tuple(one.uri for one in roots)
        return before is not None and before != self._last

    async def _look(self) -> list[Root]:
        roots = make_roots(
            await maybe_await(self._places()) if callable(self._places) else self._places
        )
        # spec 2026-07-28 client/roots#implementation-guidelines: SHOULD validate accessibility
        # before exposing; a disk may sleep, so not in the event loop
        found = await asyncio.to_thread(lambda: [is_accessible(one) for one in roots])
        for one, is_there in zip(roots, found, strict=True):
            self._warn(one, is_there=is_there)
        if self._watched:
            roots = [one for one, is_there in zip(roots, found, strict=True) if is_there]
        return roots

    def _warn(self, one: Root, *, is_there: bool) -> None:
        if is_there:
            self._warned.discard(one.uri)
        elif one.uri not in self._warned:
            self._warned.add(one.uri)
            what = "is left out until it is" if self._watched else "is told to servers all the same"
            log_warning("root %s is no directory that can be read: it %s", one.uri, what)


class HasRoots(Protocol):
    """An object with roots, which may be others after a while."""

    @property
    def roots(self) -> RootWatch | None:
        """The roots now."""
        ...


async def watch_for_changes(
    watched: HasRoots, every: float, tell: Callable[[], Awaitable[None]]
) -> None:
    """Look at roots again and again, and tell when they have changed.

    Args:
        watched: has the roots.
        every: seconds from one look to the next.
        tell: told of a change.
    """
    # spec 2026-07-28 client/roots#security-considerations: clients MUST monitor accessibility
    while True:
        roots = watched.roots
        try:
            if roots is not None and await roots.has_changed():
                await tell()
        except UsageError as error:
            log_warning("the roots cannot be told: %s", error)
        await asyncio.sleep(every)
