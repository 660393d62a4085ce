"""Matching of arguments with grants: another file of the same folder, another page of the same site.

Everything that is neither a path nor an address has to be the same; a command, a recipient or an
amount is never "such a one".
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.facts import Facts
from isthmus.host.policy.places import canonicalize_path, parse_host
from isthmus.host.policy.predicates import Predicate

__all__ = ["GrantShape", "derive_shape", "digest_arguments"]


def digest_arguments(arguments: object) -> str | None:
    """SHA-256 of arguments in hex, whatever the order of their members; None where there is none."""
    try:
        return hashlib.sha256(msgspec.json.encode(arguments, order="sorted")).hexdigest()
    except (TypeError, ValueError, RecursionError):
        return None


class GrantShape:
    """The predicates of a grant.

    Args:
        predicates: each is about one argument, by a JSON pointer.
    """

    def __init__(self, predicates: Sequence[Predicate]) -> None:
        self._predicates = predicates
        self._names = {_unescape_pointer(one.text.split(" ", 1)[0]) for one in predicates}

    def covers(self, attempt: Attempt, facts: Facts, rest: str) -> bool:
        """Whether the arguments have this shape.

        Args:
            attempt: with the arguments.
            facts: the circumstances.
            rest: the digest of the arguments that have to be the same.
        """
        others = {k: v for k, v in attempt.arguments.items() if k not in self._names}
        return digest_arguments(others) == rest and all(
            one.fits(attempt, facts, forbids=False) for one in self._predicates
        )


def derive_shape(arguments: Mapping[str, Any], facts: Facts) -> tuple[tuple[str, ...], str | None]:
    """The predicates that arguments meet, and the digest of those that have to be the same."""
    texts, others = [], {}
    for name, value in arguments.items():
        predicate = _make_predicate(name, value, facts) if isinstance(value, str) else None
        if predicate is None:
            others[name] = value
        else:
            texts.append(predicate)
    return tuple(texts), digest_arguments(others)


def _make_predicate(name: str, value: str, facts: Facts) -> str | None:
    if not name or not name.isprintable() or " " in name:
        return None  # it would not be one word of a predicate
    host = parse_host(value)
    if host is not None:
        return f"{_escape_pointer(name)} host-in {_quote_text(host)}"
    path = canonicalize_path(value, facts.cwd)
    if path is None or not os.path.isabs(value.removeprefix("file:")):  # noqa: PTH117 - a text of others
        return None
    folder = os.path.dirname(path)  # noqa: PTH120 - as above
    # The root and the home folder are no folders that anybody means by "such a file".
    if os.path.dirname(folder) == folder or folder == os.path.realpath(os.path.expanduser("~")):  # noqa: PTH111, PTH120 - as above
        return None
    return f"{_escape_pointer(name)} under {_quote_text(folder)}"


def _escape_pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


def _unescape_pointer(pointer: str) -> str:
    return pointer[1:].replace("~1", "/").replace("~0", "~")


def _quote_text(text: str) -> str:
    return msgspec.json.encode(text).decode().replace("\x7f", "\\u007f")
