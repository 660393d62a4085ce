"""What each target spoke last time, so that the next connection need not find out again.

Spec 2026-07-28 basic/versioning: the era is a property of the server, which clients SHOULD
remember for the lifetime of the process or origin, and find out anew when the memory turns out
wrong. It is remembered per endpoint: the same server may differ between its transports.
"""

from collections import OrderedDict
from collections.abc import Hashable

import msgspec

from isthmus.revisions import Revision

__all__ = ["Known", "forget", "recall", "remember"]

ROOM = 1024


class Known(msgspec.Struct, frozen=True):
    """What was found out about a target.

    Attributes:
        revision: what it spoke; None where nothing is known.
        sse: it did so over HTTP+SSE, the transport of 2024-11-05.
    """

    revision: Revision | None = None
    sse: bool = False


NOTHING = Known()

_SPOKEN: OrderedDict[Hashable, Known] = OrderedDict()


def recall(key: Hashable) -> Known:
    """What this target spoke last time; nothing for one never met, or without a name."""
    return NOTHING if key is None else _SPOKEN.get(key, NOTHING)


def remember(key: Hashable, revision: Revision, *, sse: bool = False) -> None:
    """Keep what a target speaks; the target met longest ago makes room."""
    if key is None:
        return
    _SPOKEN[key] = Known(revision, sse)
    _SPOKEN.move_to_end(key)
    if len(_SPOKEN) > ROOM:
        _SPOKEN.popitem(last=False)


def forget(key: Hashable) -> None:
    """Find out anew next time."""
    _SPOKEN.pop(key, None)
