import os
import subprocess
import sys
from pathlib import Path

import pytest

CLIENT = Path(__file__).with_name("client.py")


@pytest.mark.parametrize("name", ["", "no-such-scenario", "auth/no-such"])
def test_a_scenario_that_is_not_known_ends_badly(name):
    """The suite: an unknown scenario must not look like one that went well."""
    environment = {**os.environ, "MCP_CONFORMANCE_SCENARIO": name}
    command = [sys.executable, str(CLIENT), "http://127.0.0.1:1/mcp"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert 64 == done.returncode
    assert repr(name) in done.stderr
