"""Requests and cookies of browsers: forms read and judged, CSRF seals, pages and redirects sent.

A browser has one cookie that says that it is the same one (the binding) and, once somebody logged
in, one for that (the session); both are random and mean nothing to anybody else. An authorization
request is bound to the browser that brought it, and so are the forms.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from isthmus.auth.authorization_server.core.requests import (
    FORM_TYPE,
    RequestRefused,
    body_type,
    header_values,
    peer_address,
    read_body,
)
from isthmus.auth.authorization_server.pages.templates import make_page_headers
from isthmus.auth.net.urls import split_url
from isthmus.auth.tokens.secret import Secret, sha256_digest
from isthmus.transports.http.reply import Receive, Scope, Send, send_response
from isthmus.transports.http.request import RequestHeaders

MAX_FORM_BYTES = 16 * 1024
MAX_FORM_FIELDS = 20
MAX_COOKIE_CHARS = 16 * 1024
# 32 random bytes in base64url: the value of both cookies
OPAQUE_VALUE = re.compile(r"[A-Za-z0-9_-]{43}")
BODY_REFUSALS = {
    400: "That form did not arrive as a whole. Try again.",
    408: "That form took too long to arrive. Try again.",
    413: "That form is too long.",
}

PRINTABLE_ASCII = "".join(map(chr, range(0x21, 0x7F)))


class BrowserRequest(msgspec.Struct, frozen=True):
    """A request of a browser to one of the pages.

    Attributes:
        method: GET, HEAD or POST.
        fields: what a form holds, or the query has where there is no form.
        headers: names in lower case; repeated ones joined by ``", "``.
        cookies: by name.
        address: the TCP peer's; empty if there is none.
    """

    method: str
    fields: Mapping[str, str]
    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    address: str

    @property
    def posted(self) -> bool:
        """A form was sent."""
        return self.method == "POST"


class BrowserCookies:
    """The names of our cookies and how they are set.

    Under https a name begins with ``__Host-``, so that no other host, and nobody in between, can
    set it for us. Plain http is for the loopback interface, where that prefix is not to be had;
    ports share cookies there, so the port is in the name.

    Args:
        issuer: the authorization server's URL.
    """

    def __init__(self, issuer: str) -> None:
        parts = split_url(issuer)
        self.secure = parts.scheme == "https"
        # spec 2025-06-18 basic/authorization#confused-deputy-problem: __Host-, Secure, HttpOnly
        before, after = ("__Host-", "") if self.secure else ("", f"-{parts.port}")
        self.browser = f"{before}isthmus-browser{after}"
        self.session = f"{before}isthmus-session{after}"

    def named(self, name: str) -> str:
        """The name of one more cookie, by the same rule."""
        return self.browser.replace("isthmus-browser", name)

    def set(self, name: str, value: Secret, seconds: int | None = None) -> str:
        """The value of a ``Set-Cookie`` header.

        Args:
            name: of the cookie.
            value: what it holds.
            seconds: how long it lasts; None until the browser is closed.
        """
        age = "" if seconds is None else f"; Max-Age={seconds}"
        secure = "; Secure" if self.secure else ""
        return f"{name}={value.reveal()}; Path=/; HttpOnly; SameSite=Lax{secure}{age}"

    def clear(self, name: str) -> str:
        """The value of a ``Set-Cookie`` header that takes a cookie away."""
        return self.set(name, Secret(""), 0)

    def opaque(self, request: BrowserRequest, name: str) -> Secret | None:
        """The random value of a cookie; None where it is missing or is none of ours."""
        value = request.cookies.get(name, "")
        return Secret(value) if OPAQUE_VALUE.fullmatch(value) else None


class CsrfSeal:
    """Ties what stands in links and forms to a browser; nothing of it is stored.

    Args:
        mac: a keyed hash of a text, with a key of this server that nobody else has.
    """

    def __init__(self, mac: Callable[[str], bytes]) -> None:
        self._mac = mac

    def tie(self, *parts: str) -> str:
        """Make the proof that these parts belong together."""
        joined = msgspec.json.encode(["front", *parts]).decode()
        return self._mac(joined).hex()

    def holds(self, tied: str, *parts: str) -> bool:
        """Whether it is the proof for these parts; compared in constant time."""
        return Secret(self.tie(*parts)) == tied


def browser_binding(value: Secret | None) -> str:
    """A digest of a browser's cookie, to recognise the browser by; empty for none."""
    return "" if value is None else sha256_digest(value).hex()


