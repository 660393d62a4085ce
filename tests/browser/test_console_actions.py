"""Every action of the console in a real browser, with scripts and as plain forms without."""

import json

import pytest

from isthmus.errors import IsthmusError
from support.browser.chromium import Tab
from support.browser.console_pages import QUIET_MS, open_card, press_button, read_main

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]


async def test_a_question_is_allowed(page, served):
    """Ours: from the list to the card, and back to the list."""
    call, id = await served.ask()
    await page.goto(f"{served.url}/inbox")
    assert "(1) Inbox" in await page.title()
    async with page.expect_navigation():
        await page.locator("a.open").click()
    assert page.url.endswith(id)
    await page.wait_for_timeout(QUIET_MS)
    await press_button(page, "Allow")
    assert "Allowed." in await read_main(page)
    assert "bought tea" == (await call).text


async def test_a_question_is_denied_with_a_reason(page, served):
    """Ours: the caller is told why."""
    call, id = await served.ask()
    await open_card(page, served, id)
    await page.get_by_label("Reason (if you deny)").fill("too dear")
    await press_button(page, "Deny")
    with pytest.raises(IsthmusError, match="too dear"):
        await call
    assert [] == served.done


async def test_arguments_are_edited(page, served):
    """Ours: what stands in the form is what is called; what is no JSON comes back."""
    call, id = await served.ask()
    await open_card(page, served, id)
    await page.get_by_text("Edit", exact=True).click()
    await page.wait_for_timeout(QUIET_MS)
    await page.locator("#edited").fill('{"what": ')
    await press_button(page, "Allow")
    assert "this is no JSON" in await read_main(page)
    await page.wait_for_timeout(QUIET_MS)
    await page.locator("#edited").fill(json.dumps({"what": "coffee"}))
    await press_button(page, "Allow")
    assert "bought coffee" == (await call).text


async def test_a_yes_is_remembered_and_revoked(page, served):
    """Ours: it is listed under Access, and can be taken back there."""
    call, id = await served.ask()
    await open_card(page, served, id)
    number = await page.locator('[data-scope="session"]').get_attribute("value")
    await page.locator("#remember").select_option(number)
    await press_button(page, "Allow")
    await call
    assert "bought milk" == (await served.host.call("shop__buy", {"what": "milk"})).text
    await page.goto(f"{served.url}/access/grants")
    await page.get_by_role("button", name="Revoke").click()
    await page.wait_for_load_state()
    assert not await served.host.view.grants()


async def test_a_call_of_high_risk_wants_a_tick(page, served):
    """Ours: without the box nothing is decided."""
    call, id = await served.ask("bank__transfer", euros=5)
    await open_card(page, served, id)
    await press_button(page, "Allow")
    assert "High risk" in await read_main(page)
    assert not call.done()
    await page.wait_for_timeout(QUIET_MS)
    await page.locator("#sure").check()
    await press_button(page, "Allow")
    assert "5 euros are gone" == (await call).text


async def test_several_are_answered_together(page, served):
    """Ours: those that were shown."""
    first, id = await served.ask(what="tea")
    second, _ = await served.ask(what="milk")
    await page.goto(f"{served.url}/inbox/{id}")
    async with page.expect_navigation():
        await page.get_by_role("link", name="Answer all 2 of this kind together").click()
    await page.wait_for_timeout(QUIET_MS)
    await press_button(page, "Allow these 2, once each")
    assert {"bought tea", "bought milk"} == {(await first).text, (await second).text}


async def test_a_form_of_a_server_is_filled_in(page, served):
    """Ours: an elicitation is a form of the page."""
    call, id = await served.ask("shop__choose", film="Playtime")
    await open_card(page, served, id)
    assert "Which row for Playtime?" in await read_main(page)
    await page.locator("main fieldset input").fill("7")
    await press_button(page, "Send")
    assert "row 7" == (await call).text


async def test_a_form_of_a_server_is_cancelled(page, served):
    """Ours: the server is told so."""
    call, id = await served.ask("shop__choose", film="Playtime")
    await open_card(page, served, id)
    await press_button(page, "Cancel")
    assert "no row" == (await call).text


async def test_a_server_is_stopped_started_and_restarted(page, served):
    """Ours: the list says how it went."""
    await served.host.view.tools("shop")
    await page.goto(f"{served.url}/servers/shop")
    for name in ("stop shop", "start shop", "restart shop"):
        await press_button(page, name)
        await page.goto(f"{served.url}/servers/shop")
    await served.host.view.tools("shop")
    await page.reload()
    assert "ready" in await read_main(page)


