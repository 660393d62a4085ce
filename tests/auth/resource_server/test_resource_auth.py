"""The resource server: what it answers to whom, revision by revision."""

import pytest

from isthmus import Server
from isthmus.auth import (
    AuthorizationServer,
    MemoryAuthStore,
    ResourceAuth,
    ScopeModel,
    StaticTokens,
    VerifierUnavailable,
)
from isthmus.auth.net.challenge import parse_challenges
from isthmus.auth.tokens.dpop import DpopKey, Nonces
from isthmus.errors import UsageError
from support.auth.protected_server import (
    ISSUER,
    METADATA,
    PEOPLE,
    RESOURCE,
    WRITE,
    Files,
    bearer_header,
    begin_request_as,
    call_tool_as,
    legacy_head_as,
    legacy_tool_call,
    list_challenges,
    make_guard,
    make_person,
    open_session_as,
)
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
NOW = 1_800_000_000.0


def only(exchange):
    """The one challenge of an answer."""
    (challenge,) = parse_challenges(list_challenges(exchange))
    return challenge


async def with_header(value, files=None):
    """A call with an Authorization header, or several."""
    files = files or Files()
    head = {**modern_head(name="read"), "authorization": value}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    return await fetch(files.app, headers=head, body=body)


# Who


@pytest.mark.covers(
    "auth.resource.status-codes",
    "auth.resource.metadata-announced",
    "auth.resource.challenge-scope",
)
async def test_no_token_is_401_without_an_error_and_with_the_least_scopes():
    """Spec 2025-11-25 basic/authorization#error-handling; RFC 6750 3.1: no error code for nobody."""
    answer = await call_tool_as(Files().app, None, "read", path="a")

    challenge = only(answer)
    assert (401, "bearer") == (answer.status, challenge.scheme)
    assert {"scope": "files:read", "resource_metadata": METADATA} == challenge.params


@pytest.mark.covers("auth.resource.status-codes", "auth.resource.metadata-announced")
async def test_a_token_that_is_not_good_is_401_with_the_reason():
    """Spec 2025-11-25 basic/authorization#token-handling: invalid or expired tokens MUST be 401."""
    old = make_person("ada", "files:read", expires_at=NOW - 1)
    files = Files(make_guard(verifier=StaticTokens({"token-of-ada": old}, clock=lambda: NOW)))

    for answer in (
        await call_tool_as(Files().app, "unknown", "read"),
        await call_tool_as(files.app, "ada", "read"),
    ):
        challenge = only(answer)

        assert (401, "invalid_token") == (answer.status, challenge.params["error"])
        assert METADATA == challenge.params["resource_metadata"]


@pytest.mark.covers("auth.resource.status-codes")
@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer ",
        "Bearer a b",
        "Bearer a, Bearer b",
        'Bearer "token"',
        "Bearer tök",
        "Bearer =abc",
        "bearer a=b",
        "Bearer " + "x" * 17_000,
        ["Bearer token-of-ada", "Bearer token-of-ada"],
        ["Basic YTpi", "Bearer token-of-ada"],
    ],
)
async def test_credentials_that_cannot_be_read_are_400(value):
    """Spec 2025-11-25 basic/authorization#error-handling: malformed requests are 400."""
    files = Files()

    answer = await with_header(value, files)

    assert (400, "invalid_request", []) == (answer.status, only(answer).params["error"], files.done)
    assert METADATA == only(answer).params["resource_metadata"]


@pytest.mark.parametrize("value", ["Basic YTpi", "DPoP token-of-ada", "Negotiate", ""])
async def test_another_scheme_is_nobody(value):
    """Ours: who speaks another language is told which one is spoken here."""
    answer = await with_header(value)

    assert (401, "bearer", False) == (
        answer.status,
        only(answer).scheme,
        "error" in only(answer).params,
    )


@pytest.mark.parametrize(
    "value", ["bearer token-of-ada", "BEARER token-of-ada", " Bearer   token-of-ada "]
)
async def test_the_name_of_the_scheme_is_read_in_any_case(value):
    """RFC 9110 11.1: names of schemes are case-insensitive."""
    assert 200 == (await with_header(value)).status


@pytest.mark.covers("auth.resource.status-codes")
async def test_an_outage_of_the_verifier_is_503_and_no_reason_to_log_in():
    """Ours: a 401 would start as many logins as there are users."""

    class Out:
        async def verify(self, presented, resource):
            raise VerifierUnavailable("the keys cannot be fetched", 12.0)

    answer = await call_tool_as(Files(make_guard(verifier=Out())).app, "ada", "read")

    assert (503, "12", []) == (answer.status, answer.header("retry-after"), list_challenges(answer))


