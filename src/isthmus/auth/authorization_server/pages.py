"""What people see of the authorization server: functions from values to pages.

There is no JavaScript, no picture, and nothing from elsewhere. What a client or a user says of
themselves is cut, rid of characters that reorder or hide text, and escaped; no logo is fetched.
"""

import html
import unicodedata
from collections.abc import Mapping, Sequence
from string import Template

import msgspec

from isthmus.auth.authorization_server.pending import ClientKind
from isthmus.auth.authorization_server.style import STYLE_NAME

__all__ = ["ConnectView", "ConsentView", "LoginView", "Places", "astray_page", "connect_page", "consent_page",
           "login_page", "message_page",
           "page_headers", "shown"]  # fmt: skip

NAME_LIMIT = 64
URL_LIMIT = 400
TEXT_LIMIT = 300
MARKS = 2
"""Combining marks that one character may have; more of them pile up over other lines."""

HOLLOW = frozenset(
    map(
        chr,
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0,
         *range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    )
)  # fmt: skip
"""Letters, marks and signs without ink: Unicode does not count them among what is invisible."""

# No form-action: Chromium holds redirects after a form to it, also those to a client's own scheme.
CSP = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'"

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-type", b"text/html; charset=utf-8"),
    # spec 2025-11-25 basic/authorization#confused-deputy-problem: the consent page cannot be framed
    (b"content-security-policy", CSP.encode()),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
)


class Places(msgspec.Struct, frozen=True):
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
        """Where a login ends."""
        return f"{self.base}/auth/logout"

    @property
    def style(self) -> str:
        """The style sheet."""
        return f"{self.base}/auth/{STYLE_NAME}"


class LoginView(msgspec.Struct, frozen=True, kw_only=True):
    """What the login page says.

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
    """What the consent page says.

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


