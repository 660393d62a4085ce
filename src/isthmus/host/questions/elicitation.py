"""Elicitation: servers ask the user to fill in a form, or to open a page.

Each question passes the pipeline as an attempt of the server's. Policy may refuse it; nobody but a
person says yes, since a form is filled in by somebody, and a page is opened for somebody.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, structs

from isthmus.client.features.elicitation import concerns, fill_form
from isthmus.client.model.callbacks import maybe_await
from isthmus.client.model.questions import BadQuestion
from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.elicitation import spell_host
from isthmus.core.text import find_mixed_scripts
from isthmus.errors import Misbehaved, UsageError
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments, Denied, Exhausted
from isthmus.host.model.events import HostEvents, HostNotice
from isthmus.host.model.facts import Facts
from isthmus.host.model.interaction import Decision, FormAsked, PageAsked
from isthmus.host.model.trace import Trace
from isthmus.host.pipeline.acts.act import Act, ActOutcome
from isthmus.host.pipeline.pipeline import Pipeline
from isthmus.host.questions.answers import ServerQuestion
from isthmus.host.questions.secret_fields import find_secret_fields
from isthmus.store.meter import MemoryMeter, Rate
from isthmus.wire import ElicitParams

Opener: TypeAlias = Callable[[str], Awaitable[bool] | bool]
"""Opens a page for the user; False where that cannot be done here."""

QUESTION_RATE = Rate(30, seconds=60)  # of one server
MAX_FORM_FIELDS = 200
MAX_QUESTION_BYTES = 256 * 1024  # with its form
ADDRESS_PATTERN = re.compile(r"https?://", re.IGNORECASE)
OPENED_TEXT = "it has been opened: say yes when you are done there"
NOT_OPENED_TEXT = (
    "it could not be opened here: open it yourself, and say yes when you are done there"
)


class Elicitor:
    """Answers what servers ask the user.

    Args:
        pipeline: what every question passes.
        opener: opens a page once the user has agreed; their browser by default.
        rate: how many questions one server may ask.
        events: tells what the user should see besides.
        clock: says the time in seconds, for the rate.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        opener: Opener | None = None,
        rate: Rate = QUESTION_RATE,
        events: HostEvents | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._opener = opener or open_in_browser
        self._meter = MemoryMeter(rate, clock=clock)
        self._events = events or pipeline.events

    async def answer(self, asking: ServerQuestion, params: ElicitParams) -> Answer[Any]:
        """Answer a server's question with what the user says.

        Who is refused by policy or says no has declined; where nobody answers, or the server asks
        too often, it is cancelled.

        Args:
            asking: who asks, and in the course of what.
            params: the question; its form is one that may be put to a user.

        Raises:
            BadQuestion: nobody could read or fill in so much.
            BadArguments: what a surface gave does not fit the form.
            AuditUnavailable: what is done cannot be written down.
        """
        try:
            await self._count(asking)
            self._measure(asking, params)
            if params.mode == "url":
                return await self._visit(asking, params)
            return await self._fill_in(asking, params)
        except Denied as error:
            # spec 2026-07-28 client/elicitation#response-actions: no and turning away are two
            nobody = error.by == "policy" and not self._pipeline.broker.attended
            return Cancelled() if nobody or error.verdict == "cancel" else Declined()
        except Exhausted as error:
            self._notice("strike", str(error), asking)
            return Cancelled()

    def completed(self, server: str, id: str) -> None:
        """Tell that a server says the user is done with a page (2025-11-25).

        Args:
            server: which.
            id: the page's, as the server gave it.
        """
        text = f"the page {id!r} is dealt with, as the server says"
        self._events.tell(HostNotice(about="page", text=text, server=server))

    async def _count(self, asking: ServerQuestion) -> None:
        # spec 2025-11-25 client/elicitation#security-considerations: SHOULD implement rate limiting
        wait = await self._meter.take(asking.entry.name)
        if wait:
            raise Exhausted(
                f"server {asking.entry.name!r} asks the user more often than it may",
                retry_after=wait,
            )

    def _measure(self, asking: ServerQuestion, params: ElicitParams) -> None:
        """See that the question is one that a person can read.

        Raises:
            BadQuestion: it is not.
        """
        fields = len((params.requested_schema or {}).get("properties", {}))
        size = len(msgspec.json.encode(params))
        wrong = ""
        if fields > MAX_FORM_FIELDS:
            wrong = f"the form has {fields} fields, and {MAX_FORM_FIELDS} are the most"
        elif size > MAX_QUESTION_BYTES:
            wrong = f"the question has {size} bytes, and {MAX_QUESTION_BYTES} are the most"
        if wrong:
            self._notice(
                "strike", f"a question of {asking.entry.name} was not asked: {wrong}", asking
            )
            raise BadQuestion(-32602, f"Invalid params: {wrong}")

    async def _fill_in(self, asking: ServerQuestion, params: ElicitParams) -> Answer[Any]:
        arguments = {"message": params.message, "requestedSchema": params.requested_schema or {}}
        secrets = find_secrets(params)
        if secrets:
            arguments["secrets"] = secrets
        return await self._pipeline.run(
            asking.attempt("elicit.form", "", arguments), FormAct(asking, params, secrets)
        )

    async def _visit(self, asking: ServerQuestion, params: ElicitParams) -> Answer[Any]:
        url = str(params.url)
        arguments = {"message": params.message, "url": url}
        act = PageAct(asking, params, self._opener)
        opened = await self._pipeline.run(asking.attempt("elicit.url", url, arguments), act)
        # By an id the server tells when the user is done; a request of its own it waits for itself.
        if opened and (asking.origin != "result" or params.elicitation_id):
            return Accepted(None)
        # spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: SHOULD provide manual
        # controls to retry or cancel the request, since nobody tells us that the user is done
        waiting = PageDoneAct(asking, params, OPENED_TEXT if opened else NOT_OPENED_TEXT)
        arguments = {**arguments, "opened": opened}
        await self._pipeline.run(asking.attempt("elicit.url", url, arguments), waiting)
        return Accepted(None)

    def _notice(self, about: str, text: str, asking: ServerQuestion) -> None:
        self._events.tell(HostNotice(about=about, text=text, server=asking.entry.name))


