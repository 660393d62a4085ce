"""Ids that nobody else has, and that sort by their time (ULID)."""

import os
import time
from collections.abc import Callable

ID_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
ID_PAIRS = tuple(first + second for first in ID_ALPHABET for second in ID_ALPHABET)

RANDOM_BYTES = 10  # of an id
MAX_SPARE_DRAWS = 128
SPARE_DRAWS: list[bytes] = []


def draw_random() -> bytes:
    """Ten random bytes, of which many are fetched at once: while the system is asked, other threads may go on.

    A thread that writes the audit log would, and the one that serves calls then waits for it.
    """
    try:
        return SPARE_DRAWS.pop()
    except IndexError:
        fetched = os.urandom(RANDOM_BYTES * MAX_SPARE_DRAWS)
        ends = range(RANDOM_BYTES, len(fetched), RANDOM_BYTES)
        SPARE_DRAWS.extend(fetched[at : at + RANDOM_BYTES] for at in ends)
        return fetched[:RANDOM_BYTES]


if hasattr(os, "register_at_fork"):  # a child must not draw what its parent draws
    os.register_at_fork(after_in_child=SPARE_DRAWS.clear)


def new_id(clock: Callable[[], float] = time.time) -> str:
    """A name that nobody else has, of 26 letters and digits; those of later seconds sort after earlier ones."""
    time_ms, random = int(clock() * 1000), int.from_bytes(draw_random(), "big")
    # in parts of 50 and 40 bits: arithmetic with longer numbers takes most of the time
    first, second, pairs = random >> 40, random & 0xFF_FFFF_FFFF, ID_PAIRS
    return "".join((
        pairs[time_ms >> 40], pairs[time_ms >> 30 & 1023], pairs[time_ms >> 20 & 1023],
        pairs[time_ms >> 10 & 1023], pairs[time_ms & 1023],
        pairs[first >> 30], pairs[first >> 20 & 1023], pairs[first >> 10 & 1023], pairs[first & 1023],
        pairs[second >> 30], pairs[second >> 20 & 1023], pairs[second >> 10 & 1023], pairs[second & 1023],
    ))  # fmt: skip
