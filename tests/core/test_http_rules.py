"""The ladder: every rule about an HTTP request's head, its envelope, and the two together."""

import pytest
from msgspec import UNSET

from isthmus.core.caller import Caller, read_envelope
from isthmus.core.http.rules import (
    AcceptedForms,
    LegacyRequest,
    ModernRequest,
    Refusal,
    RequestHead,
    judge,
    judge_head,
    parse_accept,
    read_head,
)
from isthmus.revisions import LEGACY, MODERN, REVISIONS
from isthmus.transports.http.origin_guard import SiteNames, judge_origin, judge_source
from isthmus.wire import ClientCapabilities, Implementation
from isthmus.wire.jsonrpc import ErrorBody, encode, encode_call, encode_note, parse
from isthmus.wire.meta import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION

NEWEST = MODERN[-1].name
OLD = LEGACY[-1].name
INFO = {"name": "test", "version": "1"}


def meta(version=NEWEST, **more):
    """A complete ``_meta``."""
    return {PROTOCOL_VERSION: version, CLIENT_INFO: INFO, CLIENT_CAPABILITIES: {}, **more}


def head(**more):
    """The head of a modern call of the tool "add"; None leaves a header out."""
    given = {"version": NEWEST, "mcp_method": "tools/call", "mcp_name": "add", **more}
    return RequestHead(**given)


def call(method="tools/call", **params):
    """The body of a call; of a modern one where nothing else is said."""
    given = params or {"name": "add", "arguments": {}, "_meta": meta()}
    return encode_call(1, method, encode(given))


def verdict(given, body, supported=REVISIONS, principal=None):
    """What a POST with this head and body is."""
    frame = parse(body)
    params = getattr(frame, "params", UNSET)
    return judge(
        given, frame, read_envelope(None if params is UNSET else params), supported, principal
    )


def judge_refusal(given, body, supported=REVISIONS):
    """Status and code of a refused POST."""
    refusal = verdict(given, body, supported)
    assert isinstance(refusal, Refusal)
    return refusal.status, refusal.code


# --- heads


def test_a_head_is_read_from_the_headers_of_an_asgi_scope():
    """ASGI has lower-case names and bytes."""
    pairs = [
        (b"host", b"localhost:8000"),
        (b"origin", b"http://localhost:3000"),
        (b"content-type", b"application/json"),
        (b"accept", b"text/event-stream"),
        (b"mcp-protocol-version", b"2026-07-28"),
        (b"mcp-session-id", b"s1"),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", b" \tcaf\xe9 "),
        (b"last-event-id", b"7"),
        (b"x-other", b"?"),
    ]
    expected = RequestHead(
        host="localhost:8000",
        origin="http://localhost:3000",
        content_type="application/json",
        accept="text/event-stream",
        version="2026-07-28",
        session_id="s1",
        mcp_method="tools/call",
        mcp_name="café",
        last_event_id="7",
    )
    assert expected == read_head(pairs)
    assert RequestHead() == read_head([])


def test_a_header_that_comes_twice_is_neither_of_the_two():
    """Somebody before us may have read the other one."""
    pairs = [(b"mcp-name", b"add"), (b"mcp-name", b"delete"), (b"accept", b"a"), (b"accept", b"b")]
    assert RequestHead(mcp_name="add, delete", accept="a, b") == read_head(pairs)


# --- where it comes from

SITE = SiteNames(
    frozenset({"localhost", "127.0.0.1", "[::1]", "mcp.example.com:8443"}),
    frozenset({"https://app.example.com", "null"}),
)


@pytest.mark.covers("security.host.foreign-403")
@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", None),
        ("localhost:8000", None),
        ("LOCALHOST:8000", None),
        ("127.0.0.1:1", "http://127.0.0.1:1"),
        ("[::1]", None),
        ("[::1]:8000", "http://[::1]:3000"),
        ("mcp.example.com:8443", "https://mcp.example.com:8443"),
        ("localhost", "http://localhost:3000"),
        ("localhost", "https://app.example.com"),
        ("localhost", "https://APP.example.com"),
        ("localhost", "null"),
    ],
)
def test_a_request_under_our_own_names_passes(host, origin):
    """Spec 2026-07-28 basic/transports/streamable-http#security-endpoint; decision D19."""
    assert None is judge_source(RequestHead(host=host, origin=origin), SITE)


