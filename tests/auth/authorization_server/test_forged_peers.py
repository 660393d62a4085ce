"""Who connects is told by the connection, not by a header, where users are a proxy's business."""

import aiohttp
import pytest

from isthmus import Server
from isthmus.auth import HeaderUsers
from isthmus.testing.connections import run_until_left
from isthmus.transports.http.serve import serve
from support.auth.authority import make_authority, request_url


@pytest.mark.covers("auth.threat.t36-brute-force")
@pytest.mark.parametrize("forged", ["10.0.0.7", "10.0.0.7, 10.0.0.7", "127.0.0.1, 10.0.0.7"])
async def test_a_local_program_is_not_the_proxy_by_saying_so(forged):
    """Ours: X-Forwarded-For lets nobody be anybody; uvicorn would have believed it here."""
    issuer = "http://127.0.0.1:8000"
    users = HeaderUsers("X-Forwarded-User", trusted_proxies=["10.0.0.7"])
    authority = make_authority(issuer, users)
    app = Server("files", auth=authority.resource_auth(f"{issuer}/mcp")).asgi()
    headers = {"X-Forwarded-For": forged, "X-Forwarded-User": "root", "X-Forwarded-Proto": "https"}
    async with (
        run_until_left(lambda told: serve(app, port=0, on_bound=told)) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session,
    ):
        asked = request_url(url.removesuffix("/mcp"))
        async with session.get(asked, headers=headers, allow_redirects=True) as page:
            said = await page.text()
    await authority.close()

    assert 403 == page.status, said
    assert "through its proxy only" in said
