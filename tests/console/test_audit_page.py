"""Audit pages: search, one row, the chain in words, and the export."""

import json

import pytest

from isthmus.console.pages.audit import PAGE_ROWS
from support.console.page_browser import WatchedHost


async def test_rows_are_listed_newest_first_and_lead_to_their_own_page():
    """Ours: what was wanted, decided and came of it."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        answer = await watched.browser.get("/console/audit")
        numbers = [
            int(link.rpartition("/")[2])
            for link in answer.page.links
            if link.removeprefix("/console/audit/").isdecimal()
        ]
        row = await watched.browser.get(f"/console/audit/{numbers[0]}")

    assert numbers == sorted(numbers, reverse=True)
    for word in ("intent", "look", "shop", "user:local", "reads"):
        assert word in answer.text
    assert row.status == 200
    assert "The whole row as JSON" in row.text


async def test_a_row_shows_the_rows_of_its_call():
    """Ours: intent and outcome stand together, with arguments and the trace."""
    async with WatchedHost() as watched:
        await watched.call("look", what="x\u200by")
        found = await watched.browser.get("/console/audit?kind=intent")
        path = next(
            link for link in found.page.links if link.removeprefix("/console/audit/").isdecimal()
        )
        row = await watched.browser.get(path)

    assert "Rows of the same call" in row.text
    assert "outcome" in row.text
    assert "x<U+200B>y" in row.text
    assert "hash of the row before" in row.text


@pytest.mark.parametrize(
    ("query", "seen"),
    [
        ("kind=intent", True),
        ("kind=grant", False),
        ("effect=deny", False),
        ("text=needle", True),
        ("text=haystack", False),
        ("server=shop", True),
        ("server=none", False),
        ("principal=user:local", True),
        ("since=2020-01-01T00:00", True),
        ("until=2020-01-01T00:00", False),
    ],
)
async def test_a_search_narrows_the_rows(query, seen):
    """Ours: words, kind, effect, server, principal and time."""
    async with WatchedHost() as watched:
        await watched.call("look", what="needle")
        answer = await watched.browser.get(f"/console/audit?{query}")

    table = answer.body.partition("Search of the audit log")[2]
    assert (">look" in table) is seen
    assert ("No row matches" in table) is not seen


@pytest.mark.parametrize(
    "query", ["since=yesterday", "until=%27", "before=x", "before=" + "9" * 30, "text=%21%3F"]
)
async def test_what_is_no_time_or_number_is_told(query):
    """Ours: a sentence, and the form to mend it."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get(f"/console/audit?{query}")

    assert answer.status == 400
    assert "is no" in answer.text
    assert "Search of the audit log" in answer.body


@pytest.mark.parametrize("seq", ["0", "99999999", "x", "-1", "9" * 40, "%C2%B2"])
async def test_a_row_that_is_not_there_is_not_found(seq):
    """Ours: numbers that are none, and those of no row."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get(f"/console/audit/{seq}")

    assert answer.status == 404


async def test_the_chain_is_verified_and_told_in_words():
    """Ours: what was proved and what was not, as a sentence."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        page = await watched.browser.get("/console/audit")
        answer = await watched.browser.submit(page, "/console/audit/verify")

    assert answer.status == 200
    assert "proved" in answer.text
    assert "rows" in answer.text


async def test_rows_are_exported_as_a_file():
    """Ours: one JSON object a line, of the rows that the search finds, kept and not shown."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        await watched.call("fail", what="it")
        page = await watched.browser.get("/console/audit?kind=intent")
        link = next(link for link in page.page.links if "/export" in link)
        answer = await watched.browser.send("GET", link)

    rows = [json.loads(line) for line in answer.body.splitlines()]
    assert [row["object"] for row in rows] == ["fail", "look"]
    assert answer.headers["content-disposition"] == 'attachment; filename="audit.jsonl"'
    assert answer.headers["content-type"] == "application/x-ndjson"


async def test_rows_of_one_call_are_searched_on_as_such():
    """Ours: a link to them narrows the list, which the form says and keeps."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="it")
        call = (await watched.host.view.traffic())[0].id
        answer = await watched.browser.get(f"/console/audit?call={call}")
        plain = await watched.browser.get("/console/audit")

    assert call in [form.fields.get("call") for form in answer.page.forms]
    assert "call" not in [name for form in plain.page.forms for name in form.fields]


async def test_an_export_of_nonsense_is_refused():
    """Ours: before the file begins."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get("/console/audit/export?text=%21")

    assert answer.status == 400
    assert "is no word to search for" in answer.text


async def test_many_rows_are_paged_and_exported_whole():
    """Ours: a page has a hundred rows whatever there is; the export has them all, in pieces."""
    async with WatchedHost() as watched:
        for n in range(300):
            await watched.call("look", what=str(n))
        answer = await watched.browser.get("/console/audit")
        older = next(link for link in answer.page.links if "before=" in link)
        rest = await watched.browser.get(older)
        export = await watched.browser.send("GET", "/console/audit/export")

    def numbers(page):
        parts = (link.removeprefix("/console/audit/") for link in page.page.links)
        return [int(part) for part in parts if part.isdecimal()]

    assert len(numbers(answer)) == PAGE_ROWS
    assert max(numbers(rest)) < min(numbers(answer))
    seqs = [json.loads(line)["seq"] for line in export.body.splitlines()]
    assert seqs == list(range(max(seqs), 0, -1))
    assert len(seqs) > 600
