"""Steps on the way to a server: how far one comes, and what is told where the way ends."""

import socket
import ssl

import pytest

from isthmus.linter.doctor.reach import find_first_failure, walk_to_server
from isthmus.server import Server
from support.browser.chromium import make_certificate, serve_in_browser
from support.http.loopback_pages import serve_pages

pytestmark = pytest.mark.usefixtures("secret_watch")


def name_verdicts(steps):
    return [(step.name, step.verdict) for step in steps]


async def test_a_server_that_answers_is_reached():
    """Ours: every step is told, with what was found at it."""
    async with serve_in_browser(lambda _: Server("weather", version="3").asgi()) as (url, _):
        steps = await walk_to_server(f"{url}/mcp")

    assert name_verdicts(steps)[:5] == [
        ("address", "ok"),
        ("connection", "ok"),
        ("tls", "skipped"),
        ("opening", "ok"),
        ("era", "ok"),
    ]
    assert "weather 3" in steps[3].found[0]
    assert "2026-07-28" in steps[4].found[0]
    assert find_first_failure(steps) is None


@pytest.mark.parametrize(
    ("url", "name", "told"),
    [
        ("ftp://127.0.0.1/mcp", "address", "no http:// or https:// URL"),
        ("http://nowhere.invalid/mcp", "address", "no address"),
    ],
)
async def test_an_address_that_leads_nowhere_is_the_first_step(url, name, told):
    """Ours: what follows is skipped, and says so."""
    steps = await walk_to_server(url)

    assert find_first_failure(steps).name == name
    assert told in find_first_failure(steps).faults[0]
    assert {step.verdict for step in steps[1:]} == {"skipped"}


async def test_a_port_without_a_server_is_the_second_step():
    """Ours: an address is there, and nobody answers."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound, and not listening
        steps = await walk_to_server(f"http://127.0.0.1:{bound.getsockname()[1]}/mcp")

    assert find_first_failure(steps).name == "connection"
    assert "nobody answers" in find_first_failure(steps).faults[0]


async def test_https_at_a_port_of_plain_http_is_told():
    """Ours: the step of TLS says that there is none."""
    async with serve_pages() as site:
        steps = await walk_to_server(site.url.replace("http://", "https://") + "/mcp")

    assert find_first_failure(steps).name == "tls"
    assert steps[3].verdict == "skipped"


async def test_a_server_that_wants_a_login_leads_to_the_hops_of_authorization():
    """Ours: the opening is no fault then; the way goes on with the chain of OAuth."""
    async with serve_pages() as site:
        site.pages["/mcp"] = lambda _: (401, {"WWW-Authenticate": "Bearer"}, b"")
        steps = await walk_to_server(f"{site.url}/mcp")

    names = [step.name for step in steps]
    assert steps[3].verdict == "ok"
    assert "wants a login" in steps[3].found[0]
    assert find_first_failure(steps).name == "authorization: resource metadata"
    assert "authorization: challenge" in names


async def test_a_path_without_a_server_is_told_with_what_it_answered():
    """Ours: a web server that is no MCP server fails at the opening."""
    async with serve_pages() as site:
        steps = await walk_to_server(f"{site.url}/mcp")

    assert find_first_failure(steps).name == "opening"


async def test_a_certificate_that_nobody_believes_is_told(tmp_path):
    """Ours: the reason is the one that TLS gives, and how to mend it stands beside."""
    app = Server("weather", version="3").asgi()
    async with serve_in_browser(
        lambda _: app, host="localhost", tls=make_certificate(tmp_path)
    ) as (url, _):
        steps = await walk_to_server(f"{url}/mcp")
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        believed = await walk_to_server(f"{url}/mcp", tls=context)

    assert find_first_failure(steps).name == "tls"
    assert "not believed" in find_first_failure(steps).faults[0]
    assert find_first_failure(steps).mend
    assert believed[2].verdict in {"ok", "warning"}
    assert any("more days" in one for one in believed[2].found)
