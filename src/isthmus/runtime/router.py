"""Router: one request in, one result out, whatever the revision and the transport.

``Router.serve`` is the only boundary between the wire and the features. It takes four steps,
in order: **admit** (is there such a method here, in this revision?), **read** (decode the raw
parameters once, cut to the revision), **run** (middleware, then the feature's handler) and
**write** (project the result to the revision, stamp it, encode it). What the steps need is
worked out once per method and revision and kept as a :class:`Plan`.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw, UnsetType, structs

from isthmus.core.encoding import replace_surrogates
from isthmus.core.principal import Principal
from isthmus.core.session import MAX_IN_FLIGHT
from isthmus.errors import Refuse, StoreUnavailable
from isthmus.revisions import METHODS, REVISIONS, Method, Revision, accept
from isthmus.revisions.codes import permitted_code
from isthmus.revisions.projection import find_receiving_cut
from isthmus.runtime.failures import log_request_failure, make_store_error
from isthmus.runtime.inbound import Inbound, RestoreSession
from isthmus.runtime.middleware import Handler, Middleware, compose
from isthmus.runtime.stamp import Stamp
from isthmus.wire import CallToolParams, Implementation
from isthmus.wire.jsonrpc import MAX_QUOTED_CHARS, ErrorBody, encode, is_nested_deeper, shorten
from isthmus.wire.reading import drop_nulls

NoticeHandler = Callable[[Any, Inbound], None]
"""``(params, inbound) -> None``: what to do about a notification; ``inbound.id`` is empty."""

Sender = Literal["client", "server"]

Needs = Callable[[Any, Principal | None], frozenset[str]]
"""``(params, principal) -> scopes``: what it takes to have a request served."""

NO_NEEDS: Mapping[str, Needs] = {}
NO_SCOPES: frozenset[str] = frozenset()


class Plan(msgspec.Struct, frozen=True):
    """Plan of serving one method in one revision.

    Attributes:
        row: the method's row in the table.
        cut: takes out of its parameters what the revision lacks; None where it lacks nothing.
        handler: the feature's handler inside its middleware.
        stamp: writes its results, with what each of them carries.
        depth: the most levels of arrays and objects in its parameters, or None.
    """

    row: Method
    cut: Any  # a Cut or None; msgspec cannot check callables
    handler: Any  # a Handler
    stamp: Any  # a Stamp
    depth: int | None = None


class RequestServer(Protocol):
    """A server of the requests of one connection: a :class:`Router`, or what stands before one.

    Attributes:
        supported: the revisions spoken.
        in_flight: the most requests served at once on one connection, or None.
    """

    supported: tuple[Revision, ...]
    in_flight: int | None

    async def serve(self, inbound: Inbound) -> bytes | ErrorBody:
        """Serve one request."""
        ...

    def note(self, method: str, params: Raw | None, inbound: Inbound) -> None:
        """Act on a notification."""
        ...


class Router:
    """Methods and what serves them.

    Args:
        routes: a handler per method.
        notices: what to do about each notification; others are ignored.
        sender: the side whose requests are served here.
        supported: the revisions spoken.
        server: who we are, for the stamp of 2026-07-28; None on the client side.
        extra: rows for custom methods, served in every revision.
        middleware: layers around every handler, outermost first.
        first: puts around all of them what opens the server before its first request.
        debug: let the text of an unexpected exception out.
        depth: the most levels of arrays and objects in parameters, or None for any number.
        in_flight: the most requests served at once on one connection, or None for any number.
        needs: what requests take to be served, by method, where that is not nothing.
        known_scopes: gives every scope that anything here takes, whoever asks.
        restore: told of each session that was opened elsewhere, and of those that changed there.
    """

    def __init__(
        self,
        routes: Mapping[str, Handler],
        notices: Mapping[str, NoticeHandler] | None = None,
        *,
        sender: Sender = "client",
        supported: Sequence[Revision] = REVISIONS,
        server: Implementation | None = None,
        extra: Mapping[str, Method] | None = None,
        middleware: Sequence[Middleware] = (),
        first: Callable[[Handler], Handler] = lambda handler: handler,
        debug: bool = False,
        depth: int | None = None,
        in_flight: int | None = MAX_IN_FLIGHT,
        needs: Mapping[str, Needs] = NO_NEEDS,
        known_scopes: Callable[[], frozenset[str]] = frozenset,
        restore: RestoreSession = lambda _link, _resources, _stale: None,
    ) -> None:
        self.restore = restore
        self.known_scopes = known_scopes
        self._needs = needs
        self.supported = tuple(supported)
        self.in_flight = in_flight
        self._routes = routes
        self.notices = {} if notices is None else notices
        self._sender: Sender = sender
        self.server = server
        self._extra = {} if extra is None else extra
        self._first, self._middleware = first, tuple(middleware)
        self._debug = debug
        self._depth = depth
        self._plans: dict[tuple[str, Revision], Plan] = {}

    async def serve(self, inbound: Inbound) -> bytes | ErrorBody:
        """Serve one request; raises nothing but a cancellation from outside.

        Returns:
            The result as JSON, or the error to answer with.
        """
        plan = self._plans.get((inbound.method, inbound.caller.revision)) or self.plan(
            inbound.method, inbound.caller.revision
        )
        if plan is None:
            return _unknown_method_error(inbound)
        try:
            params = _decode_params(plan.row, inbound.params, plan.depth)
            if plan.cut is not None:
                params = plan.cut(params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return ErrorBody(
                code=-32602, message=f"Invalid params: {shorten(error, MAX_QUOTED_CHARS)}"
            )
        try:
            result = await plan.handler(params, inbound)
            return bytes(result) if type(result) is Raw else plan.stamp.write(result)
        except Refuse as no:
            return _make_refusal(no, inbound.caller.revision)
        except BaseException as error:
            if is_cancellation(error):
                raise
            return self._failure(inbound, error)

    def needs(
        self, method: str, params: Raw | UnsetType, principal: Principal | None
    ) -> frozenset[str]:
        """The scopes that somebody must have been granted for a request, told by its body.

        Nothing for what will not be served anyhow: it is refused for what it is.

        Raises:
            Exception: whatever an author's function raised; nobody may be let in then.
        """
        needs, row = self._needs.get(method), self._row(method)
        if needs is None or row is None:
            return NO_SCOPES
        try:
            read = _decode_params(row, params or None, self._depth)  # an empty one is like none
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return NO_SCOPES
        return needs(read, principal)

    def note(self, method: str, params: Raw | None, inbound: Inbound) -> None:
        """Act on a notification; a malformed or unknown one is ignored, as JSON-RPC has it."""
        handler = self.notices.get(method)
        row = self._row(method)
        if handler is None or row is None:
            return
        if row.name in METHODS and not inbound.caller.revision.allows(self._sender, method):
            return
        try:
            # As in needs: what is too deep for that must not be acted on here.
            read = _decode_params(row, params, self._depth)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        try:
            handler(accept(read, inbound.caller.revision), inbound)
        except Exception as error:  # noqa: BLE001 - a notification has no answer to carry it
            log_request_failure(method, error)

    def plan(self, method: str, revision: Revision) -> Plan | None:
        """The plan of serving a method in a revision; None where it is not."""
        row, handler = self._row(method), self._routes.get(method)
        if row is None or handler is None or not self._admits(row, revision):
            return None
        plan = Plan(
            row,
            find_receiving_cut(row.params, revision),
            self._first(compose(handler, self._middleware, method)),
            Stamp(revision, self.server, cacheable=row.cacheable),
            self._depth,
        )
        self._plans[method, revision] = plan
        return plan

    def _row(self, method: str) -> Method | None:
        return METHODS.get(method) or self._extra.get(method)

    def _admits(self, row: Method, revision: Revision) -> bool:
        return row.name not in METHODS or revision.allows(self._sender, row.name)

    def _failure(self, inbound: Inbound, error: BaseException) -> ErrorBody:
        """-32603, logged; the text stays here unless debugging (never a code 0)."""
        if isinstance(error, StoreUnavailable):
            return make_store_error(inbound.method, error)
        log_request_failure(inbound.method, error)
        text = f": {type(error).__name__}: {error}" if self._debug else ""
        return ErrorBody(code=-32603, message=f"Internal error in {shorten(inbound.method)}{text}")


def _decode_params(row: Method, params: Raw | None, most: int | None) -> Any:
    """The parameters of a method as its struct.

    Raises:
        msgspec.ValidationError: they do not fit; the message has the JSON path.
    """
    raw = b"{}" if params is None else params
    size = len(memoryview(raw))
    apart = size > MAX_WHOLE_BYTES and row.params is CallToolParams
    if most and size > 2 * most and not apart:  # what is deeper is also longer
        _check_depth(bytes(raw), most)
    try:
        read = row.decode_params(raw)
    except msgspec.ValidationError:
        less = drop_nulls(raw)  # "cursor": null and the like, which some clients send
        if less is None:
            raise
        read = row.decode_params(less)
    if most and apart:
        # Arguments may be large, and were not decoded: they are measured by the tool, if at all.
        _check_depth(encode(structs.replace(read, arguments=UNSET)), most)
    return read


MAX_WHOLE_BYTES = 1024  # of the parameters of a call whose arguments are measured with the rest


def _check_depth(data: bytes, most: int) -> None:
    if is_nested_deeper(data, most):
        raise msgspec.ValidationError(f"nested more than {most} levels deep")


def _unknown_method_error(inbound: Inbound) -> ErrorBody:
    where = f"in revision {inbound.caller.revision.name}"
    return ErrorBody(code=-32601, message=f"Method not found: {shorten(inbound.method)} {where}")


def _make_refusal(no: Refuse, revision: Revision) -> ErrorBody:
    message, code = str(no), permitted_code(revision, no.code)
    data = UNSET if no.data is None else no.data
    return _make_sendable(ErrorBody(code=code, message=message, data=data))


def _make_sendable(error: ErrorBody) -> ErrorBody:
    """The error itself if it has a form in JSON; else as much of it as has one.

    What an author puts into an error is not looked at before, and an error that cannot be sent
    would leave its request without an answer.
    """
    try:
        encode(error)
    except UnicodeEncodeError:
        return _make_sendable(replace_surrogates(error))
    except (TypeError, ValueError, RecursionError) as problem:
        log_request_failure("the data of an error", problem)
        return ErrorBody(code=error.code, message=error.message)
    return error


def is_cancellation(error: BaseException) -> bool:
    """Whether an exception means that a request is no longer wanted, or that all is over.

    Otherwise it is a failure like any other, and the request must be answered: a
    ``CancelledError`` may come out of something the request awaited, and a ``GeneratorExit`` or a
    ``SystemExit`` may be raised by anybody.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return False
    try:
        task = asyncio.current_task()
    except RuntimeError:  # the loop has gone, and what it left behind is being cleared away
        task = None
    return task is None or (isinstance(error, asyncio.CancelledError) and task.cancelling() > 0)