class ElicitationAct(Act[Any]):
    """The act of a form or a page: a person is asked, whatever policy allows.

    Args:
        asking: who asks.
        params: the question.
    """

    def __init__(self, asking: ServerQuestion, params: ElicitParams) -> None:
        self.asking = asking
        self.params = params

    def facts(self, attempt: Attempt) -> Facts:  # noqa: ARG002 - as the pipeline calls it
        """The facts of the server for policy."""
        options = self.asking.entry.options
        return Facts(
            identity=self.asking.identity,
            trust=options.trust,
            labels=self.asking.labels,
            target=options.labels,
            era=self.asking.revision,
            transport=self.asking.entry.kind,
        )

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - as it is called
        """Always: nobody else can answer."""
        return True

    def outcome(self, result: Any) -> ActOutcome:  # noqa: ARG002 - what was said is in the decision
        """That the user agreed; what they wrote is theirs and the server's."""
        return ActOutcome(detail={"action": "accept"})


class FormAct(ElicitationAct):
    """A form that somebody fills in.

    Args:
        asking: who asks.
        params: the question.
        secrets: fields that ask for what no form may ask for.
    """

    def __init__(self, asking: ServerQuestion, params: ElicitParams, secrets: list[str]) -> None:
        super().__init__(asking, params)
        self._secrets = secrets

    def payload(self, attempt: Attempt, trace: Trace) -> FormAsked:  # noqa: ARG002 - as called
        """The question, and what is odd about it."""
        return FormAsked(params=self.params, concerns=tuple(self._concerns()))

    def _concerns(self) -> Iterator[str]:
        for name in self._secrets:
            # spec 2026-07-28 client/elicitation#form-mode-security: servers MUST NOT ask for those
            yield f"{name} looks like a secret, which no server may ask for in a form: decline it"
        if ADDRESS_PATTERN.search(self.params.message):
            yield "the question has a web address in it, which does not belong into a form"
        scripts = find_mixed_scripts(self.params.message)
        if scripts:
            yield f"the question has letters of {scripts}, which look alike"

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt with what was filled in, which is what is sent."""
        content = {} if decision.edited is UNSET else decision.edited
        try:
            # spec 2026-07-28 client/elicitation#form-mode-security: SHOULD validate all responses
            fitting = fill_form(content, self.params.requested_schema or {})
        except (Misbehaved, UsageError) as error:
            raise BadArguments(str(error)) from None
        return structs.replace(attempt, arguments={**attempt.arguments, "content": fitting})

    async def dispatch(self, attempt: Attempt) -> Answer[Any]:
        """Send the content to the server."""
        return Accepted(attempt.arguments["content"])


class PageAct(ElicitationAct):
    """A page that is opened for the user, who alone looks at it.

    Args:
        asking: who asks.
        params: the question.
        opener: opens it.
    """

    def __init__(self, asking: ServerQuestion, params: ElicitParams, opener: Opener) -> None:
        super().__init__(asking, params)
        self._opener = opener

    def payload(self, attempt: Attempt, trace: Trace) -> PageAsked:  # noqa: ARG002 - as called
        """The page, its host in both spellings, and what is odd about it."""
        url = str(self.params.url)
        host = describe_host(url)
        return PageAsked(params=self.params, host=host, concerns=tuple(concerns(url)))

    async def dispatch(self, attempt: Attempt) -> bool:
        """Open it; whether that could be done."""
        # spec 2026-07-28 client/elicitation#safe-url-handling: MUST NOT open the URL without
        # explicit consent, nor pre-fetch it: this is the first time anything is done with it
        return bool(await maybe_await(self._opener(attempt.object)))


class PageDoneAct(PageAct):
    """The user says when they are done with a page; nothing is opened.

    Args:
        asking: who asks.
        params: the question.
        state: how far it has come, for the user.
    """

    def __init__(self, asking: ServerQuestion, params: ElicitParams, state: str) -> None:
        super().__init__(asking, params, lambda _url: True)
        self._state = state

    def payload(self, attempt: Attempt, trace: Trace) -> PageAsked:
        """The same page, and what there is to be done."""
        page = super().payload(attempt, trace)
        return structs.replace(page, concerns=(self._state,))


def describe_host(url: str) -> str:
    """A page's host as people read it, and as it is looked up where that is spelt otherwise."""
    from urllib.parse import urlsplit  # not needed until a page is to be opened

    host = urlsplit(url).hostname or ""
    read, raw = spell_host(host), ".".join(map(_to_ascii, host.split(".")))
    return host if read == raw else f"{read} ({raw})"


def _to_ascii(label: str) -> str:
    try:
        return label if label.isascii() else label.encode("idna").decode()
    except UnicodeError:
        return label.encode("punycode").decode()


def find_secrets(params: ElicitParams) -> list[str]:
    """The fields of a form that look as if they asked for a secret, by their words or the question's."""
    schema = params.requested_schema or {}
    return list(find_secret_fields(params.message, schema.get("properties", {})))


async def open_in_browser(url: str) -> bool:
    """Open a page in the user's browser, without a shell; False where there is none.

    A browser that runs in the terminal is none: it would take the terminal away.
    """
    return await asyncio.to_thread(_run_browser, url)


def _run_browser(url: str) -> bool:
    import webbrowser  # not needed until a page is to be opened

    # spec 2026-07-28 client/elicitation#safe-url-handling: MUST be opened where neither client nor
    # model can look at it, which is the user's own browser
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    if type(browser) is webbrowser.GenericBrowser:
        return False
    return browser.open(url)
