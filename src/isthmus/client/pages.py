"""Pages elsewhere that users were sent to, and what servers say about them (2025-11-25)."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import UNSET

from isthmus.errors import Misbehaved, UrlElicitationRequired
from isthmus.wire import ElicitationCompleteParams, ElicitParams

__all__ = ["Pages", "required"]

ROOM = 1000
"""Pages that are remembered; the oldest makes room."""


class Pages:
    """Which pages the user was sent to, and which of them are dealt with.

    Args:
        told: told of the id of each page that the server says is dealt with.
    """

    def __init__(self, told: Callable[[str], None] | None = None) -> None:
        self._told = told
        self._open: OrderedDict[str, asyncio.Event] = OrderedDict()

    def visited(self, id: str) -> None:
        """The user is asked to open a page."""
        self._open.setdefault(id, asyncio.Event())
        if len(self._open) > ROOM:
            self._open.popitem(last=False)

    def done(self, params: ElicitationCompleteParams) -> None:
        """``notifications/elicitation/complete``: the user has dealt with a page."""
        page = self._open.pop(params.elicitation_id, None)
        # spec 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation:
        # clients MUST ignore notifications referencing unknown or already-completed IDs
        if page is None:
            return
        page.set()
        if self._told is not None:
            self._told(params.elicitation_id)

    async def dealt_with(self, ids: Iterable[str], patience: float) -> bool:
        """Wait until pages are dealt with; False where the server has not said so in time."""
        waiting = [page.wait() for id in ids if (page := self._open.get(id)) is not None]
        try:
            async with asyncio.timeout(patience):
                await asyncio.gather(*waiting)
        except TimeoutError:
            return False
        return True


def required(error: UrlElicitationRequired) -> list[ElicitParams]:
    """The pages that an error demands.

    Raises:
        Misbehaved: it demands none, or something else than pages.
    """
    data: Any = error.data
    try:
        found = msgspec.convert((data or {}).get("elicitations"), list[Page])
        pages = [page.question() for page in found]
    except (msgspec.ValidationError, AttributeError) as wrong:
        raise Misbehaved(f"the error {error.code} says no pages to open: {wrong}") from error
    # spec 2025-11-25 client/elicitation#url-elicitation-required-error: the error MUST include a
    # list of elicitations, which MUST be URL mode and have an elicitationId
    if not pages:
        raise Misbehaved(f"the error {error.code} says no pages to open: its list is empty")
    return pages


class Page(msgspec.Struct, rename="camel"):
    """One page, as an error lists it."""

    url: str
    elicitation_id: str
    message: str = ""
    mode: str | msgspec.UnsetType = UNSET

    def question(self) -> ElicitParams:
        """The same as a question to the user."""
        if self.mode not in {UNSET, "url"}:
            raise msgspec.ValidationError(f"an elicitation of mode {self.mode!r}")
        return ElicitParams(
            mode="url", url=self.url, elicitation_id=self.elicitation_id, message=self.message
        )
