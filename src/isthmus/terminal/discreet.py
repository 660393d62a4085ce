"""An app that tells how it failed without what it knew: no arguments, no secrets."""

import asyncio

from rich.segment import Segments
from rich.traceback import Traceback
from textual.app import App
from textual.events import Event, Key, Paste

from isthmus.terminal.guard import Guard

__all__ = ["Discreet"]


class Discreet(App[None]):
    """What the full screens have in common.

    Args:
        guard: is told of every key before anything is done with it.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard

    async def on_event(self, event: Event) -> None:
        """Tell the guard of a key, whichever widget it is for; then let the widget have it."""
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            self._guard.pressed()
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
