"""Security of the console: forged forms, foreign hosts and sites, sessions of others, headers."""

import pytest
from msgspec import structs

from isthmus.auth.authorization_server.users.users import HeaderUsers
from isthmus.console import ProxyLogin
from support.console.console_browser import ConsoleBrowser, ConsoledHost, find_assets, find_token

HEADERS = {
    "content-security-policy", "x-frame-options", "referrer-policy", "x-content-type-options",
    "cross-origin-opener-policy", "cross-origin-resource-policy", "cache-control",
}  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"host": "evil.example"},
        {"host": "127.0.0.1:9999"},
    ],
)
async def test_a_form_of_another_site_decides_nothing(headers):
    """Ours: CSRF and DNS rebinding, with the cookie and the right token of a form."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        status, _, _ = await asked.browser.submit(path, press=("verdict", "allow"), **headers)
        assert status in {403, 421}
        assert not call.done()


@pytest.mark.parametrize("form", ["", "1.x.y", "9999999999.a." + "0" * 64, "é.é.é"])
async def test_a_form_without_our_token_decides_nothing(form):
    """Ours: each form has its own."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        status, _, _ = await asked.browser.submit(
            path, press=("verdict", "allow"), fill={"form": form}
        )
        assert 403 == status
        assert not call.done()


async def test_a_form_is_taken_once_and_for_its_own_action():
    """Ours: neither twice, nor for another card, nor for another version of its own."""
    async with ConsoledHost() as asked:
        _, first = await asked.ask(what="tea")
        other, second = await asked.ask(what="milk")
        page = await asked.browser.get(first)
        token, version = find_token(page, first), page.split('name="version" value="')[1][:32]
        fields = {"form": token, "version": version, "verdict": "deny"}
        assert 403 == (await asked.browser.send("POST", second, fields))[0]
        assert 403 == (await asked.browser.send("POST", first, {**fields, "version": "0"}))[0]
        assert 303 == (await asked.browser.send("POST", first, fields))[0]
        assert 403 == (await asked.browser.send("POST", first, fields))[0]
        assert not other.done()


