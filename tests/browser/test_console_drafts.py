"""Drafts on a card that changes, in a real browser: by a live update, and as a plain form."""

import pytest
from msgspec import structs

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]

QUIET_MS = 450  # an answer counts once its card has stood still for so long


@pytest.fixture
def change(served, monkeypatch):
    """Has the host show its questions with other arguments."""

    def change_arguments(**arguments):
        pending = type(served.host.view).pending

        def list_changed(view):
            return [
                structs.replace(one, payload=structs.replace(one.payload, arguments=arguments))
                for one in pending(view)
            ]

        monkeypatch.setattr(type(served.host.view), "pending", list_changed)

    return change_arguments


async def write_draft(page, served, id):
    """Open a card, edit its arguments and write a reason."""
    await page.goto(f"{served.url}/inbox/{id}")
    await page.get_by_text("Edit", exact=True).click()
    await page.locator("#edited").fill('{"what": "green tea"}')
    await page.get_by_label("Reason (if you deny)").fill("too dear")


async def check_draft(page):
    """The new card stands there with the draft beside it."""
    text = await page.locator("main").inner_text()
    assert "gin" in text
    assert "your draft, compared with the question as it is now" in text.lower()
    assert '{"what": "green tea"}' == (await page.locator("#edited").input_value()).strip()
    assert "too dear" == await page.get_by_label("Reason (if you deny)").input_value()


async def test_a_draft_survives_a_form_that_is_refused(page, served, change):
    """Ours: with scripts and without; the answer to the new card is the draft."""
    call, id = await served.ask()
    await write_draft(page, served, id)
    await page.wait_for_timeout(QUIET_MS)
    change(what="gin")
    async with page.expect_navigation():
        await page.get_by_role("button", name="Allow", exact=True).click()
    await check_draft(page)
    assert not call.done()
    await page.wait_for_timeout(QUIET_MS)
    async with page.expect_navigation():
        await page.get_by_role("button", name="Allow", exact=True).click()
    assert "bought green tea" == (await call).text


async def test_a_draft_survives_live_updates(tab, served, change):
    """Ours: the page is changed under the hand that types, once and again."""
    await served.sign_in(tab.page)
    call, id = await served.ask()
    await write_draft(tab.page, served, id)
    change(what="gin")
    await served.ask(what="milk")
    await tab.page.get_by_text("what has changed").wait_for()
    await check_draft(tab.page)
    focused = await tab.page.evaluate("document.activeElement.id")
    assert "reason" == focused
    change(what="gin", most=2)
    await served.ask(what="bread")
    await tab.page.get_by_text("most").first.wait_for()
    await check_draft(tab.page)
    assert not call.done()


async def test_the_first_of_two_keys_does_not_hold_for_a_changed_card(tab, served, change):
    """Ours: A was pressed for five euros, and y would have allowed nine thousand."""
    page = tab.page
    await served.sign_in(page)
    call, id = await served.ask("bank__transfer", euros=5)
    await page.goto(f"{served.url}/inbox/{id}")
    await page.locator("html[data-scripts]").wait_for(state="attached")
    await page.wait_for_timeout(QUIET_MS)
    await page.keyboard.press("A")
    await page.get_by_text("Press y to allow it").wait_for()
    change(euros=9000)
    await served.ask(what="milk")
    await page.get_by_text("what has changed").wait_for()
    await page.get_by_text("press A again").wait_for()
    await page.wait_for_timeout(QUIET_MS)
    await page.keyboard.press("y")
    await page.wait_for_timeout(QUIET_MS)
    assert page.url.endswith(id)
    assert not call.done()
