"""Pages of the façades of other libraries: tables of names, whose documentation is that library's own."""

from collections.abc import Iterator, Mapping, Sequence

from griffe import Module, Object

from docsite.docstrings import convert_sections, read_first_sentence, write_rows
from docsite.signatures import Linker

FACADE_PAGES = ("isthmus.compat.mcp", "isthmus.compat.fastmcp")
"""Packages that have one page each, with the names of the packages below them."""


def find_facade_page(module: str) -> str | None:
    """The package on whose page the names of a module stand, if it is one of a façade."""
    for package in FACADE_PAGES:
        if module == package or module.startswith(f"{package}."):
            return package
    return None


def write_facade(
    package: str, compat: Module, modules: Mapping[str, Sequence[str]], link: Linker
) -> str:
    """The page of a façade: what it is, and a table of the names of each of its modules.

    Args:
        package: path of the façade.
        compat: ``isthmus.compat``, where the names are defined.
        modules: the names of every public module.
        link: addresses of what is documented.
    """
    facade = compat[package.removeprefix("isthmus.compat.")]
    parts = [f"# {package} {{#module}}\n"]
    if facade.docstring:
        parts.append(convert_sections(facade.docstring, link)[0] + "\n")
    for module, names in modules.items():
        if find_facade_page(module) != package:
            continue
        parts.append(f"## `{module}` {{#{module}}}\n")
        rows = [
            (f"`{name}`", read_first_sentence(found.docstring, link) if found else "")
            for name in sorted(names, key=str.lower)
            for found in [find_definition(facade, compat, name)]
        ]
        parts.append(write_rows(("Name", "About"), rows))
    return "\n".join(parts)


def find_definition(facade: Module, compat: Module, name: str) -> Object | None:
    """The class, function or value behind a name: below the façade, or else in what façades share."""
    for module in (*walk_modules(facade), *walk_modules(compat)):
        found = module.members.get(name)
        if found is not None and not found.is_alias and not found.is_module:
            return found
    return None


def walk_modules(module: Module) -> Iterator[Module]:
    """A module and all that are below it."""
    yield module
    for inner in module.modules.values():
        yield from walk_modules(inner)