@pytest.mark.covers("security.host.foreign-403")
@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example.com",
        "localhost.evil.example.com",
        "evil.example.com:localhost",
        "localhost:",
        "localhost:80:80",
        "mcp.example.com",
        "mcp.example.com:8000",
        "xlocalhost",
        "localhost, evil.example.com",
    ],
)
def test_a_request_under_a_foreign_name_is_forbidden(host):
    """A page that rebinds its own name to our address still sends its own name."""
    refusal = judge_source(RequestHead(host=host), SITE)
    assert (403, -32600) == (refusal.status, refusal.code)
    assert repr(host or "") in refusal.message
    assert "allowed_hosts" in refusal.message


@pytest.mark.covers("security.origin.foreign-403")
@pytest.mark.parametrize(
    "origin",
    [
        "",
        "http://evil.example.com",
        "http://localhost.evil.example.com",
        "http://localhost@evil.example.com",
        "http://localhost/evil",
        "file://localhost",
        "localhost",
        "https://app.example.com.evil.com",
        "http://app.example.com",
    ],
)
def test_a_page_elsewhere_is_forbidden(origin):
    """Spec: an invalid Origin MUST be answered with 403."""
    refusal = judge_source(RequestHead(host="localhost", origin=origin), SITE)
    assert (403, -32600) == (refusal.status, refusal.code)
    assert repr(origin) in refusal.message
    assert "allowed_origins" in refusal.message


def test_a_server_that_cannot_know_its_name_looks_at_origins_alone():
    """Behind a proxy any name may be right; a page elsewhere is one all the same."""
    assert None is judge_origin(RequestHead(host="anything"), SITE)
    assert None is judge_origin(
        RequestHead(host="anything", origin="https://app.example.com"), SITE
    )
    assert 403 == judge_origin(RequestHead(host="evil.com", origin="http://evil.com"), SITE).status


def test_a_name_quoted_in_a_message_is_kept_short():
    """What somebody else made as long as they liked does not fill our logs."""
    refusal = judge_source(RequestHead(host="x" * 10_000), SITE)
    assert len(refusal.message) < 250


# --- the head alone


@pytest.mark.parametrize(
    ("accept", "json", "events"),
    [
        (None, True, True),
        ("", True, True),
        ("application/json, text/event-stream", True, True),
        ("text/event-stream;q=0.5 , application/JSON ; charset=utf-8", True, True),
        ("*/*", True, True),
        ("application/json", True, False),
        ("application/*", True, False),
        ("text/event-stream", False, True),
        ("text/*", False, True),
        ("text/html, */*;q=0.1", True, True),
        ("text/html", False, False),
        ("application/json;q=0, */*", False, True),
        ("application/json; q = 0.000, text/event-stream", False, True),
        ("application/json;q=0.001", True, False),
        ("application/json;q=", False, False),
        (",;,", False, False),
    ],
)
def test_what_a_client_accepts(accept, json, events):
    """RFC 9110 12.5.1; the most telling range decides, and no header allows all."""
    assert AcceptedForms(json=json, events=events) == parse_accept(accept)


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json ;a=b",
    ],
)
def test_a_post_of_json_goes_on_to_its_body(kind):
    """Nothing else can be said before the body is read."""
    assert None is judge_head("POST", RequestHead(content_type=kind))


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/jsonp", "multipart/form-data"]
)
def test_a_post_of_anything_else_is_refused(kind):
    """We demand it: a page elsewhere may send these without asking (CORS simple requests)."""
    refusal = judge_head("POST", RequestHead(content_type=kind))
    assert (415, -32600) == (refusal.status, refusal.code)
    assert (("accept", "application/json"),) == refusal.headers


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "text/event-stream", "text/*"])
def test_a_post_that_accepts_either_form_is_served(accept):
    """We demand it: clients that list one form get that one."""
    assert None is judge_head("POST", RequestHead(content_type="application/json", accept=accept))


def test_a_post_that_accepts_neither_form_is_refused():
    """RFC 9110 15.5.7."""
    refusal = judge_head("POST", RequestHead(content_type="application/json", accept="text/html"))
    assert (406, -32600) == (refusal.status, refusal.code)


@pytest.mark.covers("http.endpoint.one-path")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("version", [None, *(r.name for r in LEGACY)])
def test_get_and_delete_are_for_sessions(method, version):
    """Spec 2025-03-26 to 2025-11-25 basic/transports; a missing version is tolerated."""
    assert LegacyRequest("s1") == judge_head(method, RequestHead(session_id="s1", version=version))
    assert LegacyRequest(None) == judge_head(method, RequestHead(version=version))


@pytest.mark.covers("routing.earlier.no-sessions")
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_are_no_methods_of_modern_requests(method):
    """Spec 2026-07-28 basic/transports/streamable-http#earlier-streamable-http-revisions."""
    refusal = judge_head(method, RequestHead(session_id="s1", version=NEWEST))
    assert (405, (("allow", "POST, GET, DELETE"),)) == (refusal.status, refusal.headers)
    refusal = judge_head(method, RequestHead(session_id="s1"), MODERN)
    assert (405, (("allow", "POST"),)) == (refusal.status, refusal.headers)


