"""Parts of every full screen: a text that wraps and scrolls, and an app without secrets in errors."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from itertools import islice

from rich.cells import cell_len, chop_cells
from rich.segment import Segment, Segments
from rich.style import Style
from rich.traceback import Traceback
from textual.app import App
from textual.events import Event, Key, Paste, Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from isthmus.cards.lines import Role, StyledLine
from isthmus.terminal.answer_keys import KeyGuard

STYLES: dict[Role, Style] = {
    "title": Style(bold=True),
    "head": Style(bold=True),
    "text": Style(),
    "dim": Style(dim=True),
    "warn": Style(bold=True, color="yellow"),
    "added": Style(color="green"),
    "removed": Style(color="red"),
}


def wrap_lines(lines: Iterable[StyledLine], width: int) -> Iterator[StyledLine]:
    """Lines no wider than the screen; what goes on stands as far to the right as its beginning."""
    for line in lines:
        text = line.text.expandtabs(4)
        if len(text) <= width and (text.isascii() or cell_len(text) <= width):
            yield StyledLine(text, line.role)
            continue
        margin = text[: len(text) - len(text.lstrip(" |"))][: width // 4]
        found = _split_first(text, 0, width)
        yield StyledLine(found, line.role)
        at = len(found)
        while at < len(text):
            found = _split_first(text, at, max(1, width - len(margin)))
            yield StyledLine(margin + found, line.role)
            at += len(found)


def _split_first(text: str, at: int, width: int) -> str:
    """The beginning of a text that fits into one line, broken between words where that costs little."""
    found = next(iter(_chop_cells(text[at : at + width * 2], width)))
    if at + len(found) == len(text):
        return found
    cut = found.rfind(" ")
    return found[: cut + 1] if cut > width * 2 // 3 else found


def _chop_cells(text: str, width: int) -> Iterable[str]:
    """A text in pieces of at most so many cells."""
    if text.isascii():
        return (text[at : at + width] for at in range(0, len(text), width))
    return chop_cells(text, width)


MAX_WRAPPED_CHARS = 200_000  # at once

MIN_WIDTH = 10

PAGE_ROWS = 500  # of a larger text, at once


class Detail(ScrollView, can_focus=True):
    """Shows lines, and scrolls; it reads no markup, so that nobody's text can be any."""

    DEFAULT_CSS = """
    Detail { height: 1fr; overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[StyledLine, ...] = ()
        self._rows: list[StyledLine] = []
        self._wrapped = 0

    @property
    def text(self) -> str:
        """All that it shows, wrapped or not."""
        return "\n".join(line.text for line in self._lines)

    def show(self, lines: Iterable[StyledLine], *, top: bool = True) -> None:
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
        if sum(len(line.text) for line in self._lines) < MAX_WRAPPED_CHARS:
            self._put(list(wrap_lines(self._lines, width)), width)
            return
        # The beginning at once, and the whole beside the event loop, which is the host's as well.
        self._put(list(islice(wrap_lines(self._lines, width), PAGE_ROWS)), width)
        wrap: Callable[[], Awaitable[None]] = partial(self._wrap_all, self._lines, width)
        self.run_worker(wrap, group="wrapping", exclusive=True)

    async def _wrap_all(self, lines: tuple[StyledLine, ...], width: int) -> None:
        rows = await asyncio.to_thread(lambda: list(wrap_lines(lines, width)))
        if lines is self._lines:
            self._put(rows, width)

    def _put(self, rows: list[StyledLine], width: int) -> None:
        self._rows = rows
        self.virtual_size = Size(width, len(rows))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Render one row of the screen."""
        width = self._width
        if width != self._wrapped:  # it is drawn before it was told of its size
            self._wrap()
        row = y + self.scroll_offset.y
        if row >= len(self._rows):
            return Strip.blank(width, self.rich_style)
        line = self._rows[row]
        style = self.rich_style + STYLES[line.role]
        return Strip([Segment(line.text, style)]).adjust_cell_length(width, self.rich_style)


class FullScreenApp(App[None]):
    """The base of both full-screen apps: keys that count, and errors without arguments or secrets.

    Args:
        guard: is told of every key before anything is done with it.
    """

    def __init__(self, guard: KeyGuard) -> None:
        super().__init__()
        self._guard = guard

    async def on_event(self, event: Event) -> None:
        """Tell the guard of a key, whichever widget it is for; then let the widget have it."""
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self._guard.note_key()
            self.redirect(event)
        await super().on_event(event)

    def redirect(self, event: Key | Paste) -> None:
        """Move the focus to where a key belongs, before anything gets it.

        Whoever types fast has pressed the next keys before a widget has seen the first one.
        """

    async def show(self, end: asyncio.Event | None = None) -> None:
        """Show it until its user leaves, it ends by itself, or it is wanted to end.

        However that comes about, the terminal is left as it was.

        Args:
            end: closes the screen when it is set.
        """
        showing = asyncio.ensure_future(self.run_async())
        ending = asyncio.ensure_future((end or asyncio.Event()).wait())
        try:
            await asyncio.wait({showing, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            if not showing.done():
                self.exit()
            await showing

    def _fatal_error(self) -> None:
        """End with the traceback, as Textual does, and without the values of variables.

        They hold what people are asked about, which would stand on the terminal afterwards.
        """
        self.bell()
        told = self.console.render(Traceback(show_locals=False, width=None), self.console.options)
        self._exit_renderables.append(Segments(told))
        self._close_messages_no_wait()
