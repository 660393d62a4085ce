"""Queue of open questions: their order, the words that find them, and those that one answer may cover."""

from collections.abc import Iterable

from isthmus.host.model.interaction import Interaction

RISK_ORDER = ("high", "medium", "low")

SHORT_QUESTIONS = {
    "server.install": "run the server",
    "server.connect": "connect",
    "tool.change": "changed:",
    "resource.read": "read",
    "resource.subscribe": "watch",
    "prompt.get": "prompt",
    "completion": "complete",
    "task.cancel": "cancel task",
    "sampling.request": "sampling",
    "sampling.respond": "answer of",
    "elicit.form": "form",
    "elicit.url": "page",
    "roots.expose": "folders",
    "context.share": "share",
}

# alike only with the same tool or prompt
SAME_NAME_ACTIONS = frozenset({"tool.call", "prompt.get"})

BATCH_ACTIONS = SAME_NAME_ACTIONS | {"resource.read"}  # may be allowed together

MAX_BATCH_QUESTIONS = 50  # nobody reads more


def sort_questions(interactions: Iterable[Interaction]) -> list[Interaction]:
    """Questions in the order in which they are shown: by risk, then the oldest first."""
    return sorted(interactions, key=lambda one: (RISK_ORDER.index(one.risk), one.opened, one.id))


def has_words(interaction: Interaction, words: str) -> bool:
    """Whether a question has to do with what somebody searches for."""
    attempt = interaction.attempt
    text = f"{attempt.server} {attempt.object} {attempt.action} {interaction.risk} {attempt.run}"
    return all(word in text.lower() for word in words.lower().split())


def format_time_left(deadline: float, now: float) -> str:
    """The time until a deadline, as people read it; empty where there is none."""
    if not deadline:
        return ""
    seconds = max(0, round(deadline - now))
    return f"{seconds // 60}:{seconds % 60:02}" if seconds else "over"


def find_alike(chosen: Interaction, waiting: Iterable[Interaction]) -> list[Interaction]:
    """The questions that may be allowed together with one, itself among them.

    They are of one server, action and principal, and of one tool or prompt; none of them is of high
    risk.
    """
    if chosen.attempt.action not in BATCH_ACTIONS:
        return []
    found = [one for one in waiting if one.risk != "high" and batch_key(one) == batch_key(chosen)]
    return (
        found[:MAX_BATCH_QUESTIONS]
        if any(one.id == chosen.id for one in found[:MAX_BATCH_QUESTIONS])
        else []
    )


def batch_key(one: Interaction) -> tuple[str, ...]:
    """The key that questions share that may be allowed together."""
    attempt = one.attempt
    named = attempt.object if attempt.action in SAME_NAME_ACTIONS else ""
    return attempt.principal, attempt.server, attempt.action, attempt.origin, named
