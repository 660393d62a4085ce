"""A text of any length, wrapped to the width there is: nothing of it is cut, all of it can be seen."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from rich.cells import cell_len, chop_cells
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from isthmus.terminal.lines import Line, Role

__all__ = ["Detail", "wrapped"]

STYLES: dict[Role, Style] = {
    "title": Style(bold=True),
    "head": Style(bold=True),
    "text": Style(),
    "dim": Style(dim=True),
    "warn": Style(bold=True, color="yellow"),
    "added": Style(color="green"),
    "removed": Style(color="red"),
}


def wrapped(lines: Iterable[Line], width: int) -> Iterator[Line]:
    """Lines no wider than the screen; what goes on stands as far to the right as its beginning."""
    for line in lines:
        text = line.text.expandtabs(4)
        if len(text) <= width and (text.isascii() or cell_len(text) <= width):
            yield Line(text, line.role)
            continue
        margin = text[: len(text) - len(text.lstrip(" |"))][: width // 4]
        found = _first(text, 0, width)
        yield Line(found, line.role)
        at = len(found)
        while at < len(text):
            found = _first(text, at, max(1, width - len(margin)))
            yield Line(margin + found, line.role)
            at += len(found)


def _first(text: str, at: int, width: int) -> str:
    """What of a text fits into one line; broken between words where that costs little."""
    found = next(iter(_chopped(text[at : at + width * 2], width)))
    if at + len(found) == len(text):
        return found
    cut = found.rfind(" ")
    return found[: cut + 1] if cut > width * 2 // 3 else found


def _chopped(text: str, width: int) -> Iterable[str]:
    """A text in pieces of at most so many cells."""
    if text.isascii():
        return (text[at : at + width] for at in range(0, len(text), width))
    return chop_cells(text, width)


LARGE = 200_000
"""Characters that are wrapped at once."""

MIN_WIDTH = 10

AT_ONCE = 500
"""Rows of a larger text that are there at once."""


class Detail(ScrollView, can_focus=True):
    """Shows lines, and scrolls; it reads no markup, so that nobody's text can be any."""

    DEFAULT_CSS = """
    Detail { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self._rows: list[Line] = []
        self._wrapped = 0

    @property
    def text(self) -> str:
        """All that it shows, wrapped or not."""
        return "\n".join(line.text for line in self._lines)

    def show(self, lines: Iterable[Line], *, top: bool = True) -> None:
        """Show these instead.

        Args:
            lines: what.
            top: begin at the top; else stay where one has scrolled to.
        """
        self._lines = tuple(lines)
        self._wrap()
        if top:
            self.scroll_home(animate=False)

    def on_resize(self, _event: Resize) -> None:
        """Wrap it anew."""
        self._wrap()

    @property
    def _width(self) -> int:
        """Cells of a row: those of the scroll bar are kept free, whether or not it is there yet.

        How many rows there are decides whether there is a bar, so that the width must not depend on it.
        """
        return max(MIN_WIDTH, self.content_region.width - self.styles.scrollbar_size_vertical)

    def _wrap(self) -> None:
        width = self._wrapped = self._width
        if sum(len(line.text) for line in self._lines) < LARGE:
            self._put(list(wrapped(self._lines, width)), width)
            return
        # The beginning at once, and the whole beside the event loop, which is the host's as well.
        self._put(list(islice(wrapped(self._lines, width), AT_ONCE)), width)
        wrap: Callable[[], Awaitable[None]] = partial(self._wrap_all, self._lines, width)
        self.run_worker(wrap, group="wrapping", exclusive=True)

    async def _wrap_all(self, lines: tuple[Line, ...], width: int) -> None:
        rows = await asyncio.to_thread(lambda: list(wrapped(lines, width)))
        if lines is self._lines:
            self._put(rows, width)

    def _put(self, rows: list[Line], width: int) -> None:
        self._rows = rows
        self.virtual_size = Size(width, len(rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row of the screen."""
        width = self._width
        if width != self._wrapped:  # it is drawn before it was told of its size
            self._wrap()
        row = y + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        line = self._rows[row]
        style = self.rich_style + STYLES[line.role]
        return Strip([Segment(line.text, style)]).adjust_cell_length(width, self.rich_style)