async def test_a_verifier_is_told_what_came_and_what_for():
    """Ours: the URL is the configured one, whatever Host says."""
    seen = []

    class Ours:
        async def verify(self, presented, resource):
            seen.append((presented, resource))

    head = {**modern_head(name="read"), "host": "127.0.0.1:9", "authorization": "Bearer some-token"}
    await fetch(Files(make_guard(verifier=Ours())).app, headers=head, body=modern_body())

    ((presented, resource),) = seen
    assert (RESOURCE, "bearer", "POST", RESOURCE) == (
        resource,
        presented.scheme,
        presented.method,
        presented.url,
    )
    assert "some-token" == presented.token.reveal()


# What


@pytest.mark.covers("auth.resource.scope-403", "auth.resource.scopes-all-at-once")
@pytest.mark.parametrize("revision", LEGACY)
async def test_until_2025_a_challenge_has_what_is_needed_and_what_was_granted(revision):
    """Spec 2025-11-25 basic/authorization#runtime-insufficient-scope-errors: existing ones as well."""
    everything = make_person("eve", "files:read", "files:write", "openid", "offline_access")
    files = Files(make_guard({"token-of-eve": everything}))
    session = await open_session_as(files.app, "eve", revision)
    body = legacy_tool_call("publish", project="x")

    answer = await fetch(files.app, headers=legacy_head_as(session, "eve", revision), body=body)

    challenge = only(answer)
    assert (403, "insufficient_scope") == (answer.status, challenge.params["error"])
    assert {"files:read", "files:write", "project:x"} == challenge.scopes
    assert METADATA == challenge.params["resource_metadata"]
    await files.app.close()


@pytest.mark.covers("auth.resource.scope-403", "auth.resource.scopes-all-at-once")
async def test_since_2026_a_challenge_has_what_the_operation_needs():
    """Spec 2026-07-28 basic/authorization#runtime-insufficient-scope-errors: of this operation alone."""
    wide = make_person("eve", "files:read", "files:write", "project:other")
    server = Server("files", auth=make_guard({"token-of-eve": wide}))
    server.add_tool(lambda: "x", name="other", scopes={"project:other"})
    server.add_tool(lambda: "x", name="act", scopes={"project:x"})

    answer = await call_tool_as(server.asgi(), "eve", "act")

    assert {"files:read", "project:x"} == only(answer).scopes


@pytest.mark.covers("auth.resource.scope-hierarchy")
@pytest.mark.parametrize(("name", "status"), [("root", 200), ("eve", 200), ("ada", 403)])
async def test_a_broader_scope_counts_for_what_it_implies(name, status):
    """Spec 2026-07-28 basic/authorization#step-up-authorization-flow: the hierarchy is honoured."""
    assert status == (await call_tool_as(Files().app, name, "write", path="a")).status


@pytest.mark.covers("auth.resource.scope-403")
async def test_every_request_takes_the_base_scopes():
    """Ours: a token that allows nothing here allows not even to look around."""
    files = Files()
    answers = [
        await begin_request_as(files.app, "guest", "server/discover", {}).done(),
        await begin_request_as(files.app, "guest", "tools/list", {}).done(),
    ]

    assert [403, 403] == [one.status for one in answers]


@pytest.mark.covers("auth.resource.no-offline-access")
@pytest.mark.parametrize(
    "declare",
    [
        lambda: make_guard(scopes={"offline_access"}),
        lambda: make_guard(scopes=ScopeModel({"a"}, implies={"a": {"offline_access"}})),
        lambda: Server("x").add_tool(lambda: 1, name="x", scopes={"offline_access"}),
    ],
)
def test_offline_access_is_no_scope_of_a_server(declare):
    """Spec 2026-07-28 basic/authorization#refresh-tokens: SHOULD NOT be in challenges or metadata."""
    with pytest.raises(UsageError, match="a scope for authorization servers only"):
        declare()


# Nobody


async def test_what_is_open_to_everybody_needs_no_token_and_a_wrong_one_is_wrong():
    """Ours: methods, not tools, and nothing that takes scopes."""
    files = Files(make_guard(anonymous={"server/discover", "tools/list", "tools/call"}))

    async def status(name, method, params):
        return (await begin_request_as(files.app, name, method, params).done()).status

    assert 200 == await status(None, "tools/list", {})
    assert 200 == await status(None, "tools/call", {"name": "whoami", "arguments": {}})
    assert 401 == await status(None, "tools/call", {"name": "write", "arguments": {"path": "a"}})
    assert 401 == await status(None, "prompts/list", {})
    assert 401 == await status("unknown", "tools/list", {})
    assert 403 == await status("guest", "tools/list", {})


