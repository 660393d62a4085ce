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
        "Words beside a member of the schema, which repeat a page. Shapes are held against the "
        "official schemas themselves (`messages.members.of-the-revision`)."
    ),
    "host": (
        "What a host does with a person or a model in front of it: showing, asking for consent, "
        "drawing icons, trusting hints, obeying `maxTokens`. Handlers get all they need for it."
    ),
    "author": (
        "What the author of a server asks people for, keeps of them and lets them see: secrets in "
        "forms, states to be used once, public answers; and of a client, whose metadata document "
        "somebody hosts."
    ),
    "intermediary": "What proxies between client and server do.",
    "unused": "What binds only those who poll lists or start a server anew, which we do not.",
    "definition": "What words mean, and what changed from one revision to the next.",
}

HEAD = """# Requirements

<!-- Made by `python tools/requirements.py` from tests/requirements. -->

Every demand that isthmus is held to is a row in a file of `tests/requirements/`: an id, its clause in
the specification, the revisions it holds in, and one sentence in our words. Each row is proved by
tests that name its id, and each line of the code that says which clause it obeys points to a clause
that has a row; the tests in `tests/architecture/` see to both. Rows without a clause are demands of
our own.

The other way round, `tests/requirements/clauses/` goes through the pages of every revision, and says
of each sentence with MUST, MUST NOT, REQUIRED or SHALL which rows hold it, or why it binds somebody
else. The tasks extension is counted with 2026-07-28, whose extension it is.
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
        table(("revision", "sentences", "held by requirements", "bind somebody else"), counted),
        "No sentence that binds a server, a client or a transport is left without a requirement.\n",
        "## What binds somebody else\n",
        table(("why", "sentences"), [(REASONS[r], n) for r, n in why.most_common()]).rstrip("\n"),
        "",
    ])  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
