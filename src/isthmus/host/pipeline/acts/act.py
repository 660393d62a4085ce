"""Act: one kind of thing that can be done, as the pipeline needs to know it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import UNSET, Struct, structs

from isthmus.host.model.attempt import Attempt
from isthmus.host.model.errors import BadArguments, Denied
from isthmus.host.model.interaction import Decision, Payload
from isthmus.host.model.trace import Trace

if TYPE_CHECKING:
    from isthmus.host.model.facts import Facts
    from isthmus.host.pipeline.servers import ResolvedServer

T = TypeVar("T")


class ActOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of an attempt, for the audit log and for the run.

    Attributes:
        failed: whether it failed in its own terms: a tool that says so.
        result: what came of it, for the audit log, which digests and redacts it.
        tokens_in: tokens a model read; ``tokens_out`` wrote, ``cost`` in micro-dollars.
        model: which one.
        detail: anything else for the audit log, as plain data.
    """

    failed: bool = False
    result: Any = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: int | None = None
    model: str = ""
    detail: Any = None


def parse_edited_arguments(attempt: Attempt, edited: Any) -> dict[str, Any]:
    """Parse the arguments that a person edited.

    Raises:
        BadArguments: it is nothing of the kind.
    """
    if isinstance(edited, Mapping) and all(isinstance(name, str) for name in edited):
        return dict(edited)
    raise BadArguments(
        f"what {attempt.object!r} of server {attempt.server!r} is asked with has names and values, "
        f"and was edited to {type(edited).__name__}"
    )


class Act(Protocol[T]):
    """One kind of thing that can be done, as the pipeline needs to know it.

    Subclass it: what is not abstract has a default.

    Attributes:
        begun: it was let through before, and goes on: nobody has to be there for that.
        by_client: the client of a gateway answers it, which asks its own user: it counts as a person of
            the assurance ``client_elicitation``.
        meant: the attempt, as far as it is known what is meant; for what is written down where that
            cannot be found out, or cannot be done.
        server: the server, where it is an act on one, once it is resolved.
    """

    begun: bool = False
    by_client: bool = False
    meant: Attempt | None = None
    server: "ResolvedServer | None" = None

    async def resolve(self, attempt: Attempt) -> Attempt:
        """Find out what exactly is meant; the attempt with it.

        Raises:
            Unknown: there is nothing of that name.
            ServerUnavailable: the server cannot be asked.
        """
        return attempt

    def facts(self, attempt: Attempt) -> "Facts":
        """The facts for policy besides the attempt.

        What is the same for all acts is filled in by the pipeline: the time, who is there to be
        asked, and what the run has done and taken over so far.
        """
        ...

    def check(self, attempt: Attempt) -> None:
        """See whether the arguments fit.

        Raises:
            BadArguments: they do not.
        """
        del attempt  # whatever it is

    def asks(self, attempt: Attempt, trace: Trace) -> bool:  # noqa: ARG002 - for subclasses
        """Whether a person is asked, once policy has not denied it: where policy says so.

        What is a question by its nature, as elicitation is, says yes always.
        """
        return trace.effect == "ask"

    def coalesce(self, attempt: Attempt) -> str:  # noqa: ARG002 - for subclasses
        """The key of questions that have one answer; empty for none, by default."""
        return ""

    def payload(self, attempt: Attempt, trace: Trace) -> Payload:
        """The payload that a person has to see before they decide."""
        ...

    def apply_edit(self, attempt: Attempt, decision: Decision) -> Attempt:
        """The attempt as a person has changed it; it goes through validation and policy again.

        Raises:
            BadArguments: what they made of it are no arguments.
        """
        if decision.edited is UNSET:
            return attempt
        return structs.replace(attempt, arguments=parse_edited_arguments(attempt, decision.edited))

    async def recheck(self, attempt: Attempt, *, waited: bool) -> None:
        """See whether it is still what was decided on, just before it is done.

        Args:
            attempt: as it was decided on.
            waited: a person was asked meanwhile, which may have taken any time.

        Raises:
            Quarantined: the tool is another one by now.
        """
        del attempt, waited

    def make_dry_result(self, attempt: Attempt, trace: Trace) -> T:
        """Make the result of a dry run.

        Raises:
            Denied: there is nothing to give, which is the default.
        """
        raise Denied(
            f"this host only says what it would do: {attempt.action} {attempt.object!r} of "
            f"{attempt.server!r} was not done ({trace.effect} by {trace.rule!r})",
            rule=trace.rule,
            by="dry-run",
        )

    async def dispatch(self, attempt: Attempt) -> T:
        """Do it. Called in one place, by the pipeline."""
        ...

    async def review(self, attempt: Attempt, result: T) -> T:  # noqa: ARG002 - for subclasses
        """Look at what came of it before anybody gets it; as it is by default.

        Raises:
            Misbehaved: the server broke its own rules.
        """
        return result

    def redact(self, result: T, pointers: tuple[str, ...]) -> T:  # noqa: ARG002 - for subclasses
        """The result without what a rule says nobody is to see; as it is by default."""
        return result

    def outcome(self, result: T) -> ActOutcome:  # noqa: ARG002 - for subclasses
        """The outcome of a result."""
        return ActOutcome()
