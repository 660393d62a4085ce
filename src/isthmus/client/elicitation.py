"""Elicitation: asking the user for a server, by a form or by a page elsewhere."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, structs

from isthmus.client.checking import Checker
from isthmus.client.gate import BadQuestion, Undeclared
from isthmus.client.telling import given
from isthmus.core.answers import Accepted, Answer, Cancelled, Declined
from isthmus.core.forms import defaults, unfit
from isthmus.core.pages import no_page, spell_host
from isthmus.core.plain_text import mixed
from isthmus.errors import UsageError
from isthmus.revisions import Revision
from isthmus.wire import ElicitationCapability, ElicitParams, ElicitResult

__all__ = ["Elicit", "Elicitation", "concerns", "filled_in", "unable"]

Elicit: TypeAlias = Callable[[ElicitParams], Awaitable[Answer[Any]] | Answer[Any]]
"""Asks the user: gets the question, gives ``Accepted(value)``, ``Declined()`` or ``Cancelled()``."""

NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""What the last part of a host is where browsers take it for an address."""

ACTIONS: Mapping[type, Any] = {Declined: "decline", Cancelled: "cancel"}


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
        answer = await self._asked(question)
        if not isinstance(answer, Accepted):
            return ElicitResult(action=action(answer))
        return ElicitResult(action="accept", content=filled_in(answer.value, schema))

    async def _asked(self, question: ElicitParams) -> Any:
        return await given(self._elicit(question))

    def _form(self, question: ElicitParams) -> Mapping[str, Any]:
        """The form to fill in."""
        declared = self._capability
        if declared.form is UNSET and declared.url is not UNSET:
            raise undeclared("form")
        schema = question.requested_schema
        wrong = "requestedSchema is missing" if schema is UNSET else unfit(schema)
        if wrong or schema is UNSET:
            # spec 2026-07-28 client/elicitation#requested-schema: a restricted subset
            raise BadQuestion(-32602, f"Invalid params: {wrong}")
        return schema

    async def _visit(self, question: ElicitParams, revision: Revision) -> ElicitResult:
        """Have the user open a page, which nobody but the user looks at."""
        if self._capability.url is UNSET:
            raise undeclared("url")
        named = "elicitation_id" in revision.members.get(ElicitParams, ())
        wrong = "elicitationId is missing" if named and not question.elicitation_id else None
        wrong = wrong or no_page(question.url)
        if wrong:
            raise BadQuestion(-32602, f"Invalid params: {wrong}")
        if question.elicitation_id and self._visited is not None:
            self._visited(question.elicitation_id)
        # spec 2026-07-28 client/elicitation#safe-url-handling: MUST NOT pre-fetch the URL, nor
        # open it without consent: the handler alone ever has it
        answer = await self._asked(question)
        # spec 2026-07-28 client/elicitation#response-actions: for URL mode no content
        return ElicitResult(action=action(answer))


def undeclared(mode: str) -> Undeclared:
    """The refusal of a question in a mode the client has not declared."""
    # spec 2025-11-25 client/elicitation#error-handling: MUST be -32602
    return Undeclared(-32602, f"Invalid params: this client did not declare elicitation.{mode}")


async def unable(params: ElicitParams, _inbound: Any) -> ElicitResult:
    """Handle ``elicitation/create`` where nobody can be asked: no mode was declared at all.

    Raises:
        BadQuestion: always.
    """
    raise undeclared("url" if params.mode == "url" else "form")


def action(answer: Any) -> Any:
    """The word for what a user did.

    Raises:
        UsageError: the handler gave something else.
    """
    if isinstance(answer, Accepted):
        return "accept"
    said = ACTIONS.get(type(answer))
    if said is None:
        raise UsageError(
            f"an elicitation handler gives Accepted(value), Declined() or Cancelled(), "
            f"not {answer!r}"
        )
    return said


def concerns(url: str) -> list[str]:
    """What a user should be warned of before a page is opened; empty where nothing is odd.

    For handlers of questions with ``mode == "url"``: show the whole URL, make its host stand out,
    show these, and open it only when the user says so.
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
        if (scripts := mixed(label))
    ]
    if parts.username is not None:
        odd.append(f"what stands before the @ is no host: the page is on {host}")
    if parts.scheme != "https" and host not in {"localhost", "127.0.0.1", "::1"}:
        odd.append("the connection is not encrypted (http)")
    if NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) or ":" in host:
        odd.append(f"the host is a bare address: {host}")
    return odd


def filled_in(value: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A user's answer as the content of a form, with the defaults for blanks left out.

    Raises:
        UsageError: it does not fit the form; the message names the member and the rule, and
            nothing is sent.
    """
    content = plain(value)
    if not isinstance(content, dict):
        raise UsageError(f"the answer to a form has members, {value!r} has none")
    # spec 2026-07-28 client/elicitation#requested-schema: clients SHOULD use the defaults
    content = {**defaults(schema), **content}
    # spec 2026-07-28 client/elicitation#form-mode-security: clients SHOULD validate all responses
    wrong = Checker(schema, "the form of the question", formats=True).complaint(content)
    if wrong:
        raise UsageError(f"the answer does not fit the form: {wrong}")
    return content


def plain(value: Any) -> Any:
    """A struct, dataclass, model or mapping as plain data; None as an empty form."""
    if value is None:
        return {}
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    try:
        return msgspec.to_builtins(value)
    except (TypeError, msgspec.ValidationError) as error:
        raise UsageError(f"the answer is no plain data: {error}") from error
