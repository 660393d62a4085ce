"""Waiting for approvals: how each client of a gateway is kept waiting for a person, by the way that it bears.

A client that can send its user to a page is asked to. One with tasks gets a task. Any other is held, with
progress where it takes that, and is told in the end to call again.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from isthmus.bridge.upstream import asks_in_result
from isthmus.client.model.questions import BadQuestion
from isthmus.errors import Refuse, StoreUnavailable
from isthmus.host.model.calling_client import WaitingApproval
from isthmus.host.model.errors import Denied
from isthmus.host.model.gateway_options import ApprovalOptions
from isthmus.wire import ElicitParams, ElicitResult

if TYPE_CHECKING:
    from isthmus.gateway.calls import GatewayCall

PROGRESS_INTERVAL_S = 10.0


class ApprovalWaiting:
    """Keeps clients waiting until a person has decided.

    Args:
        options: how long calls are held.
        find_page: gives the address of the page of an approval; empty where there are no pages.
        has_people: says whether anybody is there to be asked.
    """

    def __init__(
        self,
        options: Callable[[], ApprovalOptions],
        find_page: Callable[[str], str],
        has_people: Callable[[], bool],
    ) -> None:
        self._options = options
        self._find_page = find_page
        self._has_people = has_people

    async def wait(self, call: "GatewayCall", approval: WaitingApproval) -> str:
        """Keep the client of a call waiting; the address of the approval's page.

        Raises:
            Denied: whoever uses the client would not have a person asked.
        """
        page = self._find_page(approval.id)
        if page and can_open_pages(call):
            await self._send_to_page(call, approval, page)
        if page or self._has_people():
            if not approval.is_decided:
                await self._let_go(call)
            await self._hold(call, approval, page)
        return page

    async def _let_go(self, call: "GatewayCall") -> None:
        """Answer a client that has tasks with a task: it need not wait for a person."""
        try:
            await call.become_task()
        except (Refuse, StoreUnavailable):  # there is no room for one now: it is held as any other
            return

    async def _send_to_page(
        self, call: "GatewayCall", approval: WaitingApproval, page: str
    ) -> None:
        """Have the client send its user to the page.

        Raises:
            Denied: its user would not go.
        """
        message = f"A person has to approve {approval.words}. Decide on this page, then go on"
        params = ElicitParams(mode="url", url=page, message=message, elicitation_id=approval.id)
        asking = asyncio.ensure_future(call.put("elicitation/create", params))
        # A call that is parked is dispatched when its client has come again, and not before. One that
        # waits on a connection of its own is there all the time.
        waits: list[asyncio.Future[Any]] = [asking]
        decided = asyncio.ensure_future(approval.wait_decided())
        if not asks_in_result(call.inbound.caller.revision) or call.is_task:
            waits.append(decided)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            answer = asking.result() if asking.done() else None
        except (BadQuestion, Refuse):  # it cannot be asked after all, so it is held
            answer = None
        finally:
            asking.cancel()
            decided.cancel()
        # spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: accept means consent to open
        # the page, and not that anything was decided there
        if isinstance(answer, ElicitResult) and answer.action != "accept":
            raise Denied(
                f"{approval.words} was not approved: the client answered {answer.action!r} instead of opening "
                "the page where a person approves it",
                by="client",
                verdict="cancel",
            )

    async def _hold(self, call: "GatewayCall", approval: WaitingApproval, page: str) -> None:
        """Hold a call until a person has decided, or for as long as the options say."""
        options, loop = self._options(), asyncio.get_running_loop()
        seconds = options.hold_with_progress if call.takes_progress else options.hold
        until = None if call.is_task else loop.time() + seconds
        where = f" at {page}" if page else ""
        while not approval.is_decided:
            left = PROGRESS_INTERVAL_S if until is None else until - loop.time()
            if left <= 0:
                return
            call.say(f"waiting for approval{where}")
            try:
                async with asyncio.timeout(min(left, PROGRESS_INTERVAL_S)):
                    await approval.wait_decided()
            except TimeoutError:
                continue


def can_open_pages(call: "GatewayCall") -> bool:
    """Whether the client of a call declared that it can send its user to a page."""
    elicitation = call.capabilities.elicitation
    return elicitation is not UNSET and elicitation.url is not UNSET
