"""Catalogue of all rules, and the functions that apply them."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from isthmus.errors import UsageError
from isthmus.linter.rules.answers import ANSWER_RULES
from isthmus.linter.rules.capabilities import CAPABILITY_RULES
from isthmus.linter.rules.conversation import ObservedConversation
from isthmus.linter.rules.deprecated import DEPRECATED_USE_RULES, DEPRECATED_VISIT_RULES
from isthmus.linter.rules.http import HTTP_RULES
from isthmus.linter.rules.messages import MESSAGE_RULES
from isthmus.linter.rules.offers import OFFER_RULES
from isthmus.linter.rules.rule import Finding, LintRule, make_finding
from isthmus.linter.rules.visit import ServerVisit
from isthmus.revisions import Revision

# The rules about a conversation, recorded or had.
CONVERSATION_RULES: tuple[LintRule, ...] = (
    *MESSAGE_RULES,
    *OFFER_RULES,
    *DEPRECATED_USE_RULES,
)

# The rules about what a server answers to the questions of a visit.
LINE_RULES = (*ANSWER_RULES, *CAPABILITY_RULES, *DEPRECATED_VISIT_RULES)
VISIT_RULES: tuple[LintRule, ...] = (*LINE_RULES, *HTTP_RULES)

RULES: dict[str, LintRule] = {rule.id: rule for rule in (*CONVERSATION_RULES, *VISIT_RULES)}
"""All rules by their ids."""


def select_rules(
    only: Collection[str], skip: Collection[str], rules: Mapping[str, LintRule] = RULES
) -> frozenset[str]:
    """The ids of the rules to apply.

    Args:
        only: ids, or areas such as ``tools``; all if there are none.
        skip: ids or areas to leave out.
        rules: those to choose from.

    Raises:
        UsageError: there is no such rule.
    """
    for name in (*only, *skip):
        if not _match_rules(name, rules):
            raise UsageError(f"there is no rule {name!r}; there are: {', '.join(rules)}")
    wanted = {id for name in only for id in _match_rules(name, rules)} if only else set(rules)
    return frozenset(wanted.difference(*(_match_rules(name, rules) for name in skip)))


def _match_rules(name: str, rules: Mapping[str, LintRule]) -> set[str]:
    return {id for id in rules if id == name or id.startswith(f"{name}.")}


def judge(conversation: ObservedConversation, wanted: Collection[str]) -> Iterator[Finding]:
    """Find what is wrong with a conversation.

    Args:
        conversation: the messages of both sides.
        wanted: the ids of the rules to apply.
    """
    yield from _judge_rules(CONVERSATION_RULES, conversation, wanted)


def judge_visit(visit: ServerVisit, wanted: Collection[str]) -> Iterator[Finding]:
    """Find what is wrong with a server in one revision."""
    for conversation in visit.conversations:
        yield from judge(conversation, wanted)
    rules = VISIT_RULES if visit.over == "http" else LINE_RULES
    for rule in rules:
        if rule.id in wanted and rule.holds_in(visit.revision):
            for fault in rule.check(visit):
                yield make_finding(rule, visit.revision, fault)


def _judge_rules(
    rules: Iterable[LintRule], conversation: ObservedConversation, wanted: Collection[str]
) -> Iterator[Finding]:
    revisions = list(dict.fromkeys(said.revision for said in conversation.said))
    for rule in rules:
        if rule.id not in wanted:
            continue
        holding = [revision for revision in revisions if rule.holds_in(revision)]
        for fault in rule.check(conversation) if holding else ():
            revision = _find_revision(fault.number, conversation) or holding[0]
            if rule.holds_in(revision):
                yield make_finding(rule, revision, fault)


def _find_revision(number: int | None, conversation: ObservedConversation) -> Revision | None:
    return next((said.revision for said in conversation.said if said.number == number), None)
