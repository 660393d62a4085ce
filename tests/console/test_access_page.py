"""Access pages: principals, grants, accounts, and the policy questioned."""

import asyncio
import json

import pytest

from isthmus.auth import HeaderUsers
from isthmus.console import Console, ProxyLogin
from isthmus.host.model.interaction import Decision
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.profiles import PROFILE_LAYER
from isthmus.host.policy.rule_file import read_layers
from support.console.console_browser import ADDRESS
from support.console.page_browser import HOSTILE, RULES, PageBrowser, WatchedHost
from support.event_loop import run_until
from support.gateway.account_town import open_account_town

POLICY = "/console/access/policy"


async def test_principals_and_runs_are_listed():
    """Ours: who has called, how often, and the way to their calls."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/access")
        await watched.call("look", what="it")
        answer = await watched.browser.get("/console/access")

    assert "user:local" in answer.text
    assert any("traffic?principal=user%3Alocal" in link for link in answer.page.links)
    assert "There are no profiles" in answer.text


async def test_empty_pages_say_so():
    """Ours: no grants, no accounts, nobody yet."""
    async with WatchedHost(servers=False) as watched:
        pages = [
            await watched.browser.get(f"/console/access{part}")
            for part in ("", "/grants", "/accounts")
        ]

    for page, text in zip(
        pages,
        ("No principal has made a call", "nothing was allowed for longer", "No server here"),
        strict=True,
    ):
        assert page.status == 200
        assert text in page.text


async def test_a_grant_is_shown_and_revoked():
    """Ours: after that the same call is asked about again, and a row says who revoked."""
    async with WatchedHost() as watched, watched.host.view.attend("test"):
        call = asyncio.ensure_future(watched.call("buy", what=HOSTILE))
        await run_until(watched.host.view.pending)
        yes = Decision(verdict="allow", by="test", remember="session")
        await watched.host.view.decide(watched.host.view.pending()[0].id, yes)
        await call
        page = await watched.browser.get("/console/access/grants")
        grant = (await watched.host.view.grants())[0].id
        answer = await watched.browser.submit(page, f"/console/access/grants/{grant}")
        rows = await watched.host.view.audit_tail(50)

    assert "session" in page.text
    assert not any(form.action.endswith(grant) for form in answer.page.forms)
    assert any("console (operator)" in row.approver for row in rows)


@pytest.mark.parametrize(
    ("way", "scope", "uses"), [("hour", "session", None), ("once", "session", 1)]
)
async def test_a_grant_is_narrowed_by_a_form(way, scope, uses):
    """Ours: a narrower one stands in its place; what cannot be chosen changes nothing."""
    async with WatchedHost() as watched, watched.host.view.attend("test"):
        call = asyncio.ensure_future(watched.call("buy", what="tea"))
        await run_until(watched.host.view.pending)
        yes = Decision(verdict="allow", by="test", remember="session")
        await watched.host.view.decide(watched.host.view.pending()[0].id, yes)
        await call
        page = await watched.browser.get("/console/access/grants")
        (before,) = await watched.host.view.grants()
        path = f"/console/access/grants/{before.id}"
        bad = await watched.forge(path, what="narrow", narrower="for ever")
        assert [before] == list(await watched.host.view.grants())
        await watched.browser.submit(page, path, ("what", "narrow"), narrower=way)
        (after,) = await watched.host.view.grants()
        rows = await watched.host.view.audit_tail(50)

    assert bad.status == 400
    assert (scope, uses) == (after.scope, after.uses)
    assert (after.until is None) == (way == "once")
    assert ["console (operator)"] == [row.approver for row in rows if row.action == "grant.narrow"]


@pytest.mark.parametrize(
    "path",
    ["/console/access/grants/none", "/console/access/runs/none", "/console/access/accounts/no"],
)
async def test_what_is_not_there_cannot_be_changed(path):
    """Ours: not found, whatever was asked."""
    async with WatchedHost() as watched:
        await watched.browser.get("/console/access")
        answer = await watched.forge(path, what="forget")

    assert answer.status in {404, 503}


# Policy


async def test_rules_are_shown_with_their_hits():
    """Ours: each layer with its rules, and how often each has decided since somebody watched."""
    async with WatchedHost() as watched:
        await watched.browser.get(POLICY)
        await watched.call("look", what="it")
        await watched.call("look", what="it")
        answer = await watched.browser.get(POLICY)

    for word in ("user", "reads", "never", "buys"):
        assert word in answer.text
    row = answer.body.partition(">reads<")[2].partition("</tr>")[0]
    assert ">2<" in row


async def test_hits_are_those_of_the_rule_in_its_layer():
    """Ours: two layers have a rule of one id, and one of them decides."""
    async with WatchedHost() as watched:
        again = RULES.partition("[[rule]]\n")[2].partition("[[rule]]")[0].replace("allow", "ask")
        narrow = again.replace('["look", "fail", "hang", "odd/name*"]', '"fail"')
        layers = [*watched.host.core.pipeline.policy.layers]
        layers += read_layers(f"[[rule]]\n{narrow}", "workspace")
        watched.host.core.pipeline.policy = Policy(layers)
        await watched.browser.get(POLICY)
        await watched.call("look", what="it")
        answer = await watched.browser.get(POLICY)

    rows = [part.partition("</tr>")[0] for part in answer.body.split(">reads<")[1:]]
    assert [">1<" in rows[0], ">0<" in rows[1]] == [True, True]


@pytest.mark.parametrize(
    ("tool", "effect", "rule"), [("look", "allow", "reads"), ("sell", "deny", "never")]
)
async def test_an_attempt_is_tried_without_doing_it(tool, effect, rule):
    """Ours: decision, rule and reason; nothing is called, and no row is written."""
    async with WatchedHost() as watched:
        await watched.host.view.tools("shop")
        page = await watched.browser.get(POLICY)
        before = len(await watched.host.view.audit_tail(500))
        answer = await watched.browser.submit(
            page,
            f"{POLICY}/try",
            object=tool,
            server="shop",
            arguments='{"what": "x"}',
            action="tool.call",
        )
        after = len(await watched.host.view.audit_tail(500))

    assert answer.status == 200
    said = answer.body.partition('id="answer"')[2]
    assert effect in said
    assert rule in said
    assert before == after


GATEWAY_RULES = """
[[rule]]
id = "clients"
effect = "deny"
when = { action = "tool.call", origin = "gateway" }
"""
PROFILE_RULES = """
[[rule]]
id = "careful-reads"
effect = "ask"
when = { action = "tool.call", tool = "look" }
"""


@pytest.mark.parametrize(
    ("way", "effect"),
    [
        ({}, "allow"),
        ({"origin": "gateway"}, "deny"),
        ({"profile": "careful"}, "ask"),
        ({"profile": "none such"}, "deny"),
    ],
)
async def test_a_dry_run_decides_as_for_a_client_of_a_gateway(way, effect):
    """Ours: what comes another way, or through a profile, meets rules that the operator's own call does not."""
    async with (
        WatchedHost(RULES + GATEWAY_RULES) as watched,
        watched.host.view.attend("test"),
    ):
        await watched.host.view.tools("shop")
        layers = tuple(read_layers(PROFILE_RULES, PROFILE_LAYER))
        watched.host.core.pipeline.profiles.layers = {"careful": layers}
        call = {"action": "tool.call", "server": "shop", "object": "look"}
        page = await watched.browser.get(POLICY)
        answer = await watched.browser.submit(
            page, f"{POLICY}/try", arguments='{"what": "x"}', **call, **way
        )

    assert answer.status == 200
    said = answer.body.partition('id="answer"')[2].partition("<table")[0]
    assert f">{effect}</span>" in said


