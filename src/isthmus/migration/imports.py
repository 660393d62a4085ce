"""Imports of foreign packages, rewritten to the façade."""

from collections.abc import Callable, Sequence
from enum import Enum

from isthmus.migration.edits import COMMENT_PREFIX, Note, TextEdits
from isthmus.migration.facade import (
    FacadePath,
    describe_missing_name,
    find_facade_path,
    find_imported_path,
)
from isthmus.migration.references import Reference
from isthmus.migration.scan import ImportedName, ImportStatement


class ImportOutcome(Enum):
    """What became of an import statement."""

    REWRITTEN = "rewritten"
    OWN_PACKAGE = "own package"
    LACKING = "lacking"


class ImportRewriter:
    """Rewrites the import statements of one module, and the names that plain imports lead to.

    ``from mcp.types import Tool`` binds the same name as before. ``import mcp.types`` becomes the import of a
    module that is called otherwise, so ``mcp.types.Tool`` is spelled anew where it is used.
    """

    def __init__(
        self,
        edits: TextEdits,
        is_local: Callable[[str], bool],
        newline: str,
        references: Sequence[Reference] = (),
    ) -> None:
        self._edits = edits
        self._is_local = is_local
        self._newline = newline
        self._references = [each for each in references if not is_local(each.path)]
        self._done_roots: set[str] = set()

    def rewrite(self, statement: ImportStatement) -> ImportOutcome:
        """Rewrite one statement; what the façades lack stays, with a comment that says what to use."""
        if statement.module is None:
            return self._rewrite_plain(statement)
        return self._rewrite_from(statement, statement.module)

    def _rewrite_from(self, statement: ImportStatement, module: str) -> ImportOutcome:
        paths = {each: f"{module}.{each.name}" for each in statement.names}
        if any(map(self._is_local, paths.values())):
            return ImportOutcome.OWN_PACKAGE
        found = {each: find_imported_path(module, each.name) for each in paths}
        missing = [path for each, path in paths.items() if found[each] is None]
        if len(missing) == len(paths):
            self._note_missing(statement, missing)
            return ImportOutcome.LACKING
        homes = {each: _split(own) for each, own in found.items() if own is not None}
        modules = {home for home, _ in homes.values()}
        same = all(name == each.name for each, (_, name) in homes.items())
        if not missing and len(modules) == 1 and same and statement.module_span is not None:
            self._edits.replace(statement.module_span, modules.pop())
            return ImportOutcome.REWRITTEN
        lines: dict[str, list[str]] = {}
        for each in statement.names:
            home, name = homes.get(each, (module, each.name))
            lines.setdefault(home, []).append(_spell(name, each.alias or each.name))
        parts = [f"from {home} import {', '.join(names)}" for home, names in lines.items()]
        self._replace(statement, parts, {list(lines).index(module): missing} if missing else {})
        return ImportOutcome.REWRITTEN

    def _rewrite_plain(self, statement: ImportStatement) -> ImportOutcome:
        parts: list[str] = []
        missing: dict[int, list[str]] = {}
        outcomes = {ImportOutcome.OWN_PACKAGE}
        for each in statement.names:
            if not each.is_foreign or self._is_local(each.name):
                parts.append(f"import {_spell(each.name, each.alias)}")
                continue
            own = find_facade_path(each.name)
            made = [] if own is None else self._import_facade(each, own)
            if made:
                outcomes.add(ImportOutcome.REWRITTEN)
                parts += made
            else:
                outcomes.add(ImportOutcome.LACKING)
                parts.append(f"import {_spell(each.name, each.alias)}")
                missing[len(parts) - 1] = [each.name] if own is None else []
        if ImportOutcome.REWRITTEN in outcomes:
            self._replace(statement, parts, missing)
            return ImportOutcome.REWRITTEN
        self._note_missing(statement, [path for paths in missing.values() for path in paths])
        return ImportOutcome.LACKING if missing else ImportOutcome.OWN_PACKAGE

    def _import_facade(self, each: ImportedName, own: FacadePath) -> list[str]:
        """The imports in the place of one; none if all that is used through it is missing."""
        root = each.alias or each.name.partition(".")[0]
        used = [reference for reference in self._references if reference.root == root]
        found = {reference: find_facade_path(reference.path) for reference in used}
        lacking = [
            reference for reference in used if found[reference] is None or not reference.is_certain
        ]
        if used and len(lacking) == len(used):
            self._note_references(lacking)
            return []
        alias = None if each.alias is None else f"{own}"
        made = [f"import {_spell(str(own), each.alias)}"] if "." in str(own) else []
        if lacking:
            made.insert(0, f"import {_spell(each.name, each.alias)}")
        if root in self._done_roots:
            return made
        self._done_roots.add(root)
        self._note_references(lacking)
        for reference, path in found.items():
            if path is None or reference in lacking:
                continue
            if alias is not None and not lacking and f"{path}.".startswith(f"{alias}."):
                continue  # the alias leads there
            self._edits.replace(reference.span, str(path))
            if (line := f"import {path.module}") not in made:
                made.append(line)
        return made

    def _note_references(self, references: Sequence[Reference]) -> None:
        self._edits.add_notes(
            Note(
                each.line,
                describe_missing_name(each.path)
                if each.is_certain
                else f"{each.root} has several meanings here, one of them is {each.path}",
            )
            for each in references
        )

    def _note_missing(self, statement: ImportStatement, paths: Sequence[str]) -> None:
        self._edits.add_notes(Note(statement.line, describe_missing_name(path)) for path in paths)

    def _replace(
        self, statement: ImportStatement, parts: list[str], missing: dict[int, list[str]]
    ) -> None:
        """Put statements in the place of one: each on its line, or all on a line that has others."""
        if statement.indent is None:
            self._note_missing(statement, [path for paths in missing.values() for path in paths])
        else:
            for index, paths in missing.items():
                words = "; ".join(map(describe_missing_name, paths))
                parts[index] += f"  {COMMENT_PREFIX} {words}" if words else ""
        separator = "; " if statement.indent is None else f"{self._newline}{statement.indent}"
        self._edits.replace(statement.span, separator.join(dict.fromkeys(parts)))


def _split(path: FacadePath) -> tuple[str, str]:
    home, _, name = str(path).rpartition(".")
    return home, name


def _spell(name: str, bound: str | None) -> str:
    return name if bound is None or bound == name else f"{name} as {bound}"