async def test_a_stranger_sees_the_form_to_sign_in_and_nothing_else():
    """Ours: the same words whether or not there is such a page."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        stranger = ConsoleBrowser(asked.console)
        status, _, text = await stranger.send("GET", path)
        assert 401 == status
        assert (401, text) == (await stranger.send("GET", "/console/none"))[::2]
        assert 401 == (await stranger.send("POST", path, {"verdict": "allow"}))[0]
        assert 401 == (await stranger.send("GET", "/console/events"))[0]
        assert 403 == (await stranger.sign_in("guess"))[0]
        assert not call.done()


async def test_every_answer_has_the_headers_that_guard_it():
    """Ours: pages, refusals, redirects, files."""
    async with ConsoledHost() as asked:
        _, path = await asked.ask()
        page = await asked.browser.get(path)
        assets = find_assets(page)
        assert assets
        for place in ("/console/", path, "/console/none", "/console/login", "/console/icon.svg?n=3",
                      "/elsewhere", *assets):  # fmt: skip
            _, head, _ = await asked.browser.send("GET", place)
            assert set() == HEADERS - set(head), place
            assert "unsafe" not in head["content-security-policy"]
        stranger = ConsoleBrowser(asked.console)
        _, head, _ = await stranger.send("GET", path)
        assert set() == HEADERS - set(head)
        _, head, _ = await asked.browser.submit(path, press=("verdict", "deny"))
        assert set() == HEADERS - set(head)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec_fetch_dest": "iframe", "sec_fetch_mode": "navigate"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors"}, 403),
        ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, 200),
        ({"host": "localhost:8765"}, 200),
        ({"host": "evil.example"}, 421),
    ],
)
async def test_other_sites_may_link_here_and_no_more(headers, status):
    """Ours: clients send people by links; nobody frames, reads or embeds a page."""
    async with ConsoledHost() as asked:
        assert status == (await asked.browser.send("GET", "/console/", **headers))[0]


async def test_the_cookie_is_for_this_site_and_no_script():
    """Ours: and nobody is signed in any more after signing out."""
    async with ConsoledHost() as asked:
        _, head, _ = await asked.browser.sign_in(asked.console.identity.token.reveal())
        assert "HttpOnly; SameSite=Lax" in head["set-cookie"]
        kept = dict(asked.browser.cookies)
        await asked.browser.submit("/console/", "/console/logout")
        asked.browser.cookies = kept
        assert 401 == (await asked.browser.send("GET", "/console/"))[0]


class TwoUsers(ConsoledHost):
    """A console behind a proxy, with a browser for each of three users; carl is an operator."""

    def __init__(self):
        users = HeaderUsers("X-User", trusted_proxies=["10.0.0.7"])
        super().__init__(identity=ProxyLogin(users, operators=["carl"]))

    def open_browser(self, name):
        """The browser of a user, as the proxy passes it on."""
        browser = ConsoleBrowser(self.console)
        browser.peer = "10.0.0.7"
        send = browser.send

        async def send_as(method, path, fields=None, **headers):
            return await send(method, path, fields, x_user=name, **headers)

        browser.send = send_as
        return browser


async def test_a_user_sees_and_decides_what_is_theirs():
    """Ours: another's card is not there, in the words for what never was; an operator sees all."""
    async with TwoUsers() as asked:
        call, path = await asked.ask(principal="user:ann@local")
        ann, bob, carl = map(asked.open_browser, ("ann", "bob", "carl"))
        assert path in await ann.get("/console/")
        assert path in await carl.get("/console/")
        assert path not in await bob.get("/console/")
        theirs = await bob.send("GET", path)
        assert (404, 404) == (theirs[0], (await bob.send("GET", "/console/inbox/none"))[0])
        page = await ann.get(path)
        fields = {"form": find_token(page, path), "verdict": "allow"}
        fields["version"] = page.split('name="version" value="')[1][:32]
        assert 403 == (await bob.send("POST", path, fields))[0]
        assert not call.done()
        assert 303 == (await ann.send("POST", path, fields))[0]
        assert "tea" == (await call).text


async def test_a_header_counts_from_the_proxy_only():
    """Ours: anybody can send one."""
    async with TwoUsers() as asked:
        forged = asked.open_browser("carl")
        forged.peer = "10.0.0.8"
        assert 401 == (await forged.send("GET", "/console/"))[0]


async def test_high_risk_needs_a_second_step():
    """Ours: Allow alone decides nothing."""
    async with ConsoledHost() as asked:
        call, path = await asked.ask()
        pending = asked.host.view.pending
        asked.host.view.pending = lambda: [structs.replace(q, risk="high") for q in pending()]
        status, _, text = await asked.browser.submit(path, press=("verdict", "allow"))
        assert (409, True) == (status, "tick the box" in text)
        assert not call.done()
        await asked.browser.submit(path, press=("verdict", "allow"), fill={"sure": "yes"})
        assert "tea" == (await call).text


async def test_a_form_of_another_site_is_refused_before_it_is_read():
    """Attack: a long form that is sent to a name that is not ours, by whoever has not signed in."""

    async def receive():
        raise AssertionError("the form was read")

    sent = []

    async def send(message):
        sent.append(message)

    async with ConsoledHost() as asked:
        scope = asked.browser.make_scope("POST", "/console/login", {"host": "evil.example"})
        await asked.console(scope, receive, send)

    assert sent[0]["status"] == 421


async def test_signing_out_everywhere_makes_the_token_invalid():
    """Ours: another one is told at the terminal; without a terminal it is not offered."""
    told = []
    async with ConsoledHost(tell=told.append) as asked:
        before = asked.console.identity.token.reveal()
        await asked.browser.submit("/console/", "/console/logout", press=("everywhere", "yes"))
        assert 403 == (await asked.browser.sign_in(before))[0]
        assert 303 == (await asked.browser.sign_in(told[0].partition("#")[2]))[0]
        await asked.browser.submit("/console/", "/console/logout")
        assert 1 == len(told)
    async with ConsoledHost() as asked:
        assert "Sign out everywhere" not in await asked.browser.get("/console/")
