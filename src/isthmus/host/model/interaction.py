"""Interactions: questions to a person, the decisions on them, and the approvers that ask.

An :class:`Interaction` holds everything that concerns the decision, never cut short. It is a value:
any surface (a terminal, a page, a function) can show it, in this process or another.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import UNSET, Raw, Struct, UnsetType

from isthmus.core.encoding import is_same_json
from isthmus.host.model.attempt import Attempt
from isthmus.host.model.trace import Assurance, Remember, Trace, rank_assurance
from isthmus.wire import CreateMessageParams, CreateMessageResult, ElicitParams, Root, Tool

Risk: TypeAlias = Literal["low", "medium", "high"]

Verdict: TypeAlias = Literal["allow", "deny", "cancel"]
"""``cancel`` is neither yes nor no: the person turned away, or nobody was there."""


class CallAsked(Struct, frozen=True, kw_only=True, tag="tool.call"):
    """May this tool be called with these arguments?

    Attributes:
        tool: its definition as the server gave it; annotations are claims.
        arguments: all of them; editable.
        trusted: whether the annotations count.
    """

    tool: Tool
    arguments: Mapping[str, Any]
    trusted: bool = False


class ReadAsked(Struct, frozen=True, kw_only=True, tag="resource.read", omit_defaults=True):
    """May this resource be read, or this skill be loaded?

    Attributes:
        uri: the resource, or the ``SKILL.md`` of the skill.
        skill: the name of the skill; empty for any other resource.
        description: what the server says that the skill is for.
        files: the URIs of all its files, which a yes is bound to.
    """

    uri: str
    skill: str = ""
    description: str = ""
    files: tuple[str, ...] = ()


class PromptAsked(Struct, frozen=True, kw_only=True, tag="prompt.get"):
    """May this prompt be fetched, with these arguments (editable)?

    Attributes:
        name: the name of the prompt.
        arguments: its arguments by name; editable.
    """

    name: str
    arguments: Mapping[str, str]


class SamplingAsked(Struct, frozen=True, kw_only=True, tag="sampling.request"):
    """Question: may a server's request go to the model? Messages, system prompt, model and limits are editable.

    Attributes:
        params: what the server wants written, whole.
        model: the model that was selected.
        selection: how, a line each.
        tokens: estimated tokens of the prompt.
        cost: estimated cost in micro-dollars; None where it is not known.
        models: the models that may be chosen instead.
    """

    params: CreateMessageParams
    model: str
    selection: tuple[str, ...] = ()
    tokens: int = 0
    cost: int | None = None
    models: tuple[str, ...] = ()


class SamplingWritten(Struct, frozen=True, kw_only=True, tag="sampling.respond"):
    """Question: may the server have what the model wrote? The result is editable.

    Attributes:
        params: the request of the server.
        result: what the model wrote.
        tokens_in: tokens that the model read.
        tokens_out: tokens that it wrote.
        cost: in micro-dollars; None where no price is known.
    """

    params: CreateMessageParams
    result: CreateMessageResult
    tokens_in: int = 0
    tokens_out: int = 0
    cost: int | None = None


class FormAsked(Struct, frozen=True, kw_only=True, tag="elicit.form"):
    """Question: a form of a server for the user to fill in. The decision's ``edited`` is its content.

    Attributes:
        params: the question with its schema, whole.
        concerns: what the user should be warned of, such as a field that asks for a secret.
    """

    params: ElicitParams
    concerns: tuple[str, ...] = ()


class PageAsked(Struct, frozen=True, kw_only=True, tag="elicit.url"):
    """Will the user open this page? Nothing has fetched it.

    Attributes:
        params: the question, whole.
        host: the page's host as it is read; in Unicode and in Punycode where they differ.
        concerns: what the user should be warned of.
    """

    params: ElicitParams
    host: str
    concerns: tuple[str, ...] = ()


class RootsAsked(Struct, frozen=True, kw_only=True, tag="roots.expose"):
    """May the server know of these folders, and work there? A shorter list is an edit.

    Attributes:
        roots: the roots that the server would be told of.
    """

    roots: tuple[Root, ...]


class InstallAsked(Struct, frozen=True, kw_only=True, tag="server.install"):
    """May this program be run on the user's machine?

    Attributes:
        argv: the exact command, an element each, never cut.
        resolved: the file that it is; empty where none was found.
        cwd: where it would run.
        env: names of the variables it would get beyond the usual ones, without their values.
        source: the file that asks for it.
        warnings: what is dangerous about it.
        sandbox: what would confine it, a line each; empty: it runs with the user's own rights.
    """

    argv: tuple[str, ...] = ()
    resolved: str = ""
    cwd: str = ""
    env: tuple[str, ...] = ()
    source: str = ""
    warnings: tuple[str, ...] = ()
    sandbox: tuple[str, ...] = ()


class ConnectAsked(Struct, frozen=True, kw_only=True, tag="server.connect"):
    """May this server be connected to? Nothing has been sent there.

    Attributes:
        where: its address, without what is secret in it.
        headers: names of the headers it would get, without their values.
        source: the file that asks for it.
        warnings: what is dangerous about it.
    """

    where: str
    headers: tuple[str, ...] = ()
    source: str = ""
    warnings: tuple[str, ...] = ()


class ChangeAsked(Struct, frozen=True, kw_only=True, tag="tool.change"):
    """A tool is not what it was when it was approved: may the new one be used?

    Attributes:
        before: the definition that was known.
        after: the one that the server gives now.
        diff: the lines in which they differ, ``-`` before and ``+`` after.
    """

    before: Raw
    after: Raw
    diff: tuple[str, ...]


class ShareAsked(Struct, frozen=True, kw_only=True, tag="context.share"):
    """May these things of some servers be given to somebody else?

    Attributes:
        to: who would get them: a server, or a provider of models.
        what: what it would be, a line each.
    """

    to: str
    what: tuple[str, ...]


Payload: TypeAlias = (
    CallAsked
    | ReadAsked
    | PromptAsked
    | SamplingAsked
    | SamplingWritten
    | FormAsked
    | PageAsked
    | RootsAsked
    | InstallAsked
    | ConnectAsked
    | ChangeAsked
    | ShareAsked
)


class Interaction(Struct, frozen=True, kw_only=True):
    """A question to a person.

    Attributes:
        id: its name; every surface that shows it uses this one.
        attempt: what somebody wants.
        payload: what is to be seen before one decides.
        trace: what policy said, and why a person is asked.
        risk: how dangerous it looks, for the order in which questions are shown.
        opened: when it was asked, in seconds since the epoch.
        deadline: when silence becomes no, in seconds since the epoch.
        coalesce: questions with the same one are the same question; empty for none.
    """

    id: str
    attempt: Attempt
    payload: Payload
    trace: Trace
    risk: Risk = "medium"
    opened: float = 0.0
    deadline: float = 0.0
    coalesce: str = ""


class Decision(Struct, frozen=True, kw_only=True):
    """The decision of a person.

    Attributes:
        verdict: yes, no, or neither.
        edited: what stands in place of what was asked: arguments, a message, a form's content;
            unset where nothing was changed.
        remember: what the yes holds for beyond this once.
        until: when a remembered yes ends, in seconds since the epoch; None for no end of its own.
        by: who decided: the surface, and the person where that is known.
        assurance: how sure one can be that it was a person.
        reason: why, where they said so.
        principal: who decided, as a principal, where the surface has authenticated them.
    """

    verdict: Verdict
    edited: Any | UnsetType = UNSET
    remember: Remember = "once"
    until: float | None = None
    by: str = ""
    assurance: Assurance = "callback"
    reason: str = ""
    principal: str = ""


class QuestionTaker(Struct, frozen=True):
    """Somebody who has taken a question to answer it.

    Attributes:
        by: their name, as it is shown.
        holder: which terminal or login of theirs it is; two of one name are two.
    """

    by: str
    holder: str


def find_lack(decision: Decision, wanted: Assurance, caller: str) -> str:
    """Find what a yes lacks of the assurance that a rule wants; empty where it counts.

    Args:
        decision: the yes.
        wanted: the assurance.
        caller: the principal whose call it is, who is no second person.
    """
    if wanted == "second_person" and decision.principal == caller:
        return f"the rule wants a second person, and {caller} has made the call"
    if rank_assurance(decision.assurance) < rank_assurance(wanted):
        return f"the rule wants {wanted}, and this was {decision.assurance}"
    if wanted == "second_person" and not decision.principal:
        return "the rule wants a second person, and nobody knows who this was"
    return ""


def is_same_question(one: Interaction, other: Interaction) -> bool:
    """Whether an answer to one question is one to the other: the same is seen, and demanded."""
    asked, again = one.trace, other.trace
    same = (asked.rule, asked.obligations) == (again.rule, again.obligations)
    return same and is_same_json(one.payload, other.payload)


class Approver(Protocol):
    """A surface that puts questions to a person: a terminal, a page, a function.

    Attributes:
        name: what it is called in the audit log.
        assurance: how sure one can be that a person decides there.
    """

    name: str
    assurance: Assurance

    async def offer(self, interaction: Interaction) -> Decision:
        """Show the question ``interaction``, and wait for the answer.

        It is cancelled when somebody else has answered, or the time is over: take it off the
        screen then.

        Args:
            interaction: the question.
        """
        ...


QUESTION_ACTIONS = ("elicit.", "sampling.", "roots.")
"""Prefixes of the actions by which a server wants an answer, and not a yes."""


def wants_answer(attempt: Attempt) -> bool:
    """Whether a yes is not all that is wanted of a person: a form is to be filled in, or a model chosen."""
    return attempt.action.startswith(QUESTION_ACTIONS)


def can_answer(surface: object, asked: Interaction | None = None) -> bool:
    """Whether a question can be answered at a surface; without one, whether what servers ask can be.

    One that takes a yes or a no and nothing else says so by an attribute, ``only_decides``.
    """
    wants_more = asked is None or wants_answer(asked.attempt)
    return not (wants_more and getattr(surface, "only_decides", False))
