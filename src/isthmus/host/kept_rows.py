"""Rows of the state that another version may have written."""

import logging
from typing import TypeVar

import msgspec

__all__ = ["understood"]

T = TypeVar("T")


def understood(decoder: msgspec.json.Decoder[T], body: bytes | str, what: str) -> T | None:
    """What a row says; None, and a line in the log, where it says what is not known here.

    A yes, an answer or a task that cannot be read counts for nothing, and nothing else is lost.

    Args:
        decoder: reads it.
        body: as it is kept.
        what: what it is, for the log.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        logging.getLogger("isthmus").warning("%s of the state cannot be read: %s", what, error)
        return None
