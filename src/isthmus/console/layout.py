"""Frame of every page of the console: navigation, the count of what waits, the theme, who has signed in."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from isthmus.auth.authorization_server.core.requests import RequestRefused
from isthmus.cards.markup import Child, Markup, element
from isthmus.console.requests import ConsoleRequest, Download, PageReply
from isthmus.console.routes import SECTIONS

STATIC_FOLDER = Path(__file__).parent / "static"
STATIC_KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
STYLES = ("console.css", "pages.css", "plots.css")
SCRIPTS = ("console.js", "copy.js")
THEMES = ("auto", "light", "dark")
THEME_COOKIE = "isthmus-theme"
NAME = "isthmus"
SIGN_IN_TEXT = "Sign in to see what waits."


@cache
def load_static() -> dict[str, Download]:
    """The files of the console, by a name that has a digest of all of them."""
    files = {
        path.name: path.read_bytes()
        for path in sorted(STATIC_FOLDER.iterdir())
        if path.suffix in STATIC_KINDS
    }
    # one digest for all: a module imports another one by its place beside it
    digest = hashlib.sha256(b"\0".join(files.values())).hexdigest()[:12]
    return {
        f"{digest}/{name}": Download(
            content=content, kind=STATIC_KINDS[Path(name).suffix], forever=True
        )
        for name, content in files.items()
    }


def find_static(prefix: str, name: str) -> str:
    """The path of a file of the console."""
    for path in load_static():
        if path.endswith(f"/{name}"):
            return f"{prefix}/static/{path}"
    raise RequestRefused("There is no such file.", status=404)


def make_icon(count: str) -> Download:
    """The icon of a tab, with the number of questions that wait."""
    number = int(count) if count.isdecimal() and len(count) < 4 else 0
    shown = "99+" if number > 99 else str(number)
    badge = (
        [
            element("circle", {"cx": 44, "cy": 20, "r": 20, "fill": "#c22f2f"}),
            element(
                "text",
                {
                    "x": 44, "y": 29, "font-size": 26 if number < 100 else 18, "fill": "#fff",
                    "font-family": "sans-serif", "font-weight": 700, "text-anchor": "middle",
                },
                shown,
            ),
        ]
        if number
        else []
    )  # fmt: skip
    drawing = element(
        "svg",
        {"xmlns": "http://www.w3.org/2000/svg", "viewBox": "0 0 64 64"},
        element("rect", {"x": 4, "y": 12, "width": 48, "height": 48, "rx": 12, "fill": "#2547c4"}),
        element("rect", {"x": 24, "y": 24, "width": 8, "height": 24, "fill": "#fff"}),
        badge,
    )
    return Download(content=drawing.encode(), kind="image/svg+xml")


def find_theme(request: ConsoleRequest) -> str:
    """The theme that this browser has chosen."""
    theme = request.browser.cookies.get(THEME_COOKIE, "")
    return theme if theme in THEMES else "auto"


def make_document(
    title: str, theme: str, prefix: str, *content: Child, count: int = 0, live: str = ""
) -> bytes:
    """A whole document around the content of its body."""
    head = [
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("meta", {"name": "robots", "content": "noindex"}),
        element("title", {}, f"({count}) " if count else "", f"{title} · {NAME}"),
        element("link", {"rel": "icon", "href": f"{prefix}/icon.svg?n={count}", "id": "icon"}),
        [
            element("link", {"rel": "stylesheet", "href": find_static(prefix, name)})
            for name in STYLES
        ],
        [
            element("script", {"type": "module", "src": find_static(prefix, name)})
            for name in SCRIPTS
        ],
    ]
    body = {"data-prefix": prefix, "data-live": live or None}
    page = element(
        "html",
        {"lang": "en", "dir": "ltr", "data-theme": theme},
        element("head", {}, head),
        element("body", body, *content),
    )
    return f"<!DOCTYPE html>\n{page}\n".encode("utf-8", "replace")


def make_page(request: ConsoleRequest, reply: PageReply, count: int) -> bytes:
    """A page within its frame.

    Args:
        request: what it answers.
        reply: the page.
        count: how many questions wait.
    """
    main = element(
        "main",
        {"id": "main", "tabindex": -1},
        element("h1", {}, reply.title),
        reply.body,
    )
    return make_document(
        reply.title,
        find_theme(request),
        request.prefix,
        element("a", {"class": "skip", "href": "#main"}, "Skip to the content"),
        _make_header(request, reply.section, count),
        main,
        count=count,
        live=" ".join(reply.live),
    )


def _make_header(request: ConsoleRequest, section: str, count: int) -> Markup:
    entries = [
        element(
            "li",
            {},
            element(
                "a",
                {
                    "href": request.link(one.name),
                    "aria-current": "page" if one.name == section else None,
                },
                one.title,
                _make_count(count) if one.name == "inbox" else None,
            ),
        )
        for one in SECTIONS
        if request.visitor.operator or not one.operator
    ]
    return element(
        "header",
        {"class": "frame"},
        element("a", {"class": "brand", "href": request.link()}, NAME),
        element("nav", {"aria-label": "Pages"}, element("ul", {}, entries)),
        _make_visitor_part(request),
    )


def _make_count(count: int) -> Markup:
    return element(
        "span",
        {"class": "count", "id": "count", "aria-live": "polite", "data-count": count},
        element("span", {"aria-hidden": "true"}, str(count) if count else ""),
        element("span", {"class": "unseen"}, f" {count} waiting" if count else ""),
    )


def _make_visitor_part(request: ConsoleRequest) -> Markup:
    theme = find_theme(request)
    after = THEMES[(THEMES.index(theme) + 1) % len(THEMES)]
    switch = request.make_form(
        request.link("theme"),
        element("input", {"type": "hidden", "name": "theme", "value": after}),
        element(
            "input", {"type": "hidden", "name": "page", "value": request.link(*request.segments)}
        ),
        element("button", {"type": "submit", "class": "plain"}, f"Theme: {theme}"),
    )
    leave = request.make_form(
        request.link("logout"),
        element("button", {"type": "submit", "class": "plain"}, "Sign out"),
        element(
            "button",
            {"type": "submit", "class": "plain", "name": "everywhere", "value": "yes"},
            "Sign out everywhere",
        )
        if request.renews
        else None,
    )
    who = element("span", {"class": "who"}, element("bdi", {}, request.visitor.name))
    return element("div", {"class": "visitor"}, who, switch, leave)


def _make_sign_in_notice(notice: str) -> Markup | None:
    """Why somebody is on this page: a hint for who comes first, else what went wrong."""
    if not notice:
        return None
    hint = notice == SIGN_IN_TEXT
    return element("p", {"class": "meta"} if hint else {"class": "warn", "role": "alert"}, notice)


def make_login_page(prefix: str, notice: str) -> bytes:
    """The form for the token that was printed."""
    form = element(
        "form",
        {"method": "post", "action": f"{prefix}/login", "id": "login", "class": "login"},
        element("label", {"for": "token"}, "Printed token, after #"),
        element(
            "input",
            {
                "id": "token", "name": "token", "type": "password", "autocomplete": "off",
                "required": True, "autofocus": True,
            },
        ),
        element("button", {"type": "submit", "class": "main"}, "Sign in"),
    )  # fmt: skip
    said = _make_sign_in_notice(notice)
    return make_document("Sign in", "auto", prefix, _make_alone("Sign in", said, form))


def make_issuer_page(prefix: str, notice: str, issuer: str, target: Sequence[str]) -> bytes:
    """The link to the authorization server that users sign in at.

    It is no form: browsers hold what a form is redirected to against ``form-action``.
    """
    from urllib.parse import quote  # slow to import

    path = "".join(f"/{quote(part, safe='')}" for part in target)
    begin = f"{prefix}/login/begin" + (f"?next={quote(prefix + path, safe='')}" if path else "")
    go = element("a", {"href": begin, "class": "main"}, "Sign in")
    way = element("p", {"id": "login", "class": "login"}, go, " at ", element("bdi", {}, issuer))
    said = _make_sign_in_notice(notice)
    return make_document("Sign in", "auto", prefix, _make_alone("Sign in", said, way))


def make_message_page(prefix: str, heading: str, text: str) -> bytes:
    """A page that says why something is not possible."""
    back = element("p", {}, element("a", {"href": f"{prefix}/"}, "To the Inbox"))
    main = _make_alone(heading, element("p", {}, text), back)
    return make_document(heading, "auto", prefix, main)


def _make_alone(heading: str, *content: Child) -> Markup:
    """A sheet that stands alone, without the navigation."""
    brand = element("span", {"class": "brand"}, NAME)
    sheet = element("div", {"class": "sheet"}, brand, element("h1", {}, heading), *content)
    return element("main", {"id": "main", "class": "alone"}, sheet)


def make_notice(text: str, *, bad: bool = False) -> Markup:
    """A sentence about what was done, or could not be."""
    role = "alert" if bad else "status"
    return element("p", {"class": "warn" if bad else "notice", "role": role}, text)
