"""The public surface, as a snapshot: a new public name, or a lost one, is a visible diff."""

import ast
import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain
from pathlib import Path

import pytest

SNAPSHOT = Path(__file__).with_name("exports.txt")
MODULES = (
    "isthmus", "isthmus.auth", "isthmus.auth.presets", "isthmus.client", "isthmus.console",
    "isthmus.errors", "isthmus.gateway", "isthmus.host", "isthmus.host.providers",
    "isthmus.host.sampling", "isthmus.host.turns", "isthmus.linter", "isthmus.openapi",
    "isthmus.revisions", "isthmus.sampling", "isthmus.server", "isthmus.server.middleware",
    "isthmus.store", "isthmus.telemetry", "isthmus.testing", "isthmus.testing.faults", "isthmus.types",
)  # fmt: skip
ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_public_names_are_those_of_the_snapshot():
    """Ours: what `__all__` lists is a promise; change it here when you mean to."""
    listed = [f"{m}.{name}" for m in MODULES for name in sorted(import_module(m).__all__)]

    assert SNAPSHOT.read_text(encoding="utf-8").split() == listed


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_there(module):
    """Ours: a name that is promised can be imported."""
    found = import_module(module)

    assert [] == [name for name in found.__all__ if not hasattr(found, name)]


def test_pages_and_examples_import_public_names_only():
    """Ours: what a page or an example imports is in the snapshot, and so in the API reference.

    The façades have the names of other libraries, which these change as they like: `__all__` has them.
    """
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    blocks = {page: BLOCK.findall(page.read_text(encoding="utf-8")) for page in pages}
    blocks |= {
        file: [file.read_text("utf-8")] for file in sorted((ROOT / "examples").rglob("*.py"))
    }
    public = {*SNAPSHOT.read_text(encoding="utf-8").split(), *MODULES}
    facades = {
        f"{module}.{name}"
        for module in {
            path.rpartition(".")[0] for path in list_imports(chain.from_iterable(blocks.values()))
        }
        if module.startswith("isthmus.compat.")
        for name in import_module(module).__all__
    }

    hidden = {
        f"{file.relative_to(ROOT)}: {path}"
        for file, texts in blocks.items()
        for path in list_imports(texts)
        if path not in public | facades
    }

    assert set() == hidden


def list_imports(texts: Iterable[str]) -> Iterator[str]:
    """What blocks of Python import of isthmus; a block that is no Python by itself imports nothing."""
    for text in texts:
        try:
            tree = ast.parse(text)
        except SyntaxError:  # a block with an ellipsis for the rest of a signature
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (one.name for one in node.names if one.name.startswith("isthmus"))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("isthmus"):
                yield from (f"{node.module}.{one.name}" for one in node.names)
