"""HTTP requests that carry tokens, and get new ones where the server answers 401 or 403.

:class:`AuthorizedRequests` stands around the requests of a connection, whichever transport makes
them: the posts and streams of HTTP, the handshake of a WebSocket. Tokens go to the origin of the
MCP server and nowhere else, in a header and nowhere else. :class:`SharedSessions` has one session
for each MCP server, which all connections to it share.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

import msgspec

from isthmus.auth.client.discovery import STRICT_COMPAT, Compat
from isthmus.auth.client.session import MAX_STEP_UPS, AuthSession, StepUps, TokenDemand, TokenGrant
from isthmus.auth.client.store.records import Tokens
from isthmus.auth.client.token_request import DpopProofs
from isthmus.auth.net.challenge import Challenge, parse_challenges
from isthmus.auth.net.urls import is_secure, origin_of
from isthmus.core.principal import filter_scopes
from isthmus.core.redaction.live_secrets import MIN_SECRET_CHARS, REDACTED
from isthmus.errors import (
    AuthError,
    AuthRequired,
    AuthUnsafe,
    ConnectionLost,
    Misbehaved,
    UsageError,
)
from isthmus.runtime.clocks import CONNECTION_CLOCKS
from isthmus.transports.http.client.address import redact_url
from isthmus.transports.http.client.requests import Requests, Response, same_origin

MAX_SENDS = 8  # times that one request is sent, whatever the server answers

# Methods by which a client looks whether a server is there.
PING_METHODS = frozenset({"ping", "server/discover"})

# The status from which on a response is a refusal, whose body ends in errors and logs.
FIRST_ERROR_STATUS = 400

# Bytes of a refusal that are read, so that its connection can be used again.
MAX_REFUSAL_BYTES = 64 * 1024


class AuthorizedRequests:
    """:class:`~isthmus.transports.http.client.requests.Requests` with tokens.

    Args:
        url: the MCP server; nothing is added to requests to another origin.
        requests: sends them.
        session: the tokens.
        proofs: proves the possession of the key that tokens may be bound to.
        step_ups: gets more scopes; shared by all who use the session.
        closed: told when nobody uses this any more.
    """

    def __init__(
        self,
        url: str,
        requests: Requests,
        session: AuthSession,
        *,
        proofs: DpopProofs | None = None,
        step_ups: StepUps | None = None,
        closed: Any = None,
    ) -> None:
        self._url = url
        self._requests = requests
        self._session = session
        self._proofs = DpopProofs() if proofs is None else proofs
        self._step_ups = StepUps(session, url) if step_ups is None else step_ups
        self._closed = closed
        self._clocks = CONNECTION_CLOCKS.get()

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        """Send a request with the tokens there are; get others and send it again if need be.

        Raises:
            ConnectionLost: no connection, or it ended before the response.
            AuthError: the server wants authorization that is not to be had.
        """
        # spec 2026-07-28 basic/authorization#token-handling: no server gets tokens of another
        if url != self._url and not same_origin(self._url, url):
            return await self._requests.send(method, url, headers, body)
        request = PendingRequest(method, url, headers, body)
        try:
            return await self._send_authorized(request)
        except AuthError as error:
            if request.patient:
                raise
            # Who goes on by itself looks after connections, and nobody could answer for this.
            raise ConnectionLost(str(error)) from error

    async def _send_authorized(self, request: "PendingRequest") -> Response:
        session = self._session
        tokens = session.tokens if session.fresh else await session.ready(self._clocks)
        response = await self._send_once(request, tokens)
        if response.status in {401, 403}:
            return await self._retry(request, tokens, response)
        if session.untried and tokens is not None:
            session.worked(tokens)
        return response

    async def close(self) -> None:
        """Close every connection; safe to call twice."""
        closed, self._closed = self._closed, None
        try:
            if closed is not None:
                await closed()
        finally:
            await self._requests.close()

    async def _send_once(self, request: "PendingRequest", tokens: Tokens | None) -> Response:
        headers = request.headers
        if tokens is not None:
            # spec 2026-07-28 basic/authorization#token-requirements: in every request, in the
            # Authorization header, never in the query
            shown = self._proofs.presented(tokens, request.method, request.url)
            headers = {**headers, **shown}
        response = await self._requests.send(request.method, request.url, headers, request.body)
        if tokens is not None and tokens.kind == "DPoP":
            self._proofs.learn(request.url, response.headers)
        if tokens is not None and response.status >= FIRST_ERROR_STATUS:
            return RedactedResponse(response, tokens.access.reveal())
        return response

    async def _retry(
        self, request: "PendingRequest", tokens: Tokens | None, response: Response
    ) -> Response:
        """Do what a refusal asks for, as often as that leads anywhere."""
        for _ in range(MAX_SENDS - 1):
            try:
                better = await self._get_better_tokens(request, tokens, response)
                if better is None:
                    return response
                await drain_response(response)
            except BaseException:
                response.close()
                raise
            tokens = better
            response = await self._send_once(request, tokens)
            if response.status not in {401, 403}:
                self._session.worked(tokens)
                self._step_ups.worked(request.operation)
                return response
        return response

    async def _get_better_tokens(
        self, request: "PendingRequest", tokens: Tokens | None, response: Response
    ) -> Tokens | None:
        """Tokens with which to send a request again; None where that helps nothing."""
        challenges = read_challenges(response.headers)
        ours = [c for c in challenges if c.scheme in {"bearer", "dpop"}]
        if challenges and not ours:
            return None  # it wants something that tokens are not
        if response.status == 403:
            return await self._step_up(request, tokens, ours)
        if tokens is not None and not request.nonced and wants_nonce(ours):
            request.nonced = True
            return tokens
        newer = self._session.tokens
        if newer is not None and newer is not tokens:
            return newer  # somebody else was quicker
        want = request.want(tokens, ours)
        return await self._session.renewed(want, self._clocks, patient=request.patient)

    async def _step_up(
        self, request: "PendingRequest", tokens: Tokens | None, challenges: list[Challenge]
    ) -> Tokens | None:
        """Tokens with the scopes that a request takes."""
        short = [c for c in challenges if c.params.get("error") == "insufficient_scope"]
        if not short:
            return None
        if tokens is None:  # what is open to nobody in particular is not enough
            want = request.want(None, short)
            return await self._session.renewed(want, self._clocks, patient=request.patient)
        self._session.worked(tokens)  # who names what it lacks has believed the token
        want = request.want(tokens, short, more=True)
        return await self._step_ups.tokens(want, self._clocks, patient=request.patient)


class RedactedResponse:
    """A refusal that does not repeat the token it was sent, as some servers do.

    Args:
        response: the refusal.
        token: what it was sent; one that could be an ordinary word is left where it stands.
    """

    def __init__(self, response: Response, token: str) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._token = token.encode()
        self._instead = REDACTED.encode() if len(token) >= MIN_SECRET_CHARS else self._token

    async def read(self, limit: int) -> bytes:
        """The whole body."""
        return (await self._response.read(limit)).replace(self._token, self._instead)

    async def piece(self) -> bytes:
        """The next piece of it."""
        return (await self._response.piece()).replace(self._token, self._instead)

    def close(self) -> None:
        """Let go of it."""
        self._response.close()


class PendingRequest:
    """A request that waits for its response, and what has been tried for it."""

    def __init__(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.nonced = False

    def want(
        self, before: Tokens | None, challenges: list[Challenge], *, more: bool = False
    ) -> TokenDemand:
        """The demand for new tokens that a refusal makes."""
        return TokenDemand(
            before=before,
            scopes=join_scopes(challenges),
            metadata=find_metadata_url(challenges),
            more=more,
            operation=self.operation,
        )

    @property
    def patient(self) -> bool:
        """Whether somebody waits for it who would log in for it.

        Nobody does for what goes on by itself: notifications, answers, pings, streams that are
        opened again, and the end of a session.
        """
        if self.method == "POST":
            said = [one.get("method", "ping") for one in read_messages(self.body) if "id" in one]
            # these open a connection, or look whether it stands
            return CONNECTION_CLOCKS.get() is not None or any(
                method not in PING_METHODS for method in said
            )
        return self.method == "GET" and "MCP-Protocol-Version" not in self.headers

    @property
    def operation(self) -> str:
        """The method of its message, and the name of its target."""
        found = []
        for one in read_messages(self.body):
            params = one.get("params")
            target = params.get("name", params.get("uri", "")) if isinstance(params, dict) else ""
            found.append(f"{one.get('method', '')} {target}".strip())
        return ", ".join(found) or self.method


def read_messages(body: bytes | None) -> list[dict[str, Any]]:
    """The messages of a body; it is ours, so it is whole."""
    read = msgspec.json.decode(body) if body else []
    return read if isinstance(read, list) else [read]


def read_challenges(headers: Mapping[str, str]) -> list[Challenge]:
    """The challenges of a refusal."""
    # there may be several headers of the name
    values = [value for name, value in headers.items() if name.lower() == "www-authenticate"]
    return parse_challenges(values)


def join_scopes(challenges: list[Challenge]) -> frozenset[str] | None:
    """The scopes of all challenges; None where they name none."""
    named = [scopes for c in challenges if (scopes := filter_scopes(c.scopes or ()))]
    return frozenset().union(*named) if named else None


def find_metadata_url(challenges: list[Challenge]) -> str | None:
    """The URL of the resource's metadata, where a challenge names one."""
    return next((url for c in challenges if (url := c.params.get("resource_metadata"))), None)