async def test_an_anonymous_session_is_nobodys_until_its_end():
    """Ours: whoever logs in opens a session of their own."""
    files = Files(make_guard(anonymous={"initialize", "tools/list"}))
    session = await open_session_as(files.app, None)
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}

    statuses = [
        (await fetch(files.app, headers=legacy_head_as(session, name), body=body)).status
        for name, body in (
            (None, note),
            (None, listing),
            ("ada", listing),
            (None, legacy_tool_call("read")),
        )
    ]
    ended = await fetch(files.app, "DELETE", headers=legacy_head_as(session, None))

    assert ([202, 200, 404, 401], 200) == (statuses, ended.status)
    await files.app.close()


# Tokens that are bound to a key

KEY = DpopKey.generate()
BOUND = "token-bound"


def make_dpop_server(**options):
    """A server that takes bound tokens."""
    people = {**PEOPLE, "token-bound": make_person("ada", "files:read", jkt=KEY.jkt)}
    return Files(make_guard(people, clock=lambda: NOW, **{"dpop": "allow", **options}))


async def prove(files, scheme="DPoP", token=BOUND, proof=None, key=KEY, **claims):
    """A call with a token and a proof."""
    proof = proof or key.proof(
        "POST", claims.pop("url", RESOURCE), token="token-bound", now=NOW, **claims
    )
    head = {**modern_head(name="read"), "authorization": f"{scheme} {token}", "dpop": proof}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    return await fetch(files.app, headers=head, body=body)


@pytest.mark.covers("auth.extension.dpop-resource")
async def test_a_bound_token_is_good_with_a_proof_and_each_proof_once():
    """RFC 9449 4.3 and 7.1."""
    files, proof = make_dpop_server(), KEY.proof("POST", RESOURCE, token="token-bound", now=NOW)

    first, again = await prove(files, proof=proof), await prove(files, proof=proof)

    assert (200, 401) == (first.status, again.status)
    dpop = next(c for c in parse_challenges(list_challenges(again)) if c.scheme == "dpop")
    assert "invalid_dpop_proof" == dpop.params["error"]


@pytest.mark.covers("auth.extension.dpop-resource")
@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"scheme": "Bearer"}, "invalid_token"),
        ({"token": "token-of-ada"}, "invalid_token"),
        ({"key": DpopKey.generate()}, "invalid_token"),
        ({"url": "http://localhost:8000/other"}, "invalid_dpop_proof"),
        ({"proof": "rubbish"}, "invalid_dpop_proof"),
    ],
)
async def test_a_bound_token_without_its_key_is_401(more, error):
    """RFC 9449 7: and a bound token is never good as a bearer's, nor the other way round."""
    files = make_dpop_server()

    answer = await prove(files, **more)

    assert (401, []) == (answer.status, files.done)
    assert error in {c.params.get("error") for c in parse_challenges(list_challenges(answer))}


@pytest.mark.covers("auth.extension.dpop-resource")
@pytest.mark.parametrize(
    ("dpop", "schemes", "bearers"),
    [("off", ["bearer"], 200), ("allow", ["bearer", "dpop"], 200), ("require", ["dpop"], 401)],
)
async def test_a_challenge_has_the_schemes_that_are_taken(dpop, schemes, bearers):
    """RFC 9449 7.1: a DPoP challenge says which algorithms."""
    files = make_dpop_server(dpop=dpop)

    found = parse_challenges(list_challenges(await call_tool_as(files.app, None, "read")))
    plain = await call_tool_as(files.app, "ada", "read", path="a")

    assert schemes == [one.scheme for one in found]
    assert all("ES256" in one.params["algs"] for one in found if one.scheme == "dpop")
    assert bearers == plain.status


async def test_a_nonce_that_is_asked_for_is_given_with_the_refusal():
    """RFC 9449 9: use_dpop_nonce, and the next proof has it."""
    nonces = Nonces(b"k" * 32)
    files = make_dpop_server(nonces=nonces)

    refused = await prove(files)
    served = await prove(files, nonce=refused.header("dpop-nonce"))

    errors = {c.params.get("error") for c in parse_challenges(list_challenges(refused))}
    assert (401, 200) == (refused.status, served.status)
    assert "use_dpop_nonce" in errors


