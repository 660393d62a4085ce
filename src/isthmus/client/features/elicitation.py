"""Elicitation on a client: the user is asked by a form, or sent to a page (URL mode).

Which pages the user was sent to is remembered, since up to 2025-11-25 servers say when one is dealt
with.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, structs

from isthmus.client.model.callbacks import maybe_await
from isthmus.client.model.questions import BadQuestion, UndeclaredQuestion
from isthmus.client.model.schema_validation import SchemaValidator
from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.elicitation import fill_defaults, find_form_flaw, find_page_flaw, spell_host
from isthmus.core.text import find_mixed_scripts
from isthmus.errors import Misbehaved, UrlElicitationRequired, UsageError
from isthmus.revisions import Revision
from isthmus.wire import (
    ElicitationCapability,
    ElicitationCompleteParams,
    ElicitParams,
    ElicitResult,
)

Elicit: TypeAlias = Callable[[ElicitParams], Awaitable[Answer[Any]] | Answer[Any]]
"""Asks the user: gets the question, gives ``Accepted(value)``, ``Declined()`` or ``Cancelled()``."""

# What the last part of a host is where browsers take it for an address.
NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")

ACTION_NAMES: Mapping[type, Any] = {Declined: "decline", Cancelled: "cancel"}


class Elicitation:
    """Answers ``elicitation/create``.

    Args:
        elicit: asks the user.
        capability: what of elicitation the client declared.
        visited: told of the id of each page the user agreed to open, where it has one.
    """

    def __init__(
        self,
        elicit: Elicit,
        capability: ElicitationCapability,
        visited: Callable[[str], None] | None = None,
    ) -> None:
        self._elicit = elicit
        self._capability = capability
        self._visited = visited

    async def answer(self, params: ElicitParams, revision: Revision) -> ElicitResult:
        """Ask the user, and check what comes back against the form.

        Raises:
            BadQuestion: the question is not one that may be put to a user.
            UsageError: the handler's answer is none, or does not fit the form.
        """
        # spec 2026-07-28 client/elicitation: clients MUST treat requests without mode as forms
        if params.mode == "url":
            return await self._visit(params, revision)
        question = structs.replace(params, mode="form")
        schema = self._form(question)
        answer = await self._ask_user(question)
        if not isinstance(answer, Accepted):
            return ElicitResult(action=name_action(answer))
        return ElicitResult(action="accept", content=fill_form(answer.value, schema))

    async def _ask_user(self, question: ElicitParams) -> Any:
        return await maybe_await(self._elicit(question))

    def _form(self, question: ElicitParams) -> Mapping[str, Any]:
        """The form to fill in."""
        declared = self._capability
        if declared.form is UNSET and declared.url is not UNSET:
            raise undeclared_mode_error("form")
        schema = question.requested_schema
        wrong = "requestedSchema is missing" if schema is UNSET else find_form_flaw(schema)
        if wrong or schema is UNSET:
            # spec 2026-07-28 client/elicitation#requested-schema: a restricted subset
            raise BadQuestion(-32602, f"Invalid params: {wrong}")
        return schema

    async def _visit(self, question: ElicitParams, revision: Revision) -> ElicitResult:
        """Have the user open a page, which nobody but the user looks at."""
        if self._capability.url is UNSET:
            raise undeclared_mode_error("url")
        named = "elicitation_id" in revision.members.get(ElicitParams, ())
        wrong = "elicitationId is missing" if named and not question.elicitation_id else None
        wrong = wrong or find_page_flaw(question.url)
        if wrong:
            raise BadQuestion(-32602, f"Invalid params: {wrong}")
        if question.elicitation_id and self._visited is not None:
            self._visited(question.elicitation_id)
        # spec 2026-07-28 client/elicitation#safe-url-handling: MUST NOT pre-fetch the URL, nor
        # open it without consent: the handler alone ever has it
        answer = await self._ask_user(question)
        # spec 2026-07-28 client/elicitation#response-actions: for URL mode no content
        return ElicitResult(action=name_action(answer))


def undeclared_mode_error(mode: str) -> UndeclaredQuestion:
    """The refusal of a question in a mode the client has not declared."""
    # spec 2025-11-25 client/elicitation#error-handling: MUST be -32602
    return UndeclaredQuestion(
        -32602, f"Invalid params: this client did not declare elicitation.{mode}"
    )


async def refuse_elicitation(params: ElicitParams, _inbound: Any) -> ElicitResult:
    """Handle ``elicitation/create`` where nobody can be asked: no mode was declared at all.

    Raises:
        BadQuestion: always.
    """
    raise undeclared_mode_error("url" if params.mode == "url" else "form")


def name_action(answer: Any) -> Any:
    """The word for what a user did.

    Raises:
        UsageError: the handler gave something else.
    """
    if isinstance(answer, Accepted):
        return "accept"
    said = ACTION_NAMES.get(type(answer))
    if said is None:
        raise UsageError(
            f"an elicitation handler gives Accepted(value), Declined() or Cancelled(), "
            f"not {answer!r}"
        )
    return said


def concerns(url: str) -> list[str]:
    """Warnings for a user before the page at ``url`` is opened; empty where nothing is odd.

    For handlers of questions with ``mode == "url"``: show the whole URL, make its host stand out,
    show these, and open it only when the user says so.

    Args:
        url: the whole URL of the page.
    """
    from urllib.parse import urlsplit  # not needed until a page is to be opened

    try:
        parts = urlsplit(url)
    except ValueError:
        return ["the address is none that can be read"]
    host = parts.hostname or ""
    read = spell_host(host)
    odd: list[str] = []
    # spec 2026-07-28 client/elicitation#safe-url-handling: SHOULD have warnings for suspicious
    # URIs, containing Punycode for example
    if "%" in host:
        odd.append(f"the host {host} hides letters behind percent signs: it is {read}")
    if "xn--" in host or not read.isascii():
        told = f": it reads {read}" if read != host else ""
        odd.append(f"the host {host} uses letters that may look like others{told}")
    odd += [
        f"{label} in the host has letters of {scripts}, which look alike"
        for label in read.split(".")
        if (scripts := find_mixed_scripts(label))
    ]
    if parts.username is not None:
        odd.append(f"what stands before the @ is no host: the page is on {host}")
    if parts.scheme != "https" and host not in {"localhost", "127.0.0.1", "::1"}:
        odd.append("the connection is not encrypted (http)")
    if NUMERIC_LABEL.fullmatch(host.rstrip(".").rpartition(".")[2]) or ":" in host:
        odd.append(f"the host is a bare address: {host}")
    return odd


def fill_form(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A user's answer as the content of a form, with the defaults for blanks left out.

    Raises:
        UsageError: it does not fit the form; the message names the member and the rule, and
            nothing is sent.
    """
    content = to_plain_data(value)
    if not isinstance(content, dict):
        raise UsageError(f"the answer to a form is an object with members, not {value!r}")
    # spec 2026-07-28 client/elicitation#requested-schema: clients SHOULD use the defaults
    content = {**fill_defaults(schema), **content}
    # spec 2026-07-28 client/elicitation#form-mode-security: clients SHOULD validate all responses
    wrong = SchemaValidator(schema, "the form of the question", formats=True).complaint(content)
    if wrong:
        raise UsageError(f"the answer does not fit the form: {wrong}")
    return content


