"""Forwarded calls: one call of a client, as it is made at the server behind a proxy.

What the server behind asks on the way goes to the client that made this very call. Up to 2025-11-25
that is a request on the way back. Since 2026-07-28 it is the result of the call, which ends; the call at
a server of up to 2025-11-25 then waits here (it is *parked*) until the client comes again with the
answers.
"""

import asyncio
import math
import os
from collections import deque
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.model.questions import BadQuestion
from isthmus.core.principal import owner_of
from isthmus.errors import IsthmusError, Refuse, Refused
from isthmus.revisions import METHODS, project
from isthmus.runtime.inbound import Inbound
from isthmus.server.asking.logging import ClientLog
from isthmus.server.asking.notifications import CallNotifications
from isthmus.server.asking.requirements import require_askable
from isthmus.server.settings import SharedSettings
from isthmus.wire import (
    InputRequest,
    InputRequiredResult,
    LogMessageParams,
    ProgressParams,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

LOST_CALL = (
    "The call that this answer belongs to is not under way any more: it took too long, was answered "
    "already, or the proxy was started anew. What the server behind it had begun may have happened; "
    "it is not called again by itself"
)


GATHER_DELAY_S = 0.05  # that a question waits for others of the same call
MAX_HELD_NOTIFICATIONS = 100  # of one call while it is parked: the newest


class ParkedQuestion(msgspec.Struct, eq=False):
    """A question that waits for its answer: what is asked, and who waits."""

    request: InputRequest
    answer: "asyncio.Future[Raw]"


class QuestionSignal:
    """Says whether a call asks something; one waiter at a time hears it, or the end of the call.

    It is as an ``asyncio.Event`` whose waiter needs no task of its own.
    """

    __slots__ = ("_waiter", "is_set")

    def __init__(self) -> None:
        self.is_set = False
        self._waiter: asyncio.Future[bool] | None = None

    def set(self) -> None:
        """Something is asked."""
        self.is_set = True
        self._resolve(asked=True)

    def clear(self) -> None:
        """Nothing is asked any more."""
        self.is_set = False

    def wake(self, _work: object = None) -> None:
        """Have the waiter see whether the work is done."""
        self._resolve(asked=False)

    def _resolve(self, *, asked: bool) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(asked)

    async def wait(self, work: "asyncio.Task[Any]") -> None:
        """Wait until something is asked, or the work is done."""
        if work.done():
            return
        loop = asyncio.get_running_loop()
        work.add_done_callback(self.wake)
        try:
            while True:
                if self.is_set or work.done():
                    return
                self._waiter = loop.create_future()
                if await self._waiter:
                    return
        finally:
            work.remove_done_callback(self.wake)
            self._waiter = None


class ForwardedCall:
    """One call on its way to the server behind a proxy.

    Args:
        inbound: the call.
        settings: those of the proxy's server.
        meta: the ``_meta`` that goes to the server behind.

    Attributes:
        parked_until: when its client must have come again, by the loop's clock; None while it is not parked.
        work: the call at the server behind, where it may outlive a request of the client's.
    """

    __slots__ = (
        "_asked", "_held", "_made", "_notes", "_questions", "_settings", "inbound", "meta", "parked_until",
        "work",
    )  # fmt: skip

    def __init__(self, inbound: Inbound, settings: SharedSettings, meta: Mapping[str, Any]) -> None:
        self.inbound = inbound
        self.meta = meta
        self.parked_until: float | None = None
        self.work: asyncio.Task[Any] | None = None
        self._settings = settings
        self._notes: CallNotifications | None = None
        self._asked: QuestionSignal | None = None
        self._questions: dict[str, ParkedQuestion] = {}
        self._made = 0
        # What is said while the call is parked: the client comes again to hear it.
        self._held: deque[ProgressParams | LogMessageParams] | None = None

    @property
    def owner(self) -> str | None:
        """Whose call it is; None where nobody has authenticated."""
        return owner_of(self.inbound.principal)

    @property
    def parked_s(self) -> float:
        """Seconds for which it may still be parked; 0 while it is not."""
        until = self.parked_until
        return 0.0 if until is None else max(0.0, until - asyncio.get_running_loop().time())

    @property
    def is_task(self) -> bool:
        """Whether its client has been answered with a task, so that it has to wait for nothing."""
        return False

    def begin(self, work: Coroutine[Any, Any, Any]) -> None:
        """Make the call in a task of its own, which may outlive a request of the client's."""
        self._asked = QuestionSignal()
        self.work = asyncio.create_task(work)

    def announce_end(self) -> None:
        """Wake who waits for the work, which ends now: its task would do so a turn of the loop later."""
        if self._asked is not None:
            self._asked.wake()

    # What the server behind says

    def report(self, params: ProgressParams) -> None:
        """Pass a report of progress on."""
        if self._held is not None:
            self._held.append(params)
            return
        token = self.inbound.progress_token
        if token is None:
            return
        note = structs.replace(params, progress_token=token, meta=UNSET)
        # spec 2026-07-28 basic/patterns/progress: the value MUST increase, which the client saw to
        self._open_notes().put("notifications/progress", note)

    def log(self, params: LogMessageParams) -> None:
        """Pass a log message on, as the client wants them."""
        if self._held is not None:
            self._held.append(params)
            return
        settings = self._settings

        def say(said: LogMessageParams) -> None:
            self._open_notes().put("notifications/message", said)

        log = ClientLog(self.inbound.caller, say, params.logger or None, redact=settings.redact)
        log(params.level, params.data)

    def _open_notes(self) -> CallNotifications:
        if self._notes is None:
            self._notes = CallNotifications(self.inbound, self._settings.limiters)
        return self._notes

    def hold_notes(self) -> None:
        """Keep what is said from now on: the answer to the client's request follows."""
        self._held = deque(maxlen=MAX_HELD_NOTIFICATIONS)

    def _release_notes(self) -> None:
        held, self._held = self._held, None
        for params in held or ():
            if isinstance(params, ProgressParams):
                self.report(params)
            else:
                self.log(params)

    @property
    def has_notes(self) -> bool:
        """Whether anything was said that must reach the client before the answer."""
        return self._notes is not None

    async def finish_notes(self) -> None:
        """Say all that is to be said: the answer follows."""
        notes, self._notes = self._notes, None
        if notes is not None:
            try:
                await notes.finish()
            finally:
                notes.close()

    async def put(self, method: str, params: Any) -> Wire:
        """Put a question of the server behind to the client whose call this is.

        Raises:
            BadQuestion: the client cannot be asked this.
            Refuse: the client refused to answer.
        """
        caller, changes = self.inbound.caller, self._settings.changes
        params = self.check_question(method, params)
        if caller.revision.allows("server", method):
            page = getattr(params, "elicitation_id", UNSET)
            if page is not UNSET:
                changes.add_page(self.inbound.link, page)
            raw = await self._ask_directly(method, params)
        else:
            raw = await self._ask_in_result(method, params)
        try:
            answer: Wire = METHODS[method].decode_result(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Refuse(-32603, f"The client's answer to {method} is malformed") from error
        return answer

    def check_question(self, method: str, params: Any) -> Any:
        """The parameters of a question as they go on, where the client can be asked it.

        Raises:
            BadQuestion: it cannot.
        """
        plain: dict[str, Any] = {"meta": UNSET}
        if getattr(params, "task", UNSET) is not UNSET:
            plain["task"] = UNSET
        params = structs.replace(params, **plain)
        try:
            # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: MUST NOT ask
            # what the client has not declared
            require_askable(self.inbound.caller, method, params)
        except IsthmusError as lack:
            raise BadQuestion(-32602, f"Invalid params: {lack}") from lack
        return params

    def make_request(self, method: str, params: Any) -> InputRequest:
        """A question as it stands in a result for the client."""
        shown = Raw(encode(project(params, self.inbound.caller.revision)))
        return InputRequest(method=method, params=shown)

    async def _ask_directly(self, method: str, params: Any) -> Raw:
        inbound = self.inbound
        try:
            return await inbound.ask(method, params, self._settings.limits.answer_timeout)
        except Refused as no:
            raise Refuse(no.code, no.message, no.data) from no
        except IsthmusError as error:
            raise Refuse(-32603, f"The client did not answer {method}") from error

    async def _ask_in_result(self, method: str, params: Any) -> Raw:
        self._made += 1
        key = f"q{self._made}"
        request = self.make_request(method, params)
        answer: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        if self._asked is None:
            # spec 2026-07-28 basic/patterns/mrtr#supported-requests: MUST NOT on any other request
            raise BadQuestion(
                -32603, f"{method} cannot be asked while serving {self.inbound.method}"
            )
        self._questions[key] = ParkedQuestion(request, answer)
        self._asked.set()
        try:
            return await answer
        finally:
            self._questions.pop(key, None)
            if not self._questions:
                self._asked.clear()

    # Rounds of a client since 2026-07-28

    async def wait(self) -> Any:
        """Wait until the call is done, or something is asked.

        Returns:
            The result, or None where something is asked.

        Raises:
            Exception: whatever the call ended with.
        """
        work, asked = self.work, self._asked
        if work is None or asked is None:
            raise RuntimeError("the call has not begun")
        try:
            await asked.wait(work)
            if self._questions and not work.done():  # what is asked at once goes with one result
                await asyncio.wait((work,), timeout=GATHER_DELAY_S)
        except asyncio.CancelledError:
            work.add_done_callback(retrieve_error)
            work.cancel()
            raise
        if work.done():
            return work.result()
        work.add_done_callback(retrieve_error)  # nobody may come again
        return None

    def list_questions(self, handle: str) -> InputRequiredResult:
        """The result that puts what is asked, and names the parked call."""
        requests = {key: question.request for key, question in self._questions.items()}
        return InputRequiredResult(input_requests=requests, request_state=handle)

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or asks nothing: there is no reason to wait for answers."""
        return not self._questions or self.has_ended

    @property
    def has_ended(self) -> bool:
        """Whether it has come to its result or its failure, for which its client may still come."""
        return self.work is None or self.work.done()

    def take_answers(self, inbound: Inbound, answers: Mapping[str, Any]) -> None:
        """Give answers to those who wait for them; the call goes on for another request."""
        self.inbound = inbound
        self._release_notes()
        for key, question in list(self._questions.items()):
            if key in answers and not question.answer.done():
                question.answer.set_result(Raw(encode(answers[key])))
                del self._questions[key]
        if not self._questions and self._asked is not None:
            self._asked.clear()


def retrieve_error(work: "asyncio.Task[Any]") -> None:
    """Take notice of how a call ended for which nobody waits any more."""
    if not work.cancelled():
        work.exception()


def make_full_refusal(wait: float) -> Refuse:
    """The refusal of a question for which there is no place; it says when the next one is free at the latest."""
    return Refuse(
        -31429,
        "Too many calls wait for an answer here: answer some first, or try again in "
        f"{math.ceil(wait)} s",
        {"retryAfterMs": int(wait * 1000) + 1},
    )


class ParkedCalls:
    """Calls that wait until their clients come again with answers.

    Args:
        most: how many there may be.
        most_of_owner: how many of them may be of one owner; whoever has not authenticated is one.
        ttl: seconds that each may wait.
    """

    def __init__(self, most: int, most_of_owner: int, ttl: float) -> None:
        self.set_limits(most, most_of_owner, ttl)
        self._calls: dict[str, tuple[ForwardedCall, asyncio.TimerHandle]] = {}

    def set_limits(self, most: int, most_of_owner: int, ttl: float) -> None:
        """Set the limits of calls that are parked from now on."""
        self._most, self._most_of_owner, self._ttl = most, most_of_owner, ttl

    def __len__(self) -> int:
        return len(self._calls)

    def park(self, call: ForwardedCall) -> InputRequiredResult:
        """Keep a call that asks, and return its questions.

        Raises:
            Refuse: there are too many; the call is given up.
        """
        self._drop_ended(call.owner)
        mine = [other for other, _ in self._calls.values() if other.owner == call.owner]
        full = [] if len(mine) < self._most_of_owner else mine
        if len(self._calls) >= self._most:
            full = full or [other for other, _ in self._calls.values()]
        if full or min(self._most, self._most_of_owner) <= 0:
            self._give_up(call)
            raise make_full_refusal(min((other.parked_s for other in full), default=self._ttl))
        handle, loop = os.urandom(16).hex(), asyncio.get_running_loop()
        call.parked_until = loop.time() + self._ttl
        timer = loop.call_at(call.parked_until, self._expire, handle)
        self._calls[handle] = (call, timer)
        return call.list_questions(handle)

    def _drop_ended(self, owner: str | None) -> None:
        """Make room where there is none: calls that have ended, as their server is gone, ask nobody any more."""
        is_full = len(self._calls) >= self._most
        calls = [
            (handle, call)
            for handle, (call, _) in self._calls.items()
            if is_full or call.owner == owner
        ]
        if is_full or len(calls) >= self._most_of_owner:
            for handle, call in calls:
                if call.has_ended:
                    self._expire(handle)

    def ask_again(self, handle: str, inbound: Inbound) -> InputRequiredResult | None:
        """The questions of a call once more, for a client that came without answers; it stays parked.

        Returns:
            None where nothing is asked any more: the call has ended meanwhile.

        Raises:
            Refuse: it is not here, or not this caller's.
        """
        call, _ = self._find(handle, inbound)
        return None if call.is_over else call.list_questions(handle)

    def _find(self, handle: str, inbound: Inbound) -> tuple[ForwardedCall, asyncio.TimerHandle]:
        found = self._calls.get(handle)
        # The handle came sealed to its owner, tool and arguments; this is the second lock.
        if found is None or found[0].owner != owner_of(inbound.principal):
            raise Refuse(-32603, LOST_CALL)
        return found

    def take(self, handle: str, inbound: Inbound, answers: Mapping[str, Any]) -> ForwardedCall:
        """The call that a client comes back to, with its answers given; nobody else gets it.

        Raises:
            Refuse: it is not here, or not this caller's.
        """
        call, timer = self._find(handle, inbound)
        del self._calls[handle]
        timer.cancel()
        call.parked_until = None
        call.take_answers(inbound, answers)
        return call

    def close(self) -> None:
        """Give all of them up."""
        for handle in list(self._calls):
            self._expire(handle)

    def _expire(self, handle: str) -> None:
        call, timer = self._calls.pop(handle)
        timer.cancel()
        self._give_up(call)

    def _give_up(self, call: ForwardedCall) -> None:
        if call.work is not None and not call.work.done():
            call.work.cancel()
