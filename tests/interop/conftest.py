"""Counterparts from other libraries, each in an environment of its own."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import peers  # noqa: E402 - tools/peers.py: found through the line above

from interop import connections, gateway_processes  # noqa: E402 - they import peers


@pytest.fixture(scope="session", autouse=True)
def groups(request):
    """Fails where pytest-xdist leaves groups apart: every counterpart would be started in each process."""
    apart = [
        item.nodeid
        for item in request.session.items
        if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]
    ]
    # each process of pytest-xdist has the option
    if getattr(request.config.option, "loadgroup", False):
        assert not apart, "install a version of pytest that pytest-xdist works with"


@pytest.fixture(scope="session", autouse=True)
def listening_servers():
    """The servers that listen are shared by every module, so they end with the run and not before."""
    yield
    connections.stop()
    gateway_processes.forget_gateways()


@pytest.fixture(scope="session")
def environment():
    """Makes an environment, or skips the test with the reason."""

    def make(make, *name):
        try:
            return make(*name)
        except peers.Unavailable as why:
            pytest.skip(f"not to be had: {why}")

    return make


@pytest.fixture(scope="session")
def python_of(environment):
    """The interpreter of a Python environment."""
    return lambda name: environment(peers.python, name)


@pytest.fixture(scope="session")
def modules_of(environment):
    """The folder of an npm environment."""
    return lambda name: environment(peers.modules, name)


@pytest.fixture(scope="session")
def node(environment):
    """Node 22."""
    return environment(peers.node)
