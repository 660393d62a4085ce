"""Pages of the console in a browser: cards opened, buttons pressed, texts read."""

__all__ = ["QUIET_MS", "open_card", "press_button", "read_main"]

QUIET_MS = 450  # an answer counts once its card has stood still for so long


async def open_card(page, served, id):
    """Show a card, and look at it as long as people have to."""
    await page.goto(f"{served.url}/inbox/{id}")
    await page.wait_for_timeout(QUIET_MS)


async def press_button(page, name):
    """Press a button, and wait for the page that it leads to."""
    async with page.expect_navigation():
        await page.get_by_role("button", name=name, exact=True).first.click()


async def read_main(page):
    """The text of a page."""
    return await page.locator("main").inner_text()
