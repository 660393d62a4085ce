"""Sign-in at an authorization server in a real browser: from the console to the issuer, and back."""

import pytest

from isthmus.console import AuthorizationLogin, Console
from isthmus.host import Host
from support.auth.authority import PASSWORD, make_authority, make_users
from support.browser.chromium import Tab, serve_in_browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(90),
]

AXE = "axe_playwright_python.async_playwright"
LOOKS = [(theme, width) for theme in ("light", "dark") for width in (360, 1440)]


async def examine(page):
    """What axe finds on a page, in both themes, narrow and wide; and what runs out of the screen."""
    axe = pytest.importorskip(AXE, reason="pip install --group browser").Axe()
    found = []
    for theme, width in LOOKS:
        await page.emulate_media(color_scheme=theme)
        await page.set_viewport_size({"width": width, "height": 900})
        results = await axe.run(page)
        found += [(page.url, theme, width, one["id"]) for one in results.response["violations"]]
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        found += [(page.url, width, "too wide")] if await page.evaluate(wider) > 0 else []
    return found


@pytest.mark.parametrize("scripts", [True, False])
async def test_a_user_signs_in_and_comes_back(chromium, tmp_path, scripts):
    """Ours: to the page that was asked for; every page on the way is accessible."""
    host, found = Host(), []

    async def serve_issuer(scope, receive, send):
        await authority(scope, receive, send)

    async with host, serve_in_browser(lambda _: serve_issuer) as (issuer, _):

        def make(url):
            return Console(host.view, url, identity=AuthorizationLogin(url, issuer))

        async with serve_in_browser(make) as (url, console):
            users = make_users(tmp_path, "ada")
            authority = make_authority(issuer, users, resources=[f"{url}/console"])
            tab = await Tab.of(chromium, java_script_enabled=scripts)
            await tab.page.goto(f"{url}/console/access/grants")
            assert "Sign in" == await tab.heading()
            found += await examine(tab.page) if scripts else []
            await tab.page.get_by_role("link", name="Sign in").click()
            found += await examine(tab.page) if scripts else []
            await tab.log_in("ada", PASSWORD)
            await tab.page.get_by_role("button", name="Allow").wait_for()
            found += await examine(tab.page) if scripts else []
            await tab.press("Allow")
            await tab.page.wait_for_url(f"{url}/console/access/grants")
            assert "Grants" == await tab.heading()
            assert 0 == await tab.page.get_by_role("link", name="Servers").count()
            await tab.press("Sign out")
            await tab.page.goto(f"{url}/console/access/grants")
            assert "Sign in" == await tab.heading()
            await tab.context.close()
            await authority.close()
            await console.close()
    assert [] == found
    assert [] == tab.violated
