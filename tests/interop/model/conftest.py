"""A real model on this machine, for the time of the tests."""

import subprocess
import sys
import time
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

import pytest

from isthmus.host.providers.openai_compatible import OpenAICompatible

SERVE = Path(__file__).with_name("serve.py")
READY_SECONDS = 45


def first_line(process):
    """What the server prints when it answers; skips where it does not come to that."""
    with DefaultSelector() as selector:
        selector.register(process.stdout, EVENT_READ)
        line = process.stdout.readline() if selector.select(READY_SECONDS) else b""
    if not line.startswith(b"http://127.0.0.1:"):
        pytest.skip(f"not to be had: the model's server did not start (it ended: {process.poll()})")
    return line.decode().strip()


@pytest.fixture(scope="session")
def served(python_of):
    """The base URL of a server with a real model."""
    interpreter = python_of("model")
    began = time.monotonic()
    process = subprocess.Popen(
        [str(interpreter), str(SERVE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        url = first_line(process)
        print(f"the model is there after {time.monotonic() - began:.1f} s", file=sys.stderr)
        yield url
    finally:
        process.stdin.close()  # it ends with its input
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@pytest.fixture
async def model(served):
    """A provider of the model."""
    provider = OpenAICompatible(f"{served}/v1", name="local")
    yield provider
    await provider.close()
