"""Form tokens (CSRF): each is bound to a session and to what its form is about, and is taken once."""

import hmac
import json
import time
from collections.abc import Callable
from hashlib import sha256

from isthmus.auth.tokens.secret import Secret

TOKEN_LIFE_S = 1800.0  # of a form
MAX_USED_TOKENS = 10_000


class FormTokens:
    """Tokens of forms: each is bound to a session and an approval, and is taken once.

    Args:
        clock: says the seconds since the epoch.
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._key = Secret.random()
        self._clock = clock
        self._used: dict[str, None] = {}

    def make(self, session: str, about: str) -> str:
        """A token for a form."""
        head = f"{int(self._clock())}.{Secret.random(12).reveal()}"
        return f"{head}.{self._sign(head, session, about)}"

    def take(self, token: str, session: str, about: str) -> bool:
        """Whether a form came from our page, to this person, about this, for the first time."""
        head, _, signed = token.rpartition(".")
        if not token.isascii() or not hmac.compare_digest(signed, self._sign(head, session, about)):
            return False
        if self._clock() - int(head.partition(".")[0]) > TOKEN_LIFE_S or head in self._used:
            return False
        self._used[head] = None
        if len(self._used) > MAX_USED_TOKENS:
            del self._used[next(iter(self._used))]
        return True

    def _sign(self, *parts: str) -> str:
        text = json.dumps(parts).encode()
        return hmac.new(self._key.reveal().encode(), text, sha256).hexdigest()
