"""Requirements and the tests that hold them: tied at both ends."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from isthmus.revisions import BY_NAME
from support.docs.requirement_rows import load_requirements

TESTS = Path(__file__).parents[1]
KEYS = {"id", "clause", "since", "until", "text"}
ID = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+")
CLAUSE = re.compile(r"ours|\d{4}-\d\d-\d\d [a-z/_-]+(#[a-z0-9_-]+)?")


@pytest.fixture(scope="session")
def covered() -> set[str]:
    """Every id that a test says it proves."""
    return {
        argument.value
        for path in TESTS.rglob("test_*.py")
        if "covers(" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "covers"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }


def test_each_requirement_is_well_formed():
    """Ours: a requirement says what, where it stands, and when it holds."""
    for area, row in load_requirements():
        assert set(row) == KEYS, row
        assert row["id"].startswith(f"{area}."), f"{row['id']} stands in {area}.toml"
        assert ID.fullmatch(row["id"]), row["id"]
        assert CLAUSE.fullmatch(row["clause"]), f"{row['id']}: {row['clause']}"
        assert row["since"] in BY_NAME, row["id"]
        assert row["until"] in BY_NAME, row["id"]
        assert row["since"] <= row["until"], row["id"]


def test_no_requirement_is_written_twice():
    """Ours: one id is one demand."""
    counts = Counter(row["id"] for _, row in load_requirements())

    assert [] == [id for id, count in counts.items() if count > 1]


def test_each_requirement_is_held_by_a_test(covered):
    """Ours: what nobody tests, nobody keeps."""
    assert [] == sorted({row["id"] for _, row in load_requirements()} - covered)


def test_tests_name_only_requirements_that_are_written_down(covered):
    """Ours: a name in a test leads to its clause."""
    assert [] == sorted(covered - {row["id"] for _, row in load_requirements()})
