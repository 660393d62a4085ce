"""Every test says in one sentence what it shows."""

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]


def walk_statements(node):
    """Every statement below a node: expressions, which are most of a tree, have none."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from walk_statements(child)


def silent_tests():
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in walk_statements(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (
                node.name.startswith("test_") and not ast.get_docstring(node)
            ):
                yield f"{path.relative_to(TESTS)}:{node.lineno} {node.name}"


def test_every_test_has_a_docstring():
    """A test's docstring says what is promised and by whom (CONTRIBUTING)."""
    assert [] == list(silent_tests())
