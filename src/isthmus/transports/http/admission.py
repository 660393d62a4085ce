"""Admission: authorization of each HTTP request, and of the streams that outlive theirs.

Made only for a server that has an :class:`~isthmus.transports.http.authorizer.Authorizer`; on the way
of all others there is nothing of this.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET, Raw, structs

from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal
from isthmus.errors import UsageError
from isthmus.revisions import MODERN
from isthmus.revisions.codes import UNAUTHENTICATED_CODE
from isthmus.runtime.failures import log_request_failure, log_warning
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.router import Router
from isthmus.transports.http.authorizer import (
    AsgiApp,
    Authorizer,
    MethodScopes,
    find_recall,
)
from isthmus.transports.http.origin_guard import OriginGuard
from isthmus.transports.http.refusals import find_request_id
from isthmus.transports.http.reply import Scope
from isthmus.transports.http.request import Exchange
from isthmus.transports.http.request_watch import RequestWatch, WatchedRequest
from isthmus.wire.jsonrpc import ErrorBody, Frame, parse
from isthmus.wire.struct import Id

# Seconds between looks at who listens; half of what a stream may outlive its permission by
LISTENER_CHECK_S = 30.0

MAX_CONCURRENT_CHECKS = 16  # listeners that are asked about at the same time

CHECK_TIMEOUT_S = 10.0  # seconds in which it must be known whether somebody may go on listening

TOKEN_EXPIRED = ErrorBody(
    code=UNAUTHENTICATED_CODE,
    message="The access token has expired or was revoked: get another one",
)
ADMISSION_FAILED = Refusal(
    500, -32603, "Internal error: what this request takes could not be found out"
)


OTHER_FIELDS_BYTES = 4 * 1024  # of a request's head, for what is neither its token nor a proof


def make_admission(auth: Authorizer, router: Router, head_limit: int) -> "Admission":
    """The authorization of an app whose requests may have heads of so many bytes.

    Raises:
        UsageError: a token does not fit in.
    """
    needed = getattr(auth, "max_credential_bytes", 0) + OTHER_FIELDS_BYTES
    if needed > head_limit:
        raise UsageError(
            f"head_limit={head_limit} has no room for the tokens that auth= takes: it has "
            f"to be {needed} or more, or max_token_bytes= of auth less"
        )
    return Admission(auth, router)


class Admission:
    """The authorization of one HTTP app, between the guard and the messages.

    Args:
        auth: says who asks, and what they may ask for.
        router: says what a message takes.
    """

    def __init__(self, auth: Authorizer, router: Router) -> None:
        self.auth = auth
        self.routes = auth.routes
        self._router = router
        self._timer: asyncio.TimerHandle | None = None
        self._looking: asyncio.Task[None] | None = None
        self._placed = False
        self._recall = find_recall(auth, "admit")

    def for_sse(self) -> "Admission":
        """The authorization of HTTP+SSE: this, unless that is a resource of its own.

        Who listens there is looked after here.
        """
        auth: Authorizer | None = getattr(self.auth, "sse", None)
        return self if auth is None else SseAdmission(auth, self._router)

    def list_pages(self) -> Mapping[str, AsgiApp]:
        """The pages, for somebody who puts them where they belong on the origin."""
        self._placed = True
        return self.routes

    async def authenticate(self, scope: Scope) -> Principal | Refusal | None:
        """The principal of a request; a refusal for whoever may not, or where that cannot be told."""
        if not self._placed and scope.get("root_path"):
            self._warn_of_pages(scope["root_path"])
        try:
            found = await self.auth.admit(scope)
        except Exception as error:  # noqa: BLE001 - whatever breaks in there must let nobody in
            log_request_failure("authorization", error)
            return ADMISSION_FAILED
        return found

    def _warn_of_pages(self, prefix: str) -> None:
        """Say once what is missing where the app has only a part of its origin."""
        self._placed = True
        pages = [path for path in self.routes if not path.startswith(prefix)]
        if pages:
            log_warning(
                "this server is mounted under %s, and clients look for %s at the root of its origin: "
                "put it there by app.attach(outer, %r), by a route for each of auth.routes, or by "
                "having the proxy pass these paths on",
                prefix,
                " and ".join(pages),
                prefix,
            )

    def recall(self, exchange: Exchange) -> bool:
        """Admit a request whose token is known, without waiting; False leaves it to :meth:`admit`."""
        request = exchange.request
        is_mounted = request.outer_path.rstrip("/") != request.path
        if self._recall is None or (is_mounted and not self._placed):
            return False
        try:
            found = self._recall(request.fields)
        except Exception as error:  # noqa: BLE001 - whatever breaks in there must let nobody in
            log_request_failure("authorization", error)
            return False
        if found is None:
            return False
        exchange.principal = found
        return True

    async def admit(self, exchange: Exchange) -> bool:
        """Find out who sends a request, before its body is read; False where it was refused."""
        # spec 2026-07-28 basic/authorization#token-requirements: on every HTTP request, also
        # within one session
        found = await self.authenticate(exchange.scope)
        if isinstance(found, Refusal):
            await exchange.refuse(found)
            return False
        exchange.principal = found
        return True

    async def serve_page(self, exchange: Exchange, guard: OriginGuard) -> None:
        """A page of the authorizer's own, which any other page on the web may ask for."""
        request = exchange.request
        refusal = guard.host(request.head, request.local)
        if refusal is None:
            await exchange.serve_asgi(self.routes[request.path])
        else:
            await exchange.refuse(refusal)

    def find_refusal(
        self, principal: Principal | None, frames: Sequence[Frame], *, modern: bool
    ) -> Refusal | None:
        """Why somebody may not have what messages ask for, or None."""
        try:
            asked = [
                MethodScopes(
                    frame.method, self._router.needs(frame.method, frame.params, principal)
                )
                if frame.method is not UNSET
                else MethodScopes("")
                for frame in frames
            ]
            return self.auth.permit(
                principal, asked, modern=modern, known=self._router.known_scopes
            )
        except Exception as error:  # noqa: BLE001 - an author's function may raise anything, and must let nobody in
            log_request_failure("finding out which scopes a request takes", error)
            return ADMISSION_FAILED

    def find_batch_refusal(
        self, principal: Principal | None, members: Sequence[Raw]
    ) -> tuple[Refusal, Id | None] | None:
        """Why somebody may not have what an array asks for, with an id to say it under; or None."""
        # What is no message is answered by an error of its own, and asks for nothing.
        parsed = [parse(bytes(one)) for one in members]
        frames = [one for one in parsed if isinstance(one, Frame)]
        lack = self.find_refusal(principal, frames, modern=False)
        if lack is None:
            return None
        return lack, find_request_id(frames[0]) if len(frames) == 1 else None

    def make_scoped_router(self, principal: Principal | None) -> "ScopedRouter":
        """The router for somebody's connection that has no statuses."""
        return ScopedRouter(self._router, self, principal)

    # Streams

    def watch(self, request_watch: RequestWatch, sockets: Any) -> None:
        """Look now and then at who listens, and end what is open to somebody who may not any more.

        Args:
            request_watch: has the streams.
            sockets: has the WebSockets, or is None.
        """
        loop = asyncio.get_running_loop()

        def look() -> None:
            if self._looking is None or self._looking.done():
                self._looking = loop.create_task(self._end_expired(request_watch, sockets))
            self._timer = loop.call_later(LISTENER_CHECK_S, look)

        self._timer = loop.call_later(LISTENER_CHECK_S, look)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()

    async def _end_expired(self, request_watch: RequestWatch, sockets: Any) -> None:
        listening: list[tuple[WatchedRequest, Principal]] = [
            (one, one.principal)
            for one in (*request_watch.all(), *(() if sockets is None else sockets.all()))
            if one.principal is not None
        ]
        turns = asyncio.Semaphore(MAX_CONCURRENT_CHECKS)

        async def look(one: WatchedRequest, principal: Principal) -> None:
            async with turns:
                if not await self._may_stay(principal) and one.task is not None:
                    one.expire(TOKEN_EXPIRED)

        await asyncio.gather(*(look(one, principal) for one, principal in listening))

    async def _may_stay(self, principal: Principal) -> bool:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_S):
                return await self.auth.lasts(principal)
        except Exception as error:  # noqa: BLE001 - not to know is no reason to end what was permitted
            log_request_failure("finding out whether a stream may stay open", error)
            return True


