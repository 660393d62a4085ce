"""Pages of approvals: who may see and decide, and what strangers, other sites and servers cannot do."""

import asyncio
import html
import re
from typing import Any

import pytest

from isthmus import Client, Server
from isthmus.gateway import Gateway
from isthmus.gateway.gateway import spell_address
from isthmus.host import Host
from isthmus.host.policy.policy import Policy
from isthmus.host.policy.rule_file import read_layers
from support.event_loop import run_until
from support.gateway.operator_browser import OperatorBrowser

ASKS = '[[rule]]\nid = "calls"\neffect = "ask"\nwhen = { action = ["tool.call"] }\n'
SECOND = ASKS + 'obligations = { assurance = "second_person" }\n'
NASTY = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202egpj.exe\u200b</textarea>'
ADDRESS = "http://127.0.0.1:8080"


class PagedGateway:
    """A gateway with pages, a shop with a hostile description, and a browser."""

    def __init__(self, rules=ASKS, shop=None, what=NASTY):
        self.bought, self.what = [], what
        shop = shop or self.make_shop()
        self.host = Host(policy=Policy.of(read_layers(rules, "user")))
        self.host.add("shop", shop)
        self.gateway = Gateway(self.host)
        self.pages = self.gateway.open_pages(ADDRESS)
        self.browser = OperatorBrowser(self.gateway.asgi())
        self.token = self.pages.operator.token.reveal()

    def make_shop(self):
        """Make a shop."""
        shop = Server("shop")

        @shop.tool(description=NASTY)
        async def buy(what: str) -> str:
            self.bought.append(what)
            return what

        return shop

    async def __aenter__(self):
        await self.gateway.open()
        self.user = Client(self.gateway.server)
        await self.user.__aenter__()
        self.call = asyncio.ensure_future(self.user.call_tool("shop__buy", {"what": self.what}))
        await run_until(self.host.view.pending)
        self.path = f"/approvals/{self.host.view.pending()[0].id}"
        return self

    async def __aexit__(self, *error):
        self.call.cancel()
        await self.user.__aexit__(*error)
        await self.gateway.close()

    async def open_form(self):
        """The page of the approval, and the token of its form."""
        status, head, text = await self.browser.send("GET", self.path)
        assert 200 == status
        return head, text, re.search(r'name="form" value="([^"]+)"', text)[1]


async def test_an_operator_signs_in_and_allows_a_call():
    """Ours: the cookie is for this site and no script; the form is taken once."""
    async with PagedGateway() as paged:
        status, head = await paged.browser.sign_in(paged.token)
        assert 303 == status
        assert "HttpOnly; SameSite=Lax" in head["set-cookie"]
        assert paged.path in (await paged.browser.send("GET", "/approvals"))[2]
        _, _, form = await paged.open_form()
        said = await paged.browser.send("POST", paged.path, {"form": form, "verdict": "allow"})
        assert (200, True) == (said[0], "Allowed." in said[2])
        assert NASTY.replace("\u200b", "")[:10] == (await paged.call).text[:10]
        assert [NASTY] == paged.bought
        again = await paged.browser.send("POST", paged.path, {"form": form, "verdict": "allow"})
        assert "Decided" not in again[2]
        assert 1 == len(paged.bought)


@pytest.mark.parametrize("cookie", ["", "isthmus-operator-8080=wrong"])
async def test_whoever_knows_the_address_alone_sees_and_decides_nothing(cookie):
    """Ours: the client, and its model, know it; a name that is none has the same words."""
    async with PagedGateway() as paged:
        paged.browser.cookie = cookie
        status, _, text = await paged.browser.send("GET", paged.path)
        assert (401, False) == (status, "alert" in text)
        assert (401, {}, text) == (
            (other := await paged.browser.send("GET", "/approvals/none"))[0], {}, other[2],
        )  # fmt: skip
        status, _, _ = await paged.browser.send("POST", paged.path, {"verdict": "allow"})
        assert 401 == status
        assert (403, "") == ((await paged.browser.sign_in("guess"))[0], paged.browser.cookie)
        assert not paged.call.done()


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://evil.example"},
        {"host": "evil.example"},
    ],
)
async def test_a_form_of_another_site_decides_nothing(headers):
    """Ours: CSRF and DNS rebinding, with the cookie and the right token of a form."""
    async with PagedGateway() as paged:
        await paged.browser.sign_in(paged.token)
        _, _, form = await paged.open_form()
        fields = {"form": form, "verdict": "allow"}
        status, _, _ = await paged.browser.send("POST", paged.path, fields, **headers)
        assert status in {403, 421}
        assert not paged.call.done()


