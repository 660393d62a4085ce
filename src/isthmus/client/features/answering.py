"""Answers of a client to its server: one table of handlers, whichever way a question came.

Up to 2025-11-25 a question is a request of the server's own and arrives through the router; since
2026-07-28 it lies in the result of our call and its answer goes into the next attempt. Both ways
lead through :meth:`Answering.respond`, where the limits are.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, structs

from isthmus.client.features.capabilities import declare_capabilities, limit_task_requests
from isthmus.client.features.elicitation import (
    Elicit,
    Elicitation,
    UrlPages,
    read_required_pages,
    refuse_elicitation,
)
from isthmus.client.features.roots import Roots, RootWatch
from isthmus.client.features.sampling import Sample, Sampling
from isthmus.client.model.limits import Limits
from isthmus.client.model.questions import (
    BadQuestion,
    QuestionOrigin,
    RequestGate,
    UndeclaredQuestion,
    record_origin,
)
from isthmus.client.model.relay import QuestionRelayed, RoundRelayed
from isthmus.errors import Misbehaved, UrlElicitationRequired, UsageError
from isthmus.revisions import METHODS, Revision, project
from isthmus.revisions.codes import url_required_code
from isthmus.runtime.inbound import Inbound
from isthmus.runtime.middleware import CallNext, Handler
from isthmus.tasks.shapes import accepts_as_task
from isthmus.wire import (
    RELATED_TASK,
    ClientCapabilities,
    ElicitationCapability,
    InputRequest,
    ListRootsParams,
    ListRootsResult,
    PingParams,
    SamplingCapability,
)
from isthmus.wire.jsonrpc import encode
from isthmus.wire.results import EmptyResult
from isthmus.wire.struct import Wire

Respond = Callable[[Any, Revision], Awaitable[Wire]]

# What a server may ask.
QUESTION_METHODS = ("elicitation/create", "sampling/createMessage", "roots/list")


class Answering:
    """The answers to every question a server may put.

    Args:
        elicit: asks the user; without it the client does not offer that.
        sample: has a model write; without it the client does not offer that.
        roots: where the server may work; None does not offer that.
        base: capabilities beyond those that follow from the arguments above.
        limits: how much the server may ask.
        watched: whether roots that are not there are left out.
        page_done: told of the id of each page that the server says is dealt with.

    Attributes:
        on_undeclared: told of the method of each question that was not declared to be answered.
        asked: how many questions there were.

    Raises:
        UsageError: a root cannot be one, or ``base`` declares what nothing here answers.
    """

    def __init__(
        self,
        elicit: Elicit | None = None,
        sample: Sample | None = None,
        roots: Roots | None = None,
        base: ClientCapabilities | None = None,
        *,
        limits: Limits | None = None,
        watched: bool = False,
        page_done: Callable[[str], None] | None = None,
    ) -> None:
        limits = limits or Limits()
        base = base or ClientCapabilities()
        self.pages = UrlPages(page_done)
        self.roots = None if roots is None else RootWatch(roots, watched=watched)
        self.on_undeclared: Callable[[str], None] = ignore_method
        self.asked = 0
        self.capabilities = declare_capabilities(base, elicit, sample, roots)
        self._limits = limits
        self._watched = watched
        self._table: dict[str, Respond] = {}
        if elicit is not None:
            modes = self.capabilities.elicitation or ElicitationCapability()
            asking = Elicitation(elicit, modes, self.pages.remember)
            self._table["elicitation/create"] = asking.answer
        if sample is not None:
            able = self.capabilities.sampling or SamplingCapability()
            self._table["sampling/createMessage"] = Sampling(
                sample, able, limits.conversation
            ).answer
        self._tasks = None
        if self.capabilities.tasks is not UNSET:
            # most clients have no use for it
            from isthmus.tasks.receiver import TaskAnswers

            self._tasks = TaskAnswers(limits)
        if roots is not None:
            self._table["roots/list"] = self.places
        self._gates = {
            "elicitation/create": RequestGate(
                "questions for the user",
                limits.elicitations,
                limits.elicitations_in_flight,
            ),
            "sampling/createMessage": RequestGate(
                "requests for a model", limits.samplings, limits.samplings_in_flight
            ),
        }
        self._gate = RequestGate("requests", limits.requests, limits.in_flight)

    def declare(self, capabilities: ClientCapabilities) -> None:
        """Declare less than there are handlers for: what each call states beyond that is answered, too."""
        tasks = self.capabilities.tasks
        if tasks:
            asks = bool(capabilities.elicitation), bool(capabilities.sampling)
            tasks = limit_task_requests(tasks, elicits=asks[0], samples=asks[1])
        self.capabilities = structs.replace(
            self.capabilities,
            elicitation=capabilities.elicitation,
            sampling=capabilities.sampling,
            roots=capabilities.roots,
            tasks=tasks,
        )

    def redirect(self, respond: Callable[[str, Any, Revision], Awaitable[Wire]]) -> None:
        """Have ``respond(method, params, revision)`` answer all that is declared, unchecked: a proxy."""
        for method in self._table:
            self._table[method] = partial(respond, method)

    @property
    def routes(self) -> dict[str, Handler]:
        """Handlers for questions that arrive as requests."""
        able = {method: self._make_route(method) for method in self._table}
        others = {
            method: self._make_refuser(method) for method in QUESTION_METHODS if method not in able
        }
        about_tasks = {} if self._tasks is None else self._tasks.routes
        return {"ping": answer_ping, **others, **able, **about_tasks}

    def _make_refuser(self, method: str) -> Handler:
        """Refuses a question that nobody here answers, which the server was told."""

        async def handle(params: Any, inbound: Inbound) -> Wire:
            self.on_undeclared(method)
            if method == "elicitation/create":
                return await refuse_elicitation(params, inbound)
            where = f"in revision {inbound.caller.revision.name}"
            raise UndeclaredQuestion(-32601, f"Method not found: {method} {where}")

        return handle

    def _make_route(self, method: str) -> Handler:
        tasks = self._tasks if accepts_as_task(self.capabilities.tasks, method) else None

        async def handle(params: Any, inbound: Inbound) -> Wire:
            task = params.meta.get(RELATED_TASK) if params.meta else None
            named = task.get("taskId") if isinstance(task, Mapping) else None
            asked = QuestionOrigin("request", inbound.caller.revision, str(named or ""))
            respond = partial(self.respond, method, params, inbound.caller.revision, asked)
            answer: Wire
            # spec 2025-11-25 basic/utilities/tasks#task-support-and-handling: MUST ignore the
            # metadata where the capability was not declared
            if tasks is None or params.task is UNSET:
                answer = await respond()
            else:
                answer = await tasks.begin(method, params.task, inbound, respond)
            if task is None:
                return answer
            # spec 2025-11-25 basic/utilities/tasks#related-task-metadata: MUST be in every message
            # associated with a task, answers to its questions included
            meta: Any = getattr(answer, "meta", UNSET) or {}
            return structs.replace(answer, meta={**meta, RELATED_TASK: task})

        return handle

    async def limit_requests(self, inbound: Inbound, call_next: CallNext) -> Wire | Raw:
        """Around every request of a server: not too many of them (a middleware)."""
        with self._gate:
            return await call_next(inbound)

    async def respond(
        self, method: str, params: Any, revision: Revision, asked: QuestionOrigin | None = None
    ) -> Wire:
        """The answer to one question, within the limits.

        Args:
            method: what is asked.
            params: the question.
            revision: the revision spoken.
            asked: how the question came; by default in the result of a call.

        Raises:
            BadQuestion: the server may not ask this, not in this way, or not that often.
        """
        self.asked += 1
        with (
            self._gates.get(method) or nullcontext(),
            record_origin(asked or QuestionOrigin("result", revision)),
        ):
            try:
                return await self._table[method](params, revision)
            except UndeclaredQuestion:
                self.on_undeclared(method)
                raise

    async def answer(
        self, question: InputRequest, revision: Revision, asked: QuestionOrigin | None = None
    ) -> Raw:
        """The answer to a question that arrived in a result, in the shape of the revision.

        Raises:
            Misbehaved: the server may not ask this, or asks it in the wrong shape.
        """
        if question.method not in self._table:
            # spec 2026-07-28 basic/patterns/mrtr#server-requirements-basic-workflow: servers MUST
            # NOT ask what the client has not declared
            self.on_undeclared(question.method)
            raise Misbehaved(
                f"the server asks {question.method!r}, which this client does not offer"
            )
        try:
            params = METHODS[question.method].decode_params(question.params or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Misbehaved(f"the server's question is malformed: {error}") from error
        try:
            answer = await self.respond(question.method, params, revision, asked)
        except BadQuestion as no:
            # spec 2026-07-28 client/sampling#error-handling: no error is sent, since nobody waits
            raise Misbehaved(f"the server's {question.method} is not answered: {no}") from no
        return Raw(encode(project(answer, revision)))

    async def answers(
        self, questions: Mapping[str, InputRequest], revision: Revision
    ) -> dict[str, Raw]:
        """The answers to all questions of one round, found at the same time.

        Raises:
            Misbehaved: the server may not ask one of them, or not so many.
            RoundRelayed: some of them were passed on, and are answered in a later round.
        """
        most = self._limits.in_flight
        if most is not None and len(questions) > most:
            raise Misbehaved(
                f"the server asks {len(questions)} things at once, and this client answers {most} "
                "(Limits.in_flight)"
            )
        works = [
            self._answer_or_relay(question, revision, QuestionOrigin("result", revision, key=key))
            for key, question in questions.items()
        ]
        if len(works) == 1:
            return split_round(questions, [await works[0]])
        tasks = [asyncio.ensure_future(work) for work in works]
        try:
            return split_round(questions, await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _answer_or_relay(
        self, question: InputRequest, revision: Revision, asked: QuestionOrigin
    ) -> Raw | InputRequest:
        """The answer to a question; or the question, where it was passed on."""
        try:
            return await self.answer(question, revision, asked)
        except QuestionRelayed as relayed:
            return relayed.request

    async def visit(self, error: UrlElicitationRequired, revision: Revision) -> bool:
        """Have the user open the pages that an error demands; False where nobody will.

        Returns when the server says that they are dealt with, or has not said so for long.

        Raises:
            Misbehaved: the error demands no pages.
        """
        modes = self.capabilities.elicitation
        if url_required_code(revision) != error.code or not modes or modes.url is UNSET:
            return False
        pages = read_required_pages(error)
        for page in pages:
            try:
                result: Any = await self.respond("elicitation/create", page, revision)
            except BadQuestion as no:
                raise Misbehaved(f"the pages of error {error.code} are not opened: {no}") from error
            if result.action != "accept":
                return False
        # spec 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation:
        # clients MAY wait for this notification to retry
        await self.pages.dealt_with(
            [page.elicitation_id for page in pages if page.elicitation_id], self._limits.page_wait
        )
        return True

    async def places(self, _params: ListRootsParams, _revision: Revision) -> ListRootsResult:
        """``roots/list``: where the server may work now."""
        return ListRootsResult(roots=[] if self.roots is None else await self.roots.now())

    async def move(self, roots: Roots) -> bool:
        """Change where the server may work; False where that is where it may work already.

        Raises:
            UsageError: a root cannot be one, or the client offers no roots.
        """
        if self.roots is None:
            raise UsageError("this client offers no roots: make it with roots=[] to add some later")
        before, after = self.roots, RootWatch(roots, watched=self._watched)
        was = await before.now()
        self.roots = after
        return was != await after.now()


def split_round(keys: Iterable[str], found: Iterable[Raw | InputRequest]) -> dict[str, Raw]:
    """The answers of a round by their keys.

    Raises:
        RoundRelayed: they are not all there.
    """
    answers: dict[str, Raw] = {}
    questions: dict[str, InputRequest] = {}
    for key, one in zip(keys, found, strict=True):
        if isinstance(one, InputRequest):
            questions[key] = one
        else:
            answers[key] = one
    if questions:
        raise RoundRelayed(questions, answers)
    return answers


def ignore_method(_method: str) -> None:
    """Nobody wants to know."""


async def answer_ping(_params: PingParams, _inbound: Inbound) -> EmptyResult:
    """``ping``: we are here."""
    return EmptyResult()
