"""Texts, records, tokens and a watch on the loop, the same for every server in Python."""

import asyncio
import base64
import json
import time
from typing import Any

ISSUER, RESOURCE = "https://login.example", "http://127.0.0.1/mcp"
TICK_S = 0.002

PLAIN, DOCUMENT = (
    "The quick brown fox jumps over the lazy dog, and then once more, as it has always done. ",
    'The quick brown fox said "no", and jumps over the lazy dog, once more.\n',
)
"""Texts by what they hold: nothing that JSON escapes; line ends and quotes, as documents have."""

_texts: dict[tuple[int, str], str] = {}


def make_text(size: int, line: str = PLAIN) -> str:
    """A text of so many bytes, always the same object."""
    if (size, line) not in _texts:
        _texts[size, line] = (line * (size // len(line) + 1))[:size]
    return _texts[size, line]


def make_bytes(size: int) -> bytes:
    """So many bytes, of every value."""
    return (bytes(range(256)) * (size // 256 + 1))[:size]


def make_people(count: int) -> list[dict[str, Any]]:
    """Records of about a hundred bytes each."""
    return [
        {
            "id": number,
            "name": f"Person {number:07}",
            "email": f"person{number:07}@example.org",
            "score": number / 8,
            "tags": ["a", "b"],
        }
        for number in range(count)
    ]


def make_token(number: int) -> str:
    """One of the fixed tokens."""
    return f"a-fixed-token-that-is-long-enough-{number:05}"


def read_public_key(kind: str) -> dict[str, str]:
    """The key in a case as ``es256:…``."""
    found: dict[str, str] = json.loads(base64.urlsafe_b64decode(kind.partition(":")[2]))
    return found


class LoopGaps:
    """A watch that wakes up often, and knows the longest time that it could not."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.task: asyncio.Task[None] | None = None

    async def _tick(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.perf_counter()
            self.longest = max(self.longest, now - last - TICK_S)
            last = now

    async def watch(self) -> int:
        """Begin to watch, or begin anew."""
        if self.task is None:
            self.task = asyncio.create_task(self._tick())
        self.longest = 0.0
        return 1

    async def longest_ms(self) -> float:
        """The longest time that the loop was blocked, in milliseconds."""
        await asyncio.sleep(2 * TICK_S)
        return self.longest * 1e3
