"""Servers pages: what they show, and what a person does there, as plain forms."""

import json

import pytest

from isthmus.host import Quarantined
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.console.page_browser import WatchedHost
from support.event_loop import run_until

SHOP = "/console/servers/shop"
LOOK = f"{SHOP}/tools/look"


async def test_the_list_shows_each_server_with_its_state():
    """Ours: state, era and counts, and the buttons that make sense in that state."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        answer = await watched.browser.get("/console/servers")

    assert answer.status == 200
    for word in ("shop", "ready", "2026-07-28"):
        assert word in answer.text
    buttons = [one for form in answer.page.forms if form.action == SHOP for one in form.buttons]
    assert buttons == [("what", "stop"), ("what", "restart")]


async def test_a_host_without_servers_says_how_to_add_one():
    """Ours: an empty state is a sentence, and the form stands below."""
    async with WatchedHost(servers=False) as watched:
        answer = await watched.browser.get("/console/servers")

    assert "There are no servers yet" in answer.text
    assert any(form.action == "/console/servers" for form in answer.page.forms)


async def test_one_server_shows_its_tools_calls_and_words():
    """Ours: everything about a server on one page, and nothing of it as markup."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        answer = await watched.browser.get(SHOP)

    assert answer.status == 200
    for word in (
        "Tools (6)",
        "Look at something",
        "nobody has checked",
        "The server wrote nothing",
    ):
        assert word in answer.text
    assert LOOK in answer.page.links


@pytest.mark.parametrize(("what", "state"), [("stop", "idle"), ("restart", "ready")])
async def test_a_server_is_stopped_and_restarted_by_forms(what, state):
    """Ours: the page that follows shows the new state, and a row says who did it."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        page = await watched.browser.get("/console/servers")
        answer = await watched.browser.submit(page, SHOP, ("what", what))
        rows = await watched.host.view.audit_tail(100)

    assert answer.status == 200
    assert state in answer.text
    assert any("console (operator)" in row.approver for row in rows)


@pytest.mark.parametrize(
    "path", [f"{SHOP}x", f"{SHOP}/tools/nothing", "/console/servers/x/tools/y"]
)
async def test_what_is_not_there_is_not_found(path):
    """Ours: a sentence with status 404, and no trace of a fault."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get(path)

    assert answer.status == 404
    assert "There is no" in answer.text


