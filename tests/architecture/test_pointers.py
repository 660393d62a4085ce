"""Pointers into the specification: where a line says which clause it obeys, a test holds it."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

import pytest

from support.docs.requirement_rows import load_requirements

PAGES = "basic|client|server|schema|changelog|ext-tasks"
POINTER = re.compile(
    rf"(?:\bspec |\(|; )(\d{{4}}-\d\d-\d\d) ((?:{PAGES})\b[a-z/-]*)(#[a-z0-9_-]+)?"
)
DATE = re.compile(r"\d{4}-\d\d-\d\d")


def comments(text: str) -> Iterator[str]:
    """The comments of a file, those of following lines put together."""
    block, last = "", 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        line = token.string.lstrip("# ")
        block = f"{block} {line}" if token.start[0] == last + 1 else f"{block}\n{line}"
        last = token.start[0]
    yield from block.split("\n")


def docstrings(tree: ast.Module) -> Iterator[str]:
    """What modules, classes, functions and constants say of themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield " ".join(str(node.value.value).split())


@pytest.fixture(scope="session")
def pointers(sources) -> set[tuple[str, str, str, str]]:
    """Each (revision, page, anchor or "", file)."""
    return {
        (*(part or "" for part in found.groups()), source.name)
        for source in sources
        if DATE.search(source.text)  # few have one, and to read comments takes long
        for text in (*comments(source.text), *docstrings(source.tree))
        for found in POINTER.finditer(text)
    }


def test_each_clause_that_a_line_points_to_is_a_requirement(pointers):
    """Ours: what the code says it obeys is written down, and a test proves it."""
    clauses = {row["clause"] for _, row in load_requirements()}
    pages = {clause.split("#")[0] for clause in clauses}

    loose = [
        f"{name}: {revision} {page}{anchor}"
        for revision, page, anchor, name in sorted(pointers)
        if (
            f"{revision} {page}{anchor}" not in clauses
            if anchor
            else f"{revision} {page}" not in pages
        )
    ]

    assert [] == loose, "no requirement in tests/requirements has these clauses"


def test_pointers_are_found_wherever_they_stand(pointers):
    """Ours: in comments, over the end of a line, and in docstrings."""
    text = "x = 1  # spec 2025-11-25\n# basic/lifecycle#timeouts: so\n"
    found = [m.groups() for c in comments(text) for m in POINTER.finditer(c)]

    assert [("2025-11-25", "basic/lifecycle", "#timeouts")] == found
    assert 100 < len(pointers)
