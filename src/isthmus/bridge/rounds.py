"""Rounds of forwarded calls: the one engine by which a proxy and a gateway serve calls that may ask.

The first round is made without a journal, since most calls ask nothing. One that asks goes through the
rounds of the server in front, which seals what the next round needs into ``requestState``.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import UNSET, structs

from isthmus.bridge.forwarded import ForwardedCall, ParkedCalls
from isthmus.bridge.upstream import NOTHING_CAME
from isthmus.errors import Refuse, Refused, UrlRequired
from isthmus.runtime.inbound import Inbound
from isthmus.server.features.invocation import run_refusing
from isthmus.server.settings import SharedSettings
from isthmus.wire import CallToolResult, InputRequiredResult
from isthmus.wire.meta import RELATED_TASK, SERVER_INFO
from isthmus.wire.struct import Wire

C = TypeVar("C", bound=ForwardedCall)

OWN_OF_SERVER = frozenset({SERVER_INFO, RELATED_TASK})  # in _meta: the server in front says its own


class RoundMaker(Protocol[C]):
    """Makes single rounds of calls: a proxy at its server, a gateway through its host."""

    def make_call(self, inbound: Inbound, meta: Mapping[str, Any]) -> C:
        """A call of a client, whose ``_meta`` goes on."""
        ...

    async def make_round(  # noqa: PLR0917 - the path of every call: keywords cost
        self,
        call: C,
        method: str,
        params: Any,
        name: str,
        state: str | None = None,
        answers: Mapping[str, Any] = NOTHING_CAME,
    ) -> Any:
        """Make one round of a call.

        Args:
            call: whose it is.
            method: the method.
            params: its parameters.
            name: the tool, prompt or URI.
            state: what the round before left; None in the first one.
            answers: those that the client gave.

        Returns:
            The result, or an ``InputRequiredResult`` with what is asked first.

        Raises:
            Refuse: as it went.
            UrlRequired: the user must visit pages first.
        """
        ...


class ForwardedRounds(Generic[C]):
    """The rounds of one provider's calls.

    Args:
        maker: makes each round.
        settings: those of the server in front.
        parked: keeps the calls whose clients have to come again with answers.
    """

    def __init__(self, maker: RoundMaker[C], settings: SharedSettings, parked: ParkedCalls) -> None:
        self._maker = maker
        self._settings = settings
        self._parked = parked

    async def serve(
        self, method: str, params: Any, name: str, inbound: Inbound, meta: Mapping[str, Any]
    ) -> Wire:
        """Serve a request of a client, in whichever round it is.

        Args:
            method: the method.
            params: its parameters, with what came back from the round before.
            name: the tool, prompt or URI.
            inbound: the request.
            meta: the ``_meta`` that goes on.

        Raises:
            Refuse: as it went.
        """
        maker, first = self._maker, list[Any]()
        if getattr(params, "request_state", UNSET) is UNSET and not getattr(
            params, "input_responses", UNSET
        ):
            try:
                call = maker.make_call(inbound, meta)
                result = await maker.make_round(call, method, params, name)
            except UrlRequired as error:
                first.append(error)
            else:
                if type(result) is not InputRequiredResult:
                    return self.clean(result)
                first.append(result)

        async def body(context: Any) -> Any:
            if first:
                asked = first.pop()
                if isinstance(asked, UrlRequired):
                    raise UrlRequired(*asked.pages, message=str(asked))
                return asked
            call, state = maker.make_call(inbound, meta), context.request_state
            return await maker.make_round(
                call, method, params, name, state, context.input_responses
            )

        try:
            ended: Wire = await run_refusing(body, inbound, params, name, self._settings)
        except Refused as no:  # by the client, of what the server behind asked in its result
            raise Refuse(no.code, no.message, no.data) from no
        return self.clean(ended)

    # Calls that wait here while their clients are asked

    async def begin(self, call: C, work: Coroutine[Any, Any, Any]) -> Any:
        """Make a call in a task of its own, until it is done or asks: it is parked then."""
        call.begin(work)
        return await self._go_on(call)

    async def resume(self, handle: str, inbound: Inbound, answers: Mapping[str, Any]) -> Any:
        """Go on with a parked call whose client has come again.

        Raises:
            Refuse: it is not here any more, or not this caller's.
        """
        # a request that was made again before anybody answered
        asked = None if answers else self._parked.ask_again(handle, inbound)
        if asked is not None:
            return asked
        return await self._go_on(self._parked.take(handle, inbound, answers))

    async def _go_on(self, call: ForwardedCall) -> Any:
        result = await call.wait()
        if call.is_task:
            return result
        if result is None:
            call.hold_notes()
        await call.finish_notes()
        return self._parked.park(call) if result is None else result

    def clean(self, result: Any) -> Wire:
        """A result that is safe to show, without what the server behind says of itself."""
        meta = getattr(result, "meta", UNSET)
        if meta and not OWN_OF_SERVER.isdisjoint(meta):
            rest = {key: value for key, value in meta.items() if key not in OWN_OF_SERVER}
            result = structs.replace(result, meta=rest or UNSET)
        sanitise = self._settings.sanitise
        if sanitise is None or type(result) is not CallToolResult:
            return result  # type: ignore[no-any-return]  # each of them is one
        return sanitise.result(result)