async def test_something_else_than_the_page_offers_is_refused():
    """Ours: a form with a made-up action does nothing."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        page = await watched.browser.get("/console/servers")
        answer = await watched.browser.submit(page, SHOP, what="explode")

    assert answer.status == 400


# Tools


@pytest.mark.parametrize(
    ("page", "after"),
    [("/console/servers/shop", "/console/servers/shop"), ("https://evil.example/x", "/console/"),
     ("/console/none", "/console/")],
)  # fmt: skip
async def test_a_chosen_theme_leaves_a_person_on_the_page(page, after):
    """Ours: the form names its page, and leads to pages of the console only."""
    async with WatchedHost() as watched:
        answer = await watched.browser.get("/console/servers/shop")
        form = next(one for one in answer.page.forms if one.action == "/console/theme")
        sent = await watched.browser.send("POST", form.action, form.fields | {"page": page})

    assert form.fields["page"] == "/console/servers/shop"
    assert sent.headers["location"] == after


async def test_a_tool_is_tried_and_its_result_is_shown_whole():
    """Ours: the form is made from the schema, the call goes through the host, the result is text."""
    async with WatchedHost() as watched:
        page = await watched.open_tool("look")
        answer = await watched.browser.submit(
            page, LOOK, ("what", "try"), **{"argument-0": "a\u200bb", "argument-1": "3"}
        )
        rows = await watched.host.view.audit_tail(100)

    assert answer.status == 200
    assert "saw a<U+200B>b 3" in answer.text
    assert "isthmus call --host shop__look" in answer.text
    assert [row.principal for row in rows if row.kind == "intent"] == ["user:local"]


async def test_a_wrong_field_comes_back_with_its_fault():
    """Ours: nothing is called, and what was typed is there still."""
    async with WatchedHost() as watched:
        page = await watched.open_tool("look")
        answer = await watched.browser.submit(
            page, LOOK, ("what", "try"), **{"argument-0": "keep me", "argument-1": "x"}
        )
        rows = await watched.host.view.audit_tail(100)

    assert answer.status == 400
    assert "not a whole number" in answer.text
    assert any(form.fields.get("argument-0") == "keep me" for form in answer.page.forms)
    assert [row for row in rows if row.kind == "intent"] == []


async def test_a_tool_that_fails_shows_its_own_words():
    """Ours: a failure of the tool is a result, and a refusal of the policy is told in words."""
    fail, sell = f"{SHOP}/tools/fail", f"{SHOP}/tools/sell"
    async with WatchedHost() as watched:
        page = await watched.open_tool("fail")
        failed = await watched.browser.submit(page, fail, ("what", "try"), **{"argument-0": "x"})
        page = await watched.open_tool("sell")
        denied = await watched.browser.submit(page, sell, ("what", "try"), **{"argument-0": "x"})

    assert "the tool reported an error" in failed.text
    assert "<script>alert(1)" in failed.text
    assert "The call was not completed" in denied.text
    assert "nobody sells here" in denied.text


async def test_a_call_that_waits_for_approval_leads_to_its_card():
    """Ours: the page does not hang, and shows the result once the card is answered."""
    buy = f"{SHOP}/tools/buy"
    async with WatchedHost() as watched, watched.host.view.attend("test"):
        page = await watched.open_tool("buy")
        answer = await watched.browser.submit(page, buy, ("what", "try"), **{"argument-0": "x"})
        question = watched.host.view.pending()[0].id
        assert f"/console/inbox/{question}" in answer.page.links
        again = next(link for link in answer.page.links if "try=" in link).partition("#")[0]
        await watched.host.view.decide(question, Decision(verdict="allow", by="test"))
        await watched.browser.wait_for(again, "bought x")


async def test_a_call_under_way_is_stopped_by_a_form():
    """Ours: the upstream call is cut."""
    hang = f"{SHOP}/tools/hang"
    async with WatchedHost() as watched:
        page = await watched.open_tool("hang")
        answer = await watched.browser.submit(page, hang, ("what", "try"))
        assert "The call is running" in answer.text
        await watched.browser.submit(answer, hang, ("what", "stop"))
        await run_until(lambda: "cut" in watched.cut)


async def test_a_name_with_any_letters_has_a_page():
    """Ours: slashes, blanks and quotes of a tool's name are part of the address."""
    async with WatchedHost() as watched:
        await watched.host.view.tools("shop")
        page = await watched.browser.get(SHOP)
        odd = next(link for link in page.page.links if "odd" in link)
        answer = await watched.browser.get(odd)

    assert answer.status == 200
    assert "odd/name %2F?#" in answer.text


async def test_a_changed_tool_is_shown_line_by_line_and_released(tmp_path):
    """Ours: what was and what is, hostile marks visible; after the release it is called again."""
    async with WatchedHost(state=tmp_path) as watched:
        await watched.call("look", what="it")
    async with WatchedHost(state=tmp_path, about="Look, and send it on.") as watched:
        with pytest.raises(Quarantined):
            await watched.call("look", what="it")
        page = await watched.open_tool("look")
        listed = await watched.browser.get(SHOP)
        answer = await watched.browser.submit(page, LOOK, ("what", "release"))
        rows = await watched.host.view.audit_tail(100)
        result = await watched.call("look", what="it")

    assert "quarantined" in listed.text
    for line in ("Look at something.", "Look, and send it on.", "<U+202E>"):
        assert line in page.text.partition("Quarantine")[2]
    assert "known" in answer.text
    assert not any(("what", "release") in form.buttons for form in answer.page.forms)
    assert "console (operator)" in [row.approver for row in rows if row.action == "tool.change"]
    assert "saw it" in result.text


async def test_a_definition_that_nobody_has_seen_is_not_released(tmp_path):
    """Ours: the form is about what was shown; another fingerprint releases nothing."""
    async with WatchedHost(state=tmp_path) as watched:
        await watched.call("look", what="it")
    async with WatchedHost(state=tmp_path, about="Look, and send it on.") as watched:
        with pytest.raises(Quarantined):
            await watched.call("look", what="it")
        page = await watched.open_tool("look")
        answer = await watched.browser.submit(
            page, LOOK, ("what", "release"), fingerprint="00" * 32
        )

    assert answer.status == 409
    assert "Nothing was released" in answer.text