def shown(text: str, limit: int = TEXT_LIMIT) -> str:
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
        if (category[0] == "C" and character not in "\t\r\n") or character in HOLLOW:
            continue  # and what is left out is nothing that marks could begin anew on
        marks = marks + 1 if category[0] == "M" else 0
        if category[0] in "CZ":
            kept.append(" ")
        elif marks <= MARKS:
            kept.append(character)
    line = " ".join("".join(kept).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def page_headers(retry_after: int | None = None) -> list[tuple[bytes, bytes]]:
    """The headers of every page.

    Args:
        retry_after: seconds until another try has a chance; None where tries are not limited.
    """
    more = [] if retry_after is None else [(b"retry-after", b"%d" % retry_after)]
    return [*HEADERS, *more]


UNVERIFIED = "It calls itself that, and nobody has checked it."


class ConnectView(msgspec.Struct, frozen=True, kw_only=True):
    """What the page says that asks whether an account elsewhere may be used.

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


LAYOUT = Template("""\
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

LOGIN = Template("""\
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

CONSENT = Template("""\
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


CONNECT = Template("""\
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


ASTRAY = Template("""\
<p>The program that sent you here asked for what it cannot have. Nothing was done.</p>
<div class="target">
<span>You can go back to</span>
<strong>$target</strong>
</div>
<p>This server does not know who that is. Go there only if that is where you came from.</p>
<p><a href="$url" rel="noreferrer">Go back</a></p>
""")

PRINTABLE = "".join(map(chr, range(0x21, 0x7F)))


def connect_page(view: ConnectView, places: Places) -> bytes:
    """The question whether this server may use somebody's account elsewhere.

    Args:
        view: what it says.
        places: where our other pages are.
    """
    provider = _text(view.provider, NAME_LIMIT)
    asked = ", ".join(f"<code>{_text(s, NAME_LIMIT)}</code>" for s in view.provider_scopes)
    fields = "".join(
        f'<input type="hidden" name="{_text(name)}" value="{_text(value)}">\n'
        for name, value in view.fields.items()
    )
    content = CONNECT.substitute(
        client=_named(view.client),
        provider=provider,
        asked=f"This server then asks it for: {asked}." if asked else "",
        action=_text(view.action),
        fields=fields,
        user=_text(view.user, NAME_LIMIT),
    )
    heading = f"Let {_text(view.place)} use your account at {provider}?"
    return _layout(
        places, view.place, title="Connect an account?", heading=heading, content=content
    )


def login_page(view: LoginView, places: Places) -> bytes:
    """The form for a name and a password.

    Args:
        view: what it says.
        places: where it is sent.
    """
    client = _named(view.client)
    return _layout(
        places,
        view.place,
        title="Sign in",
        heading="Sign in",
        content=LOGIN.substitute(
            why=f"{client} asks for access to <strong>{_text(view.place)}</strong>.",
            notice=_alert(view.notice),
            action=places.login,
            handle=_text(view.handle),
            token=_text(view.token),
            account=_text(view.account, 128),
            # whoever mistyped a password goes on there, and not at the name
            first="" if view.account else " autofocus",
            second=" autofocus" if view.account else "",
        ),
    )


def consent_page(view: ConsentView, places: Places) -> bytes:
    """The question whether a client may act for somebody.

    Args:
        view: what it says.
        places: where the answer is sent.
    """
    content = CONSENT.substitute(
        badge=_badge(view),
        warning=_local(view),
        # spec 2026-07-28 basic/authorization/security-considerations#localhost-redirect-uri-risks:
        # the host is shown
        target=_text(view.target, URL_LIMIT),
        scopes=_scopes(view.scopes),
        provider=_provider(view),
        action=places.consent,
        handle=_text(view.handle),
        token=_text(view.token),
        client_id=_text(view.client_id, URL_LIMIT),
        redirect_uri=_text(view.redirect_uri, URL_LIMIT),
        resource=_text(view.resource, URL_LIMIT),
        user=_who(view, places),
    )
    heading = f"Allow {_named(view.client)} to use {_text(view.place)}?"
    return _layout(places, view.place, title="Allow access?", heading=heading, content=content)


def message_page(
    places: Places, place: str, heading: str, *texts: str, logout: str | None = None
) -> bytes:
    """A page that says something and asks nothing, but perhaps whether to sign out.

    Args:
        places: where our other pages are.
        place: the host of this server.
        heading: what it is about.
        texts: its paragraphs.
        logout: what proves that the form to sign out came from this page; None for no such form.
    """
    content = "".join(f"<p>{_text(text, 1000)}</p>\n" for text in texts)
    if logout is not None:
        content += (
            f'<form method="post" action="{places.logout}">\n'
            f'<input type="hidden" name="token" value="{_text(logout)}">\n'
            '<div class="choice"><button class="main" type="submit">Sign out</button></div>\n'
            "</form>\n"
        )
    return _layout(places, place, title=heading, heading=_text(heading), content=content)


def astray_page(places: Places, place: str, target: str, url: str) -> bytes:
    """A page that leaves it to people whether they go on to a client whose request failed.

    Args:
        places: where our other pages are.
        place: the host of this server.
        target: the host that they would go to.
        url: where exactly; of https.
    """
    from urllib.parse import quote  # slow to import

    content = ASTRAY.substitute(
        target=_text(target), url=html.escape(quote(url, safe=PRINTABLE), quote=True)
    )
    heading = "This request cannot be granted"
    return _layout(places, place, title=heading, heading=heading, content=content)


def _layout(places: Places, place: str, *, title: str, heading: str, content: str) -> bytes:
    return LAYOUT.substitute(
        title=f"{_text(title)} | {_text(place, URL_LIMIT)}",
        style=places.style,
        place=_text(place, URL_LIMIT),
        heading=heading,
        content=content,
    ).encode("utf-8", "replace")


def _text(text: str, limit: int = URL_LIMIT) -> str:
    """A text as markup; there is no other way for one onto a page."""
    return html.escape(shown(text, limit), quote=True)


def _named(client: str) -> str:
    """A client's name as markup; bdi keeps a name that is written from right to left to itself."""
    return f"<bdi>{_text(shown(client, NAME_LIMIT) or 'A program without a name')}</bdi>"


def _alert(notice: str) -> str:
    return f'<p class="notice bad" role="alert">{_text(notice)}</p>\n' if notice else ""


def _badge(view: ConsentView) -> str:
    # spec 2025-11-25 basic/authorization#confused-deputy-problem: which client asks
    domain = _text(view.domain, URL_LIMIT)
    style, badge, text = {
        "static": ("", "Known here", "The operator of this server has set it up."),
        "document": ("", f"Published by {domain}", "That is verified; the name is its own choice."),
        "dynamic": (" unverified", "Not verified", UNVERIFIED),
    }[view.kind]
    return f'<p class="badge{style}">{badge}</p>\n<p class="soft">{text}</p>'


def _local(view: ConsentView) -> str:
    if not view.local:
        return ""
    # spec 2026-07-28 basic/authorization/security-considerations#localhost-redirect-uri-risks:
    # SHOULD, an additional warning
    return (
        '<p class="notice">The answer goes to <strong>a program on this computer</strong>, and any '
        "program here could be the one. Allow it only if you started it yourself, just now.</p>\n"
    )


def _scopes(scopes: Mapping[str, str]) -> str:
    if not scopes:
        return "<p>Know who you are, and nothing else.</p>"
    rows = "".join(
        f"<li>{_text(text, TEXT_LIMIT)} <code>{_text(name, NAME_LIMIT)}</code></li>\n"
        if text and text != name
        else f"<li><code>{_text(name, NAME_LIMIT)}</code></li>\n"
        for name, text in scopes.items()
    )
    return f'<ul class="scopes">\n{rows}</ul>'


def _provider(view: ConsentView) -> str:
    if not view.provider:
        return ""
    asked = ", ".join(f"<code>{_text(s, NAME_LIMIT)}</code>" for s in view.provider_scopes)
    more = f" This server then asks it for: {asked}." if asked else ""
    provider = _text(view.provider, NAME_LIMIT)
    return (
        f"<h2>How you sign in</h2>\n<p>You are asked to sign in at <strong>{provider}</strong> "
        f"next.{more}</p>\n"
    )


def _who(view: ConsentView, places: Places) -> str:
    if view.user is None:
        return ""
    name = _text(view.user, NAME_LIMIT)
    signed_in = f"<span>Signed in as <strong><bdi>{name}</bdi></strong></span>"
    if view.logout is None:
        return f'<div class="who">{signed_in}</div>\n'
    return (
        f'<form class="who" method="post" action="{places.logout}">{signed_in}\n'
        f'<input type="hidden" name="request" value="{_text(view.handle)}">\n'
        f'<input type="hidden" name="token" value="{_text(view.logout)}">\n'
        '<button class="plain" type="submit">Not you? Sign out</button></form>\n'
    )
