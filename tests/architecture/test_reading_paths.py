"""The reading paths of CONTRIBUTING: short enough to be read, and of files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
MAX_PATH_LINES = 2000

PATHS = {
    title: re.findall(r"^\d\. `([^`]+)`", steps, re.MULTILINE)
    for title, steps in re.findall(r"^\*\*(.+)\*\*\n\n((?:\d\. .+\n)+)", PAGE, re.MULTILINE)
}


def test_there_are_paths_for_server_http_client_authorization_and_host():
    """Ours: each of the five parts has a way in."""
    assert 5 == len(PATHS)


@pytest.mark.parametrize("title", PATHS)
def test_a_reading_path_is_short(title):
    """Ours: who reads a path has read less than 2,000 lines."""
    lines = sum((ROOT / name).read_text(encoding="utf-8").count("\n") for name in PATHS[title])

    assert 0 < lines < MAX_PATH_LINES


def test_every_file_that_contributing_names_exists():
    """Ours: a file that has moved is not forgotten here."""
    named = set(re.findall(r"`(src/isthmus/[\w/]+\.(?:py|md))`", PAGE))

    assert len(named) > 20
    assert [] == sorted(name for name in named if not (ROOT / name).is_file())
