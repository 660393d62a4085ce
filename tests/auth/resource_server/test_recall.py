"""Known tokens: what is told of a request without waiting is what would be told by waiting."""

import logging
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from isthmus.auth import ResourceAuth, StaticTokens
from isthmus.auth.resource_server.verifier import ByIssuer
from isthmus.core.http.rules import Refusal
from isthmus.core.principal import Principal
from isthmus.transports.http.admission import Admission
from support.auth.protected_server import (
    PEOPLE,
    RESOURCE,
    Files,
    bearer_header,
    call_tool_as,
    make_guard,
    make_person,
)
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

BOUND = make_person("bound", "files:read", jkt="print")
ENDED = make_person("ended", "files:read", expires_at=1.0)
TOKENS = {
    **PEOPLE,
    "token-of-bound": BOUND,
    "token-of-ended": ENDED,
    "a b": PEOPLE["token-of-ada"],
    " token": PEOPLE["token-of-ada"],
    "x" * 300: PEOPLE["token-of-ada"],
}

values = st.builds(
    bytes.__add__,
    st.sampled_from([b"Bearer ", b"Bearer ", b"bearer ", b"Bearer  ", b"DPoP ", b"", b"Basic "]),
    st.sampled_from([token.encode() for token in TOKENS] + [b"unknown", b"", b"token-of-ada "]),
)
headers = st.lists(
    st.tuples(st.sampled_from([b"authorization", b"authorization", b"dpop", b"host"]), values),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["off", "allow", "require"]), headers, st.sampled_from([256, 16_384]))
async def test_whoever_is_recalled_would_have_been_admitted(dpop, sent, most):
    """Ours: whatever else a request says of who sends it, :meth:`admit` is left to judge."""
    guard = make_guard(TOKENS, dpop=dpop, max_token_bytes=most)
    recalled = guard.recall(sent)
    scope = {"headers": sent, "method": "POST", "path": "/mcp"}
    assert recalled is None or recalled is await guard.admit(scope)


@pytest.mark.parametrize(
    ("sent", "dpop", "subject"),
    [
        ("token-of-ada", "off", "ada"),
        ("token-of-ada", "allow", "ada"),
        ("token-of-ada", "require", None),
        ("token-of-bound", "allow", None),
        ("token-of-ended", "off", None),
        ("unknown", "off", None),
    ],
)
def test_a_bearer_token_that_is_good_is_recalled_and_nothing_else(sent, dpop, subject):
    """RFC 9449 7.2: what is bound to a key is proven in each request."""
    guard = make_guard(TOKENS, dpop=dpop)
    found = guard.recall([(b"host", b"x"), (b"authorization", b"Bearer " + sent.encode())])
    assert subject == (None if found is None else found.subject)


class Counting:
    """A verifier with a table, that counts who was waited for."""

    def __init__(self):
        self.table, self.waited = StaticTokens(PEOPLE), 0

    def recall(self, name, resource):
        return self.table.recall(name, resource)

    async def verify(self, presented, resource):
        self.waited += 1
        return await self.table.verify(presented, resource)


async def test_a_request_with_a_known_token_waits_for_nobody():
    """Ours: and one with any other token does."""
    verifier = Counting()
    files = Files(make_guard(verifier=verifier))
    assert 200 == (await call_tool_as(files.app, "ada", "read")).status
    assert 0 == verifier.waited
    assert 401 == (await call_tool_as(files.app, "unknown", "read")).status
    assert 1 == verifier.waited


class Revoking(StaticTokens):
    """Tokens that may end: written for what ``verify`` says, and nothing else."""

    revoked = False

    async def verify(self, presented, resource):
        return None if self.revoked else await super().verify(presented, resource)


class Wrapping:
    """The same around a verifier."""

    def __init__(self, verifier):
        self.verifier, self.revoked = verifier, False

    async def verify(self, presented, resource):
        return None if self.revoked else await self.verifier.verify(presented, resource)

    def __getattr__(self, name):
        return getattr(self.verifier, name)


