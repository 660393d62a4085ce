"""A client program of mcp 1.x and 2.x gets the same under the library itself and under the façade."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from support.compat.facades import UNDER_FACADE, declare_installed

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]

PROGRAMS = Path(__file__).parent / "programs"
TOUR = str(PROGRAMS / "mcp_session_tour.py")


async def run_program(*command):
    """What a program prints."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, complaint = await process.communicate()
    assert process.returncode == 0, complaint.decode()[-2000:]
    return json.loads(said)


@pytest.fixture
def tours(python_of, tmp_path):
    """Runs the tour under the library of a generation, and under the façade."""

    async def run(generation, transport, target):
        python = str(python_of(f"mcp{generation}"))
        arguments = (generation, transport, target)
        folder = declare_installed(tmp_path, python, "mcp")
        facade = (sys.executable, "-c", UNDER_FACADE, TOUR, folder)
        return await asyncio.gather(
            run_program(python, "-W", "ignore", TOUR, *arguments),
            run_program(*facade, *arguments),
        )

    return run


@pytest.mark.parametrize(
    ("generation", "transport"), [("1", "memory"), ("2", "memory"), ("2", "auto")]
)
async def test_a_session_in_memory_gets_the_same(tours, generation, transport):
    """Ours: server and client of the library, and both of the façade."""
    expected, found = await tours(generation, transport, "-")
    assert expected == found
