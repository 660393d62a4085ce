"""Imports of foreign packages, rewritten to the façade: the names in the module stay."""

from collections.abc import Callable
from enum import Enum

from isthmus.migration.edits import COMMENT_PREFIX, Note, TextEdits
from isthmus.migration.facade import describe_missing_name, find_facade_module, find_facade_name
from isthmus.migration.scan import ImportedName, ImportStatement


class ImportOutcome(Enum):
    """What became of an import statement."""

    REWRITTEN = "rewritten"
    OWN_PACKAGE = "own package"
    LACKING = "lacking"


class ImportRewriter:
    """Rewrites the import statements of one module."""

    def __init__(self, edits: TextEdits, is_local: Callable[[str], bool], newline: str) -> None:
        self._edits = edits
        self._is_local = is_local
        self._newline = newline
        self._packages: set[tuple[int, str]] = set()

    def rewrite(self, statement: ImportStatement) -> ImportOutcome:
        """Rewrite one statement; what the façades lack stays, with a comment that says what to use."""
        if statement.module is None or statement.module_span is None:
            return self._rewrite_plain(statement)
        paths = {each.name: f"{statement.module}.{each.name}" for each in statement.names}
        if any(map(self._is_local, paths.values())):
            return ImportOutcome.OWN_PACKAGE
        facade = find_facade_module(statement.module)
        missing = [
            path for name, path in paths.items() if not find_facade_name(statement.module, name)
        ]
        if facade is None or len(missing) == len(paths):
            self._note_missing(statement, [statement.module] if facade is None else missing)
            return ImportOutcome.LACKING
        self._edits.replace(statement.module_span, facade)
        self._note_missing(statement, missing)
        return ImportOutcome.REWRITTEN

    def _note_missing(self, statement: ImportStatement, paths: list[str]) -> None:
        self._edits.add_notes(Note(statement.line, describe_missing_name(path)) for path in paths)

    def _rewrite_plain(self, statement: ImportStatement) -> ImportOutcome:
        """``import mcp.types as types`` keeps its alias; ``import mcp.types`` binds ``mcp`` as before."""
        parts: list[str] = []
        outcome = ImportOutcome.OWN_PACKAGE
        missing: dict[int, str] = {}
        for each in statement.names:
            facade = None if self._is_local(each.name) else find_facade_module(each.name)
            if facade is not None:
                outcome = ImportOutcome.REWRITTEN
                parts += self._import_facade(each, facade, statement.block)
                continue
            parts.append(f"import {_spell(each)}")
            if each.is_foreign and not self._is_local(each.name):
                outcome = max(outcome, ImportOutcome.LACKING, key=_IMPORTANCE.index)
                missing[len(parts) - 1] = each.name
        if outcome is not ImportOutcome.REWRITTEN or statement.indent is None:
            self._note_missing(statement, list(missing.values()))
        else:  # each import gets a line of its own, and so does its comment
            for index, name in missing.items():
                parts[index] += f"  {COMMENT_PREFIX} {describe_missing_name(name)}"
        if outcome is ImportOutcome.REWRITTEN:
            separator = "; " if statement.indent is None else f"{self._newline}{statement.indent}"
            self._edits.replace(statement.span, separator.join(parts))
        return outcome

    def _import_facade(self, each: ImportedName, facade: str, block: int) -> list[str]:
        if each.alias is not None and "." in each.name:
            return [f"import {facade} as {each.alias}"]
        head = each.name.split(".")[0]
        root = find_facade_module(head) or facade
        package, _, name = root.rpartition(".")
        bound = each.alias or head
        made = [f"import {facade}"] if "." in each.name else []
        if (block, bound) not in self._packages:
            self._packages.add((block, bound))
            made.append(f"from {package} import {_spell(ImportedName(name, bound, each.span))}")
        return made or ["pass"]


_IMPORTANCE = [ImportOutcome.OWN_PACKAGE, ImportOutcome.LACKING, ImportOutcome.REWRITTEN]


def _spell(name: ImportedName) -> str:
    if name.alias is None or name.alias == name.name:
        return name.name
    return f"{name.name} as {name.alias}"
