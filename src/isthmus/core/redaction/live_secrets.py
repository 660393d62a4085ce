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


class LiveForms:
    """The forms of all live secrets as bytes, until one is registered or gone."""

    __slots__ = ("_forms", "_made_of", "mark")

    def __init__(self) -> None:
        self.mark: object = None  # another one since a secret was registered
        self._made_of: tuple[object, int] = (self, 0)
        self._forms: tuple[bytes, ...] = ()

    def list(self) -> tuple[bytes, ...]:
        """Every spelling of every live secret, in no order."""
        made_of = self.mark, len(LIVE_SECRETS)
        if made_of != self._made_of:
            long = (one for one in list_live_secrets() if len(one) >= MIN_SECRET_CHARS)
            self._forms = tuple({encode_text(form) for one in long for form in spell_secret(one)})
            self._made_of = made_of
        return self._forms


LIVE_FORMS = LiveForms()


def register_secret(secret: LiveSecret) -> None:
    """Have a secret known for as long as somebody holds it."""
    LIVE_SECRETS[id(secret)] = secret
    LIVE_FORMS.mark = object()


def holds_live_secret(data: bytes) -> bool:
    """Whether a live secret stands in bytes of JSON, in any spelling."""
    return any(form in data for form in LIVE_FORMS.list())


def encode_text(text: str) -> bytes:
    """A text's bytes, whatever is in it."""
    return text.encode("utf-8", "surrogatepass")


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
