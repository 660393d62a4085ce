"""Console by the keyboard alone: every control is reached, its focus is seen, and the terminal's keys act."""

import json

import pytest

from isthmus.errors import IsthmusError
from support.browser.console_pages import read_main
from support.event_loop import run_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]

PATHS = (
    "/inbox", "/inbox/{id}", "/inbox/{id}/batch", "/inbox/{form}", "/servers", "/servers/shop",
    "/servers/shop/tools/find", "/traffic", "/access", "/access/grants", "/access/accounts",
    "/access/policy", "/audit", "/doctor", "/login", "/nothing",
)  # fmt: skip
LIST_CONTROLS = """() => {
  const all = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
  window.controls = [...document.querySelectorAll(all)].filter((one) => one.checkVisibility());
  return window.controls.length;
}"""
FIND_FOCUS = """() => {
  const one = document.activeElement;
  const looks = getComputedStyle(one);
  const box = one.getBoundingClientRect();
  const seen = looks.outlineStyle !== "none" && parseFloat(looks.outlineWidth) >= 2 && box.width > 0;
  const within = box.bottom > 0 && box.top < innerHeight;
  return [window.controls.indexOf(one), seen && within, one.outerHTML.slice(0, 200)];
}"""
FURTHER_STOPS = 30  # the parts of a date, areas that scroll, and the browser itself


async def wait_scripts(page):
    """Wait until the scripts of a page run, and stop its time a second after it appeared."""
    await page.locator("html[data-scripts]").wait_for(state="attached")
    await page.clock.run_for(1000)


async def open_page(page, url):
    """Open a page whose time a test has stopped."""
    await page.goto(url)
    await wait_scripts(page)


async def press_key(page, key):
    """Press a key that stands alone."""
    await page.clock.run_for(1000)
    await page.keyboard.press(key)


async def answer_by(page, key):
    """Press a key, and wait for the page that it leads to."""
    async with page.expect_navigation():
        await press_key(page, key)
    await wait_scripts(page)


@pytest.fixture
def page(signed_in):
    """The page of a tab that is signed in."""
    return signed_in.page


async def stop_clock(page):
    """Have the time of pages stand still."""
    await page.clock.install(time=0)
    await page.clock.pause_at(1000)


async def test_every_control_is_reached_and_its_focus_is_seen(page, served):
    """Ours: by Tab, in the order of the page, in sight, and nothing holds the focus back."""
    _, id = await served.ask(what="tea")
    await served.ask(what="milk")
    _, form = await served.ask("shop__choose", film="Playtime")
    await page.emulate_media(reduced_motion="reduce")  # scrolls at once
    faults = []
    for path in PATHS:
        await page.goto(f"{served.url}{path.format(id=id, form=form)}")
        count = await page.evaluate(LIST_CONTROLS)
        reached = []
        for _ in range(count + FURTHER_STOPS):
            if len(reached) == count:
                break
            await page.keyboard.press("Tab")
            number, seen, what = await page.evaluate(FIND_FOCUS)
            if number >= 0 and number not in reached:
                reached.append(number)
                faults += [] if seen else [(path, "not seen", what)]
        faults += [
            (path, "never reached", number) for number in range(count) if number not in reached
        ]
        # the login page begins at its field
        first = reached.index(0) if 0 in reached else 0
        ordered = reached[first:] + reached[:first]
        faults += [] if ordered == sorted(ordered) else [(path, "out of order", reached)]
    assert [] == faults


async def test_a_question_is_found_and_allowed(page, served):
    """Ours: j and k go through the list, Enter opens, a allows."""
    await stop_clock(page)
    calls = [await served.ask(what=what) for what in ("tea", "milk", "salt")]
    await open_page(page, f"{served.url}/inbox")
    for key in "jjjk":
        await press_key(page, key)
    async with page.expect_navigation():
        await page.keyboard.press("Enter")
    await wait_scripts(page)
    assert page.url.endswith(calls[1][1])
    await answer_by(page, "a")
    assert "bought milk" == (await calls[1][0]).text


