"""URL pages: demanded by an error, visited by the user, and the call made again."""

import asyncio

import pytest

from isthmus.client.client import Client
from isthmus.client.features.elicitation import MAX_OPEN_PAGES, UrlPages, read_required_pages
from isthmus.client.model.limits import Limits
from isthmus.core.answers import Accepted, Declined
from isthmus.errors import Misbehaved, Refuse, UrlElicitationRequired
from isthmus.testing import VirtualLoop
from isthmus.wire import ElicitationCompleteParams
from support.client.small_server import (
    LEGACY_NAME,
    MODERN_NAME,
    PuppetChannel,
    SmallServer,
    text_result,
)

DATA = {
    "elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://x.example/1", "message": "One"},
        {"elicitationId": "e2", "url": "https://x.example/2", "message": "Two"},
    ]
}


def demanding(*, times=1, data=DATA, completes=()):
    """A server whose tool demands pages so many times, and says which of them are done."""
    calls = []

    async def call(_params, inbound):
        calls.append(inbound.id)
        if len(calls) <= times:
            raise Refuse(-32042, "This request requires more information.", data)
        return text_result("done")

    return SmallServer({"tools/call": call}), calls


async def complete(small, *ids):
    """The server says that pages are dealt with."""
    for id in ids:
        params = ElicitationCompleteParams(elicitation_id=id)
        await small.links[0].note("notifications/elicitation/complete", params)


@pytest.mark.covers("elicitation.required.visited", "elicitation.complete.matched")
async def test_pages_an_error_demands_are_visited_and_the_call_made_again():
    """Spec 2025-11-25 client/elicitation#url-elicitation-required-error: then it can be retried."""
    small, calls = demanding()
    asked, done = [], []

    async def elicit(question):
        asked.append((question.mode, question.url, question.message, question.elicitation_id))
        await complete(small, question.elicitation_id)
        return Accepted(None)

    async with Client(
        small, revision=LEGACY_NAME, elicit=elicit, on_elicitation_complete=done.append
    ) as client:
        assert "done" == (await client.call_tool("files")).text

    assert [
        ("url", "https://x.example/1", "One", "e1"),
        ("url", "https://x.example/2", "Two", "e2"),
    ] == asked
    assert (["e1", "e2"], 2) == (done, len(set(calls)))


@pytest.mark.covers("elicitation.required.retried-when-done")
async def test_the_call_waits_until_the_pages_are_dealt_with():
    """Spec 2025-11-25 client/elicitation#completion-notifications-for-url-mode-elicitation."""
    small, calls = demanding()
    agreed = asyncio.Event()

    async def elicit(question):
        if question.elicitation_id == "e2":
            agreed.set()
        return Accepted(None)

    async with Client(small, revision=LEGACY_NAME, elicit=elicit) as client:
        call = asyncio.create_task(client.call_tool("files"))
        await agreed.wait()
        await complete(small, "e2")
        await client.ping()
        assert (1, False) == (len(calls), call.done())
        await complete(small, "e1")
        assert "done" == (await call).text


@pytest.mark.covers("elicitation.required.retried-when-done")
def test_a_server_that_never_says_so_is_asked_again_after_a_while():
    """Spec 2025-11-25 client/elicitation: the notification may never arrive."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        assert 300 <= runner.run(a_page_that_nobody_speaks_of_again()) < 301


async def a_page_that_nobody_speaks_of_again():
    small, _ = demanding()
    async with Client(small, revision=LEGACY_NAME, elicit=lambda _: Accepted(None)) as client:
        start = asyncio.get_running_loop().time()
        assert "done" == (await client.call_tool("files")).text
        return asyncio.get_running_loop().time() - start


@pytest.mark.covers("elicitation.required.once")
async def test_a_server_that_demands_again_is_believed():
    """Ours: the call is made again once, and then the caller has the error."""
    small, calls = demanding(times=9)
    limits = Limits(page_wait=0)
    async with Client(
        small, revision=LEGACY_NAME, elicit=lambda _: Accepted(None), limits=limits
    ) as client:
        with pytest.raises(UrlElicitationRequired):
            await client.call_tool("files")

    assert 2 == len(calls)


@pytest.mark.covers("elicitation.required.declined")
@pytest.mark.parametrize(
    ("revision", "options"),
    [
        (LEGACY_NAME, {"elicit": lambda _: Declined()}),
        (LEGACY_NAME, {}),
        ("2025-06-18", {"elicit": lambda _: Accepted(None)}),
    ],
    ids=["declined", "nobody to ask", "no such error yet"],
)
async def test_where_nobody_visits_them_the_caller_has_the_error(revision, options):
    """Ours: with the pages in its data."""
    small, calls = demanding()
    async with Client(small, revision=revision, **options) as client:
        with pytest.raises(UrlElicitationRequired) as demand:
            await client.call_tool("files")

    assert (DATA, 1) == (demand.value.data, len(calls))


@pytest.mark.covers("elicitation.required.declined")
async def test_where_there_is_no_such_error_any_more_the_caller_has_it():
    """Spec 2026-07-28 basic#error-codes: servers MUST NOT send it; ours: nobody acts on it."""
    puppet = PuppetChannel()
    client = Client(puppet.channel, revision=MODERN_NAME, elicit=lambda _: Accepted(None))
    opening = asyncio.create_task(client.open())
    await puppet.discovered()
    await opening
    call = asyncio.create_task(client.call_tool("files"))
    asked = await puppet.heard()
    await puppet.says(id=asked["id"], error={"code": -32042, "message": "more", "data": DATA})

    with pytest.raises(UrlElicitationRequired) as demand:
        await call
    assert DATA == demand.value.data
    await client.close()


@pytest.mark.covers("elicitation.required.well-formed")
@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"elicitations": []},
        {"elicitations": [{"url": "https://x"}]},
        {"elicitations": [{"mode": "form", "elicitationId": "e", "url": "https://x"}]},
    ],
)
def test_an_error_that_demands_nothing_is_the_servers_fault(data):
    """Spec 2025-11-25 client/elicitation#url-elicitation-required-error: MUST list pages."""
    with pytest.raises(Misbehaved, match="says no pages to open"):
        read_required_pages(UrlElicitationRequired(-32042, "more", data))


@pytest.mark.covers("elicitation.url.valid")
async def test_a_demanded_page_that_is_none_is_not_opened():
    """Ours: an error is no way around the checks."""
    data = {"elicitations": [{"elicitationId": "e", "url": "javascript:alert(1)"}]}
    small, _ = demanding(data=data)
    asked = []
    async with Client(small, revision=LEGACY_NAME, elicit=asked.append) as client:
        with pytest.raises(Misbehaved, match="url is no URL"):
            await client.call_tool("files")

    assert [] == asked


@pytest.mark.covers("elicitation.complete.matched")
def test_pages_nobody_was_sent_to_and_pages_done_twice_are_ignored():
    """Spec 2025-11-25 client/elicitation: MUST ignore unknown or already-completed IDs."""
    told = []
    pages = UrlPages(told.append)
    pages.remember("a")
    for id in ("b", "a", "a"):
        pages.done(ElicitationCompleteParams(elicitation_id=id))

    assert ["a"] == told


async def test_pages_are_forgotten_at_some_time():
    """Ours: a server cannot fill our memory with pages."""
    pages = UrlPages()
    for number in range(MAX_OPEN_PAGES + 5):
        pages.remember(str(number))

    assert await pages.dealt_with(["0", "4"], 0.0)
    assert not await pages.dealt_with(["5"], 0.0)
