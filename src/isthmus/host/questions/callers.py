"""Answers of calling clients: what a server asks in the course of a gateway's call goes back to its client.

Each question passes the pipeline as an attempt of the server's, as those do that the host answers itself.
The client's own host asks its user, so nobody else is asked for consent, unless a rule demands an
assurance that no client can give.
"""

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, structs

from isthmus.client.model.questions import BadQuestion
from isthmus.client.model.relay import QuestionRelayed
from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.encoding import is_same_json
from isthmus.errors import Refuse
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments, Denied, Exhausted
from isthmus.host.model.events import HostNotice
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision, Payload, RootsAsked, SamplingAsked
from isthmus.host.model.trace import Trace, rank_assurance
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.questions.elicitation import FormAct, PageAct, find_secrets
from isthmus.revisions.codes import LIMITED_CODE
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.wire import CreateMessageParams, ElicitParams, InputRequest, ListRootsParams, Root

if TYPE_CHECKING:
    from isthmus.client.features.sampling import Sampled
    from isthmus.host.model.calling_client import CallingClient, CallingClients
    from isthmus.host.pipeline.pipeline import Pipeline

T = TypeVar("T")

CALLER_QUESTION_RATE = Rate(600, seconds=60)  # of one server to the clients of one principal
REJECTED_CODE = -1


class RelayedQuestion(Struct, frozen=True):
    """What stands for the answer where a client gives it in a later round of its call.

    Attributes:
        request: the question, as the client gets it.
    """

    request: InputRequest


ACTION_NAMES: Mapping[type, str] = {
    Accepted: "accept",
    Declined: "decline",
    Cancelled: "cancel",
    RelayedQuestion: "relayed",
}