async def test_high_risk_wants_two_keys(page, served):
    """Ours: a says so, A alone does nothing, another key takes it back, A and y allow it."""
    await stop_clock(page)
    call, id = await served.ask("bank__transfer", euros=5)
    await open_page(page, f"{served.url}/inbox/{id}")
    for keys in ("a", "Ajy", "y"):
        for key in keys:
            await press_key(page, key)
    assert not call.done()
    await press_key(page, "A")
    await page.get_by_text("Press y to allow it").wait_for()
    await answer_by(page, "y")
    assert "5 euros are gone" == (await call).text


async def test_arguments_are_edited_by_keys(page, served):
    """Ours: e opens the draft, Escape leaves it, u undoes it, a allows what stands there."""
    await stop_clock(page)
    call, id = await served.ask(what="tea")
    await open_page(page, f"{served.url}/inbox/{id}")
    draft = page.locator("#edited")
    asked = await draft.input_value()
    await press_key(page, "e")
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(json.dumps({"what": "coffee"}))
    await page.keyboard.press("Escape")
    await press_key(page, "u")
    assert asked == await draft.input_value()
    await press_key(page, "e")
    await page.keyboard.press("Control+A")
    await page.keyboard.insert_text(json.dumps({"what": "cocoa"}))
    await page.keyboard.press("Escape")
    await answer_by(page, "a")
    assert "bought cocoa" == (await call).text


async def test_a_question_is_denied_by_a_key(page, served):
    """Ours: with the reason that was written before."""
    await stop_clock(page)
    call, id = await served.ask(what="tea")
    await open_page(page, f"{served.url}/inbox/{id}")
    await page.get_by_label("Reason (if you deny)").focus()
    await page.keyboard.type("too dear")
    await page.keyboard.press("Escape")
    await answer_by(page, "d")
    with pytest.raises(IsthmusError, match="too dear"):
        await call


async def test_a_form_is_cancelled_by_a_key(page, served):
    """Ours: c tells the server so."""
    await stop_clock(page)
    call, id = await served.ask("shop__choose", film="Playtime")
    await open_page(page, f"{served.url}/inbox/{id}")
    await answer_by(page, "c")
    assert "no row" == (await call).text


async def test_a_yes_is_remembered_by_keys(page, served):
    """Ours: r goes to the choice, s takes this session and allows."""
    await stop_clock(page)
    call, id = await served.ask(what="tea")
    await open_page(page, f"{served.url}/inbox/{id}")
    await press_key(page, "r")
    assert "remember" == await page.evaluate("document.activeElement.id")
    await page.keyboard.press("Escape")
    await answer_by(page, "s")
    await call
    (grant,) = await served.host.view.grants()
    assert "session" == grant.scope
    await served.host.view.revoke(grant.id, by="the test")


async def test_several_are_answered_and_the_reasons_read_by_keys(page, served):
    """Ours: g leads to those alike, ? shows why, / goes to the search."""
    await stop_clock(page)
    first, id = await served.ask(what="tea")
    second, _ = await served.ask(what="milk")
    await open_page(page, f"{served.url}/inbox/{id}")
    await press_key(page, "?")
    assert await page.locator("#why").get_attribute("open") is not None
    assert "this spends money" in await read_main(page)
    await answer_by(page, "g")
    await answer_by(page, "a")
    await run_until(lambda: first.done() and second.done())
    await open_page(page, f"{served.url}/audit")
    await served.ask(what="salt")
    await open_page(page, f"{served.url}/inbox")
    await press_key(page, "/")
    assert "q" == await page.evaluate("document.activeElement.id")


async def test_the_focus_stays_when_a_page_changes(page, served):
    """Ours: whoever is at a button of a list keeps it, whatever the servers do meanwhile."""
    for name in ("shop", "bank"):
        await served.host.view.server_do(name, "stop", by="ada")
    await page.goto(f"{served.url}/servers")
    await page.get_by_role("button", name="start bank").focus()
    await served.host.view.server_do("shop", "start", by="ada")
    await page.get_by_role("button", name="stop shop").wait_for()
    assert "start bank" == await page.evaluate("document.activeElement.ariaLabel")
