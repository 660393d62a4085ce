"""Live pages of the console: what waits appears by itself, and is answered once it has stood still."""

import asyncio
import re

import pytest

from support.browser.console_pages import read_main
from support.event_loop import run_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]

LOADED = "window.loadedOnce = true"
NOTICES = """
window.Notification = class {
  static permission = "default";
  static async requestPermission() {
    await tell("asked");
    return (this.permission = "granted");
  }
  constructor(title, options) { tell(`${title}: ${options.body}`); }
};
Object.defineProperty(document, "hidden", { get: () => true });
"""
"""Notifications as a background tab has them; Chromium without a window shows none."""


async def wait_count(page, count):
    """Wait until a tab's title says how many wait."""
    from playwright.async_api import expect

    said = f"({count}) " if count else ""
    await expect(page).to_have_title(re.compile(f"^{re.escape(said)}[A-Z]"))


async def find_icon(page):
    """Where the icon of a tab comes from."""
    return (await page.locator("#icon").get_attribute("href")).partition("?")[2]


async def hold_clock(page):
    """Stop the time of a page."""
    await page.clock.install(time=0)
    await page.clock.pause_at(1000)


async def test_a_question_appears_and_goes_without_a_reload(signed_in, served):
    """Ours: also the title and the icon of the tab say how many wait, and go back."""
    page = signed_in.page
    await page.goto(f"{served.url}/inbox")
    await page.evaluate(LOADED)
    assert "Nothing waits" in await read_main(page)
    call, _ = await served.ask(what="tea")
    await page.locator("main a.open", has_text="buy").wait_for()
    await wait_count(page, 1)
    assert "n=1" == await find_icon(page)
    call.cancel()
    await page.locator("main", has_text="Nothing waits").wait_for()
    await wait_count(page, 0)
    assert "n=0" == await find_icon(page)
    assert await page.evaluate("window.loadedOnce")


async def test_every_page_shows_the_count(signed_in, served):
    """Ours: also those that say nothing else of the Inbox."""
    page = signed_in.page
    for path in ("servers", "traffic", "access", "access/grants", "audit", "doctor"):
        await page.goto(f"{served.url}/{path}")
        call, _ = await served.ask(what="tea")
        await wait_count(page, 1)
        assert "1" == await page.locator("#count span").first.inner_text()
        call.cancel()
        await wait_count(page, 0)


async def test_a_card_that_was_answered_elsewhere_says_so(signed_in, served):
    """Ours: without a reload, and nothing is left to press."""
    page = signed_in.page
    call, id = await served.ask(what="tea")
    await page.goto(f"{served.url}/inbox/{id}")
    call.cancel()
    await page.locator("main", has_text="This question is closed").wait_for()
    assert 0 == await page.locator("main form").count()


async def test_what_happens_before_the_stream_is_open_is_seen(signed_in, served):
    """Ours: a question that is answered while a page is loading does not stay on it."""
    page, stream = signed_in.page, asyncio.get_running_loop().create_future()
    call, id = await served.ask(what="tea")

    def hold(route):
        stream.set_result(route)

    await page.route("**/events", hold)
    await page.goto(f"{served.url}/inbox/{id}")
    held = await stream
    call.cancel()
    await run_until(lambda: not served.host.view.pending())
    await held.continue_()
    await page.locator("main", has_text="This question is closed").wait_for()


async def test_a_stream_that_is_answered_with_an_error_is_opened_again(signed_in, served):
    """HTML, 9.2.2: the browser gives such a stream up, as behind a proxy whose console is starting."""
    page, refused = signed_in.page, []

    async def refuse(route):
        refused.append(route.request.url)
        await (route.fulfill(status=503) if len(refused) == 1 else route.continue_())

    await page.route("**/events", refuse)
    await page.goto(f"{served.url}/inbox")
    await run_until(lambda: refused)
    await served.ask(what="tea")
    await page.locator("main a.open", has_text="buy").wait_for()


async def test_a_page_that_is_answered_with_an_error_is_fetched_again(signed_in, served):
    """Ours: what has changed meanwhile is seen, and the page is not replaced by the error."""
    page, refused = signed_in.page, []

    async def refuse(route):
        refused.append(route.request.url)
        await (route.fulfill(status=502) if len(refused) == 1 else route.continue_())

    await page.goto(f"{served.url}/inbox")
    await page.locator("#count").wait_for(state="attached")
    await page.evaluate(LOADED)
    await page.route("**/inbox", refuse)
    await served.ask(what="tea")
    await page.locator("main a.open", has_text="buy").wait_for()
    assert 2 <= len(refused)
    assert await page.evaluate("window.loadedOnce")


