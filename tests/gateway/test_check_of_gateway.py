"""Our gateway is checked from both sides, as any other one is."""

from typing import Any

import pytest

from isthmus.gateway import Gateway
from support.gateway.small_gateway import make_allowing_host
from support.linter.tested_gateways import check_gateway, list_rules

# beside the interop tests: its probes wait for what must not happen, a minute in all
pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.interop,
    pytest.mark.xdist_group("gateway-check"),
]

L, M = "2025-11-25", "2026-07-28"


def make_gateway_app(servers: dict[str, str]) -> Any:
    """Our gateway with servers over HTTP behind it, and a policy that allows everything."""
    host = make_allowing_host()
    for name, url in servers.items():
        host.add(name, url)
    return Gateway(host).asgi()


async def test_our_gateway_has_nothing_wrong():
    """Ours: with clients of every revision, and servers of both eras behind it."""
    report = await check_gateway(make_gateway_app)

    assert set() == set(list_rules(report)), report.findings
    assert [M, L, "2025-06-18", "2025-03-26"] == report.spoken


async def test_our_gateway_keeps_names_and_is_no_circle():
    """Ours: it is started again with one server, and with itself behind it."""
    report = await check_gateway(make_gateway_app, M, restarts=True)

    assert set() == set(list_rules(report)), report.findings
