"""Pages: where a user may be sent. Pure, and used by either side."""

from typing import Any

__all__ = ["no_page"]


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
    return None
