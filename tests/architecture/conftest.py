"""The source tree as the architecture tests read it."""

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from support.heap import own_heap

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

    @property
    def module(self) -> str:
        """``isthmus.transports.http`` for ``transports/http/__init__.py``."""
        return ".".join(("isthmus", *self.name.removesuffix(".py").split("/"))).removesuffix(
            ".__init__"
        )

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text, self.name)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its tree: a dozen tests look at all of them, and to walk a tree is slow."""
        return list(ast.walk(self.tree))

    def functions(self) -> Iterator[tuple[str, int]]:
        """Where each function stands, and its lines from ``def`` to its last one."""
        for node in self.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{self.name}:{node.lineno} {node.name}", node.end_lineno - node.lineno + 1


@pytest.fixture(scope="session")
def sources() -> list[Source]:
    """Every file of the package, in order, with its tree made: once for all tests of a process."""
    found = [Source(path) for path in sorted(ROOT.rglob("*.py"))]
    assert found, f"no source files under {ROOT}"
    # Python 3.11.7 gives up where a collection runs while a tree is made; and the trees are more
    # than a million objects that stay, which no later collection need look at.
    with own_heap():
        for source in found:
            assert source.nodes
        gc.freeze()
    return found


@pytest.fixture(scope="session")
def trees(sources) -> dict[str, ast.Module]:
    """The tree of every module of the package, by its dotted name."""
    return {source.module: source.tree for source in sources}