class CallerAnswers:
    """Puts questions of servers to the clients in the course of whose calls they are asked.

    Args:
        pipeline: what every question passes.
        clients: keeps the pages that clients were sent to.
        rate: how many questions of one server the clients of one principal get.
        clock: says the time in seconds, for the rate.
    """

    def __init__(
        self,
        pipeline: "Pipeline",
        clients: "CallingClients",
        *,
        rate: Rate = CALLER_QUESTION_RATE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._clients = clients
        self._meter = MemoryMeter(rate, clock=clock)

    async def elicit(
        self, asking: ServerQuestion, client: "CallingClient", params: ElicitParams
    ) -> Answer[Any]:
        """The answer of the client's user to a form or a page."""
        try:
            self._count(asking)
            if params.mode == "url":
                return await self._visit(asking, client, params)
            arguments = {
                "message": params.message,
                "requestedSchema": params.requested_schema or {},
            }
            secrets = find_secrets(params)
            if secrets:
                arguments["secrets"] = secrets
            attempt = asking.attempt("elicit.form", "", arguments)
            return await self._ask(asking, attempt, CallerFormAct(asking, client, params, secrets))
        except Denied as error:
            # spec 2026-07-28 client/elicitation#response-actions: no and turning away are two
            return Cancelled() if error.verdict == "cancel" else Declined()
        except Exhausted as error:
            self._report_strike(asking, str(error))
            return Cancelled()

    async def _visit(
        self, asking: ServerQuestion, client: "CallingClient", params: ElicitParams
    ) -> Answer[Any]:
        own = os.urandom(16).hex()
        if params.elicitation_id:
            where = asking.entry.name, asking.isolation, params.elicitation_id
            self._clients.keep_page(*where, client, own)
        # The id is ours: two servers may give the same one.
        shown = structs.replace(params, elicitation_id=own)
        url = str(params.url)
        attempt = asking.attempt("elicit.url", url, {"message": params.message, "url": url})
        return await self._ask(asking, attempt, CallerPageAct(asking, client, shown))

    async def sample(
        self, asking: ServerQuestion, client: "CallingClient", params: CreateMessageParams
    ) -> "Sampled":
        """What the client's model wrote; ``Declined()`` where policy or its user says no.

        Raises:
            Refuse: it did not answer.
            BadQuestion: it is asked too often.
        """
        declared = client.capabilities.sampling
        if declared is not UNSET and declared.context is UNSET:
            # spec 2025-11-25 client/sampling#capabilities: only with sampling.context
            params = structs.replace(params, include_context=UNSET)
        attempt = asking.attempt("sampling.request", "", spell_request(params))
        try:
            self._count(asking)
            return await self._ask(asking, attempt, CallerSamplingAct(asking, client, params))
        except Denied:
            return Declined()
        except Exhausted as error:
            self._report_strike(asking, str(error))
            raise BadQuestion(LIMITED_CODE, str(error)) from error

    async def list_roots(self, asking: ServerQuestion, client: "CallingClient") -> list[Root]:
        """The folders that the client tells; none where policy says no.

        Raises:
            Refuse: it did not answer.
        """
        attempt = asking.attempt("roots.expose", asking.entry.name, {"roots": []})
        try:
            self._count(asking)
            return await self._ask(asking, attempt, CallerRootsAct(asking, client))
        except Denied:
            return []
        except Exhausted as error:
            self._report_strike(asking, str(error))
            raise BadQuestion(LIMITED_CODE, str(error)) from error

    async def _ask(self, asking: ServerQuestion, attempt: Attempt, act: Act[T]) -> T:
        """Ask the client, whose call takes no place at its server meanwhile.

        Raises:
            IsthmusError: it was not asked, or did not answer.
            QuestionRelayed: it answers in a later round.
        """
        pipeline, parent = self._pipeline, asking.parent
        at = pipeline.flying.at(asking.entry.name, asking.isolation)  # it is of one of them
        with pipeline.limits.lend_place(at if parent is None else (parent,)):
            return check_answered(await pipeline.run(attempt, act))

    def _count(self, asking: ServerQuestion) -> None:
        # spec 2025-11-25 client/elicitation#security-considerations: SHOULD implement rate limiting
        whose = "" if asking.parent is None else asking.parent.principal
        wait = self._meter.spend(f"{asking.entry.name} {whose}")
        if wait:
            raise Exhausted(
                f"server {asking.entry.name!r} asks the clients of {whose or 'a gateway'} more often "
                "than it may",
                retry_after=wait,
            )

    def _report_strike(self, asking: ServerQuestion, text: str) -> None:
        self._pipeline.events.tell(HostNotice(about="strike", server=asking.entry.name, text=text))


async def put_question(
    asking: ServerQuestion, client: "CallingClient", method: str, params: Any
) -> Any:
    """Put a question to a client: its answer, or a ``RelayedQuestion`` where that comes in a later round.

    Raises:
        BadQuestion: it cannot be asked this.
        Refuse: it refused to answer.
    """
    # Where the server keeps nothing while it asks, there is nothing to be kept here. A page that an
    # error of 2025-11-25 demands is named by no key: it is opened before the call is made again.
    if asking.origin == "result" and asking.key:
        request = client.relay(method, params)
        if request is not None:
            return RelayedQuestion(request)
    return await client.put(method, params)


def check_answered(answer: T) -> T:
    """An answer, which the server gets in this round.

    Raises:
        QuestionRelayed: it comes in a later one.
    """
    if isinstance(answer, RelayedQuestion):
        raise QuestionRelayed(answer.request)
    return answer


def demands_more(trace: Trace) -> bool:
    """Whether a rule asks for somebody of whom one is surer than of the user of a client."""
    wanted = rank_assurance(trace.obligations.assurance)
    return trace.effect == "ask" and wanted > rank_assurance("client_elicitation")


class CallerFormAct(FormAct):
    """A form that the user of a client fills in; at the gateway, where a rule is not content with that.

    Args:
        asking: who asks.
        client: whose user is asked.
        params: the question.
        secrets: fields that ask for what no form may ask for.
    """

    by_client = True

    def __init__(
        self,
        asking: ServerQuestion,
        client: "CallingClient",
        params: ElicitParams,
        secrets: list[str],
    ) -> None:
        super().__init__(asking, params, secrets)
        self._client = client

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """Whether a rule wants more assurance than a client gives."""
        return demands_more(trace)

    async def dispatch(self, attempt: Attempt) -> Answer[Any]:
        """Ask the client, unless a person at the gateway has filled it in."""
        if "content" in attempt.arguments:
            return Accepted(attempt.arguments["content"])
        answer: Answer[Any] = read_answer(
            await put_question(self.asking, self._client, "elicitation/create", self.params)
        )
        return answer

    def outcome(self, result: Answer[Any]) -> ActOutcome:
        """The action of the client's user."""
        return ActOutcome(detail={"action": ACTION_NAMES[type(result)], "by": "client"})


class CallerPageAct(PageAct):
    """A page that the user of a client is sent to.

    Args:
        asking: who asks.
        client: whose user it is.
        params: the question.
    """

    by_client = True

    def __init__(
        self, asking: ServerQuestion, client: "CallingClient", params: ElicitParams
    ) -> None:
        super().__init__(asking, params, lambda _url: False)
        self._client = client

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """Whether a rule wants more assurance than a client gives."""
        return demands_more(trace)

    async def dispatch(self, attempt: Attempt) -> Any:  # noqa: ARG002 - as Act has it
        """Ask the client; nothing here looks at the page."""
        return read_answer(
            await put_question(self.asking, self._client, "elicitation/create", self.params)
        )

    def outcome(self, result: Any) -> ActOutcome:
        """The action of the client's user."""
        return ActOutcome(detail={"action": ACTION_NAMES[type(result)], "by": "client"})


class CallerAct(Act[Any]):
    """A question that goes to a client as it is.

    Args:
        asking: who asks.
        client: who answers.
    """

    by_client = True

    def __init__(self, asking: ServerQuestion, client: "CallingClient") -> None:
        self.asking = asking
        self.client = client

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as Act has it
        """The facts of the server for policy."""
        options = self.asking.entry.options
        return Facts(
            identity=self.asking.identity,
            trust=options.trust,
            labels=self.asking.labels,
            target=options.labels,
            era=self.asking.revision,
            transport=self.asking.entry.kind,
            cwd=self.asking.entry.cwd,
        )

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as Act has it
        """Whether a rule wants more assurance than a client gives."""
        return demands_more(trace)

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt as it was.

        Raises:
            BadArguments: a person wanted something else than what would be asked.
        """
        if decision.edited is UNSET or is_same_json(decision.edited, attempt.arguments):
            return attempt
        raise BadArguments("what a gateway's client is asked can be allowed or not, and not edited")


class CallerSamplingAct(CallerAct):
    """A request for the model of a client.

    Args:
        asking: who asks.
        client: who answers.
        params: the request.
    """

    def __init__(
        self, asking: ServerQuestion, client: "CallingClient", params: CreateMessageParams
    ) -> None:
        super().__init__(asking, client)
        self._params = params

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """The request; which model answers it is for the client to choose."""
        return SamplingAsked(params=self._params, model="", selection=("the client's own",))

    async def dispatch(self, attempt: Attempt) -> Any:  # noqa: ARG002 - as Act has it
        """Ask the client."""
        try:
            return await put_question(
                self.asking, self.client, "sampling/createMessage", self._params
            )
        except Refuse as no:
            # spec 2025-11-25 client/sampling#error-handling: -1 where the user rejects it
            if no.code != REJECTED_CODE:
                raise
            return Declined()

    def outcome(self, result: Any) -> ActOutcome:
        """The message of the client's model."""
        if isinstance(result, Declined | RelayedQuestion):
            return ActOutcome(detail={"action": ACTION_NAMES[type(result)], "by": "client"})
        return ActOutcome(
            result=msgspec.to_builtins(result), model=result.model, detail={"by": "client"}
        )


class CallerRootsAct(CallerAct):
    """A request for the folders of a client."""

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:  # noqa: ARG002 - as Act has it
        """No folders: nobody here knows them yet."""
        return RootsAsked(roots=())

    async def dispatch(self, attempt: Attempt) -> Any:  # noqa: ARG002 - as Act has it
        """Ask the client."""
        answer = await put_question(self.asking, self.client, "roots/list", ListRootsParams())
        return answer if isinstance(answer, RelayedQuestion) else list(answer.roots)

    def outcome(self, result: Any) -> ActOutcome:
        """The folders that the server is told."""
        if isinstance(result, RelayedQuestion):
            return ActOutcome(detail={"action": ACTION_NAMES[type(result)], "by": "client"})
        return ActOutcome(detail={"roots": [root.uri for root in result], "by": "client"})


def spell_request(params: CreateMessageParams) -> dict[str, Any]:
    """A request for a model as plain data, as the protocol spells it, for policy and the audit log."""
    plain: dict[str, Any] = msgspec.to_builtins(structs.replace(params, meta=UNSET, task=UNSET))
    return plain


def read_answer(result: Any) -> Any:
    """The answer of a user, of a client's ``ElicitResult``; a question that was passed on as it is."""
    if isinstance(result, RelayedQuestion):
        return result
    if result.action == "accept":
        return Accepted(result.content or None)
    return Declined() if result.action == "decline" else Cancelled()