async def test_a_server_is_added_and_removed(page, served):
    """Ours: it is written into the configuration, and taken out of it."""
    await page.goto(f"{served.url}/servers")
    await page.get_by_text("Add a server").click()
    await page.get_by_label("Name", exact=False).first.fill("extra")
    await page.get_by_label("Command or URL").fill("https://127.0.0.1:1/mcp")
    await press_button(page, "Add")
    assert "extra" in {one.name for one in served.host.view.servers()}
    await page.goto(f"{served.url}/servers/extra")
    await page.get_by_text("Remove the server from the configuration").click()
    await page.locator("main").get_by_role("button", name="Remove").click()
    await page.wait_for_load_state()
    assert "extra" not in {one.name for one in served.host.view.servers()}


async def test_a_tool_is_tried(page, served):
    """Ours: through the policy, as the person who is signed in."""
    await served.host.view.tools("shop")
    await page.goto(f"{served.url}/servers/shop/tools/find")
    await page.get_by_label("words").fill("tea")
    await press_button(page, "Call it")
    assert "found tea 3" in await read_main(page)


async def test_calls_are_found_opened_and_stopped(page, served):
    """Ours: by the words of the search; with what was said on the wire."""
    await served.host.call("shop__find", {"words": "assam"})
    call = served.begin("shop__hang")
    await page.goto(f"{served.url}/traffic")
    await page.get_by_label("Text").fill("assam")
    await press_button(page, "Show")
    rows = page.locator("main tbody tr", has_text="find")
    assert 1 <= await rows.count()
    async with page.expect_navigation():
        await rows.first.locator("a").first.click()
    assert "assam" in await read_main(page)
    await page.get_by_role("link", name="Show the messages on the wire").click()
    await page.wait_for_load_state()
    assert "tools/call" in await read_main(page)
    await page.goto(f"{served.url}/traffic?outcome=running")
    await page.locator("main tbody a", has_text="hang").first.click()
    await press_button(page, "Stop it")
    assert call.done() or "cancelled" in await read_main(page)


async def test_a_policy_is_tried_and_replayed(page, served):
    """Ours: nothing happens; the answer names the rule."""
    await served.host.call("shop__find", {"words": "assam"})
    await page.goto(f"{served.url}/access/policy")
    await page.get_by_label("Server").select_option("shop")
    await page.get_by_label("Tool, URI or prompt").fill("empty")
    await press_button(page, "What would happen?")
    assert "nobody empties the shop" in await read_main(page)
    await page.goto(f"{served.url}/access/policy")
    await page.get_by_label("Policy file").fill("locked-down")
    await press_button(page, "Test it on past calls")
    assert "deny" in await read_main(page)


async def test_the_audit_log_is_searched_verified_and_exported(page, served):
    """Ours: a row, its trace, the chain, and all of it as lines of JSON."""
    await served.host.call("shop__find", {"words": "assam"})
    await page.goto(f"{served.url}/audit")
    await page.get_by_label("Words").fill("find")
    await press_button(page, "Show")
    async with page.expect_navigation():
        await page.locator("main tbody a").first.click()
    assert "look" in await read_main(page)
    await page.goto(f"{served.url}/audit")
    await press_button(page, "Verify the chain")
    assert "proved" in await read_main(page)
    await page.goto(f"{served.url}/audit?text=find")
    async with page.expect_download() as started:
        await page.get_by_role("link", name="Export these rows").click()
    path = await (await started.value).path()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert "find" in {json.loads(line).get("object") for line in lines}


async def test_servers_are_examined(page, served):
    """Ours: step by step, until the first that fails."""
    await page.goto(f"{served.url}/doctor")
    await press_button(page, "Examine all")
    await page.goto(f"{served.url}/doctor/shop")
    assert "shop" in await page.locator("h1").inner_text()


async def test_a_theme_is_chosen_and_somebody_signs_out(page, served):
    """Ours: the theme is kept in a cookie; after signing out no page is shown."""
    await page.goto(f"{served.url}/inbox")
    await press_button(page, "Theme: auto")
    assert "light" == await page.locator("html").get_attribute("data-theme")
    await press_button(page, "Theme: light")
    assert "dark" == await page.locator("html").get_attribute("data-theme")
    await press_button(page, "Sign out")
    await page.goto(f"{served.url}/inbox")
    assert "Sign in" == await page.locator("h1").inner_text()


@pytest.mark.parametrize("scripts", [True, False])
async def test_somebody_signs_in(chromium, shop_console, scripts):
    """Ours: by the address that was printed, or with its token in the form."""
    tab = await Tab.of(chromium, java_script_enabled=scripts)
    await shop_console.sign_in(tab.page, scripts=scripts)
    assert "Inbox" == await tab.heading()
    await tab.context.close()
