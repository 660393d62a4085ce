"""Packages of the project itself that are called as a foreign one: a folder ``mcp/``, a file ``mcp.py``."""

from functools import cached_property
from pathlib import Path

from isthmus.migration.rules import FOREIGN_SUBMODULES


class LocalPackages:
    """Look-alikes of the foreign packages, as a file of the project would import them.

    A regular package or a module beside a script, in the project's root or in ``src`` hides an
    installed one of the same name; a folder without ``__init__.py`` does not.
    """

    def __init__(self, root: Path, file: Path) -> None:
        self._root = root
        self._file = file

    def has(self, name: str) -> bool:
        """Whether a dotted name is the project's own module or name."""
        head, *rest = name.split(".")
        place = self._places.get(head)
        if place is None:
            return False
        return not rest or self._provides(place, rest[0])

    def is_hidden(self, name: str) -> bool:
        """Whether a foreign name has a look-alike beside it that does not provide it."""
        return name.split(".", maxsplit=1)[0] in self._places and not self.has(name)

    @cached_property
    def _places(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for folder in self._list_folders():
            for name in FOREIGN_SUBMODULES:
                for place in (folder / name / "__init__.py", folder / f"{name}.py"):
                    if place.is_file():
                        found.setdefault(name, place)
        return found

    def _list_folders(self) -> list[Path]:
        """Folders that may stand on ``sys.path`` when the file runs."""
        found: list[Path] = []
        folder = self._file.parent
        while True:
            if not (folder / "__init__.py").is_file():
                found += [folder, folder / "src"]
            if folder in {self._root, folder.parent}:
                return found
            folder = folder.parent

    @staticmethod
    def _provides(place: Path, name: str) -> bool:
        folder = place.parent
        if place.name == "__init__.py" and (
            (folder / f"{name}.py").is_file() or (folder / name).is_dir()
        ):
            return True
        try:
            return name in place.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
