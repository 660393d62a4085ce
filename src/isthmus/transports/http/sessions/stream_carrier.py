"""Carriers of streams: a stream of a session outlives the responses that carry it, one after another."""

from typing import Protocol

from isthmus.transports.http.reply import EventWriter

# Events sent to one who resumes: more than any log of ours keeps of a stream
MAX_REPLAYED_EVENTS = 10_000


class StreamCarrier(Protocol):
    """The response that carries a stream.

    Attributes:
        writer: writes to its client.
    """

    writer: EventWriter

    def hang_up(self) -> None:
        """The response was ended, though the stream may go on."""
        ...

    def give_way(self) -> None:
        """Another response carries the stream from now on: end this one."""
        ...


class CarriedStream(Protocol):
    """A stream of a session, as far as the response that carries it is concerned.

    Attributes:
        standing: it is not the answer to a request.
    """

    standing: bool

    async def put(self, message: bytes | None, *, last: bool = False) -> bool:
        """Say something, or only that this was all; True where it is kept."""
        ...

    async def begin(self, sign: bytes = b"") -> None:
        """Begin to be there although there is nothing to say."""
        ...

    async def check(self, after: int) -> None:
        """See to it that everything after a place in the stream is there."""
        ...

    async def resume(self, carrier: StreamCarrier, after: int) -> None:
        """Go on with a response, with all that came after a place in the stream."""
        ...

    async def let_go(self, retry: int) -> None:
        """End the response, but not the stream: its client comes back for the rest."""
        ...

    def leave(self, carrier: StreamCarrier) -> None:
        """A response does not carry it any more."""
        ...
