"""Discovery of authorization servers: documents by URL, without a network."""

import asyncio
import json

import pytest

from isthmus.auth import Compat, NetworkFailed, NetworkPolicy
from isthmus.auth.client import discovery
from isthmus.auth.client.discovery import Discovery, DiscoveryResult, ServerMetadata
from isthmus.auth.net.network import Fetched
from isthmus.auth.net.urls import metadata_urls
from isthmus.errors import AuthUnsafe, DiscoveryFailed

URL = "https://mcp.example/mcp"
PRM = "https://mcp.example/.well-known/oauth-protected-resource"
OAUTH = "https://login.example/.well-known/oauth-authorization-server"


class Shelf:
    """Documents by URL, in the place of a network; a number is a status."""

    policy = NetworkPolicy()

    def __init__(self, documents):
        self.documents = documents
        self.asked = []

    async def fetch(self, method, url, *, headers):
        assert method == "GET"
        self.asked.append(url)
        found = self.documents.get(url, 404)
        if isinstance(found, int):
            return Fetched(found, {}, b"", url)
        kind = "text/html" if isinstance(found, str) else "application/json"
        body = found if isinstance(found, str) else json.dumps(found)
        return Fetched(200, {"content-type": kind}, body.encode(), url)


def resource(*issuers, **more):
    return {"resource": URL, "authorization_servers": list(issuers), **more}


def server(issuer="https://login.example", **more):
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "code_challenge_methods_supported": ["S256"],
        **more,
    }


def found(documents, **options):
    shelf = Shelf(documents)
    return Discovery(options.pop("url", URL), shelf, **options), shelf


@pytest.mark.covers("auth.client.server-metadata-places")
@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        (
            "https://a.example/t1",
            [
                "https://a.example/.well-known/oauth-authorization-server/t1",
                "https://a.example/.well-known/openid-configuration/t1",
                "https://a.example/t1/.well-known/openid-configuration",
            ],
        ),
        (
            "https://a.example",
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ],
        ),
        (
            "https://a.example/",
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ],
        ),
    ],
)
async def test_metadata_of_an_issuer_are_looked_for_in_order(issuer, places):
    """The spec: these, and in this order."""
    assert places == metadata_urls(issuer)
    for number, place in enumerate(places):
        discovery, shelf = found({place: server(issuer)})
        assert issuer == (await discovery.server(issuer)).issuer
        assert places[: number + 1] == shelf.asked


@pytest.mark.covers("auth.client.resource-metadata-places")
@pytest.mark.parametrize(
    ("announced", "there", "asked"),
    [
        ("https://mcp.example/x", "https://mcp.example/x", ["https://mcp.example/x"]),
        (None, f"{PRM}/mcp", [f"{PRM}/mcp"]),
        (None, PRM, [f"{PRM}/mcp", PRM]),
    ],
)
async def test_metadata_of_the_resource_are_looked_for_in_order(announced, there, asked):
    """The spec: what the challenge names, or the path's place, or the root's."""
    documents = {there: resource("https://login.example"), OAUTH: server()}
    discovery, shelf = found(documents)
    place = await discovery.find(announced)

    assert (URL, "https://login.example") == (place.resource, place.server.issuer)
    assert [*asked, OAUTH] == shelf.asked


@pytest.mark.covers("auth.client.servers-kept-apart")
async def test_of_several_servers_the_one_that_knows_us_is_taken():
    """The spec: the choice is the client's; the first that can be used where none does."""
    others = [f"https://{name}.example" for name in ("one", "two", "three")]
    documents = {
        f"{other}/.well-known/oauth-authorization-server": server(other) for other in others[1:]
    }
    documents[f"{PRM}/mcp"] = resource(*others)
    first, _ = found(documents)
    known, _ = found(documents, known=lambda issuer: "three" in issuer)

    assert others[1] == (await first.find()).server.issuer
    assert others[2] == (await known.find()).server.issuer
    assert others[2] == (await first.find(prefer=others[2])).server.issuer


@pytest.mark.covers("auth.client.metadata-issuer-same")
@pytest.mark.parametrize(
    ("named", "stated", "taken"),
    [
        ("https://login.example", "https://login.example/", True),
        ("https://login.example/", "https://login.example", True),
        ("https://login.example/a", "https://login.example/a/", False),
        ("https://login.example", "https://LOGIN.example", False),
        ("https://login.example", "https://honest.example", False),
    ],
)
async def test_metadata_of_another_issuer_are_refused(named, stated, taken):
    """The spec: identical; a slash after a bare host is let pass, since big providers have it."""
    places = {place: server(stated) for place in metadata_urls(named)}
    discovery, _ = found(places)
    if taken:
        assert stated == (await discovery.server(named)).issuer
    else:
        with pytest.raises(AuthUnsafe, match="none of their endpoints is used"):
            await discovery.server(named)


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    "name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"]
)
@pytest.mark.parametrize("url", ["http://login.example/x", "http://127.0.0.1:9/x", "ftp://h/x"])
async def test_every_endpoint_is_https(name, url):
    """The spec: also where only one of them is not; this machine is not trusted by a server's word."""
    discovery, _ = found({OAUTH: server(**{name: url})})
    with pytest.raises(AuthUnsafe, match=f"the {name} of .* is not https"):
        await discovery.server("https://login.example")