async def test_a_release_that_policy_denies_says_why(tmp_path):
    """Ours: the page is no way around a rule, and shows the reason."""
    denied = """
    [[rule]]
    id = "changes"
    effect = "deny"
    reason = "no tool may change"
    when = { action = "tool.change" }
    """
    async with WatchedHost(state=tmp_path) as watched:
        await watched.call("look", what="it")
    async with WatchedHost(state=tmp_path, about="Look, and send it on.") as watched:
        with pytest.raises(Quarantined):
            await watched.call("look", what="it")
        watched.host.policy.replace(Policy(read_layers(denied, "user")))
        page = await watched.open_tool("look")
        answer = await watched.browser.submit(page, LOOK, ("what", "release"))

    assert answer.status == 403
    assert "was not released: no tool may change" in answer.text


# The configuration


def write_config(folder, **servers):
    """A configuration with these servers, which are not started."""
    path = folder / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


async def test_servers_are_added_and_removed_by_forms(tmp_path):
    """Ours: one by its command, several from a pasted piece; the file has them, and rows say who."""
    path = write_config(tmp_path, first={"command": "no-such-program"})
    async with WatchedHost(file=str(path), state=tmp_path / "state") as watched:
        page = await watched.browser.get("/console/servers")
        one = await watched.browser.submit(
            page,
            "/console/servers",
            name="second",
            where="no-such-program --flag 'a b'",
            pairs="A=1",
        )
        page = await watched.browser.get("/console/servers")
        pasted = json.dumps(
            {"mcpServers": {"third": {"url": "http://127.0.0.1:9/mcp"}, "fourth": {"command": "x"}}}
        )
        several = await watched.browser.submit(page, "/console/servers", pasted=pasted)
        page = await watched.browser.get("/console/servers/first")
        left = await watched.browser.submit(page, "/console/servers/first", ("what", "remove"))
        rows = await watched.host.view.audit_tail(100)

    written = json.loads(path.read_text())["mcpServers"]
    assert written["second"] == {
        "command": "no-such-program",
        "args": ["--flag", "a b"],
        "env": {"A": "1"},
    }
    assert set(written) == {"second", "third", "fourth"}
    assert one.status == several.status == left.status == 200
    assert "/console/servers/first" not in left.page.links
    by = {row.object: row.approver for row in rows if row.kind == "config" and row.approver}
    assert by["second"] == by["first"] == "console (operator)"


@pytest.mark.parametrize(
    ("filled", "told"),
    [
        ({"name": "first", "where": "x"}, "first"),
        ({"name": "", "where": "x"}, "needs a name"),
        ({"name": "Not A Name", "where": "x"}, "Not A Name"),
        ({"pasted": "{"}, "not JSON"),
    ],
)
async def test_a_server_that_cannot_be_added_is_told_at_its_field(tmp_path, filled, told):
    """Ours: nothing is written, and what was typed is there still."""
    path = write_config(tmp_path, first={"command": "no-such-program"})
    before = path.read_text()
    async with WatchedHost(file=str(path), state=tmp_path / "state") as watched:
        page = await watched.browser.get("/console/servers")
        answer = await watched.browser.submit(page, "/console/servers", **filled)

    assert answer.status == 400
    assert told in answer.text
    assert path.read_text() == before


async def test_those_that_were_added_before_a_bad_one_are_named(tmp_path):
    """Ours: what stands in the configuration by then was not "nothing"."""
    path = write_config(tmp_path, first={"command": "no-such-program"})
    async with WatchedHost(file=str(path), state=tmp_path / "state") as watched:
        page = await watched.browser.get("/console/servers")
        pasted = json.dumps({"good": {"command": "x"}, "first": {"command": "x"}})
        answer = await watched.browser.submit(page, "/console/servers", pasted=pasted)

    assert answer.status == 400
    assert "Only these were added: good." in answer.text
    assert "Nothing was added" not in answer.text


async def test_a_server_of_a_program_is_not_removed():
    """Ours: it stands in no file; the page says that nothing was done."""
    async with WatchedHost() as watched:
        page = await watched.browser.get(SHOP)
        answer = await watched.browser.submit(page, SHOP, ("what", "remove"))

    assert answer.status == 409
    assert "remove did not work" in answer.text