@pytest.mark.covers("http.endpoint.one-path")
@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "BREW"])
def test_other_methods_are_not_allowed(method):
    """RFC 9110 15.5.6: with an Allow header."""
    refusal = judge_head(method, RequestHead())
    assert (405, -32600) == (refusal.status, refusal.code)
    assert (("allow", "POST, GET, DELETE"),) == refusal.headers


@pytest.mark.covers("http.get.stream-or-405")
def test_a_get_that_accepts_no_events_is_refused():
    """Spec 2025-03-26 basic/transports: a GET opens an event stream and nothing else."""
    assert 406 == judge_head("GET", RequestHead(accept="application/json")).status
    assert LegacyRequest(None) == judge_head("DELETE", RequestHead(accept="application/json"))


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_get_and_delete_with_an_invalid_version_are_refused(method):
    """Spec 2025-06-18 basic/transports#protocol-version-header: 400."""
    refusal = judge_head(method, RequestHead(session_id="s1", version="2024-13-01"))
    assert (400, -32022) == (refusal.status, refusal.code)


# --- modern requests


def test_a_modern_call_is_served_for_the_caller_it_states():
    """Spec 2026-07-28 basic#_meta: every request says who asks."""
    expected = Caller(
        MODERN[-1], ClientCapabilities(), Implementation(name="test", version="1"), None, "ann"
    )
    assert ModernRequest(expected) == verdict(head(), call(), principal="ann")


@pytest.mark.covers("meta.name.optional")
def test_a_caller_need_not_give_its_name():
    """Spec 2026-07-28 basic#_meta: clientInfo is a SHOULD."""
    given = meta()
    del given[CLIENT_INFO]
    assert isinstance(verdict(head(), call(name="add", _meta=given)), ModernRequest)


@pytest.mark.covers("routing.headers.repeated")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/list", {}, None),
        ("tools/list", {"name": "ignored"}, "also ignored"),
        ("prompts/get", {"name": "greet"}, "greet"),
        ("resources/read", {"uri": "file:///a b"}, "file:///a b"),
        ("tasks/get", {"taskId": "t1"}, "t1"),
        ("acme/anything", {"name": 5}, None),
        ("tools/call", {"name": "世界"}, "=?base64?5LiW55WM?="),
        ("tools/call", {"name": "add"}, " \tadd "),
        ("tools/call", {"name": " add "}, "=?base64?IGFkZCA=?="),
        ("tools/call", {"name": 5}, None),
        ("tools/call", {}, None),
    ],
)
def test_headers_that_repeat_the_body_pass(method, params, name):
    """Spec #standard-request-headers; params without their name are refused later, as params."""
    given = head(mcp_method=method, mcp_name=name)
    assert isinstance(verdict(given, call(method, **params, _meta=meta())), ModernRequest)


@pytest.mark.covers("routing.headers.compared")
@pytest.mark.parametrize(
    ("given", "flaw"),
    [
        (head(version=None), "MCP-Protocol-Version header is missing"),
        (head(version=OLD), f"MCP-Protocol-Version header value '{OLD}' does not match"),
        (head(version="nonsense"), "MCP-Protocol-Version header value 'nonsense'"),
        (head(mcp_method=None), "Mcp-Method header is missing"),
        (head(mcp_method="tools/list"), "'tools/list' does not match body value 'tools/call'"),
        (head(mcp_method="TOOLS/CALL"), "'TOOLS/CALL' does not match"),
        (head(mcp_name=None), "Mcp-Name header is missing"),
        (head(mcp_name="delete"), "'delete' does not match body value 'add'"),
        (head(mcp_name="ADD"), "'ADD' does not match"),
        (head(mcp_name=""), "'' does not match"),
        (head(mcp_name="=?base64?ZGVsZXRl?="), "'delete' does not match"),
        (head(mcp_name="=?base64?YWRk"), "does not match"),
        (head(mcp_name="=?base64?YWR?="), "does not match"),
        (head(mcp_name="add\x00"), "does not match"),
    ],
)
def test_headers_that_say_something_else_than_the_body_are_refused(given, flaw):
    """Spec #server-validation: 400 and -32020, missing or mismatched."""
    refusal = verdict(given, call())
    assert (400, -32020) == (refusal.status, refusal.code)
    assert flaw in refusal.message
    assert refusal.message.startswith("Header mismatch: ")


