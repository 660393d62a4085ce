"""The negotiation as a table: every answer a server may give, and what the client makes of it."""

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from isthmus.core.negotiation import (
    ClientOffer,
    ConnectionGone,
    HttpStatus,
    NoSseStream,
    OpeningError,
    OpeningResult,
    OpeningTimeout,
    UnknownReply,
    make_facts_meta,
    negotiate,
)
from isthmus.errors import ConnectFailed
from isthmus.revisions import BY_NAME
from isthmus.wire import ClientCapabilities, Implementation, RootsCapability
from support.examples import count_examples

ME = Implementation(name="me", version="1")
MODERN, LEGACY, OLD = "2026-07-28", "2025-11-25", "2024-11-05"


NEXT = BY_NAME[MODERN].evolve("2027-01-01")
"""A revision there is not yet, to negotiate about."""


def offer(pin=None, known=None, **more):
    """What a client brings; revisions by name."""
    return ClientOffer(ME, pin=BY_NAME.get(pin), known=BY_NAME.get(known), **more)


def answer(**result):
    return OpeningResult(Raw(json.dumps(result).encode()))


def discovered(*versions, **more):
    """A DiscoverResult."""
    return answer(supportedVersions=list(versions), capabilities={"tools": {}}, **more)


def greeted(version):
    """An InitializeResult."""
    info = {"name": "old", "version": "1"}
    return answer(protocolVersion=version, capabilities={"tools": {}}, serverInfo=info)


def unsupported(*versions, code=-32022):
    return OpeningError(code, "Unsupported protocol version", {"supported": list(versions)})


UNKNOWN = OpeningError(-32601, "Method not found")
NOT_YET = OpeningError(-32602, "Received request before initialization was complete")
PAGE = HttpStatus(404, "<html>")

PROBE, GREET, AGAIN, DONE = "discover", "initialize", "restart, initialize", "initialized"
OVER_SSE, SSE_DONE = "initialize over sse", "initialized over sse"
NO_STREAM = NoSseStream(HttpStatus(405))


def walk(brought, *outcomes):
    """The steps a client takes when it meets these outcomes, and where it ends up."""
    steps, left, taken = negotiate(brought), list(outcomes), []
    try:
        attempt = next(steps)
        while True:
            word = attempt.method.rpartition("/")[2]
            name = f"{'restart, ' if attempt.again else ''}{word}{' over sse' * attempt.sse}"
            taken.append(name if attempt.note else f"{name} {attempt.revision.name}")
            attempt = steps.send(OpeningTimeout(0) if attempt.note else left.pop(0))
    except StopIteration as agreed:
        assert [] == left
        return taken, agreed.value.revision.name
    except ConnectFailed as error:
        assert [] == left
        return taken, str(error)


