"""Where counterparts from other libraries lie, and how to run one."""

import asyncio
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTERPARTS = ROOT / "tests" / "interop" / "counterparts"
BOOKINGS = ROOT / "examples" / "bookings.py"
SECONDS = 60


async def talk(*command):
    """Run a counterpart to its end and read the one JSON object that it prints last."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
    except TimeoutError:
        process.kill()
        out, err = await process.communicate()
        raise AssertionError(f"no end after {SECONDS} s: {err.decode()[-2000:]}") from None
    assert 0 == process.returncode, err.decode()[-3000:] + out.decode()[-1000:]
    return json.loads(out.decode().strip().splitlines()[-1])
