"""Navigation of the documentation: the sections of ``mkdocs.yml``, with patterns filled in."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

Nav = list[Any]
"""Navigation as MkDocs has it (``nav``): pages, and sections as mappings of one title."""


class NavError(ValueError):
    """A fault of the navigation: a page in no section, or an entry without a page."""


@dataclass(frozen=True)
class Section:
    """Pages under one title, as ``llms.txt`` lists them."""

    title: str
    pages: list[tuple[str | None, str]]
    """Title, where the navigation gives one, and page."""


def expand_nav(nav: Nav, pages: set[str]) -> Nav:
    """The navigation with every pattern replaced by pages, each page once.

    A page that is named belongs where it is named. Any other page goes to the first pattern that
    fits it.

    Args:
        nav: entries of ``mkdocs.yml``; an entry with ``*`` is a pattern.
        pages: paths of all pages, relative to the folder of the documentation.

    Raises:
        NavError: an entry has no page, or a page is in no section.
    """
    entries = [path for _, path in list_entries(nav)]
    named = [entry for entry in entries if "*" not in entry]
    if missing := [page for page in named if page not in pages]:
        raise NavError(f"mkdocs.yml, nav: there is no page {', '.join(missing)}")
    if twice := sorted({page for page in named if named.count(page) > 1}):
        raise NavError(f"mkdocs.yml, nav: {', '.join(twice)} stands there more than once")
    left = pages.difference(named)
    claimed: dict[str, list[str]] = {}
    for pattern in entries:
        if "*" in pattern:
            claimed[pattern] = sorted(page for page in left if fits_pattern(page, pattern))
            left = left.difference(claimed[pattern])
    if left:
        raise NavError(
            f"in no section: {', '.join(sorted(left))}; add the page, or a pattern that fits it, "
            "to nav in mkdocs.yml"
        )
    return replace_patterns(nav, claimed)


def fits_pattern(page: str, pattern: str) -> bool:
    """Whether a page fits; ``*`` stands for no slash."""
    return page.count("/") == pattern.count("/") and fnmatchcase(page, pattern)


def replace_patterns(nav: Nav, claimed: dict[str, list[str]]) -> Nav:
    """The same entries; sections that end up empty are left out."""
    filled: Nav = []
    for entry in nav:
        if isinstance(entry, str):
            filled.extend(claimed.get(entry, [] if "*" in entry else [entry]))
            continue
        ((title, value),) = entry.items()
        if isinstance(value, str):
            filled.append(entry)
        elif inner := replace_patterns(value, claimed):
            filled.append({title: inner})
    return filled


def list_entries(nav: Nav) -> Iterator[tuple[str | None, str]]:
    """Every entry in its order: title, where there is one, and page or pattern."""
    for entry in nav:
        if isinstance(entry, str):
            yield None, entry
            continue
        for title, value in entry.items():
            if isinstance(value, str):
                yield title, value
            else:
                yield from list_entries(value)


def list_sections(nav: Nav, above: str = "") -> Iterator[Section]:
    """The sections, nested ones as "Guides: Clients", each with the pages right under it."""
    own: list[tuple[str | None, str]] = []
    nested: list[tuple[str, Nav]] = []
    for entry in nav:
        if isinstance(entry, str):
            own.append((None, entry))
            continue
        for title, value in entry.items():
            if isinstance(value, str):
                own.append((title, value))
            else:
                nested.append((f"{above}: {title}" if above else title, value))
    if own:
        yield Section(above or "Start", own)
    for title, value in nested:
        yield from list_sections(value, title)