@pytest.mark.covers("routing.name.decoded")
def test_a_name_that_looks_wrapped_must_come_wrapped():
    """Else a proxy would read another name than the one that is called."""
    name = "=?base64?YWRk?="
    body = call(name=name, _meta=meta())
    assert (400, -32020) == judge_refusal(head(mcp_name=name), body)
    assert isinstance(
        verdict(head(mcp_name="=?base64?PT9iYXNlNjQ/WVdSaz89?="), body), ModernRequest
    )


@pytest.mark.covers("routing.name.decoded")
def test_a_name_outside_ascii_may_not_come_plain():
    """Spec #value-encoding: header values are visible ASCII."""
    assert (400, -32020) == judge_refusal(head(mcp_name="café"), call(name="café", _meta=meta()))


@pytest.mark.covers("meta.required.refused")
@pytest.mark.parametrize("missing", [PROTOCOL_VERSION, CLIENT_CAPABILITIES])
def test_a_modern_request_without_a_required_field_is_malformed(missing):
    """Spec 2026-07-28 basic#_meta: -32602, on HTTP with 400."""
    given = meta()
    del given[missing]
    assert (400, -32602) == judge_refusal(head(), call(name="add", _meta=given))


@pytest.mark.covers("meta.required.refused")
@pytest.mark.parametrize("params", [{"name": "add"}, {"name": "add", "_meta": {}}])
def test_a_modern_header_without_meta_is_malformed(params):
    """Conformance: no _meta is -32602, not a mismatch."""
    assert (400, -32602) == judge_refusal(head(), call(**params))


def test_meta_of_the_wrong_shape_is_malformed():
    """The message says where."""
    refusal = verdict(head(), call(name="add", _meta=meta() | {CLIENT_CAPABILITIES: 5}))
    assert (400, -32602) == (refusal.status, refusal.code)
    assert UNSET is refusal.data
    assert "_meta" in refusal.message


@pytest.mark.covers("versions.modern.unsupported")
def test_a_version_nobody_speaks_is_refused_with_those_we_speak():
    """Spec 2026-07-28 basic/versioning: -32022 with `supported` and `requested`, 400 on HTTP."""
    refusal = verdict(head(version="v999.0.0"), call(name="add", _meta=meta("v999.0.0")))
    assert (400, -32022) == (refusal.status, refusal.code)
    assert {"supported": [NEWEST], "requested": "v999.0.0"} == refusal.data


@pytest.mark.covers("routing.version.mismatch")
def test_a_modern_header_with_another_version_in_meta_is_a_mismatch():
    """Conformance: -32020 comes before -32022."""
    for version in ("v999.0.0", OLD):
        assert (400, -32020) == judge_refusal(head(), call(name="add", _meta=meta(version)))


def test_a_server_of_legacy_revisions_says_so_to_a_modern_request():
    """Its client can fall back to what is listed."""
    refusal = verdict(head(), call(), LEGACY)
    assert (400, -32022) == (refusal.status, refusal.code)
    assert {"supported": [r.name for r in LEGACY], "requested": NEWEST} == refusal.data


@pytest.mark.covers("versions.modern.no-initialize")
def test_initialize_under_a_modern_version_is_an_unknown_method():
    """Conformance: 404 and -32601, whatever its params."""
    given = head(mcp_method="initialize", mcp_name=None)
    assert (404, -32601) == judge_refusal(given, call("initialize", protocolVersion=NEWEST))
    assert (404, -32601) == judge_refusal(given, call("initialize", _meta=meta()))


@pytest.mark.parametrize("method", ["ping", "logging/setLevel", "resources/subscribe", "no/such"])
def test_other_methods_that_are_no_more_are_left_to_the_router(method):
    """It knows what a server adds; the ladder judges requests, not methods."""
    given = head(mcp_method=method, mcp_name=None)
    assert isinstance(verdict(given, call(method, _meta=meta())), ModernRequest)


@pytest.mark.covers("routing.post.notification")
@pytest.mark.parametrize("given", [RequestHead(version=NEWEST), head(mcp_method="other")])
def test_a_modern_notification_needs_no_headers_beside_its_version(given):
    """Spec #sending-messages: header requirements for them are not defined."""
    expected = ModernRequest(Caller(MODERN[-1], principal="ann"))
    assert expected == verdict(given, encode_note("acme/told", None), principal="ann")


@pytest.mark.covers("routing.post.one-message")
def test_a_modern_request_may_not_be_an_answer():
    """Spec #sending-messages: clients MUST NOT send responses."""
    assert (400, -32600) == judge_refusal(head(), b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert (400, -32600) == judge_refusal(
        head(), b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}'
    )


