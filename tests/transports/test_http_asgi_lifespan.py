"""A guarded app within another application: where its pages are, and what is said where they are not."""

import logging

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from support.auth.protected_server import Files, bearer_header, list_challenges, make_guard
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

RESOURCE = "https://tools.example/tools"
PLACE = "/.well-known/oauth-protected-resource/tools"


def files(**options):
    """A server that clients know under a prefix."""
    return Files(make_guard(resource=RESOURCE, **options))


async def read(outer, path, name="ada"):
    """A call at a path."""
    head = {**modern_head(name="read"), "host": "tools.example", **bearer_header(name)}
    params = {"name": "read", "arguments": {"path": "a"}}
    return await fetch(outer, path=path, headers=head, body=modern_body(params=params))


@pytest.mark.covers("auth.resource.metadata-announced")
@pytest.mark.parametrize("framework", [Starlette, FastAPI])
async def test_an_attached_app_has_its_pages_at_the_root_of_the_origin(framework):
    """Spec 2025-11-25 basic/authorization: the well-known place is between host and path."""
    outer = framework()
    files().app.attach(outer, "/tools")

    page = await fetch(outer, "GET", PLACE, headers={"host": "tools.example"})
    refused = await read(outer, "/tools", None)
    served = await read(outer, "/tools")

    assert (200, RESOURCE) == (page.status, page.json["resource"])
    assert (401, 200) == (refused.status, served.status)
    assert f"https://tools.example{PLACE}" in list_challenges(refused)[0]


async def test_a_page_that_another_server_has_already_stays_that_ones():
    """Ours: whoever came first keeps the root; both have a place with their path."""
    outer = Starlette()
    files().app.attach(outer, "/tools")
    Files(make_guard(resource="https://tools.example/more")).app.attach(outer, "/more")
    found = [
        (await fetch(outer, "GET", path, headers={"host": "tools.example"})).json["resource"]
        for path in (PLACE, PLACE.replace("tools", "more"), PLACE.removesuffix("/tools"))
    ]

    assert [RESOURCE, "https://tools.example/more", RESOURCE] == found


async def test_a_mounted_app_says_what_is_missing_and_works(caplog):
    """Ours: a mount has no say over its origin, so that it tells whoever has, and once."""
    outer = Starlette(routes=[Mount("/tools", files().app)])
    with caplog.at_level(logging.WARNING, "isthmus"):
        answers = [await read(outer, "/tools/") for _ in range(2)]

    assert [200, 200] == [one.status for one in answers]
    (told,) = [record.getMessage() for record in caplog.records]
    assert PLACE in told
    assert "app.attach(outer, '/tools')" in told


async def test_the_pages_of_a_mounted_app_may_be_routed_by_hand():
    """Ours: they are plain ASGI callables, by path."""
    auth = make_guard(resource=RESOURCE)

    async def home(_request):
        return PlainTextResponse("home")

    routes = [Route(path, Page(page)) for path, page in auth.routes.items()]
    outer = Starlette(routes=[*routes, Route("/", home), Mount("/tools", Files(auth).app)])

    page = await fetch(outer, "GET", PLACE, headers={"host": "tools.example"})

    assert 200 == page.status


class Page:
    """What Starlette takes for an ASGI app."""

    def __init__(self, page):
        self.page = page

    async def __call__(self, scope, receive, send):
        """Serve it."""
        await self.page(scope, receive, send)
