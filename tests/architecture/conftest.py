"""The source tree as the architecture tests read it."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "src" / "isthmus"


@dataclass(frozen=True)
class Source:
    """One file of the package."""

    path: Path

    @cached_property
    def name(self) -> str:
        """``transports/http/app.py``, as everybody calls it."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def package(self) -> str:
        """The layer's name: ``wire`` for ``wire/struct.py``, ``errors`` for ``errors.py``."""
        return self.name.split("/", 1)[0].removesuffix(".py")

    @cached_property
    def text(self) -> str:
        """The file as it stands."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        # Python 3.11.7 gives up where a collection runs in the middle of making one.
        collects = gc.isenabled()
        gc.disable()
        try:
            return ast.parse(self.text, self.name)
        finally:
            if collects:
                gc.enable()

    def functions(self) -> Iterator[tuple[str, int]]:
        """Where each function stands, and its lines from ``def`` to its last one."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{self.name}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    """Every file of the package, in order."""
    found = [Source(path) for path in sorted(ROOT.rglob("*.py"))]
    assert found, f"no source files under {ROOT}"
    return found