@pytest.mark.covers("routing.post.one-message")
def test_a_modern_request_may_not_be_a_batch():
    """Spec #sending-messages: a single request or notification."""
    assert (400, -32600) == judge_refusal(head(), b"[]")


# --- legacy requests


@pytest.mark.parametrize("version", [None, *(r.name for r in LEGACY)])
@pytest.mark.parametrize(
    "body",
    [
        call("tools/call", name="add"),
        encode_call(1, "ping", None),
        encode_note("notifications/initialized", None),
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b"[]",
    ],
)
def test_what_states_no_modern_version_belongs_to_a_session(version, body):
    """Spec 2025-03-26 to 2025-11-25; a missing version header is tolerated."""
    assert LegacyRequest("s1") == verdict(RequestHead(version=version, session_id="s1"), body)
    assert LegacyRequest(None) == verdict(RequestHead(version=version), body)


def test_modern_headers_on_a_legacy_request_are_ignored():
    """A proxy may add them."""
    given = RequestHead(version=OLD, mcp_method="x", mcp_name="y", session_id="s1")
    assert LegacyRequest("s1") == verdict(given, call(name="add"))


@pytest.mark.parametrize("version", [None, OLD, "2027-01-01", "nonsense"])
@pytest.mark.parametrize("named", [OLD, NEWEST, "2027-01-01", 5])
def test_initialize_opens_a_session_whatever_version_it_asks_for(version, named):
    """The handshake negotiates: an unknown version is answered with one we speak."""
    assert LegacyRequest(None) == verdict(
        RequestHead(version=version), call("initialize", protocolVersion=named)
    )


def test_initialize_with_meta_but_without_a_modern_header_opens_a_session():
    """`_meta` was there before 2026-07-28, and initialize selects legacy semantics."""
    assert LegacyRequest(None) == verdict(RequestHead(), call("initialize", _meta=meta()))


def test_initialize_under_a_modern_version_opens_a_session_where_that_is_not_spoken():
    """A server of legacy revisions negotiates with whoever shakes hands."""
    assert LegacyRequest(None) == verdict(
        head(), call("initialize", protocolVersion=NEWEST), LEGACY
    )


@pytest.mark.parametrize("version", ["2024-13-01", "nonsense", "", "2025-06-18, 2025-06-18"])
@pytest.mark.parametrize("body", [call(name="add"), b"[]", encode_note("x", None)])
def test_an_invalid_version_on_a_legacy_request_is_refused(version, body):
    """Spec 2025-06-18 basic/transports#protocol-version-header: 400."""
    assert (400, -32022) == judge_refusal(RequestHead(version=version, session_id="s1"), body)


def test_a_version_this_server_does_not_speak_is_refused():
    """Spec 2025-06-18: invalid or unsupported."""
    refusal = verdict(RequestHead(version=OLD), call(name="add"), LEGACY[:1])
    assert {"supported": [LEGACY[0].name], "requested": OLD} == refusal.data
    assert (400, -32022) == judge_refusal(RequestHead(version=NEWEST), call(name="add"), LEGACY)
    assert (400, -32022) == judge_refusal(RequestHead(version=OLD), call("initialize", a=1), MODERN)


@pytest.mark.covers("routing.earlier.version-needed")
@pytest.mark.parametrize("body", [call(name="add"), call("initialize", protocolVersion=OLD), b"[]"])
def test_a_modern_server_tells_legacy_clients_what_it_speaks(body):
    """Spec 2026-07-28: a missing version header is -32020; the versions SHOULD be named."""
    refusal = verdict(RequestHead(), body, MODERN)
    assert (400, -32020) == (refusal.status, refusal.code)
    assert NEWEST in refusal.message
    assert {"supported": [NEWEST]} == refusal.data


def test_params_that_are_no_params_are_refused():
    """JSON-RPC: MCP's params are objects."""
    assert (400, -32602) == judge_refusal(RequestHead(), encode_call(1, "ping", b"[1]"))


# --- refusals


def test_a_refusal_becomes_the_error_of_an_answer():
    """Whoever answers adds the id."""
    refusal = Refusal(400, -32020, "no", {"a": 1})
    assert ErrorBody(code=-32020, message="no", data={"a": 1}) == refusal.error()
    assert b'{"code":-32020,"message":"no"}' == encode(Refusal(400, -32020, "no").error())


def test_the_list_of_versions_in_a_refusal_is_its_own():
    """Whoever adds to it must not change what the next one says."""
    body = call(name="add", _meta=meta("v1"))
    verdict(head(version="v1"), body).data["supported"].append("x")
    assert [NEWEST] == verdict(head(version="v1"), body).data["supported"]
