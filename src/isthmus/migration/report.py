"""Report of a migration: the difference of each file, counts, and all places to look at."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.migration.project import FileChange, Migration
from isthmus.migration.requirements import RequirementChange

if TYPE_CHECKING:
    from isthmus.migration.native.groups import NativeStep


def format_difference(change: FileChange | RequirementChange) -> list[str]:
    """The difference of one file, as ``diff -u`` and ``git`` write it, in lines."""
    name = _name(change.file.path)
    old, new = (text.splitlines() for text in (change.file.text, change.text))
    return list(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm=""))


def list_summary(migration: Migration, *, written: bool) -> Iterator[str]:
    """The lines that say what was changed, what is to be looked at and what was left alone."""
    imports = sum(change.imports for change in migration.changes)
    strings = sum(change.strings for change in migration.changes)
    verb = "changed" if written else "would change"
    yield (
        f"{verb} {_count(len(migration.changes), 'file')} of {migration.read_count}: "
        f"{_count(imports, 'import')}, {_count(strings, 'string')}, "
        f"{_count(len(migration.requirements.changes), 'file')} of requirements"
    )
    if written:
        yield from (f"  {_name(change.file.path)}" for change in migration.list_changes())
    if migration.native is not None:
        yield from _list_native_lines(migration.native)
    notes = list(migration.list_notes())
    if notes:
        yield f"{_count(len(notes), 'place')} to look at, marked in the code:"
        yield from (f"  {_name(path)}:{line}: {words}" for path, line, words in notes)
    if migration.look_alikes:
        yield "left alone, since they are the project's own packages:"
        yield from (f"  {_name(path)}:{line}" for path, line in migration.look_alikes)
    if migration.untouched:
        yield "untouched, to be migrated by hand:"
        for each in migration.untouched:
            place = "" if each.line is None else f":{each.line}"
            yield f"  {_name(each.path)}{place}: {each.reason}"
    if migration.requirements.by_hand:
        yield "requirements, to be changed by hand:"
        yield from (f"  {words}" for words in migration.requirements.by_hand)
    if migration.list_changes() and not written:
        yield "nothing is written; do it with --write"


def _list_native_lines(step: "NativeStep") -> Iterator[str]:
    from isthmus.migration.native.accepted import list_accepted_lines

    yield f"{_count(len(step.native), 'module')} native, {len(step.stayed)} at the façade"
    for path, line, words in step.stayed:
        yield f"  {_name(path)}{f':{line}' if line else ''}: {words}"
    if step.native:
        yield "clients may notice:"
        yield from (f"  {line}" for line in list_accepted_lines())


def _name(path: Path) -> str:
    return os.path.relpath(path).replace(os.sep, "/")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
