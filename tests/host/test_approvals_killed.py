"""Approvals of hosts that are killed: what was approved is dispatched at most once, whatever the moment."""

import subprocess
import sys

import pytest

from support.host import killed_approval
from support.host.held_client import HeldClient, call_for_client
from support.host.killed_approval import make_buying_host


def run_until_killed(state, point):
    """Run a host that is killed at a point of its call."""
    words = [sys.executable, killed_approval.__file__, str(state), point]
    ended = subprocess.run(words, capture_output=True, timeout=60, check=False)
    assert -9 == ended.returncode, ended.stderr.decode()


def list_bought(state):
    """What was bought so far, by whatever host."""
    path = state / "bought"
    return path.read_text().split() if path.exists() else []


async def find_states(host):
    """The states of all approvals."""
    await host.core.approvals.open()
    return [row.state for row in host.core.approvals.list()]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_a_host_killed_between_approval_and_dispatch_has_the_call_attach(tmp_path):
    """Ours: the same call is dispatched, without a question, and once."""
    run_until_killed(tmp_path, "dispatch")
    assert [] == list_bought(tmp_path)

    async with make_buying_host(tmp_path) as host:
        assert ["decided"] == await find_states(host)
        assert "tea" == (await call_for_client(host, HeldClient(0))).text
        rows = await host.view.audit_tail(100)
    assert 1 == sum(row.kind == "decision" for row in rows)
    assert ["tea"] == list_bought(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
async def test_a_host_killed_between_dispatch_and_outcome_does_not_dispatch_twice(tmp_path):
    """Ours: row and audit log say that nobody knows; the next same call is another one, and asked about."""
    run_until_killed(tmp_path, "outcome")
    assert ["tea"] == list_bought(tmp_path)

    async with make_buying_host(tmp_path) as host:
        assert ["unknown"] == await find_states(host)
        assert ["tea"] == list_bought(tmp_path)
        await call_for_client(host, HeldClient())
        rows = await host.view.audit_tail(100)
    assert ["tea", "tea"] == list_bought(tmp_path)
    assert 1 == sum(row.error == "outcome-unknown" for row in rows)
    assert 2 == sum(row.kind == "decision" for row in rows)