@pytest.mark.parametrize("form", ["", "1.x.y", "9999999999.a." + "0" * 64])
async def test_a_form_without_our_token_decides_nothing(form):
    """Ours: the token is bound to the session and the approval."""
    async with PagedGateway() as paged:
        await paged.browser.sign_in(paged.token)
        fields = {"form": form, "verdict": "allow"}
        assert 403 == (await paged.browser.send("POST", paged.path, fields))[0]
        assert not paged.call.done()


async def test_texts_of_others_are_text():
    """Ours: no node of theirs, and marks that reorder or hide are seen; no frame may show the page."""
    async with PagedGateway() as paged:
        await paged.browser.sign_in(paged.token)
        head, text, _ = await paged.open_form()
        for page in (text, (await paged.browser.send("GET", "/approvals"))[2]):
            assert "<script" not in page
            assert "<img" not in page
            assert not {"\u202e", "\u200b"} & set(page)
        assert 1 == text.count("</textarea>")
        assert "frame-ancestors 'none'" in head["content-security-policy"]
        assert "default-src 'none'" in head["content-security-policy"]
        assert "DENY" == head["x-frame-options"]


async def test_the_operator_is_no_second_person_for_a_caller_of_the_same_machine():
    """Ours: whoever has not authenticated is the local user, as the operator is."""
    async with PagedGateway(SECOND) as paged:
        await paged.browser.sign_in(paged.token)
        _, _, form = await paged.open_form()
        said = await paged.browser.send("POST", paged.path, {"form": form, "verdict": "allow"})
        assert (403, True) == (said[0], "second person" in said[2])
        assert [] == paged.bought


@pytest.mark.parametrize(
    ("text", "status", "bought"),
    [
        pytest.param('{"what": true}', 200, True, id="true-for-1"),
        pytest.param('{"what": 1.0}', 200, 1.0, id="1.0-for-1"),
        pytest.param('{"what": ' + "[" * 2_000 + "]" * 2_000 + "}", 400, None, id="deep"),
        pytest.param('{"what": NaN}', 400, None, id="nan"),
        pytest.param('{"what": "\\ud800"}', 400, None, id="surrogate"),
        pytest.param("[1]", 400, None, id="list"),
    ],
)
async def test_exactly_what_an_operator_left_in_the_arguments_is_sent(text, status, bought):
    """Ours: true is not 1, though they are equal in Python; what is no JSON is refused in words."""
    shop, sold = Server("shop"), []

    @shop.tool
    async def buy(what: Any) -> str:
        sold.append(what)
        return "done"

    async with PagedGateway(shop=shop, what=1) as paged:
        await paged.browser.sign_in(paged.token)
        _, _, form = await paged.open_form()
        fields = {"form": form, "verdict": "allow", "arguments": text}
        said = await paged.browser.send("POST", paged.path, fields)
        assert status == said[0], said[2]
        if bought is not None:
            assert "done" == (await paged.call).text
            assert [(bought, type(bought))] == [(one, type(one)) for one in sold]
        else:
            assert "Nothing was decided" in said[2]
            assert not paged.call.done()


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080"),
        ("0.0.0.0", "http://127.0.0.1:8080"),  # noqa: S104 - nothing listens
        ("::1", "http://[::1]:8080"),
        ("::", "http://[::1]:8080"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(host, url):
    """Ours: also where the gateway listens on every address."""
    assert url == spell_address(host, 8080)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/approvals", "/console/inbox"),
        ("/approvals/01ABC", "/console/inbox/01ABC"),
        ("/approvals/login", "/console/login"),
        ('/approvals/x"y', "/console/inbox"),
        ("/approvals/a/b", "/console/inbox"),
    ],
)
async def test_pages_of_approvals_lead_to_the_console(path, target):
    """Ours: the addresses that clients were told of stay good."""
    async with PagedGateway() as paged:

        async def console(scope, receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"the console"})

        paged.gateway.mount_console(console)
        browser = OperatorBrowser(paged.gateway.asgi())
        status, head, _ = await browser.send("GET", path)
        assert (303, target) == (status, head["location"])
        assert "the console" == (await browser.send("GET", "/console/inbox"))[2]
        assert 200 != (await browser.send("GET", "/console/inbox", host="evil.example"))[0]


async def test_arguments_too_long_for_the_form_are_allowed_as_they_are():
    """Ours: a letter of another script takes nine bytes of a form, which has sixteen thousand."""
    what = "\u4e2d" * 3_000
    async with PagedGateway(what=what) as paged:
        await paged.browser.sign_in(paged.token)
        _, page, form = await paged.open_form()
        area = re.search(r'<textarea[^>]*name="arguments"[^>]*>(.*?)</textarea>', page, re.DOTALL)
        fields = {"form": form, "verdict": "allow"}
        if area is not None:
            fields["arguments"] = html.unescape(area[1])
        status, _, text = await paged.browser.send("POST", paged.path, fields)
        assert 200 == status, text
        assert what == (await paged.call).text