def make_patched():
    """The same on one object."""
    verifier = StaticTokens(PEOPLE)
    verify, verifier.revoked = verifier.verify, False

    async def verify_unless_revoked(presented, resource):
        return None if verifier.revoked else await verify(presented, resource)

    verifier.verify = verify_unless_revoked
    return verifier


@pytest.mark.parametrize(
    "make", [lambda: Revoking(PEOPLE), lambda: Wrapping(StaticTokens(PEOPLE)), make_patched]
)
@pytest.mark.parametrize("by_issuer", [False, True])
async def test_a_verifier_of_ones_own_is_asked_whatever_it_is_made_of(make, by_issuer):
    """Ours: who overrides ``verify`` says more than what is remembered beneath it."""
    verifier = make()
    judge = ByIssuer({}, other=verifier) if by_issuer else verifier
    files = Files(make_guard(verifier=judge))
    assert 200 == (await call_tool_as(files.app, "ada", "read")).status
    verifier.revoked = True
    assert 401 == (await call_tool_as(files.app, "ada", "read")).status


async def test_a_resource_server_of_ones_own_is_asked_whatever_it_is_made_of():
    """Ours: the same for who overrides ``admit``."""

    class Closing(ResourceAuth):
        closed = False

        async def admit(self, scope):
            found = await super().admit(scope)
            return Refusal(403, -32600, "closed") if self.closed else found

    guard = Closing(RESOURCE, ["https://login.example"], StaticTokens(PEOPLE))
    files = Files(guard)
    assert 200 == (await call_tool_as(files.app, "ada", "read")).status
    guard.closed = True
    assert 403 == (await call_tool_as(files.app, "ada", "read")).status


async def test_a_verifier_that_says_nothing_of_known_tokens_is_asked_each_time():
    """Ours: one of an author's own, whose tokens may end at any moment."""

    class Own:
        good = True

        async def verify(self, presented, resource):
            return PEOPLE["token-of-ada"] if self.good else None

    own = Own()
    files = Files(make_guard(verifier=own))
    assert 200 == (await call_tool_as(files.app, "ada", "read")).status
    own.good = False
    assert 401 == (await call_tool_as(files.app, "ada", "read")).status


async def test_a_verifier_that_breaks_while_it_recalls_lets_nobody_in_by_that(caplog):
    """Ours: it is told, without the token, and asked in the other way."""

    class Broken(StaticTokens):
        def recall(self, name, resource):
            raise RuntimeError("broken")

        async def verify(self, presented, resource):
            return None

    with caplog.at_level(logging.DEBUG):
        files = Files(make_guard(verifier=Broken(PEOPLE)))
        assert 401 == (await call_tool_as(files.app, "ada", "read")).status
    assert "authorization failed" in caplog.text
    assert "token-of-ada" not in caplog.text


async def test_a_mounted_server_still_says_what_its_origin_lacks(caplog):
    """Ours: a known token does not hide it."""
    files = Files(make_guard())
    head = {**modern_head(name="read"), **bearer_header("ada")}
    body = modern_body(params={"name": "read", "arguments": {"path": "a"}})
    answer = await fetch(
        files.app, headers=head, body=body, path="/outer/mcp", scope={"root_path": "/outer"}
    )
    assert 200 == answer.status
    assert "this server is mounted under /outer" in caplog.text


async def test_an_authorizer_without_memory_is_one():
    """Ours: the protocol did not grow."""

    class Lets:
        """Lets everybody in as one person."""

        routes: ClassVar = {}
        hides = False
        resource = None

        async def admit(self, scope):
            return Principal(issuer="x", subject="ada")

        def permit(self, principal, asked, *, modern, known):
            return None

        def allows(self, principal, scopes):
            return True

        async def lasts(self, principal):
            return True

    files = Files(Lets())
    assert 200 == (await call_tool_as(files.app, "whoever", "read")).status
    assert isinstance(Admission(Lets(), files.server.router), Admission)
