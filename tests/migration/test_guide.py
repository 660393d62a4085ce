"""The program of the guide, before and after: it is migrated as the page shows it."""

import re
from pathlib import Path

from isthmus import Client
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
