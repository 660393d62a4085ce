"""The guard: which names, pages, verbs, types and sizes are let in, and how others are told."""

import pytest

from support.http.asgi_driver import Exchange, fetch
from support.http.messages import (
    hello,
    legacy_head,
    make_http_app,
    modern_body,
    modern_head,
    open_legacy_session,
)

pytestmark = pytest.mark.usefixtures("carrier")
ASGI_ONLY = frozenset(
    {
        "test_where_our_name_cannot_be_known_no_page_is_ours",
        "test_where_our_name_cannot_be_known_any_host_is_served",
        "test_an_announced_length_over_the_limit_is_refused_before_it_is_read",
    }
)

FAR = {"server": ("10.0.0.5", 8000)}
UNIX = {"server": ("/run/isthmus.sock", None)}


async def post(options=None, scope=None, **head):
    """A modern call of ``hello`` with these headers, against an app with these options."""
    target = make_http_app(options, hello=hello)
    return await fetch(target, headers=modern_head(**head), body=modern_body(), scope=scope)


@pytest.mark.covers("security.host.own-names")
@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1", "127.0.0.1:1", "[::1]:8000", "LOCALHOST"]
)
async def test_over_loopback_this_machine_may_be_called_by_any_of_its_names(host):
    """Our default: the names of this machine with any port."""
    assert 200 == (await post(host=host)).status


@pytest.mark.covers("http.origin.look-alikes")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example.com",
        "localhost.evil.example",
        "evil-localhost",
        "localhost@evil.example",
        "localhost:80@evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "",
    ],
)
async def test_over_loopback_a_foreign_or_look_alike_host_is_refused(host):
    """The specification's protection from DNS rebinding; the refusal is a JSON-RPC error."""
    answer = await post(host=host)

    assert 403 == answer.status
    assert "id" not in answer.json
    assert repr(host) in answer.json["error"]["message"]
    assert "allowed_hosts" in answer.json["error"]["message"]


@pytest.mark.covers("http.origin.403")
@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE", "OPTIONS"])
async def test_a_forged_origin_alone_is_refused_on_every_verb(verb):
    """2026-07-28 basic/transports/streamable-http: an invalid Origin is answered with 403."""
    target = make_http_app(hello=hello)
    head = modern_head(origin="http://evil.example.com")

    answer = await fetch(target, verb, headers=head, body=modern_body())

    assert 403 == answer.status
    assert "'http://evil.example.com'" in answer.json["error"]["message"]
    assert "allowed_origins" in answer.json["error"]["message"]
    assert answer.header("access-control-allow-origin") is None


@pytest.mark.covers("http.origin.look-alikes")
@pytest.mark.parametrize(
    "origin",
    ["null", "http://localhost.evil.example", "file://localhost", "localhost", "http://", ""],
)
async def test_an_origin_that_only_looks_local_is_refused(origin):
    """Pages without a real origin, and look-alikes, are nobody's own."""
    assert 403 == (await post(origin=origin)).status


async def test_a_page_of_this_machine_may_call_and_may_read_the_answer():
    """Our default: local development tools in a browser work."""
    answer = await post(origin="http://localhost:6274")

    assert 200 == answer.status
    assert "http://localhost:6274" == answer.header("access-control-allow-origin")
    assert "Mcp-Session-Id" in (answer.header("access-control-expose-headers") or "")
    assert "Origin" == answer.header("vary")


async def test_without_an_origin_no_cors_header_is_sent():
    """Clients that are no browsers get no header they do not need."""
    assert (await post()).header("access-control-allow-origin") is None


@pytest.mark.parametrize("scope", [FAR, UNIX, {"server": None}])
async def test_where_our_name_cannot_be_known_any_host_is_served(scope):
    """Decision D19: without configuration a deployed server is not broken by the check."""
    assert 200 == (await post(host="mcp.example.com", scope=scope)).status


@pytest.mark.covers("security.origin.foreign-403")
@pytest.mark.parametrize("scope", [FAR, UNIX])
async def test_where_our_name_cannot_be_known_no_page_is_ours(scope):
    """A page under the very name that was called may have been rebound to us."""
    head = {"host": "evil.example", "origin": "http://evil.example"}

    assert 403 == (await post(scope=scope, **head)).status


