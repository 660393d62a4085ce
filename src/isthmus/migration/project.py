"""Migration of a project: its files are read, changed in memory, and written only when that is asked for."""

import contextlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.errors import UsageError
from isthmus.migration.edits import COMMENT_PREFIX, Note, TextEdits
from isthmus.migration.imports import ImportOutcome, ImportRewriter
from isthmus.migration.local_packages import LocalPackages
from isthmus.migration.references import Reference, find_references
from isthmus.migration.requirements import (
    NATIVE_REQUIREMENT,
    OWN_REQUIREMENT,
    RequirementChange,
    RequirementChanges,
    migrate_requirements,
)
from isthmus.migration.rules import FOREIGN_SUBMODULES
from isthmus.migration.scan import ModuleScan, parse_module, scan_module
from isthmus.migration.source_file import SourceFile, read_source, write_source
from isthmus.migration.strings import rewrite_string

if TYPE_CHECKING:
    from isthmus.migration.native.groups import NativeStep

SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "build", "dist", "node_modules", "site-packages", "venv", "env"}
)
MAX_FILES = 20_000


@dataclass(frozen=True, slots=True)
class Untouched:
    """A file that was left as it is, and why."""

    path: Path
    line: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file and its new text."""

    file: SourceFile
    text: str
    imports: int = 0
    strings: int = 0

    @property
    def path(self) -> Path:
        """The file's path."""
        return self.file.path


@dataclass(slots=True)
class Migration:
    """All that a migration would change, and all that it leaves to the author."""

    root: Path
    changes: list[FileChange] = field(default_factory=list)
    untouched: list[Untouched] = field(default_factory=list)
    look_alikes: list[tuple[Path, int]] = field(default_factory=list)
    """Imports of the project's own packages that are called as a foreign one."""
    imported: set[str] = field(default_factory=set)
    needs_library: bool = False
    """Code still imports what the façades lack, or was left alone."""
    requirements: RequirementChanges = field(default_factory=RequirementChanges)
    read_count: int = 0
    native: "NativeStep | None" = None
    """The native step, if it was asked for."""

    @property
    def is_native(self) -> bool:
        """Whether modules became native, and nothing of the façades is left."""
        step = self.native
        return step is not None and bool(step.native) and not step.stayed and not self.needs_library

    def list_notes(self) -> Iterator[tuple[Path, int, str]]:
        """The comments of the migration in the new texts: places to look at."""
        for change in self.changes:
            for number, line in enumerate(change.text.splitlines(), 1):
                _, found, words = line.partition(COMMENT_PREFIX)
                if found:
                    yield change.path, number, words.strip()

    def list_changes(self) -> list[FileChange | RequirementChange]:
        """All files that change: code, and requirements."""
        return [*self.changes, *self.requirements.changes]

    def write(self) -> None:
        """Write the changed files, each in one piece."""
        for change in self.list_changes():
            write_source(change.file, change.text)


def migrate_project(path: Path, *, native: bool = False) -> Migration:
    """Read a file or all Python files of a folder, and make their new texts.

    Args:
        path: the file or folder.
        native: rewrite modules that are simple enough to native isthmus.

    Raises:
        UsageError: there is no such file or folder, or no Python in it.
    """
    root = path if path.is_dir() else path.parent
    migration = Migration(root)
    files = [path] if path.is_file() else list(_list_python_files(path))
    if not files:
        raise UsageError(f"{path} has no Python files: name the folder or file of a server")
    for file in files:
        _migrate_file(migration, file)
    if native:
        _rewrite_to_native(migration, files)
    if path.is_dir():
        migration.requirements = migrate_requirements(
            path,
            migration.imported,
            keep=migration.needs_library or bool(migration.untouched),
            own=NATIVE_REQUIREMENT if migration.is_native else OWN_REQUIREMENT,
        )
    return migration


def _rewrite_to_native(migration: Migration, files: list[Path]) -> None:
    """Go on from the façades to native isthmus, where that changes no answer."""
    from isthmus.migration.native.groups import rewrite_to_native

    sources: dict[Path, SourceFile] = {}
    for file in files:
        with contextlib.suppress(ValueError, LookupError, OSError):  # the first step lists it
            sources[file] = read_source(file)
    changes = {change.path: change for change in migration.changes}
    texts = {
        path: changes[path].text if path in changes else source.text
        for path, source in sources.items()
    }
    untouched = {each.path: each.reason for each in migration.untouched}
    migration.native = rewrite_to_native(texts, untouched)
    for path, text in migration.native.texts.items():
        before = changes.get(path) or FileChange(sources[path], text)
        changes[path] = replace(before, text=text)
    migration.changes = [
        changes[path]
        for path in files
        if path in changes and changes[path].text != changes[path].file.text
    ]


def _list_python_files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(
            name for name in folders if name not in SKIPPED_FOLDERS and not name.startswith(".")
        )
        for name in sorted(names):
            path = Path(folder, name)
            if not name.endswith((".py", ".pyi")) or path.is_symlink():
                continue
            count += 1
            if count > MAX_FILES:
                raise UsageError(f"{root} has more than {MAX_FILES} Python files: name one project")
            yield path


def _migrate_file(migration: Migration, path: Path) -> None:
    migration.read_count += 1
    try:
        file = read_source(path)
        if not any(name in file.text for name in FOREIGN_SUBMODULES):
            return
        wrapper = parse_module(file.text)
    except (ValueError, LookupError, OSError) as error:
        migration.untouched.append(Untouched(path, None, str(error)))
        return
    scan = scan_module(wrapper, file.text)
    if scan.obstacles:
        migration.untouched += [Untouched(path, line, words) for line, words in scan.obstacles]
        return
    migration.imported |= scan.imported
    change = _rewrite_file(
        migration, file, scan, find_references(wrapper, file.text, scan.list_roots())
    )
    if change.text != file.text:
        migration.changes.append(change)


def _rewrite_file(
    migration: Migration, file: SourceFile, scan: ModuleScan, references: list[Reference]
) -> FileChange:
    edits = TextEdits()
    local = LocalPackages(migration.root, file.path)
    newline = "\r\n" if "\r\n" in file.text else "\n"
    rewriter = ImportRewriter(edits, local.has, newline, references)
    outcomes: Counter[ImportOutcome] = Counter()
    for statement in scan.imports:
        outcome = rewriter.rewrite(statement)
        outcomes[outcome] += 1
        migration.needs_library |= outcome is ImportOutcome.LACKING
        if outcome is ImportOutcome.OWN_PACKAGE:
            migration.look_alikes.append((file.path, statement.line))
        elif local.is_hidden(statement.module or statement.names[0].name):
            words = "the project has a package of the same name, which hides the library's"
            edits.add_notes([Note(statement.line, words)])
    targets = [
        rewrite_string(string, file.text, edits)
        for string in scan.strings
        if not local.has(string.value)
        and not any(string.span.start < one.span.start < string.span.end for one in references)
    ]
    return FileChange(file, edits.apply(file.text), outcomes[ImportOutcome.REWRITTEN], sum(targets))
