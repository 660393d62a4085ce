"""Pages: where a user may be sent. Pure, and used by either side."""

from typing import Any

__all__ = ["no_page", "spell_host"]


def no_page(url: Any) -> str | None:
    """Why nobody should be sent to a URL; None for a page on the web."""
    from urllib.parse import urlsplit  # not needed until a page is to be opened

    try:
        parts = urlsplit(url if isinstance(url, str) else "")
    except ValueError:
        parts = urlsplit("")
    # spec 2026-07-28 client/elicitation#url-mode-elicitation-requests: MUST be a valid URL
    if not parts.hostname:
        return "url is no URL"
    if parts.scheme not in {"https", "http"}:
        return f"url is no page on the web but {parts.scheme}:"
    if any(c.isspace() or not c.isprintable() for c in url):
        return "url holds blanks or control characters"
    # Browsers take it for a slash, and the page would be on another host than the one shown.
    if "\\" in url:
        return "url holds a backslash"
    # It is shown where a host is expected (https://bank.example@evil.example), and would log in.
    if "@" in parts.netloc:
        return "url has a user or a password before its host"
    return None


def spell_host(host: str) -> str:
    """A host as browsers show it: without percent signs, and Punycode in its letters.

    Example:
        >>> spell_host("p%61y.xn--bcher-kva.example")
        'pay.bücher.example'
    """
    from urllib.parse import unquote

    return ".".join(map(_unicode, unquote(host).lower().split(".")))


def _unicode(label: str) -> str:
    try:
        return label[4:].encode().decode("punycode") if label.startswith("xn--") else label
    except UnicodeError:
        return label
