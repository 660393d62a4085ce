"""Pages of the console are accessible: axe finds nothing, in both themes, narrow and wide."""

import pytest
import pytest_asyncio

from support.browser.chromium import Tab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(90),
]

AXE = "axe_playwright_python.async_playwright"
PATHS = (
    "/inbox", "/inbox/{id}", "/inbox/{id}/batch", "/inbox/{form}", "/servers", "/servers/shop",
    "/servers/shop/tools/find", "/traffic", "/traffic/{call}?wire=1", "/access", "/access/grants",
    "/access/accounts", "/access/policy", "/audit", "/audit/1", "/doctor", "/doctor/shop",
    "/nothing", "/login",
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def paths(shop_console):
    """Every page, with something on it."""
    await shop_console.host.call("shop__find", {"words": "assam"})
    _, id = await shop_console.ask(what="tea")
    await shop_console.ask(what="milk")
    _, form = await shop_console.ask("shop__choose", film="Playtime")
    calls = await shop_console.host.view.audit_tail(100)
    call = next(one.call for one in calls if one.kind == "outcome" and one.object == "find")
    return [path.format(id=id, form=form, call=call) for path in PATHS]


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_axe_finds_nothing(chromium, shop_console, paths, theme, width):
    """Ours: WCAG A and AA, and the best practices that axe knows; nothing runs out of the screen."""
    axe = pytest.importorskip(AXE, reason="pip install --group browser").Axe()
    tab = await Tab.of(chromium, color_scheme=theme, viewport={"width": width, "height": 900})
    found = []
    await shop_console.sign_in(tab.page)
    for path in paths:
        await tab.page.goto(f"{shop_console.url}{path}")
        results = await axe.run(tab.page)
        found += [
            (path, one["id"], [node["target"] for node in one["nodes"]][:3])
            for one in results.response["violations"]
        ]
        wider = await tab.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        found += [(path, f"{wider} px out of the screen")] if wider > 0 else []
    await tab.context.close()
    assert [] == found
