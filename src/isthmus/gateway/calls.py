"""Calls of a gateway's clients: one call of a client, on its way through the host's pipeline."""

from typing import Any

from isthmus.bridge.forwarded import ForwardedCall
from isthmus.wire import ClientCapabilities, ProgressParams


class GatewayCall(ForwardedCall):
    """One call of a client; what is asked in its course goes back to that client."""

    __slots__ = ("_said",)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._said = 0.0

    @property
    def capabilities(self) -> ClientCapabilities:
        """The capabilities that the client declared for this very call."""
        return self.inbound.caller.capabilities

    @property
    def takes_progress(self) -> bool:
        """Whether the client gave a progress token."""
        return self.inbound.progress_token is not None

    def say(self, message: str) -> None:
        """Tell the client of progress in words, where it gave a progress token."""
        # spec 2026-07-28 basic/patterns/progress: the value MUST increase with each notification
        self._said += 0.001
        self.report(ProgressParams(progress_token="", progress=self._said, message=message))

    def pass_progress(self, params: ProgressParams) -> None:
        """Pass on what the server behind reports."""
        if params.progress > self._said:
            self._said = params.progress
            self.report(params)
