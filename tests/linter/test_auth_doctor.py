"""The doctor of authorization, on servers that are right and on servers that are wrong at one place."""

import pytest

from isthmus.auth.net.network import Network, NetworkPolicy
from isthmus.auth.tokens.secret import Secret
from isthmus.errors import AuthRefused
from isthmus.linter.auth.doctor import AuthDoctor
from support.http.loopback_pages import json_page, serve_pages

pytestmark = pytest.mark.usefixtures("secret_watch")

TOKEN = "the-token-of-this-test"
PRM = "/.well-known/oauth-protected-resource/mcp"
ASM = "/.well-known/oauth-authorization-server"


class Site:
    """An MCP server and its authorization server, both right until something is spoilt."""

    def __init__(self, server, authority):
        self.server, self.authority = server, authority
        self.url = f"{server.url}/mcp"
        self.challenge = f'Bearer resource_metadata="{server.url}{PRM}", scope="files:read"'
        self.resource = {
            "resource": self.url,
            "authorization_servers": [authority.url],
            "scopes_supported": ["files:read"],
        }
        self.issuer = {
            "issuer": authority.url,
            "authorization_endpoint": f"{authority.url}/authorize",
            "token_endpoint": f"{authority.url}/token",
            "registration_endpoint": f"{authority.url}/register",
            "client_id_metadata_document_supported": True,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
        }
        server.pages["/mcp"] = self.guard
        server.pages[PRM] = lambda _: json_page(self.resource)
        authority.pages[ASM] = lambda _: json_page(self.issuer)

    def guard(self, asked):
        """The MCP endpoint: whoever has the token gets an answer."""
        if asked.headers.get("Authorization") == f"Bearer {TOKEN}":
            return json_page({"jsonrpc": "2.0", "id": 1, "result": {}})
        return 401, {"WWW-Authenticate": self.challenge} if self.challenge else {}, b""

    async def examined(self, **more):
        """What the doctor says, hop by hop."""
        network = Network(NetworkPolicy(loopback=True))
        try:
            hops = await AuthDoctor(more.pop("url", self.url), network, **more).examine()
        finally:
            await network.close()
        return {hop.name: hop for hop in hops}


@pytest.fixture
async def site():
    """Two servers on this machine."""
    async with serve_pages() as server, serve_pages() as authority:
        yield Site(server, authority)


def first_problem(hops):
    """The hop at which the way ends."""
    return next((name for name, hop in hops.items() if hop.verdict == "problem"), None)


async def test_a_good_server_has_no_fault_at_any_hop(site):
    """Ours: a server that keeps to the specification gets ok at every hop, and no login."""
    hops = await site.examined()

    assert {
        "server": "ok",
        "challenge": "ok",
        "resource metadata": "ok",
        "issuer metadata": "ok",
        "registration": "ok",
        "token": "skipped",
        "call": "skipped",
    } == {name: hop.verdict for name, hop in hops.items()}
    assert [] == site.authority.paths("POST")
    assert [ASM] == site.authority.paths("GET")


async def test_with_a_way_to_log_in_the_token_is_tried(site):
    """Ours: what the login gives goes with one request to the server."""

    async def login():
        return Secret(TOKEN)

    hops = await site.examined(login=login)

    assert ("ok", "ok") == (hops["token"].verdict, hops["call"].verdict)
    assert ["with the token it answers 200"] == hops["call"].found


async def test_a_login_that_fails_names_the_token(site):
    """Ours: what the authorization server says is told, with the clause."""

    async def login():
        raise AuthRefused("the user said no", "access_denied")

    hops = await site.examined(login=login)

    assert "token" == first_problem(hops)
    assert [("the user said no", "RFC 6749 4.1.2.1, 5.2")] == [
        (fault.said, fault.clause) for fault in hops["token"].faults
    ]
    assert "skipped" == hops["call"].verdict


async def test_a_token_that_the_server_does_not_take_names_the_call(site):
    """Ours: the error that the server gives is told, and the token is not."""

    async def login():
        return Secret("a-token-for-something-else")

    site.challenge += ', error="invalid_token"'
    hops = await site.examined(login=login)

    assert "call" == first_problem(hops)
    assert "401 invalid_token" in hops["call"].faults[0].said


def redirecting(_asked):
    """A page that has moved."""
    return 302, {"Location": "https://elsewhere.example/"}, b""


def page_for_people(_asked):
    """A page that a catch-all route gives."""
    return 200, {"Content-Type": "text/html"}, b"<h1>Welcome</h1>"


def fail_server(_asked):
    """A server that broke."""
    return 500, {}, b""


def no_challenge(site):
    site.challenge = ""


def other_scheme(site):
    site.challenge = 'Basic realm="staff"'


