"""Live secrets: the registry of every secret that this process holds, and how texts spell one."""

import re
from collections.abc import Iterable, Iterator
from typing import Protocol
from weakref import WeakValueDictionary

REDACTED = "[redacted]"  # stands where a secret was
MIN_SECRET_CHARS = 6  # shorter ones stand in ordinary words
UNESCAPED = re.compile(r"[A-Za-z0-9\-._~]*")  # looks the same wherever it is written


class LiveSecret(Protocol):
    """A text that must not be seen; :class:`~isthmus.auth.tokens.secret.Secret` is one."""

    def reveal(self) -> str:
        """The text itself."""
        ...


# By identity: equal secrets are as many as there are, and the last of them counts.
LIVE_SECRETS: "WeakValueDictionary[int, LiveSecret]" = WeakValueDictionary()


def register_secret(secret: LiveSecret) -> None:
    """Have a secret known for as long as somebody holds it."""
    LIVE_SECRETS[id(secret)] = secret


def is_live_secret(value: object) -> bool:
    """Whether something is one of the secrets that were registered."""
    return LIVE_SECRETS.get(id(value)) is value


def list_live_secrets() -> Iterator[str]:
    """The texts of all secrets that somebody still holds, each once, in no order."""
    # The references are copied at once: other threads make secrets meanwhile.
    yield from {
        secret.reveal() for ref in LIVE_SECRETS.valuerefs() if (secret := ref()) is not None
    }


def spell_secret(secret: str) -> tuple[str, ...]:
    """A secret as texts spell it: as it is, in URLs, in JSON, in Python."""
    if UNESCAPED.fullmatch(secret):
        return (secret,)
    from json import dumps
    from urllib.parse import quote, quote_plus

    raw = secret.encode("utf-8", "surrogatepass")
    spelt = (
        *(secret, quote(raw, ""), quote_plus(raw), quote(raw), repr(secret)[1:-1]),
        *(dumps(secret)[1:-1], dumps(secret, ensure_ascii=False)[1:-1]),
    )
    return tuple(dict.fromkeys(spelt))


def replace_secrets(text: str, spelt: Iterable[str]) -> str:
    """A text without secrets that are given in every spelling, the longest first."""
    for secret in spelt:
        if secret in text:
            text = text.replace(secret, REDACTED)
    return text