async def test_on_this_machine_plain_http_will_do():
    """The spec: for development, where the MCP server is here as well."""
    issuer = "http://localhost:9000"
    place = f"{issuer}/.well-known/oauth-authorization-server"
    discovery, _ = found({place: server(issuer)}, url="http://127.0.0.1:8000/mcp")

    assert issuer == (await discovery.server(issuer)).issuer


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (resource(), "name no authorization server"),
        ({"resource": URL}, "name no authorization server"),
        ({"resource": 5}, "malformed"),
        ([], "malformed"),
        (resource("https://gone.example"), "publishes no metadata"),
        (resource("https://a.example?x"), "cannot be one"),
        (resource("not a url"), "cannot be one"),
        (500, "HTTP status 500"),
    ],
)
async def test_what_is_wrong_with_documents_is_said(document, words):
    """Ours: with the URL, and nothing is guessed."""
    discovery, _ = found({f"{PRM}/mcp": document})
    with pytest.raises((AuthUnsafe, DiscoveryFailed, NetworkFailed), match=words):
        await discovery.find()


async def test_an_announced_document_must_be_there():
    """The spec: what the challenge names is used, and nothing else is tried."""
    discovery, shelf = found({f"{PRM}/mcp": resource("https://login.example"), OAUTH: server()})
    with pytest.raises(NetworkFailed, match="HTTP status 404"):
        await discovery.find("https://mcp.example/elsewhere")
    assert ["https://mcp.example/elsewhere"] == shelf.asked


async def test_a_page_for_people_is_no_metadata():
    """Ours: servers with a catch-all route answer everything with their start page."""
    discovery, _ = found(
        {f"{PRM}/mcp": "<html>", PRM: resource("https://login.example"), OAUTH: server()}
    )
    assert "https://login.example" == (await discovery.find()).server.issuer


async def test_servers_that_never_answer_hold_nobody_up(monkeypatch):
    """Ours: while tokens are got no call times out, so that this has a limit of its own."""
    monkeypatch.setattr(discovery, "DISCOVERY_TIMEOUT_S", 0.01)
    finder, shelf = found({PRM: resource("https://login.example")})

    async def never(*_args, **_more):
        await asyncio.Event().wait()

    shelf.fetch = never
    with pytest.raises(DiscoveryFailed, match=r"did not say within 0\.01 s"):
        await finder.find()


async def test_the_application_may_name_the_issuer():
    """Ours: nobody else is asked then, and the resource is the canonical URL."""
    discovery, shelf = found(
        {OAUTH: server()},
        authorization_server="https://login.example",
        url="HTTPS://MCP.example/x/",
    )
    place = await discovery.find("https://mcp.example/ignored")

    assert ("https://mcp.example/x", [OAUTH]) == (place.resource, shelf.asked)


@pytest.mark.covers("auth.client.base-url-is-origin", "auth.client.default-endpoints")
async def test_without_any_metadata_the_origin_has_the_endpoints():
    """2025-03-26: path dropped; PKCE cannot be listed by nobody."""
    discovery, shelf = found({}, url="https://mcp.example/v1/mcp")
    place = await discovery.find()

    assert "https://mcp.example/token" == place.server.token_endpoint
    assert shelf.asked[-1] == "https://mcp.example/.well-known/oauth-authorization-server"
    discovery.check_pkce(place)


@pytest.mark.covers("auth.client.pkce-must-be-listed")
def test_an_authorization_server_without_s256_is_not_used():
    """The spec: also an OpenID provider; a list without it says the same."""
    discovery, _ = found({}, compat=Compat(assume_s256=frozenset({"https://login.example"})))
    silent = ServerMetadata(issuer="https://login.example")
    plain = ServerMetadata(
        issuer="https://login.example", code_challenge_methods_supported=["plain"]
    )

    discovery.check_pkce(DiscoveryResult(resource=URL, server=silent))
    with pytest.raises(AuthUnsafe, match="S256"):
        discovery.check_pkce(DiscoveryResult(resource=URL, server=plain))
    with pytest.raises(AuthUnsafe, match="S256"):
        found({})[0].check_pkce(DiscoveryResult(resource=URL, server=silent))