@pytest.mark.covers("security.host.own-names")
async def test_the_public_url_says_which_host_and_origin_are_right():
    """One setting is enough for a deployment."""
    options = {"public_url": "https://mcp.example.com/mcp"}
    good = {"host": "mcp.example.com:443", "origin": "https://mcp.example.com"}

    assert 200 == (await post(options, FAR, **good)).status
    assert 403 == (await post(options, FAR, host="other.example.com")).status
    assert 403 == (await post(options, FAR, origin="https://other.example.com")).status
    assert 403 == (await post(options, FAR, host="localhost")).status


async def test_a_public_url_leaves_the_local_names_to_requests_over_loopback():
    """A proxy on the same machine passes the public name, a health check the local one."""
    options = {"public_url": "https://mcp.example.com:8443/mcp"}

    assert 200 == (await post(options, host="mcp.example.com")).status
    assert 200 == (await post(options, host="127.0.0.1:8000")).status
    assert 403 == (await post(options, host="evil.example")).status


@pytest.mark.covers("security.host.own-names")
async def test_allowed_hosts_are_the_only_ones():
    """What is configured replaces the default; a port counts where one is given."""
    options = {"allowed_hosts": ["mcp.example.com", "other.example.com:8443"]}

    assert 200 == (await post(options, host="mcp.example.com:1234")).status
    assert 200 == (await post(options, host="other.example.com:8443")).status
    assert 403 == (await post(options, host="other.example.com:8444")).status
    assert 403 == (await post(options, host="localhost")).status


@pytest.mark.covers("security.host.own-names")
async def test_a_star_switches_either_check_off_and_not_the_other():
    """Both checks can be given up on purpose, each by itself."""
    hosts, origins = {"allowed_hosts": ["*"]}, {"allowed_origins": ["*"]}
    page = "https://page.example"

    assert 200 == (await post(hosts, host="whatever.example")).status
    assert 403 == (await post(hosts, origin=page)).status
    assert 200 == (await post(origins, origin=page)).status
    assert 403 == (await post(origins, host="whatever.example", origin=page)).status


async def test_an_allowed_origin_may_call_a_server_without_a_name():
    """Web applications name themselves, whatever the server is called."""
    options = {"allowed_origins": ["https://app.example.com/"]}

    assert 200 == (await post(options, FAR, origin="https://app.example.com")).status
    assert 403 == (await post(options, FAR, origin="http://app.example.com")).status
    assert 403 == (await post(options, FAR, origin="https://app.example.com.evil.example")).status


async def test_a_verdict_on_one_request_says_nothing_about_the_next():
    """What is remembered is the whole of host, origin and address, not a part of it."""
    target = make_http_app(hello=hello)

    async def status(**head):
        return (await fetch(target, headers=modern_head(**head), body=modern_body())).status

    assert 200 == await status()
    assert 403 == await status(origin="http://evil.example")
    assert 403 == await status(host="evil.example")
    assert 200 == await status()


async def test_a_preflight_from_an_allowed_page_is_told_what_it_may_send():
    """Browsers ask first; Mcp-Param headers cannot be listed, so what is asked for is granted."""
    head = {
        "host": "localhost:8000",
        "origin": "http://localhost:6274",
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type,mcp-method,mcp-param-region",
    }
    answer = await fetch(make_http_app(), "OPTIONS", headers=head)

    assert 204 == answer.status
    assert b"" == answer.body
    assert "http://localhost:6274" == answer.header("access-control-allow-origin")
    assert "POST, GET, DELETE, OPTIONS" == answer.header("access-control-allow-methods")
    assert head["access-control-request-headers"] == answer.header("access-control-allow-headers")


async def test_a_preflight_that_asks_for_nothing_is_told_what_there_is():
    """Every header of the protocol is named."""
    head = {"host": "localhost:8000", "origin": "http://localhost:6274"}
    granted = (await fetch(make_http_app(), "OPTIONS", headers=head)).header(
        "access-control-allow-headers"
    )

    for name in ("Authorization", "Last-Event-ID", "MCP-Protocol-Version", "Mcp-Session-Id"):
        assert name in (granted or "")


