"""Traffic of a gateway: metrics for Prometheus, and a line of JSON about each call; neither has an argument."""

import asyncio

import msgspec
import pytest

from isthmus import Client
from isthmus.errors import Refused
from isthmus.gateway import Gateway
from isthmus.gateway.metrics import escape_label, is_loopback
from isthmus.host.model.gateway_options import GatewayLimits, GatewayOptions
from support.gateway.small_gateway import make_allowing_host, make_gateway, make_shop
from support.http.asgi_driver import fetch
from support.http.messages import modern_body, modern_head

CANARY = "canary-8f2e1c77"


async def ask(app, path, method="GET", **headers):
    """The answer of an app on this machine."""
    return await fetch(app, method, path, headers={"host": "127.0.0.1:8000", **headers})


def make_logging_gateway(path, **limits):
    """A gateway with one server and an access log."""
    host = make_allowing_host()
    host.add("shop", make_shop("2025-06-18"))
    return Gateway(
        host, options=GatewayOptions(access_log=str(path), limits=GatewayLimits(**limits))
    )


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-06-18"])
async def test_each_call_has_a_line_without_arguments(tmp_path, revision):
    """Ours: who, when, where, by which eras, how long and how it ended."""
    path = tmp_path / "access.jsonl"
    async with (
        make_logging_gateway(path) as gateway,
        Client(gateway.server, revision=revision) as user,
    ):
        await user.call_tool("shop__add", {"a": 1, "b": 2})
        await user.call_tool("shop__add", {"a": 1, "b": CANARY}, timeout=10)
        with pytest.raises(Refused):
            await user.read_resource(f"shop+shop://items/shoe?token={CANARY}")
        with pytest.raises(Refused):
            await user.call_tool(f"{CANARY}__{CANARY}")

    text = path.read_text(encoding="utf-8")
    assert CANARY not in text
    lines = [msgspec.json.decode(line) for line in text.splitlines()]
    assert [("shop", "add", "ok"), ("shop", "add", "bad-arguments")] == [
        (line["server"], line["name"], line["outcome"]) for line in lines[:2]
    ]
    assert {("user:local", revision)} == {(line["principal"], line["era"]) for line in lines}
    assert {"2025-06-18"} == {line["server_era"] for line in lines if "server" in line}
    assert lines[-1]["outcome"] == "refused"
    assert "name" not in lines[-1]
    assert all(line["ms"] > 0 and line["time"].endswith("+00:00") for line in lines)


