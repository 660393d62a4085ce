"""HTML and CSS of the pages: functions from values to markup, which escape everything.

There is no JavaScript, no picture, and nothing from elsewhere. What a client or a user says of
themselves is cut, rid of characters that reorder or hide text, and escaped; no logo is fetched.
"""

import hashlib
import html
import unicodedata
from collections.abc import Mapping, Sequence
from string import Template

import msgspec

from isthmus.auth.authorization_server.storage.clients import ClientKind

MAX_NAME_CHARS = 64
MAX_SHOWN_URL_CHARS = 400
MAX_TEXT_CHARS = 300
MAX_COMBINING_MARKS = 2  # of one character: more of them pile up over other lines

# letters, marks and signs without ink, which Unicode does not count among what is invisible
INKLESS_CHARACTERS = frozenset(
    map(
        chr,
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0,
         *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    )
)  # fmt: skip

# No form-action: Chromium holds redirects after a form to it, also those to a client's own scheme.
CSP = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'"

PAGE_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    # spec 2025-11-25 basic/authorization#confused-deputy-problem: the consent page cannot be framed
    (b"content-security-policy", CSP.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)

UNVERIFIED_TEXT = "It calls itself that, and nobody has checked it."


class PagePaths(msgspec.Struct, frozen=True):
    """The paths of the pages, all of them under the issuer's own.

    Attributes:
        base: the path of the issuer, without a slash at its end.
    """

    base: str = ""

    @property
    def login(self) -> str:
        """The form for a name and a password."""
        return f"{self.base}/auth/login"

    @property
    def consent(self) -> str:
        """The question whether a client may."""
        return f"{self.base}/auth/consent"

    @property
    def logout(self) -> str:
        """The page that ends a login."""
        return f"{self.base}/auth/logout"

    @property
    def style(self) -> str:
        """The style sheet."""
        return f"{self.base}/auth/{STYLE_NAME}"