async def test_options_without_an_origin_lists_the_verbs():
    """Plain HTTP clients may ask, too."""
    answer = await fetch(make_http_app(), "OPTIONS", headers={"host": "localhost"})

    assert (204, "POST, GET, DELETE, OPTIONS") == (answer.status, answer.header("allow"))


@pytest.mark.covers("http.content-type.415")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "json"])
async def test_a_body_that_is_not_json_is_refused_with_415(kind):
    """A form on a foreign page can send these without asking first."""
    answer = await post(content_type=kind)

    assert 415 == answer.status
    assert "application/json" in answer.json["error"]["message"]


async def test_parameters_of_the_content_type_do_not_matter():
    """Many clients add a charset."""
    assert 200 == (await post(content_type="Application/JSON; charset=utf-8")).status


async def test_an_unknown_verb_is_refused_with_405():
    """HTTP wants the verbs that there are."""
    answer = await fetch(make_http_app(), "PUT", headers=legacy_head())

    assert 405 == answer.status
    assert "POST" in (answer.header("allow") or "")


async def test_an_announced_length_over_the_limit_is_refused_before_it_is_read():
    """Nothing is waited for that would be thrown away: it is dropped once the refusal is sent."""
    target = make_http_app({"body_limit": 1000}, hello=hello)
    head = modern_head(**{"content-length": "5000"})

    exchange = Exchange(target, headers=head, body=[b"x" * 100], whole=False)
    await exchange.started.wait()
    await exchange.watched.wait()
    assert exchange.body
    assert 1 == exchange.read
    exchange.leave()
    await exchange.done()

    assert 413 == exchange.status
    assert "body_limit" in exchange.json["error"]["message"]
    assert "close" == exchange.header("connection")


async def test_a_body_without_a_length_is_refused_once_it_is_too_long():
    """Chunked bodies are counted."""
    exchange = Exchange(
        make_http_app({"body_limit": 1000}),
        headers=modern_head(),
        body=[b"x" * 400, b"y" * 400, b"z" * 400] * 9,
    )
    await exchange.done()

    assert 413 == exchange.status
    assert 3 == exchange.read


async def test_the_last_piece_of_a_body_counts_as_well():
    """The limit is for the whole of it."""
    exchange = Exchange(
        make_http_app({"body_limit": 1000}), headers=modern_head(), body=[b" " * 400, b" " * 601]
    )
    await exchange.done()

    assert 413 == exchange.status


@pytest.mark.parametrize("size", [999, 1000])
async def test_a_body_up_to_the_limit_is_taken(size):
    """The limit is the last size that is allowed."""
    exchange = await fetch(
        make_http_app({"body_limit": 1000}), headers=modern_head(), body=b" " * size
    )

    assert 400 == exchange.status  # it is no JSON, but it was read
    assert -32700 == exchange.json["error"]["code"]


async def test_a_whole_body_over_the_limit_is_refused_though_it_is_there():
    """A server may hand over more at once than is allowed."""
    exchange = await fetch(
        make_http_app({"body_limit": 1000}), headers=modern_head(), body=b" " * 1001
    )

    assert 413 == exchange.status


async def test_a_refusal_an_allowed_page_can_read_has_its_cors_headers():
    """A web application sees why its call was refused."""
    answer = await post(origin="http://localhost:6274", content_type="text/plain")

    assert 415 == answer.status
    assert "http://localhost:6274" == answer.header("access-control-allow-origin")


@pytest.mark.covers("security.refusals.cost-nothing")
async def test_nothing_is_allocated_for_refused_requests():
    """Users' pain 20: a flood of refusals leaves no session behind."""
    target = make_http_app(hello=hello)
    await open_legacy_session(target)
    for head in (legacy_head(origin="http://evil.example"), legacy_head(content_type="text/plain")):
        for _ in range(20):
            await fetch(target, headers=head, body=modern_body())

    assert 1 == len(target._book)
    await target.close()