# Declaring it


@pytest.mark.covers("auth.all.https-or-loopback")
@pytest.mark.parametrize(
    ("resource", "servers", "says"),
    [
        ("http://mcp.example/mcp", [ISSUER], "would send tokens unencrypted"),
        ("https://mcp.example/mcp", ["http://login.example"], "would send tokens unencrypted"),
        ("https://mcp.example/mcp#x", [ISSUER], "fragment"),
        ("mcp.example/mcp", [ISSUER], "no http"),
        ("https://mcp.example/mcp", [], "one issuer's URL or more"),
        ("https://mcp.example/mcp", ISSUER, "one issuer's URL or more"),
    ],
)
def test_what_would_not_be_safe_is_refused_when_it_is_declared(resource, servers, says):
    """Spec 2025-11-25 basic/authorization#communication-security: HTTPS, but on this machine."""
    with pytest.raises(UsageError, match=says):
        ResourceAuth(resource, servers, StaticTokens({}))


@pytest.mark.parametrize(
    "verifier", [None, "a-token", StaticTokens, lambda presented, resource: None]
)
def test_what_verifies_nothing_is_refused_when_it_is_declared(verifier):
    """Ours: otherwise every request would be a 500, and only then."""
    with pytest.raises(UsageError, match=r"verifier= takes JWTVerifier\(issuer\)"):
        ResourceAuth("https://mcp.example/mcp", [ISSUER], verifier)


@pytest.mark.parametrize(
    "options", [{"dpop": "on"}, {"list_visibility": "some"}, {"anonymous": "tools/list"}]
)
def test_a_choice_that_is_none_is_refused(options):
    """Ours: a misspelt guard is no guard."""
    with pytest.raises(UsageError):
        make_guard(**options)


@pytest.mark.covers("auth.resource.metadata-served")
async def test_http_sse_can_have_metadata_of_its_own():
    """RFC 9728 3.3: a client believes metadata of the very URL that it knows; the root stays the endpoint's."""
    app = Files(make_guard(sse="http://localhost:8000/sse")).app
    places = [f"/.well-known/oauth-protected-resource{end}" for end in ("/mcp", "/sse", "")]
    pages = [await fetch(app, "GET", place, headers={"host": "localhost"}) for place in places]

    assert [RESOURCE, "http://localhost:8000/sse", RESOURCE] == [
        page.json["resource"] for page in pages
    ]
    assert 1 == len({str(page.json["authorization_servers"]) for page in pages})


@pytest.mark.parametrize(
    "sse", [RESOURCE, "http://127.0.0.1:8000/sse", "/sse", "https://a.example"]
)
def test_http_sse_is_at_another_url_of_the_same_origin(sse):
    """Ours: anything else would be another server, or the same endpoint twice."""
    with pytest.raises(UsageError, match="sse"):
        make_guard(sse=sse)


def test_a_server_takes_an_authorizer_and_nothing_else():
    """Ours: a token in the place of a guard would let everybody in."""
    with pytest.raises(UsageError, match=r"ResourceAuth\(…\)"):
        Server("files", auth="token")
    whole = AuthorizationServer(
        "https://login.example",
        resources=["https://mcp.example/mcp"],
        scopes={},
        users=None,
        store=MemoryAuthStore(),
    )
    with pytest.raises(UsageError, match=r"write auth=authority\.resource_auth\(url\)"):
        Server("files", auth=whole)


def test_a_tcp_socket_is_no_way_around_it():
    """Ours: nothing on it asks who is there."""
    with pytest.raises(UsageError, match="everybody on this machine"):
        Server("files", auth=make_guard()).run("tcp", port=9)


async def test_what_is_behind_a_server_is_reached_as_told():
    """Ours: the seam of ``ctx.upstream``."""

    async def way(principal, name):
        return principal.subject, name

    assert ("ada", "mail") == await make_guard(upstream=way).upstream(make_person("ada"), "mail")
    with pytest.raises(UsageError, match="no service 'mail'"):
        await make_guard().upstream(make_person("ada"), "mail")


def test_what_tools_take_and_what_is_granted_is_compared_with_all_it_implies():
    """Ours: for lists, which hold what one may use."""
    auth = make_guard()

    found = [auth.allows(one, frozenset({WRITE})) for one in (None, *PEOPLE.values())]

    assert [False, False, False, True, True, False] == found
    assert auth.allows(None, frozenset())
    assert bearer_header("ada")
