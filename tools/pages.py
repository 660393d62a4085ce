"""Writes the pages of ``docs/reference/`` that are made from tables.

Run ``python tools/pages.py`` after a rule, a method or a feature has changed; a test compares.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import isthmus.auth
from isthmus.linter.gateway.rules import GATEWAY_RULES
from isthmus.linter.rules.answers import ANSWER_RULES
from isthmus.linter.rules.capabilities import CAPABILITY_RULES
from isthmus.linter.rules.deprecated import DEPRECATED_USE_RULES, DEPRECATED_VISIT_RULES
from isthmus.linter.rules.http import HTTP_RULES
from isthmus.linter.rules.messages import MESSAGE_RULES
from isthmus.linter.rules.offers import OFFER_RULES
from isthmus.linter.rules.rule import LintRule
from isthmus.revisions import METHODS, REVISIONS, Feature, Revision
from isthmus.revisions.deprecations import DEPRECATIONS

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
MADE = "Made by `python tools/pages.py` from the tables that the code itself reads."
YES, NO = "●", "-"
LINK = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")

HOSTED = (
    "isthmus has all of it, on both sides. Its [host](../concepts/host.md) puts what servers ask to "
    "its user, by whichever way a revision has for that."
)
ASKED = (
    "Since 2026-07-28 a server asks inside its results: `elicitation/create`, "
    "`sampling/createMessage` and `roots/list` live on as questions there."
)
EXTENDED = (
    "Since 2026-07-28 {} and `notifications/tasks` are those of the extension "
    "`io.modelcontextprotocol/tasks`, for clients and servers that have it. Extensions of your own are "
    "a [guide](../guide/extensions.md)."
)

DEPRECATED = (
    "The facts are those of the specification's registry (2026-07-28, `deprecated`, under SEP-2596). A "
    "deprecated feature works in isthmus as before, in every revision that has it; new servers and clients "
    "should not use it. `isthmus check` and `isthmus validate` tell of each use as a note, which fails no "
    "check ([rules](rules.md))."
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *map(list, rows)]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines
    )


def marks(has: Callable[[Revision], bool]) -> list[str]:
    """A mark for each revision."""
    return [YES if has(revision) else NO for revision in REVISIONS]


NAMES = [revision.name for revision in REVISIONS]


def features() -> str:
    """Every feature and method, by revision and side."""
    wire = [(feature.value, *marks(lambda r, f=feature: r.has(f))) for feature in Feature]  # type: ignore[misc]  # a lambda that keeps its own feature
    requests, notifications = [], []
    for row in METHODS.values():
        allowed = {
            side: [r.allows(side, row.name) for r in REVISIONS] for side in ("client", "server")
        }
        for side, where in allowed.items():
            if side not in row.senders or not any(where):
                continue
            line = (f"`{row.name}`", side, *(YES if one else NO for one in where))
            (notifications if row.result is None else requests).append(line)
    newest = REVISIONS[-1]
    extended = [
        name for name in METHODS if name.startswith("tasks/") and newest.allows("client", name)
    ]
    parts = [
        "# What each revision has",
        f"{MADE} {HOSTED}",
        "## The wire",
        table(("what", *NAMES), wire),
        "## Requests",
        ASKED,
        table(("method", "sent by", *NAMES), requests),
        "## Notifications",
        table(("method", "sent by", *NAMES), notifications),
        "## Extensions",
        EXTENDED.format(", ".join(f"`{name}`" for name in extended)),
    ]
    return "\n\n".join(parts) + "\n"


def rules() -> str:
    """Every rule of the linter."""

    def rows(some: Iterable[LintRule]) -> Iterable[tuple[str, ...]]:
        for rule in some:
            when = "" if (rule.since, rule.until) == (NAMES[0], NAMES[-1]) else f" ({span(rule)})"
            yield f"`{rule.id}`", rule.severity, rule.text + when, rule.mend, rule.clause

    head = ("rule", "severity", "what must hold", "what to do", "clause")
    parts = ["# The rules of `isthmus check` and `isthmus validate`", MADE]
    for title, some in (
        ("Messages: both commands", MESSAGE_RULES),
        ("What is offered and answered: both commands", OFFER_RULES),
        ("Answers to questions: `isthmus check`", (*ANSWER_RULES, *CAPABILITY_RULES)),
        ("HTTP: `isthmus check` of a URL", HTTP_RULES),
        ("Deprecated features: both commands", DEPRECATED_USE_RULES),
        ("Deprecated transports: `isthmus check` of a URL", DEPRECATED_VISIT_RULES),
        ("Gateways: `isthmus check --gateway`", GATEWAY_RULES.values()),
    ):
        parts += [f"## {title}", table(head, rows(some))]
    return "\n\n".join(parts) + "\n"


def span(rule: LintRule) -> str:
    """The revisions that a rule holds in, in words."""
    if rule.until == NAMES[-1]:
        return f"since {rule.since}"
    if rule.since == NAMES[0]:
        return f"up to {rule.until}"
    return rule.since if rule.since == rule.until else f"{rule.since} to {rule.until}"


ROLES = {
    "isthmus.auth.resource_server": "A server that takes tokens",
    "isthmus.auth.authorization_server": "A server that issues them",
    "isthmus.auth.authorization_server.upstream": "Services behind a server",
    "isthmus.auth.client": "A client that gets them",
    "isthmus": "All of them",
}
"""What the packages of authorization are for; a name belongs to the innermost that has it."""


def auth() -> str:
    """Every public name of ``isthmus.auth``, with the first sentence of what it says of itself."""
    listed: dict[str, list[tuple[str, str]]] = {role: [] for role in ROLES.values()}
    for name in isthmus.auth.__all__:
        found = getattr(isthmus.auth, name)
        home = max((one for one in ROLES if found.__module__.startswith(one)), key=len)
        role = ROLES[home]
        said = inspect.cleandoc(found.__doc__).partition("\n\n")[0].replace("\n", " ")
        listed[role].append((f"`{name}`", LINK.sub(r"`\1`", said).replace("``", "`")))
    parts = [
        "# The names of `isthmus.auth`",
        "Made by `python tools/pages.py` from their docstrings, which say the rest.",
    ]
    for role, rows in listed.items():
        parts += [f"## {role}", table(("name", "what it is"), rows)]
    return "\n\n".join(parts) + "\n"


def deprecations() -> str:
    """Every deprecated feature of the protocol."""
    parts = [
        "# Deprecated features",
        f"{MADE} {DEPRECATED}",
    ]
    for row in DEPRECATIONS.values():
        pages = ", ".join(f"[{page}](../{page})" for page in row.pages)
        names = ", ".join(f"`{name}`" for name in row.names)
        told = (
            ("deprecated since", f"{row.since} ({row.sep})"),
            ("may be removed", f"by a revision from {row.removal} on"),
            ("instead", f"{row.instead[0].upper()}{row.instead[1:]}"),
            ("with isthmus", f"{row.how[0].upper()}{row.how[1:]}"),
            ("names", names),
            ("pages", pages),
        )
        parts += [f"## {row.feature}", table(("", row.clause), told)]
    return "\n\n".join(parts) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "features.md": features,
    "rules.md": rules,
    "auth.md": auth,
    "deprecations.md": deprecations,
}
"""The pages, and what makes each."""


if __name__ == "__main__":
    REFERENCE.mkdir(exist_ok=True)
    for name, made in PAGES.items():
        (REFERENCE / name).write_text(made(), encoding="utf-8")
        print(REFERENCE / name)
