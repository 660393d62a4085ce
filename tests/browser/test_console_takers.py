"""A question that two people look at, in a real browser: taken by one, taken over by the other."""

import pytest

from isthmus.host.model.interaction import QuestionTaker

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]

QUIET_MS = 450  # an answer counts once its card has stood still for so long
BOB = QuestionTaker("terminal", "another")


async def press(page, name):
    """Press a button once the card has stood still, and wait for the page that it leads to."""
    await page.wait_for_timeout(QUIET_MS)
    async with page.expect_navigation():
        await page.get_by_role("button", name=name, exact=True).first.click()


async def test_a_question_is_taken_over_and_answered(page, served):
    """Ours: by name, with scripts and without."""
    call, id = await served.ask()
    await served.host.view.take_question(id, BOB)
    await page.goto(f"{served.url}/inbox")
    assert "taken by terminal" in await page.locator("main").inner_text()
    await page.goto(f"{served.url}/inbox/{id}")
    assert 0 == await page.get_by_role("button", name="Allow", exact=True).count()
    await press(page, "Take over")
    assert "You have taken this" in await page.locator("main").inner_text()
    assert BOB not in served.host.view.takers().values()
    await press(page, "Allow")
    assert "bought tea" == (await call).text


async def test_a_draft_survives_that_somebody_else_takes_the_question(tab, served):
    """Ours: the page says so while one types, and the draft is there once it is taken over."""
    await served.sign_in(tab.page)
    call, id = await served.ask()
    await tab.page.goto(f"{served.url}/inbox/{id}")
    await tab.page.get_by_text("Edit", exact=True).click()
    await tab.page.locator("#edited").fill('{"what": "green tea"}')
    await served.host.view.take_question(id, BOB)
    await tab.page.get_by_text("Taken by terminal").wait_for()
    await press(tab.page, "Take over")
    await press(tab.page, "Allow")
    assert "bought green tea" == (await call).text
