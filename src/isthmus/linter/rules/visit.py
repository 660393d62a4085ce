"""Visit to a server in one revision: the probes that were asked, and their outcomes."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from isthmus.linter.rules.conversation import ObservedConversation
from isthmus.linter.rules.rule import RuleCheck, Violation
from isthmus.revisions import Revision


class ProbeOutcome(msgspec.Struct, eq=False):
    """The outcome of one probe.

    Attributes:
        probe: the question's name.
        sent: what was sent: decoded JSON, or bytes.
        reply: the message that answers it, or None.
        others: what else came meanwhile.
        status: the HTTP status; 0 elsewhere.
        headers: the HTTP response's headers, lower-case.
        body: the beginning of an HTTP body that is no message.
        lost: why the connection ended meanwhile, or None.
        silent: nothing came in time, though something was waited for.
    """

    probe: str
    sent: Any = None
    reply: Any = None
    others: list[Any] = []
    status: int = 0
    headers: Mapping[str, str] = {}
    body: bytes = b""
    lost: str | None = None
    silent: bool = False

    @property
    def code(self) -> int | None:
        """The error code of the reply; None where it is no error."""
        error = self.reply.get("error") if isinstance(self.reply, dict) else None
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, int) else None

    @property
    def result(self) -> dict[str, Any] | None:
        """The result, where there is one and it is an object."""
        result = self.reply.get("result") if isinstance(self.reply, dict) else None
        return result if isinstance(result, dict) else None

    @property
    def data(self) -> Any:
        """The data of an error."""
        error = self.reply.get("error") if isinstance(self.reply, dict) else None
        return error.get("data") if isinstance(error, dict) else None

    @property
    def told(self) -> str:
        """The outcome in words."""
        if self.lost is not None:
            return f"the connection ended: {self.lost}"
        if self.code is not None:
            message = self.reply["error"].get("message")
            return f"error {self.code}, {str(message)[:80]!r}" + self._http
        if self.reply is not None:
            return "a result" + self._http
        if self.status:
            return f"HTTP {self.status} without a message"
        return "no answer"

    @property
    def _http(self) -> str:
        return f" (HTTP {self.status})" if self.status else ""


class ServerVisit(msgspec.Struct, eq=False):
    """A server in one revision.

    Attributes:
        revision: the revision spoken.
        over: how it was spoken to.
        conversations: every message of it, by connection.
        outcomes: what came of each question, by the question's name.
        opening: the result of ``initialize`` or ``server/discover``.
        items: what it lists: tools, prompts, resources, resourceTemplates.
        loopback: it is on this machine.
        noise: lines it wrote where messages are expected, which are none.
        session: the id of the session it gave over HTTP, or None.
        paging: lists that do not end, and what was seen.
        called: tools that were called, by name, and what came of it.
    """

    revision: Revision
    over: Literal["lines", "http", "http+sse"]
    conversations: list[ObservedConversation] = []
    outcomes: dict[str, ProbeOutcome] = {}
    opening: dict[str, Any] = {}
    items: dict[str, list[dict[str, Any]]] = {}
    loopback: bool = False
    noise: list[str] = []
    session: str | None = None
    paging: dict[str, str] = {}
    called: dict[str, ProbeOutcome] = {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities that the server declares."""
        declared = self.opening.get("capabilities")
        return declared if isinstance(declared, dict) else {}

    def declares(self, capability: str) -> bool:
        """Whether it offers something: ``"tools"``, ``"resources.subscribe"``."""
        part: Any = self.capabilities
        for name in capability.split("."):
            part = part.get(name) if isinstance(part, dict) else None
        return part is not None and part is not False

    def of(self, *probes: str) -> Iterator[ProbeOutcome]:
        """The outcomes of some probes; those that were not asked are left out."""
        return (self.outcomes[name] for name in probes if name in self.outcomes)

    def heard(self, *probes: str) -> Iterator[ProbeOutcome]:
        """The same, without those that nothing came of: there are rules about silence."""
        return (one for one in self.of(*probes) if one.lost is None and not one.silent)


# Checks that many rules share


def expect_error(probe: str, *codes: int, also: int | None = None) -> RuleCheck:
    """The check that a question is answered by an error of one of some codes.

    Args:
        probe: the question.
        codes: the codes; any, if none are given.
        also: an HTTP status that is as good, without a message.
    """

    def check(visit: ServerVisit) -> Iterator[Violation]:
        for outcome in visit.heard(probe):
            bare = outcome.reply is None and also is not None and outcome.status == also
            wrong = outcome.code is None or (codes and outcome.code not in codes)
            if wrong and not bare:
                yield Violation(probe, outcome.told)

    return check


def expect_result(*probes: str) -> RuleCheck:
    """The check that questions are answered by a result."""

    def check(visit: ServerVisit) -> Iterator[Violation]:
        for outcome in visit.heard(*probes):
            if outcome.reply is None or outcome.code is not None:
                yield Violation(outcome.probe, outcome.told)

    return check


def expect_silence(*probes: str) -> RuleCheck:
    """The check that nothing is said to what wants no answer."""

    def check(visit: ServerVisit) -> Iterator[Violation]:
        for outcome in visit.of(*probes):
            if outcome.reply is not None and outcome.status < 400:
                yield Violation(outcome.probe, outcome.told)

    return check


def expect_http_status(probe: str, *statuses: int) -> RuleCheck:
    """The check of an HTTP status."""

    def check(visit: ServerVisit) -> Iterator[Violation]:
        for outcome in visit.heard(probe):
            if outcome.status not in statuses:
                yield Violation(probe, outcome.told)

    return check
