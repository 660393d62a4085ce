"""Opening the user's browser at a page of the authorization server."""

import asyncio
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias

from isthmus.auth.urls import safe_browser_url
from isthmus.errors import AuthRequired

__all__ = ["OpenBrowser", "default_opener", "show"]

OpenBrowser: TypeAlias = Callable[[str], Awaitable[object] | object]
"""Has the user visit a URL. It is checked before; the URL is never fetched by isthmus itself."""


async def default_opener(url: str) -> None:
    """Open a URL in the browser that the user has set up; no shell sees it.

    Raises:
        AuthRequired: there is no browser to open.
    """
    import webbrowser  # needed for a login, and by no one else

    # Beside the loop: some browsers' programs end late.
    opened = await asyncio.to_thread(webbrowser.open, url)
    if not opened:
        raise AuthRequired(
            "there is no browser here to log in with: at a terminal, isthmus login --no-browser "
            "prints the URL; a program passes OAuth(open_browser=…) to show it to the user, or "
            "redirect=ByHand(…) to have them bring back where they were sent"
        )


async def show(open_browser: OpenBrowser, url: str) -> None:
    """Check a URL, and have the user visit it.

    Raises:
        AuthUnsafe: it is none that a browser should be given.
        AuthRequired: there is no browser.
    """
    # spec 2026-07-28 basic/authorization/security-considerations#open-redirection
    opened = open_browser(safe_browser_url(url))
    if isawaitable(opened):
        await opened
