"""What a server may cost a client: every figure that bounds it, in one place."""

import msgspec

__all__ = ["Limits"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a client one server may use.

    What goes beyond is refused with an error that names the limit, or dropped with a warning in
    the log where nobody can be told. Rates may be exceeded in bursts of as many as a minute
    allows. None switches a limit off.

    Example::

        Client(url, sample=think, limits=Limits(samplings_per_minute=10, samplings_at_once=2))

    Attributes:
        samplings_per_minute: ``sampling/createMessage`` the server may ask for.
        samplings_at_once: of which so many may be under way.
        elicitations_per_minute: ``elicitation/create`` the server may ask for.
        elicitations_at_once: of which so many may be waiting for the user.
        requests_per_minute: requests of any kind the server may send, pings included.
        requests_at_once: of which so many may be under way.
        conversation: messages in one sampling request.
        logs_per_minute: log messages told; the rest is dropped, and counted in the log.
        waiting: notifications of one kind that wait for an async callback; the oldest make room.
        result_bytes: bytes of one result.
        pages: pages of one list.
        items: items of one list.
        page_wait: seconds that a call waits for the user to be done with a page elsewhere, after
            the server asked for one by an error (2025-11-25).
    """

    # spec 2025-11-25 client/sampling#security-considerations, client/elicitation#security-
    # considerations: clients SHOULD implement rate limiting
    samplings_per_minute: int | None = 120
    samplings_at_once: int | None = 16
    elicitations_per_minute: int | None = 60
    elicitations_at_once: int | None = 16
    requests_per_minute: int | None = 6000
    requests_at_once: int | None = 256
    conversation: int | None = 2000
    logs_per_minute: int | None = 6000
    waiting: int = 1000
    result_bytes: int | None = 256 * 1024 * 1024
    pages: int = 1000
    items: int = 1_000_000
    page_wait: float = 300.0
