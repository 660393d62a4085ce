"""The doctor: what it asks, and that a good server has nothing wrong."""

import pytest

from isthmus import Server
from isthmus.revisions import REVISIONS
from spoiled_servers import examined, line_site, web_site

EVERY = pytest.mark.parametrize("revision", [r.name for r in REVISIONS])


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_lines(revision):
    """Ours: not an error, not a warning, not a note."""
    report = await examined(line_site(), revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
@pytest.mark.covers("linter.rules.good-servers-pass")
async def test_a_good_server_has_nothing_wrong_over_http(revision):
    """Ours: the same where statuses and headers are looked at, too."""
    async with web_site() as site:
        report = await examined(site, revision)

    assert [revision] == report.spoken
    assert [] == report.findings


@EVERY
async def test_a_server_with_nothing_has_nothing_wrong(revision):
    """Ours: what is not declared is not asked for."""
    report = await examined(line_site(server=Server("empty", version="1")), revision)

    assert [] == report.findings
