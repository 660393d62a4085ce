"""What each target spoke last time, so that the next connection need not find out again.

Spec 2026-07-28 basic/versioning: the era is a property of the server, which clients SHOULD
remember for the lifetime of the process or origin, and find out anew when the memory turns out
wrong. It is remembered per endpoint: the same server may differ between its transports.
"""

from collections import OrderedDict
from collections.abc import Hashable

from isthmus.revisions import Revision

__all__ = ["forget", "recall", "remember"]

ROOM = 1024

_SPOKEN: OrderedDict[Hashable, Revision] = OrderedDict()


def recall(key: Hashable) -> Revision | None:
    """What this target spoke last time; None for a target never met, or without a name."""
    return None if key is None else _SPOKEN.get(key)


def remember(key: Hashable, revision: Revision) -> None:
    """Keep what a target speaks; the target met longest ago makes room."""
    if key is None:
        return
    _SPOKEN[key] = revision
    _SPOKEN.move_to_end(key)
    if len(_SPOKEN) > ROOM:
        _SPOKEN.popitem(last=False)


def forget(key: Hashable) -> None:
    """Find out anew next time."""
    _SPOKEN.pop(key, None)
