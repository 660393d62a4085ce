"""Tests of the pages as markup: what is escaped, cut and shown."""

import re
from html.parser import HTMLParser

import pytest

from isthmus.auth.authorization_server.pages.templates import (
    CSP,
    PAGE_HEADERS,
    STYLE_NAME,
    STYLE_SHEET,
    ConsentView,
    LoginView,
    PagePaths,
    clean_text,
    render_consent_page,
    render_login_page,
    render_message_page,
)

PLACES = PagePaths("/tenant")
NASTY = "<script>alert(1)</script>\"'&\u202egnp.exe\u200b\x00\x1b[2J\r\nSet-Cookie: a=b"


def consent(**fields):
    return ConsentView(
        **{
            "place": "mcp.example",
            "client": "Notes",
            "kind": "dynamic",
            "client_id": "c1",
            "redirect_uri": "https://notes.example/cb",
            "target": "notes.example",
            "local": False,
            "scopes": {"files:read": "Read your files"},
            "resource": "https://mcp.example/mcp",
            "user": "alice",
            "handle": "h",
            "token": "k",
            "logout": "l",
            **fields,
        }
    )


class Elements(HTMLParser):
    """Collects the elements of a page, and checks that they nest."""

    VOID = frozenset({"meta", "link", "input"})

    def __init__(self, page):
        super().__init__()
        self.found, self.open = [], []
        self.feed(page.decode())
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def all_pages():
    login = LoginView(place="mcp.example", client=NASTY, handle=NASTY, token="k", account=NASTY,
                      notice="Wrong.")  # fmt: skip
    everything = dict.fromkeys(
        ("place", "client", "client_id", "redirect_uri", "target", "resource", "user", "handle",
         "provider"), NASTY,
    )  # fmt: skip
    nasty = consent(
        **everything, scopes={NASTY: NASTY}, provider_scopes=(NASTY,), domain=NASTY, local=True
    )
    yield render_login_page(login, PLACES)
    yield render_consent_page(nasty, PLACES)
    yield render_message_page(PLACES, NASTY, NASTY, NASTY, logout="l")


@pytest.mark.parametrize("page", list(all_pages()), ids=["login", "consent", "message"])
def test_foreign_text_is_escaped(page):
    """We demand that foreign text stays text, on every page and in every place of it."""
    tags = {tag for tag, _ in Elements(page).found}
    assert set() == tags & {"script", "img", "iframe", "object", "style", "svg", "base"}
    assert not [a for _, attrs in Elements(page).found for a in attrs if a.startswith("on")]
    assert b"\x00" not in page
    assert b"\x1b" not in page
    assert "\u202e" not in page.decode()


@pytest.mark.parametrize("page", list(all_pages()), ids=["login", "consent", "message"])
def test_nothing_is_loaded_but_our_own_style_sheet(page):
    """We demand pages without scripts, pictures or anything from elsewhere."""
    loaded = [a[k] for _, a in Elements(page).found for k in ("src", "href", "data") if k in a]
    assert [PLACES.style] == loaded


def test_the_policy_of_content_allows_our_style_sheet_and_nothing_else():
    """The security best practices demand that consent cannot be framed; the rest we demand."""
    assert (b"content-security-policy", CSP.encode()) in PAGE_HEADERS
    assert "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'" == CSP
    assert {b"x-frame-options", b"referrer-policy", b"cache-control"} <= {
        k for k, _ in PAGE_HEADERS
    }


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("Notes", "Notes"),
        ("  a\tb\r\nc  ", "a b c"),
        ("pay\u202etxt.exe", "paytxt.exe"),
        ("\u2066a\u2069\u200b\ufeffb\u00adc", "abc"),
        ("\x00\x1b[31mred", "[31mred"),
        ("\ue000\U000f0000x", "x"),
        ("e\u0301" + "\u0301" * 50, "e\u0301\u0301"),
        ("a" + "\u0301\u0301\u200b" * 20, "a\u0301\u0301"),
        ("a" + "\u0301\ufe0f" * 20, "a\u0301\u0301"),
        ("\u3164\u115f\u1160\uffa0\u2800\u034f\u17b4x\ufe0f\U000e0100\u180b", "x"),
        ("\ud800x", "x"),
        ("مرحبا", "مرحبا"),
        ("x" * 20, "xxxxxxxxx…"),
        ("\u200b" * 1000 + "late", ""),
    ],
)
def test_foreign_text_is_cut_and_loses_invisible_and_reordering_characters(text, seen):
    """We demand that a client's name cannot pass for another by invisible means."""
    assert seen == clean_text(text, 10)


@pytest.mark.parametrize("name", ["\u200b\u202e", "\u3164\u3164", "\u2800"])
def test_a_client_without_a_visible_name_is_called_so(name):
    """We demand that consent always names somebody."""
    assert b"A program without a name" in render_consent_page(consent(client=name), PLACES)


