"""How many tokens a text takes: estimated, and better so the more a provider says."""

from math import ceil
from typing import Protocol

__all__ = ["Counter", "Estimator"]

BYTES_PER_TOKEN = 3.6
"""Bytes of UTF-8 to a token, as a first guess; what models read is between 2 and 5."""

LEAST, MOST = 1.5, 6.0
SMOOTHING = 0.2
"""How much one report of a provider changes the estimate."""


class Counter(Protocol):
    """Counts tokens.

    Attributes:
        name: for the manifest.
    """

    name: str

    def count(self, text: str) -> int:
        """Tokens of a text; a longer text never has fewer."""
        ...


class Estimator:
    """Counts bytes, and learns from what providers report.

    Args:
        ratio: bytes to a token.
    """

    def __init__(self, ratio: float = BYTES_PER_TOKEN) -> None:
        self.ratio = ratio

    @property
    def name(self) -> str:
        """For the manifest."""
        return f"estimated, {self.ratio:.2f} bytes to a token"

    def count(self, text: str) -> int:
        """Tokens of a text; a longer text never has fewer."""
        return ceil(len(text.encode("utf-8", "surrogatepass")) / self.ratio)

    def learn(self, text_bytes: int, tokens: int) -> None:
        """A provider says how many tokens so many bytes were."""
        if tokens > 0 and text_bytes > 0:
            seen = min(MOST, max(LEAST, text_bytes / tokens))
            self.ratio += SMOOTHING * (seen - self.ratio)
