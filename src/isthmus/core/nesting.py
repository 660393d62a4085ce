"""How deeply JSON is nested, found out before anything is made of it.

Decoders stop where the interpreter's stack ends, and code that walks over what was decoded stops
sooner. So what comes from the other side is measured first. That is done by C code throughout:
strings are taken out, then all but brackets, and the rest is added up.
"""

import re
from itertools import accumulate

__all__ = ["is_deeper"]

_STRING = rb'(?s)"(?:[^"\\]++|\\.)*+"'
_BRACKETS = b"[]{}"
_REST = bytes(set(range(256)) - set(_BRACKETS))
_STEPS = bytes.maketrans(_BRACKETS, b"\x01\xff\x01\xff")  # as signed bytes: one up, one down


def is_deeper(data: bytes, most: int) -> bool:
    """Whether JSON is nested more than ``most`` levels deep.

    Args:
        data: what should be JSON; of anything else the answer means nothing, and harms nobody.
        most: the levels of arrays and objects that are allowed.
    """
    if data.count(b"[") + data.count(b"{") <= most:
        return False
    steps = re.sub(_STRING, b"", data).translate(_STEPS, _REST)
    return max(accumulate(memoryview(steps).cast("b")), default=0) > most