async def test_a_limited_call_is_a_line_that_says_so(tmp_path):
    """Ours: what was refused for its rate is told apart from what failed."""
    path = tmp_path / "access.jsonl"
    async with make_logging_gateway(path, calls=1.0) as gateway, Client(gateway.server) as user:
        await user.call_tool("shop__add", {"a": 1, "b": 2})
        with pytest.raises(Refused):
            await user.call_tool("shop__add", {"a": 1, "b": 2})

    lines = [msgspec.json.decode(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert ["ok", "limited"] == [line["outcome"] for line in lines]


async def test_metrics_have_numbers_and_names_of_servers():
    """Ours: calls by outcome, times as a histogram, states, and connections."""
    gateway = make_gateway(shop=make_shop("2026-07-28"))
    app = gateway.asgi()
    async with gateway, Client(gateway.server) as user:
        await user.call_tool("shop__add", {"a": 1, "b": 2})
        answer = await ask(app, "/metrics")

    assert answer.status == 200
    assert answer.header("content-type").startswith("text/plain; version=0.0.4")
    lines = answer.body.decode().splitlines()
    assert 'isthmus_gateway_calls_total{server="shop",outcome="ok"} 1' in lines
    assert 'isthmus_gateway_call_seconds_bucket{server="shop",le="+Inf"} 1' in lines
    assert 'isthmus_gateway_server_state{server="shop",state="ready"} 1' in lines
    assert "isthmus_gateway_connections 0" in lines


async def test_metrics_are_for_this_machine_and_for_no_page_elsewhere():
    """Ours: another origin, and a name that leads here by a trick (DNS rebinding), read nothing."""
    app = make_gateway(shop=make_shop("2026-07-28")).asgi()
    foreign = await ask(app, "/metrics", origin="https://evil.example")
    rebound = await ask(app, "/metrics", host="evil.example")
    posted = await ask(app, "/metrics", "POST")
    away = await fetch(
        app, "GET", "/metrics", headers={"host": "10.0.0.1"}, scope={"server": ("10.0.0.1", 8000)}
    )
    assert [403, 405, 403] == [foreign.status, posted.status, away.status]
    assert rebound.status >= 400
    assert all(b"isthmus_gateway" not in one.body for one in (foreign, rebound, posted, away))


@pytest.mark.parametrize("path", ["/mcp", "/mcp/shop"])
async def test_no_endpoint_is_reached_by_another_name(path):
    """Ours: each of the endpoints judges Host and Origin (DNS rebinding)."""
    app = make_gateway(shop=make_shop("2026-07-28")).asgi()
    for headers in ({"host": "evil.example"}, {"origin": "https://evil.example"}):
        answer = await ask(app, path, "POST", **headers)
        assert 400 <= answer.status < 500
        assert answer.header("access-control-allow-origin") is None
    await app.close(0.0)


async def test_there_is_no_page_of_metrics_where_none_is_wanted():
    """Ours: metrics=None, and another path."""
    assert 404 == (await ask(make_gateway().asgi(metrics=None), "/metrics")).status
    assert 200 == (await ask(make_gateway().asgi(metrics="/numbers"), "/numbers")).status


async def test_the_probes_are_of_the_gateway_as_a_whole():
    """Ours: ready while it serves all endpoints, and not while it drains."""
    gateway = make_gateway(shop=make_shop("2026-07-28"), other=make_shop("2025-06-18"))
    app = gateway.asgi()
    assert 200 == (await ask(app, "/ready")).status
    assert 200 == (await ask(app, "/health")).status
    assert 404 == (await ask(app, "/mcp/shop/ready")).status
    ending = asyncio.ensure_future(app.close(0.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 503 == (await ask(app, "/ready")).status
    assert 200 == (await ask(app, "/health")).status
    await ending


@pytest.mark.parametrize(
    ("address", "is_local"),
    [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("10.0.0.1", False), ("", False)],
)
def test_loopback_is_known_by_the_address_of_ours(address, is_local):
    """Ours: where nobody says the address, it may be any."""
    assert is_local is is_loopback(address)


def test_a_label_holds_any_name():
    """Ours: quotes and ends of lines make no line of their own."""
    assert 'a\\"b\\\\c\\nd' == escape_label('a"b\\c\nd')


async def test_counters_beyond_a_million_are_exact():
    """Ours: a counter that is rounded stands still for thousands of calls, and its rate is nonsense."""
    gateway = make_gateway(shop=make_shop("2026-07-28"))
    app = gateway.asgi()
    async with gateway, Client(gateway.server) as user:
        traffic = gateway._parts.traffic
        traffic.calls["shop", "ok"], traffic.times["shop"].count = 12_345_678, 12_345_678
        traffic.times["shop"].buckets[0], traffic.times["shop"].seconds = 12_345_678, 1_234_567.25
        await user.call_tool("shop__add", {"a": 1, "b": 2})
        answer = await ask(app, "/metrics")

    lines = answer.body.decode().splitlines()
    assert 'isthmus_gateway_calls_total{server="shop",outcome="ok"} 12345679' in lines
    assert 'isthmus_gateway_call_seconds_bucket{server="shop",le="+Inf"} 12345679' in lines
    assert 'isthmus_gateway_call_seconds_count{server="shop"} 12345679' in lines
    (seconds,) = (line for line in lines if line.startswith("isthmus_gateway_call_seconds_sum"))
    assert 1_234_567.25 <= float(seconds.split()[1]) < 1_234_569  # with six digits it is 1234570


async def test_the_id_of_a_request_does_not_fill_the_access_log(tmp_path):
    """Attack: an id may be as long as a request, and may have been made of a secret."""
    path, name = tmp_path / "access.jsonl", "shop__add"
    id = f"ghp_{'a1B2' * 9}\n{'x' * 50_000}"
    body = modern_body(params={"name": name, "arguments": {"a": 1, "b": 2}}, id=id)
    async with make_logging_gateway(path) as gateway:
        answer = await fetch(gateway.asgi(), headers=modern_head(name=name), body=body)

    assert answer.status == 200
    text = path.read_text(encoding="utf-8")
    assert "ok" == msgspec.json.decode(text)["outcome"]
    assert len(text) < 1_000
    assert "a1B2a1B2" not in text
