"""What is kept or shown of arguments, results and addresses: everything but what is secret in it.

Three nets, one under the other: what a rule names by a JSON pointer, the secrets that this process
holds, and what looks like one or is called one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from isthmus.auth.tokens.secret import Secret, live_secrets
from isthmus.core.redaction.patterns import (
    REDACTED,
    announces_secret,
    names_secret,
    redact_patterns,
)

__all__ = ["REDACTED", "Redactor", "forms"]

SHORTEST = 6
"""Characters of a secret that is looked for; shorter ones stand in ordinary words."""

PLAIN = re.compile(r"[A-Za-z0-9\-._~]*")
"""What looks the same wherever it is written."""

LARGEST = 10**64
"""Greater numbers are no secrets; to write them takes long."""

DEEPEST = 100
"""Levels of lists and objects that are looked into; what is below is left out."""

USER_FLAGS = ("-u", "-U", "--user", "--proxy-user", "--userpwd", "--creds", "--login")
"""Flags of a command line before a user and their password."""

PAIR = re.compile(r"[^\d:%][^:%]*[:%](?!//)")

TOO_DEEP = "[too deep]"


class Redactor:
    """Takes secrets out of plain data.

    What it gives is new; what it got stays as it was. The time it takes is linear in the size of
    what it got.

    Example::

        >>> Redactor(pointers=["/card/number"]).redact({"card": {"number": "4111", "name": "Ada"}})
        {'card': {'number': '[redacted]', 'name': 'Ada'}}

    Args:
        pointers: JSON pointers (RFC 6901) to what is never kept or shown; ``*`` stands for every
            member or element.
        secrets: says the texts that are secret now; those of every live
            :class:`~isthmus.auth.tokens.secret.Secret` by default.
    """

    def __init__(
        self,
        pointers: Iterable[str] = (),
        secrets: Callable[[], Iterable[str]] = live_secrets,
    ) -> None:
        self._pointers = tuple(pointers)
        self._secrets = secrets

    def redact(self, value: Any, pointers: Sequence[str] = ()) -> Any:
        """Plain data without secrets.

        Args:
            value: objects, lists, texts, numbers.
            pointers: further JSON pointers for this value alone.
        """
        return self.without(self.strip(value, pointers), self.known())

    def text(self, text: str) -> str:
        """One text without secrets."""
        return _text(text, self.known(), chance=True)

    def strip(self, value: Any, pointers: Sequence[str] = ()) -> Any:
        """Plain data without what pointers name; nothing else is looked for."""
        for pointer in (*self._pointers, *pointers):
            value = _pointed(value, tuple(_segments(pointer)))
        return value

    def known(self, within: bytes | None = None) -> list[str]:
        """Every secret of this moment, in each spelling in which it may stand in a text.

        Args:
            within: only those that stand in these bytes of JSON, in any spelling.
        """
        found: list[str] = []
        for one in self._secrets():
            if len(one) >= SHORTEST:
                spelt = forms(one)
                if within is None or any(told(form) in within for form in spelt):
                    found += spelt
        return found

    def without(self, value: Any, known: Sequence[str]) -> Any:
        """As :meth:`redact`, with secrets that :meth:`known` gave at another moment, and no pointers."""
        return _walk(value, sorted(known, key=len, reverse=True), DEEPEST)


def forms(secret: str) -> tuple[str, ...]:
    """A secret as texts spell it: as it is, in URLs, in JSON, in Python."""
    if PLAIN.fullmatch(secret):
        return (secret,)
    from json import dumps
    from urllib.parse import quote, quote_plus

    raw = secret.encode("utf-8", "surrogatepass")
    spelt = (
        *(secret, quote(raw, ""), quote_plus(raw), quote(raw), repr(secret)[1:-1]),
        *(dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1]),
    )
    return tuple(dict.fromkeys(spelt))


def told(text: str) -> bytes:
    """A text's bytes, whatever is in it."""
    return text.encode("utf-8", "surrogatepass")


def _segments(pointer: str) -> Iterable[str]:
    """The steps of a JSON pointer; one without the slash at its front is taken as if it had one."""
    steps = pointer.removeprefix("/").split("/")
    return (step.replace("~1", "/").replace("~0", "~") for step in steps)


def _pointed(value: Any, steps: tuple[str, ...]) -> Any:
    if not steps:
        return REDACTED
    step, rest = steps[0], steps[1:]
    if isinstance(value, Mapping):
        return {k: _pointed(v, rest) if step in {k, "*"} else v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_pointed(v, rest) if step in {str(at), "*"} else v for at, v in enumerate(value)]
    return value


def _walk(value: Any, known: Sequence[str], depth: int) -> Any:
    if isinstance(value, str):
        return _text(value, known, chance=True)
    if value is None or isinstance(value, int | float):
        # Digits may be a secret; True is none.
        return REDACTED if known and _digits(value) in known else value
    if not depth:
        return TOO_DEEP
    if isinstance(value, Mapping):
        apart = _named_apart(value)
        return {
            _text(str(name), known, chance=True): _blank(one, depth - 1)
            if names_secret(str(name)) or (apart and name == "value")
            else _walk(one, known, depth - 1)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return _list(value, known, depth - 1)
    return _strange(value, known)


def _digits(value: object) -> str:
    """How a number is written; one that nobody would take for a secret is not."""
    return "" if isinstance(value, int) and abs(value) >= LARGEST else str(value)


def _list(values: Iterable[Any], known: Sequence[str], depth: int) -> list[Any]:
    """A list; of a command line, what follows ``--password`` goes, too, and of a header its value."""
    told: list[Any] = []
    values = list(values)
    follows = False
    if len(values) == 2 and isinstance(values[0], str) and names_secret(values[0]):
        return [_text(values[0], known, chance=True), _blank(values[1], depth)]
    for at, one in enumerate(values):
        if at and values[at - 1] in USER_FLAGS and isinstance(one, str) and PAIR.search(one):
            told.append(REDACTED)
            continue
        told.append(_blank(one, depth) if follows else _walk(one, known, depth))
        follows = isinstance(one, str) and announces_secret(one)
    return told


def _named_apart(value: Mapping[Any, Any]) -> bool:
    """Whether a name stands beside its value, as in lists of variables and headers."""
    if "value" not in value:
        return False
    names = (value.get(one) for one in ("name", "key", "header"))
    return any(isinstance(one, str) and names_secret(one) for one in names)


def _strange(value: Any, known: Sequence[str]) -> Any:
    """What is no plain data: nothing is known of it but its type, or its text where it has one."""
    if isinstance(value, Secret):
        return REDACTED
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    return _text(f"[{type(value).__name__}]", known, chance=False)


def _blank(value: Any, depth: int) -> Any:
    """What a name calls secret: nothing of it stays but its shape."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return value
    if depth > 0 and isinstance(value, Mapping):
        return {str(name): _blank(one, depth - 1) for name, one in value.items()}
    return REDACTED


def _text(text: str, known: Sequence[str], *, chance: bool) -> str:
    for secret in known:
        if secret in text:
            text = text.replace(secret, REDACTED)
    if len(text) < SHORTEST:
        return text
    return redact_patterns(text, chance=chance)