class SseAdmission(Admission):
    """The authorization of HTTP+SSE, where that is a resource of its own.

    Args:
        auth: says who asks there.
        router: says what a message takes.
    """

    def __init__(self, auth: Authorizer, router: Router) -> None:
        super().__init__(auth, router)
        self._placed = True  # its pages are among the other's, who tells of them


class ScopedRouter:
    """A router for one connection that has no statuses: who lacks a scope gets an error.

    Args:
        router: serves what is permitted.
        admission: says what is.
        principal: whose connection it is.
    """

    def __init__(self, router: Router, admission: Admission, principal: Principal | None) -> None:
        self.supported = router.supported
        self.in_flight = router.in_flight
        self._router = router
        self._admission = admission
        self._principal = principal

    async def serve(self, inbound: Inbound) -> bytes | ErrorBody:
        """As ``Router.serve``, for those who may."""
        refusal = self._flaw(Frame(id=inbound.id, method=inbound.method), inbound)
        return await self._router.serve(inbound) if refusal is None else refusal.error()

    def note(self, method: str, params: Raw | None, inbound: Inbound) -> None:
        """As ``Router.note``, for those who may; whoever may not has no answer to be told by."""
        if self._flaw(Frame(method=method), inbound) is None:
            self._router.note(method, params, inbound)

    def _flaw(self, frame: Frame, inbound: Inbound) -> Refusal | None:
        frame = structs.replace(frame, params=inbound.params or Raw())
        modern = inbound.caller.revision in MODERN
        return self._admission.find_refusal(self._principal, (frame,), modern=modern)
