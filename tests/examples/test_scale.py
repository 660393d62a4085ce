"""``python examples/scale``: two nodes behind a balancer, and one of them is killed."""

import re
import sys

import pytest

from support.docs.blocks import run_command

pytestmark = pytest.mark.timeout(90)


def test_a_node_is_killed_and_the_session_goes_on():
    """Ours: both nodes serve one session, the killed call ends, and the other node goes on."""
    said = run_command(f"{sys.executable} scale")
    nodes = re.search(r"nodes (\d+) and (\d+) share (\w+)", said)
    assert nodes is not None, said
    first, second = nodes[1], nodes[2]
    killed = re.search(r"kill -9 (\d+)", said)
    assert killed is not None, said
    left = second if killed[1] == first else first

    assert {first, second} == set(re.findall(r"says process (\d+)", said))
    assert "rye, noted by process" in said
    assert "the call ended: " in said
    assert said.rstrip().endswith(f"2, says process {left}")