class LoginView(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the login page.

    Attributes:
        place: the host of the server that people log in to.
        client: what the client that asks calls itself.
        handle: names the authorization request, for this browser.
        token: what proves that the form came from this page.
        account: the name to begin with.
        notice: what went wrong.
    """

    place: str
    client: str
    handle: str
    token: str
    account: str = ""
    notice: str = ""


class ConsentView(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the consent page.

    Attributes:
        place: the host of the server that is asked.
        client: what the client calls itself.
        kind: how it is known here.
        domain: whose document describes it, where one does.
        client_id: its identifier.
        redirect_uri: where the answer goes.
        target: the host of that, or what opens it.
        local: the answer goes to a program on the user's computer.
        scopes: what it may do, from the scope's name to its text.
        resource: the server that it may do that at.
        user: who is asked; None where that is found out afterwards, elsewhere.
        provider: where users are logged in afterwards; empty where it is here.
        provider_scopes: what we then ask of that.
        handle: names the authorization request, for this browser.
        token: what proves that the form came from this page.
        logout: the same for the form that ends the login; None where there is none to end.
    """

    place: str
    client: str
    kind: ClientKind
    domain: str = ""
    client_id: str
    redirect_uri: str
    target: str
    local: bool
    scopes: Mapping[str, str]
    resource: str
    user: str | None
    provider: str = ""
    provider_scopes: Sequence[str] = ()
    handle: str
    token: str
    logout: str | None = None


def clean_text(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """A foreign text as it may stand on a page: bounded, on one line, with nothing invisible in it.

    What reorders text (bidirectional controls), hides in it (zero width, control and unassigned
    characters) or piles up over other lines is taken out. It is not escaped yet.

    Args:
        text: whatever somebody sent.
        limit: the most characters; what is cut ends in an ellipsis.
    """
    kept: list[str] = []
    marks = 0
    for character in text[: limit * 4]:  # no more is read than could be shown
        category = unicodedata.category(character)
        if (category[0] == "C" and character not in "\t\r\n") or character in INKLESS_CHARACTERS:
            continue  # and what is left out is nothing that marks could begin anew on
        marks = marks + 1 if category[0] == "M" else 0
        if category[0] in "CZ":
            kept.append(" ")
        elif marks <= MAX_COMBINING_MARKS:
            kept.append(character)
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def make_page_headers(retry_after: int | None = None) -> list[tuple[bytes, bytes]]:
    """The headers of every page.

    Args:
        retry_after: seconds until another try has a chance; None where tries are not limited.
    """
    more = [] if retry_after is None else [(b"retry-after", b"%d" % retry_after)]
    return [*PAGE_HEADERS, *more]


class ConnectView(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of the page that asks whether an account elsewhere may be used.

    Attributes:
        place: the host of the server that is asked.
        client: what the client calls itself for which this is.
        provider: what the service is called that the account is with.
        provider_scopes: what we ask of it.
        user: who is asked.
        action: where the answer is sent.
        fields: what goes with it.
    """

    place: str
    client: str
    provider: str
    provider_scopes: Sequence[str]
    user: str
    action: str
    fields: Mapping[str, str]


LAYOUT_TEMPLATE = Template("""\
<!DOCTYPE html>
<html lang="en" dir="ltr">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>$title</title>
<link rel="stylesheet" href="$style">
</head>
<body>
<main>
<p class="place">$place</p>
<h1>$heading</h1>
$content</main>
</body>
</html>
""")

LOGIN_TEMPLATE = Template("""\
<p>$why</p>
$notice<form method="post" action="$action">
<input type="hidden" name="request" value="$handle">
<input type="hidden" name="token" value="$token">
<label for="account">User name</label>
<input id="account" name="account" value="$account" autocomplete="username" autocapitalize="none" \
spellcheck="false" maxlength="128" required$first>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" \
maxlength="1024" required$second>
<div class="choice"><button class="main" type="submit">Sign in</button></div>
</form>
""")

CONSENT_TEMPLATE = Template("""\
$badge
$warning<div class="target">
<span>If you allow it, you are sent to</span>
<strong>$target</strong>
</div>
<h2>It would be allowed to</h2>
$scopes
$provider<form method="post" action="$action">
<input type="hidden" name="request" value="$handle">
<input type="hidden" name="token" value="$token">
<div class="choice">
<button class="main" type="submit" name="decision" value="allow">Allow</button>
<button type="submit" name="decision" value="deny">Deny</button>
</div>
</form>
<details open>
<summary>Technical details</summary>
<dl>
<dt>Client</dt><dd><code>$client_id</code></dd>
<dt>Answer goes to</dt><dd><code>$redirect_uri</code></dd>
<dt>Access to</dt><dd><code>$resource</code></dd>
</dl>
</details>
$user""")


CONNECT_TEMPLATE = Template("""\
<p>$client asks for it. Go on only if you have just been told there that you would be sent here.</p>
<p>You sign in at <strong>$provider</strong> next. $asked</p>
<form method="post" action="$action">
$fields<div class="choice">
<button class="main" type="submit" name="decision" value="allow">Continue</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>
<div class="who"><span>Signed in as <strong><bdi>$user</bdi></strong></span></div>
""")


ASTRAY_TEMPLATE = Template("""\
<p>The program that sent you here asked for what it cannot have. Nothing was done.</p>
<div class="target">
<span>You can go back to</span>
<strong>$target</strong>
</div>
<p>This server does not know who that is. Go there only if that is where you came from.</p>
<p><a href="$url" rel="noreferrer">Go back</a></p>
""")

PRINTABLE_CHARACTERS = "".join(map(chr, range(0x21, 0x7F)))


def render_connect_page(view: ConnectView, places: PagePaths) -> bytes:
    """The question whether this server may use somebody's account elsewhere.

    Args:
        view: what it says.
        places: where our other pages are.
    """
    provider = _escape_text(view.provider, MAX_NAME_CHARS)
    asked = ", ".join(
        f"<code>{_escape_text(s, MAX_NAME_CHARS)}</code>" for s in view.provider_scopes
    )
    fields = "".join(
        f'<input type="hidden" name="{_escape_text(name)}" value="{_escape_text(value)}">\n'
        for name, value in view.fields.items()
    )
    content = CONNECT_TEMPLATE.substitute(
        client=_render_name(view.client),
        provider=provider,
        asked=f"This server then asks it for: {asked}." if asked else "",
        action=_escape_text(view.action),
        fields=fields,
        user=_escape_text(view.user, MAX_NAME_CHARS),
    )
    heading = f"Let {_escape_text(view.place)} use your account at {provider}?"
    return _render_layout(
        places, view.place, title="Connect an account?", heading=heading, content=content
    )


def render_login_page(view: LoginView, places: PagePaths) -> bytes:
    """The form for a name and a password.

    Args:
        view: what it says.
        places: where it is sent.
    """
    client = _render_name(view.client)
    return _render_layout(
        places,
        view.place,
        title="Sign in",
        heading="Sign in",
        content=LOGIN_TEMPLATE.substitute(
            why=f"{client} asks for access to <strong>{_escape_text(view.place)}</strong>.",
            notice=_render_alert(view.notice),
            action=places.login,
            handle=_escape_text(view.handle),
            token=_escape_text(view.token),
            account=_escape_text(view.account, 128),
            # whoever mistyped a password goes on there, and not at the name
            first="" if view.account else " autofocus",
            second=" autofocus" if view.account else "",
        ),
    )


def render_consent_page(view: ConsentView, places: PagePaths) -> bytes:
    """The question whether a client may act for somebody.

    Args:
        view: what it says.
        places: where the answer is sent.
    """
    content = CONSENT_TEMPLATE.substitute(
        badge=_render_badge(view),
        warning=_render_local_warning(view),
        # spec 2026-07-28 basic/authorization/security-considerations#localhost-redirect-uri-risks:
        # the host is shown
        target=_escape_text(view.target, MAX_SHOWN_URL_CHARS),
        scopes=_render_scopes(view.scopes),
        provider=_render_provider(view),
        action=places.consent,
        handle=_escape_text(view.handle),
        token=_escape_text(view.token),
        client_id=_escape_text(view.client_id, MAX_SHOWN_URL_CHARS),
        redirect_uri=_escape_text(view.redirect_uri, MAX_SHOWN_URL_CHARS),
        resource=_escape_text(view.resource, MAX_SHOWN_URL_CHARS),
        user=_render_user(view, places),
    )
    heading = f"Allow {_render_name(view.client)} to use {_escape_text(view.place)}?"
    return _render_layout(
        places, view.place, title="Allow access?", heading=heading, content=content
    )


def render_message_page(
    places: PagePaths, place: str, heading: str, *texts: str, logout: str | None = None
) -> bytes:
    """A page that says something and asks nothing, but perhaps whether to sign out.

    Args:
        places: where our other pages are.
        place: the host of this server.
        heading: what it is about.
        texts: its paragraphs.
        logout: what proves that the form to sign out came from this page; None for no such form.
    """
    content = "".join(f"<p>{_escape_text(text, 1000)}</p>\n" for text in texts)
    if logout is not None:
        content += (
            f'<form method="post" action="{places.logout}">\n'
            f'<input type="hidden" name="token" value="{_escape_text(logout)}">\n'
            '<div class="choice"><button class="main" type="submit">Sign out</button></div>\n'
            "</form>\n"
        )
    return _render_layout(
        places, place, title=heading, heading=_escape_text(heading), content=content
    )


def render_astray_page(places: PagePaths, place: str, target: str, url: str) -> bytes:
    """A page that leaves it to people whether they go on to a client whose request failed.

    Args:
        places: where our other pages are.
        place: the host of this server.
        target: the host that they would go to.
        url: where exactly; of https.
    """
    from urllib.parse import quote  # slow to import

    content = ASTRAY_TEMPLATE.substitute(
        target=_escape_text(target),
        url=html.escape(quote(url, safe=PRINTABLE_CHARACTERS), quote=True),
    )
    heading = "This request cannot be granted"
    return _render_layout(places, place, title=heading, heading=heading, content=content)


def _render_layout(
    places: PagePaths, place: str, *, title: str, heading: str, content: str
) -> bytes:
    return LAYOUT_TEMPLATE.substitute(
        title=f"{_escape_text(title)} | {_escape_text(place, MAX_SHOWN_URL_CHARS)}",
        style=places.style,
        place=_escape_text(place, MAX_SHOWN_URL_CHARS),
        heading=heading,
        content=content,
    ).encode("utf-8", "replace")


def _escape_text(text: str, limit: int = MAX_SHOWN_URL_CHARS) -> str:
    """A text as markup; there is no other way for one onto a page."""
    return html.escape(clean_text(text, limit), quote=True)


def _render_name(client: str) -> str:
    """A client's name as markup; bdi keeps a name that is written from right to left to itself."""
    return f"<bdi>{_escape_text(clean_text(client, MAX_NAME_CHARS) or 'A program without a name')}</bdi>"


def _render_alert(notice: str) -> str:
    return f'<p class="notice bad" role="alert">{_escape_text(notice)}</p>\n' if notice else ""


def _render_badge(view: ConsentView) -> str:
    # spec 2025-11-25 basic/authorization#confused-deputy-problem: which client asks
    domain = _escape_text(view.domain, MAX_SHOWN_URL_CHARS)
    style, badge, text = {
        "static": ("", "Known here", "The operator of this server has set it up."),
        "document": ("", f"Published by {domain}", "That is verified; the name is its own choice."),
        "dynamic": (" unverified", "Not verified", UNVERIFIED_TEXT),
    }[view.kind]
    return f'<p class="badge{style}">{badge}</p>\n<p class="soft">{text}</p>'


def _render_local_warning(view: ConsentView) -> str:
    if not view.local:
        return ""
    # spec 2026-07-28 basic/authorization/security-considerations#localhost-redirect-uri-risks:
    # SHOULD, an additional warning
    return (
        '<p class="notice">The answer goes to <strong>a program on this computer</strong>, and any '
        "program here could be the one. Allow it only if you started it yourself, just now.</p>\n"
    )


def _render_scopes(scopes: Mapping[str, str]) -> str:
    if not scopes:
        return "<p>Know who you are, and nothing else.</p>"
    rows = "".join(
        f"<li>{_escape_text(text, MAX_TEXT_CHARS)} <code>{_escape_text(name, MAX_NAME_CHARS)}</code></li>\n"
        if text and text != name
        else f"<li><code>{_escape_text(name, MAX_NAME_CHARS)}</code></li>\n"
        for name, text in scopes.items()
    )
    return f'<ul class="scopes">\n{rows}</ul>'


def _render_provider(view: ConsentView) -> str:
    if not view.provider:
        return ""
    asked = ", ".join(
        f"<code>{_escape_text(s, MAX_NAME_CHARS)}</code>" for s in view.provider_scopes
    )
    more = f" This server then asks it for: {asked}." if asked else ""
    provider = _escape_text(view.provider, MAX_NAME_CHARS)
    return (
        f"<h2>How you sign in</h2>\n<p>You are asked to sign in at <strong>{provider}</strong> "
        f"next.{more}</p>\n"
    )


def _render_user(view: ConsentView, places: PagePaths) -> str:
    if view.user is None:
        return ""
    name = _escape_text(view.user, MAX_NAME_CHARS)
    signed_in = f"<span>Signed in as <strong><bdi>{name}</bdi></strong></span>"
    if view.logout is None:
        return f'<div class="who">{signed_in}</div>\n'
    return (
        f'<form class="who" method="post" action="{places.logout}">{signed_in}\n'
        f'<input type="hidden" name="request" value="{_escape_text(view.handle)}">\n'
        f'<input type="hidden" name="token" value="{_escape_text(view.logout)}">\n'
        '<button class="plain" type="submit">Not you? Sign out</button></form>\n'
    )


# Contrast is at least 7:1 for text and 3:1 for borders of fields and for the ring of the focus, in
# both schemes. Sizes are relative, so that a page zoomed to 400 % or 320 px wide stays one column.
STYLE_SHEET = b"""\
:root {
  color-scheme: light dark;
  --ground: #f3f4f7; --card: #ffffff; --text: #14171f; --soft: #4b5263; --line: #d9dce4;
  --edge: #767d8f; --accent: #2547c4; --accent-over: #1b369c; --on-accent: #ffffff;
  --well: #f3f4f7; --warn: #fff4d6; --warn-line: #b07a00; --warn-text: #4d3500;
  --bad: #fdeaea; --bad-line: #c22f2f; --bad-text: #7a1414;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1117; --card: #191c25; --text: #eceef4; --soft: #b4bac9; --line: #2e3342;
    --edge: #7f879b; --accent: #a9bcff; --accent-over: #c6d3ff; --on-accent: #0f1630;
    --well: #11141b; --warn: #2d2410; --warn-line: #c99a2e; --warn-text: #ffe3a3;
    --bad: #331717; --bad-line: #e06464; --bad-text: #ffc9c9;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; min-height: 100vh; display: flex; flex-direction: column;
  align-items: center; justify-content: center; padding: 1.5rem 1rem;
  background: var(--ground); color: var(--text); overflow-wrap: anywhere; }
main { width: 100%; max-width: 30rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 1rem; padding: 2rem; box-shadow: 0 1px 2px #0000000d, 0 12px 32px #00000012; }
.place { margin: 0 0 1.25rem; color: var(--soft); font-size: .875rem; font-weight: 600; }
.place::before { content: ""; display: inline-block; width: .625rem; height: .625rem;
  margin-inline-end: .5rem; border-radius: 50%; background: var(--accent); }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; letter-spacing: -.01em; }
h2 { margin: 1.5rem 0 .5rem; font-size: .875rem; color: var(--soft); }
p { margin: 0 0 1rem; }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
a { color: var(--accent); }
.soft { color: var(--soft); font-size: .875rem; }
.badge { display: inline-block; margin: .25rem 0 .375rem; padding: .125rem .625rem; font-size: .8125rem;
  font-weight: 600; border: 1px solid var(--line); border-radius: 1rem; color: var(--soft); }
.badge.unverified { border-color: var(--warn-line); background: var(--warn);
  color: var(--warn-text); }
.notice { margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem;
  border-inline-start: .25rem solid var(--warn-line); background: var(--warn);
  color: var(--warn-text); }
.notice.bad { border-color: var(--bad-line); background: var(--bad); color: var(--bad-text); }
.target { margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem; background: var(--well);
  border: 1px solid var(--line); }
.target strong { display: block; font-size: 1.125rem; }
.target span { color: var(--soft); font-size: .875rem; }
ul.scopes { margin: 0; padding: 0; list-style: none; border: 1px solid var(--line);
  border-radius: .5rem; }
ul.scopes li { padding: .625rem 1rem; }
ul.scopes li + li { border-top: 1px solid var(--line); }
ul.scopes code { display: block; color: var(--soft); }
details { margin: 1.25rem 0 0; }
summary { cursor: pointer; padding: .5rem 0; color: var(--soft); font-size: .875rem; }
dl { margin: 0; font-size: .875rem; }
dt { color: var(--soft); }
dd { margin: 0 0 .625rem; }
label { display: block; margin: 0 0 .25rem; font-weight: 600; }
input { display: block; width: 100%; min-height: 2.75rem; margin: 0 0 1rem; padding: .5rem .75rem;
  font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--edge);
  border-radius: .5rem; }
button { flex: 1 1 9rem; min-height: 2.75rem; padding: .5rem 1rem; font: inherit; font-weight: 600;
  cursor: pointer; border: 1px solid var(--edge); border-radius: .5rem; background: var(--card);
  color: var(--text); }
button:hover { background: var(--well); }
button.main { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
button.main:hover { border-color: var(--accent-over); background: var(--accent-over); }
button.plain { flex: none; min-height: 0; padding: .25rem 0; border: 0; background: none;
  color: var(--accent); text-decoration: underline; }
:focus-visible { outline: .1875rem solid var(--accent); outline-offset: .125rem; }
.choice { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; }
.who { display: flex; flex-wrap: wrap; align-items: baseline; column-gap: .75rem;
  margin: 1.25rem 0 0; padding: .75rem 0 0; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .875rem; }
.who strong { color: var(--text); }
@media (max-width: 26rem) {
  body { padding: 0; justify-content: flex-start; background: var(--card); }
  main { padding: 1.25rem 1rem 2rem; border: 0; border-radius: 0; box-shadow: none; }
}
@media (forced-colors: active) { .place::before { background: CanvasText; } }
"""

# changes with the sheet, so that browsers may keep it for as long as they like
STYLE_NAME = f"style-{hashlib.sha256(STYLE_SHEET).hexdigest()[:12]}.css"
