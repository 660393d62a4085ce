"""Inbox of the console, without scripts: every answer is a plain form."""

import json

import pytest

from support.console.console_browser import ConsoledHost, parse_forms

HIGH = '[[rule]]\nid = "calls"\neffect = "ask"\nrisk = "high"\nwhen = { action = ["tool.call"] }\n'


async def test_what_waits_is_listed_and_allowed():
    """Ours: list, card, form, 303, list."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get("/console/")
        assert path in page
        assert "(1) Inbox" in page
        status, head, _ = await asked.browser.submit(path, press=("verdict", "allow"))
        assert (303, "/console/inbox?done=allow") == (status, head["location"])
        assert "tea" == (await call).text
        assert "Nothing waits." in await asked.browser.get("/console/inbox?done=allow")


async def test_what_is_denied_is_not_called():
    """Ours: with the reason that was given."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        await asked.browser.submit(path, press=("verdict", "deny"), fill={"reason": "too dear"})
        with pytest.raises(Exception, match="too dear"):
            await call
        assert [] == asked.bought


async def test_an_edit_is_what_is_called():
    """Ours: the arguments as they were changed."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        fill = {"edited": json.dumps({"what": "coffee"})}
        await asked.browser.submit(path, press=("verdict", "allow"), fill=fill)
        assert "coffee" == (await call).text


async def test_an_edit_that_is_no_json_is_shown_again():
    """Ours: nothing is decided, and nothing that was written is lost."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        status, _, text = await asked.browser.submit(
            path, press=("verdict", "allow"), fill={"edited": '{"what": '}
        )
        assert 409 == status
        assert "this is no JSON" in text
        form = next(form for form in parse_forms(text) if form["action"] == path)
        assert '{"what":' == form["fields"]["edited"].strip()
        assert not call.done()


async def test_a_yes_is_remembered_as_chosen():
    """Ours: for the session; the next call of the tool is not asked about."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        page = await asked.browser.get(path)
        number = page.split('data-scope="session"')[0].rsplit('value="', 1)[1].split('"')[0]
        await asked.browser.submit(path, press=("verdict", "allow"), fill={"remember": number})
        await call
        assert "again" == (await asked.host.call("shop__buy", {"what": "again"})).text


async def test_several_of_one_kind_are_answered_together():
    """Ours: those that were shown, once each."""
    async with ConsoledHost() as asked:
        first, path = await asked.ask(what="tea")
        second, _ = await asked.ask(what="milk")
        page = await asked.browser.get(f"{path}/batch")
        assert "2 questions of one kind" in page
        third, _ = await asked.ask(what="late")
        form = next(form for form in parse_forms(page) if form["action"] == f"{path}/batch")
        await asked.browser.send("POST", form["action"], {**form["fields"], "verdict": "allow"})
        assert {"tea", "milk"} == {(await first).text, (await second).text}
        assert not third.done()


async def test_a_card_that_is_gone_says_so():
    """Ours: the same words as for one that never was."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        await asked.browser.submit(path, press=("verdict", "allow"))
        await call
        gone = await asked.browser.send("GET", path)
        never = await asked.browser.send("GET", "/console/inbox/none")
        assert 404 == gone[0] == never[0]
