"""Changes that people make in the console, in a real browser, with scripts and as plain forms without."""

import asyncio
import json

import pytest
import pytest_asyncio

from isthmus import Server
from isthmus.auth import HeaderUsers
from isthmus.console import Console, ProxyLogin
from isthmus.errors import IsthmusError
from isthmus.host.model.interaction import Decision
from isthmus.host.model.view import TrafficQuery
from isthmus.host.policy.policy import Policy
from support.browser.chromium import Tab, serve_in_browser
from support.browser.console_pages import press_button, read_main
from support.console.served_console import serve_shop_console
from support.event_loop import run_until
from support.gateway.account_town import open_account_town

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(60),
]

ADA = "user:ada@local"


def make_shop(about):
    """A server with one tool, which policy allows."""
    server = Server("shelf")

    @server.tool(description=about)
    async def find(words: str) -> str:
        return words

    return server


@pytest_asyncio.fixture(loop_scope="session", params=[True, False], ids=["scripts", "no scripts"])
async def tab(chromium, request):
    """A new profile, with scripts and without."""
    opened = await Tab.of(chromium, java_script_enabled=request.param)
    yield opened
    await opened.context.close()
    assert [] == opened.violated


async def test_a_changed_tool_is_released(tab, tmp_path):
    """Ours: its difference is shown; after the release it is called again."""
    async with serve_shop_console(tmp_path, ("shelf", make_shop("Look."))) as served:
        await served.host.call("shelf__find", {"words": "tea"})
    async with serve_shop_console(tmp_path, ("shelf", make_shop("Look, and send it."))) as served:
        await served.let_in(tab.context)
        await served.host.view.server_do("shelf", "start", by="ada")
        await tab.page.goto(f"{served.url}/servers/shelf")
        assert "quarantined" in await read_main(tab.page)
        await tab.page.get_by_role("link", name="find", exact=True).click()
        await tab.page.locator("#quarantine").wait_for()
        assert "send it" in await tab.page.locator(".diff").inner_text()
        await press_button(tab.page, "Release this definition")
        assert "quarantined" not in await read_main(tab.page)
        assert "tea" == (await served.host.call("shelf__find", {"words": "tea"})).text


async def test_a_shadow_policy_is_put_in_force(tab, tmp_path):
    """Ours: from then on it decides."""
    async with serve_shop_console(tmp_path) as served:
        await served.let_in(tab.context)
        served.host.core.pipeline.shadow = Policy.named("locked-down")
        await tab.page.goto(f"{served.url}/access/policy")
        await tab.page.get_by_text("Let this shadow policy decide from now on").click()
        await press_button(tab.page, "Put it in force")
        assert "until the configuration is read again" in await read_main(tab.page)
        with pytest.raises(IsthmusError, match="denied"):
            await served.host.call("shop__buy", {"what": "tea"})


async def test_an_account_is_connected_and_forgotten(tab, tmp_path):
    """Ours: a user is given the link to the login of a server, and its token is forgotten."""
    users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
    await tab.context.set_extra_http_headers({"X-User": "ada"})
    async with open_account_town(state=tmp_path / "state") as town:
        view = town.host.view

        def make(url):
            return Console(view, url, identity=ProxyLogin(users))

        async with serve_in_browser(make) as (url, _):
            await tab.page.goto(f"{url}/console/access/accounts")
            await press_button(tab.page, "connect")
            link = tab.page.get_by_role("link", name="Continue to the login of crm")
            assert (await link.get_attribute("href")).startswith("https://gateway.example/")
            await town.connect(principal=ADA)
            await tab.page.goto(f"{url}/console/access/accounts")
            assert "connected" in await read_main(tab.page)
            await press_button(tab.page, "forget")
            assert "not connected" in await read_main(tab.page)
            assert ["none"] == [one.state for one in await view.accounts(ADA)]


async def test_several_servers_are_added(page, served):
    """Ours: from a piece of another program's configuration; one that is no JSON is shown again."""
    names = {"one", "two"}
    pasted = {"mcpServers": {name: {"url": f"https://127.0.0.1:1/{name}"} for name in names}}
    await page.goto(f"{served.url}/servers")
    await page.get_by_text("Add a server").click()
    await page.get_by_label("Part of an mcp.json").fill("{")
    await press_button(page, "Add all")
    assert "this is not JSON" in await read_main(page)
    await page.get_by_label("Part of an mcp.json").fill(json.dumps(pasted))
    await press_button(page, "Add all")
    assert names <= {one.name for one in served.host.view.servers()}
    for name in names:
        await served.host.view.remove_server(name, by="the test")


async def test_a_server_is_disabled_and_enabled(page, served):
    """Ours: its tools are not called in between."""
    await page.goto(f"{served.url}/servers/bank")
    await press_button(page, "disable bank")
    assert "disabled" in await read_main(page)
    await press_button(page, "enable bank")
    states = {one.name: one.state for one in served.host.view.servers()}
    assert "disabled" != states["bank"]


async def test_a_run_is_stopped(page, served):
    """Ours: with the calls that are under way in it."""
    run = served.host.run()
    call = asyncio.ensure_future(served.host.call("shop__hang", {}, run=run))
    served.calls.append(call)
    call.add_done_callback(lambda it: it.cancelled() or it.exception())

    async def find():
        return await served.host.view.traffic(TrafficQuery(outcome="running"))

    async with asyncio.timeout(10):
        while not await find():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)
    await page.goto(f"{served.url}/access")
    await press_button(page, f"Stop run {run.id}")
    await run_until(call.done)
    assert run.id not in await read_main(page)


async def test_a_grant_is_narrowed(page, served):
    """Ours: the next call is the last that it is good for."""
    call, id = await served.ask()
    decision = Decision(verdict="allow", remember="session", by="ada", assurance="local_ui")
    await served.host.view.decide(id, decision)
    await call
    await page.goto(f"{served.url}/access/grants")
    await page.locator("select[name=narrower]").select_option(label="one more use")
    await page.get_by_role("button", name="Narrow: ").click()
    await page.wait_for_load_state()
    (grant,) = await served.host.view.grants()
    assert 1 == grant.uses
    await served.host.view.revoke(grant.id, by="the test")
