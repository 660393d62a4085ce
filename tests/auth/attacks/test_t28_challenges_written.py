"""T28, what we write: no text gets out of its quotes in a challenge."""

import pytest

from isthmus import Server
from isthmus.auth import Principal
from isthmus.auth.net.challenge import parse_challenges
from isthmus.auth.resource_server.challenges import ResourceChallenges
from isthmus.errors import UsageError
from isthmus.transports.http.authorizer import MethodScopes
from support.auth.protected_server import METADATA, call_tool_as, list_challenges, make_guard

NASTY = ['x"y', "x y", "a\r\nset-cookie: b", "ü", "back\\slash", "", "tab\t"]


@pytest.mark.covers("auth.threat.t28-header-injection")
@pytest.mark.parametrize("scope", NASTY)
def test_what_is_no_scope_is_refused_where_it_is_declared(scope):
    """Ours: RFC 6749 3.3 says what one is, so that nothing has to be escaped later."""
    server = Server("files", auth=make_guard())

    with pytest.raises(UsageError, match="is no scope"):
        server.add_tool(lambda: "x", name="x", scopes={scope})


@pytest.mark.covers("auth.threat.t28-header-injection")
@pytest.mark.parametrize("text", [*NASTY, 'a" , scope="admin'])
async def test_what_comes_out_of_the_arguments_gets_into_no_header_unless_it_is_a_scope(text):
    """Ours: a call whose scopes cannot be told is not served, and not challenged for."""
    server = Server("files", auth=make_guard())
    done = []

    @server.tool(scopes=lambda args, who: {args["scope"]})
    async def open_it(scope: str) -> str:
        done.append(scope)
        return scope

    answer = await call_tool_as(server.asgi(), "ada", "open_it", scope=text)

    assert (500, [], []) == (answer.status, list_challenges(answer), done)


@pytest.mark.covers("auth.threat.t28-header-injection")
@pytest.mark.parametrize("why", ['x", scope="admin', "x\r\nset-cookie: a=b", "ü\x00\\"])
def test_a_description_stays_within_its_quotes(why):
    """Ours: what reads it by the grammar finds the scopes that we wrote, and no others."""
    refusal = ResourceChallenges(METADATA, frozenset({"a"}), dpop="off", algorithms=()).invalid(
        "bearer", why
    )

    (challenge,) = parse_challenges(value for _, value in refusal.headers)

    assert frozenset({"a"}) == challenge.scopes
    assert {"error", "error_description", "scope", "resource_metadata"} == set(challenge.params)
    assert all(" " <= sign <= "~" for _, value in refusal.headers for sign in value)


@pytest.mark.covers("auth.threat.t28-header-injection")
async def test_what_a_token_was_granted_is_repeated_only_as_far_as_it_is_known_here():
    """Ours: a strange authorization server cannot have us write its texts."""
    strange = Principal(
        issuer="x", subject="ada", scopes=frozenset({"files:read", 'evil", scope="admin', "openid"})
    )
    server = Server("files", auth=make_guard({"token-of-ada": strange}))
    server.add_tool(lambda: "x", name="x", scopes={"files:write"})
    refusal = server.auth.permit(
        strange,
        [MethodScopes("tools/call", frozenset({"files:write"}))],
        modern=False,
        known=server.router.known_scopes,
    )

    (challenge,) = parse_challenges(value for _, value in refusal.headers)

    assert {"files:read", "files:write"} == challenge.scopes