TABLE = {
    "a modern server": (
        offer(),
        [discovered(MODERN)],
        [f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server of both eras": (
        offer(),
        [discovered(LEGACY, MODERN)],
        [f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server that answers discover, but speaks legacy revisions only": (
        offer(),
        [discovered(OLD, LEGACY), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy server that says: no such method": (
        offer(),
        [UNKNOWN, greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy server that says: not initialized": (
        offer(),
        [NOT_YET, greeted("2025-06-18")],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        "2025-06-18",
    ),
    "a legacy server with a code of its own": (
        offer(),
        [OpeningError(-32000, "Server not initialized"), greeted(OLD)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        OLD,
    ),
    "a legacy server that uses the modern code without its data": (
        offer(),
        [OpeningError(-32022, "what?"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a silent legacy server": (
        offer(),
        [OpeningTimeout(2), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy server that answers everything with {}": (
        offer(),
        [answer(), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a server that dies of the probe": (
        offer(),
        [ConnectionGone("exit code 1"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{AGAIN} {LEGACY}", DONE],
        LEGACY,
    ),
    "a server that refuses initialize because the probe came first": (
        offer(startable=True),
        [UNKNOWN, OpeningError(-32600, "initialize must be the first request"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{AGAIN} {LEGACY}", DONE],
        LEGACY,
    ),
    "a server that dies of initialize after the probe": (
        offer(startable=True),
        [UNKNOWN, ConnectionGone("exit code 1"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{AGAIN} {LEGACY}", DONE],
        LEGACY,
    ),
    "a server that refuses initialize without a probe, too": (
        offer(startable=True),
        [UNKNOWN, OpeningError(-32600, "no"), OpeningError(-32600, "never")],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{AGAIN} {LEGACY}"],
        "the server did not accept initialize: never (-32600)",
    ),
    "a slow server that refuses initialize, and again after it was found to be no modern one": (
        offer(startable=True),
        [OpeningTimeout(2), NOT_YET, UNKNOWN, NOT_YET, greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}"] * 2 + [f"{AGAIN} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy HTTP server: 400 with a body of its own": (
        offer(),
        [HttpStatus(400, "Bad Request: Mcp-Session-Id required"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy HTTP server: 404": (
        offer(),
        [PAGE, greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy HTTP server: 405": (
        offer(),
        [HttpStatus(405), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a legacy HTTP server that stumbles: 500": (
        offer(),
        [HttpStatus(500), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a page instead of an answer": (
        offer(),
        [UnknownReply("text/html"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a modern server that refuses this version and names a legacy one": (
        offer(),
        [unsupported(LEGACY, "2099-01-01"), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a modern server that refuses this version and names another modern one": (
        offer(supported=(BY_NAME[LEGACY], NEXT, BY_NAME[MODERN])),
        [unsupported(NEXT.name), discovered(NEXT.name)],
        [f"{PROBE} {MODERN}", f"{PROBE} {NEXT.name}"],
        NEXT.name,
    ),
    "a modern server that refuses once, and names the same version": (
        offer(),
        [unsupported(MODERN), discovered(MODERN)],
        [f"{PROBE} {MODERN}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a legacy server known from last time": (
        offer(known=LEGACY),
        [greeted(LEGACY)],
        [f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a server that has become modern since last time": (
        offer(known=LEGACY),
        [UNKNOWN, discovered(MODERN)],
        [f"{GREET} {LEGACY}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server that has become modern since last time, over HTTP": (
        offer(known=LEGACY),
        [HttpStatus(400), discovered(MODERN)],
        [f"{GREET} {LEGACY}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server that has become legacy since last time": (
        offer(known=MODERN),
        [UNKNOWN, greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "a modern server that was slow to start": (
        offer(),
        [OpeningTimeout(2), UNKNOWN, discovered(MODERN)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a modern server that was slow to start and names its versions": (
        offer(),
        [OpeningTimeout(2), unsupported(MODERN, code=-32602), discovered(MODERN)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server that refuses initialize and names an older revision": (
        offer(),
        [UNKNOWN, unsupported(OLD, code=-32602), greeted(OLD)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{GREET} {OLD}", DONE],
        OLD,
    ),
    "an HTTP+SSE server: 405 to every POST": (
        offer(sse=True),
        [HttpStatus(405), HttpStatus(405), greeted(OLD)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{OVER_SSE} {LEGACY}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server: 404": (
        offer(sse=True),
        [PAGE, PAGE, greeted(OLD)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{OVER_SSE} {LEGACY}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server: 400": (
        offer(sse=True),
        [HttpStatus(400, "sessionId is required"), HttpStatus(400), greeted(LEGACY)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{OVER_SSE} {LEGACY}", SSE_DONE],
        LEGACY,
    ),
    "an HTTP+SSE server with another 4xx of its own": (
        offer(sse=True),
        [HttpStatus(415), HttpStatus(415), greeted(OLD)],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{OVER_SSE} {LEGACY}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server that refuses in JSON-RPC": (
        offer(sse=True),
        [
            OpeningError(-32000, "no session", status=400),
            OpeningError(-32000, "no session", status=400),
            greeted(OLD),
        ],
        [f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", f"{OVER_SSE} {LEGACY}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server that names the revisions it speaks": (
        offer(sse=True),
        [PAGE, PAGE, unsupported(OLD, code=-32602), greeted(OLD)],
        [
            f"{PROBE} {MODERN}",
            f"{GREET} {LEGACY}",
            f"{OVER_SSE} {LEGACY}",
            f"{OVER_SSE} {OLD}",
            SSE_DONE,
        ],
        OLD,
    ),
    "an HTTP+SSE server, pinned": (
        offer(pin=OLD, sse=True),
        [PAGE, greeted(OLD)],
        [f"{GREET} {OLD}", f"{OVER_SSE} {OLD}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server known from last time": (
        offer(known=OLD, sse=True, known_sse=True),
        [greeted(OLD)],
        [f"{OVER_SSE} {LEGACY}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server known from last time, pinned": (
        offer(pin=OLD, known=OLD, sse=True, known_sse=True),
        [greeted(OLD)],
        [f"{OVER_SSE} {OLD}", SSE_DONE],
        OLD,
    ),
    "an HTTP+SSE server that has become modern since last time": (
        offer(known=OLD, sse=True, known_sse=True),
        [NO_STREAM, discovered(MODERN)],
        [f"{OVER_SSE} {LEGACY}", f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "an HTTP+SSE server that has left that transport since last time": (
        offer(known=OLD, sse=True, known_sse=True),
        [NoSseStream(UnknownReply("text/html")), HttpStatus(400), greeted(LEGACY)],
        [f"{OVER_SSE} {LEGACY}", f"{PROBE} {MODERN}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "an HTTP+SSE server that has left that transport since last time, pinned": (
        offer(pin=LEGACY, known=OLD, sse=True, known_sse=True),
        [NO_STREAM, greeted(LEGACY)],
        [f"{OVER_SSE} {LEGACY}", f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "an HTTP+SSE server known from last time, pinned to the modern revision": (
        offer(pin=MODERN, known=OLD, sse=True, known_sse=True),
        [discovered(MODERN)],
        [f"{PROBE} {MODERN}"],
        MODERN,
    ),
    "a server that has become an HTTP+SSE server since last time": (
        offer(known=LEGACY, sse=True),
        [PAGE, PAGE, PAGE, greeted(OLD)],
        [
            f"{GREET} {LEGACY}",
            f"{PROBE} {MODERN}",
            f"{GREET} {LEGACY}",
            f"{OVER_SSE} {LEGACY}",
            SSE_DONE,
        ],
        OLD,
    ),
    "a transport that only a handshake opens": (
        offer(handshake=True),
        [greeted(LEGACY)],
        [f"{GREET} {LEGACY}", DONE],
        LEGACY,
    ),
    "pinned to a legacy revision": (
        offer(pin="2025-06-18"),
        [greeted("2025-06-18")],
        [f"{GREET} 2025-06-18", DONE],
        "2025-06-18",
    ),
    "pinned to the modern revision": (
        offer(pin=MODERN),
        [discovered(MODERN)],
        [f"{PROBE} {MODERN}"],
        MODERN,
    ),
}


@pytest.mark.covers(
    "versions.negotiation.client",
    "versions.modern.retried",
    "versions.probe.any-error-is-legacy",
    "lifecycle.initialize.first",
)
@pytest.mark.parametrize("name", TABLE)
def test_the_client_agrees_with(name):
    """Spec 2026-07-28 basic/versioning: the matrix, and what is met beyond it."""
    brought, outcomes, expected_steps, expected_end = TABLE[name]

    steps, end = walk(brought, *outcomes)

    assert (expected_steps, expected_end) == (steps, end)


FAILURES = {
    "nothing in common": (
        offer(),
        [discovered("2099-01-01")],
        "no revision in common: the server speaks 2099-01-01, we speak 2024-11-05, ",
    ),
    "a refusal that names only what was refused": (
        offer(),
        [unsupported(MODERN), unsupported(MODERN)],
        "no revision in common: the server speaks 2026-07-28, we speak ",
    ),
    "a modern server that wants a capability": (
        offer(),
        [OpeningError(-32021, "Missing required client capability")],
        "the server refused server/discover: Missing required client capability (-32021)",
    ),
    "a modern server that sees other headers": (
        offer(),
        [OpeningError(-32020, "Header mismatch")],
        "the server refused server/discover: Header mismatch (-32020)",
    ),
    "a version we do not speak": (
        offer(),
        [UNKNOWN, greeted("2023-01-01")],
        "the server answered initialize with revision '2023-01-01'; we speak 2024-11-05, ",
    ),
    "a modern version in a handshake": (
        offer(),
        [UNKNOWN, greeted(MODERN)],
        "the server answered initialize with revision '2026-07-28'; we speak ",
    ),
    "an answer to initialize that is none": (
        offer(),
        [UNKNOWN, answer(hello="world")],
        "the answer to initialize is malformed: Object missing required field",
    ),
    "a refused initialize": (
        offer(),
        [UNKNOWN, OpeningError(-32603, "boom")],
        "the server did not accept initialize: boom (-32603)",
    ),
    "no answer to initialize": (
        offer(),
        [UNKNOWN, OpeningTimeout(28)],
        "the server did not accept initialize: no answer within 28 s",
    ),
    "a server that dies of both": (
        offer(),
        [ConnectionGone("exit code 1"), ConnectionGone("exit code 2")],
        "the server did not accept initialize: exit code 2",
    ),
    "a server that was slow, and refuses everything": (
        offer(),
        [OpeningTimeout(2), UNKNOWN, UNKNOWN, OpeningError(-32603, "boom")],
        "the server did not accept initialize: boom (-32603)",
    ),
    "a wrong URL": (
        offer(),
        [PAGE, PAGE],
        "HTTP 404: a page of HTML; check the URL: no MCP endpoint answers POST there",
    ),
    "a URL where no transport answers": (
        offer(sse=True),
        [PAGE, PAGE, NO_STREAM],
        (
            "HTTP 404: a page of HTML; check the URL: no MCP endpoint answers POST there, and GET opens no "
            "stream of HTTP+SSE (HTTP 405)"
        ),
    ),
    "an endpoint that refuses initialize, without a stream": (
        offer(sse=True),
        [UNKNOWN, OpeningError(-32600, "no", status=400), NO_STREAM],
        "the server did not accept initialize: no (-32600), and GET opens no stream of HTTP+SSE",
    ),
    "a stream that wants authorization": (
        offer(sse=True),
        [PAGE, PAGE, NoSseStream(HttpStatus(401))],
        "HTTP 401; the server wants authorization",
    ),
    "a URL without any transport any more": (
        offer(known=OLD, sse=True, known_sse=True),
        [NO_STREAM, PAGE, PAGE],
        "HTTP 404: a page of HTML; check the URL: no MCP endpoint answers POST there, and GET opens no",
    ),
    "an HTTP+SSE server that refuses the handshake": (
        offer(sse=True),
        [PAGE, PAGE, HttpStatus(404, "no session")],
        "the server did not accept initialize: HTTP 404: no session",
    ),
    "a handshake over HTTP that is forbidden": (
        offer(sse=True),
        [HttpStatus(400), HttpStatus(403)],
        "HTTP 403; the server forbids it",
    ),
    "a handshake over HTTP that fails": (
        offer(sse=True),
        [HttpStatus(400), HttpStatus(500)],
        "the server did not accept initialize: HTTP 500",
    ),
    "a handshake over HTTP that comes too often": (
        offer(sse=True),
        [HttpStatus(400), OpeningError(-32000, "slow down", status=429)],
        "the server did not accept initialize: slow down (-32000)",
    ),
    "a handshake over HTTP that meets a modern error": (
        offer(sse=True),
        [HttpStatus(400), OpeningError(-32020, "Header mismatch", status=400)],
        "the server did not accept initialize: Header mismatch (-32020)",
    ),
    "a transport that only a handshake opens, and the server refuses": (
        offer(handshake=True),
        [UNKNOWN],
        "the server did not accept initialize: Method not found (-32601)",
    ),
    "a URL that wants authorization": (
        offer(),
        [HttpStatus(401, "")],
        "HTTP 401; the server wants authorization",
    ),
    "a gateway without a server": (
        offer(),
        [HttpStatus(503, "")],
        "HTTP 503; the server cannot answer now",
    ),
    "a redirect elsewhere": (
        offer(),
        [HttpStatus(302, "")],
        "HTTP 302; check the URL",
    ),
    "an answer that is none under a modern pin": (
        offer(pin=MODERN),
        [answer(hello="world")],
        "the server does not speak revision 2026-07-28: its answer makes no sense; leave out",
    ),
    "a page instead of an answer to initialize": (
        offer(),
        [UnknownReply("text/html"), UnknownReply("text/html")],
        "the server did not accept initialize: text/html",
    ),
    "a legacy server where only modern revisions are spoken": (
        offer(supported=(BY_NAME[MODERN],)),
        [UNKNOWN],
        "no legacy revision is among 2026-07-28",
    ),
    "a legacy server under a modern pin": (
        offer(pin=MODERN),
        [UNKNOWN],
        "the server does not speak revision 2026-07-28: Method not found (-32601); leave out",
    ),
    "other versions under a modern pin": (
        offer(pin=MODERN),
        [unsupported(LEGACY)],
        "no revision in common: the server speaks 2025-11-25, we speak 2026-07-28",
    ),
    "another version under a legacy pin": (
        offer(pin="2025-06-18"),
        [greeted("2025-03-26")],
        "the server does not speak revision 2025-06-18: it answered with 2025-03-26; leave out",
    ),
    "a modern server under a legacy pin": (
        offer(pin=LEGACY),
        [unsupported(MODERN)],
        "the server did not accept initialize: Unsupported protocol version (-32022)",
    ),
}


@pytest.mark.covers("versions.negotiation.client")
@pytest.mark.parametrize("name", FAILURES)
def test_the_client_gives_up_on(name):
    """Ours: a failed negotiation says what was said, and what to try."""
    brought, outcomes, expected = FAILURES[name]

    _, end = walk(brought, *outcomes)

    assert expected == end[: len(expected)]


def attempts(brought, *outcomes):
    """The attempts themselves, up to the one that meets no outcome."""
    steps = negotiate(brought)
    made = [next(steps)]
    made.extend(steps.send(outcome) for outcome in outcomes)
    return made


@pytest.mark.covers("versions.probe.any-error-is-legacy")
def test_silence_costs_the_probe_timeout_and_no_more():
    """Spec 2026-07-28 basic/transports/stdio: silence within a reasonable timeout is legacy."""
    probe, greeting = attempts(offer(probe_timeout=0.5), OpeningTimeout(0.5))

    assert (0.5, None) == (probe.timeout, greeting.timeout)


def test_a_second_probe_waits_as_long_as_opening_may_take():
    """Ours: the server has spoken meanwhile, so its silence would be no sign of age."""
    *_, probe = attempts(offer(probe_timeout=0.5), OpeningTimeout(0.5), UNKNOWN)

    assert ("server/discover", None) == (probe.method, probe.timeout)


def test_a_pinned_modern_revision_is_asked_for_patiently():
    """Ours: with nothing to fall back to, there is nothing to hurry for."""
    (probe,) = attempts(offer(pin=MODERN, probe_timeout=0.5))

    assert probe.timeout is None


def test_the_probe_states_who_asks_and_in_which_revision():
    """Spec 2026-07-28 basic/transports/stdio: the preferred modern version goes into _meta."""
    (probe,) = attempts(offer())

    assert MODERN == probe.params.meta["io.modelcontextprotocol/protocolVersion"]
    assert (
        Raw(b'{"name":"me","version":"1"}')
        == (probe.params.meta["io.modelcontextprotocol/clientInfo"])
    )
    assert Raw(b"{}") == probe.params.meta["io.modelcontextprotocol/clientCapabilities"]


def test_the_facts_are_cut_to_the_revision():
    """Spec 2026-07-28 client/roots: the roots capability has no listChanged any more."""
    can = ClientCapabilities(roots=RootsCapability(list_changed=True))

    meta = make_facts_meta(BY_NAME[MODERN], ME, can, "warning")

    assert Raw(b'{"roots":{}}') == meta["io.modelcontextprotocol/clientCapabilities"]
    assert "warning" == meta["io.modelcontextprotocol/logLevel"]


@pytest.mark.covers("versions.discover.heard", "capabilities.discovered")
def test_a_modern_server_is_known_by_what_it_tells():
    """Spec 2026-07-28 server/discover: name, capabilities and instructions are in the answer."""
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "2"}}
    steps = negotiate(offer())
    next(steps)

    with pytest.raises(StopIteration) as end:
        steps.send(discovered(MODERN, instructions="be kind", _meta=meta))

    agreed = end.value.value
    assert ("new", "be kind") == (agreed.info.name, agreed.instructions)
    assert agreed.capabilities.tools


@pytest.mark.covers("meta.server.named")
@pytest.mark.parametrize("meta", [{}, {"io.modelcontextprotocol/serverInfo": 7}])
def test_a_modern_server_may_keep_its_name_to_itself(meta):
    """Spec 2026-07-28 basic#_meta: serverInfo is a SHOULD, and no basis for anything."""
    steps = negotiate(offer())
    next(steps)

    with pytest.raises(StopIteration) as end:
        steps.send(discovered(MODERN, _meta=meta))

    assert end.value.value.info is None


def test_versions_that_discover_does_not_confirm_are_given_up():
    """Ours: an answer to ``initialize`` that lists the modern revision, and a probe that says no."""
    refusal = unsupported(MODERN)
    taken, said = walk(offer(), UNKNOWN, *[refusal, UNKNOWN] * 1, refusal)

    assert [PROBE, GREET, PROBE, GREET] == [step.split()[0] for step in taken]
    assert f"no revision in common: the server speaks {MODERN}" in said
    assert "Unsupported protocol version" in said


VERSIONS = st.lists(st.sampled_from([*BY_NAME, "1999-01-01", ""]), max_size=6)
OUTCOMES = st.one_of(
    VERSIONS.map(lambda versions: discovered(*versions)),
    st.sampled_from([*BY_NAME, "1999-01-01"]).map(greeted),
    st.builds(
        lambda versions, code: unsupported(*versions, code=code),
        VERSIONS,
        st.sampled_from([-32022, -32602, -32600, -32000]),
    ),
    st.sampled_from(
        [UNKNOWN, NOT_YET, PAGE, NO_STREAM, OpeningTimeout(1), ConnectionGone("gone"), answer()]
    ),
    st.sampled_from([HttpStatus(code) for code in (400, 405, 500)]),
    st.just(UnknownReply("what?")),
)
OFFERS = st.builds(
    offer,
    pin=st.sampled_from([None, *BY_NAME]),
    known=st.sampled_from([None, *BY_NAME]),
    handshake=st.booleans(),
    startable=st.booleans(),
    sse=st.booleans(),
    known_sse=st.booleans(),
)
MOST_ATTEMPTS = 16
"""Requests in one opening; answers that come in turn may make it two or so for each revision."""


@given(OFFERS, st.lists(OUTCOMES, min_size=1, max_size=4))
@settings(max_examples=count_examples(2000))
def test_no_answers_make_an_opening_go_on_for_ever(brought, answers):
    """Ours: a server that gives the same answers again and again is given up."""
    steps, sent = negotiate(brought), 0
    with contextlib.suppress(StopIteration, ConnectFailed):
        attempt = next(steps)
        while True:
            outcome = OpeningTimeout(0) if attempt.note else answers[sent % len(answers)]
            if isinstance(outcome, NoSseStream) and not attempt.sse:
                outcome = PAGE  # there is no other attempt that can have it
            sent += 1
            assert sent <= MOST_ATTEMPTS
            attempt = steps.send(outcome)


def test_no_outcome_at_all_makes_an_opening_go_on_for_ever():
    """Ours: the last bound, met by what no transport reports."""
    taken, said = walk(offer(), *[NO_STREAM] * 16)

    assert 16 == len(taken)
    assert "the server's answers lead nowhere: it was asked 16 times" == said
