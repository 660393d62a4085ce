"""The programs of the guide, before and after: they are migrated as the page shows it."""

import re
from pathlib import Path

from isthmus import Client
from isthmus.migration.native.accepted import ACCEPTED_DIFFERENCES
from isthmus.migration.project import migrate_project

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "migrate.md"


async def test_the_program_of_the_guide_is_migrated_as_it_shows(tmp_path):
    """Ours: the difference on the page is what the command makes, and the new program runs."""
    (lines,) = re.findall(r"```text\n(-from.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines.splitlines() if line[:1] in signs)
        for signs in ("- ", "+ ")
    )
    (tmp_path / "server.py").write_text(before)
    (change,) = migrate_project(tmp_path).changes
    assert after == change.text
    names = {"__name__": "server"}
    exec(compile(after, "server.py", "exec"), names)  # noqa: S102 - it is on our own page
    async with Client(names["mcp"].make_isthmus_server()) as client:
        assert 3 == (await client.call_tool("add", {"a": 1, "b": 2})).parse(int)


def test_the_native_program_of_the_guide_is_made_as_it_shows(tmp_path):
    """Ours: the program on the page becomes the one below it."""
    page = GUIDE.read_text(encoding="utf-8")
    before, after = re.search(
        r"```text\n(from fastmcp.*?)```.*?```python\n(.*?)```", page, re.DOTALL
    ).groups()
    (tmp_path / "server.py").write_text(before)
    (change,) = migrate_project(tmp_path, native=True).changes
    assert after == change.text


def test_the_guide_has_the_accepted_differences():
    """Ours: the table on the page is the list that the command prints."""
    page = GUIDE.read_text(encoding="utf-8")
    for each in ACCEPTED_DIFFERENCES:
        assert f"| {each.subject} | {each.before} | {each.after} |" in page
