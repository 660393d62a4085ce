"""A person at a browser, for tests of what needs a login: opens a URL, logs in, consents, goes on.

No browser is started: pages are fetched, their forms filled in and sent, with the cookies of their
origin. Needs nothing but Python, and any program can start it, too:
``python -m isthmus.testing.person URL NAME PASSWORD`` prints the URL that the browser was sent to in
the end, outside the authorization server, and does not go there; with ``--visit`` it does.
"""

import argparse
import asyncio
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser

MAX_STEPS = 12
REQUEST_TIMEOUT_S = 30
ACCEPT_WORDS = ("approve", "allow", "accept", "authorize", "yes", "continue")
DENY_WORDS = ("deny", "cancel", "reject", "no")
ACCOUNT_FIELDS = ("account", "username", "user", "name", "email", "login")


@dataclass
class HtmlForm:
    """One form of a page.

    Attributes:
        action: where it goes, as the page has it.
        method: ``get`` or ``post``.
        fields: the names with the values they come with.
        kinds: the type of each field.
        buttons: name, value and words of each button that sends it.
    """

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str, str]] = field(default_factory=list)


class _FormParser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[HtmlForm] = []
        self.button: tuple[str, str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        kind = given.get("type", "submit" if tag == "button" else "text").lower()
        if tag == "form":
            self.forms.append(HtmlForm(given.get("action", ""), given.get("method", "get").lower()))
        elif not self.forms or tag not in {"input", "button"}:
            return
        elif kind == "submit" and tag == "button":
            self.button = (given.get("name", ""), given.get("value", ""))
        elif kind == "submit":
            value = given.get("value", "")
            self.forms[-1].buttons.append((given.get("name", ""), value, value))
        elif "name" in given and (kind not in {"checkbox", "radio"} or "checked" in given):
            self.forms[-1].fields[given["name"]] = given.get("value", "")
            self.forms[-1].kinds[given["name"]] = kind

    def handle_data(self, data: str) -> None:
        if self.button is not None and data.strip():
            self.forms[-1].buttons.append((*self.button, data.strip()))
            self.button = None


def parse_forms(page: str) -> list[HtmlForm]:
    """The forms of a page."""
    parser = _FormParser()
    parser.feed(page)
    return parser.forms


class Person:
    """Somebody with a name, a password and an opinion.

    Example::

        ada = Person("ada", "correct horse")
        auth = OAuth(open_browser=ada.open)

    Args:
        name: whom they log in as.
        password: with what.
        approve: whether they consent.

    Attributes:
        opened: the URLs that were given to :meth:`open`, in their order.
        pages: the pages that were seen, as HTML.
        cookies: by origin and name; without them this is another browser.
    """

    def __init__(self, name: str, password: str, *, approve: bool = True) -> None:
        self.name = name
        self.password = password
        self.approve = approve
        self.cookies: dict[tuple[str, str], str] = {}
        self.pages: list[str] = []
        self.opened: list[str] = []

    async def open(self, url: str) -> None:
        """What a browser does with a URL: everything, and in the end the way back to the client.

        Args:
            url: the URL of the authorization request.

        Raises:
            RuntimeError: a page has nothing that one could do.
        """
        self.opened.append(url)
        await asyncio.to_thread(lambda: self.request("GET", self.follow(url)))

    def follow(self, url: str) -> str:
        """Open a URL and do what its pages want; the URL outside of there that one is sent to.

        Args:
            url: the URL to begin at.

        Raises:
            RuntimeError: a page has nothing that one could do; the message has its text.
        """
        from urllib.parse import urljoin, urlsplit  # slow, and needed by logins alone

        home = urlsplit(url)[:2]
        method, body = "GET", ""
        for _ in range(MAX_STEPS):
            if urlsplit(url)[:2] != home:
                return url
            status, where, page = self.request(method, url, body)
            if where:
                method, body, url = "GET", "", urljoin(url, where)
                continue
            self.pages.append(page)
            method, body, url = self.fill(url, status, page)
        raise RuntimeError(f"no end after {MAX_STEPS} pages, the last at {url}")

    def fill(self, url: str, status: int, page: str) -> tuple[str, str, str]:
        """The request that the form of a page makes.

        Args:
            url: the URL of the page.
            status: the HTTP status it came with.
            page: the page, as HTML.
        """
        from urllib.parse import urlencode, urljoin  # as above

        found = parse_forms(page)
        if not found:
            raise RuntimeError(
                f"{status} without a form at {url.split('?', maxsplit=1)[0]}: {page[-1500:]}"
            )
        form = next((f for f in found if "password" in f.kinds.values()), None)
        login = form is not None
        form = form or next((f for f in found if self.choose_answer(f)), found[0])
        values = dict(form.fields)
        for name, kind in form.kinds.items():
            if kind == "password":
                values[name] = self.password
            elif login and name.lower() in ACCOUNT_FIELDS:
                values[name] = self.name
        button = None if login else self.choose_answer(form)
        if button and button[0]:
            values[button[0]] = button[1]
        target = urljoin(url, form.action or url)
        if form.method == "post":
            return "POST", urlencode(values), target
        return "GET", "", f"{target.split('?')[0]}?{urlencode(values)}"

    def choose_answer(self, form: HtmlForm) -> tuple[str, str, str] | None:
        """The button that says what this person means, or None.

        Args:
            form: the form.
        """
        words = ACCEPT_WORDS if self.approve else DENY_WORDS
        for button in form.buttons:
            if any(text.lower().startswith(words) for text in button[1:]):
                return button
        return None

    def request(self, method: str, url: str, body: str = "") -> tuple[int, str, str]:
        """One request with the cookies of its origin: status, where it redirects to, its text.

        Args:
            method: ``GET`` or ``POST``.
            url: the URL.
            body: the body of a POST, as a form encodes it; empty by default.
        """
        import http.client  # as above
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        kind = (
            http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        )
        connection = kind(parts.netloc, timeout=REQUEST_TIMEOUT_S)
        mine = "; ".join(f"{k}={v}" for (at, k), v in self.cookies.items() if at == parts.netloc)
        headers = {"Accept": "text/html", "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
        if mine:
            headers["Cookie"] = mine
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Origin"] = f"{parts.scheme}://{parts.netloc}"
            headers["Sec-Fetch-Site"] = "same-origin"
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request(method, path, body or None, headers)
            response = connection.getresponse()
            text = response.read().decode(errors="replace")
        finally:
            connection.close()
        for cookie in response.headers.get_all("set-cookie", []):
            name, _, value = cookie.split(";")[0].partition("=")
            self.cookies[parts.netloc, name.strip()] = value.strip()
        return response.status, response.getheader("location", ""), text


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description="A person at a browser, without a browser.")
    parser.add_argument("url")
    parser.add_argument("name")
    parser.add_argument("password")
    parser.add_argument("--deny", action="store_true", help="say no")
    parser.add_argument("--visit", action="store_true", help="go where one is sent")
    given = parser.parse_args()
    somebody = Person(given.name, given.password, approve=not given.deny)
    url = somebody.follow(given.url)
    if given.visit:
        somebody.request("GET", url)
    sys.stdout.write(url + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
