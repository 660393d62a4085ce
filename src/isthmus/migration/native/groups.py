"""Groups of modules that share servers or types: all of a group become native, or none."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.migration.edits import Note, TextEdits
from isthmus.migration.native.import_graph import ImportGraph, ProjectImport
from isthmus.migration.native.module_judge import find_servers, judge_module
from isthmus.migration.native.module_text import FacadeReason, ModuleText
from isthmus.migration.native.vocabulary import FACADE_ROOT, Library
from isthmus.migration.rules import FOREIGN_SUBMODULES

STAYS = "stays at the façade"
_FOREIGN_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s[^#\n]*\b(?:compat|{'|'.join(FOREIGN_SUBMODULES)})\b", re.MULTILINE
)


@dataclass(slots=True)
class NativeStep:
    """The result of the native step over a project.

    Attributes:
        texts: the new texts of modules, those that stay with a comment among them.
        native: modules that became native.
        stayed: modules that stay at the façade; the line and the reason, or the module that they are tied to.
    """

    texts: dict[Path, str] = field(default_factory=dict)
    native: list[Path] = field(default_factory=list)
    stayed: list[tuple[Path, int, str]] = field(default_factory=list)


def rewrite_to_native(texts: Mapping[Path, str], untouched: Mapping[Path, str]) -> NativeStep:
    """Rewrite the groups of modules that are simple enough.

    Args:
        texts: all modules of the project, those on the façades as the first step leaves them.
        untouched: modules that the first step left alone, and why.
    """
    return _Groups(texts, untouched).rewrite()


class _Groups:
    def __init__(self, texts: Mapping[Path, str], untouched: Mapping[Path, str]) -> None:
        self._texts = texts
        self._graph = ImportGraph(texts)
        self._modules: dict[Path, ModuleText] = {}
        self._reasons: dict[Path, list[tuple[Path, FacadeReason]]] = {}
        for path, text in texts.items():
            if _mentions_facade(text) and path not in untouched:
                self._read(path)
        for path, words in untouched.items():
            self._add_reason(path, path, FacadeReason(0, words))
        self._servers = {path: find_servers(module) for path, module in self._modules.items()}
        self._share_servers()
        self._judgements = {
            path: judge_module(module, self._find_imported(path))
            for path, module in self._modules.items()
        }
        for path, judgement in self._judgements.items():
            if judgement.reason is not None:
                self._add_reason(path, path, judgement.reason)

    def _read(self, path: Path) -> None:
        try:
            self._modules[path] = ModuleText(self._texts[path])
        except ValueError as error:
            self._add_reason(path, path, FacadeReason(0, str(error)))

    def _add_reason(self, path: Path, place: Path, reason: FacadeReason) -> None:
        self._reasons.setdefault(path, []).append((place, reason))

    # Shared servers

    def _share_servers(self) -> None:
        """Find out which modules import servers, also through others."""
        changed = True
        while changed:
            changed = False
            for each in self._graph.imports:
                library = self._servers.get(each.home, {}).get(each.name or "")
                if library is None or each.bound in self._servers.get(each.importer, {}):
                    continue
                if each.importer not in self._modules and each.importer not in self._reasons:
                    self._read(each.importer)
                self._servers.setdefault(each.importer, {})[each.bound] = library
                changed = True

    def _find_imported(self, path: Path) -> dict[str, Library]:
        own = find_servers(self._modules[path])
        return {
            name: library
            for name, library in self._servers.get(path, {}).items()
            if name not in own
        }

    # Decision

    def rewrite(self) -> NativeStep:
        """Decide for each group, and make the new texts."""
        for each in self._graph.imports:
            self._check_import(each)
        step = NativeStep()
        for group in self._list_groups():
            if not any(self._uses_facade(path) for path in group):
                continue  # only texts in it name a foreign module
            self._check_duplicates(group)
            reasons = [found for path in group for found in self._reasons.get(path, ())]
            if reasons:
                self._leave_group(group, reasons, step)
                continue
            for path in group:
                step.texts[path] = self._judgements[path].edits.apply(self._texts[path])
                step.native.append(path)
        return step

    def _uses_facade(self, path: Path) -> bool:
        judgement = self._judgements.get(path)
        return judgement is None or judgement.uses_facade

    def _check_import(self, each: ProjectImport) -> None:
        """See that what is taken from a module may change with it."""
        judgement = self._judgements.get(each.home)
        if judgement is None or not judgement.uses_facade:
            return
        words: str | None = None
        if each.name is None:
            words = f"all of {each.home.name} is used here, and some of it would change"
        elif each.name in judgement.exports:
            words = f"{each.name} is used here, and would change"
        elif each.name in self._servers.get(each.home, {}) and not each.is_certain:
            words = f"several modules of the project can be meant by the import of {each.name}"
        if words is not None:
            self._add_reason(each.home, each.importer, FacadeReason(each.line, words))

    def _list_groups(self) -> Iterator[list[Path]]:
        """The modules on the façades, connected by their imports of one another."""
        members = {
            path
            for path in (*self._modules, *self._reasons)
            if path in self._reasons or self._judgements[path].uses_facade
        }
        leaders = {path: path for path in members}

        def find_leader(path: Path) -> Path:
            while leaders[path] != path:
                path = leaders[path]
            return path

        for each in self._graph.imports:
            if each.importer in members and each.home in members:
                leaders[find_leader(each.importer)] = find_leader(each.home)
        groups: dict[Path, list[Path]] = {}
        for path in sorted(members):
            groups.setdefault(find_leader(path), []).append(path)
        yield from groups.values()

    def _check_duplicates(self, group: list[Path]) -> None:
        """See that no name is declared twice: the façades take the first, isthmus refuses it."""
        items = [
            (path, key)
            for path in group
            if path in self._judgements
            for _, key in self._judgements[path].items
        ]
        counts = Counter(key for _, key in items)
        for path, key in items:
            if counts[key] > 1:
                words = f"there is more than one {key.kind} {key.name!r} in these modules"
                self._add_reason(path, path, FacadeReason(1, words))
                return

    def _leave_group(
        self, group: list[Path], reasons: list[tuple[Path, FacadeReason]], step: NativeStep
    ) -> None:
        """Leave a group at the façade, with a comment at the first line of each module that decided it."""
        told: dict[Path, FacadeReason] = {}
        own = [(place, reason) for place, reason in reasons if place in group]
        for place, reason in own or reasons[:1]:
            told.setdefault(place, reason)
        for place, reason in told.items():
            step.stayed.append((place, reason.line, str(reason)))
            if reason.line and place in self._texts:
                edits = TextEdits()
                edits.add_notes([Note(reason.line, f"{STAYS}: {reason}")])
                step.texts[place] = edits.apply(step.texts.get(place, self._texts[place]))
        decisive = next(iter(told))
        step.stayed += [
            (path, 0, f"as {decisive.name} does, with which it shares names")
            for path in group
            if path not in told
        ]


def _mentions_facade(text: str) -> bool:
    """Whether a module may import from the façades or the libraries."""
    return FACADE_ROOT in text or _FOREIGN_IMPORT.search(text) is not None
