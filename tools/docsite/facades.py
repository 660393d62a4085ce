"""Pages of the façades of other libraries: tables of names, whose documentation is that library's own."""

from collections.abc import Iterator
from importlib import import_module

from griffe import Module, Object

from docsite.docstrings import convert_sections, read_first_sentence, write_rows
from docsite.signatures import Linker

FACADE_PAGES = ("isthmus.compat.mcp", "isthmus.compat.fastmcp")
"""Packages that have one page each, with the names of the modules below them."""


def list_facade_names(facade: Module) -> dict[str, list[str]]:
    """The names of each package of a façade that has an ``__all__``.

    It is read where it is made: most are the keys of a table, which the source does not list.
    """
    return {
        module.path: sorted(import_module(module.path).__all__, key=str.lower)
        for module in walk_modules(facade)
        if module.is_init_module and "__all__" in module.members
    }


def write_facade(facade: Module, compat: Module, link: Linker) -> str:
    """The page of a façade: what it is, and a table of the names of each of its modules.

    Args:
        facade: the package.
        compat: ``isthmus.compat``, with what façades share.
        link: addresses of what is documented.
    """
    parts = [f"# {facade.path} {{#module}}\n"]
    if facade.docstring:
        parts.append(convert_sections(facade.docstring, link)[0] + "\n")
    for module, names in list_facade_names(facade).items():
        parts.append(f"## `{module}` {{#{module}}}\n")
        rows = [
            (f"`{name}`", read_first_sentence(found.docstring, link) if found else "")
            for name in names
            if not name.startswith("__")
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
        if not inner.is_alias:
            yield from walk_modules(inner)