@pytest.mark.parametrize(
    ("filled", "told"),
    [
        ({"arguments": "{"}, "no JSON"),
        ({"arguments": "[]"}, "JSON object"),
        ({"action": "explode"}, "from the list"),
        ({"object": "nothing", "server": "shop"}, "nothing"),
    ],
)
async def test_a_dry_run_of_nonsense_is_told(filled, told):
    """Ours: at its field where there is one."""
    async with WatchedHost() as watched:
        page = await watched.browser.get(POLICY)
        given = {"action": "tool.call", "server": "shop", "arguments": "{}"} | filled
        answer = await watched.browser.submit(page, f"{POLICY}/try", **given)

    assert told in answer.text


async def test_a_policy_is_held_against_the_past():
    """Ours: by its text or by its name; faults with their line stand at the field."""
    async with WatchedHost() as watched:
        await watched.call("look", what="it")
        page = await watched.browser.get(POLICY)
        deny = '[[rule]]\nid = "no"\neffect = "deny"\nwhen = { action = "tool.call" }\n'
        changed = await watched.browser.submit(page, f"{POLICY}/replay", text=deny, since="1d")
        page = await watched.browser.get(POLICY)
        named = await watched.browser.submit(
            page, f"{POLICY}/replay", text="locked-down", since="1d"
        )
        page = await watched.browser.get(POLICY)
        broken = await watched.browser.submit(
            page, f"{POLICY}/replay", text=f"x = '{HOSTILE}'", since=""
        )
        page = await watched.browser.get(POLICY)
        empty = await watched.browser.submit(page, f"{POLICY}/replay", text=" ", since="1d")

    assert "1 of them differently" in changed.text
    assert "were decided again" in named.text
    assert broken.status == empty.status == 400


async def test_a_promoted_policy_is_said_to_hold_until_a_reload():
    """Ours: nobody thinks that a file was written."""
    async with WatchedHost() as watched:
        watched.host.core.pipeline.shadow = Policy.named("locked-down")
        page = await watched.browser.get(POLICY)
        answer = await watched.browser.submit(page, f"{POLICY}/promote")

    assert "until the configuration is read again" in answer.text
    assert "put this where the host is started" in answer.text


async def test_a_promoted_policy_is_written_where_the_box_is_ticked(tmp_path):
    """Ours: the page names the file, or what to paste into it."""
    path = tmp_path / "mcp.json"
    path.write_text('{"host": {"shadow": "locked-down"}, "mcpServers": {}}')
    state = tmp_path / "state"
    async with WatchedHost("", file=str(path), state=state) as watched:
        page = await watched.browser.get(POLICY)
        kept = await watched.browser.submit(page, f"{POLICY}/promote", keep="yes")

    assert f"{path} now names it as policy" in kept.text
    assert {"policy": "locked-down"} == json.loads(path.read_text())["host"]


async def test_without_a_shadow_policy_none_can_be_promoted():
    """Ours: a sentence, and nothing changes."""
    async with WatchedHost() as watched:
        await watched.browser.get(POLICY)
        answer = await watched.forge(f"{POLICY}/promote")

    assert "There is no shadow policy" in answer.text


async def test_an_operator_is_shown_accounts_of_their_own(tmp_path):
    """Ours: also one who has made no call yet may connect them."""
    users = HeaderUsers("X-User", trusted_proxies=["127.0.0.1"])
    async with open_account_town(state=tmp_path / "state") as town:
        login = ProxyLogin(users, operators=["root"])
        browser = PageBrowser(Console(town.host.view, ADDRESS, identity=login))
        answer = await browser.send("GET", "/console/access/accounts", x_user="root")

    assert "user:root@local" in answer.text
    assert [("what", "connect")] in [form.buttons for form in answer.page.forms]
