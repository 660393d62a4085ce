"""An app that tells how it failed without what it knew: no arguments, no secrets."""

from rich.segment import Segments
from rich.traceback import Traceback
from textual.app import App

__all__ = ["Discreet"]


class Discreet(App[None]):
    """What the full screens have in common."""

    def _fatal_error(self) -> None:
        """End with the traceback, as Textual does, and without the values of variables.

        They hold what people are asked about, which would stand on the terminal afterwards.
        """
        self.bell()
        told = self.console.render(Traceback(show_locals=False, width=None), self.console.options)
        self._exit_renderables.append(Segments(told))
        self._close_messages_no_wait()
