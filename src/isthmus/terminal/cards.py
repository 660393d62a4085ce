"""One card for each kind of question: everything that concerns the decision, never cut.

A card is a value, made of lines. The full screen, the plain prompt and the conversation show the
same one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import UNSET, Struct

from isthmus.core.plain_text import mixed
from isthmus.host.interaction import Interaction
from isthmus.host.policy.trace import Trace
from isthmus.terminal.lines import Line, changes, field, head, name, text_of, warning
from isthmus.terminal.payloads import body, definition, editable

__all__ = ["Card", "card", "question", "why"]

QUESTIONS: Mapping[str, str] = {
    "server.install": "May the server {server} be run on this machine?",
    "server.connect": "May the server {server} be connected to?",
    "tool.call": "May the tool {object} of {server} be called?",
    "tool.change": "The tool {object} of {server} has changed. May the new one be used?",
    "resource.read": "May {object} of {server} be read?",
    "resource.subscribe": "May changes of {object} of {server} be watched?",
    "prompt.get": "May the prompt {object} of {server} be fetched?",
    "completion": "May {server} be asked how to complete {object}?",
    "task.cancel": "May the task {object} of {server} be cancelled?",
    "sampling.request": "{server} wants a model to write something. May it be asked?",
    "sampling.respond": "The model has answered. May {server} have it?",
    "elicit.form": "{server} asks you to fill in a form.",
    "elicit.url": "{server} asks you to open a page.",
    "roots.expose": "May {server} know of these folders?",
    "context.share": "May this be shared with somebody else?",
}

ORIGINS: Mapping[str, str] = {
    "local": "a program that uses this host",
    "attached": "a program that is attached to this host",
    "request": "a request of the server's own",
    "result": "the server, in answer to a call",
    "task": "a task of the server",
    "search": "the tools that find tools",
    "app": "an app of the server",
    "code": "code that a model wrote",
}

RISKS: Mapping[str, str] = {
    "low": "low",
    "medium": "medium",
    "high": "HIGH: to allow it takes a second key",
}


class Card(Struct, frozen=True):
    """A question, ready to be shown.

    Attributes:
        title: the question in one line.
        lines: everything about it.
    """

    title: str
    lines: tuple[Line, ...]

    def text(self) -> str:
        """All of it as plain text."""
        return text_of((Line(self.title, "title"), *self.lines))


def question(interaction: Interaction) -> str:
    """What is asked, in one line."""
    attempt = interaction.attempt
    form = QUESTIONS.get(attempt.action, "May {server} do {object}?")
    server, object = name(attempt.server), name(attempt.object) or "something"
    return form.format(server=server or "a server", object=object)


def card(interaction: Interaction, edited: Any = UNSET) -> Card:
    """The card of a question.

    Args:
        interaction: the question.
        edited: what would stand in place of what was asked; unset where nothing was changed.
    """
    return Card(question(interaction), tuple(_lines(interaction, edited)))


def _lines(interaction: Interaction, edited: Any) -> Iterator[Line]:
    yield from _who(interaction)
    if edited is not UNSET:
        yield head("as you have changed it")
        yield from changes(editable(interaction), edited)
    yield from body(interaction.payload)
    yield head("why you are asked")
    yield from why(interaction.trace, brief=True)
    yield from definition(interaction.payload)


def _who(interaction: Interaction) -> Iterator[Line]:
    """Server and origin stand on every card, at its top."""
    attempt = interaction.attempt
    # spec 2026-07-28 client/elicitation#security-considerations: MUST indicate which server asks
    yield field("server", attempt.server or "none")
    asker = f"{attempt.asker}, for {attempt.principal}" if attempt.asker else attempt.principal
    yield field("asked by", f"{asker}, by way of {ORIGINS[attempt.origin]}")
    if attempt.parent:
        yield field("in the course of", f"{attempt.course} ({attempt.parent})".strip())
    if attempt.run:
        yield field("run", attempt.run)
    yield Line(
        f"  risk: {RISKS[interaction.risk]}", "warn" if interaction.risk == "high" else "dim"
    )
    for what in (attempt.server, attempt.object):
        scripts = mixed(what)
        if scripts:
            yield warning(f"the name {what} has letters of {scripts}, which look alike")


def why(trace: Trace, *, brief: bool = False) -> Iterator[Line]:
    """What policy said.

    Args:
        trace: its answer.
        brief: the reason, the rule and the flow of data only.
    """
    layer = trace.matches[0].layer if trace.matches else ""
    yield field("reason", trace.reason or "the policy asks")
    yield field("rule", f"{trace.rule} ({layer})" if layer else trace.rule)
    for step in trace.chain:
        yield warning(step)
    if brief:
        return
    yield field("effect", trace.effect)
    if trace.grant:
        yield field("grant", trace.grant)
    for match in trace.matches:
        yield field("rule that fits", f"{match.rule} ({match.layer}): {match.effect}")
    yield from _obligations(trace)
    yield field("policy", trace.policy or "not named")


def _obligations(trace: Trace) -> Iterator[Line]:
    demanded = trace.obligations
    yield field("who may say yes", demanded.assurance)
    yield field("may be remembered", ", ".join(demanded.remember))
    if demanded.timeout is not None:
        yield field("time to answer", f"{demanded.timeout:g} s")
    if demanded.max_calls is not None:
        yield field("most in a run", demanded.max_calls)
    if demanded.redact:
        yield field("kept out of sight", ", ".join(demanded.redact))