def insecure_pointer(site):
    site.challenge = 'Bearer resource_metadata="http://mcp.example/metadata"'


def pointer_elsewhere(site):
    site.challenge = f'Bearer resource_metadata="{site.authority.url}{PRM}"'
    site.authority.pages[PRM] = site.server.pages[PRM]


def another_resource(site):
    site.resource["resource"] = "https://other.example/mcp"


def sibling_resource(site):
    site.resource["resource"] = f"{site.url}2"


def no_resource(site):
    del site.resource["resource"]


def no_issuers(site):
    site.resource["authorization_servers"] = []


def metadata_moved(site):
    site.server.pages[PRM] = redirecting


def metadata_page(site):
    site.server.pages[PRM] = page_for_people


def metadata_broken(site):
    site.server.pages[PRM] = fail_server


def metadata_list(site):
    site.resource = ["nothing"]


def metadata_missing(site):
    site.challenge = "Bearer"
    del site.server.pages[PRM]


def wrong_issuer(site):
    site.issuer["issuer"] = "https://somebody-else.example"


def issuer_with_query(site):
    site.resource["authorization_servers"] = [f"{site.authority.url}/?tenant=1"]


def no_pkce(site):
    del site.issuer["code_challenge_methods_supported"]


def plain_pkce(site):
    site.issuer["code_challenge_methods_supported"] = ["plain"]


def http_endpoint(site):
    site.issuer["token_endpoint"] = "http://login.example/token"


def no_token_endpoint(site):
    del site.issuer["token_endpoint"]


def issuer_moved(site):
    site.authority.pages[ASM] = redirecting


def issuer_page(site):
    site.authority.pages[ASM] = page_for_people


def issuer_silent(site):
    site.authority.pages.clear()


def issuer_down(site):
    site.resource["authorization_servers"] = ["http://127.0.0.1:1"]


def issuer_inside(site):
    site.resource["authorization_servers"] = ["https://169.254.169.254"]


def nobody_can_register(site):
    del site.issuer["registration_endpoint"], site.issuer["client_id_metadata_document_supported"]


def server_forbids(site):
    site.server.pages["/mcp"] = lambda _: (403, {}, b"")


def server_moved(site):
    site.server.pages["/mcp"] = redirecting


@pytest.mark.parametrize(
    ("spoil", "hop", "words", "clause"),
    [
        (no_challenge, "challenge", "no WWW-Authenticate", "RFC 9110 11.6.1"),
        (other_scheme, "challenge", "asks for basic", "RFC 9110 11.6.1"),
        (insecure_pointer, "challenge", "not https", "communication-security"),
        (pointer_elsewhere, "challenge", "another origin", "RFC 9728 3.3"),
        (server_forbids, "challenge", "answers 403", "error-handling"),
        (server_moved, "server", "redirects to", "canonical-server-uri"),
        (another_resource, "resource metadata", "does not cover", "RFC 9728 3.3"),
        (sibling_resource, "resource metadata", "does not cover", "RFC 9728 3.3"),
        (no_resource, "resource metadata", "names no resource", "RFC 9728 2"),
        (no_issuers, "resource metadata", "no authorization server", "RFC 9728 2"),
        (metadata_moved, "resource metadata", "redirects to", "RFC 9728 7.7"),
        (metadata_page, "resource metadata", "text/html", "RFC 9728 3.2"),
        (metadata_list, "resource metadata", "no JSON object", "RFC 9728 3.2"),
        (metadata_broken, "resource metadata", "answers 500", "discovery"),
        (metadata_missing, "resource metadata", "there is none", "RFC 9728 3.1"),
        (wrong_issuer, "issuer metadata", "was asked for", "RFC 8414 3.3"),
        (issuer_with_query, "issuer metadata", "no query", "RFC 8414 2"),
        (no_pkce, "issuer metadata", "nothing about PKCE", "authorization-code-protection"),
        (plain_pkce, "issuer metadata", "offers plain", "authorization-code-protection"),
        (http_endpoint, "issuer metadata", "token_endpoint is http:", "communication-security"),
        (no_token_endpoint, "issuer metadata", "no token_endpoint", "RFC 8414 2"),
        (issuer_moved, "issuer metadata", "redirects to", "RFC 8414 6.2"),
        (issuer_page, "issuer metadata", "text/html", "RFC 8414 3.2"),
        (issuer_silent, "issuer metadata", "publishes none", "RFC 8414 3.1"),
        (issuer_down, "issuer metadata", "no answer", "discovery"),
        (issuer_inside, "issuer metadata", "169.254.169.254", "communication-security"),
        (nobody_can_register, "registration", "no client is given", "pre-registration"),
    ],
)
async def test_the_hop_that_is_wrong_is_named(site, spoil, hop, words, clause):
    """Ours: each thing that stops a client is found at its hop, with the clause and how to mend it."""
    spoil(site)
    hops = await site.examined()
    problems = [fault for fault in hops[hop].faults if fault.severity == "problem"]

    assert hop == first_problem(hops)
    assert [] == [fault for fault in problems if not fault.mend or not fault.clause]
    assert words in problems[0].said
    assert clause in problems[0].clause


