"""Clients of others at two nodes behind a balancer: every behaviour of the interop suite."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import peers  # noqa: E402 - tools/peers.py: found through the line above

from interop import connections, known  # noqa: E402 - it imports peers
from interop.behaviours import BEHAVIOURS, select_behaviours  # noqa: E402
from interop.partners import OURS, PARTNERS  # noqa: E402
from support.nodes.balancer_process import find_balancer, run_balancer  # noqa: E402
from support.ports import find_free_port  # noqa: E402

pytestmark = [pytest.mark.balancers, pytest.mark.timeout(240)]

LOCAL = {"list changes"}
"""Behaviours that change one process: each node of a deployment has its own list of tools."""

VISITS = [
    (client, transport, revision)
    for client in PARTNERS
    if client != "java"
    for transport, revisions in PARTNERS[client].visits.items()
    if transport != "stdio"
    for revision in revisions
]


@pytest.fixture(scope="module")
def two_nodes(make_store, tmp_path_factory):
    """The port of nginx before two counterparts that share a store."""
    if find_balancer("nginx") is None:
        pytest.skip("nginx is not installed: python tools/balancers.py installs it")
    folder = tmp_path_factory.mktemp("counterparts")
    ports = [find_free_port(), find_free_port()]
    environment = {
        **os.environ,
        "COUNTERPART_STORE": make_store(),
        "COUNTERPART_FOLDER": str(folder),
    }
    command = PARTNERS[OURS].server()
    nodes = [
        subprocess.Popen(
            [*command, "http", str(port)],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for port in ports
    ]
    try:
        for port, node in zip(ports, nodes, strict=True):
            connections.await_port(port, node, command)
        with run_balancer("nginx", folder / "nginx", find_free_port(), ports) as url:
            yield url.removesuffix("/mcp")
    finally:
        for node in nodes:
            node.terminate()
        for node in nodes:
            node.wait(10)


@pytest.fixture(scope="module")
def play(two_nodes):
    """Has a client play every behaviour, once for each connection."""
    played = {}

    def play_once(client, transport, revision):
        key = client, transport, revision
        if key not in played:
            played[key] = _play(two_nodes, *key)
        return played[key]

    return play_once


def _play(url, client, transport, revision):
    """The outcome of each behaviour."""
    behaviours = select_behaviours(transport, revision)
    steps = [step for behaviour in behaviours.values() for step in behaviour.steps]
    mark = f"{client} {transport} {revision} {time.monotonic_ns()}".replace(" ", "-")
    plan = {
        "transport": transport,
        "revision": revision,
        "target": f"{url}/{'sse' if transport == 'sse' else 'mcp'}",
        "steps": json.loads(json.dumps(steps).replace("KEY", mark)),
    }
    try:
        said = connections.played([*connections.command("client", client), json.dumps(plan)])
    except peers.Unavailable as why:
        pytest.skip(f"not to be had: {why}")
    results = iter(said["outcomes"])
    return {name: [next(results) for _ in b.steps] for name, b in behaviours.items()}


@pytest.mark.parametrize(
    ("client", "transport", "revision"), VISITS, ids=["-".join(visit) for visit in VISITS]
)
def test_a_client_of_others_sees_one_server(play, client, transport, revision):
    """Ours: what a client sees of two nodes is what it sees of one."""
    came = play(client, transport, revision)
    differing = {
        name: outcome
        for name, outcome in came.items()
        if name not in LOCAL
        and known.find_known(client, OURS, transport, revision, name) is None
        and outcome != BEHAVIOURS[name].expected(revision)
    }

    assert {} == differing
