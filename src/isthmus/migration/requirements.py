"""Requirements of a project, changed from ``mcp`` and ``fastmcp`` to isthmus, or listed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.errors import UsageError
from isthmus.migration.rules import BROUGHT_LIBRARIES, DISTRIBUTIONS
from isthmus.migration.source_file import SourceFile

if TYPE_CHECKING:
    import tomlkit

OWN_REQUIREMENT = "isthmus[compat]"
NATIVE_REQUIREMENT = "isthmus"
# Modules that came along with the libraries and also with the façades, by the requirement of isthmus.
NATIVE_LIBRARIES: Mapping[str, Mapping[str, str]] = {
    OWN_REQUIREMENT: {},
    NATIVE_REQUIREMENT: {"pydantic": "pydantic"},
}
_COMPAT_EXTRA = re.compile(r"^(\s*isthmus\s*)\[([^\]]*)\]")
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_LISTED_FILES = (
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "environment.yml",
    "uv.lock",
    "poetry.lock",
    "pdm.lock",
)


@dataclass(slots=True)
class RequirementChange:
    """A file of requirements, its new text, and what the author has to do himself."""

    file: SourceFile
    text: str


@dataclass(slots=True)
class RequirementChanges:
    """Requirements of a project after the migration."""

    changes: list[RequirementChange] = field(default_factory=list)
    by_hand: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)


def migrate_requirements(
    root: Path, imported: set[str], *, keep: bool, own: str = OWN_REQUIREMENT
) -> RequirementChanges:
    """Change what a project requires.

    Args:
        root: its folder.
        imported: packages that its code imports.
        keep: code of it still needs the foreign library, which then stays beside isthmus.
        own: the requirement of isthmus.
    """
    found = RequirementChanges()
    project = root / "pyproject.toml"
    if project.is_file():
        _migrate_pyproject(project, found, keep=keep, own=own)
    for path in sorted(root.glob("*requirements*.txt")):
        _migrate_lines(path, found, keep=keep, own=own)
    for name in _LISTED_FILES:
        path = root / name
        if path.is_file() and _mentions_library(path.read_text("utf-8", "replace")):
            found.by_hand.append(f"{name}: put {own} in the place of mcp and fastmcp")
    if found.changes:
        found.by_hand += [
            f"{module} is imported and came along with mcp or fastmcp: require {name}"
            for module, name in {**BROUGHT_LIBRARIES, **NATIVE_LIBRARIES[own]}.items()
            if module in imported and name not in found.named
        ]
    return found


def get_requirement_name(requirement: str) -> str:
    """The normal form of the name in a requirement; empty if there is none.

    >>> get_requirement_name("MCP_types[cli]>=2 ; python_version > '3'")
    'mcp-types'
    """
    found = _NAME.match(requirement)
    return "" if found is None else re.sub(r"[-_.]+", "-", found[1]).lower()


def drop_compat_extra(requirement: str) -> str:
    """A requirement of isthmus without the façades; any other as it is.

    >>> drop_compat_extra("isthmus[compat,redis]>=1"), drop_compat_extra("isthmus[compat]")
    ('isthmus[redis]>=1', 'isthmus')
    """
    found = _COMPAT_EXTRA.match(requirement)
    if found is None:
        return requirement
    extras = [each.strip() for each in found[2].split(",") if each.strip() != "compat"]
    return found[1] + (f"[{','.join(extras)}]" if extras else "") + requirement[found.end() :]


def _mentions_library(text: str) -> bool:
    return re.search(r"(?<![\w.-])(fast)?mcp(?![\w.-]*[/-]\w)", text) is not None


def _migrate_lines(path: Path, found: RequirementChanges, *, keep: bool, own: str) -> None:
    file = SourceFile(path, path.read_bytes().decode("utf-8", "surrogateescape"), "utf-8")
    lines = file.text.splitlines(keepends=True)
    if own == NATIVE_REQUIREMENT:
        lines = [*map(drop_compat_extra, lines)]
    names = [get_requirement_name(line) for line in lines]
    found.named.update(names)
    if DISTRIBUTIONS.isdisjoint(names) or (keep and "isthmus" in names):
        if (text := "".join(lines)) != file.text:
            found.changes.append(RequirementChange(file, text))
        return
    made: list[str] = []
    has_own = "isthmus" in names
    for line, name in zip(lines, names, strict=True):
        if name not in DISTRIBUTIONS:
            made.append(line)
            continue
        if not has_own:
            made.append(own + (line[len(line.rstrip("\r\n")) :] or "\n"))
            has_own = True
        made += [line] if keep else []
    found.changes.append(RequirementChange(file, "".join(made)))


def _migrate_pyproject(path: Path, found: RequirementChanges, *, keep: bool, own: str) -> None:
    try:
        import tomlkit
        from tomlkit.exceptions import ParseError
    except ImportError as error:
        raise UsageError("isthmus migrate takes tomlkit: pip install 'isthmus[migrate]'") from error
    try:
        file = SourceFile(path, path.read_bytes().decode("utf-8"), "utf-8")
        document = tomlkit.parse(file.text)
    except (ParseError, UnicodeDecodeError) as error:
        found.by_hand.append(f"pyproject.toml is not read: {error}")
        return
    for requirements in _list_arrays(document):
        found.named.update(get_requirement_name(str(each)) for each in requirements)
        _replace_in_array(requirements, keep=keep, own=own)
    poetry = document.get("tool", {}).get("poetry", {})
    tables = [poetry, *poetry.get("group", {}).values()]
    if any(name in table.get("dependencies", {}) for table in tables for name in DISTRIBUTIONS):
        found.by_hand.append(
            f"pyproject.toml, tool.poetry: put {own} in the place of mcp and fastmcp"
        )
    text = tomlkit.dumps(document)
    if text != file.text:
        found.changes.append(RequirementChange(file, text))


def _list_arrays(document: "tomlkit.TOMLDocument") -> Iterator[Any]:
    project = document.get("project", {})
    yield project.get("dependencies", [])
    yield from project.get("optional-dependencies", {}).values()
    yield from document.get("dependency-groups", {}).values()
    yield document.get("tool", {}).get("uv", {}).get("dev-dependencies", [])


def _replace_in_array(requirements: Any, *, keep: bool, own: str) -> None:
    for index, each in enumerate(requirements):
        if own == NATIVE_REQUIREMENT and isinstance(each, str) and each != drop_compat_extra(each):
            requirements[index] = drop_compat_extra(each)
    names = [get_requirement_name(each) if isinstance(each, str) else "" for each in requirements]
    foreign = [index for index, name in enumerate(names) if name in DISTRIBUTIONS]
    if not foreign or (keep and "isthmus" in names):
        return
    if keep:
        requirements.insert(foreign[0], own)
        return
    first, *others = foreign
    for index in reversed(others):
        del requirements[index]
    if "isthmus" in names:
        del requirements[first]
    else:
        requirements[first] = own
