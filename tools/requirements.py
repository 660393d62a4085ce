"""Writes ``docs/concepts/requirements.md`` from ``tests/requirements/``.

Run ``python tools/requirements.py`` after a requirement or a clause has changed; a test compares.
"""

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "requirements"
PAGE = ROOT / "docs" / "concepts" / "requirements.md"

REASONS: Mapping[str, str] = {
    "schema": (
        "Comments on members of the schema, which repeat a page. Message shapes are tested against "
        "the official schemas (`messages.members.of-the-revision`)."
    ),
    "host": (
        "Duties of a host towards its user or model: showing, asking for consent, drawing icons, "
        "trusting hints, obeying `maxTokens`. Handlers get all data that this needs."
    ),
    "author": (
        "Duties of the author of a server towards its users (secrets in forms, state that is used "
        "once, public answers), and of the author of a client, who hosts a metadata document."
    ),
    "intermediary": "Duties of proxies between client and server.",
    "unused": "Duties of programs that poll lists or restart a server; isthmus does neither.",
    "definition": "Definitions of terms, and changes between revisions.",
}

HEAD = """# Requirements

<!-- Made by `python tools/requirements.py` from tests/requirements. -->

Every requirement of isthmus is a row in a file of `tests/requirements/`: an id, the clause of
the specification, the revisions in which it applies, and one sentence in our words. Tests name the id of the
row that they prove, and each line of code that names a clause refers to a clause
with a row; the tests in `tests/architecture/` check both. Rows without a clause are the project's
own requirements.

In the other direction, `tests/requirements/clauses/` goes through the pages of every revision. For each
sentence with MUST, MUST NOT, REQUIRED or SHALL it lists the rows that cover it, or the reason why it does not
apply to isthmus. The tasks extension is counted with 2026-07-28, to which it belongs.
"""


def clauses() -> Mapping[str, list[Mapping[str, Any]]]:
    """The clauses of each revision that demand something, the newest revision first."""
    return {
        path.stem: tomllib.loads(path.read_text(encoding="utf-8"))["clause"]
        for path in sorted((FOLDER / "clauses").glob("*.toml"), reverse=True)
    }


def outside(of: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """How many sentences bind somebody else, by reason."""
    counts: Counter[str] = Counter()
    for clause in of:
        counts.update(clause.get("outside", {}))
        counts.update(m.removeprefix("-") for m in clause.get("musts", ()) if m.startswith("-"))
    return counts


def held(of: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids that hold each sentence, a text of one or more for each."""
    return [m for clause in of for m in clause.get("musts", ()) if not m.startswith("-")]


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def page() -> str:
    """The whole page."""
    every = clauses()
    found = {name: (len(held(of)), sum(outside(of).values())) for name, of in every.items()}
    total = [sum(column) for column in zip(*found.values(), strict=True)]
    counted = [
        *((name, inside + out, inside, out) for name, (inside, out) in found.items()),
        ("all", sum(total), *total),
    ]
    why = sum((outside(of) for of in every.values()), Counter[str]())
    return "\n".join([
        HEAD,
        table(("revision", "sentences", "covered by requirements", "not applicable"), counted),
        "Every sentence that applies to a server, a client or a transport is covered by a requirement.\n",
        "## Sentences that do not apply\n",
        table(("reason", "sentences"), [(REASONS[r], n) for r, n in why.most_common()]).rstrip("\n"),
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