def read_request_head(scope: Scope, fields: Mapping[str, str] | None = None) -> BrowserRequest:
    """A request to an endpoint that has read and judged the rest already.

    Args:
        scope: of the request.
        fields: what was sent.
    """
    headers = RequestHeaders(scope["headers"])
    cookies = _parse_cookies(headers.get("cookie", ""))
    return BrowserRequest(scope["method"], fields or {}, headers, cookies, peer_address(scope))


async def read_browser_request(
    scope: Scope,
    receive: Receive,
    *,
    max_bytes: int = MAX_FORM_BYTES,
    max_fields: int = MAX_FORM_FIELDS,
) -> BrowserRequest:
    """Read a request to one of the pages.

    Args:
        scope: of the request.
        receive: the ASGI callable.
        max_bytes: the longest form.
        max_fields: the most fields of a form.

    Raises:
        RequestRefused: the method, the length, the type or the fields are no form's of ours.
    """
    method = scope["method"]
    if method not in {"GET", "HEAD", "POST"}:
        raise RequestRefused(
            "This page is for browsers: GET and POST are what it answers.", status=405
        )
    if method != "POST":
        return read_request_head(scope, _parse_fields(scope["query_string"]))
    if body_type(header_values(scope, b"content-type")) != FORM_TYPE:
        raise RequestRefused("This page takes its own form only.", status=415)
    body = await _read_form_body(scope, receive, max_bytes)
    return read_request_head(scope, _parse_fields(body, max_fields))


async def _read_form_body(scope: Scope, receive: Receive, max_bytes: int) -> bytes:
    try:
        return await read_body(scope, receive, max_bytes)
    except RequestRefused as flaw:  # the same, as people read it
        raise RequestRefused(BODY_REFUSALS[flaw.status], status=flaw.status) from None


def _parse_fields(text: bytes, max_fields: int = MAX_FORM_FIELDS) -> dict[str, str]:
    from urllib.parse import parse_qsl  # slow to import

    try:
        pairs = parse_qsl(
            text.decode(), keep_blank_values=True, max_num_fields=max_fields, errors="strict"
        )
    except ValueError:
        raise RequestRefused("That form cannot be read.", status=400) from None
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RequestRefused("That form has a field twice.", status=400)
    return fields


def _parse_cookies(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for piece in header[:MAX_COOKIE_CHARS].split("; "):
        name, sign, value = piece.partition("=")
        if sign:
            # The first of two of a name is the one with the longer path, which is never ours. Only
            # what browsers take for a space is one here: after any other, a page of a sibling host
            # could set what we would read as `__Host-`.
            found[name.strip(" \t")] = value.strip(" \t")
    return found


def is_cross_site(request: BrowserRequest, origin: str) -> bool:
    """Whether a browser says that a form came from another page than ours.

    ``Origin: null`` is what our own pages send, since they let no referrer out.

    Args:
        request: the request.
        origin: ours.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    sender = request.headers.get("origin", "null")
    return site not in {"same-origin", "none"} or sender not in {"null", origin}


async def send_page(
    send: Send,
    status: int,
    page: bytes,
    cookies: tuple[str, ...] = (),
    *,
    retry_after: int | None = None,
) -> None:
    """Answer with a page and its headers.

    Args:
        send: the ASGI callable.
        status: of the response.
        page: the markup.
        cookies: values of ``Set-Cookie``.
        retry_after: seconds until another try has a chance.
    """
    await send_response(
        send, status, [*make_page_headers(retry_after), *_set_cookie_headers(cookies)], page
    )


async def send_redirect(send: Send, url: str, cookies: tuple[str, ...] = ()) -> None:
    """Send the browser to another URL, by GET.

    Args:
        send: the ASGI callable.
        url: where to; ours, or one that was found right.
        cookies: values of ``Set-Cookie``.
    """
    from urllib.parse import quote  # slow to import

    headers = [
        (b"location", quote(url, safe=PRINTABLE_ASCII).encode()),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
        *_set_cookie_headers(cookies),
    ]
    await send_response(send, 303, headers)


def _set_cookie_headers(cookies: tuple[str, ...]) -> list[tuple[bytes, bytes]]:
    return [(b"set-cookie", value.encode()) for value in cookies]
