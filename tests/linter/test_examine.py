"""Examining a target: a server here, a URL of either HTTP transport, nothing that can be one."""

import pytest

from isthmus import Server
from isthmus.errors import UsageError
from isthmus.linter import examine
from isthmus.revisions import BY_NAME
from isthmus.testing import serving

LEGACY = [BY_NAME["2025-11-25"]]


def small():
    """A server with one tool."""
    server = Server("small", version="1")
    server.add_tool(lambda: "pong", name="ping", description="Answer.")
    return server


async def test_a_server_of_this_process_is_examined():
    """Ours: one line in a test of somebody's server."""
    report = await examine(small(), revisions=LEGACY)

    assert (["2025-11-25"], []) == (report.spoken, report.findings)


async def test_an_entry_of_a_file_and_a_url_lead_to_the_same():
    """Ours: a target is what it is for a client."""
    async with serving(small()) as url:
        for target in (url, {"url": url, "headers": {"X-User": "ada"}}):
            report = await examine(target, revisions=LEGACY)

            assert (["2025-11-25"], []) == (report.spoken, report.findings)


async def test_where_no_post_is_answered_the_older_transport_is_tried():
    """Ours: servers of 2024-11-05 have an endpoint that answers GET alone."""
    async with serving(small(), sse="/old") as url:
        report = await examine(url.replace("/mcp", "/old"), revisions=[BY_NAME["2024-11-05"]])

    assert ["2024-11-05"] == report.spoken


async def test_a_target_of_no_known_kind_is_refused():
    """Ours: before anything is asked."""
    with pytest.raises(UsageError, match="a target is a URL"):
        await examine(17)
