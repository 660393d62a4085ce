"""``isthmus check --gateway`` on gateways of other people: it gets to its end, and finds what they are known for."""

import shlex

import pytest

from interop.partners import FOLDER
from isthmus.linter.gateway.examination import examine_gateway
from isthmus.linter.gateway.launch import CommandGateway
from isthmus.linter.gateway.upstream import open_upstreams

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


async def test_check_on_the_proxy_of_fastmcp(python_of):
    """FastMCP's create_proxy: tokens pass through to servers of 2026-07-28, and servers of the other era are lost."""
    script = FOLDER / "fastmcp_gateway.py"
    command = shlex.join([str(python_of("fastmcp")), str(script), "{config}", "{port}"])
    async with open_upstreams() as upstreams:
        report = await examine_gateway(CommandGateway(command), upstreams)
    for one in report.findings:
        print(one.severity, one.rule, one.revision, one.where, one.said)
    found = {one.rule for one in report.findings}

    assert "2026-07-28" in report.spoken
    assert {"gateway.passthrough", "gateway.lists"} <= found
    assert "gateway.crossing" not in found
