"""What every way of getting tokens has in common: one session for each MCP server, shared."""

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import ClassVar

import msgspec

from isthmus.auth.client.discovery import STRICT, Compat
from isthmus.auth.client.proofs import Proofs
from isthmus.auth.client.requests import AuthorizedRequests
from isthmus.auth.client.session import AuthSession, Grant
from isthmus.auth.client.step_up import TRIES, StepUps
from isthmus.auth.urls import is_secure, origin
from isthmus.errors import AuthRequired, AuthUnsafe, UsageError
from isthmus.transports.http.address import shown
from isthmus.transports.http.requests import Requests

__all__ = ["Granting", "wished"]


class Shared(msgspec.Struct):
    """What all connections to one MCP server share, and how many there are."""

    session: AuthSession
    proofs: Proofs
    step_ups: StepUps
    loop: asyncio.AbstractEventLoop
    users: int = 0


class Granting:
    """An :class:`~isthmus.transports.http.bearer.Authorization` that gets tokens by a grant.

    It may serve several clients, also to several MCP servers: each server has tokens of its own.
    Subclasses say what grant it is.

    Attributes:
        tries: how often one operation may ask for more scopes.
        compat: what is put up with for servers that do not keep to the specification.
    """

    tries: ClassVar[int] = TRIES
    compat: Compat = STRICT

    def __init__(self) -> None:
        self.now = time.time
        self._shared: dict[str, Shared] = {}

    def grant(self, url: str, proofs: Proofs) -> Grant:
        """The way to tokens for one MCP server.

        Args:
            url: the MCP endpoint.
            proofs: binds tokens to a key, where they are to be bound.
        """
        raise NotImplementedError

    def over(self, url: str, requests: Requests) -> AuthorizedRequests:
        """Requests to the server at a URL that carry credentials.

        Args:
            url: the MCP endpoint.
            requests: what sends them; closed with what is returned.

        Raises:
            AuthRequired: no token can be for such a URL.
            AuthUnsafe: tokens could be read on their way there.
        """
        if url.startswith("http:") and not is_secure(url):
            self.in_clear(url)
        loop = asyncio.get_running_loop()
        shared = self._shared.get(url)
        if shared is None or shared.loop is not loop:
            proofs = Proofs()
            try:
                grant = self.grant(url, proofs)
            except ValueError as error:
                raise AuthRequired(
                    f"this server cannot be logged in to by the URL it was given: {error}"
                ) from None
            session = AuthSession(grant, now=self.now)
            shared = Shared(session, proofs, StepUps(session, url, tries=self.tries), loop)
            self._shared[url] = shared
        shared.users += 1
        return AuthorizedRequests(
            url,
            requests,
            shared.session,
            proofs=shared.proofs,
            step_ups=shared.step_ups,
            closed=partial(self._left, url, shared),
        )

    def context(self, url: str) -> object:
        """What stands for the tokens that requests to a URL carry just now; see ``Authorization``."""
        shared = self._shared.get(url)
        tokens = None if shared is None else shared.session.tokens
        return None if tokens is None else tokens.access

    def in_clear(self, url: str) -> None:
        """Say what there is to say to tokens that anybody on the way could read.

        Raises:
            AuthUnsafe: they are not sent, unless ``Compat(plain_http=…)`` names the origin.
        """
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if origin(url) not in self.compat.plain_http:
            raise AuthUnsafe(
                f"{shown(url)} is reached by plain http, where anybody on the way can read its "
                "tokens: give its https URL; on a network of your own, "
                f"compat=Compat(plain_http={{{origin(url)!r}}}) lets them go there"
            )

    async def _left(self, url: str, shared: Shared) -> None:
        """The last one who leaves takes the session along; what is kept is in the store."""
        shared.users -= 1
        if shared.users:
            return
        if self._shared.get(url) is shared:
            del self._shared[url]
        await shared.session.close()


def wished(scopes: Iterable[str] | None) -> frozenset[str] | None:
    """The scopes that an application asks for; None leaves it to the server.

    Raises:
        UsageError: they are one text, whose letters are no scopes.
    """
    if isinstance(scopes, str):
        raise UsageError(f"scopes= is a set, as {{'files:read'}}, not {scopes!r}")
    return None if scopes is None else frozenset(scopes)