@pytest.mark.parametrize("quotes", ['x" autofocus onfocus="alert(1)', "x' onfocus='alert(1)"])
def test_a_typed_account_stays_within_its_attribute(quotes):
    """We demand that quotes in a name end no attribute of the form."""
    view = LoginView(place="mcp.example", client="Notes", handle=quotes, token="k", account=quotes)
    found = Elements(render_login_page(view, PLACES)).found
    fields = [attrs for tag, attrs in found if tag == "input" and attrs.get("value") == quotes]

    assert ["request", "account"] == [attrs["name"] for attrs in fields]
    assert all("onfocus" not in attrs for _, attrs in found)
    assert b"'" not in render_login_page(view, PLACES)


@pytest.mark.covers("auth.authority.redirect-host-shown")
def test_consent_shows_where_the_browser_goes_and_warns_of_programs_on_this_computer():
    """The specification demands the redirect host, and an additional warning for loopback ones."""
    remote = render_consent_page(consent(), PLACES)
    local = render_consent_page(consent(target="127.0.0.1:4000", local=True), PLACES)
    assert b"<strong>notes.example</strong>" in remote
    assert b"a program on this computer" not in remote
    assert b"<strong>127.0.0.1:4000</strong>" in local
    assert b"a program on this computer" in local


@pytest.mark.covers("auth.authority.consent-page")
def test_consent_names_the_client_its_scopes_where_it_goes_what_for_and_who_is_asked():
    """The security best practices demand client, scopes, redirect URI and a token in the form."""
    page = render_consent_page(consent(provider="Hub", provider_scopes=("repo",)), PLACES).decode()
    for text in ("Notes", "c1", "Read your files", "files:read", "https://notes.example/cb"):
        assert text in page
    for text in ("https://mcp.example/mcp", "alice", "Hub", "repo", 'name="token" value="k"'):
        assert text in page


@pytest.mark.parametrize(
    ("kind", "said"),
    [("dynamic", "Not verified"), ("document", "Published by app.example"), ("static", "Known")],
)
def test_consent_says_who_vouches_for_the_client(kind, said):
    """We demand that a name somebody gave themselves is not taken for a verified one."""
    page = render_consent_page(consent(kind=kind, domain="app.example"), PLACES).decode()
    assert [said] == [s for s in ("Not verified", "Published by app.example", "Known") if s in page]


def test_a_scope_without_text_is_shown_by_its_name():
    """We demand that nothing asked for is left out for want of words."""
    assert b"<code>x:y</code>" in render_consent_page(consent(scopes={"x:y": ""}), PLACES)
    assert b"nothing else" in render_consent_page(consent(scopes={}), PLACES)


def test_every_field_has_a_label_and_every_page_a_language_and_a_heading():
    """We demand pages that a screen reader can read."""
    for page in all_pages():
        found = Elements(page).found
        labels = {a["for"] for tag, a in found if tag == "label"}
        fields = {a.get("id") for tag, a in found if tag == "input" and a.get("type") != "hidden"}
        assert fields == labels
        assert "en" == dict(found[0][1])["lang"]
        assert 1 == sum(tag == "h1" for tag, _ in found)


def test_no_field_asks_for_the_wrong_kind_of_help():
    """We demand that browsers can fill the login in, and do not spell-check it."""
    page = render_login_page(
        LoginView(place="p", client="c", handle="h", token="k"), PLACES
    ).decode()
    assert 'autocomplete="username"' in page
    assert 'autocomplete="current-password"' in page
    assert 'autocapitalize="none"' in page


def test_a_failed_login_is_announced_and_goes_on_at_the_password():
    """We demand that who mistyped a password need not type the name again."""
    view = LoginView(place="p", client="c", handle="h", token="k", account="alice", notice="No.")
    page = render_login_page(view, PLACES).decode()
    assert 'role="alert">No.<' in page
    assert re.search(r'id="password"[^>]* autofocus', page)
    assert 'value="alice"' in page


def luminance(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(scheme):
    """We demand the contrast of WCAG's AAA for text, and of AA for borders of fields and focus."""
    blocks = STYLE_SHEET.decode().split(":root {")[1:]
    colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", blocks[scheme].split("}")[0]))
    for text, ground in (
        ("text", "ground"), ("text", "card"), ("text", "well"), ("soft", "card"), ("soft", "well"),
        ("on-accent", "accent"), ("on-accent", "accent-over"), ("warn-text", "warn"),
        ("bad-text", "bad"), ("accent", "card"),
    ):  # fmt: skip
        assert contrast(colours[text], colours[ground]) >= 7, (text, ground)
    for line in ("edge", "accent"):
        assert contrast(colours[line], colours["card"]) >= 3, line


def test_the_style_sheet_has_a_name_of_its_own_content_and_loads_nothing():
    """We demand that browsers may keep it for good, and that it fetches nothing."""
    assert re.fullmatch(r"style-[0-9a-f]{12}\.css", STYLE_NAME)
    assert b"url(" not in STYLE_SHEET
    assert b"@import" not in STYLE_SHEET
