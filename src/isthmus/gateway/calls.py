"""Calls of a gateway's clients: one call of a client, on its way through the host's pipeline."""

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from msgspec import Raw, structs

from isthmus.bridge.forwarded import ForwardedCall
from isthmus.bridge.upstream import asks_in_result
from isthmus.client.connection import PASSED_LOG_LEVEL, PASSED_META
from isthmus.client.model.questions import QUESTION_ORIGIN, BadQuestion
from isthmus.client.model.relay import CONTINUED_ROUND
from isthmus.gateway.logs import HOST_LEVEL, find_level
from isthmus.gateway.traffic import shorten_name
from isthmus.host.model.calling_client import Answerer, WaitingApproval
from isthmus.host.policy.profiles import PROFILE
from isthmus.wire import ClientCapabilities, InputRequest, LogLevel, ProgressParams
from isthmus.wire.jsonrpc import encode
from isthmus.wire.struct import Wire

if TYPE_CHECKING:
    from isthmus.client.model.relay import ContinuedRound
    from isthmus.client.tasks import ToolTask
    from isthmus.gateway.approvals.waiting import ApprovalWaiting
    from isthmus.gateway.relay import RelayedRound
    from isthmus.gateway.tasks import CallTask
    from isthmus.host.model.round_proof import RoundProof
    from isthmus.server.asking.notifications import CallNotifications

ENDED_CALL = "The call in whose course this was asked has ended: nobody is asked any more"


class CallContext:
    """The context of a call, in which its requests to servers are made; it is entered once.

    Args:
        call: whose it is.
        profile: the profile that it is made through; empty for none.
    """

    __slots__ = ("_call", "_profile", "_tokens")

    def __init__(self, call: "GatewayCall", profile: str) -> None:
        self._call = call
        self._profile = profile
        self._tokens: list[tuple[ContextVar[Any], Token[Any]]] = []

    def __enter__(self) -> None:
        call, level = self._call, self._call.log_level
        self._set(PASSED_META, call.meta)
        if self._profile:
            self._set(PROFILE, self._profile)
        if level != HOST_LEVEL:
            self._set(PASSED_LOG_LEVEL, level)
        if call.continued is not None:
            call.continued.is_over = (
                False  # made once more: its user had to connect an account first
            )
            self._set(CONTINUED_ROUND, call.continued)

    def _set(self, variable: ContextVar[Any], value: Any) -> None:
        self._tokens.append((variable, variable.set(value)))

    def __exit__(self, *error: object) -> None:
        if self._call.continued is not None:
            self._call.continued.is_over = True  # tasks begun meanwhile have a copy of this context
        for variable, token in self._tokens:
            variable.reset(token)


