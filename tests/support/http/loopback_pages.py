"""Small web servers on this machine, made of pages: a path, and what is answered there."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from aiohttp import web

Answer = tuple[int, Mapping[str, str], bytes]


class PageRequest(msgspec.Struct):
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    @property
    def form(self) -> dict[str, str]:
        """The form that was posted."""
        return dict(parse_qsl(self.body.decode()))


Page = Callable[[PageRequest], Answer | Awaitable[Answer]]


class Pages:
    """A server whose pages may change while it runs; it remembers what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.pages: dict[str, Page] = {}
        self.asked: list[PageRequest] = []

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer with the page at the path."""
        asked = PageRequest(request.method, request.path, request.headers, await request.read())
        self.asked.append(asked)
        page = self.pages.get(request.path)
        found = (404, {}, b"") if page is None else page(asked)
        status, headers, body = found if isinstance(found, tuple) else await found
        return web.Response(status=status, headers=headers, body=body)

    def paths(self, method: str = "GET") -> list[str]:
        """The paths that were asked for, in order."""
        return [asked.path for asked in self.asked if asked.method == method]


def json_page(value: Any, status: int = 200) -> Answer:
    """An answer in JSON."""
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


@asynccontextmanager
async def serve_pages() -> AsyncIterator[Pages]:
    """A server that listens; its ``url`` has no slash at the end."""
    made = Pages()
    runner = web.ServerRunner(web.Server(made.answer, access_log=None))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    try:
        yield made
    finally:
        await runner.cleanup()
