"""Nodes behind balancers of others, which are skipped where they cannot be had."""

import os

import pytest

from support.nodes.balancer_process import BALANCERS, find_balancer, run_balancer
from support.nodes.node_processes import run_nodes
from support.ports import find_free_port
from support.store.redis_server import debian, make_test_url


@pytest.fixture(scope="module", params=BALANCERS)
def balancer(request):
    """The name of a balancer that is installed."""
    if find_balancer(request.param) is None:
        pytest.skip(f"{request.param} is not installed: python tools/balancers.py installs it")
    return request.param


@pytest.fixture(scope="module")
def make_store(tmp_path_factory):
    """Gives the URL of a new store: in Redis where there is one, else in a file."""

    def make():
        if os.environ.get("ISTHMUS_TEST_REDIS") or debian.REDIS.find():
            return make_test_url()
        return f"sqlite:///{tmp_path_factory.mktemp('store')}/shop.db"

    return make


@pytest.fixture(scope="module")
def settings(make_store):
    """The settings of nodes that share a store."""
    return {"SHOP_STORE": make_store()}


@pytest.fixture(scope="module")
def deploy(balancer, settings, tmp_path_factory):
    """The URL of a balancer before two nodes, which nobody stops."""
    folder = tmp_path_factory.mktemp(balancer)
    with (
        run_nodes([find_free_port(), find_free_port()], settings) as nodes,
        run_balancer(balancer, folder, find_free_port(), [node.port for node in nodes]) as url,
    ):
        yield url
