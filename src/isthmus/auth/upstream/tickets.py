"""What a link to connect an account is good for."""

import msgspec

__all__ = ["TICKET", "TICKET_LIFE", "Ticket"]

TICKET = "upstream-connect"
"""The kind of it in the store."""

TICKET_LIFE = 600.0
"""Seconds in which the page must be visited."""


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """Lets one user connect one account; it is worth nothing to anybody else.

    Attributes:
        user_id: whose account it is to be.
        provider: where.
        client_id: the client for which it was needed.
        client_name: what that calls itself.
    """

    user_id: str
    provider: str
    client_id: str
    client_name: str
