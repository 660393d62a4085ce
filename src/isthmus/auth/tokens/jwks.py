"""JWK sets, an issuer's keys by URL: fetched once for everybody, kept, and asked for again when one is unknown.

Whoever sends a token with a key that nobody has heard of makes no request: the keys are asked for again
for such a token once in thirty seconds at most. In between nobody can tell whether it is a new key, so
that such a token is not refused: :class:`KeysUnavailable` says when to come again. Where the issuer is out of reach, the keys that are
known stay good for a day; without any, :class:`KeysUnavailable` says that nothing can be told, which
is not the same as a bad token.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from time import monotonic
from typing import TypeAlias

from isthmus.auth.cache import BoundedDict
from isthmus.auth.net.network import Network, NetworkFailed, NetworkRefused
from isthmus.auth.net.urls import display_url, is_same_issuer, metadata_urls
from isthmus.auth.tokens.jose import (
    DEFAULT_ALGORITHMS,
    Claims,
    KeySet,
    UnknownKey,
    read_token,
    verify_jwt,
)
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthError

KEYS_FRESH_S = 600.0  # then keys are asked for again
KEYS_STALE_S = 24 * 3600.0  # for which they are used where that fails
FETCH_COOLDOWN_S = 30.0  # between two requests, whatever tokens come
FIRST_COOLDOWN_S = 5.0  # the same while there are no keys at all, so that nobody can log in
MAX_RETIRED_KEYS = 200
JwksSource: TypeAlias = str | Callable[[], Awaitable[str]]


class KeysUnavailable(AuthError):
    """The issuer's keys are not to be had: no token of it can be judged, which is not its fault.

    Attributes:
        retry_after: seconds until it is worth another try.
    """

    def __init__(self, message: str, retry_after: float = FETCH_COOLDOWN_S) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Jwks:
    """The keys at a URL.

    Example::

        keys = Jwks("https://login.example.com/jwks", network)
        claims = await keys.verify(token, algorithms=("RS256",))

    Args:
        url: where they are, or a function that finds out.
        network: makes the requests.
        fresh: seconds after which they are asked for again.
        stale: seconds for which they are used where that fails.
        cooldown: seconds between two requests.
        clock: seconds that only grow.

    Attributes:
        turn: grows with each set of keys that differs from the one before.
    """

    def __init__(
        self,
        url: JwksSource,
        network: Network,
        *,
        fresh: float = KEYS_FRESH_S,
        stale: float = KEYS_STALE_S,
        cooldown: float = FETCH_COOLDOWN_S,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._url = url
        self._network = network
        self._lives = (fresh, stale, cooldown)
        self._clock = clock
        self._keys: KeySet | None = None
        self._document: object = None
        self._fetched = self._tried = float("-inf")
        self._fault: AuthError | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._retired: BoundedDict[str, None] = BoundedDict(MAX_RETIRED_KEYS)
        self._answers = 0  # of the issuer, that had keys
        self.turn = 0

    @property
    def current(self) -> bool:
        """Whether the keys are here and need not be asked for."""
        return self._keys is not None and self._age < self._lives[0]

    @property
    def is_fetching(self) -> bool:
        """Whether the keys are being asked for."""
        return self._fetching is not None

    @property
    def _age(self) -> float:
        return self._clock() - self._fetched

    @property
    def _pause(self) -> float:
        return self._lives[2] if self._keys is not None else min(self._lives[2], FIRST_COOLDOWN_S)

    async def keys(self) -> KeySet:
        """The keys.

        Raises:
            KeysUnavailable: they are not to be had.
        """
        if not self.current:
            await self._renew()
        if self._keys is None or self._age >= self._lives[1]:
            raise self._unavailable()
        return self._keys

    async def verify(
        self,
        token: Secret | str,
        *,
        algorithms: Collection[str] = DEFAULT_ALGORITHMS,
        typ: str | Collection[str] | None = None,
    ) -> Claims:
        """The claims of a token, if one of the keys signed it; see :func:`isthmus.auth.tokens.jose.verify_jwt`.

        Raises:
            UnknownKey: its key is none of theirs, and they were asked for it.
            InvalidToken: it proves nothing.
            KeysUnavailable: the keys are not to be had, or not to be had again for a new one.
        """
        before = self._answers
        keys = await self.keys()
        try:
            return verify_jwt(token, keys, algorithms=algorithms, typ=typ)
        except UnknownKey:
            if read_token(token).header.get("kid") in self._retired:
                raise  # it was theirs, and is no more
            if self._answers == before:
                await self._refresh()
            # Who floods us with unknown keys must not have good tokens with a new one refused.
            if self._fault is not None or self._answers == before:
                raise self._unavailable() from None
            return verify_jwt(token, self._keys or keys, algorithms=algorithms, typ=typ)

    def _unavailable(self) -> KeysUnavailable:
        wait = max(1.0, self._tried + self._pause - self._clock())
        if self._fault is None:
            return KeysUnavailable("the issuer's keys may be newer than those that are known", wait)
        return KeysUnavailable(f"the issuer's keys cannot be fetched: {self._fault}", wait)

    async def _renew(self) -> None:
        """Ask for keys that grow old. Nobody waits for that while the old ones will do."""
        fetching = self._fetch_once()
        fresh, stale, _ = self._lives
        good_until = 2 * fresh if self._fault is None else stale
        if fetching is not None and (self._keys is None or self._age >= good_until):
            await asyncio.shield(fetching)

    async def _refresh(self) -> None:
        """Ask for the keys, unless that was done lately, and wait for them."""
        fetching = self._fetch_once()
        if fetching is not None:
            # Whoever gives up waiting does not take the request away from the others.
            await asyncio.shield(fetching)

    def _fetch_once(self) -> "asyncio.Task[None] | None":
        """The request that is under way for all who wait, a new one, or none so soon."""
        if self._fetching is None and self._clock() - self._tried >= self._pause:
            self._tried = self._clock()
            self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            url = self._url if isinstance(self._url, str) else await self._url()
            document = await self._network.json(url)
            keys = KeySet(document)
            if not keys:
                raise NetworkFailed(f"{display_url(url)} lists no key that can be used")
        except AuthError as error:
            self._fault = error.with_traceback(None)
        else:
            if document != self._document:
                self._retire(keys)
                self._document, self._keys = document, keys
                self.turn += 1
            self._fetched, self._fault = self._clock(), None
            self._answers += 1
        finally:
            self._fetching = None

    def _retire(self, newer: KeySet) -> None:
        """Remember the names of keys that the issuer lists no more."""
        before = frozenset[str]() if self._keys is None else self._keys.names
        for name in before - newer.names:
            self._retired[name] = None
        for name in newer.names:
            self._retired.pop(name, None)


async def discover_jwks_uri(issuer: str, network: Network) -> str:
    """The ``jwks_uri`` in an issuer's metadata (RFC 8414, OpenID Connect Discovery).

    Args:
        issuer: as it spells itself.
        network: makes the requests.

    Raises:
        KeysUnavailable: no metadata, none that is this issuer's, or it names no keys.
    """
    faults: list[str] = []
    for url in metadata_urls(issuer):
        try:
            document = await network.json(url)
        except NetworkRefused:
            raise
        except NetworkFailed as error:
            faults.append(str(error))
            continue
        found = document if isinstance(document, dict) else {}
        # spec 2026-07-28 basic/authorization#authorization-server-discovery: RFC 8414 3.3
        named, uri = found.get("issuer"), found.get("jwks_uri")
        if not isinstance(named, str) or not is_same_issuer(named, issuer):
            faults.append(f"{display_url(url)} is of another issuer: {display_url(str(named))}")
        elif not isinstance(uri, str):
            faults.append(f"{display_url(url)} has no jwks_uri")
        else:
            return uri
    raise KeysUnavailable("; ".join(faults))
