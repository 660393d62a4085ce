"""Traffic pages: calls as they happen, one call as it went, and what is made of it."""

import asyncio

import pytest

from isthmus.console.pages.traffic import PAGE_CALLS
from support.console.page_browser import WatchedHost
from support.event_loop import run_until


async def open_first_call(watched):
    """The page of the newest call, and its address."""
    page = await watched.browser.get("/console/traffic")
    path = next(link for link in page.page.links if link.startswith("/console/traffic/"))
    return path, await watched.browser.get(path)


async def test_an_empty_page_says_from_when_calls_are_noted():
    """Ours: no empty table, and plots that say that nothing was measured."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get("/console/traffic")

    assert answer.status == 200
    assert "No calls yet" in answer.text
    assert "Nothing was measured yet" in answer.text


async def test_calls_are_listed_with_their_outcomes():
    """Ours: what went well, what failed, what was denied, with rule and time."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="it")
        await watched.call("fail", what="it")
        with pytest.raises(Exception, match="nobody sells here"):
            await watched.call("sell", what="it")
        answer = await watched.browser.get("/console/traffic")

    for word in ("look", "fail", "sell", "ok", "failed", "denied", "reads", "never"):
        assert word in answer.text


@pytest.mark.parametrize(
    ("query", "seen", "unseen"),
    [
        ("outcome=failed", "fail", "look"),
        ("server=none", "No call", "look"),
        ("text=needle", "look", "fail"),
        ("text=%22what%22:+%22needle%22", "look", "fail"),
        ("principal=user:nobody", "No call", "look"),
        ("outcome=nonsense", "look", "No call"),
    ],
)
async def test_the_list_is_narrowed_by_its_filters(query, seen, unseen):
    """Ours: server, principal, outcome and text; what is no outcome narrows nothing."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="needle")
        await watched.call("fail", what="it")
        answer = await watched.browser.get(f"/console/traffic?{query}")

    table = answer.body.partition("Filter of calls")[2]
    assert seen in table
    assert f">{unseen}</a>" not in table


async def test_one_call_is_shown_from_attempt_to_outcome():
    """Ours: the steps in order, the arguments, the command, and rules made of it."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="x\u200by", often=2)
        path, answer = await open_first_call(watched)

    places = [answer.text.find(word) for word in ("attempt", "rule", "upstream", "outcome")]
    assert all(place > 0 for place in places)
    assert "x<U+200B>y" in answer.text
    assert "isthmus call --host shop__look" in answer.text
    assert 'effect = "deny"' in answer.text
    assert path


async def test_the_messages_on_the_wire_are_shown_on_demand():
    """Ours: what was said to the server and by it, by a link of the call's page."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="it")
        path, answer = await open_first_call(watched)
        wired = await watched.browser.get(f"{path}?wire=1")

    assert f"{path}?wire=1#wire" in answer.page.links
    assert f"{path}?wire=1#wire" not in wired.page.links
    assert "tools/call" in wired.text
    assert "saw it" in wired.text


async def test_a_rule_made_of_a_call_is_held_against_the_past():
    """Ours: from the call to the replay by one form, without typing."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="it")
        _, answer = await open_first_call(watched)
        form = next(
            one for one in answer.page.forms if 'effect = "deny"' in one.fields.get("text", "")
        )
        sent = await watched.browser.send("POST", form.action, form.fields)

    assert sent.status == 200
    assert "1 attempts were decided again, 1 of them differently" in sent.text


async def test_a_call_under_way_is_stopped():
    """Ours: the upstream call is cut, and the page shows it as cancelled."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        call = asyncio.ensure_future(watched.call("hang"))
        await run_until(lambda: watched.cut)
        path, answer = await open_first_call(watched)
        assert "running" in answer.text
        stopped = await watched.browser.submit(answer, path)
        await run_until(lambda: "cut" in watched.cut)
        await asyncio.wait([call])
        again = await watched.browser.send("GET", path)

    assert stopped.status == 200
    assert "cancelled" in again.text
    assert not any(form.action == path for form in again.page.forms)


async def test_a_call_of_an_unknown_tool_has_the_server_in_its_command_once():
    """Ours: the name in the command is the one that was called, and a rule has the server's own name."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        with pytest.raises(Exception, match="lok"):
            await watched.call("lok")
        _, answer = await open_first_call(watched)

    assert "isthmus call --host shop__lok" in answer.text
    assert "shop__shop__" not in answer.text


@pytest.mark.parametrize("path", ["/console/traffic/none", "/console/traffic/none?wire=1"])
async def test_a_call_that_is_kept_no_longer_is_not_found(path):
    """Ours: the page says where it still stands."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get(path)

    assert answer.status == 404
    assert "search the audit log" in answer.text


async def test_many_calls_are_paged():
    """Ours: ten thousand calls make no page longer, and all that are kept can be reached."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        for n in range(PAGE_CALLS + 5):
            await watched.call("look", what=str(n))
        answer = await watched.browser.get("/console/traffic")
        older = next(link for link in answer.page.links if "before=" in link)
        rest = await watched.browser.get(older)

    first, last = (
        [link for link in one.page.links if link.startswith("/console/traffic/")]
        for one in (answer, rest)
    )
    assert len(first) == PAGE_CALLS
    assert len(last) >= 5
    assert not set(first) & set(last)


async def test_arguments_that_were_not_kept_are_not_repeated():
    """Ours: a command or a rule without them would be about another call."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/traffic")
        await watched.call("look", what="x" * 70_000)
        _, answer = await open_first_call(watched)

    assert "too large to be kept" in answer.text
    assert "isthmus call --host" not in answer.text
    assert "the rule holds for any" in answer.text
