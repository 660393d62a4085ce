"""The pages of the authorization server in a real browser: what people do, and what others try."""

import contextlib
import re

import pytest
import pytest_asyncio

from isthmus.auth.authorization_server.storage.clients import RegisteredClient
from support.auth.authority import PASSWORD, SCOPES, make_authority, make_users, request_url
from support.browser.chromium import Tab, make_certificate, serve_in_browser
from support.http.loopback_pages import serve_pages

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(120),
]

WRONG = "wrong horse battery"
MARKUP = "<script>document.title='run'</script><b>Bank</b> & \u202ecnI\u202c \"' " + "x" * 200
NASTY = RegisteredClient(
    client_id="nasty", name=MARKUP, redirect_uris=("https://notes.example/cb",), auth_method="none",
    kind="dynamic",
)  # fmt: skip
NOTES = RegisteredClient(
    client_id="notes", name="Notes", redirect_uris=("https://notes.example/cb",), auth_method="none"
)
PHONE = RegisteredClient(
    client_id="phone", name="Phone", redirect_uris=("com.example.phone:/cb",), auth_method="none"
)


@pytest_asyncio.fixture(loop_scope="session")
async def client():
    """The web server of a client, where people are sent in the end."""
    async with serve_pages() as made:
        made.pages["/cb"] = lambda _: (200, {"Content-Type": "text/html"}, b"<h1>Connected</h1>")
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def make(tmp_path, client):
    """Makes an authorization server with a client whose answers go to ``client``."""
    local = RegisteredClient(
        client_id="app", name="Notes", redirect_uris=(f"{client.url}/cb",), auth_method="none"
    )

    def made(**options):
        return lambda url: make_authority(
            url, make_users(tmp_path), local, NASTY, NOTES, PHONE, **options
        )

    return made


@pytest_asyncio.fixture(loop_scope="session")
async def issuer(make):
    """The URL of a running authorization server."""
    async with serve_in_browser(make()) as (url, authority):
        yield url
        await authority.close()


@pytest.fixture
def start(issuer, client):
    """The URL that a client opens in the browser."""
    return request_url(issuer, redirect_uri=f"{client.url}/cb")


async def test_somebody_logs_in_allows_and_is_back_at_the_client(tab, start, client):
    """We demand that the whole way works in a browser, without a script."""
    await tab.page.goto(start)
    assert "Sign in" == await tab.heading()
    await tab.log_in("alice", PASSWORD)
    assert "Allow Notes to use" in await tab.heading()
    await tab.press("Allow")
    assert "Connected" == await tab.heading()
    assert re.search(r"[?&]code=[^&]+", tab.page.url)
    assert "state=s1" in tab.page.url


async def test_it_works_where_scripts_are_forbidden(chromium, start):
    """We demand pages for browsers without JavaScript."""
    tab = await Tab.of(chromium, java_script_enabled=False)
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.press("Allow")
    assert "Connected" == await tab.heading()
    await tab.context.close()


async def test_a_wrong_password_is_announced_and_tried_again_at_once(tab, start):
    """We demand that a typing error costs one field."""
    await tab.page.goto(start)
    await tab.log_in("alice", WRONG)
    alert = tab.page.get_by_role("alert")
    assert "The user name or the password is wrong." == await alert.inner_text()
    assert "alice" == await tab.page.get_by_label("User name").input_value()
    assert "password" == await tab.page.evaluate("document.activeElement.id")
    await tab.page.keyboard.type(PASSWORD)
    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_role("button", name="Allow").wait_for()


async def test_the_sixth_try_has_to_wait(tab, start):
    """We demand that guessing ends at a page that says how long."""
    await tab.page.goto(start)
    for _ in range(5):
        await tab.log_in("alice", WRONG)
        await tab.page.get_by_role("alert").wait_for()
    await tab.log_in("alice", PASSWORD)
    await tab.page.get_by_text("too many tries").wait_for()
    assert 429 == tab.answers[-1][2] or 429 in [status for _, _, status in tab.answers]


