"""Plain data without secrets: arguments, results and addresses as they are kept and shown.

Three nets, one under the other: what a rule names by a JSON pointer, the secrets that this process
holds, and what looks like one or is called one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from isthmus.core.redaction.forms import USER_FLAGS, announces_secret, names_secret
from isthmus.core.redaction.live_secrets import (
    MIN_SECRET_CHARS,
    REDACTED,
    encode_text,
    holds_live_secret,
    is_live_secret,
    list_live_secrets,
    replace_secrets,
    spell_secret,
)
from isthmus.core.redaction.texts import redact_text

MAX_SECRET_NUMBER = 10**64  # greater ones are no secrets; to write them takes long
MAX_VALUE_DEPTH = 100  # levels of lists and objects; what is below is left out
USER_AND_PASSWORD = re.compile(r"[^\d:%][^:%]*[:%](?!//)")

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
        secrets: Callable[[], Iterable[str]] = list_live_secrets,
    ) -> None:
        self._pointers = tuple(pointers)
        self._secrets = secrets

    @property
    def has_pointers(self) -> bool:
        """Whether it hides places, and not only secrets."""
        return bool(self._pointers)

    def redact(self, value: Any, pointers: Sequence[str] = ()) -> Any:
        """Plain data without secrets.

        Args:
            value: objects, lists, texts, numbers.
            pointers: further JSON pointers for this value alone.
        """
        return self.without(self.strip(value, pointers), self.known())

    def text(self, text: str) -> str:
        """A text without secrets."""
        return _redact_text(text, self.known(), chance=True)

    def strip(self, value: Any, pointers: Sequence[str] = ()) -> Any:
        """Plain data without what pointers name; nothing else is looked for."""
        for pointer in (*self._pointers, *pointers):
            value = _hide_pointed(value, tuple(_split_pointer(pointer)))
        return value

    def known(self, within: bytes | None = None) -> list[str]:
        """Every secret of this moment, in each spelling that a text may have of it, the longest first.

        Args:
            within: only those that stand in these bytes of JSON, in any spelling.
        """
        live = self._secrets is list_live_secrets
        if live and within is not None and not holds_live_secret(within):
            return []  # nearly always
        found: list[str] = []
        for one in self._secrets():
            if len(one) >= MIN_SECRET_CHARS:
                spelt = spell_secret(one)
                if within is None or any(encode_text(form) in within for form in spelt):
                    found += spelt
        return sorted(found, key=len, reverse=True)

    def without(self, value: Any, known: Sequence[str]) -> Any:
        """As :meth:`redact`, with secrets that :meth:`known` gave at another moment, and no pointers."""
        return _redact_value(value, known, MAX_VALUE_DEPTH)


def _split_pointer(pointer: str) -> Iterable[str]:
    """The steps of a JSON pointer; one without the slash at its front is taken as if it had one."""
    steps = pointer.removeprefix("/").split("/")
    return (step.replace("~1", "/").replace("~0", "~") for step in steps)


def _hide_pointed(value: Any, steps: tuple[str, ...]) -> Any:
    if not steps:
        return REDACTED
    step, rest = steps[0], steps[1:]
    if isinstance(value, Mapping):
        return {k: _hide_pointed(v, rest) if step in {k, "*"} else v for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [
            _hide_pointed(v, rest) if step in {str(at), "*"} else v for at, v in enumerate(value)
        ]
    return value


def _redact_value(value: Any, known: Sequence[str], depth: int) -> Any:
    if isinstance(value, str):
        return _redact_text(value, known, chance=True)
    if value is None or isinstance(value, int | float):
        # Digits may be a secret; True is none.
        return REDACTED if known and _write_number(value) in known else value
    if not depth:
        return TOO_DEEP
    if isinstance(value, Mapping):
        apart = _is_named_beside(value)
        return {
            _redact_text(str(name), known, chance=True): _blank_value(one, depth - 1)
            if names_secret(str(name)) or (apart and name == "value")
            else _redact_value(one, known, depth - 1)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return _redact_list(value, known, depth - 1)
    return _describe_strange(value, known)


def _write_number(value: object) -> str:
    """The digits of a number; none for one that nobody would take for a secret."""
    return "" if isinstance(value, int) and abs(value) >= MAX_SECRET_NUMBER else str(value)


def _redact_list(values: Iterable[Any], known: Sequence[str], depth: int) -> list[Any]:
    """A list; of a command line, what follows ``--password`` goes, too, and of a header its value."""
    told: list[Any] = []
    values = list(values)
    follows = False
    if len(values) == 2 and isinstance(values[0], str) and names_secret(values[0]):
        return [_redact_text(values[0], known, chance=True), _blank_value(values[1], depth)]
    for at, one in enumerate(values):
        if (
            at
            and values[at - 1] in USER_FLAGS
            and isinstance(one, str)
            and USER_AND_PASSWORD.search(one)
        ):
            told.append(REDACTED)
            continue
        told.append(_blank_value(one, depth) if follows else _redact_value(one, known, depth))
        follows = isinstance(one, str) and announces_secret(one)
    return told


def _is_named_beside(value: Mapping[Any, Any]) -> bool:
    """Whether a name stands beside its value, as in lists of variables and headers."""
    if "value" not in value:
        return False
    names = (value.get(one) for one in ("name", "key", "header"))
    return any(isinstance(one, str) and names_secret(one) for one in names)


def _describe_strange(value: Any, known: Sequence[str]) -> Any:
    """A value that is no plain data, as its type or its size."""
    if is_live_secret(value):
        return REDACTED
    if isinstance(value, bytes | bytearray | memoryview):
        return f"[{len(value)} bytes]"
    return _redact_text(f"[{type(value).__name__}]", known, chance=False)


def _blank_value(value: Any, depth: int) -> Any:
    """A value whose name calls it secret: nothing of it stays but its shape."""
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return value
    if depth > 0 and isinstance(value, Mapping):
        return {str(name): _blank_value(one, depth - 1) for name, one in value.items()}
    return REDACTED


def _redact_text(text: str, known: Sequence[str], *, chance: bool) -> str:
    text = replace_secrets(text, known)
    if len(text) < MIN_SECRET_CHARS:
        return text
    return redact_text(text, chance=chance)
