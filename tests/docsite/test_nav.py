"""The navigation of the documentation site."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from docsite.nav import NavError, Section, expand_nav, list_sections  # noqa: E402 - see above


def test_a_pattern_takes_what_nothing_names():
    """Ours: a new page needs no line in mkdocs.yml."""
    nav = [{"Start": ["index.md"]}, {"Guides": ["guide/first.md", "guide/*.md"]}]
    pages = {"index.md", "guide/zebra.md", "guide/first.md", "guide/apple.md"}

    assert expand_nav(nav, pages) == [
        {"Start": ["index.md"]},
        {"Guides": ["guide/first.md", "guide/apple.md", "guide/zebra.md"]},
    ]


def test_a_page_that_is_named_stands_there_only():
    """Ours: patterns in front of a name do not take its page."""
    nav = [{"All": ["guide/*.md"]}, {"Best": ["guide/first.md"]}]

    assert expand_nav(nav, {"guide/first.md"}) == [{"Best": ["guide/first.md"]}]


def test_a_star_stands_for_no_slash():
    """Ours: the pattern of a folder takes nothing from the folders in it."""
    nav = [{"Top": ["*.md"]}, {"Decisions": ["decisions/*.md"]}]

    assert expand_nav(nav, {"decisions/1.md"}) == [{"Decisions": ["decisions/1.md"]}]


def test_a_page_in_no_section_is_an_error():
    """Ours: the error names the page and says what to do."""
    with pytest.raises(NavError, match=r"in no section: new/page\.md; add the page, or a pattern"):
        expand_nav([{"Start": ["index.md"]}], {"index.md", "new/page.md"})


def test_a_name_without_a_page_is_an_error():
    """Ours: a page that was renamed does not vanish silently."""
    with pytest.raises(NavError, match=r"there is no page gone\.md"):
        expand_nav(["gone.md"], set())


def test_a_page_named_twice_is_an_error():
    """Ours: a page has one place."""
    with pytest.raises(NavError, match=r"index\.md stands there more than once"):
        expand_nav(["index.md", {"Again": ["index.md"]}], {"index.md"})


def test_nested_sections_carry_the_titles_above():
    """Ours: llms.txt has flat headings."""
    nav = [{"Guides": [{"Clients": ["guide/clients.md"]}, {"Home": "index.md"}]}]

    assert list(list_sections(nav)) == [
        Section("Guides", [("Home", "index.md")]),
        Section("Guides: Clients", [(None, "guide/clients.md")]),
    ]
