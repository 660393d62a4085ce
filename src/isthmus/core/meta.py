"""What ``_meta`` holds, and which keys there may be in it."""

import re
from typing import Any

import msgspec
from msgspec import Raw

from isthmus.wire.base import Meta

__all__ = ["bad_key", "meta_in"]


class _Params(msgspec.Struct, rename={"meta": "_meta"}):
    meta: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_Params).decode


def meta_in(params: Raw | None) -> Meta:
    """The whole ``_meta`` of a request, keys nobody knows included; empty where there is none."""
    try:
        return {} if params is None else _decode(params).meta
    except msgspec.DecodeError:
        return {}


_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"


def bad_key(key: object) -> str | None:
    """What is wrong with a key that a program puts into ``_meta``; None where nothing is."""
    # spec 2026-07-28 basic#_meta: an optional prefix of labels and a slash, and a name
    if not isinstance(key, str) or not re.fullmatch(_KEY, key):
        return f"{key!r} is no key of _meta: com.example/name has a prefix, a slash and a name"
    if key == "progressToken":
        # spec 2026-07-28 basic/patterns/progress: tokens MUST be unique across active requests
        return "'progressToken' is chosen by the client: give on_progress= to be told of progress"
    return None
