"""A stand-in for the internet: documents by URL, and how often each was asked for."""

import json
from collections import Counter
from typing import Any

from isthmus.auth.net.addresses import NetworkFailed
from isthmus.auth.net.network import Fetched

__all__ = ["DocumentShelf"]


class DocumentShelf:
    """Answers requests from what was put on it."""

    def __init__(self) -> None:
        self.pages: dict[str, Fetched] = {}
        self.asked: Counter[str] = Counter()

    def put(self, url: str, document: Any, **headers: str) -> None:
        """Put a document there, as JSON unless it is bytes."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        named = {"content-type": "application/json"}
        named.update({name.replace("_", "-"): value for name, value in headers.items()})
        status = int(named.pop("status", "200"))
        self.pages[url] = Fetched(status, named, body, url)

    async def fetch(self, method: str, url: str, *, limit: int = 2**20, **_: Any) -> Fetched:
        self.asked[url] += 1
        page = self.pages.get(url)
        if page is None or len(page.body) > limit:
            raise NetworkFailed("no such page, or too long")
        return page

    async def json(self, url: str, **_: Any) -> Any:
        return (await self.fetch("GET", url)).json()

    async def close(self) -> None:
        pass
