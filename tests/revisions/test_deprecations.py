"""Deprecated features: one table, and everything that tells of them."""

from datetime import date
from importlib import import_module
from pathlib import Path

import pytest

from isthmus.linter.rules.catalog import RULES
from isthmus.revisions import BY_NAME
from isthmus.revisions.deprecations import DEPRECATIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = [pytest.param(row, id=row.id) for row in DEPRECATIONS.values()]


def find_docstring(name):
    """The docstring of a public name, in one line."""
    module, _, path = name.rpartition("isthmus.auth.") if "auth" in name else ("", "", name[8:])
    found = import_module("isthmus.auth" if "auth" in name else f"isthmus{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return " ".join(found.__doc__.split())


@pytest.mark.parametrize("row", ROWS)
def test_docstrings_say_until_when_a_feature_stays(row):
    """Ours: who reads `help(ctx.sample)` learns it there."""
    assert row.names
    for name in row.names:
        assert row.notice in find_docstring(name), name


@pytest.mark.parametrize("row", ROWS)
def test_pages_say_it_and_lead_to_the_table(row):
    """Ours: who learns a feature learns that it goes."""
    for page in row.pages:
        text = (DOCS / page).read_text(encoding="utf-8")

        assert f"deprecated since {row.since}" in " ".join(text.lower().split()), page
        assert "reference/deprecations.md" in text, page


@pytest.mark.parametrize("row", ROWS)
def test_dates_are_dates(row):
    """SEP-2596: a feature stays for twelve months; what was deprecated before it, for three."""
    assert row.since in BY_NAME
    assert date.fromisoformat(row.removal) > date.fromisoformat(row.since)


def test_the_linter_has_a_note_for_what_a_server_does():
    """Ours: registration is a matter of authorization servers, which `isthmus auth doctor` visits."""
    rules = {
        id.removeprefix("deprecated."): RULES[id] for id in RULES if id.startswith("deprecated.")
    }

    assert rules.keys() == DEPRECATIONS.keys() - {"dynamic-registration"}
    assert {"note"} == {rule.severity for rule in rules.values()}
    for id, rule in rules.items():
        assert DEPRECATIONS[id].notice in rule.text