def wants_nonce(challenges: list[Challenge]) -> bool:
    """Whether a proof was refused for having no nonce, or an old one (RFC 9449 9)."""
    return any(c.params.get("error") == "use_dpop_nonce" for c in challenges)


async def drain_response(response: Response) -> None:
    """Be done with a refusal."""
    try:
        await response.read(MAX_REFUSAL_BYTES)
    except (ConnectionLost, Misbehaved):
        pass
    finally:
        response.close()


class SharedSession(msgspec.Struct):
    """The session that all connections to one MCP server share, and their number."""

    session: AuthSession
    proofs: DpopProofs
    step_ups: StepUps
    loop: asyncio.AbstractEventLoop
    users: int = 0


# Gives the way to tokens for the MCP server at a URL; the proofs bind them to a key.
MakeGrant: TypeAlias = Callable[[str, DpopProofs], TokenGrant]


class SharedSessions:
    """An :class:`~isthmus.transports.http.client.requests.Authorization` that gets tokens by a grant.

    It may serve several clients, also to several MCP servers: each server has tokens of its own.

    Args:
        make_grant: gives the way to tokens for one MCP server.
        compat: what is put up with for servers that do not keep to the specification.
        max_step_ups: how often one operation may ask for more scopes.
        now: seconds since the epoch.
        allow_plain_http: judges a URL on whose way anybody could read tokens; by default
            ``Compat(plain_http=…)`` names the origins that may have them.
    """

    def __init__(
        self,
        make_grant: MakeGrant,
        *,
        compat: Compat = STRICT_COMPAT,
        max_step_ups: int = MAX_STEP_UPS,
        now: Callable[[], float] = time.time,
        allow_plain_http: Callable[[str], None] | None = None,
    ) -> None:
        self._make_grant = make_grant
        self._compat = compat
        self._max_step_ups = max_step_ups
        self._now = now
        self._allow_plain_http = allow_plain_http or self._check_plain_http
        self._shared: dict[str, SharedSession] = {}

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
            self._allow_plain_http(url)
        loop = asyncio.get_running_loop()
        shared = self._shared.get(url)
        if shared is None or shared.loop is not loop:
            proofs = DpopProofs()
            try:
                grant = self._make_grant(url, proofs)
            except ValueError as error:
                raise AuthRequired(
                    f"this server cannot be logged in to by the URL it was given: {error}"
                ) from None
            session = AuthSession(grant, now=self._now)
            step_ups = StepUps(session, url, tries=self._max_step_ups)
            shared = self._shared[url] = SharedSession(session, proofs, step_ups, loop)
        shared.users += 1
        return AuthorizedRequests(
            url,
            requests,
            shared.session,
            proofs=shared.proofs,
            step_ups=shared.step_ups,
            closed=partial(self._leave, url, shared),
        )

    def context(self, url: str) -> object:
        """The token that requests to a URL carry just now; see ``Authorization``."""
        shared = self._shared.get(url)
        tokens = None if shared is None else shared.session.tokens
        return None if tokens is None else tokens.access

    def forget(self, url: str | None) -> None:
        """Have no tokens any more for one MCP server, or for all."""
        for known, shared in self._shared.items():
            if url is None or known == url:
                shared.session.forget()

    def _check_plain_http(self, url: str) -> None:
        """Refuse to send tokens where anybody on the way could read them.

        Raises:
            AuthUnsafe: ``Compat(plain_http=…)`` does not name the origin.
        """
        # spec 2026-07-28 basic/authorization/security-considerations#communication-security
        if origin_of(url) not in self._compat.plain_http:
            raise AuthUnsafe(
                f"{redact_url(url)} is reached by plain http, where anybody on the way can read its "
                "tokens: give its https URL; on a network of your own, "
                f"compat=Compat(plain_http={{{origin_of(url)!r}}}) lets them go there"
            )

    async def _leave(self, url: str, shared: SharedSession) -> None:
        """The last one who leaves takes the session along; what is kept is in the store."""
        shared.users -= 1
        if shared.users:
            return
        if self._shared.get(url) is shared:
            del self._shared[url]
        await shared.session.close()


def check_scopes(scopes: Iterable[str] | None) -> frozenset[str] | None:
    """The scopes that an application asks for; None leaves it to the server.

    Raises:
        UsageError: they are one text, whose letters are no scopes.
    """
    if isinstance(scopes, str):
        raise UsageError(f"scopes= is a set, as {{'files:read'}}, not {scopes!r}")
    return None if scopes is None else frozenset(scopes)