async def test_what_was_opened_and_closed_stays_so_when_a_page_changes(signed_in, served):
    """Ours: a part of the page with a form in it does not close under the pointer."""
    page = signed_in.page
    await served.host.view.tools("shop")
    await page.goto(f"{served.url}/servers/shop")
    await page.get_by_text("Remove the server from the configuration").click()
    remove = page.locator("main").get_by_role("button", name="Remove")
    await remove.wait_for()
    await page.evaluate(LOADED)
    await page.evaluate("document.getElementById('main').dataset.seen = 'before'")
    await served.host.view.server_do("shop", "stop")
    await page.locator("main:not([data-seen])").wait_for()
    assert await remove.is_visible()
    assert await page.evaluate("window.loadedOnce")


async def test_a_draft_outlives_what_else_happens(signed_in, served):
    """Ours: a reason that is being written stays, whatever comes in."""
    page = signed_in.page
    _, id = await served.ask(what="tea")
    await page.goto(f"{served.url}/inbox/{id}")
    await page.get_by_label("Reason (if you deny)").fill("too d")
    await served.ask(what="milk")
    await wait_count(page, 2)
    assert "too d" == await page.get_by_label("Reason (if you deny)").input_value()


@pytest.mark.parametrize("way", ["pointer", "enter", "letter"])
async def test_an_answer_counts_once_its_card_has_stood_still(signed_in, served, way):
    """Ours: a press in the first 400 ms answers nothing, by pointer and by key."""
    page = signed_in.page
    call, id = await served.ask(what="tea")
    await hold_clock(page)
    await page.goto(f"{served.url}/inbox/{id}")
    await page.locator("html[data-scripts]").wait_for(state="attached")

    async def press():
        button = page.get_by_role("button", name="Allow", exact=True)
        if way == "pointer":
            await button.click()
        elif way == "enter":
            await button.press("Enter")
        else:
            await page.keyboard.press("a")

    await page.clock.run_for(399)
    await press()
    await page.locator("#said", has_text="again").wait_for()
    assert not call.done()
    await page.clock.run_for(401 if way != "pointer" else 1)
    async with page.expect_navigation():
        await press()
    assert "bought tea" == (await call).text


async def test_a_click_after_a_quick_text_counts(signed_in, served):
    """Ours: keys that follow each other are a text; a pointer that comes later is an answer."""
    page = signed_in.page
    call, id = await served.ask(what="tea")
    await hold_clock(page)
    await page.goto(f"{served.url}/inbox/{id}")
    await page.locator("html[data-scripts]").wait_for(state="attached")
    await page.clock.run_for(1000)
    await page.get_by_label("Reason (if you deny)").press_sequentially("too dear")
    await page.clock.run_for(1000)
    async with page.expect_navigation():
        await page.get_by_role("button", name="Deny", exact=True).click()
    await run_until(call.done)
    assert "too dear" in str(call.exception())


async def test_keys_of_a_text_answer_nothing(signed_in, served):
    """Ours: whoever types into another window, and finds this one below the keys, allows nothing."""
    page = signed_in.page
    call, id = await served.ask(what="tea")
    await hold_clock(page)
    await page.goto(f"{served.url}/inbox/{id}")
    await page.locator("html[data-scripts]").wait_for(state="attached")
    await page.clock.run_for(1000)
    for key in "quad":
        await page.keyboard.press(key)
    await page.locator("#said", has_text="This key came too soon after another").wait_for()
    assert not call.done()


async def test_notifications_come_to_who_has_asked_for_them(signed_in, served):
    """Ours: nobody is asked before the button is pressed, and nothing is said before."""
    page, told = signed_in.page, []

    def tell(text):
        told.append(text)

    await page.expose_function("tell", tell)
    await page.add_init_script(NOTICES)
    await page.goto(f"{served.url}/inbox")
    await served.ask(what="tea")
    await wait_count(page, 1)
    assert [] == told
    await page.get_by_role("button", name="Notify me").click()
    await served.ask("bank__transfer", euros=5)
    await run_until(lambda: len(told) > 1)
    assert ["asked", "isthmus: 2 waiting, 1 of high risk"] == told
    assert 0 == await page.get_by_role("button", name="Notify me").count()