def to_plain_data(value: Any) -> Any:
    """A struct, dataclass, model or mapping as plain data; None as an empty form."""
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    try:
        return msgspec.to_builtins(value)
    except (TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"the answer is no plain data: {error}") from error


MAX_OPEN_PAGES = 1000  # pages that are remembered; the oldest makes room


class UrlPages:
    """Pages that the user was sent to, until they are dealt with.

    Args:
        told: told of the id of each page that the server says is dealt with.
    """

    def __init__(self, told: Callable[[str], None] | None = None) -> None:
        self._told = told
        self._open: OrderedDict[str, asyncio.Event] = OrderedDict()

    def remember(self, id: str) -> None:
        """The user is asked to open a page."""
        self._open.setdefault(id, asyncio.Event())
        if len(self._open) > MAX_OPEN_PAGES:
            self._open.popitem(last=False)

    def done(self, params: ElicitationCompleteParams) -> None:
        """``notifications/elicitation/complete``: the user has dealt with a page."""
        page = self._open.pop(params.elicitation_id, None)
        # spec 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation:
        # clients MUST ignore notifications referencing unknown or already-completed IDs
        if page is None:
            return
        page.set()
        if self._told is not None:
            self._told(params.elicitation_id)

    async def dealt_with(self, ids: Iterable[str], patience: float) -> bool:
        """Wait until pages are dealt with; False where the server has not said so in time."""
        waiting = [page.wait() for id in ids if (page := self._open.get(id)) is not None]
        try:
            async with asyncio.timeout(patience):
                await asyncio.gather(*waiting)
        except TimeoutError:
            return False
        return True


def read_required_pages(error: UrlElicitationRequired) -> list[ElicitParams]:
    """The pages that an error demands.

    Raises:
        Misbehaved: it demands none, or something else than pages.
    """
    data: Any = error.data
    try:
        found = msgspec.convert((data or {}).get("elicitations"), list[UrlPage])
        pages = [page.question() for page in found]
    except (msgspec.ValidationError, AttributeError) as wrong:
        raise Misbehaved(f"the error {error.code} says no pages to open: {wrong}") from error
    # spec 2025-11-25 client/elicitation#url-elicitation-required-error: the error MUST include a
    # list of elicitations, which MUST be URL mode and have an elicitationId
    if not pages:
        raise Misbehaved(f"the error {error.code} says no pages to open: its list is empty")
    return pages


class UrlPage(msgspec.Struct, rename="camel"):
    """One page, as an error lists it."""

    url: str
    elicitation_id: str
    message: str = ""
    mode: str | msgspec.UnsetType = UNSET

    def question(self) -> ElicitParams:
        """The same as a question to the user."""
        if self.mode not in {UNSET, "url"}:
            raise msgspec.ValidationError(f"an elicitation of mode {self.mode!r}")
        return ElicitParams(
            mode="url", url=self.url, elicitation_id=self.elicitation_id, message=self.message
        )
