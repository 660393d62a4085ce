"""The tests that `make test` leaves out by their folder."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = re.findall(r"--ignore=tests/(\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
MODULES = [path for name in FOLDERS for path in sorted((ROOT / "tests" / name).rglob("test_*.py"))]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_folder_that_is_left_out_has_only_tests_with_its_marker(path):
    """Ours: a test without the marker of its folder would be run by no step."""
    marker = path.relative_to(ROOT / "tests").parts[0]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    marks = [
        ast.unparse(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]

    assert any(re.search(rf"\bpytest\.mark\.{marker}\b", mark) for mark in marks)


def test_folders_are_left_out():
    """Ours: the test above reads the Makefile; renamed options would leave it without cases."""
    assert sorted(FOLDERS) == ["balancers", "browser", "interop"]