async def test_a_denial_reaches_the_client_without_a_code(tab, start):
    """We demand that a no is told to the client."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.press("Deny")
    assert "error=access_denied" in tab.page.url
    assert "code=" not in tab.page.url


async def test_the_keyboard_is_enough(tab, start):
    """We demand that fields and buttons come in order, and that the focus can be seen."""
    await tab.page.goto(start)
    assert "account" == await tab.page.evaluate("document.activeElement.id")
    await tab.page.keyboard.type("alice")
    await tab.page.keyboard.press("Tab")
    await tab.page.keyboard.type(PASSWORD)
    await tab.page.keyboard.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert "solid" == await tab.page.evaluate(outline)
    await tab.page.keyboard.press("Enter")
    await tab.page.get_by_role("button", name="Allow").wait_for()
    reached = []
    for _ in range(4):
        await tab.page.keyboard.press("Tab")
        reached.append(await tab.page.evaluate("document.activeElement.innerText"))
    assert ["Allow", "Deny", "Technical details", "Not you? Sign out"] == reached
    await tab.page.keyboard.press("Shift+Tab")
    await tab.page.keyboard.press("Shift+Tab")
    await tab.page.keyboard.press("Enter")
    await tab.page.wait_for_url("**/cb?*")
    assert "error=access_denied" in tab.page.url


async def test_going_back_after_the_answer_leads_to_a_page_that_says_so(tab, start):
    """We demand that the back button neither repeats an answer nor breaks."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.press("Allow")
    await tab.page.go_back()
    assert "This request is over" == await tab.heading()


async def test_somebody_else_can_take_over_at_the_consent_page(tab, start):
    """We demand a way out for who is not the one that is logged in."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.press("Not you? Sign out")
    assert "Sign in" == await tab.heading()
    await tab.log_in("alice", PASSWORD)
    await tab.press("Allow")
    assert "Connected" == await tab.heading()


async def test_logging_out_ends_the_login(tab, start, issuer):
    """We demand a page to log out at, and that it does."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.page.get_by_role("button", name="Allow").wait_for()
    await tab.page.goto(f"{issuer}/auth/logout")
    await tab.press("Sign out")
    assert "Signed out" == await tab.heading()
    await tab.page.goto(start)
    assert "Sign in" == await tab.heading()


async def test_the_name_of_a_client_stays_text(tab, issuer):
    """We demand that markup and marks in a client's name do nothing, and hide nothing."""
    await tab.page.goto(
        request_url(issuer, client_id="nasty", redirect_uri="https://notes.example/cb")
    )
    await tab.log_in("alice", PASSWORD)
    heading = await tab.heading()
    assert "<script>document.title='run'</script><b>Bank</b>" in heading
    assert "\u202e" not in heading
    assert "run" != await tab.page.title()
    assert 0 == await tab.page.locator("script, main b").count()
    assert "Not verified" in await tab.page.locator("main").inner_text()


async def test_a_program_with_a_scheme_of_its_own_is_sent_its_code(tab, issuer):
    """We demand that no policy of a page stops the way back to an app (form-action would)."""
    await tab.page.goto(
        request_url(issuer, client_id="phone", redirect_uri="com.example.phone:/cb")
    )
    await tab.log_in("alice", PASSWORD)
    assert "com.example.phone:" == await tab.page.locator(".target strong").inner_text()
    await tab.page.get_by_role("button", name="Allow").click()
    while not any(where.startswith("com.example.phone:/cb?code=") for where in tab.sent_to):
        await tab.page.wait_for_event("response")


async def test_a_remembered_consent_is_asked_again_when_another_site_links_here(tab, make):
    """T20 in a browser: the site that a link stands on decides, not the cookie."""
    async with (
        serve_in_browser(make(consent="remember")) as (issuer, authority),
        serve_pages() as evil,
    ):
        url = request_url(issuer, client_id="notes")
        link = f'<a href="{url.replace("&", "&amp;")}">Win</a>'.encode()
        evil.pages["/"] = lambda _: (200, {"Content-Type": "text/html"}, link)
        await tab.page.goto(url)
        await tab.log_in("alice", PASSWORD)
        await tab.page.get_by_role("button", name="Allow").click()
        await tab.page.wait_for_url("chrome-error:**")  # the client's server is nowhere
        assert 1 == len(codes(tab))
        with contextlib.suppress(Exception):
            await tab.page.goto(url)
        assert 2 == len(codes(tab)), "typed by hand, nothing is asked"
        other = await tab.context.new_page()  # of the same profile
        await other.goto(evil.url.replace("127.0.0.1", "localhost"))
        await other.get_by_text("Win").click()
        assert "Allow Notes" in await other.locator("h1").inner_text()
        await authority.close()


def codes(tab):
    """Where the client got codes."""
    return [where for where in tab.sent_to if where.startswith("https://notes.example/cb?code=")]


async def forged(tab, evil, body):
    """Opens a page of another site that sends a form by itself."""
    script = b"<script>document.forms[0].submit()</script>"
    evil.pages["/"] = lambda _: (200, {"Content-Type": "text/html"}, body.encode() + script)
    await tab.page.goto(evil.url.replace("127.0.0.1", "localhost"))
    await tab.page.wait_for_url("**/auth/consent")


