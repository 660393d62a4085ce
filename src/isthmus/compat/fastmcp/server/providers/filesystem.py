"""Provider of what stands in the files of a folder, under the name of ``fastmcp.server.providers.filesystem``."""

import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from isthmus.compat.fastmcp.components.functions import DECORATED_KIND
from isthmus.compat.fastmcp.prompts.model import Prompt
from isthmus.compat.fastmcp.resources.model import Resource
from isthmus.compat.fastmcp.resources.template import ResourceTemplate
from isthmus.compat.fastmcp.server.providers.local_provider import LocalProvider
from isthmus.compat.fastmcp.server.registry import KINDS
from isthmus.compat.fastmcp.tools.model import Tool

logger = logging.getLogger("fastmcp.server.providers.filesystem")


class FileSystemProvider(LocalProvider):
    """Provider of the decorated functions and the components in the Python files below a folder.

    A file that cannot be imported is logged and left out.

    Args:
        root: the folder.
        reload: files that changed are read again when something is asked for.
    """

    def __init__(self, root: str | Path = ".", reload: bool = False) -> None:
        super().__init__("replace")
        self._root = Path(root).resolve()
        self._reload = reload
        self._read: dict[Path, int] = {}
        self._failed: dict[Path, str] = {}
        if not self._root.exists():
            logger.warning("FileSystemProvider root does not exist: %s", self._root)
        self._load()

    @property
    def failed_files(self) -> Mapping[Path, str]:
        """The files that could not be imported, and why."""
        return dict(self._failed)

    def _load(self) -> None:
        found = {path: path.stat().st_mtime_ns for path in list_files(self._root)}
        if found == self._read:
            return
        self._read, self._failed = found, {}
        for kind in KINDS:
            self.registry.own[kind].clear()
        for path in found:
            try:
                self._add_components(import_file(path, self._root))
            except Exception as error:  # noqa: BLE001 - the file may raise anything, and the others are served
                self._failed[path] = f"{type(error).__name__}: {error}"
                logger.warning("Failed to import %s: %s", path, error)

    def _refresh(self) -> None:
        if self._reload:
            self._load()

    def _add_components(self, module: ModuleType) -> None:
        for name in dir(module):
            one = None if name.startswith("_") else getattr(module, name, None)
            kind = getattr(one, DECORATED_KIND, None)
            if isinstance(one, Tool) or kind == "tool":
                self.add_tool(one)
            elif isinstance(one, ResourceTemplate):
                self.add_template(one)
            elif isinstance(one, Resource) or kind == "resource":
                self.add_resource(one)
            elif isinstance(one, Prompt) or kind == "prompt":
                self.add_prompt(one)

    async def _list_tools(self) -> Sequence[Any]:
        self._refresh()
        return await super()._list_tools()

    async def _list_resources(self) -> Sequence[Any]:
        self._refresh()
        return await super()._list_resources()

    async def _list_resource_templates(self) -> Sequence[Any]:
        self._refresh()
        return await super()._list_resource_templates()

    async def _list_prompts(self) -> Sequence[Any]:
        self._refresh()
        return await super()._list_prompts()


def list_files(root: Path) -> list[Path]:
    """The Python files below a folder, or the one file itself, without those that only make a package."""
    found = [root] if root.is_file() else [*root.rglob("*.py")]
    return sorted(one for one in found if one.suffix == ".py" and one.name != "__init__.py")


def import_file(path: Path, root: Path) -> ModuleType:
    """Import a file: as a module of its package, if it is in one below a folder, or by itself.

    Raises:
        ImportError: another package of this name is imported already.
        Exception: whatever the file raises.
    """
    package = find_package(path, root)
    if package is None:
        return _import_alone(path)
    name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
    taken = sys.modules.get(package.name)
    if taken is not None and str(package) not in map(str, getattr(taken, "__path__", ())):
        raise ImportError(f"another package {package.name!r} is imported already")
    with _extend_search_path(package.parent):
        known = sys.modules.get(name)
        return importlib.import_module(name) if known is None else importlib.reload(known)


def find_package(path: Path, root: Path) -> Path | None:
    """The folder of the outermost package that a file is in, not above a folder; None for none."""
    found = None
    for folder in path.parents:
        if not folder.is_relative_to(root) or not (folder / "__init__.py").exists():
            break
        found = folder
    return found


def _import_alone(path: Path) -> ModuleType:
    name, known = path.stem, sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) != str(path):
        name = f"_fastmcp_{path.stem}_{sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"Cannot load spec for {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with _extend_search_path(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@contextmanager
def _extend_search_path(folder: Path) -> Iterator[None]:
    """Let imports find what stands in a folder."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