async def test_metadata_on_another_origin_are_not_fetched(site):
    """Ours: the doctor goes no farther than a client would be let."""
    pointer_elsewhere(site)
    await site.examined()

    assert [] == site.authority.asked


async def test_a_server_that_is_not_there_is_the_first_hop(site):
    """Ours: nothing else is looked at where nobody answers."""
    hops = await site.examined(url="http://127.0.0.1:1/mcp")

    assert "server" == first_problem(hops)
    assert {"skipped"} == {hop.verdict for name, hop in hops.items() if name != "server"}


async def test_a_server_on_plain_http_is_the_first_hop(site):
    """Ours: tokens would be sent to it in clear."""
    hops = await site.examined(url="http://mcp.example/mcp")

    assert "server" == first_problem(hops)
    assert "plain http" in hops["server"].faults[0].said


async def test_an_open_server_has_nothing_wrong(site):
    """Ours: authorization is optional."""
    site.server.pages = {"/mcp": lambda _: json_page({"jsonrpc": "2.0", "id": 1, "result": {}})}
    hops = await site.examined()

    assert first_problem(hops) is None
    assert ["it asks for no authorization to begin with"] == hops["challenge"].found


ODD = (
    None,
    True,
    7,
    -0.5,
    "",
    "x" * 5000,
    "\ud800\x1b[2J",
    "https://",
    "://",
    [],
    ["\ud800"],
    {"a": {}},
)


@pytest.mark.parametrize("odd", ODD, ids=repr)
async def test_whatever_the_documents_say_is_examined_and_printable(site, odd):
    """Ours: no document is a crash, and nothing of it gets at the terminal."""
    good = dict(site.resource), dict(site.issuer)
    for which, document in enumerate(good):
        for name in document:
            bent = {**document, name: [odd] if name == "authorization_servers" else odd}
            site.resource, site.issuer = (bent, good[1]) if which == 0 else (good[0], bent)
            hops = (await site.examined()).values()
            told = [line for hop in hops for line in (hop.url, *hop.found)]
            told += [fault.said for hop in hops for fault in hop.faults]

            assert [] == [line for line in told if not line.isprintable()]


async def test_the_second_issuer_may_be_the_one(site):
    """RFC 9728 7.6: of several authorization servers a client chooses one that can be used."""
    site.resource["authorization_servers"].insert(0, "http://127.0.0.1:1")
    hops = await site.examined()

    assert first_problem(hops) is None


async def test_a_registered_client_needs_no_registration(site):
    """Ours: who has a client_id is not told to get one."""
    nobody_can_register(site)
    hops = await site.examined(registered=True)

    assert first_problem(hops) is None


async def test_what_some_clients_do_without_is_a_warning(site):
    """Ours: a SHOULD stops nobody and is told."""
    site.challenge = "Bearer"
    site.resource["scopes_supported"] = ["offline_access"]
    site.issuer["issuer"] += "/"
    del site.issuer["authorization_response_iss_parameter_supported"]
    site.issuer["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    hops = await site.examined()

    assert first_problem(hops) is None
    assert {"challenge", "resource metadata", "issuer metadata", "registration"} == {
        name for name, hop in hops.items() if hop.verdict == "warning"
    }


async def test_a_server_of_2025_03_26_is_recognised(site):
    """Ours: an origin that is its own authorization server is found, and still lacks the metadata."""
    metadata_missing(site)
    site.server.pages[ASM] = lambda _: json_page({**site.issuer, "issuer": site.server.url})
    hops = await site.examined()

    assert "resource metadata" == first_problem(hops)
    assert ["clients of 2025-03-26 find an authorization server here"] == hops[
        "issuer metadata"
    ].found


@pytest.mark.parametrize("said", [False, None, "yes"])
async def test_an_issuer_with_dynamic_registration_alone_is_told_that_it_is_deprecated(site, said):
    """Ours: a note with the day and what to do instead; the hop is in order, and nobody is stopped."""
    site.issuer["client_id_metadata_document_supported"] = said
    hop = (await site.examined())["registration"]

    assert ("ok", ["note"]) == (hop.verdict, [fault.severity for fault in hop.faults])
    assert "Deprecated since 2026-07-28" in hop.faults[0].said
    assert "2027-07-28" in hop.faults[0].said
    assert "client_id_metadata_document_supported" in hop.faults[0].mend
    assert hop.faults[0].clause.endswith("#dynamic-client-registration")
