"""Every rule there is, and how to apply them."""

from collections.abc import Collection, Iterable, Iterator

from isthmus.errors import UsageError
from isthmus.linter.answers import ANSWERS
from isthmus.linter.capabilities import CAPABILITIES
from isthmus.linter.conversation import Conversation
from isthmus.linter.messages import MESSAGES
from isthmus.linter.offers import OFFERS
from isthmus.linter.rule import Finding, Rule, found
from isthmus.linter.visit import Visit
from isthmus.linter.web_answers import WEB
from isthmus.revisions import Revision

__all__ = ["RULES", "SAID", "VISITED", "judge", "judge_visit", "selected"]

SAID: tuple[Rule, ...] = (*MESSAGES, *OFFERS)
"""The rules about a conversation, recorded or had."""

VISITED: tuple[Rule, ...] = (*ANSWERS, *CAPABILITIES, *WEB)
"""The rules about what a server answers to the questions of a visit."""

RULES: dict[str, Rule] = {rule.id: rule for rule in (*SAID, *VISITED)}
"""All of them by their ids."""


def selected(only: Collection[str], skip: Collection[str]) -> frozenset[str]:
    """The ids of the rules to apply.

    Args:
        only: ids, or areas such as ``tools``; all if there are none.
        skip: ids or areas to leave out.

    Raises:
        UsageError: there is no such rule.
    """
    for name in (*only, *skip):
        if not _named(name):
            raise UsageError(f"there is no rule {name!r}; there are: {', '.join(RULES)}")
    wanted = {id for name in only for id in _named(name)} if only else set(RULES)
    return frozenset(wanted.difference(*(_named(name) for name in skip)))


def _named(name: str) -> set[str]:
    return {id for id in RULES if id == name or id.startswith(f"{name}.")}


def judge(conversation: Conversation, wanted: Collection[str]) -> Iterator[Finding]:
    """What is wrong with a conversation."""
    yield from _apply(SAID, conversation, wanted)


def judge_visit(visit: Visit, wanted: Collection[str]) -> Iterator[Finding]:
    """What is wrong with a server in one revision."""
    for conversation in visit.conversations:
        yield from judge(conversation, wanted)
    rules = VISITED if visit.over == "http" else (*ANSWERS, *CAPABILITIES)
    for rule in rules:
        if rule.id in wanted and rule.holds_in(visit.revision):
            for fault in rule.check(visit):
                yield found(rule, visit.revision, fault)


def _apply(
    rules: Iterable[Rule], conversation: Conversation, wanted: Collection[str]
) -> Iterator[Finding]:
    revisions = list(dict.fromkeys(said.revision for said in conversation.said))
    for rule in rules:
        if rule.id not in wanted:
            continue
        holding = [revision for revision in revisions if rule.holds_in(revision)]
        for fault in rule.check(conversation) if holding else ():
            revision = _of(fault.number, conversation) or holding[0]
            if rule.holds_in(revision):
                yield found(rule, revision, fault)


def _of(number: int | None, conversation: Conversation) -> Revision | None:
    return next((said.revision for said in conversation.said if said.number == number), None)