@pytest.mark.covers("auth.threat.t19-forged-consent")
async def test_a_form_that_another_site_sends_is_refused_with_and_without_the_token(
    tab, start, issuer
):
    """T19 in a browser: the victim's own request and token, sent by another site."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    consent = tab.page.url
    names = ("request", "token")
    stolen = {
        name: await tab.page.locator(f"main > form input[name={name}]").first.input_value()
        for name in names
    }
    for values in (stolen, {**stolen, "token": "0" * 64}, {}):
        fields = "".join(f'<input name="{k}" value="{v}">' for k, v in values.items())
        async with serve_pages() as evil:
            await forged(
                tab,
                evil,
                f'<form method="post" action="{issuer}/auth/consent">{fields}'
                '<input name="decision" value="allow"></form>',
            )
        assert tab.answers[-1][2] in {403, 410} or {403, 410} & {a[2] for a in tab.answers[-3:]}
        assert "code=" not in tab.page.url
    await tab.page.goto(consent)
    assert "Allow Notes" in await tab.heading(), "the request is still unanswered"


@pytest.mark.covers("auth.threat.t19-forged-consent")
async def test_a_page_of_another_site_cannot_show_ours_in_a_frame(tab, start):
    """T19 in a browser: nobody can be made to click what they do not see."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.page.get_by_role("button", name="Allow").wait_for()
    consent = tab.page.url
    async with serve_pages() as evil:
        frames = "".join(
            f'<iframe src="{u.replace("&", "&amp;")}"></iframe>' for u in (consent, start)
        )
        evil.pages["/"] = lambda _: (200, {"Content-Type": "text/html"}, frames.encode())
        await tab.page.goto(evil.url.replace("127.0.0.1", "localhost"))
        assert 3 == len(tab.page.frames)
        for frame in tab.page.frames[1:]:
            assert 0 == await frame.locator("form").count()
    assert 2 == sum("frame-ancestors" in text for text in tab.violated)
    tab.violated.clear()  # this policy was meant to forbid


@pytest.mark.covers("auth.threat.t18-other-browser")
async def test_a_link_to_somebody_elses_request_opens_nothing(chromium, tab, start):
    """T18 in a browser: a request goes on in the browser that brought it."""
    await tab.page.goto(start)
    await tab.log_in("alice", PASSWORD)
    await tab.page.get_by_role("button", name="Allow").wait_for()
    other = await Tab.of(chromium)
    await other.page.goto(tab.page.url)
    assert "This request is over" == await other.heading()
    await other.context.close()


@pytest.mark.covers("auth.authority.consent-page")
async def test_over_https_the_browser_takes_host_bound_cookies(chromium, make, client, tmp_path):
    """The security best practices demand __Host- cookies, which a browser takes only if right."""
    folder = make_certificate(tmp_path)
    tab = await Tab.of(chromium, ignore_https_errors=True)
    async with serve_in_browser(make(), host="localhost", tls=folder) as (issuer, authority):
        await tab.page.goto(request_url(issuer, redirect_uri=f"{client.url}/cb"))
        await tab.log_in("alice", PASSWORD)
        assert "Allow Notes" in await tab.heading()
        cookies = await tab.context.cookies()
        assert {"__Host-isthmus-browser", "__Host-isthmus-session"} == {c["name"] for c in cookies}
        assert {(True, True, "Lax", "/")} == {
            (c["secure"], c["httpOnly"], c["sameSite"], c["path"]) for c in cookies
        }
        assert "" == await tab.page.evaluate("document.cookie")
        await tab.press("Allow")
        assert "code=" in tab.page.url
        await authority.close()
    assert [] == tab.violated
    await tab.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
async def test_the_pages_fit_from_a_phone_to_a_desk_in_both_schemes(
    chromium, start, tmp_path, width, scheme
):
    """We demand that nothing is cut off or out of sight at 320 pixels; pictures are kept."""
    issuer = start.partition("/authorize")[0]
    tab = await Tab.of(chromium, viewport={"width": width, "height": 720}, color_scheme=scheme)

    async def look(name):
        await tab.page.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        wide = await tab.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, name
        for button in await tab.page.get_by_role("button").all():
            box = await button.bounding_box()
            assert box["x"] >= 0, name
            assert box["x"] + box["width"] <= width, name

    await tab.page.goto(start)
    await look("login")
    await tab.log_in("alice", WRONG)
    await look("wrong")
    await tab.log_in("alice", PASSWORD)
    await look("consent")
    everything = " ".join(SCOPES)
    await tab.page.goto(
        request_url(
            issuer, client_id="nasty", redirect_uri="https://notes.example/cb", scope=everything
        )
    )
    await look("nasty")
    await tab.page.goto(f"{issuer}/auth/logout")
    await look("logout")
    await tab.page.goto(f"{issuer}/auth/consent?request=gone")
    await look("over")
    await tab.page.goto(request_url(issuer, client_id="unknown"))
    await look("unknown")
    assert [] == tab.violated
    await tab.context.close()