class GatewayCall(ForwardedCall):
    """One call of a client; what is asked in its course goes back to that client.

    Attributes:
        answerers: those who may answer what is asked in its course, the first who can.
        task: the task that it is or may become; None where it stays a call.
        target: the server and its own name of what is called, once they are found.
        failure: the error that its client is told of as a result.
        edited: the arguments that a person put in place of the client's; None where nobody did.
        left: what its round before has left; None in the first one.
        continued: what came back of that to the server behind.
        given: answers that came before their questions, by the keys that the server behind gives them.
    """

    __slots__ = (
        "_approvals", "_has_ended", "_puts", "_said", "answerers", "continued", "edited", "failure", "given",
        "left", "target", "task",
    )  # fmt: skip

    def __init__(
        self,
        *given: Any,
        approvals: "ApprovalWaiting | None" = None,
        answerers: Sequence[Answerer] = ("client", "gateway"),
    ) -> None:
        super().__init__(*given)
        self.answerers = answerers
        self._has_ended = False
        self._puts: set[asyncio.Task[Wire]] = set()
        self.target: tuple[str, str] = ("", "")
        self.failure: BaseException | None = None
        self._approvals = approvals
        self.edited: Mapping[str, Any] | None = None
        self.left: RelayedRound | None = None
        self.continued: ContinuedRound | None = None
        self.given: dict[str, Any] = {}
        self._said: float | None = None
        self.task: CallTask | None = None

    @property
    def capabilities(self) -> ClientCapabilities:
        """The capabilities that the client declared for this very call."""
        return self.inbound.caller.capabilities

    @property
    def introduction(self) -> tuple[str, str]:
        """The name and version that the client gives itself, and the revision that it speaks."""
        caller = self.inbound.caller
        info = caller.info
        said = "" if info is None else shorten_name(f"{info.name} {info.version}")
        return said, caller.revision.name

    @property
    def session(self) -> object:
        """The session that it belongs to; None since 2026-07-28, where there are none."""
        return None if asks_in_result(self.inbound.caller.revision) else self.inbound.link

    @property
    def log_level(self) -> LogLevel:
        """The level of log messages that the server is to be asked for."""
        return find_level(self.inbound.caller)

    # Rounds between two sides since 2026-07-28

    @property
    def proof(self) -> "RoundProof | None":
        """What proves that its round before was let through; None in the first one."""
        left, continued = self.left, self.continued
        if left is None or continued is None:
            return None
        return structs.replace(left.proof, answered=continued.list_actions())

    def relay(self, method: str, params: Any) -> InputRequest | None:
        """Pass a question on with the result, where that ends the call; None where it waits for answers.

        Raises:
            BadQuestion: the client cannot be asked this.
        """
        if self.is_task or not asks_in_result(self.inbound.caller.revision):
            return None
        if self._has_ended:
            raise BadQuestion(-32603, ENDED_CALL)
        if find_key() in self.given:
            return None
        return self.make_request(method, self.check_question(method, params))

    async def put(self, method: str, params: Any) -> Wire:
        """Put a question to the client, for as long as the call lasts in whose course it is asked.

        Raises:
            BadQuestion: it cannot be asked this, or its call has ended.
            Refuse: it refused to answer.
        """
        if self._has_ended:
            raise BadQuestion(-32603, ENDED_CALL)
        asking = asyncio.ensure_future(super().put(method, params))
        self._puts.add(asking)
        try:
            return await asking
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # whoever asks has gone
            raise BadQuestion(-32603, ENDED_CALL) from None
        finally:
            self._puts.discard(asking)
            asking.cancel()

    def end_questions(self) -> None:
        """The call is over, however: what it asked is asked no more."""
        self._has_ended = True
        for asking in list(self._puts):
            asking.cancel()

    def tell_page_done(self, id: str) -> None:
        """Tell the client that a page is dealt with that it was sent to (2025-11-25)."""
        self._settings.changes.announce_page_done(id)

    @property
    def takes_progress(self) -> bool:
        """Whether the client gave a progress token."""
        return self.inbound.progress_token is not None

    @property
    def takes_task(self) -> bool:
        """Whether its call is a task, or may become one."""
        return self.task is not None

    def say(self, message: str) -> None:
        """Tell the client of progress in words, where it gave a progress token."""
        # spec 2026-07-28 basic/patterns/progress: the value MUST increase with each notification
        self._said = 0.0 if self._said is None else self._said + 0.001
        self.report(ProgressParams(progress_token="", progress=self._said, message=message))

    def pass_progress(self, params: ProgressParams) -> None:
        """Pass on what the server behind reports."""
        if self.task is not None and self.task.job is None and params.message:
            self.task.words = params.message
        if self._said is None or params.progress > self._said:
            self._said = params.progress
            self.report(params)

    async def wait_approval(self, approval: WaitingApproval) -> str:
        """Keep the client waiting until a person has decided, for as long as it bears that."""
        return "" if self._approvals is None else await self._approvals.wait(self, approval)

    def tell_edited(self, arguments: Mapping[str, Any]) -> None:
        """Tell it, with the result, of the arguments that a person put in place of its own."""
        self.edited = arguments

    # As a task

    @property
    def is_task(self) -> bool:
        """Whether it has been answered with a task, which has its result in the end."""
        return self.task is not None and self.task.job is not None

    async def become_task(self, message: str = "") -> bool:
        """Go on as a task, where the client has them and it is none yet: it waits for nothing then.

        Args:
            message: the status in words.

        Returns:
            Whether it is a task now.

        Raises:
            Refuse: there are too many.
        """
        task = self.task
        if task is None:
            return False
        if task.job is None:
            await super().finish_notes()
            await task.begin(self, self._settings.limiters)
            if self._asked is not None:  # whoever waits for questions gets this as the answer
                self._asked.set()
        message = message or task.words
        if message and task.job is not None:
            task.job.tell(message)
        return True

    async def follow_task(self, behind: "ToolTask") -> None:
        """The server behind runs it as a task of its own, which may take as long as it takes."""
        if self.task is not None:
            behind.on_state = self.task.hear
            await self.become_task()

    async def wait(self) -> Any:
        """Wait until it is done or something is asked, or until it is a task."""
        result = await super().wait()
        return result if self.task is None else self.task.created or result

    async def finish_notes(self) -> None:
        """Say all that is to be said: the answer follows."""
        task = self.task
        if task is None or task.notes is None:
            await super().finish_notes()
            return
        try:
            await task.notes.finish()
        finally:
            task.notes.close()

    def _open_notes(self) -> "CallNotifications":
        if self.task is not None and self.task.notes is not None:
            return self.task.notes
        return super()._open_notes()

    async def _ask_directly(self, method: str, params: Any) -> Raw:
        if self.task is not None and self.task.job is not None:
            return await self.task.ask(method, params)
        return await super()._ask_directly(method, params)

    async def _ask_in_result(self, method: str, params: Any) -> Raw:
        if self.task is not None and self.task.job is not None:
            return await self.task.ask(method, params)
        # once: where it does not do, the server asks again by the same key
        given = self.given.pop(find_key(), None)
        if given is not None:
            return Raw(encode(given))
        return await super()._ask_in_result(method, params)


def find_key() -> str:
    """The key of the question that is being put, where it lay in a result."""
    asked = QUESTION_ORIGIN.get()
    return "" if asked is None else asked.key
