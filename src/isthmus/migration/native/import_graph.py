"""Imports between the modules of a project: who takes which names from where."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PATCHED_PATH = re.compile(
    r"\b(?:patch|setattr|delattr|import_module|__import__|importorskip|find_spec|resolve_name|object)"
    r"\(\s*[rRuU]?[\"']([A-Za-z_][\w.]*)[\"']"
)


class ProjectImport(NamedTuple):
    """A name that a module takes from another of its project.

    Attributes:
        importer: the module that takes it.
        home: the module that it is taken from.
        name: the name; None for the module as a whole.
        bound: what the importer calls it.
        line: of the import.
        is_certain: no other module of the project can be meant.
    """

    importer: Path
    home: Path
    name: str | None
    bound: str
    line: int
    is_certain: bool = True


class ImportGraph:
    """Imports between the modules of a project.

    Which folders are on ``sys.path`` is not known, so a dotted name means each module whose path ends with it.

    Args:
        texts: the modules, by their paths.
    """

    def __init__(self, texts: Mapping[Path, str]) -> None:
        self._by_name: dict[str, list[tuple[tuple[str, ...], Path]]] = {}
        for path in texts:
            parts = _list_parts(path)
            if parts:
                self._by_name.setdefault(parts[-1], []).append((parts, path))
        self.imports = [
            found for path, text in texts.items() for found in self._list_imports(path, text)
        ]

    def _list_imports(self, path: Path, text: str) -> Iterator[ProjectImport]:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for each in node.names:
                    yield from self._find_modules(path, each.name.split("."), each.lineno)
            elif isinstance(node, ast.ImportFrom):
                yield from self._find_names(path, node)
        for found in PATCHED_PATH.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            parts = found[1].split(".")
            for count in range(1, len(parts) + 1):
                yield from self._find_modules(path, parts[:count], line)

    def _find_names(self, path: Path, node: ast.ImportFrom) -> Iterator[ProjectImport]:
        module = node.module.split(".") if node.module else []
        for each in node.names:
            yield from self._find_modules(path, [*module, each.name], node.lineno, node.level)
            homes = self._resolve(path, module, node.level)
            for home in homes:
                name = None if each.name == "*" else each.name
                bound = each.asname or each.name
                yield ProjectImport(path, home, name, bound, node.lineno, len(homes) == 1)

    def _find_modules(
        self, path: Path, parts: list[str], line: int, level: int = 0
    ) -> Iterator[ProjectImport]:
        for home in self._resolve(path, parts, level):
            yield ProjectImport(path, home, None, parts[-1], line)

    def _resolve(self, path: Path, parts: list[str], level: int) -> list[Path]:
        """The modules that a dotted name may mean."""
        if level:
            folder = path.parent
            for _ in range(level - 1):
                folder = folder.parent
            wanted = folder.joinpath(*parts)
            places = (wanted.with_suffix(".py"), wanted / "__init__.py")
            known = (
                self._by_name.get(_list_parts(places[0])[-1], [])
                if parts
                else self._by_name.get(folder.name, [])
            )
            return [home for _, home in known if home in places and home != path]
        if not parts:
            return []
        count = len(parts)
        known = self._by_name.get(parts[-1], [])
        return [home for own, home in known if own[-count:] == tuple(parts) and home != path]


def _list_parts(path: Path) -> tuple[str, ...]:
    """The parts of a module's dotted name, with all folders above it."""
    parts = path.with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts
