"""Answers to an elicitation: accepted with a value, declined, or cancelled.

Both sides use these: a server's function receives one from ``ctx.elicit``, a client's elicitation
handler returns one::

    match await ctx.elicit("Which seat?", Seat):
        case Accepted(seat): ...
        case Declined(): ...
        case Cancelled(): ...
"""

from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

T_co = TypeVar("T_co", covariant=True)


class Accepted(Struct, Generic[T_co], frozen=True):
    """The user agreed, and this is what they gave (None where only consent was asked for).

    Attributes:
        value: the user's answer, as the schema's type.
    """

    value: T_co


class Declined(Struct, frozen=True):
    """The user refused: an explicit no (``decline``)."""


class Cancelled(Struct, frozen=True):
    """The user dismissed the question without choosing (``cancel``)."""


Answer: TypeAlias = Accepted[T_co] | Declined | Cancelled
"""The three answers of elicitation (spec 2026-07-28 client/elicitation#response-actions)."""
