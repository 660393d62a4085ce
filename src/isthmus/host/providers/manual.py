"""Manual provider: a person writes the answer, and no model is asked."""

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, structs

from isthmus.core.sampling import find_result_flaw
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import Denied
from isthmus.host.model.interaction import Decision, Interaction, SamplingWritten
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.pipeline import CURRENT_ATTEMPT
from isthmus.host.providers.provider import Completion, Delta, Done, Offered, ProviderBroke
from isthmus.runtime.sorted_ids import new_id
from isthmus.wire import CreateMessageParams, CreateMessageResult, TextContent

# a broker's ask: puts a question to a person
AskPerson: TypeAlias = Callable[[Interaction], Awaitable[Decision]]

WRITE_TIMEOUT_S = 600.0


class Manual:
    """Provider that shows a person the conversation, and answers with what they write.

    Args:
        ask: puts the question.
        name: what models name the provider by.
        models: what it says it has.
        patience: seconds that a person has to write.
        clock: says the seconds since the epoch.
    """

    by_hand = True  # a person has seen what comes from here

    def __init__(
        self,
        ask: AskPerson,
        *,
        name: str = "manual",
        models: Sequence[str] = ("by-hand",),
        patience: float = WRITE_TIMEOUT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.name = name
        self._ask = ask
        self._models = models
        self._patience = patience
        self._clock = clock

    async def complete(self, completion: Completion) -> AsyncGenerator[Delta | Done, None]:
        """The text that a person writes in place of a model.

        Args:
            completion: the request: model, conversation and limits.

        Raises:
            Denied: they do not want to.
            ProviderBroke: what they wrote is nothing that a model writes.
        """
        blank = CreateMessageResult(
            role="assistant",
            content=TextContent(text=""),
            model=completion.model,
            stop_reason="endTurn",
        )
        params = make_params(completion)
        decision = await self._ask(self._make_question(params, blank))
        if decision.verdict != "allow":
            raise Denied("nobody wants to write this", by=decision.by, verdict=decision.verdict)
        result = self._read_result(blank, decision.edited)
        wrong = find_result_flaw(params, result)
        if wrong:
            raise ProviderBroke(f"what was written by hand cannot be sent: {wrong}")
        if isinstance(result.content, TextContent) and result.content.text:
            yield Delta(result.content.text)
        yield Done(result=result)

    async def models(self) -> Sequence[Offered]:
        """The names it was made with."""
        return [Offered(id=name) for name in self._models]

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _make_question(
        self, params: CreateMessageParams, blank: CreateMessageResult
    ) -> Interaction:
        now = self._clock()
        parent = CURRENT_ATTEMPT.get()
        attempt = Attempt(id=new_id(), action="sampling.respond", principal="user:local", server="")
        if parent is not None:
            attempt = structs.replace(
                parent, id=attempt.id, action="sampling.respond", parent=parent.id, arguments={}
            )
        return Interaction(
            id=new_id(),
            attempt=attempt,
            payload=SamplingWritten(params=params, result=blank),
            trace=Trace(
                effect="ask", rule=self.name, reason="the answer is yours to write: edit it"
            ),
            opened=now,
            deadline=now + self._patience,
        )

    @staticmethod
    def _read_result(blank: CreateMessageResult, edited: Any) -> CreateMessageResult:
        if edited is UNSET:
            raise ProviderBroke("nothing was written by hand: edit the answer before you allow it")
        given: Any = msgspec.to_builtins(edited)
        if isinstance(given, str):
            given = {"content": {"type": "text", "text": given}}
        try:
            whole = {**msgspec.to_builtins(blank), **given}
            return msgspec.convert(whole, CreateMessageResult)
        except (msgspec.ValidationError, TypeError) as error:
            raise ProviderBroke(f"what was written by hand is no message: {error}") from error


def make_params(completion: Completion) -> CreateMessageParams:
    """Make the protocol's parameters of a completion."""
    return CreateMessageParams(
        messages=list(completion.messages),
        max_tokens=completion.max_tokens,
        system_prompt=completion.system or UNSET,
        temperature=UNSET if completion.temperature is None else completion.temperature,
        stop_sequences=list(completion.stop) or UNSET,
        tools=list(completion.tools) or UNSET,
        tool_choice=completion.tool_choice or UNSET,
    )
